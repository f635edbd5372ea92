"""Reconstruction in the cells: a dense covariance, kept up to date row by row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dger

from sharewell.mechanism.evidence import Batch, Evidence
from sharewell.mechanism.strategy import Strategy
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]

#: A row or a query with less than this part of it among the undetermined directions has none there.
NEGLIGIBLE = 1e-7
#: Up to this many cells a query's weights are kept, written out.
FEW = 256


class ByCells:
    """Keeps every cell's estimate and the covariance of them all; for few cells and any rows.

    Where the seed leaves something undetermined, it also keeps an orthonormal basis of the directions
    that nothing has said anything about yet. A row that has a part among them determines one more. So
    nothing is ever inverted that precise and weak rows together would make ill-conditioned. A direction
    of which the first row says next to nothing passes through a very large variance, and rounding is
    relative to that: of what is known in the end, a few millionths of a standard error may be wrong.
    """

    def __init__(self, evidence: Evidence) -> None:
        strategy = evidence.strategy
        size = strategy.domain.size
        self._covariance: Vector = np.zeros((size, size))
        self._estimate: Vector = np.zeros(size)
        self._undetermined: Vector = np.eye(size)
        if evidence.seed_weighted is not None:
            inverse, self._undetermined = _inverse(strategy)
            self._covariance = inverse / evidence.seed_precision
            self._estimate = self._covariance @ strategy.back(evidence.seed_weighted).ravel()
        for batch in evidence.batches:
            self.observe(batch)

    def observe(self, batch: Batch) -> None:
        """Take in new rows: all at once where everything is determined already."""
        if not self._undetermined.shape[1] and len(batch.rows) == 1:
            self._update_by_one(_weights(batch.rows[0]), batch.values.item(), batch.variances.item())
            return
        matrix, values, variances = _matrix(batch.rows), batch.values, batch.variances
        if not self._undetermined.shape[1]:
            self._update(matrix, values, variances)
            return
        for row, value, variance in zip(matrix, values, variances, strict=True):
            open_part = row @ self._undetermined
            if np.linalg.norm(open_part) <= NEGLIGIBLE * np.linalg.norm(row):
                self._update_by_one(row, float(value), float(variance))
            else:
                self._determine(row, value, variance, open_part)

    def _update(self, matrix: Vector, values: Vector, variances: Vector) -> None:
        """A low-rank update, in the form that stays positive however precise the rows are."""
        spread = self._covariance @ matrix.T
        inner = matrix @ spread + np.diag(variances)
        gain = np.linalg.solve(inner, spread.T).T
        self._estimate += gain @ (values - matrix @ self._estimate)
        self._covariance -= gain @ spread.T
        self._covariance -= (self._covariance @ matrix.T - gain * variances) @ gain.T

    def _update_by_one(self, row: Vector, value: float, variance: float) -> None:
        """The same for one row, which is the usual case, in place.

        For one row, what `_update` corrects in the end is no larger than what it adds by rounding.
        """
        # BLAS keeps matrices by columns, so it is given the transpose, with the two factors exchanged.
        # Of a matrix that is kept in another way it would make a copy, and change that.
        self._covariance = np.ascontiguousarray(self._covariance)
        in_place = {"a": self._covariance.T, "overwrite_a": True}
        spread = self._covariance @ row
        gain = spread / (row @ spread + variance)
        self._estimate += gain * (value - row @ self._estimate)
        dger(-1.0, spread, gain, **in_place)

    def _determine(self, row: Vector, value: float, variance: float, open_part: Vector) -> None:
        """Take in a row that says something about a direction of which nothing was known.

        With d the row's part there, scaled so that row'd = 1, whatever was determined stays as it is,
        and d gets what the row adds: x + d (value - row'x), and the noise of that.
        """
        direction = self._undetermined @ open_part / (open_part @ open_part)
        self._estimate += direction * (value - row @ self._estimate)
        moved = self._covariance - np.outer(direction, row @ self._covariance)
        moved -= np.outer(moved @ row, direction)
        self._covariance = moved + variance * np.outer(direction, direction)
        # A reflection turns the part into the first axis, which is then dropped.
        mirror = open_part.copy()
        mirror[0] += np.copysign(np.linalg.norm(open_part), open_part[0])
        mirror /= np.linalg.norm(mirror)
        turned = self._undetermined - 2 * np.outer(self._undetermined @ mirror, mirror)
        self._undetermined = turned[:, 1:]

    def estimate(self, queries: Sequence[LinearQuery]) -> tuple[Vector, Vector]:
        """The queries' estimates and their variances."""
        if not self._undetermined.shape[1] and len(queries) == 1:
            row = _weights(queries[0])
            return np.array([row @ self._estimate]), np.array([max(row @ self._covariance @ row, 0.0)])
        matrix = _matrix(queries)
        variances = np.maximum(((matrix @ self._covariance) * matrix).sum(axis=1), 0.0)
        if self._undetermined.shape[1]:
            outside = np.linalg.norm(matrix @ self._undetermined, axis=1)
            variances[outside > NEGLIGIBLE * np.linalg.norm(matrix, axis=1)] = np.inf
        return matrix @ self._estimate, variances

    def covariance(self, queries: Sequence[LinearQuery]) -> Vector:
        """The covariance matrix of the queries' estimates; infinite diagonal where undetermined."""
        matrix = _matrix(queries)
        covariance = matrix @ self._covariance @ matrix.T
        np.fill_diagonal(covariance, self.estimate(queries)[1])
        return covariance


def _matrix(rows: Sequence[LinearQuery]) -> Vector:
    return np.array([_weights(row) for row in rows], dtype=np.float64)


def _weights(row: LinearQuery) -> Vector:
    if row.domain.size <= FEW:
        return _vector(row)
    return np.asarray(row.to_vector(), dtype=np.float64)


@lru_cache(maxsize=4096)
def _vector(row: LinearQuery) -> Vector:
    """A query's weights over few cells: wanted again by its preview, its answer and every rehearsal."""
    return np.asarray(row.to_vector(), dtype=np.float64)


def _inverse(strategy: Strategy) -> tuple[Vector, Vector]:
    """The pseudo-inverse of the strategy's Gram matrix, and a basis of what the rows leave open."""
    size = strategy.domain.size
    if strategy.covariance is not None:
        unit = np.eye(size).reshape(*strategy.domain.shape, -1)
        return strategy.covariance.times(unit).reshape(size, size), np.zeros((size, 0))
    values, vectors = np.linalg.eigh(_gram(strategy))
    known = values > 1e-10 * values[-1]
    scaled = vectors[:, known] / np.sqrt(values[known])
    return scaled @ scaled.T, vectors[:, ~known]


def _gram(strategy: Strategy) -> Vector:
    """The transpose of the strategy's rows times the rows, written out."""
    gram: Vector = np.zeros((strategy.domain.size, strategy.domain.size))
    for part in strategy.parts:
        product = part[0].gram
        for rows in part[1:]:
            product = np.asarray(np.kron(product, rows.gram), dtype=np.float64)
        gram += product
    return gram
