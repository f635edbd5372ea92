"""Queries as sums of products over the attributes that they mention, and many stored queries at once.

Along an attribute that a product does not mention its weight is 1. What two products have in common
along an attribute is a whole number: their inner product there. So everything starts from exact
integers, and only the attributes that a query mentions cost anything, however many columns a table has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sharewell.query.diagram import Node
from sharewell.query.linear import LinearQuery

Integers = NDArray[np.int64]
#: Whole numbers: in 64 bits where that is enough, otherwise Python integers.
Whole = NDArray[Any]

#: Sums of products are computed in 64 bits while they stay below this.
SAFE = 2**62
#: The limbs that weights and running sums are cut into where they are not safe: bits, and how many.
WEIGHT_LIMBS, SUM_LIMBS = (16, 2), (20, 3)
#: Up to this many cells an attribute's weights are written out, in halves of this many bits.
DENSE, HALF = 1024, 16
#: Of how many axes a table remembers the inner products.
MOST_REMEMBERED = 256


class Axis(NamedTuple):
    """A product's weights along one attribute: those of run i hold from the cell `starts[i]` on."""

    key: bytes
    size: int
    starts: Integers
    weights: Integers
    #: The running sum of the weights at every start, and of all weights.
    before: Integers
    total: int

    @classmethod
    def of(cls, node: Node, child: int) -> Axis:
        """The weights of a node's cells that lead to one of its children."""
        starts = node.starts
        weights = node.weights if len(node.children) == 1 else node.weights * (node.which == child)
        kept = np.ones(len(starts), dtype=bool)
        np.not_equal(weights[1:], weights[:-1], out=kept[1:])
        starts, weights = starts[kept], weights[kept]
        sums = np.cumsum(weights * np.diff(starts, append=node.size))
        key = node.size.to_bytes(8, "little") + starts.tobytes() + weights.tobytes()
        return cls(key, node.size, starts, weights, np.append(0, sums[:-1]), int(sums[-1]))

    @property
    def cell(self) -> int | None:
        """The only cell, where it counts one cell; None otherwise."""
        used = np.flatnonzero(self.weights)
        if len(used) != 1 or self.weights[used[0]] != 1:
            return None
        start = int(self.starts[used[0]])
        end = int(self.starts[used[0] + 1]) if used[0] + 1 < len(self.starts) else self.size
        return start if end == start + 1 else None

    def dense(self) -> Integers:
        """The weight of every cell."""
        return np.repeat(self.weights, np.diff(self.starts, append=self.size))

    def sums_at(self, edges: Integers) -> Integers:
        """The sum of the weights of all cells before each edge."""
        run = np.searchsorted(self.starts, edges, "right") - 1
        return self.before[run] + self.weights[run] * (edges - self.starts[run])


class QueryProduct(NamedTuple):
    """A whole factor on one data vector, and weights along the attributes that are mentioned."""

    vector: int
    factor: int
    axes: dict[int, Axis]

    @property
    def mentioned(self) -> int:
        """The attributes, one bit each."""
        return sum(1 << level for level in self.axes)


@lru_cache(maxsize=8192)
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


class Growing:
    """A vector, or a matrix of so many columns, that grows by appending."""

    __slots__ = ("_array", "count")

    def __init__(self, dtype: Any, *columns: int) -> None:
        self._array = np.zeros((16, *columns), dtype=dtype)
        self.count = 0

    def append(self, value: Any) -> None:
        """Add a number, or a row."""
        if self.count == len(self._array):
            self._array = np.concatenate([self._array, np.zeros_like(self._array)])
        self._array[self.count] = value
        self.count += 1

    @property
    def array(self) -> NDArray[Any]:
        """All numbers."""
        return self._array[: self.count]

    def copy(self) -> Growing:
        """A copy that grows on its own."""
        new = copy(self)
        new._array = self._array.copy()
        return new


