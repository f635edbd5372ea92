"""Private Multiplicative Weights: guess from a synthetic table, and pay only for guesses far off."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sharewell.errors import ConfigError, PrivacyError, QueryError
from sharewell.mechanisms.base import Answer, Guarantee, Mechanism, Prospect, PublicContext, decode
from sharewell.options import Option, choice, integer
from sharewell.privacy.budget import Amount, amount
from sharewell.privacy.curator import Curator
from sharewell.privacy.driver import Step
from sharewell.privacy.measurement import Measurement, MeasureRequest, SparseVectorTest
from sharewell.privacy.sparse_vector import SparseVector
from sharewell.query.block import Block, ParallelBlock
from sharewell.query.domain import MAX_CELLS, Domain
from sharewell.query.linear import LinearQuery

#: How the synthetic table learns: one fixed step for the newest measurement, or passes over them all.
Update = Literal["replay", "sign"]

#: The part of the budget that pays for the tests, and the part that a measured total costs.
TEST_PART = Fraction(1, 2)
TOTAL_PART = Fraction(1, 20)
#: The largest exponent of one step, so that no weight is lost for good by a wild measurement.
MAX_STEP = 2.0


TUNED = "tuned from the population and the budget"
SAME_QUERIES = "The number of questions that a budget answers does not depend on who asks or when."


@dataclass(frozen=True)
class Tuning:
    """Settings that trade accuracy, and never privacy; `tuned` gives the defaults."""

    updates: int
    threshold: int
    passes: int = 20
    rate: float = 0.1


def tuned(population: float, epsilon: float, updates: int | None = None) -> Tuning:
    """Defaults from public numbers alone, found on synthetic tables by `scripts/tune_pmw.py`.

    More people and more budget mean that smaller errors are worth an update, and that more updates
    can be paid for before their noise exceeds what they add. The threshold is twice the scale
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
    it is measured, the noisy value is returned, and the table is updated with it. After `updates`
    measurements every answer is a guess. The whole pot pays for the tests when the mechanism starts,
    and for one part in `updates` at every measurement.

    Privacy: the sparse vector's epsilon and the measurements, which interleave adaptively (concurrent
    composition); together at most what the analysts had left at the start, for every setting.
    """

    name = "Private Multiplicative Weights"
    sequential = True
    pooled = True
    key = "multiplicative-weights"
    options = (
        Option(
            "updates",
            integer(1, 10**9),
            None,
            "number of measurements that the tests may trigger",
            TUNED,
        ),
        Option(
            "threshold",
            integer(0, 10**15),
            None,
            "error of a synthetic answer, in rows, above which it is measured",
            TUNED,
        ),
        Option(
            "update",
            choice(*get_args(Update)),
            "replay",
            "how a measurement changes the synthetic table",
        ),
    )
    guarantee = Guarantee("guarantees/pmw.md", in_turns=(SAME_QUERIES,))

    @classmethod
    def arguments(cls, options: Mapping[str, Any], context: PublicContext) -> dict[str, Any]:
        """Add the declared population; refuse a domain without a synthetic table."""
        if context.domain.size > MAX_CELLS:
            raise ConfigError(
                f"mechanism.name: {cls.key} keeps a synthetic table of every cell, and the domain has "
                f"more than {MAX_CELLS:,}.",
                hint='Use name = "cache-reconstruct" with seed = "tables", or describe fewer columns.',
            )
        if context.domain.measures:
            raise ConfigError(
                f"mechanism.name: {cls.key} answers counts, and the domain has measures.",
                hint='Use name = "cache-reconstruct", or remove the measures.',
            )
        return {**options, "population": context.population}

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
        past = curator.history(decode)
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

    def spendable(self, analyst: str) -> Fraction:
        """The whole pot."""
        return self._in_pot()

    def join(self, analyst: str, share: Amount) -> None:
        """Refused: the tests are paid for once, and a later share could not buy more of them."""
        amount(share, "A share")
        raise QueryError(
            f"{self.name} does not allow analysts to join later.", hint="Name them all at the start."
        )

    def answer(self, block: ParallelBlock, analyst: str, pay: bool) -> Step[list[Answer]]:
        """Answer each row from the table, unless a test finds its guess too far from the truth."""
        answers = []
        for query in block:
            row = query.primitive
            guess = self.table.answer(row)
            testable = pay and self.updates_left and self._testable(row)
            exceeds = yield SparseVectorTest(self._test, row, guess) if testable else None
            if not exceeds:
                answers.append(self._answered(query, guess, None, "synthetic"))
                continue
            cost = self.measurement_cost
            found = yield MeasureRequest(Block(self.domain, [row]), cost, self._pot(cost))
            self._learn(found)
            value, variance = float(found.values[0]), float(found.variances[0])
            answers.append(self._answered(query, value, variance, "measured", found, analyst))
        return answers

    def expect(self, block: ParallelBlock, analyst: str, pay: bool) -> Prospect | None:
        """A bound on the cost: how many rows fail their test is private, and known only afterwards."""
        if pay and not self.updates_left:
            return None
        tested = sum(self._testable(query.primitive) for query in block) if pay else 0
        cost = self.measurement_cost * min(self.updates_left, tested)
        return Prospect(cost, (None,) * len(block), ("synthetic",) * len(block))

    def snapshot(self) -> Self:
        """With its own table, and the tests as they stand."""
        frozen = super().snapshot()
        frozen.table, frozen._test = self.table.snapshot(), self._test.snapshot()
        frozen._measured = list(self._measured)
        return frozen

    def _testable(self, row: LinearQuery) -> bool:
        """Whether one row of the table changes a query by at most 1, as the tests were paid for.

        All counts do. Sums do not, and are answered from the table without a test.
        """
        return (row.max_abs if self.curator.neighbours == "add-remove" else row.spread) <= 1

    def _learn(self, found: Measurement) -> None:
        """Update the table with a measurement, and with `replay` with all earlier ones again."""
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


def _check(name: str, value: int | None, least: int) -> None:
    """Refuse a setting before anything is charged."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        raise PrivacyError(f"`{name}` must be a whole number from {least} on, not {value!r}.")


