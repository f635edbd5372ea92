"""Reconstruction in square-root form: for seeds that leave something open, and whatever the weights are.

The unknowns are the answers of an independent set of measured rows, each in units of its noise. Every
other row is a combination of these, with exact coefficients T (see `row_basis`); the set is chosen so
that none of them exceeds 64. So the least-squares problem

    u = y + noise of variance 1,    T u = z + noise of variance 1

is well-conditioned even where the cells' own problem is not (Peters and Wilkinson 1970), and a variance
is a sum of squares: it is never negative, and nothing large cancels in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from sharewell.cancellation import checked
from sharewell.mechanisms.dense import Dense
from sharewell.mechanisms.measurements import MeasurementBatch, Measurements
from sharewell.mechanisms.row_basis import Combination, RowBasis
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]

#: The largest coefficient of a row in the basis, in units of noise. Each exchange multiplies the
#: determinant of the basis by more than this, so that exchanges end.
LARGEST = 64
#: From this many units of noise on, the error of a determined query is as good as infinite.
HOPELESS = 1e120
#: Cells whose variances are this many times the rows' at the most can be kept as a dense covariance.
WELL_KNOWN = 1e6
#: Up to this many cells it pays to change to a dense covariance once it is possible.
FEW_CELLS = 512
#: How many elementary operations a product of whole numbers takes.
STEP = 150
#: How many queries are solved for at a time.
CHUNK = 512


class SquareRoot:
    """Keeps an independent set of rows, and the others as exact combinations of it."""

    def __init__(self, measurements: Measurements) -> None:
        strategy = measurements.strategy
        self._domain = strategy.domain
        self._basis = RowBasis(strategy.domain.size)
        self._values: list[float] = []
        #: The standard deviation of every row's noise.
        self._scales: list[float] = []
        #: The rows outside the independent set, by their number.
        self._dependent: dict[int, Combination] = {}
        self._least_squares: LeastSquares | None = None
        #: The smallest variance of a row, in units of its largest weight.
        self._least_variance = float("inf")
        #: The number of rows from which on a dense solver is tried again.
        self._next_attempt = 0
        #: Whether a snapshot uses the same state.
        self._shared = False
        if measurements.seed_weighted is not None:
            scale = measurements.seed_precision**-0.5
            rows = strategy.matrix
            for at, value in enumerate(measurements.seed_values.tolist()):
                self._append(rows[[at]].toarray().ravel(), value, scale)

    def observe(self, batch: MeasurementBatch) -> None:
        """Add new rows, one by one."""
        if self._shared:
            self._basis = self._basis.copy()
            self._values, self._scales = list(self._values), list(self._scales)
            self._dependent = dict(self._dependent)
            self._shared = False
        self._least_squares = None
        for row, value, variance in zip(batch.rows, batch.values, batch.variances, strict=True):
            self._append(row.to_vector(), float(value), float(variance) ** 0.5)

    def estimate(self, queries: Sequence[LinearQuery]) -> tuple[Vector, Vector]:
        """The queries' estimates and their variances; infinite where nothing determines them."""
        values, variances = np.zeros(len(queries)), np.full(len(queries), np.inf)
        for start in checked(range(0, len(queries), CHUNK), 1):
            chunk = queries[start : start + CHUNK]
            found = [self._basis.coefficients(query.primitive.to_vector()) for query in chunk]
            known = [at for at, combination in enumerate(found) if combination]
            scales = np.array([float(chunk[at].scale) for at in known])
            weights, hopeless = self._factor().weights([each for each in found if each])
            places = start + np.array(known, dtype=np.int64)
            values[places] = scales * (weights.T @ self._factor().values)
            variances[places] = np.where(hopeless, np.inf, scales**2 * (weights**2).sum(axis=0))
        return values, variances

    def to_dense(self) -> Dense | None:
        """A dense solver to go on with, once the rows determine every cell, and none by next to nothing.

        From then on it is much faster. It is tried again whenever the rows have doubled.
        """
        rows, cells = len(self._values), self._domain.size
        if rows - len(self._dependent) < cells or rows < self._next_attempt or cells > FEW_CELLS:
            return None
        self._next_attempt = 2 * rows
        scales = np.array(self._scales)
        orthonormal, triangle = qr(self._basis.matrix() / scales[:, None], mode="economic")
        if np.abs(triangle.diagonal()).min() ** 2 * WELL_KNOWN * self._least_variance < 1:
            return None
        root = solve_triangular(triangle, np.eye(cells))
        covariance = root @ root.T
        if covariance.diagonal().max() > WELL_KNOWN * self._least_variance:
            return None
        return Dense(root @ (orthonormal.T @ (np.array(self._values) / scales)), covariance)

    def _factor(self) -> LeastSquares:
        if self._least_squares is None:
            self._least_squares = LeastSquares(self._scales, self._values, self._dependent)
        return self._least_squares

    def variances_after(self, queries: Sequence[LinearQuery], batch: MeasurementBatch) -> Vector:
        """The queries' variances if these rows were measured too: those of a copy that observes them."""
        trial = copy(self)
        trial._shared = True
        trial.observe(batch)
        return trial.estimate(queries)[1]

    def snapshot(self) -> SquareRoot:
        """A copy to read; the state is copied when either of them changes."""
        self._shared = True
        return copy(self)

    def work(self, queries: int, rows: int) -> tuple[float, float]:
        """Exact coefficients, in slow arithmetic, and products with an orthonormal matrix."""
        known, dependent = float(len(self._values) + rows), float(len(self._dependent))
        cells = float(self._domain.size)
        exact = (queries + rows) * (cells + 1000 * known + STEP * self._basis.steps())
        products = 4 * queries * known * min(known, dependent + 1)
        return exact + products, 8 * (cells + known * (dependent + CHUNK))

    def _append(self, vector: NDArray[Any], value: float, scale: float) -> None:
        row = len(self._values)
        self._least_variance = min(self._least_variance, (scale / float(np.abs(vector).max())) ** 2)
        self._values.append(value)
        self._scales.append(scale)
        found = self._basis.append(vector)
        if found is None:
            return
        self._dependent[row] = found
        while too_large := self._too_large(row):
            row, leaving = too_large
            self._exchange(leaving, row)

    def _too_large(self, newest: int) -> tuple[int, int] | None:
        """A dependent row and the row of the basis that it should replace."""
        rows = {newest: self._dependent[newest]} if newest in self._dependent else self._dependent
        sizes = {
            (row, at): found.size(at) * self._scales[at] / self._scales[row]
            for row, found in rows.items()
            for at in found.factors
        }
        largest = max(sizes, key=sizes.__getitem__, default=None)
        return largest if largest and sizes[largest] > LARGEST else None

    def _exchange(self, leaving: int, entering: int) -> None:
        """Put a dependent row into the basis; all coefficients follow, exactly."""
        found = self._dependent.pop(entering)
        self._basis.exchange(leaving, entering, found)
        pivot = found.factors[leaving]
        inverse = {at: -factor for at, factor in found.factors.items() if at != leaving}
        inverse[entering] = found.denominator
        for row, other in self._dependent.items():
            if leaving in other.factors:
                factors = {at: factor * pivot for at, factor in other.factors.items()}
                times = factors.pop(leaving) // pivot
                for at, factor in inverse.items():
                    factors[at] = factors.get(at, 0) + times * factor
                self._dependent[row] = Combination.reduced(factors, other.denominator * pivot)
        self._dependent[leaving] = Combination.reduced(inverse, pivot)


