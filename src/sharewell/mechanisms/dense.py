"""Reconstruction in the cells: a dense covariance, kept up to date row by row."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dger

from sharewell.cancellation import checked
from sharewell.mechanisms.measurements import MeasurementBatch, Measurements
from sharewell.mechanisms.strategy import Strategy
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]


class Dense:
    """Keeps every cell's estimate and the covariance of them all.

    For few cells and any rows, once everything is determined: then no variance on the way exceeds those
    at the start, and rounding is relative to that.
    """

    def __init__(self, estimate: Vector, covariance: Vector) -> None:
        self._estimate = estimate
        self._covariance = covariance
        #: Whether a snapshot uses the same arrays.
        self._shared = False

    @classmethod
    def of(cls, measurements: Measurements) -> Dense:
        """The solver that has seen the seed."""
        strategy = measurements.strategy
        if measurements.products:
            return cls(*measurements.prior_of_products().cells())
        if (
            not isinstance(strategy, Strategy)
            or strategy.covariance is None
            or measurements.seed_weighted is None
        ):
            raise ValueError("the seed leaves something undetermined")
        size = strategy.domain.size
        unit = np.eye(size).reshape(*strategy.domain.shape, -1)
        inverse = strategy.covariance.times(unit).reshape(size, size)
        covariance = inverse / measurements.seed_precision
        return cls(covariance @ strategy.back(measurements.seed_weighted).ravel(), covariance)

    def observe(self, batch: MeasurementBatch) -> None:
        """Add new rows, all at once."""
        if self._shared:
            self._covariance, self._estimate = self._covariance.copy(), self._estimate.copy()
            self._shared = False
        if len(batch.rows) == 1:
            self._update_by_one(_weights(batch.rows[0]), batch.values.item(), batch.variances.item())
        else:
            self._update(_matrix(batch.rows), batch.values, batch.variances)

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

    def estimate(self, queries: Sequence[LinearQuery]) -> tuple[Vector, Vector]:
        """The queries' estimates and their variances."""
        if len(queries) == 1:
            row = _weights(queries[0])
            return np.array([row @ self._estimate]), np.array([row @ self._covariance @ row])
        matrix = _matrix(queries)
        return matrix @ self._estimate, ((matrix @ self._covariance) * matrix).sum(axis=1)

    def variances_after(self, queries: Sequence[LinearQuery], batch: MeasurementBatch) -> Vector:
        """The queries' variances if these rows were measured too: those of a copy that observes them."""
        trial = copy(self)
        trial._shared = True
        trial.observe(batch)
        return trial.estimate(queries)[1]

    def snapshot(self) -> Dense:
        """A copy to read; the arrays are copied when this one next changes."""
        self._shared = True
        return copy(self)

    def work(self, queries: int, rows: int) -> tuple[float, float]:
        """Products with the covariance, or with a copy of it, and a solve over the rows."""
        cells = float(len(self._estimate))
        copied = cells**2 if rows else 0.0
        return (queries + 4 * rows) * cells**2 + rows**3, 8 * (copied + 2 * (queries + 2 * rows) * cells)


def _matrix(rows: Sequence[LinearQuery]) -> Vector:
    return np.array([_weights(row) for row in checked(rows)], dtype=np.float64)


@lru_cache(maxsize=1024)
def _weights(row: LinearQuery) -> Vector:
    """A query's weights: used by its preview, its answer and every dry run."""
    return np.asarray(row.to_vector(), dtype=np.float64)
