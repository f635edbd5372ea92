"""A synthetic table: public weights over the cells, updated with measurements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sharewell.errors import QueryError
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: The largest exponent of one step, so that no weight is lost for good by a wild measurement.
MAX_STEP = 2.0


class SyntheticTable:
    """Positive weights that sum to a public number of people.

    The weights are kept up to a common factor: a step multiplies some of them in place, and the factor
    that keeps the sum is applied when a query is answered. A query that is a box, or a product of sets,
    is answered and updated without reading the other cells.
    """

    def __init__(self, domain: Domain, population: float, prior: ArrayLike | None = None) -> None:
        domain.require_dense()
        if not math.isfinite(population) or population <= 0:
            raise QueryError(f"A population must be a positive number, not {population!r}.")
        weights = np.ones(domain.size) if prior is None else np.array(prior, dtype=np.float64).ravel()
        if len(weights) != domain.size or not np.isfinite(weights).all() or (weights <= 0).any():
            raise QueryError("A prior must give every cell a positive number.")
        self.domain = domain
        self.population = float(population)
        self._weights = weights.reshape(domain.shape) / weights.sum()
        self._sum = 1.0

    def answer(self, query: LinearQuery) -> float:
        """The query's answer on the synthetic table."""
        return float(query.dot(self._weights)) * self.population / self._sum

    def bend(self, query: LinearQuery, step: float) -> None:
        """Multiply every cell's weight by exp(step * the query's weight there)."""
        step = min(max(step, -MAX_STEP), MAX_STEP)
        if query.is_predicate:
            before = float(query.dot(self._weights))
            for _, vectors in query.products():
                for box in _regions(vectors):
                    self._weights[box] *= math.exp(step)
            self._sum += before * math.expm1(step)
        else:
            self._weights *= np.exp(step * query.to_vector().reshape(self.domain.shape))
            self._sum = float(self._weights.sum())
        # The running sum keeps its absolute error, so it must not be left to shrink for long.
        if not 1e-3 < self._sum < 1e3:
            self._weights /= self._weights.sum()
            self._sum = 1.0

    def snapshot(self) -> SyntheticTable:
        """A copy as of now."""
        frozen = copy(self)
        frozen._weights = self._weights.copy()
        return frozen

    def counts(self) -> NDArray[np.float64]:
        """The whole table, one number per cell."""
        return np.asarray(self._weights * (self.population / self._sum)).ravel()


def _regions(vectors: tuple[NDArray[np.int64], ...]) -> Iterator[tuple[slice, ...]]:
    """The boxes that a product of sets consists of: every set is a few runs of neighbouring cells."""
    sets = []
    for weights in vectors:
        edges = np.flatnonzero(np.diff(weights != 0, prepend=False, append=False)).tolist()
        sets.append([slice(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True)])
    return product(*sets)
