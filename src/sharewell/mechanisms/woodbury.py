"""Reconstruction from the rows: their covariances with each other, grown by one row per paid query.

With the seed's covariance S, cached rows C and their noise V (Woodbury's identity):

    Var(q) = q'Sq - g'(V + CSC')^-1 g,   g = CSq.

S is a sum of Kronecker products, so g costs the attributes' sizes, and the triangular factor of
V + CSC' is extended, never computed anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.blas import dtpsv

from sharewell.cancellation import checked
from sharewell.mechanisms.kronecker import KroneckerSum, Runs, runs
from sharewell.mechanisms.measurements import MeasurementBatch, Measurements, Unsuitable
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]

#: What rounding may take from a number of which nothing is known but that it cannot be less.
ALMOST = 1 - 1e-6


class Woodbury:
    """Keeps a triangular factor over the rows; for a seed that determines everything, and few rows."""

    def __init__(self, measurements: Measurements) -> None:
        strategy = measurements.strategy
        if strategy.covariance is None:
            raise ValueError("the seed leaves something undetermined")
        self._seed_variance = 1 / measurements.seed_precision
        self._terms = Terms(strategy.covariance)
        self._seed_estimate = strategy.covariance.times(strategy.back(measurements.seed_values))
        self._seed_is_zero = not self._seed_estimate.any()  # as in every dry run
        self._factor = PackedFactor()
        self._residual = np.zeros(0)
        #: The row that was measured last, and what solving for it would give: it is asked for at once.
        self._last: tuple[str, Vector] = ("", np.zeros(0))

    def observe(self, batch: MeasurementBatch) -> None:
        """Extend the factor by one column per row."""
        for row, value, variance in zip(batch.rows, batch.values, batch.variances, strict=True):
            with_rows = self._with_rows(row)
            column = self._factor.solve(with_rows)
            own = self._seed_variance * _square(self._terms.covariance, row) + variance - column @ column
            if own < variance * ALMOST:  # Without rounding, it is at least the variance.
                raise Unsuitable("rows far more precise than the seed")
            corner = np.sqrt(own)
            miss = value - self._from_seed(row) - column @ self._residual
            self._factor.append(column, float(corner))
            self._residual = np.append(self._residual, miss / corner)
            self._terms.append(row)
            self._last = row.key, np.append(column, corner - variance / corner)

    def estimate(self, queries: Sequence[LinearQuery]) -> tuple[Vector, Vector]:
        """The queries' estimates and their variances, by one triangular solve each."""
        values, variances = np.empty(len(queries)), np.empty(len(queries))
        for at, query in enumerate(checked(queries)):
            column = self._column(query)
            values[at] = self._from_seed(query) + column @ self._residual
            variances[at] = (
                self._seed_variance * _square(self._terms.covariance, query) - column @ column
            )
        return values, variances

    def variances_after(self, queries: Sequence[LinearQuery], batch: MeasurementBatch) -> Vector:
        """The queries' variances if these rows were measured too: a solve over the new rows."""
        distinct = list({query.key: query for query in [*queries, *batch.rows]}.values())
        place = {query.key: at for at, query in enumerate(distinct)}
        bought = [place[row.key] for row in batch.rows]
        terms = Terms(self._terms.covariance)
        for row in batch.rows:
            terms.append(row)
        columns = np.array([self._column(query) for query in checked(distinct)])
        shared = self._seed_variance * np.array([terms.inner(query) for query in checked(distinct)])
        shared -= columns @ columns[bought].T
        inner = shared[bought]
        inner[np.diag_indices(len(bought))] += batch.variances
        factor = cholesky(inner, lower=True, overwrite_a=True)
        gained = (solve_triangular(factor, shared.T, lower=True, overwrite_b=True) ** 2).sum(axis=0)
        squares = np.array([_square(self._terms.covariance, query) for query in distinct])
        after = self._seed_variance * squares - (columns**2).sum(axis=1) - gained
        return np.asarray(after[[place[query.key] for query in queries]])

    def snapshot(self) -> Woodbury:
        """A copy to read: arrays only grow, and each copy reads up to its own count."""
        frozen = copy(self)
        frozen._terms, frozen._factor = self._terms.snapshot(), copy(self._factor)
        return frozen

    def work(self, queries: int, rows: int) -> tuple[float, float]:
        """A triangular solve per query, and a solve over the new rows."""
        known = float(self._factor.size)
        operations = queries * known**2 + rows * (known + rows) ** 2 + 200_000.0 * queries
        return operations, 8 * (queries * (known + 3 * rows) + rows**2)

    def _column(self, query: LinearQuery) -> Vector:
        """What a query has in common with the rows, solved for."""
        last, column = self._last
        return column if query.key == last else self._factor.solve(self._with_rows(query))

    def _from_seed(self, query: LinearQuery) -> float:
        return 0.0 if self._seed_is_zero else float(query.dot(self._seed_estimate))

    def _with_rows(self, query: LinearQuery) -> Vector:
        return self._seed_variance * self._terms.inner(query)