class SyntheticTable:
    """Positive weights that sum to a public number of people.

    The weights are kept up to a common factor: a step multiplies some of them in place, and the factor
    that keeps the sum is applied when a query is answered. A query that is a box, or a product of sets,
    is answered and updated without reading the other cells.
    """

    def __init__(self, domain: Domain, population: float, prior: ArrayLike | None = None) -> None:
        domain.require_dense()
        if not math.isfinite(population) or population <= 0:
            raise QueryError(f"A population must be a positive number, not {population!r}.")
        weights = np.ones(domain.size) if prior is None else np.array(prior, dtype=np.float64).ravel()
        if len(weights) != domain.size or not np.isfinite(weights).all() or (weights <= 0).any():
            raise QueryError("A prior must give every cell a positive number.")
        self.domain = domain
        self.population = float(population)
        self._weights = weights.reshape(domain.shape) / weights.sum()
        self._sum = 1.0

    def answer(self, query: LinearQuery) -> float:
        """The query's answer on the synthetic table."""
        return float(query.dot(self._weights)) * self.population / self._sum

    def bend(self, query: LinearQuery, step: float) -> None:
        """Multiply every cell's weight by exp(step * the query's weight there)."""
        step = min(max(step, -MAX_STEP), MAX_STEP)
        if query.is_predicate:
            before = float(query.dot(self._weights))
            for _, vectors in query.products():
                for box in _regions(vectors):
                    self._weights[box] *= math.exp(step)
            self._sum += before * math.expm1(step)
        else:
            self._weights *= np.exp(step * query.to_vector().reshape(self.domain.shape))
            self._sum = float(self._weights.sum())
        # The running sum keeps its absolute error, so it must not be left to shrink for long.
        if not 1e-3 < self._sum < 1e3:
            self._weights /= self._weights.sum()
            self._sum = 1.0

    def snapshot(self) -> SyntheticTable:
        """A copy as of now."""
        frozen = copy(self)
        frozen._weights = self._weights.copy()
        return frozen

    def counts(self) -> NDArray[np.float64]:
        """The whole table, one number per cell."""
        return np.asarray(self._weights * (self.population / self._sum)).ravel()


def _regions(vectors: tuple[NDArray[np.int64], ...]) -> Iterator[tuple[slice, ...]]:
    """The boxes that a product of sets consists of: every set is a few runs of neighbouring cells."""
    sets = []
    for weights in vectors:
        edges = np.flatnonzero(np.diff(weights != 0, prepend=False, append=False)).tolist()
        sets.append([slice(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True)])
    return product(*sets)
