"""Queries as sparse matrices over the cells, and reconstruction from rows that overlap in few places."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from sharewell.cancellation import checked
from sharewell.mechanisms.measurements import MeasurementBatch, Measurements, Unsuitable
from sharewell.mechanisms.strategy import Strategy
from sharewell.query.diagram import Node
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]

#: The most products of two weights in one cell: beyond, rows overlap too much to be kept sparse.
MOST_PRODUCTS = 3e7
#: How many queries are solved for at a time.
CHUNK = 256


class Sparse:
    """Reconstruction from the rows under an identity seed, where disjoint rows have nothing in common.

    With the seed's variance s, rows C and their noise V, it solves with the sparse matrix V + s C C'.
    The largest batch of disjoint rows makes a diagonal block D of it, which is eliminated first:

        V + s C C' = [D  B; B' E],    what is left is E - B' D^-1 B.

    So a GROUP BY of thousands of groups costs little more than its cells.
    """

    def __init__(self, measurements: Measurements) -> None:
        strategy = measurements.strategy
        if not (isinstance(strategy, Strategy) and measurements.determined and strategy.is_identity):
            raise Unsuitable("a seed other than the identity")
        self._seed_variance = 1 / measurements.seed_precision
        self._seed_values = measurements.seed_values
        self._rows: list[tuple[MeasurementBatch, sp.csr_array]] = []
        #: How many rows weigh each cell, and the sum of the squares.
        self._load = np.zeros(strategy.domain.size)
        self._products = 0.0
        self._factor: SparseFactor | None = None

    def observe(self, batch: MeasurementBatch) -> None:
        """Add new rows."""
        matrix = sparse(batch.rows)
        cells, times = np.unique(matrix.indices, return_counts=True)
        self._products += float((times * (2 * self._load[cells] + times)).sum())
        self._load[cells] += times
        if self._products > MOST_PRODUCTS:
            raise Unsuitable("rows with too many common cells")
        self._rows.append((batch, matrix))
        self._factor = None

    def estimate(self, queries: Sequence[LinearQuery]) -> tuple[Vector, Vector]:
        """The queries' estimates and their variances."""
        if self._factor is None:
            self._factor = SparseFactor(self._rows, self._seed_values, self._seed_variance)
        asked = sparse(queries)
        values, less = self._factor.solve(asked)
        squares = self._seed_variance * np.asarray(asked.power(2).sum(axis=1)).ravel()
        return asked @ self._seed_values + values, squares - less

    def variances_after(self, queries: Sequence[LinearQuery], batch: MeasurementBatch) -> Vector:
        """The queries' variances if these rows were measured too: those of a copy that observes them."""
        trial = self.snapshot()
        trial.observe(batch)
        return trial.estimate(queries)[1]

    def snapshot(self) -> Sparse:
        """A copy to read, or to go on with."""
        new = copy(self)
        new._rows, new._load = list(self._rows), self._load.copy()
        return new

    def work(self, queries: int, rows: int) -> tuple[float, float]:
        """Products of common cells, and solves with the rows beside the largest batch."""
        sizes = [len(batch.rows) for batch, _ in self._rows] + [rows]
        beside = float(sum(sizes) - max(sizes) + 1)
        products = self._products + 2 * len(self._load) + rows
        operations = 50 * products + 20 * queries * beside + 20_000.0 * (queries + rows)
        return operations, 100 * products + 16 * CHUNK * beside


