"""Sums of Kronecker products: matrices over a whole domain that are never written out.

The covariance that a seed leaves is one, so what it says about a query costs the sum of the
attributes' sizes instead of their product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

    def times(self, tensor: NDArray[Any]) -> NDArray[Any]:
        """The matrix times a tensor that begins with one axis per attribute."""
        total = np.zeros(tensor.shape)
        for coefficient, chosen in self.terms:
            part = tensor
            for level, at in enumerate(chosen):
                part = self.factors[level][at].times(part, axis=level)
            total += coefficient * part
        return total
