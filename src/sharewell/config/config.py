"""What a configuration says, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

from sharewell.config.service import Service
from sharewell.engine.data_vector import DataVector
from sharewell.engine.vectorize import vectorize
from sharewell.errors import ConfigError, SqlError
from sharewell.mechanism.base import Mechanism, Question
from sharewell.privacy.budget import Budget
from sharewell.privacy.curator import Curator
from sharewell.query import workload
from sharewell.query.block import Neighbours, ParallelBlock
from sharewell.query.domain import Domain
from sharewell.query.sql import compile_sql
from sharewell.sharing.collective import Collective
from sharewell.sharing.scheduler import Scheduler, make_scheduler

#: Counts by two columns are expected where they have at most so many groups.
MOST_GROUPS = 200


@dataclass(frozen=True)
class Analyst:
    """Somebody who may ask: their part of the budget, and questions that they are likely to ask."""

    name: str
    share: Fraction
    expects: tuple[str, ...] = ()


@dataclass(frozen=True)
class Config:
    """All that a `sharewell.toml` says."""

    path: Path
    #: The file's own words.
    text: str
    name: str
    source: Path
    domain: Domain
    budget: Budget
    #: How far off a useful answer may be, in rows.
    error_threshold: float
    analysts: tuple[Analyst, ...]
    make: Callable[[Curator], Mechanism]
    #: How it is served.
    service: Service
    table: str | None = None
    privacy_unit: str | None = None
    neighbours: Neighbours = "add-remove"
    scheduler_name: str = "none"
    scheduler_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shares(self) -> dict[str, Fraction]:
        """Every analyst's share, in the budget's currency."""
        return {analyst.name: analyst.share for analyst in self.analysts}

    @property
    def collective(self) -> Collective:
        """Who shares the budget, and how it answers."""
        return Collective(self.domain, self.budget, self.shares, self.make, self.neighbours)

    def scheduler(self) -> Scheduler[Any]:
        """A new scheduler, as configured."""
        return make_scheduler(self.scheduler_name, self.shares, **self.scheduler_options)

    def vector(self) -> DataVector:
        """Count the rows of the source. Secret."""
        return vectorize(self.source, self.domain, self.privacy_unit, table=self.table)

    def workloads(self) -> dict[str, Sequence[Question]]:
        """What every analyst is expected to ask."""
        return expected_workloads(self.domain, self.name, self.analysts)


def expected_workloads(
    domain: Domain, table: str, analysts: Sequence[Analyst]
) -> dict[str, Sequence[Question]]:
    """What analysts are expected to ask: as they say, or else counts by one and two columns."""
    return {analyst.name: list(_expected(domain, table, analyst)) for analyst in analysts}


def _expected(domain: Domain, table: str, analyst: Analyst) -> Iterator[Question]:
    if not analyst.expects:
        yield from _usual(domain)
    for at, text in enumerate(analyst.expects):
        try:
            yield from compile_sql(text, domain, table=table).blocks
        except SqlError as error:
            raise ConfigError(
                f"analysts.{analyst.name}.expects[{at}] cannot be answered: {error.message}",
                hint=error.hint,
                where=error.where,
            ) from None


def _usual(domain: Domain) -> Iterator[ParallelBlock]:
    """Counts by every column, and by every two that have few groups."""
    for count in (1, 2):
        for names in combinations(domain.names, count):
            if math.prod(domain[name].size for name in names) <= MOST_GROUPS:
                yield ParallelBlock.of(workload.marginal(domain, names))