class SparseFactor:
    """Solves with the covariance matrix of all rows, in two blocks."""

    def __init__(
        self, rows: Sequence[tuple[MeasurementBatch, sp.csr_array]], seed: Vector, seed_variance: float
    ) -> None:
        sizes = [len(batch.rows) if _is_disjoint(matrix) else 0 for batch, matrix in rows]
        first = int(np.argmax(sizes)) if rows and max(sizes) else -1
        blocks = [rows[first : first + 1] if rows else [], [*rows[: max(first, 0)], *rows[first + 1 :]]]
        self._seed_variance = seed_variance
        (self._first, noise, self._misses), (self._rest, rest_noise, rest_misses) = (
            _stacked(block, seed) for block in blocks
        )
        self._diagonal = noise + seed_variance * np.asarray(self._first.power(2).sum(axis=1)).ravel()
        self._between = sp.csr_array(seed_variance * (self._first @ self._rest.T))
        self._scaled = sp.csr_array(sp.diags_array(1 / self._diagonal) @ self._between)
        left = seed_variance * (self._rest @ self._rest.T) + sp.diags_array(rest_noise)
        left = sp.csc_array(left - self._between.T @ self._scaled)
        self._rest_misses = rest_misses - self._scaled.T @ self._misses
        self._solve = splu(left, permc_spec="MMD_AT_PLUS_A").solve if len(rest_noise) else None

    def solve(self, asked: sp.csr_array) -> tuple[Vector, Vector]:
        """What the rows add to every query's value, and take from its variance."""
        own = sp.csr_array(self._seed_variance * (self._first @ asked.T))
        scaled = sp.csr_array(sp.diags_array(1 / self._diagonal) @ own)
        values = np.asarray(scaled.T @ self._misses)
        less = np.asarray(own.multiply(scaled).sum(axis=0), dtype=np.float64).ravel()
        if self._solve:
            rest = self._seed_variance * (self._rest @ asked.T) - self._scaled.T @ own
            rest = sp.csc_array(rest)
            for start in checked(range(0, asked.shape[0], CHUNK), 1):
                part = rest[:, start : start + CHUNK].toarray()
                solved = self._solve(part)
                values[start : start + CHUNK] += self._rest_misses @ solved
                less[start : start + CHUNK] += (part * solved).sum(axis=0)
        return values, less


def _is_disjoint(matrix: sp.csr_array) -> bool:
    return len(np.unique(matrix.indices)) == matrix.nnz


def _stacked(
    rows: Sequence[tuple[MeasurementBatch, sp.csr_array]], seed: Vector
) -> tuple[sp.csr_array, Vector, Vector]:
    """All rows as one matrix, their variances, and how far their values are from the seed's."""
    if not rows:
        return sp.csr_array((0, len(seed))), np.zeros(0), np.zeros(0)
    matrix = sp.vstack([part for _, part in rows], format="csr")
    values = np.concatenate([batch.values for batch, _ in rows])
    return matrix, np.concatenate([batch.variances for batch, _ in rows]), values - matrix @ seed


def sparse(queries: Sequence[LinearQuery]) -> sp.csr_array:
    """Queries as a sparse matrix; what they have in common in their diagrams is expanded once."""
    memo: dict[Node, tuple[NDArray[np.int64], Vector, int]] = {}
    parts = [_expand(query.root, memo) if query.root else None for query in checked(queries)]
    indptr = np.cumsum([0, *(len(part[0]) if part else 0 for part in parts)])
    cells = np.concatenate([np.zeros(0, dtype=np.int64), *(part[0] for part in parts if part)])
    scaled = [
        part[1] if query.scale == 1 else float(query.scale) * part[1]
        for query, part in zip(queries, parts, strict=True)
        if part
    ]
    weights = np.concatenate([np.zeros(0), *scaled])
    return sp.csr_array((weights, cells, indptr), shape=(len(queries), queries[0].domain.size))


def _expand(
    node: Node, memo: dict[Node, tuple[NDArray[np.int64], Vector, int]]
) -> tuple[NDArray[np.int64], Vector, int]:
    """The cells that a function weighs, their weights, and the number of cells that it is over."""
    if not node.children:
        return np.zeros(1, dtype=np.int64), np.ones(1), 1
    found = memo.get(node)
    if found is None:
        below = [_expand(child, memo) for child in node.children]
        size = below[0][2]
        starts, cells, values = [*node.starts.tolist(), node.size], [], []
        for at, (weight, which) in enumerate(
            zip(node.weights.tolist(), node.which.tolist(), strict=True)
        ):
            if weight:
                child_cells, child_values, _ = below[which]
                first = size * np.arange(starts[at], starts[at + 1])
                cells.append((first[:, None] + child_cells).ravel())
                values.append(np.tile(weight * child_values, len(first)))
        found = memo[node] = np.concatenate(cells), np.concatenate(values), size * node.size
    return found
