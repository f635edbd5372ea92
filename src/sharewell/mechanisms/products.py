"""Queries as sums of products over the attributes that they mention, and many stored queries at once.

Along an attribute that a product does not mention its weight is 1. What two products have in common
along an attribute is a whole number: their inner product there. So everything starts from exact
integers, and only the attributes that a query mentions cost anything, however many columns a table has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sharewell.query.diagram import Node
from sharewell.query.linear import LinearQuery

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Axis:
    """A product's weights along one attribute: those of run i hold from the cell `starts[i]` on.

    Equal ones are the same object, while they are remembered.
    """

    key: bytes
    size: int
    starts: Integers
    weights: Integers

    @classmethod
    def of(cls, node: Node, child: int) -> Axis:
        """The weights of a node's cells that lead to one of its children."""
        starts, weights = node.starts, node.weights
        if len(node.children) > 1:
            weights = weights * (node.which == child)
            kept = np.ones(len(starts), dtype=bool)
            np.not_equal(weights[1:], weights[:-1], out=kept[1:])
            starts, weights = starts[kept], weights[kept]
        return _axis(node.size, starts.tobytes(), weights.tobytes())

    @cached_property
    def lengths(self) -> Integers:
        """The number of cells of every run."""
        return np.diff(self.starts, append=self.size)

    @cached_property
    def before(self) -> Integers:
        """The running sum of the weights at every start."""
        return np.append(0, np.cumsum(self.weights * self.lengths)[:-1])

    @cached_property
    def total(self) -> int:
        """The sum of all weights."""
        return int((self.weights * self.lengths).sum())

    @cached_property
    def square(self) -> int:
        """The sum of their squares."""
        runs = zip(self.weights.tolist(), self.lengths.tolist(), strict=True)
        return sum(weight**2 * length for weight, length in runs)

    @cached_property
    def cell(self) -> int | None:
        """The only cell, where it counts one cell; None otherwise."""
        used = np.flatnonzero(self.weights)
        if len(used) != 1 or self.weights[used[0]] != 1 or self.lengths[used[0]] != 1:
            return None
        return int(self.starts[used[0]])

    def dense(self) -> Integers:
        """The weight of every cell."""
        return np.repeat(self.weights, self.lengths)

    def sums_at(self, edges: Integers) -> Integers:
        """The sum of the weights of all cells before each edge."""
        run = np.searchsorted(self.starts, edges, "right") - 1
        return self.before[run] + self.weights[run] * (edges - self.starts[run])


@lru_cache(maxsize=8192)
def _axis(size: int, starts: bytes, weights: bytes) -> Axis:
    numbers = (np.frombuffer(part, dtype=np.int64) for part in (starts, weights))
    return Axis(size.to_bytes(8, "little") + starts + weights, size, *numbers)


class QueryProduct(NamedTuple):
    """A whole factor on one data vector, and weights along the attributes that are mentioned."""

    vector: int
    factor: int
    axes: dict[int, Axis]

    @property
    def mentioned(self) -> int:
        """The attributes, one bit each."""
        return sum(1 << level for level in self.axes)


@lru_cache(maxsize=32_768)
def products_of(query: LinearQuery) -> tuple[QueryProduct, ...]:
    """The products that sum to a query's primitive query, without expanding what they do not mention."""
    attributes = len(query.domain.attributes)
    found: list[QueryProduct] = []

    def walk(node: Node, level: int, axes: dict[int, Axis]) -> None:
        while level < attributes and len(node.starts) == 1:
            node, level = node.children[0], level + 1
        if level < attributes:
            for at, child in enumerate(node.children):
                walk(child, level + 1, {**axes, level: Axis.of(node, at)})
        elif (
            node.children
        ):  # The last axis holds the data vectors: the count, and those of the measures.
            found.extend(QueryProduct(k, w, axes) for a, b, w, _ in node.runs for k in range(a, b))
        else:
            found.append(QueryProduct(0, 1, axes))

    if query.root is not None:
        walk(query.root, 0, {})
    return tuple(found)


class ProductBatch(NamedTuple):
    """Products of many queries that mention the same attributes of one data vector.

    Each is the number of its query, a factor, and by attribute which of the distinct axes it has. The
    groups of a GROUP BY share their axes, so that what depends on an axis is computed once.
    """

    vector: int
    mentioned: int
    query_of: Integers
    factors: Integers
    axes: dict[int, tuple[list[Axis], Integers]]

    def __len__(self) -> int:
        return len(self.query_of)

    def part(self, start: int, end: int) -> ProductBatch:
        """Some of the products, in the same order; axes that none of them has are left out."""
        if start == 0 and end >= len(self):
            return self
        axes = {}
        for level, (distinct, which) in self.axes.items():
            used, numbers = np.unique(which[start:end], return_inverse=True)
            axes[level] = [distinct[at] for at in used.tolist()], numbers
        query_of, factors = self.query_of[start:end], self.factors[start:end]
        return ProductBatch(self.vector, self.mentioned, query_of, factors, axes)

    def summed(self, values: NDArray[Any]) -> tuple[Integers, NDArray[Any]]:
        """The queries that have products here, and for each of them the sum of its products' values."""
        first = np.flatnonzero(np.diff(self.query_of, prepend=-1))
        if len(first) == len(self.query_of):
            return self.query_of, values
        return self.query_of[first], np.add.reduceat(values, first)


def batches_of(queries: Sequence[LinearQuery]) -> list[ProductBatch]:
    """The products of queries, those together that mention the same attributes; by query in each."""
    found: dict[tuple[int, int], list[tuple[int, QueryProduct]]] = {}
    for number, query in enumerate(queries):
        for product in products_of(query):
            found.setdefault((product.vector, product.mentioned), []).append((number, product))
    batches = []
    for (vector, mentioned), members in found.items():
        axes = {}
        for level in members[0][1].axes:
            numbers: dict[bytes, int] = {}
            of_product = [product.axes[level] for _, product in members]
            which = np.array([numbers.setdefault(axis.key, len(numbers)) for axis in of_product])
            distinct = {axis.key: axis for axis in of_product}
            axes[level] = [distinct[key] for key in numbers], which
        query_of = np.array([number for number, _ in members])
        factors = np.array([product.factor for _, product in members], dtype=np.int64)
        batches.append(ProductBatch(vector, mentioned, query_of, factors, axes))
    return batches
