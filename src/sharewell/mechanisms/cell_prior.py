"""What a seed of any Kronecker products says about queries, where it determines everything.

Each part with precision p and rows A adds p A'A to the information about the cells; the inverse of the
sum is their covariance. Along most attributes the rows are sums, cells or centred: *alike* for all
cells. On vectors that sum to zero along a set U of such attributes, and are constant along the others,
their Gram matrices are numbers. So where all other rows are along one attribute, the covariance is a sum
of Kronecker products, from one small inverse for each U. Otherwise it is written out, over few cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sharewell.cancellation import checked
from sharewell.mechanisms.kronecker import (
    ONES,
    UNIT,
    Factor,
    KroneckerPrior,
    KroneckerSum,
    written_out,
)
from sharewell.mechanisms.marginal_seed import MarginalPart
from sharewell.privacy.kronecker import Centred, Matrix
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]

#: With more attributes along which cells are alike, there are too many sets of them.
MOST_ALIKE = 8
#: So many queries are written out at once: one product of matrices is far faster than many of vectors.
MOST_AT_ONCE = 256


class MeasuredPart(NamedTuple):
    """All measurements of one part of a seed: their precision, and the values weighted by it, summed."""

    part: MarginalPart
    precision: float
    weighted: Vector


def prior_of(domain: Domain, measured: Sequence[MeasuredPart]) -> KroneckerPrior | CellPrior:
    """What parts that determine everything say about queries."""
    total = np.zeros(domain.size)
    for part, _, weighted in measured:
        total += _back(domain.shape, _matrices(part, domain), weighted)
    covariance = _covariance_of_one(domain, measured) or _covariance_of_alike(domain, measured)
    if covariance is not None:
        estimate = covariance.times(total.reshape(domain.shape)).ravel()
        return KroneckerPrior(covariance, estimate, 1.0)
    written = _written_out_covariance(domain, measured)
    return CellPrior(written @ total, written)


def _covariance_of_one(domain: Domain, measured: Sequence[MeasuredPart]) -> KroneckerSum | None:
    """The covariance of all cells, where one part was measured: a Kronecker product of inverses."""
    if len(measured) != 1:
        return None
    [(part, precision, _)] = measured
    along = _matrices(part, domain)
    inverses = [np.linalg.inv(_gram(size, along, level)) for level, size in enumerate(domain.shape)]
    factors = tuple((Factor("dense", (inverse + inverse.T) / 2),) for inverse in inverses)
    return KroneckerSum(tuple(domain.shape), factors, ((1 / precision, (0,) * len(factors)),))


def _covariance_of_alike(domain: Domain, measured: Sequence[MeasuredPart]) -> KroneckerSum | None:
    """The covariance of all cells, where all parts treat cells alike but along one attribute."""
    shape, every = domain.shape, [_matrices(part, domain) for part, _, _ in measured]
    own = {at for along in every for at, m in along.items() if not (m is None or isinstance(m, Centred))}
    alike = [at for at, n in enumerate(shape) if n > 1 and at not in own]
    if len(own) != 1 or len(alike) > MOST_ALIKE:
        return None
    [level] = own
    grams = [_gram(shape[level], along, level) for along in every]
    sets = [frozenset(each) for k in range(len(alike) + 1) for each in combinations(alike, k)]
    # The covariance is the sum over sets U of an inverse times the projector on them: unit - ones / n
    # along U, ones / n along the others. Multiplied out, the units are along each set within U.
    terms = {units: np.zeros((shape[level],) * 2) for units in sets}
    for chosen in sets:
        information = np.zeros((shape[level],) * 2)
        for (_, precision, _), along, gram in zip(measured, every, grams, strict=True):
            number = math.prod(_number(shape[at], along, at, at in chosen) for at in alike)
            if number:
                information += precision * number * gram
        inverse = np.linalg.inv(information)
        for units in terms:
            if units <= chosen:
                ones = math.prod(shape[at] for at in alike if at not in units)
                terms[units] += (-1) ** len(chosen - units) * (inverse + inverse.T) / (2 * ones)
    factors = tuple(
        tuple(Factor("dense", term) for term in terms.values()) if at == level else (UNIT, ONES)
        for at in range(len(shape))
    )
    chosen_factors = (
        (1.0, tuple(place if at == level else int(at not in units) for at in range(len(shape))))
        for place, units in enumerate(terms)
    )
    return KroneckerSum(tuple(shape), factors, tuple(chosen_factors))


def _number(size: int, matrices: dict[int, Matrix], level: int, zero_sum: bool) -> int:
    """What A'A multiplies vectors by that sum to zero along an attribute, or are constant there."""
    if level not in matrices:
        return 0 if zero_sum else size
    centred = isinstance(matrices[level], Centred)
    return (size**2 if zero_sum else 0) if centred else 1


def _written_out_covariance(domain: Domain, measured: Iterable[MeasuredPart]) -> Vector:
    """The covariance of all cells, from any parts."""
    information = np.zeros((domain.size, domain.size))
    for part, precision, _ in measured:
        matrices = _matrices(part, domain)
        along = [_gram(size, matrices, level) for level, size in enumerate(domain.shape)]
        information += precision * written_out(along)
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


def _written(queries: Sequence[LinearQuery]) -> Vector:
    """The weights of queries on every cell."""
    return np.array([query.to_vector() for query in queries], dtype=np.float64)


class CellPrior:
    """The estimates and covariances of queries, from those of the cells."""

    def __init__(self, estimate: Vector, covariance: Vector) -> None:
        self._estimate = estimate
        self._covariance = covariance

    def cells(self) -> tuple[Vector, Vector]:
        """Every cell's estimate, and the covariance of them all."""
        return self._estimate, self._covariance

    def means(self, queries: Sequence[LinearQuery]) -> Vector:
        """The estimates of queries."""
        return np.array([float(query.dot(self._estimate)) for query in checked(queries)])

    def variances(self, queries: Sequence[LinearQuery]) -> Vector:
        """The variances of the estimates."""
        found = [np.empty(0)]
        for start in checked(range(0, len(queries), MOST_AT_ONCE), 1):
            weights = _written(queries[start : start + MOST_AT_ONCE])
            found.append(np.einsum("qc,qc->q", weights @ self._covariance, weights))
        return np.concatenate(found)

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

    def covariances(self, queries: Sequence[LinearQuery]) -> Vector:
        """The covariance of every query with every stored row: a line each."""
        if not self._images:
            return np.empty((len(queries), 0))
        images, found = np.array(self._images).T, [np.empty((0, self.count))]
        for start in checked(range(0, len(queries), MOST_AT_ONCE), 1):
            found.append(_written(queries[start : start + MOST_AT_ONCE]) @ images)
        return np.concatenate(found)

    def copy(self) -> CellRows:
        """A copy that grows on its own."""
        new = copy(self)
        new._images = list(self._images)
        return new

    def snapshot(self) -> CellRows:
        """A copy that does not see what is appended later."""
        return self.copy()
