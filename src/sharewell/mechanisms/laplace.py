"""The simple baseline: every question is measured on its own, first come, first served."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Self

from sharewell.errors import QueryError
from sharewell.mechanisms.base import (
    NOTHING,
    Answer,
    Guarantee,
    Mechanism,
    Prospect,
    PublicContext,
    standard_errors,
)
from sharewell.options import AMOUNT, Option
from sharewell.privacy.budget import Amount, amount
from sharewell.privacy.curator import Curator
from sharewell.privacy.driver import Step
from sharewell.privacy.measurement import Measurement, MeasureRequest
from sharewell.query.block import ParallelBlock


class Laplace(Mechanism):
    """Each question costs `query_budget` from the common pot; nothing is reused.

    The noise is Gaussian where the budget is a zCDP one. When the pot is empty, questions are refused.

    Privacy: `query_budget` a question, charged to all analysts in proportion to what they have left.
    """

    name = "Laplace"
    errors_are_public = True
    pooled = True
    key = "laplace"
    options = (
        Option("query_budget", AMOUNT, "1/100", "cost of a question, as a fraction of the budget"),
    )
    guarantee = Guarantee("guarantees/laplace.md", in_turns=())

    @classmethod
    def arguments(cls, options: Mapping[str, Any], context: PublicContext) -> dict[str, Any]:
        """Compute the price from the budget."""
        return {"query_budget": options["query_budget"] * context.budget.total}

    def __init__(self, curator: Curator, *, query_budget: Amount) -> None:
        super().__init__(curator)
        self.query_budget = amount(query_budget, "query_budget")
        #: Measurements that were paid for before a crash, and that no question was answered with.
        self._undelivered = list(self.recovered)

    def answer(self, block: ParallelBlock, analyst: str, pay: bool) -> Step[list[Answer]]:
        """Measure the rows, whatever was measured before."""
        if not pay:
            raise QueryError(
                f"{self.name} keeps no measurements to answer from.", hint="Pay for an answer."
            )
        rows = block.primitive
        found = self._find_undelivered(rows)
        if found is None:
            found = yield MeasureRequest(rows, self.query_budget, self._pot(self.query_budget))
        else:
            self._undelivered.remove(found)
            try:
                yield None
            except GeneratorExit:
                self._undelivered.append(found)
                raise
        values, variances = found.values.tolist(), found.variances.tolist()
        return [
            self._answered(query, value, variance, "measured", found, analyst)
            for query, value, variance in zip(block, values, variances, strict=True)
        ]

    def expect(self, block: ParallelBlock, analyst: str, pay: bool) -> Prospect | None:
        """The variances that the price buys, while the pot has it."""
        rows = block.primitive
        cost = NOTHING if self._find_undelivered(rows) else self.query_budget
        if not pay or cost > self._in_pot():
            return None
        variances = self.curator.variances(rows, self.query_budget)
        return Prospect(cost, standard_errors(variances, block), ("measured",) * len(block))

    def snapshot(self) -> Self:
        """With its own list of what is not delivered yet."""
        frozen = super().snapshot()
        frozen._undelivered = list(self._undelivered)
        return frozen

    def spendable(self, analyst: str) -> Fraction:
        """The whole pot."""
        return self._in_pot()

    def _find_undelivered(self, rows: ParallelBlock) -> Measurement | None:
        wanted = [row.key for row in rows]
        for measurement in self._undelivered:
            if [row.key for row in measurement.block] == wanted:  # type: ignore[attr-defined]
                return measurement
        return None
