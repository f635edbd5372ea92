"""Naive oracles for the mechanisms: dense matrices, pseudo-inverses and plain Python.

Nothing here is fast, and nothing here shares a line with what it is held against.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sharewell import LinearQuery
from sharewell.mechanisms.strategy import Strategy

#: A query is determined when this part of it, at the most, lies outside what was measured.
OUTSIDE = 1e-7


def dense(queries: Sequence[LinearQuery]) -> np.ndarray:
    """Queries as the rows of a matrix."""
    return np.array([query.to_vector() for query in queries], dtype=float)


def matrix_of(strategy: Strategy) -> np.ndarray:
    """Every row of a strategy, written out."""
    stacked = []
    for part in strategy.parts:
        product = np.ones((1, 1), dtype=np.int64)
        for rows in part:
            one = np.eye(rows.size, dtype=np.int64) if rows.matrix is None else rows.matrix.toarray()
            product = np.kron(product, one)
        stacked.append(product)
    return np.vstack(stacked)


@dataclass
class Measured:
    """Rows that were measured, one by one: the seed's rows as often as it was measured."""

    rows: list[np.ndarray] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    variances: list[float] = field(default_factory=list)

    def add(self, rows: np.ndarray, values: Sequence[float], variances: Sequence[float]) -> None:
        self.rows += list(rows)
        self.values += list(values)
        self.variances += list(variances)

    def estimate(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The queries' best linear unbiased estimates and variances, by the pseudo-inverse.

        The variance is infinite where the rows do not determine the query.
        """
        values, covariance = self._solve(queries)
        return values, np.diag(covariance).copy()

    def covariance(self, queries: np.ndarray) -> np.ndarray:
        """The covariance of the estimates, with an infinite diagonal where nothing determines them."""
        return self._solve(queries)[1]

    def _solve(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self.rows:
            return np.zeros(len(queries)), np.diag(np.full(len(queries), np.inf))
        spread = np.sqrt(np.array(self.variances))
        weighted = np.array(self.rows, dtype=float) / spread[:, None]
        through = queries @ np.linalg.pinv(weighted, rcond=1e-11)
        covariance = through @ through.T
        # Which directions were measured does not depend on how well.
        plain = np.array(self.rows, dtype=float)
        outside = np.linalg.norm(queries - queries @ np.linalg.pinv(plain, rcond=1e-11) @ plain, axis=1)
        undetermined = outside > OUTSIDE * np.linalg.norm(queries, axis=1)
        covariance[undetermined, undetermined] = np.inf
        return through @ (np.array(self.values) / spread), covariance


# The noise that a cost buys


def noise_variance(currency: str, sensitivity: float, cost: Fraction) -> float:
    """The exact variance of discrete noise; the sensitivity is squared under zcdp."""
    if currency == "pure":
        decay = math.exp(-float(cost) / sensitivity)
        return 2 * decay / (1 - decay) ** 2
    variance = sensitivity / (2 * float(cost))
    if variance > 100:
        return variance
    k = np.arange(-600, 601)
    mass = np.exp(-(k**2) / (2 * variance))
    return float((k**2 * mass).sum() / mass.sum())


def row_variance(row: np.ndarray, currency: str, neighbours: str, cost: Fraction) -> float:
    """The variance of one query that is measured for a cost, alone or among others without its cells.

    Replacing a row of the table may take it out of one query and put it into another.
    """
    if neighbours == "add-remove":
        unit, times = int(np.abs(row).max()), 1
    else:
        unit, times = int(max(row.max(), 0) - min(row.min(), 0)), 2
    return noise_variance(currency, times * (unit if currency == "pure" else unit**2), cost)


def seed_variance(seed: np.ndarray, currency: str, neighbours: str, cost: Fraction) -> float:
    """The variance of every seed row: from the largest column, or a bound on two of them."""
    if currency == "pure":
        times = 1 if neighbours == "add-remove" else 2
        return noise_variance(currency, times * np.abs(seed).sum(axis=0).max(), cost)
    times = 1 if neighbours == "add-remove" else 2 if seed.min() >= 0 else 4
    return noise_variance(currency, times * (seed**2).sum(axis=0).max(), cost)


# Seeded Cache and Reconstruct, as variances alone


@dataclass(frozen=True)
class Ask:
    """A question: rows of whole numbers that share no cell, and whether one would pay.

    A statement of two blocks is two questions: `then` are the rows of the second.
    """

    analyst: str
    rows: tuple[tuple[int, ...], ...]
    pay: bool = True
    then: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Join:
    """An analyst comes later, with a share."""

    analyst: str
    share: Fraction


@dataclass(frozen=True)
class Leave:
    """An analyst goes, and may leave what is left of their share to the others."""

    analyst: str
    donate: bool


@dataclass(frozen=True)
class Close:
    """A round is closed: what those who are done have left buys one measurement of the seed."""

    done: tuple[str, ...]


Event = Ask | Join | Leave | Close


@dataclass(frozen=True)
class Setting:
    """What a collective has agreed on."""

    seed: np.ndarray
    shares: Mapping[str, Fraction]
    seed_fraction: Fraction
    query_budget: Fraction
    currency: str = "pure"
    neighbours: str = "add-remove"
    buy_seed_rows: bool = False
    signed_rows: bool = False
    #: Rows and variances that a donation buys, by donor, where they are not the seed's with equal noise.
    sown: Callable[[Mapping[str, Fraction]], tuple[np.ndarray, np.ndarray]] | None = None


@dataclass
class Outcome:
    """The variances of the answers to every event's rows (empty rows left out), and what is left."""

    variances: dict[int, list[float]]
    left: dict[str, Fraction]


def simulate(setting: Setting, events: Sequence[Event], present: Collection[str]) -> Outcome:
    """Play a stream with some of the analysts only, and give the variance of every answer."""
    known = Measured()
    cache: set[tuple[int, ...]] = set()
    left: dict[str, Fraction] = {}
    gone: set[str] = set()

    def sow(bill: Mapping[str, Fraction]) -> None:
        cost = sum(bill.values(), Fraction(0))
        if cost > 0 and setting.sown is not None:
            rows, variances = setting.sown({name: part for name, part in bill.items() if part})
            known.add(rows, [0] * len(rows), variances.tolist())
        elif cost > 0:
            noise = seed_variance(setting.seed, setting.currency, setting.neighbours, cost)
            known.add(setting.seed, [0] * len(setting.seed), [noise] * len(setting.seed))

    def enter(shares: Mapping[str, Fraction]) -> None:
        sow({name: share * setting.seed_fraction for name, share in shares.items()})
        left.update({name: share * (1 - setting.seed_fraction) for name, share in shares.items()})

    enter({name: share for name, share in setting.shares.items() if name in present})
    if setting.seed_fraction > 0 and not setting.buy_seed_rows:
        cache.update(tuple(row) for row in setting.seed.tolist())
    variances: dict[int, list[float]] = {}
    for at, event in enumerate(events):
        if isinstance(event, Close):
            done = [name for name in event.done if name in left and name not in gone]
            sow({name: left[name] for name in done})
            left.update(dict.fromkeys(done, Fraction(0)))
            continue
        if event.analyst not in present or event.analyst in gone:
            continue
        if isinstance(event, Join):
            enter({event.analyst: event.share})
        elif isinstance(event, Leave):
            sow({event.analyst: left[event.analyst]} if event.donate else {})
            left[event.analyst] = Fraction(0)
            gone.add(event.analyst)
        elif event.analyst in left:
            variances[at] = []
            for block in (event.rows, event.then):
                rows = [np.array(row) for row in block if any(row)]
                if not rows:
                    continue
                small = [_without_factor(row) for row in rows]
                if setting.signed_rows and len(small) == 1 and small[0].min() >= 0:
                    small = [_without_factor(2 * small[0] - small[0].max())]
                fresh = [row for row in small if tuple(row.tolist()) not in cache]
                if event.pay and fresh and left[event.analyst] >= setting.query_budget:
                    left[event.analyst] -= setting.query_budget
                    for row in fresh:
                        cost = (setting.currency, setting.neighbours, setting.query_budget)
                        known.add(row[None, :], [0], [row_variance(row, *cost)])
                        cache.add(tuple(row.tolist()))
                variances[at] += known.estimate(np.array(rows, dtype=float))[1].tolist()
    return Outcome(variances, left)


def _without_factor(row: np.ndarray) -> np.ndarray:
    """The smallest whole numbers in proportion to these, the first of them positive."""
    first = row[np.flatnonzero(row)[0]]
    return row // (int(np.gcd.reduce(row)) * (1 if first > 0 else -1))


# A synthetic table


class DenseTable:
    """A synthetic table as its definition says: every cell written out, rescaled at every step."""

    def __init__(self, weights: np.ndarray, population: float) -> None:
        self.population = population
        self.logs = np.log(np.asarray(weights, dtype=float))

    @property
    def counts(self) -> np.ndarray:
        weights = np.exp(self.logs - self.logs.max())
        return self.population * weights / weights.sum()

    def answer(self, query: np.ndarray) -> float:
        return float(query @ self.counts)

    def bend(self, query: np.ndarray, step: float) -> None:
        self.logs = self.logs + step * query


# Exact rationals


@dataclass
class ExactMeasured:
    """Rows that were measured, in fractions: for few cells, whatever the weights are."""

    cells: int
    information: list[list[Fraction]] = field(init=False)
    weighted: list[Fraction] = field(init=False)
    _eliminated: tuple[list[list[Fraction]], list[int]] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.information = [[Fraction(0)] * self.cells for _ in range(self.cells)]
        self.weighted = [Fraction(0)] * self.cells

    def add(self, row: Sequence[int], value: float, variance: float) -> None:
        precision = 1 / Fraction(variance)
        for i, weight in enumerate(row):
            self.weighted[i] += precision * weight * Fraction(value)
            for j, other in enumerate(row):
                self.information[i][j] += precision * weight * other
        self._eliminated = None

    def estimate(self, query: Sequence[int]) -> tuple[Fraction, Fraction] | None:
        """The best estimate and its variance; None where the rows do not determine the query."""
        if self._eliminated is None:
            self._eliminated = _eliminate(self.information)
        transform, pivots = self._eliminated
        right = [_dot(row, query) for row in transform]
        if any(right[len(pivots) :]):
            return None
        # A solution of information @ solution = query, 0 where there is a choice.
        value = sum((z * self.weighted[at] for z, at in zip(right, pivots, strict=False)), Fraction(0))
        return value, sum((z * query[at] for z, at in zip(right, pivots, strict=False)), Fraction(0))


def _dot(left: Sequence[Fraction], right: Sequence[int]) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True) if b), Fraction(0))


def _eliminate(matrix: Sequence[Sequence[Fraction]]) -> tuple[list[list[Fraction]], list[int]]:
    """A matrix whose product with this one is in reduced echelon form, and the pivots of that."""
    size, pivots = len(matrix), list[int]()
    rows = [[*row, *[Fraction(i == at) for i in range(size)]] for at, row in enumerate(matrix)]
    for column in range(size):
        at = next((r for r in range(len(pivots), size) if rows[r][column]), None)
        if at is None:
            continue
        top = len(pivots)
        rows[top], rows[at] = rows[at], rows[top]
        rows[top] = [entry / rows[top][column] if entry else entry for entry in rows[top]]
        for r in range(size):
            if r != top and rows[r][column]:
                factor = rows[r][column]
                rows[r] = [a - factor * b if b else a for a, b in zip(rows[r], rows[top], strict=True)]
        pivots.append(column)
    return [row[size:] for row in rows], pivots