class AxisTable:
    """The distinct weights of stored products along one attribute; number 0 is weight 1 throughout."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._numbers: dict[bytes, int] = {}
        self._totals = Growing(np.int64)
        self._weights: DenseWeights | RunWeights = (DenseWeights if size <= DENSE else RunWeights)(size)
        self._dots: dict[bytes, Whole] = {}
        self._inverses: dict[Arithmetic, tuple[NDArray[Any], NDArray[np.bool_]]] = {}
        first = np.zeros(1, dtype=np.int64)
        self._append(Axis(b"", size, first, first + 1, first, size))

    def _append(self, axis: Axis) -> None:
        self._weights.append(axis)
        self._totals.append(axis.total)
        self._dots, self._inverses = {}, {}

    def number(self, axis: Axis) -> int:
        """The number of an axis, which is added if it is new."""
        found = self._numbers.get(axis.key)
        if found is None:
            found = self._numbers[axis.key] = self._totals.count
            self._append(axis)
        return found

    def copy(self) -> AxisTable:
        """A copy that grows on its own."""
        new = copy(self)
        new._numbers, new._totals = dict(self._numbers), self._totals.copy()
        new._weights = self._weights.copy()
        new._dots, new._inverses = dict(self._dots), dict(self._inverses)
        return new

    @property
    def totals(self) -> Integers:
        """The sum of every stored axis."""
        return self._totals.array

    def dots(self, axis: Axis) -> Whole:
        """The exact inner product of an axis with every stored one."""
        found = self._dots.get(axis.key)
        if found is None:
            if len(self._dots) >= MOST_REMEMBERED:
                self._dots = {}
            found = self._dots[axis.key] = self._weights.dots(axis)
        return found

    def inverse_means(self, arithmetic: Arithmetic) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The inverse of every stored axis's mean, 1 where it is 0, and where that is."""
        found = self._inverses.get(arithmetic)
        if found is None:
            found = self._inverses[arithmetic] = arithmetic.inverse_means(self.totals, self.size)
        return found


class DenseWeights:
    """Weights written out, for an attribute of few cells: cut in two, so that doubles are exact."""

    def __init__(self, size: int) -> None:
        self._low, self._high = Growing(np.float64, size), Growing(np.float64, size)
        self._heavy = False

    def append(self, axis: Axis) -> None:
        """Store one more axis."""
        low, high = _halves(axis.dense())
        self._low.append(low)
        self._high.append(high)
        self._heavy = self._heavy or bool(high.any())

    def copy(self) -> DenseWeights:
        """A copy that grows on its own."""
        new = copy(self)
        new._low, new._high = self._low.copy(), self._high.copy()
        return new

    def dots(self, axis: Axis) -> Whole:
        """The exact inner product of an axis with every stored one."""
        low, high = _halves(axis.dense())
        bottom: Whole = (self._low.array @ low).astype(np.int64)
        if not high.any() and not self._heavy:
            return bottom
        total: Whole = bottom.astype(object)
        middle = self._high.array @ low + self._low.array @ high
        for shift, part in ((HALF, middle), (2 * HALF, self._high.array @ high)):
            total = total + (part.astype(np.int64).astype(object) << shift)
        return total


