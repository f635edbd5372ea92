"""The collective: who shares a budget, and by which mechanism. All public; it holds no data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sharewell.engine.data_vector import DataVector
from sharewell.errors import OverBudget, SharingError
from sharewell.mechanism.base import Mechanism, Prepared
from sharewell.privacy.budget import Budget
from sharewell.privacy.curator import Curator
from sharewell.privacy.ledger import Ledger
from sharewell.privacy.noise import Noise
from sharewell.privacy.shadow import ForgetfulLedger, ShadowCurator
from sharewell.query.block import Neighbours
from sharewell.query.domain import Domain
from sharewell.sharing.stream import Ask, Entry, Join, Leave, read_stream

#: The standard error of each answer to an entry that asks; None for all other entries.
Errors = tuple[float, ...] | None


@dataclass(frozen=True)
class Collective:
    """Several analysts with shares of one budget, and the mechanism that answers them.

    `make` gives the mechanism for a curator: `functools.partial(CacheReconstruct, seed=...)`, say.
    """

    domain: Domain
    budget: Budget
    shares: Mapping[str, Fraction]
    make: Callable[[Curator], Mechanism]
    neighbours: Neighbours = "add-remove"

    def open(
        self, data: DataVector, *, noise: Noise | None = None, ledger: Ledger | None = None
    ) -> Mechanism:
        """The mechanism on real data.

        Privacy: everything asked of it costs at most the budget.
        """
        return self.make(
            Curator(
                data,
                self.budget,
                self.shares,
                neighbours=self.neighbours,
                noise=noise,
                ledger=ledger,
            )
        )

    def errors(self, stream: Iterable[Any], present: Collection[str] | None = None) -> Iterator[Errors]:
        """The exact standard errors of every entry's answers, with all analysts or only some."""
        rehearsal = Rehearsal(self, present)
        return (rehearsal.play(entry) for entry in read_stream(stream))

    @cached_property
    def empty(self) -> DataVector:
        """A table without rows, which every rehearsal shares."""
        return DataVector(self.domain, np.zeros(self.domain.size, dtype=np.int64))

    def __getstate__(self) -> dict[str, Any]:
        # The empty table is large and quickly made again.
        return {name: value for name, value in vars(self).items() if name != "empty"}


class Rehearsal:
    """A collective played without data, with those present or without those missing.

    Where the errors of a mechanism do not depend on the data, those that come out are exact: it is
    the very mechanism that answers, so nothing can be told apart but the values.

    Privacy: sees no data and spends nothing.
    """

    def __init__(
        self,
        collective: Collective,
        present: Collection[str] | None = None,
        *,
        missing: Collection[str] = (),
    ) -> None:
        self._present = None if present is None else frozenset(present)
        self._missing = frozenset(missing)
        self._ledger = ForgetfulLedger()
        #: Errors of questions that bought nothing, as long as nobody has bought anything since.
        self._remembered: dict[tuple[Any, ...], tuple[float, ...]] = {}
        self._as_of = 0
        self.mechanism = collective.make(
            ShadowCurator(
                collective.empty,
                collective.budget,
                {name: share for name, share in collective.shares.items() if self.sees(name)},
                neighbours=collective.neighbours,
                ledger=self._ledger,
            )
        )

    def sees(self, analyst: str) -> bool:
        """Whether an analyst takes part in this rehearsal, once they have come."""
        if analyst in self._missing:
            return False
        return self._present is None or analyst in self._present

    def play(self, entry: Entry) -> Errors:
        """Let an entry happen, unless its analyst is absent; the errors of its answers, if it asks.

        A question that is refused for want of budget has infinite errors.
        """
        if not self.sees(entry.analyst):
            return None
        match entry:
            case Join(analyst, share):
                self.mechanism.join(analyst, share)
            case Leave(analyst, donate):
                self.mechanism.leave(analyst, donate=donate)
            case Ask():
                return self._recall(entry)
        return None

    def _recall(self, ask: Ask) -> tuple[float, ...]:
        """The errors of a question, or those that it had before if nothing has changed since.

        All that changes a mechanism goes through its ledger.
        """
        if len(self._ledger) != self._as_of:
            self._remembered.clear()
            self._as_of = len(self._ledger)
        key = (ask.analyst, ask.pay, *(query.key for query in ask.queries))
        if key not in self._remembered:
            errors = self._ask(ask)
            if len(self._ledger) != self._as_of:
                return errors
            self._remembered[key] = errors
        return self._remembered[key]

    def _ask(self, ask: Ask) -> tuple[float, ...]:
        """As the broker does it: all parts are prepared, or none, and then bought together."""
        if not self.mechanism.errors_are_public:
            raise SharingError(
                f"How far off {self.mechanism.name} is depends on the data, so it cannot be rehearsed.",
                hint="Seeded Cache and Reconstruct, Laplace and their independent versions can be.",
            )
        prepared: list[Prepared] = []
        try:
            for part in ask.parts:
                prepared.append(self.mechanism.prepare(part, ask.analyst, pay=ask.pay))
        except OverBudget:
            for each in reversed(prepared):
                self.mechanism.forget(each)
            return (float("inf"),) * len(ask.queries)
        bought = iter(self.mechanism.curator.fill([each.order for each in prepared if each.order]))
        answers = [
            answer
            for each in prepared
            for answer in self.mechanism.finish(each, next(bought) if each.order else None)
        ]
        return tuple(a.standard_error for a in answers if a.standard_error is not None)
