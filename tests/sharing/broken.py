"""Seeded Cache and Reconstruct with one guarantee broken each: what the search must find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from sharewell import LinearQuery
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.marginal_seed import MarginalSeed
from sharewell.mechanisms.planned_seed import PlannedSeed
from sharewell.privacy.measurement import MeasureRequest
from sharewell.query.block import ParallelBlock


class KeyedByCount(CacheReconstruct):
    """Signs single counts, and takes a count for measured if it or its signed row was."""

    def answer(self, block, analyst, pay):
        rows = self._rows_to_buy(block)
        can_pay = pay and self.curator.left(analyst) >= self.query_budget
        bought = None
        if can_pay and len(rows):
            bought = yield MeasureRequest(rows, self.query_budget, analyst)
            self._learn(bought)
        else:
            yield None
        return self._estimate(block, self._measured_rows(block), bought, as_printed=False)

    def _rows_to_buy(self, block: ParallelBlock) -> ParallelBlock:
        return self._measured_rows(block).take(self._unknown(block))

    def _unknown(self, block: ParallelBlock) -> list[int]:
        return [
            at for at, row in enumerate(block.primitive) if not any(self._lookup((row, signed(row))))
        ]


class SignsWhatIsLeft(KeyedByCount):
    """Signs a row where it is the only one of its question that is left to buy."""

    def _rows_to_buy(self, block: ParallelBlock) -> ParallelBlock:
        left = ParallelBlock(block.domain, block.primitive.take(self._unknown(block)).queries)
        return left.signed or left


def signed(row: LinearQuery) -> LinearQuery:
    rows = ParallelBlock(row.domain, [row]).signed
    return row if rows is None else rows[0]


class PlannedForAll(PlannedSeed):
    """A donation buys the plan for what all who donate together expect to ask."""

    def bought_by(self, bill: Mapping[str, Fraction]) -> MarginalSeed:
        assert isinstance(self.expected, Mapping)
        wishes = [question for donor in bill for question in self.expected.get(donor, ())]
        expected = dict.fromkeys(bill, wishes)
        return PlannedSeed(self.domain, self.currency, self.neighbours, expected).bought_by(bill)


class PlansForAll(CacheReconstruct):
    """Plans from the wishes of all who are there."""

    def __init__(self, curator: Any, *, seed: Any, **options: Any) -> None:
        if isinstance(seed, PlannedSeed):
            seed = PlannedForAll(seed.domain, seed.currency, seed.neighbours, seed.expected)
        super().__init__(curator, seed=seed, **options)


class ClosesWhenAllAreDone(CacheReconstruct):
    """Closes a round as soon as all who are there are done."""

    _done: frozenset[str] = frozenset()

    def close_round(self, done: Iterable[str]) -> None:
        self._done |= set(done)
        if self._done >= set(self.analysts):
            super().close_round(self.analysts)


BROKEN = {
    "keyed-by-count": KeyedByCount,
    "signs-what-is-left": SignsWhatIsLeft,
    "plans-for-all": PlansForAll,
    "closes-when-all-are-done": ClosesWhenAllAreDone,
}
