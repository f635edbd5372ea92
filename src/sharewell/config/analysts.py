"""The table [analysts] of a configuration: its keys, the analysts, and what they are expected to ask."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations

import numpy as np

from sharewell.config.section import Mistakes, Section, validate_person
from sharewell.errors import ConfigError, DomainError, QueryError, SqlError
from sharewell.mechanisms.base import Question
from sharewell.mechanisms.workload_terms import MOST_TABLE_CELLS, evenly
from sharewell.options import AMOUNT, REQUIRED, STRINGS, Option
from sharewell.privacy.budget import Budget
from sharewell.query.block import GroupedBlock
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell.query.sql import compile_sql

#: Without given questions, counts by one and two columns and sums by one are assumed where they have at
#: most so many groups, as planned seeds do; of very many such tables, so many at even distances.
MAX_ASSUMED_GROUPS, MAX_ASSUMED_TABLES = MOST_TABLE_CELLS, 1_000
#: How an expected question begins that is SQL, and not a list of columns.
SELECT = re.compile(r"\s*(SELECT|WITH)\b", re.IGNORECASE)

ANALYST_OPTIONS = (
    Option("share", AMOUNT, REQUIRED, "fraction of the budget; all shares sum to at most 1"),
    Option(
        "expects",
        STRINGS,
        [],
        "questions they are likely to ask, as SQL or as columns to count by, for `sharewell plan` and "
        "the seeds `planned` and `optimized`",
    ),
)


@dataclass(frozen=True)
class Analyst:
    """An analyst: their share, in the budget's currency, and questions they are likely to ask."""

    name: str
    share: Fraction
    expects: tuple[str, ...] = ()


def read_analysts(section: Section, budget: Budget) -> tuple[Analyst, ...]:
    """The analysts, whose shares sum to at most the budget."""
    mistakes = Mistakes()
    known: dict[str, str] = {}

    def read(name: str) -> Analyst:
        own = section.section(name)
        validate_person(name, "analysts")
        if (same := known.setdefault(name.casefold(), name)) != name:
            raise ConfigError(
                f"analysts: {same!r} and {name!r} differ only in case.", hint="Rename one of them."
            )
        values = own.read_only(ANALYST_OPTIONS)
        return Analyst(name, values["share"] * budget.total, tuple(values["expects"]))

    found = [mistakes.of(partial(read, name)) for name in section]
    mistakes.check()
    if not found:
        raise ConfigError("No analysts are named.", hint='Name one: [analysts.ann] with share = "1/2".')
    total = sum((analyst.share for analyst in found), Fraction(0)) / budget.total
    if total > 1:
        raise ConfigError(
            f"The analysts' shares sum to {total}, which is more than 1.",
            hint="Reduce them: a share is a fraction of the budget.",
        )
    return tuple(found)


def expected_workloads(
    domain: Domain, table: str, analysts: Sequence[Analyst]
) -> dict[str, Sequence[Question]]:
    """What analysts are expected to ask: what the file says, or else counts and sums by few columns."""
    assumed: list[Question] | None = None
    found: dict[str, Sequence[Question]] = {}
    for analyst in analysts:
        if analyst.expects or assumed is None:
            found[analyst.name] = list(_expected(domain, table, analyst))
            assumed = assumed if analyst.expects else list(found[analyst.name])
        else:
            found[analyst.name] = list(assumed)
    return found


def _expected(domain: Domain, table: str, analyst: Analyst) -> Iterator[Question]:
    if not analyst.expects:
        yield from _assumed(domain)
    for at, text in enumerate(analyst.expects):
        try:
            if SELECT.match(text):
                yield from compile_sql(text, domain, table=table).blocks
            else:
                yield _count_by(text, domain)
        except (SqlError, QueryError, DomainError) as error:
            raise ConfigError(
                f"analysts.{analyst.name}.expects[{at}] cannot be answered: {error.message}",
                hint=error.hint,
                where=error.where,
            ) from None


def _assumed(domain: Domain) -> Iterator[GroupedBlock]:
    """Counts by one and two columns, sums by one: the default workload of planned seeds, or some."""
    last, cells = len(domain.attributes), [np.arange(each.size) for each in domain.attributes]
    tables = [
        (vector, levels, size)
        for vector in range(domain.vectors)
        for count in ((1,) if vector else (1, 2))
        for levels in combinations(range(last), count)
        if (size := math.prod(len(cells[level]) for level in levels)) <= MAX_ASSUMED_GROUPS
    ]
    rows: dict[int, LinearQuery] = {}
    for vector, levels, size in evenly(tables, MAX_ASSUMED_TABLES):
        if vector not in rows:
            summed = {last: np.eye(1, domain.vectors, vector, dtype=np.int64)[0]} if vector else {}
            rows[vector] = LinearQuery.of_vectors(domain, summed)
        # Every group has a cell.
        yield GroupedBlock(rows[vector], {level: cells[level] for level in levels}, range(size))


def _count_by(columns: str, domain: Domain) -> GroupedBlock:
    """A table of counts that is given by its columns, such as "age, region"."""
    levels = [domain.index(name.strip()) for name in columns.split(",")]
    cells = {level: np.arange(domain.attributes[level].size) for level in levels}
    return GroupedBlock(LinearQuery.all(domain), cells)
