"""Find defaults for Private Multiplicative Weights on synthetic tables: `python scripts/tune_pmw.py`.

`sharewell.mechanisms.pmw.tuned` maps two public numbers, the population and epsilon, to the two most
important settings: the number of updates, and the error at which a guess is worth one. This script
searches for them on uniform, Zipf, bimodal and sparse tables. It plays streams of random ranges and
single cells with every pair of settings of a grid; an answer counts if it is within 1 % of the
population. It fits a rule to the grid and compares it with `tuned` on tables and streams that the fit
has not seen.

It takes a few minutes, or less than one with `--quick`. It reads no real data.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sharewell import Budget, Curator, DataVector, Domain, Integer
from sharewell.mechanisms.pmw import MAX_STEP, TEST_PART, PrivateMultiplicativeWeights, Tuning, tuned
from sharewell.query import workload
from sharewell_lab.noise import NoNoise

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
#: A population and an epsilon.
Place = tuple[int, float]

TABLES = ("uniform", "Zipf", "bimodal", "sparse")
PLACES: tuple[Place, ...] = tuple(product((1_000, 10_000, 100_000), (0.1, 1.0, 10.0)))
#: An answer counts if its error is below this fraction of the population.
NEAR = 0.01
PASSES = Tuning(1, 1).passes


@dataclass(frozen=True)
class Extent:
    """The extent of the search at every place."""

    cells: tuple[int, ...]
    updates: tuple[int, ...]
    #: Thresholds, in scales of the noise on each test.
    factors: tuple[float, ...]
    queries: int
    repeats: int


QUICK = Extent((64,), (4, 8, 16, 32, 60), (0.5, 1, 2, 4, 8, 32), queries=150, repeats=2)
WHOLE = Extent(
    (64, 256), (4, 8, 12, 18, 27, 40, 60), (0.5, 1, 1.5, 2, 3, 4, 8, 32), queries=300, repeats=2
)


def made_up(kind: str, cells: int, population: int, rng: np.random.Generator) -> Whole:
    """Draw a table of one of the kinds."""
    at = np.arange(cells)
    if kind == "uniform":
        shape = np.ones(cells)
    elif kind == "Zipf":
        shape = rng.permutation(1 / (at + 1))
    elif kind == "bimodal":
        low, high = rng.uniform(0.1, 0.4), rng.uniform(0.6, 0.9)
        shape = np.exp(-(((at / cells - low) / 0.06) ** 2)) + 0.6 * np.exp(
            -(((at / cells - high) / 0.1) ** 2)
        )
    else:
        shape = np.where(rng.random(cells) < 0.08, rng.exponential(1, cells), 0.0)
        shape[rng.integers(cells)] += 1
    return rng.multinomial(population, shape / shape.sum())


def made_up_stream(cells: int, queries: int, rng: np.random.Generator) -> Array:
    """Draw single cells and ranges alternately and uniformly, each as a row of 0 and 1."""
    stream = np.zeros((queries, cells))
    for number, row in enumerate(stream):
        start, end = sorted(rng.choice(cells + 1, 2, replace=False))
        row[start : end if number % 2 else start + 1] = 1
    return stream


def scales(updates: Whole, epsilon: Array) -> tuple[Array, Array, Array]:
    """Return the noise scales of the threshold, the tests and the measurements."""
    tests = epsilon * float(TEST_PART)
    share = tests / (1 + (2 * updates) ** (2 / 3))
    return 1 / share, 2 * updates / (tests - share), updates / (epsilon - tests)


class Runs:
    """Many runs of the mechanism in lockstep: its arithmetic with "replay", in dense arrays.

    Every run has a table, the number of its stream, a noisy threshold and a number of updates.
    """

    def __init__(
        self, tables: Array, streams: Array, which: Whole, thresholds: Array, updates: Whole
    ) -> None:
        self.tables, self.streams, self.which, self.thresholds = tables, streams, which, thresholds
        self.population = tables.sum(axis=1)
        self.left = updates.copy()
        self.weights = np.full(tables.shape, 1 / tables.shape[1])
        self.asked = np.zeros((len(tables), updates.max()), dtype=np.int64)
        self.values = np.zeros((len(tables), updates.max()))
        self.counts = np.zeros(len(tables), dtype=np.int64)

    def answer(self, number: int, test_noise: Array, noise: Array) -> tuple[Array, Array]:
        """Return the answer of every run to its query of that number, and the true answer."""
        query = self.streams[self.which, number]
        truth = np.einsum("ij,ij->i", self.tables, query)
        guess = np.einsum("ij,ij->i", self.weights, query) * self.population
        far = (np.abs(truth - np.rint(guess)) + test_noise >= self.thresholds) & (self.left > 0)
        values = np.where(far, truth + noise, guess)
        if far.any():
            self._learn(np.flatnonzero(far), number, values)
        return values, truth

    def _learn(self, runs: NDArray[np.intp], number: int, values: Array) -> None:
        self.asked[runs, self.counts[runs]] = number
        self.values[runs, self.counts[runs]] = values[runs]
        self.counts[runs] += 1
        self.left[runs] -= 1
        # Runs with the most measurements first, so that active runs are always at the front.
        runs = runs[np.argsort(-self.counts[runs], kind="stable")]
        weights, population, counts = self.weights[runs], self.population[runs], self.counts[runs]
        sums = np.ones(len(runs))
        for _ in range(PASSES):
            for k in range(counts[0]):
                busy = int(np.searchsorted(-counts, -k, side="left"))
                now = runs[:busy]
                bend = self.streams[self.which[now], self.asked[now, k]]
                before = np.einsum("ij,ij->i", weights[:busy], bend)
                miss = self.values[now, k] - before * population[:busy] / sums[:busy]
                factor = np.expm1(np.clip(miss / (2 * population[:busy]), -MAX_STEP, MAX_STEP))
                bend *= factor[:, None]
                bend += 1
                weights[:busy] *= bend
                sums[:busy] += before * factor
        self.weights[runs] = weights / weights.sum(axis=1, keepdims=True)


def check() -> None:
    """Fail unless the runs match the mechanism itself without noise."""
    rng = np.random.default_rng(1)
    domain = Domain([Integer("cell", 0, 31)])
    table = made_up("bimodal", 32, 5_000, rng)
    curator = Curator(DataVector(domain, table), Budget.pure("1"), {"a": "1"}, noise=NoNoise())
    mechanism = PrivateMultiplicativeWeights(curator, population=5_000, updates=8, threshold=40)
    queries = workload.random_ranges(domain, 60, rng)
    streams = np.array([[query.to_vector() for query in queries]], dtype=float)
    none, zero = np.zeros(1), np.zeros(1, dtype=np.int64)
    runs = Runs(table[None, :].astype(float), streams, zero, none + 40, zero + 8)
    for number, query in enumerate(queries):
        ours = runs.answer(number, none, none)[0][0]
        if not math.isclose(ours, mechanism.ask(query, "a").value, rel_tol=1e-9, abs_tol=1e-6):
            raise SystemExit("The runs of this script no longer do what the mechanism does.")


def laplace(scale: Array, rng: np.random.Generator) -> Array:
    """Draw discrete Laplace noise of these scales."""
    success = -np.expm1(-1 / scale)
    return (rng.geometric(success) - rng.geometric(success)).astype(float)


def measure(extent: Extent, tried: dict[Place, list[tuple[int, float]]], number: int) -> Array:
    """Return the fraction of near answers and the typical error of every setting at every place.

    Both are averages over tables and streams; the error is a fraction of the population.
    """
    pairs = len(next(iter(tried.values())))
    total = np.zeros((2, len(tried), pairs))
    for cells in extent.cells:
        rng = np.random.default_rng([number, cells])
        kinds = TABLES * extent.repeats
        streams = np.array([made_up_stream(cells, extent.queries, rng) for _ in kinds])
        tables, which, settings = [], [], []
        for (population, epsilon), chosen in tried.items():
            for stream, kind in enumerate(kinds):
                tables += [made_up(kind, cells, population, rng)] * pairs
                which += [stream] * pairs
                settings += [(updates, factor, epsilon) for updates, factor in chosen]
        updates, factors, epsilon_of = np.array(settings).T
        of_threshold, of_tests, of_measurements = scales(updates.astype(np.int64), epsilon_of)
        thresholds = np.maximum(1, np.rint(factors * of_tests)) + laplace(of_threshold, rng)
        runs = Runs(
            np.array(tables, dtype=float), streams, np.array(which), thresholds, updates.astype(np.int64)
        )
        near, squares = np.zeros(len(which)), np.zeros(len(which))
        for at in range(extent.queries):
            found, truth = runs.answer(at, laplace(of_tests, rng), laplace(of_measurements, rng))
            off = np.abs(found - truth) / runs.population
            near += off <= NEAR
            squares += off**2
        for of_cells, score in zip(
            total, (near / extent.queries, np.sqrt(squares / extent.queries)), strict=True
        ):
            of_cells += score.reshape(len(tried), len(kinds), pairs).mean(axis=1) / len(extent.cells)
    return total


@dataclass(frozen=True)
class Rule:
    """The number of updates as a power of population times epsilon, within bounds.

    The threshold is the larger of a multiple of the tests' noise scale and a fraction of the population.
    """

    name: str
    coefficient: float
    power: float
    factor: float
    floor: float

    def at(self, population: float, epsilon: float) -> tuple[int, float]:
        """Return the updates, and the threshold in scales of the tests' noise."""
        updates = max(4, min(60, round(self.coefficient * (population * epsilon) ** self.power)))
        noise = scales(np.array([updates]), np.array([epsilon]))[1][0]
        return updates, max(self.factor, self.floor * population / noise)

    def __str__(self) -> str:
        formula = f"{self.coefficient:.2f} * (population * epsilon)^{self.power:.2f}"
        threshold = (
            f"{self.factor:.2g} scales of the tests' noise, or {self.floor:.2%} of the population"
        )
        return f"updates = {formula}, from 4 to 60; threshold = {threshold} if that is more"