class Terms:
    """The products that rows consist of, stored so that their inner products with a query are fast.

    For every attribute and every factor M of the covariance it keeps the running sums of M w along
    the attribute, w being a product's weights there. A query's weights are a few runs of equal
    numbers, so M w . u is a few differences of running sums, for all rows at once.
    """

    def __init__(self, covariance: KroneckerSum) -> None:
        self.covariance = covariance
        self.count = 0
        self._rows = 0
        self._row_of = np.zeros(16, dtype=np.int64)
        self._scale = np.zeros(16)
        self._sums = [
            [np.zeros((size + 1, 16)) for _ in factors]
            for size, factors in zip(covariance.shape, covariance.factors, strict=True)
        ]

    def append(self, row: LinearQuery) -> None:
        """Store one more row."""
        for scale, vectors in row.products():
            self._reserve()
            self._row_of[self.count] = self._rows
            self._scale[self.count] = float(scale)
            for level, weights in enumerate(vectors):
                for factor, sums in zip(self.covariance.factors[level], self._sums[level], strict=True):
                    np.cumsum(factor.image(weights), out=sums[1:, self.count])
            self.count += 1
        self._rows += 1

    def snapshot(self) -> Terms:
        """A copy that does not see what is appended later."""
        frozen = copy(self)
        frozen._sums = [list(level) for level in self._sums]
        return frozen

    def _reserve(self) -> None:
        if self.count < len(self._scale):
            return
        self._row_of = np.concatenate([self._row_of, np.zeros_like(self._row_of)])
        self._scale = np.concatenate([self._scale, np.zeros_like(self._scale)])
        for level in self._sums:
            level[:] = [np.concatenate([sums, np.zeros_like(sums)], axis=1) for sums in level]

    def inner(self, query: LinearQuery) -> Vector:
        """Every stored row's inner product with a query, under the covariance."""
        total = np.zeros(self.count)
        for scale, along_runs in _along_runs(query):
            along = [
                [run[1] @ sums[run[0], : self.count] for sums in level]
                for level, run in zip(self._sums, along_runs, strict=True)
            ]
            for coefficient, chosen in self.covariance.terms:
                product = along[0][chosen[0]]
                for level in range(1, len(chosen)):
                    product = product * along[level][chosen[level]]
                total += scale * coefficient * product
        total *= self._scale[: self.count]
        if self._rows == self.count:
            return total
        by_row: Vector = np.bincount(self._row_of[: self.count], total, minlength=self._rows).astype(
            float
        )
        return by_row


# The same query is often weighed again: by a preview, by its answer, and in every dry run of a
# certificate. What depends on the query alone is computed once.


@lru_cache(maxsize=4096)
def _along_runs(query: LinearQuery) -> tuple[tuple[float, tuple[Runs, ...]], ...]:
    """A query's products, each as a factor and the runs of its weights along every attribute."""
    return tuple(
        (float(scale), tuple(runs(weights) for weights in vectors))
        for scale, vectors in query.products()
    )


@lru_cache(maxsize=4096)
def _square(covariance: KroneckerSum, query: LinearQuery) -> float:
    """A query's inner product with itself, under a covariance."""
    terms = list(query.products())
    images = [
        [[factor.image(w) for factor in covariance.factors[level]] for level, w in enumerate(vectors)]
        for _, vectors in terms
    ]
    total = 0.0
    for scale, vectors in terms:
        for (other, _), image in zip(terms, images, strict=True):
            for coefficient, chosen in covariance.terms:
                along = (float(w @ image[level][chosen[level]]) for level, w in enumerate(vectors))
                total += float(scale * other) * coefficient * math.prod(along)
    return total


class PackedFactor:
    """A triangular matrix that grows by a column, packed so that growing never moves it."""

    def __init__(self) -> None:
        self.size = 0
        self._packed = np.zeros(64)

    def append(self, column: Vector, corner: float) -> None:
        """Add a column above a new diagonal entry."""
        start = self.size * (self.size + 1) // 2
        while start + self.size + 1 > len(self._packed):
            self._packed = np.concatenate([self._packed, np.zeros_like(self._packed)])
        self._packed[start : start + self.size] = column
        self._packed[start + self.size] = corner
        self.size += 1

    def solve(self, right: Vector) -> Vector:
        """Solve U'u = right for the upper triangular matrix U that is stored."""
        if self.size == 0:
            return np.zeros(0)
        used = self._packed[: self.size * (self.size + 1) // 2]
        return np.asarray(dtpsv(self.size, used, right, trans=1))
