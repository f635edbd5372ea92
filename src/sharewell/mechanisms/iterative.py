"""Reconstruction by iteration: conjugate gradients on operators that are never written out.

For many cells and many rows at once. The seed's covariance serves as the preconditioner where it
determines everything, so that only what the rows add is left to iterate on.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from sharewell.cancellation import checked
from sharewell.mechanisms.measurements import MeasurementBatch, Measurements
from sharewell.mechanisms.sparse import sparse
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]

#: The iteration stops when the residual is this part of the query.
TOLERANCE = 1e-11
MOST_STEPS = 5000
#: A residual above this part of the query means that the rows do not determine it.
SOLVED = 1e-6


class Iterative:
    """Solves for one query at a time."""

    def __init__(self, measurements: Measurements) -> None:
        self._strategy = measurements.strategy
        self._seed_precision = measurements.seed_precision
        self._size = measurements.strategy.domain.size
        self._weighted = np.zeros(self._size)
        if measurements.seed_weighted is not None:
            self._weighted += self._strategy.back(measurements.seed_weighted).ravel()
        self._rows: list[tuple[sp.csr_array, Vector]] = []

    def observe(self, batch: MeasurementBatch) -> None:
        """Keep the rows as a sparse matrix."""
        matrix = sparse(batch.rows)
        self._rows.append((matrix, 1 / batch.variances))
        self._weighted = self._weighted + matrix.T @ (batch.values / batch.variances)

    def estimate(self, queries: Sequence[LinearQuery]) -> tuple[Vector, Vector]:
        """The queries' estimates and their variances; infinite where no solution is found."""
        values, variances = np.empty(len(queries)), np.empty(len(queries))
        for at, query in enumerate(checked(queries, 1)):
            weights = query.to_vector().astype(np.float64)
            solution, found = self._solve(weights)
            values[at] = solution @ self._weighted
            variances[at] = float(solution @ weights) if found else np.inf
        return values, variances

    def snapshot(self) -> Iterative:
        """A copy to read."""
        frozen = copy(self)
        frozen._rows = list(self._rows)
        return frozen

    def work(self, queries: int, rows: int) -> tuple[float, float]:
        """A few hundred steps per query, each a pass over the cells."""
        return 1000.0 * queries * self._size, 16.0 * (rows + 20) * self._size

    def variances_after(self, queries: Sequence[LinearQuery], batch: MeasurementBatch) -> Vector:
        """The queries' variances if these rows were measured too: those of a copy that observes them."""
        trial = self.snapshot()
        trial.observe(batch)
        return trial.estimate(queries)[1]

    def _solve(self, weights: Vector) -> tuple[Vector, bool]:
        """The solution z of (sum of a a' / v) z = q, and whether there is one."""
        norm = float(np.linalg.norm(weights))
        if norm == 0:
            return weights, True
        self._stack()
        shape = (self._size, self._size)
        with np.errstate(all="ignore"):  # where there is no solution, the steps grow without bound
            solution, _ = cg(
                LinearOperator(shape, matvec=self._precision, dtype=np.float64),
                weights,
                rtol=TOLERANCE,
                maxiter=MOST_STEPS,
                M=LinearOperator(shape, matvec=self._seed_covariance, dtype=np.float64),
            )
            solution = np.nan_to_num(solution, posinf=0.0, neginf=0.0)
            residual = float(np.linalg.norm(self._precision(solution) - weights))
        return solution, residual <= SOLVED * norm

    def _stack(self) -> None:
        """Make one matrix of all rows: one product with many rows is far faster than many with few."""
        if len(self._rows) > 1:
            matrices, precisions = zip(*self._rows, strict=True)
            self._rows = [(sp.vstack(matrices, format="csr"), np.concatenate(precisions))]

    def _precision(self, vector: Vector) -> Vector:
        vector = vector.ravel()
        total = np.zeros(self._size)
        if self._seed_precision:
            total += self._seed_precision * self._strategy.back(self._strategy.answers(vector)).ravel()
        for matrix, precisions in self._rows:
            total += matrix.T @ (precisions * (matrix @ vector))
        return total

    def _seed_covariance(self, vector: Vector) -> Vector:
        if self._strategy.covariance is None or not self._seed_precision:
            return vector
        tensor = vector.reshape(self._strategy.domain.shape)
        return self._strategy.covariance.times(tensor).ravel() / self._seed_precision