@dataclass(frozen=True)
class Current(Rule):
    """Return the current rule of `tuned`."""

    def at(self, population: float, epsilon: float) -> tuple[int, float]:
        now = tuned(population, epsilon)
        return now.updates, now.threshold / scales(np.array([now.updates]), np.array([epsilon]))[1][0]


def fit(near: Array, extent: Extent) -> Rule:
    """Return the rule of this form that scores best on the interpolated grid."""
    grids = near.reshape(len(PLACES), len(extent.updates), len(extent.factors))

    def rating(rule: Rule) -> float:
        total = 0.0
        for (population, epsilon), grid in zip(PLACES, grids, strict=True):
            updates, factor = rule.at(population, epsilon)
            along = [np.interp(math.log(factor), np.log(extent.factors), row) for row in grid]
            total += float(np.interp(math.log(updates), np.log(extent.updates), along))
        return total

    candidates = (
        Rule("fitted", coefficient, power, factor, floor)
        for power in np.arange(0.2, 0.61, 0.05)
        for coefficient in np.geomspace(0.1, 5, 25)
        for factor in (0.5, 1, 1.5, 2, 2.5, 3, 4)
        for floor in (0.0, 0.0025, 0.005)
    )
    return max(candidates, key=rating)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer tables, settings and queries")
    extent = QUICK if parser.parse_args().quick else WHOLE
    started = time.perf_counter()
    check()
    pairs = list(product(extent.updates, extent.factors))
    grid = measure(extent, dict.fromkeys(PLACES, pairs), number=0)[0]
    fitted = fit(grid, extent)
    rules = (fitted, Current("current", 0, 0, 0, 0))
    judged = measure(extent, {place: [rule.at(*place) for rule in rules] for place in PLACES}, number=1)
    heads = ("best of the grid", "fitted rule", "current rule")
    print("population  epsilon", *(f"{head:25}" for head in heads), sep=" | ")
    print(" " * 19, *["updates threshold    near"] * 3, sep=" | ")
    for (population, epsilon), of_pairs, of_rules in zip(PLACES, grid, judged[0], strict=True):
        chosen = [pairs[int(of_pairs.argmax())], *(rule.at(population, epsilon) for rule in rules)]
        scores = [of_pairs.max(), *of_rules]
        cells = [f"{u:7} {f:9.2f} {s:7.1%}" for (u, f), s in zip(chosen, scores, strict=True)]
        print(f"{population:10,} {epsilon:8g} | {' | '.join(cells)}")
    for at, rule in enumerate(rules):
        near, error = judged[:, :, at].mean(axis=1)
        print(f"{rule.name} rule, on new tables: {near:.1%} near, error {error:.2%} of the population")
    print(f"fitted: {fitted}")
    print(f"(thresholds in scales of the tests' noise; {time.perf_counter() - started:.0f} s)")


if __name__ == "__main__":
    main()
