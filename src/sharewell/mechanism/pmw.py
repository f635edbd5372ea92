"""Private Multiplicative Weights: guess from a synthetic table, and pay only for guesses far off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, get_args

from numpy.typing import ArrayLike

from sharewell.errors import PrivacyError, QueryError
from sharewell.mechanism.base import Answer, Mechanism, Offer, Prepared, Preview, Source, decode
from sharewell.mechanism.synthetic import SyntheticTable
from sharewell.privacy.budget import Amount, amount
from sharewell.privacy.curator import Curator
from sharewell.privacy.measurement import Measurement
from sharewell.privacy.sparse_vector import SparseVector
from sharewell.query.block import Block, ParallelBlock
from sharewell.query.linear import LinearQuery

#: How the synthetic table learns: one fixed step for the newest measurement, or passes over them all.
Update = Literal["replay", "sign"]

#: The part of the budget that pays for the tests, and the part that a measured total costs.
TEST_PART = Fraction(1, 2)
TOTAL_PART = Fraction(1, 20)


@dataclass(frozen=True)
class Tuning:
    """Settings that trade accuracy, and never privacy; `tuned` gives the defaults."""

    updates: int
    threshold: int
    passes: int = 20
    rate: float = 0.1


def tuned(population: float, epsilon: float, updates: int | None = None) -> Tuning:
    """Defaults from public numbers alone, found on made-up tables by `scripts/tune_pmw.py`.

    More people and more budget mean that smaller errors are worth an update, and that more updates
    can be paid for before their noise drowns what they teach. The threshold stands at twice the scale
    of the tests' noise, so that few updates are spent on noise alone, and not below half a percent of
    the population, so that few are spent on what is near enough.
    """
    if updates is None:
        updates = max(4, min(60, round(0.27 * math.sqrt(population * epsilon))))
    ratio = (2 * updates) ** (2 / 3)
    noise = 2 * updates / (epsilon * float(TEST_PART) * ratio / (1 + ratio))
    return Tuning(updates, max(1, round(max(2 * noise, population / 200))))


class PrivateMultiplicativeWeights(Mechanism):
    """Online answers from a synthetic table, corrected wherever a sparse vector finds it far off.

    A question whose guess is good enough is answered from the table and costs nothing more. Otherwise
    it is measured, the noisy value is returned, and the table is bent towards it. After `updates`
    measurements every answer is a guess. The whole pot pays for the tests when the mechanism starts,
    and for one part in `updates` at every measurement.

    Privacy: the sparse vector's epsilon and the measurements, which interleave adaptively (concurrent
    composition); together at most what the analysts had left at the start, for every setting.
    """

    name = "Private Multiplicative Weights"
    plans_ahead = False

    def __init__(
        self,
        curator: Curator,
        *,
        population: float | None = None,
        updates: int | None = None,
        threshold: int | None = None,
        update: Update = "replay",
        prior: ArrayLike | None = None,
    ) -> None:
        super().__init__(curator)
        if update not in get_args(Update):
            raise QueryError(f"`update` cannot be {update!r}.", hint='Use "replay" or "sign".')
        _check("updates", updates, 1)
        _check("threshold", threshold, 0)
        self.update = update
        self.table = SyntheticTable(self.domain, 1.0 if population is None else population, prior)
        past = list(curator.history(decode))
        self._answer_part = 1 - TEST_PART
        if population is None:
            total = past.pop(0) if past else self._measure_total()
            self.table.population = max(1.0, float(total.values[0]))
            self._answer_part -= TOTAL_PART
        tests = curator.sparse_vectors()
        self._test = tests[0] if tests else self._open_tests(updates, threshold)
        # What the tests were opened with holds, also when some of those who paid for them have left.
        self.tuning = Tuning(self._test.plan.positives, self._test.plan.threshold)
        self._measured: list[tuple[LinearQuery, float]] = []
        for measurement in past:
            self._learn(measurement)

    def _measure_total(self) -> Measurement:
        cost = self._shares() * TOTAL_PART
        return self.curator.measure(
            Block(self.domain, [LinearQuery.all(self.domain)]), cost, self._pot(cost)
        )

    def _open_tests(self, updates: int | None, threshold: int | None) -> SparseVector:
        pot, zcdp = self._shares(), self.curator.budget.currency == "zcdp"
        epsilon = math.sqrt(2 * pot) if zcdp else float(pot)
        defaults = tuned(self.table.population, epsilon, updates)
        part = pot * TEST_PART
        if zcdp:
            # The largest short decimal whose square costs no more than the part.
            part = Fraction(math.floor(math.sqrt(2 * part) * 10**9), 10**9)
        return self.curator.sparse_vector(
            epsilon=part,
            threshold=defaults.threshold if threshold is None else threshold,
            positives=defaults.updates,
            payer=self._pot(self.curator.budget.cost_of_pure(part)),
        )

    def _shares(self) -> Fraction:
        return sum((self.curator.share(analyst) for analyst in self.analysts), Fraction(0))

    @cached_property
    def measurement_cost(self) -> Fraction:
        """What one measurement costs: what the tests and the total leave, in equal parts."""
        pot = self.curator.budget.cost_of_pure(self._test.plan.epsilon) / TEST_PART
        return pot * self._answer_part / self.tuning.updates

    @property
    def updates_left(self) -> int:
        """How many more times the table can be corrected, by the tests and by what is left to pay."""
        return min(self._test.positives_left, int(self._in_pot() / self.measurement_cost))

    def means(self, analyst: str) -> Fraction:
        """The whole pot."""
        return self._in_pot()

    def join(self, analyst: str, share: Amount) -> None:
        """Refused: the tests are paid for once, and a later share could not buy more of them."""
        amount(share, "A share")
        raise QueryError(
            f"{self.name} cannot take in analysts later.", hint="Name them all at the start."
        )

    def _order(self, block: ParallelBlock, analyst: str, pay: bool) -> None:
        """Nothing: what is bought is up to the tests."""

    def _answer(self, prepared: Prepared, bought: Measurement | None) -> list[Answer]:
        return [self._answer_one(query, prepared.analyst, prepared.pay) for query in prepared.block]

    def _answer_one(self, query: LinearQuery, analyst: str, pay: bool) -> Answer:
        row = query.primitive
        guess = self.table.answer(row)
        if not (pay and self.updates_left and self._testable(row) and self._test.exceeds(row, guess)):
            return self._shown(query, guess, None, "synthetic")
        found = self.curator.measure(
            Block(self.domain, [row]), self.measurement_cost, self._pot(self.measurement_cost)
        )
        self._learn(found)
        value, variance = float(found.values[0]), float(found.variances[0])
        return self._shown(query, value, variance, "measured", found, analyst)

    def _testable(self, row: LinearQuery) -> bool:
        """Whether one row of the table changes a query by at most 1, as the tests were paid for.

        All counts do. Sums do not, and are answered from the table without a test.
        """
        return (row.max_abs if self.curator.neighbours == "add-remove" else row.spread) <= 1

    def _learn(self, found: Measurement) -> None:
        """Bend the table towards a measurement, and with `replay` towards all earlier ones again."""
        rows = list(found.block)  # type: ignore[call-overload]
        self._measured.append((rows[0], float(found.values[0])))
        if self.update == "sign":
            query, value = self._measured[-1]
            self.table.bend(query, math.copysign(self.tuning.rate, value - self.table.answer(query)))
            return
        for _ in range(self.tuning.passes):
            for query, value in self._measured:
                miss = value - self.table.answer(query)
                self.table.bend(query, miss / (2 * self.table.population))

    def _preview(self, block: ParallelBlock, analyst: str) -> Preview:
        guessed: list[Source] = ["synthetic"] * len(block)
        free = Offer(Fraction(0), (None,) * len(block), tuple(guessed))
        if not self.updates_left:
            return Preview(None, free)
        # What it will cost is not known before the test, which itself is private: at most this much.
        tested = sum(self._testable(query.primitive) for query in block)
        cost = self.measurement_cost * min(self.updates_left, tested)
        return Preview(Offer(cost, (None,) * len(block), tuple(guessed)), free)


def _check(name: str, value: int | None, least: int) -> None:
    """Refuse a setting before anything is charged."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        raise PrivacyError(f"`{name}` must be a whole number from {least} on, not {value!r}.")
