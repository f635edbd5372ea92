"""Sums of Kronecker products: matrices over a whole domain that are never written out.

The covariance that a seed leaves is one, so what it says about a query costs the sum of the
attributes' sizes instead of their product.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharewell.cancellation import checked
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Factor:
    """A symmetric matrix over one attribute's cells: the unit matrix, all ones, or any other."""

    kind: str
    matrix: Vector | None = None

    def times(self, array: NDArray[Any], axis: int = 0) -> NDArray[Any]:
        """The matrix times an array along one of its axes."""
        if self.kind == "unit":
            return array
        if self.kind == "ones":
            return np.broadcast_to(array.sum(axis=axis, keepdims=True), array.shape)
        return np.moveaxis(np.tensordot(self.matrix, array, axes=(1, axis)), 0, axis)  # type: ignore[arg-type]

    def image(self, weights: NDArray[np.int64]) -> Vector:
        """The matrix times a query's weights, which are mostly a few runs of equal numbers."""
        if self.kind == "dense":
            edges, drops = runs(weights)
            if 8 * len(edges) < len(weights):
                return np.asarray(drops @ self._running[edges])
        return self.times(weights.astype(np.float64))

    def norm(self, size: int) -> float:
        """The largest sum of a row's absolute values."""
        if self.matrix is None:
            return 1.0 if self.kind == "unit" else float(size)
        return float(np.abs(self.matrix).sum(axis=1).max())

    @cached_property
    def _running(self) -> Vector:
        """The running sums of the matrix's rows, beginning with zeros."""
        return np.vstack([np.zeros(len(self.matrix)), np.cumsum(self.matrix, axis=0)])  # type: ignore[arg-type]


#: Where runs of equal weights meet, and how much the weight drops there.
Runs = tuple[NDArray[np.intp], NDArray[np.int64]]


def runs(weights: NDArray[np.int64]) -> Runs:
    """The edges between runs of equal weights, and how much the weight drops at each edge.

    The sum of weights times entries is then, by parts, the sum of drops times running sums at edges.
    """
    steps = np.empty(len(weights) + 1, dtype=np.int64)
    steps[0], steps[-1] = weights[0], -weights[-1]
    np.subtract(weights[1:], weights[:-1], out=steps[1:-1])
    edges = np.flatnonzero(steps)
    return edges, -steps[edges]


UNIT = Factor("unit")
ONES = Factor("ones")


@dataclass(frozen=True, eq=False)
class KroneckerSum:
    """The sum over terms of coefficient times the Kronecker product of one factor per attribute.

    `factors[level]` lists the attribute's different factors; a term names one of them per attribute.
    """

    shape: tuple[int, ...]
    factors: tuple[tuple[Factor, ...], ...]
    terms: tuple[tuple[float, tuple[int, ...]], ...]

    @classmethod
    def product(cls, shape: Sequence[int], factors: Sequence[Factor]) -> KroneckerSum:
        """A single Kronecker product."""
        return cls(tuple(shape), tuple((factor,) for factor in factors), ((1.0, (0,) * len(factors)),))

    @cached_property
    def norm(self) -> float:
        """An upper bound of the largest eigenvalue: of each factor, the largest sum of a row."""
        along = [
            [factor.norm(size) for factor in factors]
            for size, factors in zip(self.shape, self.factors, strict=True)
        ]
        return sum(
            abs(coefficient) * math.prod(norms[at] for norms, at in zip(along, chosen, strict=True))
            for coefficient, chosen in self.terms
        )

    def times(self, tensor: NDArray[Any]) -> NDArray[Any]:
        """The matrix times a tensor that begins with one axis per attribute."""
        total = np.zeros(tensor.shape)
        for coefficient, chosen in self.terms:
            part = tensor
            for level, at in enumerate(chosen):
                part = self.factors[level][at].times(part, axis=level)
            total += coefficient * part
        return total


def written_out(matrices: Iterable[Vector]) -> Vector:
    """The Kronecker product of small matrices."""
    product = np.ones((1, 1))
    for matrix in matrices:
        product = np.asarray(np.kron(product, matrix))
    return product


