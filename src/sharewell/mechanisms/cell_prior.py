"""What a seed of any Kronecker products says about queries: a covariance over all cells, written out.

For few cells only. Each part with precision p and rows A adds p A'A to the information about the cells;
the inverse of the sum is their covariance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sharewell.mechanisms.kronecker import written_out
from sharewell.mechanisms.marginal_seed import MarginalPart
from sharewell.privacy.kronecker import Centred, Matrix
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]


class MeasuredPart(NamedTuple):
    """All measurements of one part of a seed: their precision, and the values weighted by it, summed."""

    part: MarginalPart
    precision: float
    weighted: Vector


def cell_estimates(domain: Domain, measured: Sequence[MeasuredPart]) -> tuple[Vector, Vector]:
    """Every cell's estimate, and the covariance of them all, from parts that determine everything."""
    total = np.zeros(domain.size)
    for part, _, weighted in measured:
        total += _back(domain.shape, _matrices(part, domain), weighted)
    covariance = cell_covariance(domain, measured)
    return covariance @ total, covariance


def cell_covariance(domain: Domain, measured: Iterable[MeasuredPart]) -> Vector:
    """The covariance of all cells' estimates, which depends on precisions alone."""
    shape = domain.shape
    # Parts that differ along one attribute are added up there, before anything is written out.
    grams: dict[tuple[object, ...], dict[int, Vector]] = {}
    for part, precision, _ in measured:
        matrices = _matrices(part, domain)
        along = {level: _gram(n, matrices, level) for level, n in enumerate(shape)}
        own = [level for level, matrix in matrices.items() if matrix is not None]
        different = own[0] if len(own) == 1 else 0
        pattern = (different, *(None if at == different else along[at].tobytes() for at in along))
        along[different] = precision * along[different]
        if pattern in grams:
            along[different] = along[different] + grams[pattern][different]
        grams[pattern] = along
    information = np.zeros((domain.size, domain.size))
    for along in grams.values():
        information += written_out(along.values())
    covariance = np.linalg.inv(information)
    return np.asarray(covariance + covariance.T) / 2


def _matrices(part: MarginalPart, domain: Domain) -> dict[int, Matrix]:
    return dict(zip(part.attributes, part.matrices(domain.shape), strict=True))


def _gram(size: int, matrices: dict[int, Matrix], level: int) -> Vector:
    """A'A along one attribute."""
    if level not in matrices:
        return np.ones((size, size))
    matrix = matrices[level]
    if matrix is None:
        return np.eye(size)
    if isinstance(matrix, Centred):
        return size**2 * np.eye(size) - size
    return np.asarray((matrix.T @ matrix).toarray(), dtype=np.float64)


def _back(shape: Sequence[int], matrices: dict[int, Matrix], weighted: Vector) -> Vector:
    """The rows' transpose times a value for each row."""
    kept = [shape[at] if m is None else m.shape[0] for at, m in matrices.items()]
    tensor = weighted.reshape(kept)
    for axis, (level, matrix) in enumerate(matrices.items()):
        if isinstance(matrix, Centred):
            tensor = shape[level] * tensor - tensor.sum(axis=axis, keepdims=True)
        elif matrix is not None:
            tensor = np.moveaxis(np.tensordot(matrix.T.toarray(), tensor, axes=(1, axis)), 0, axis)
    for level in range(len(shape)):
        if level not in matrices:
            tensor = np.expand_dims(tensor, level)
    return np.broadcast_to(tensor, shape).ravel()


class CellPrior:
    """The estimates and covariances of queries, from those of the cells."""

    def __init__(self, estimate: Vector, covariance: Vector) -> None:
        self._estimate = estimate
        self._covariance = covariance

    def mean(self, query: LinearQuery) -> float:
        """The estimate of a query."""
        return float(query.dot(self._estimate))

    def variance(self, query: LinearQuery) -> float:
        """The variance of the estimate."""
        weights = query.to_vector()
        return float(weights @ self._covariance @ weights)

    def rows(self) -> CellRows:
        """An empty store of rows."""
        return CellRows(self._covariance)


class CellRows:
    """Stored rows, as their covariances with every cell."""

    def __init__(self, covariance: Vector) -> None:
        self._covariance = covariance
        self._images: list[Vector] = []

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self._images)

    def append(self, row: LinearQuery) -> None:
        """Store one more row."""
        self._images.append(self._covariance @ row.to_vector())

    def covariances(self, query: LinearQuery) -> Vector:
        """Every stored row's covariance with a query."""
        return np.array([query.dot(image) for image in self._images], dtype=np.float64)

    def copy(self) -> CellRows:
        """A copy that grows on its own."""
        new = copy(self)
        new._images = list(self._images)
        return new

    def snapshot(self) -> CellRows:
        """A copy that does not see what is appended later."""
        return self.copy()