def _halves(weights: Integers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    high = (weights + 2 ** (HALF - 1)) >> HALF
    return (weights - (high << HALF)).astype(np.float64), high.astype(np.float64)


class RunWeights:
    """Weights as runs, for an attribute of many cells: where they end, and how much the weight drops."""

    def __init__(self, size: int) -> None:
        self._edges: list[Integers] = []
        self._drops: list[Integers] = []
        self._first = [0]
        self._stacked: tuple[Integers, Integers] | None = None

    def append(self, axis: Axis) -> None:
        """Store one more axis."""
        self._edges.append(np.append(axis.starts[1:], axis.size))
        self._drops.append(axis.weights - np.append(axis.weights[1:], 0))
        self._first.append(self._first[-1] + len(axis.starts))
        self._stacked = None

    def copy(self) -> RunWeights:
        """A copy that grows on its own."""
        new = copy(self)
        new._edges, new._drops, new._first = list(self._edges), list(self._drops), list(self._first)
        return new

    def dots(self, axis: Axis) -> Whole:
        """The exact inner product of an axis with every stored one, by summation by parts."""
        if self._stacked is None:
            self._stacked = np.concatenate(self._edges), np.concatenate(self._drops)
        edges, drops = self._stacked
        sums, first = axis.sums_at(edges), np.array(self._first[:-1])
        longest = int(np.diff(self._first).max())
        if int(np.abs(sums).max()) * int(np.abs(drops).max()) * longest < SAFE:
            return np.add.reduceat(drops * sums, first)
        total: Whole = np.zeros(len(first), dtype=object)
        for shift, part in _limbs(drops, *WEIGHT_LIMBS):
            for other, limb in _limbs(sums, *SUM_LIMBS):
                total += np.add.reduceat(part * limb, first).astype(object) << (shift + other)
        return total


def _limbs(numbers: Integers, bits: int, count: int) -> Iterator[tuple[int, Integers]]:
    """The numbers as sums of limbs times powers of 2; the last limb has the sign."""
    for at in range(count - 1):
        high = numbers >> bits
        yield at * bits, numbers - (high << bits)
        numbers = high
    yield (count - 1) * bits, numbers


def _times(number: int, array: Whole) -> Whole:
    """A whole number times an array, exactly."""
    if array.dtype == object or abs(number) * int(np.abs(array).max()) < SAFE:
        return number * array
    return number * array.astype(object)


class Moments(NamedTuple):
    """What an axis and every stored one share, with all cells of the attribute equally likely."""

    #: The covariance of their weights, the product of their means, and the mean of their product.
    covariance: NDArray[Any]
    means: NDArray[Any]
    product: NDArray[Any]


class Real:
    """Moments in doubles, each correct to the last bit or two: the differences are exact."""

    one: float = 1.0

    def moments(self, axis: Axis, table: AxisTable) -> Moments:
        """The moments of an axis with all stored ones."""
        n, dots, totals = table.size, table.dots(axis), table.totals
        cross = _times(n, dots) - _times(axis.total, totals)
        return Moments(
            cross.astype(np.float64) / n**2,
            (axis.total / n) * (totals / n),
            dots.astype(np.float64) / n,
        )

    def mean(self, total: int, size: int) -> float:
        """The mean of weights."""
        return total / size

    def inverse_means(self, totals: Integers, size: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The inverses of means, 1 where a mean is 0, and where that is."""
        zero = totals == 0
        return size / np.where(zero, size, totals), zero

    def reduce(self, values: Any) -> Any:
        """Nothing to do: doubles do not wrap."""
        return values


class Modular:
    """Moments modulo a prime below 2^31."""

    one: int = 1

    def __init__(self, prime: int) -> None:
        self.prime = prime

    def moments(self, axis: Axis, table: AxisTable) -> Moments:
        """The moments of an axis with all stored ones."""
        p, inverse = self.prime, pow(table.size, -1, self.prime)
        dots = (table.dots(axis) % p).astype(np.int64) * inverse % p
        means = table.totals % p * inverse % p * (axis.total * inverse % p) % p
        return Moments((dots - means) % p, means, dots)

    def mean(self, total: int, size: int) -> int:
        """The mean of weights."""
        return total * pow(size, -1, self.prime) % self.prime

    def inverse_means(self, totals: Integers, size: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The inverses of means, 1 where a mean is 0, and where that is."""
        p, zero = self.prime, totals % self.prime == 0
        base, found = np.where(zero, size % p, totals % p), np.full(len(totals), size % p)
        exponent = p - 2  # By Fermat's little theorem.
        while exponent:
            if exponent & 1:
                found = found * base % p
            base, exponent = base * base % p, exponent >> 1
        return found, zero

    def reduce(self, values: Any) -> Any:
        """The values modulo the prime."""
        return values % self.prime


Arithmetic = Real | Modular
REAL = Real()


class ProductStore:
    """Products of many rows on one data vector, stored so that what they share with a query is fast."""

    def __init__(self, shape: Sequence[int], arithmetics: Sequence[Arithmetic]) -> None:
        self._shape = shape
        self._arithmetics = arithmetics
        self.row_of = Growing(np.int64)
        self.factors = Growing(np.int64)
        self._tables: dict[int, AxisTable] = {}
        #: For every attribute, which products mention it, and with which of the distinct weights.
        self._places: dict[int, tuple[Growing, Growing]] = {}
        #: For every arithmetic, each product's means that are not 0, multiplied; and how many are 0.
        self._means = [(Growing(type(each.one)), Growing(np.int64)) for each in arithmetics]

    def append(self, row: int, product: QueryProduct) -> None:
        """Store one more product of a row."""
        place = self.row_of.count
        self.row_of.append(row)
        self.factors.append(product.factor)
        for level, axis in product.axes.items():
            if level not in self._tables:
                self._tables[level] = AxisTable(self._shape[level])
                self._places[level] = Growing(np.int64), Growing(np.int64)
            places, numbers = self._places[level]
            places.append(place)
            numbers.append(self._tables[level].number(axis))
        for arithmetic, (means, zeros) in zip(self._arithmetics, self._means, strict=True):
            product_of_means, none = arithmetic.one, 0
            for level, axis in product.axes.items():
                mean = arithmetic.mean(axis.total, self._shape[level])
                none += mean == 0
                product_of_means = arithmetic.reduce(product_of_means * (mean or 1))
            means.append(product_of_means)
            zeros.append(none)

    def copy(self) -> ProductStore:
        """A copy that grows on its own."""
        new = copy(self)
        new.row_of, new.factors = self.row_of.copy(), self.factors.copy()
        new._tables = {level: table.copy() for level, table in self._tables.items()}
        new._places = {level: (a.copy(), b.copy()) for level, (a, b) in self._places.items()}
        new._means = [(means.copy(), zeros.copy()) for means, zeros in self._means]
        return new

    def _numbers(self, level: int) -> Integers:
        """The number of every product's weights along an attribute."""
        numbers = np.zeros(self.row_of.count, dtype=np.int64)
        places, found = self._places[level]
        numbers[places.array] = found.array
        return numbers

    def overlaps(
        self, product: QueryProduct, which: int, sets: Iterable[int]
    ) -> tuple[NDArray[Any], dict[int, NDArray[Any]]]:
        """What a product has in common with all stored ones, in one of the arithmetics.

        Returns the mean of their product over all cells, and the part of it for each of these sets of
        attributes, one bit each, closed under subsets: covariances along the attributes of the set, and
        products of means along the others.
        """
        arithmetic, (means, zeros) = self._arithmetics[which], self._means[which]
        reduce, closed = arithmetic.reduce, frozenset(sets)
        outside, none = means.array, zeros.array
        along: list[tuple[int, Any, Any, Any]] = []
        for level, axis in product.axes.items():
            if level not in self._tables:
                alone = arithmetic.mean(axis.total, self._shape[level])
                along.append((1 << level, None, alone, alone))
                continue
            table, numbers = self._tables[level], self._numbers(level)
            inverses, zero = table.inverse_means(arithmetic)
            outside = reduce(outside * inverses[numbers])
            none = none - zero[numbers]
            covariance, mean, both = arithmetic.moments(axis, table)
            along.append((1 << level, covariance[numbers], mean[numbers], both[numbers]))
        outside = outside * (none == 0)
        partial, whole = ({0: outside} if closed else {}), outside
        for bit, covariance, mean, both in along:
            whole = reduce(whole * both)
            grown = {}
            for done, value in partial.items():
                grown[done] = reduce(value * mean)
                if covariance is not None and done | bit in closed:
                    grown[done | bit] = reduce(value * covariance)
            partial = grown
        return whole, partial