class KroneckerPrior:
    """What a measured seed says about every query: its covariance is a sum of Kronecker products."""

    def __init__(self, covariance: KroneckerSum, estimate: Vector, variance: float) -> None:
        self._covariance = covariance
        self._estimate = estimate
        self._is_zero = not estimate.any()  # as in every dry run
        self._variance = variance

    def cells(self) -> tuple[Vector, Vector]:
        """Every cell's estimate, and the covariance of them all, written out."""
        shape = self._covariance.shape
        size = math.prod(shape)
        written = self._covariance.times(np.eye(size).reshape(*shape, -1)).reshape(size, size)
        return self._estimate.ravel().copy(), written * self._variance

    def means(self, queries: Sequence[LinearQuery]) -> Vector:
        """The seed's estimates of queries."""
        if self._is_zero:
            return np.zeros(len(queries))
        return np.array([float(query.dot(self._estimate)) for query in checked(queries)])

    def variances(self, queries: Sequence[LinearQuery]) -> Vector:
        """The variances of the seed's estimates."""
        squares = [_square(self._covariance, query) for query in checked(queries)]
        return self._variance * np.array(squares)

    def rows(self) -> KroneckerStore:
        """An empty store of rows."""
        return KroneckerStore(self._covariance, self._variance)


class KroneckerStore:
    """The products that rows consist of, stored so that their inner products with a query are fast.

    For every attribute and every factor M of the covariance it keeps the running sums of M w along
    the attribute, w being a product's weights there. A query's weights are a few runs of equal
    numbers, so M w . u is a few differences of running sums, for all rows at once.
    """

    def __init__(self, covariance: KroneckerSum, variance: float) -> None:
        self.covariance = covariance
        self._variance = variance
        self.count = 0
        self._terms = 0
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
            self._row_of[self._terms] = self.count
            self._scale[self._terms] = float(scale)
            for level, weights in enumerate(vectors):
                for factor, sums in zip(self.covariance.factors[level], self._sums[level], strict=True):
                    np.cumsum(factor.image(weights), out=sums[1:, self._terms])
            self._terms += 1
        self.count += 1

    def snapshot(self) -> KroneckerStore:
        """A copy that does not see what is appended later."""
        frozen = copy(self)
        frozen._sums = [list(level) for level in self._sums]
        return frozen

    def copy(self) -> KroneckerStore:
        """A copy that grows on its own."""
        new = copy(self)
        new._row_of, new._scale = self._row_of.copy(), self._scale.copy()
        new._sums = [[sums.copy() for sums in level] for level in self._sums]
        return new

    def _reserve(self) -> None:
        if self._terms < len(self._scale):
            return
        self._row_of = np.concatenate([self._row_of, np.zeros_like(self._row_of)])
        self._scale = np.concatenate([self._scale, np.zeros_like(self._scale)])
        for level in self._sums:
            level[:] = [np.concatenate([sums, np.zeros_like(sums)], axis=1) for sums in level]

    def covariances(self, queries: Sequence[LinearQuery]) -> Vector:
        """The covariance of every query with every stored row, as the seed has it: a line each."""
        found = [self._covariances_of(query) for query in checked(queries)]
        return np.array(found).reshape(len(queries), self.count)

    def _covariances_of(self, query: LinearQuery) -> Vector:
        total = np.zeros(self._terms)
        for scale, along_runs in _along_runs(query):
            along = [
                [run[1] @ sums[run[0], : self._terms] for sums in level]
                for level, run in zip(self._sums, along_runs, strict=True)
            ]
            for coefficient, chosen in self.covariance.terms:
                product = along[0][chosen[0]]
                for level in range(1, len(chosen)):
                    product = product * along[level][chosen[level]]
                total += scale * coefficient * product
        total *= self._variance * self._scale[: self._terms]
        if self.count == self._terms:
            return total
        by_row: Vector = np.bincount(self._row_of[: self._terms], total, minlength=self.count).astype(
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
