"""Reconstruction in the cells: a dense covariance, kept up to date row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sharewell.mechanism.evidence import Batch, Evidence
from sharewell.mechanism.kronecker import KroneckerSum
from sharewell.mechanism.strategy import Strategy
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]

#: Directions with less than this part of the largest precision count as never measured.
NEGLIGIBLE = 1e-10


class ByCells:
    """Keeps every cell's estimate and the covariance of them all; for few cells and any rows.

    Where the rows so far leave something undetermined, it keeps their precision instead, and asks
    which queries they determine.
    """

    def __init__(self, evidence: Evidence) -> None:
        strategy = evidence.strategy
        size = strategy.domain.size
        self._weighted = np.zeros(size)
        self._precision = np.zeros((size, size))
        if evidence.seed_weighted is not None:
            self._weighted += strategy.back(evidence.seed_weighted).ravel()
            self._precision += evidence.seed_precision * _gram(strategy)
        if evidence.seed_weighted is not None and strategy.covariance is not None:
            # The seed's own inverse is exact even where the seed is weak beside the rows.
            self._undetermined: Vector | None = None
            self._covariance = _written_out(strategy.covariance) / evidence.seed_precision
            self._estimate = self._covariance @ self._weighted
        else:
            self._invert()
        for batch in evidence.batches:
            self.observe(batch)

    def _invert(self) -> None:
        """The pseudo-inverse of the precision, and the directions that it says nothing about."""
        values, vectors = np.linalg.eigh(self._precision)
        known = values > NEGLIGIBLE * max(values[-1], 0.0)
        self._undetermined = None if known.all() else vectors[:, ~known]
        scaled = vectors[:, known] / np.sqrt(values[known])
        self._covariance = scaled @ scaled.T
        self._estimate = self._covariance @ self._weighted

    def observe(self, batch: Batch) -> None:
        """Take in new rows: a low-rank update where everything is determined already."""
        matrix, values, variances = _matrix(batch.rows), batch.values, batch.variances
        if self._undetermined is not None:
            self._precision += (matrix.T / variances) @ matrix
            self._weighted += matrix.T @ (values / variances)
            self._invert()
            return
        spread = self._covariance @ matrix.T
        inner = matrix @ spread + np.diag(variances)
        gain = np.linalg.solve(inner, spread.T).T
        self._estimate += gain @ (values - matrix @ self._estimate)
        self._covariance -= gain @ spread.T

    def estimate(self, queries: Sequence[LinearQuery]) -> tuple[Vector, Vector]:
        """The queries' estimates and their variances."""
        matrix = _matrix(queries)
        variances = np.maximum(((matrix @ self._covariance) * matrix).sum(axis=1), 0.0)
        if self._undetermined is not None:
            outside = np.linalg.norm(matrix @ self._undetermined, axis=1)
            variances[outside > 1e-6 * np.linalg.norm(matrix, axis=1)] = np.inf
        return matrix @ self._estimate, variances

    def covariance(self, queries: Sequence[LinearQuery]) -> Vector:
        """The covariance matrix of the queries' estimates; infinite diagonal where undetermined."""
        matrix = _matrix(queries)
        covariance = matrix @ self._covariance @ matrix.T
        np.fill_diagonal(covariance, self.estimate(queries)[1])
        return covariance


def _matrix(rows: Sequence[LinearQuery]) -> Vector:
    return np.array([row.to_vector() for row in rows], dtype=np.float64)


def _gram(strategy: Strategy) -> Vector:
    """The transpose of the strategy's rows times the rows, written out."""
    gram: Vector = np.zeros((strategy.domain.size, strategy.domain.size))
    for part in strategy.parts:
        product = part[0].gram
        for rows in part[1:]:
            product = np.asarray(np.kron(product, rows.gram), dtype=np.float64)
        gram += product
    return gram


def _written_out(covariance: KroneckerSum) -> Vector:
    size = np.prod(covariance.shape)
    return covariance.times(np.eye(int(size)).reshape(*covariance.shape, -1)).reshape(size, size)
