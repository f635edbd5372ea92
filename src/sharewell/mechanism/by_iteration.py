"""Reconstruction by iteration: conjugate gradients on operators that are never written out.

For many cells and many rows at once. The seed's covariance serves as the preconditioner where it
determines everything, so that only what the rows add is left to iterate on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from sharewell.mechanism.evidence import Batch, Evidence
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]

#: The iteration stops when the residual is this part of the query.
TOLERANCE = 1e-11
MOST_STEPS = 5000
#: A residual above this part of the query means that the rows do not determine it.
SOLVED = 1e-6


class ByIteration:
    """Solves for one query at a time."""

    def __init__(self, evidence: Evidence) -> None:
        self._strategy = evidence.strategy
        self._seed_precision = evidence.seed_precision
        self._size = evidence.strategy.domain.size
        self._weighted = np.zeros(self._size)
        if evidence.seed_weighted is not None:
            self._weighted += self._strategy.back(evidence.seed_weighted).ravel()
        self._rows: list[tuple[sp.csr_array, Vector]] = []
        for batch in evidence.batches:
            self.observe(batch)

    def observe(self, batch: Batch) -> None:
        """Keep the rows as a sparse matrix."""
        matrix = sparse(batch.rows)
        self._rows.append((matrix, 1 / batch.variances))
        self._weighted += matrix.T @ (batch.values / batch.variances)

    def estimate(self, queries: Sequence[LinearQuery]) -> tuple[Vector, Vector]:
        """The queries' estimates and their variances; infinite where no solution is found."""
        values, variances = np.empty(len(queries)), np.empty(len(queries))
        for at, query in enumerate(queries):
            weights = query.to_vector().astype(np.float64)
            solution, found = self._solve(weights)
            values[at] = solution @ self._weighted
            variances[at] = max(float(solution @ weights), 0.0) if found else np.inf
        return values, variances

    def covariance(self, queries: Sequence[LinearQuery]) -> Vector:
        """The covariance matrix of the queries' estimates; infinite diagonal where undetermined."""
        dense = [query.to_vector().astype(np.float64) for query in queries]
        solved = [self._solve(weights) for weights in dense]
        covariance = np.array([[float(solution @ other) for other in dense] for solution, _ in solved])
        for at, (_, found) in enumerate(solved):
            covariance[at, at] = covariance[at, at] if found else np.inf
        return covariance

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


def sparse(rows: Sequence[LinearQuery]) -> sp.csr_array:
    """Queries as a sparse matrix, without writing out the cells that they do not weigh."""
    parts = [row.nonzero() for row in rows]
    indptr = np.cumsum([0, *(len(cells) for cells, _ in parts)])
    cells = np.concatenate([cells for cells, _ in parts])
    weights = np.concatenate([weights for _, weights in parts])
    return sp.csr_array((weights, cells, indptr), shape=(len(rows), rows[0].domain.size))
