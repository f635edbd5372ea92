"""Naive oracles for the mechanisms: dense matrices, pseudo-inverses and plain Python.

Nothing here is fast, and nothing here shares a line with what it is held against.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from flint import fmpq, fmpq_mat

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


class ExactMeasured:
    """Rows that were measured, in fractions: for few cells, whatever the weights are."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self._information = fmpq_mat(cells, cells)
        self._weighted = fmpq_mat(cells, 1)
        self._eliminated: fmpq_mat | None = None

    def add(self, row: Sequence[int], value: float, variance: float) -> None:
        precision = 1 / _fraction(variance)
        column = fmpq_mat(self.cells, 1, list(row))
        self._information += precision * (column * column.transpose())
        self._weighted += precision * _fraction(value) * column
        self._eliminated = None

    def estimate(self, query: Sequence[int]) -> tuple[Fraction, Fraction] | None:
        """The best estimate and its variance; None where the rows do not determine the query."""
        if self._eliminated is None:
            self._eliminated = _eliminated(self._information)
        column = fmpq_mat(self.cells, 1, list(query))
        # A solution of information @ solution = query, if there is one.
        solution = self._eliminated * column
        if self._information * solution != column:
            return None
        value, variance = ((solution.transpose() * side)[0, 0] for side in (self._weighted, column))
        return Fraction(int(value.p), int(value.q)), Fraction(int(variance.p), int(variance.q))


def _fraction(number: float) -> fmpq:
    return fmpq(*float(number).as_integer_ratio())


def _eliminated(matrix: fmpq_mat) -> fmpq_mat:
    """A matrix that maps what this one reaches to a solution: 0 where there is a choice."""
    size = matrix.nrows()
    unit = [[fmpq(int(at == other)) for other in range(size)] for at in range(size)]
    beside = [[*row, *ones] for row, ones in zip(matrix.tolist(), unit, strict=True)]
    solutions = [[fmpq(0)] * size for _ in range(size)]
    for row in fmpq_mat(beside).rref()[0].tolist():
        pivot = next((at for at in range(size) if row[at] != 0), None)
        if pivot is not None:
            solutions[pivot] = row[size:]
    return fmpq_mat(solutions)