class LeastSquares:
    """The best weights of measured values, in units of their noise, for queries over a basis of rows."""

    def __init__(
        self, scales: Sequence[float], values: Sequence[float], dependent: dict[int, Combination]
    ) -> None:
        basis = [row for row in range(len(scales)) if row not in dependent]
        self._place = {row: at for at, row in enumerate(basis)}
        self._scales = np.array([scales[row] for row in basis])
        self._largest_scale = max(scales, default=0.0)
        self.values = np.array([values[row] / scales[row] for row in [*basis, *dependent]])
        rows = np.zeros((len(dependent), len(basis)))
        for at, (row, found) in enumerate(dependent.items()):
            for other, factor in found.factors.items():
                rows[at, self._place[other]] = factor / found.denominator * scales[other] / scales[row]
        # The weights of an unbiased estimate are fixed along the columns of [I; T], and free along those
        # of [T'; -I], which are orthogonal to them. An orthonormal basis of the fewer columns will do.
        self._fixed = len(dependent) > len(basis)
        columns = [np.eye(len(basis)), rows] if self._fixed else [rows.T, -np.eye(len(dependent))]
        self._orthonormal: Any = qr(np.vstack(columns), mode="economic")[0]

    def weights(self, queries: Sequence[Combination]) -> tuple[Vector, NDArray[np.bool_]]:
        """The weights of all values in each query's best estimate, and which queries are hopeless."""
        weights = np.zeros((len(self.values), len(queries)))
        hopeless = np.zeros(len(queries), dtype=bool)
        for at, query in enumerate(queries):
            largest = max((query.size(row) for row in query.factors), default=0.0)
            hopeless[at] = largest * self._largest_scale > HOPELESS
            if not hopeless[at]:
                for row, factor in query.factors.items():
                    weights[self._place[row], at] = factor / query.denominator
        weights[: len(self._scales)] *= self._scales[:, None]
        along = self._orthonormal @ (self._orthonormal.T @ weights)
        return (along if self._fixed else weights - along), hopeless
