"""The simple baseline: every question is measured on its own, first come first served."""

from __future__ import annotations

from collections.abc import Iterable
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
    primitives,
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
        #: Questions that were paid for and, for a crash, never answered.
        self._owed = {_key(found.block): found for found in self.recovered}  # type: ignore[arg-type]

    def means(self, analyst: str) -> Fraction:
        """The whole pot."""
        return self._in_pot()

    def _preview(self, block: ParallelBlock, analyst: str) -> Preview:
        rows = primitives(block)
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
        rows = primitives(block)
        if _key(rows) in self._owed:
            return None
        return self.curator.order(rows, self.query_budget, self._pot(self.query_budget))

    def _answer(self, prepared: Prepared, bought: Measurement | None) -> list[Answer]:
        if bought is None:
            bought = self._owed.pop(_key(primitives(prepared.block)))
        values, variances = bought.values.tolist(), bought.variances.tolist()
        return [
            self._shown(query, value, variance, "measured", bought, prepared.analyst)
            for query, value, variance in zip(prepared.block, values, variances, strict=True)
        ]


def _key(rows: Iterable[Any]) -> tuple[str, ...]:
    """What a question consists of."""
    return tuple(row.key for row in rows)
