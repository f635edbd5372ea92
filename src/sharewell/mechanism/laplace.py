"""The simple baseline: every question is measured on its own, first come first served."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from sharewell.errors import OverBudget, QueryError
from sharewell.mechanism.base import (
    Answer,
    Mechanism,
    Offer,
    Prepared,
    Preview,
    Source,
    errors_of,
)
from sharewell.privacy.budget import Amount, amount
from sharewell.privacy.curator import Curator
from sharewell.privacy.measurement import Measurement, Order
from sharewell.query.block import ParallelBlock


class Laplace(Mechanism):
    """Each question costs `query_budget` from the common pot; nothing is reused.

    The noise is Gaussian where the budget is a zCDP one. When the pot is empty, questions are refused.

    Privacy: `query_budget` a question, charged to all analysts in proportion to what they have left.
    """

    name = "Laplace"
    errors_are_public = True

    def __init__(self, curator: Curator, *, query_budget: Amount) -> None:
        super().__init__(curator)
        self.query_budget = amount(query_budget, "query_budget")
        #: What was paid for and, for a crash, never given; and what of it a prepared question will take.
        self._owed = list(self.recovered)
        self._claimed: list[Measurement] = []

    def means(self, analyst: str) -> Fraction:
        """The whole pot."""
        return self._in_pot()

    def _preview(self, block: ParallelBlock, analyst: str) -> Preview:
        rows = block.primitive
        variances = self.curator.variances(rows, self.query_budget)
        try:
            self._pot(self.query_budget)
        except OverBudget:
            return Preview(None, None)
        sources: list[Source] = ["measured"] * len(block)
        return Preview(Offer(self.query_budget, errors_of(variances, block), tuple(sources)), None)

    def _order(self, block: ParallelBlock, analyst: str, pay: bool) -> Order | None:
        if not pay:
            raise QueryError(
                "Nothing is kept here that could be answered from for free.", hint="Pay for it."
            )
        rows = block.primitive
        for found in self._owed:
            if _same(found.block, rows):
                self._owed.remove(found)
                self._claimed.append(found)
                return None
        return self.curator.order(rows, self.query_budget, self._pot(self.query_budget))

    def _answer(self, prepared: Prepared, bought: Measurement | None) -> list[Answer]:
        if bought is None:
            bought = self._take_claimed(prepared)
        values, variances = bought.values.tolist(), bought.variances.tolist()
        return [
            self._shown(query, value, variance, "measured", bought, prepared.analyst)
            for query, value, variance in zip(prepared.block, values, variances, strict=True)
        ]

    def forget(self, prepared: Prepared) -> None:
        """Give up a prepared question; what it would have taken stays owed."""
        super().forget(prepared)
        if prepared.order is None and prepared.places:
            self._owed.append(self._take_claimed(prepared))

    def _take_claimed(self, prepared: Prepared) -> Measurement:
        rows = prepared.block.primitive
        found = next(claimed for claimed in self._claimed if _same(claimed.block, rows))
        self._claimed.remove(found)
        return found


def _same(block: Any, rows: ParallelBlock) -> bool:
    """Whether two blocks consist of the same rows."""
    return [row.key for row in block] == [row.key for row in rows]
