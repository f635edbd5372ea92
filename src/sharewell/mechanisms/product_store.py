"""Many stored products of queries at once: what others have in common with all of them.

Inner products along an attribute are exact integers. What is made of them is computed in doubles, or
modulo a prime.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sharewell.mechanisms.products import Axis, ProductBatch, QueryProduct

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
        self._append(Axis(b"", size, np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)))

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

    def own_moments(self, axis: Axis, size: int) -> tuple[float, float, float]:
        """The moments of an axis with itself."""
        cross = size * axis.square - axis.total**2
        return cross / size**2, (axis.total / size) ** 2, axis.square / size

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

    def own_moments(self, axis: Axis, size: int) -> tuple[int, int, int]:
        """The moments of an axis with itself."""
        p, inverse = self.prime, pow(size, -1, self.prime)
        mean, product = axis.total * inverse % p, axis.square * inverse % p
        return (product - mean**2) % p, mean**2 % p, product

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

    def overlaps(self, batch: ProductBatch, which: int, sets: Iterable[int]) -> Overlaps:
        """What the products of a batch have in common with all stored ones, in one of the arithmetics.

        One line for each product of the batch, and one column for each stored one.
        """
        arithmetic, (means, zeros) = self._arithmetics[which], self._means[which]
        outside, none = means.array, zeros.array
        along: list[tuple[int, Any, Any, Any]] = []
        for level, (axes, numbers) in batch.axes.items():
            if level not in self._tables:
                size = self._shape[level]
                alone = np.array([[arithmetic.mean(axis.total, size)] for axis in axes])[numbers]
                along.append((1 << level, None, alone, alone))
                continue
            table, stored = self._tables[level], self._numbers(level)
            inverses, zero = table.inverse_means(arithmetic)
            outside = arithmetic.reduce(outside * inverses[stored])
            none = none - zero[stored]
            pairs = np.ix_(numbers, stored)
            found = zip(*(arithmetic.moments(axis, table) for axis in axes), strict=True)
            moments = Moments(*(np.array(moment)[pairs] for moment in found))
            along.append((1 << level, *moments))
        outside = np.broadcast_to(outside * (none == 0), (len(batch), len(none)))
        return _overlaps(arithmetic, outside, along, sets)


class Overlaps(NamedTuple):
    """What products have in common, with all cells equally likely."""

    #: The mean of their product over all cells.
    whole: NDArray[Any]
    #: The part of it for each of some sets of attributes, one bit each: covariances along the attributes
    #: of the set, and products of means along the others.
    parts: dict[int, NDArray[Any]]


def squares(
    batch: ProductBatch, arithmetic: Arithmetic, shape: Sequence[int], sets: Iterable[int]
) -> Overlaps:
    """What every product of a batch has in common with itself."""
    along: list[tuple[int, Any, Any, Any]] = []
    for level, (axes, numbers) in batch.axes.items():
        found = zip(*(arithmetic.own_moments(axis, shape[level]) for axis in axes), strict=True)
        moments = Moments(*(np.array(moment)[numbers] for moment in found))
        along.append((1 << level, *moments))
    ones = np.full(len(batch), arithmetic.one)
    return _overlaps(arithmetic, ones, along, sets)


def _overlaps(
    arithmetic: Arithmetic,
    outside: NDArray[Any],
    along: Sequence[tuple[int, Any, Any, Any]],
    sets: Iterable[int],
) -> Overlaps:
    """Multiply what is in common along each attribute, and outside; `sets` are closed under subsets."""
    reduce, closed = arithmetic.reduce, frozenset(sets)
    partial, whole = ({0: outside} if closed else {}), outside
    for bit, covariance, mean, both in along:
        whole = reduce(whole * both)
        grown = {}
        for done, value in partial.items():
            grown[done] = reduce(value * mean)
            if covariance is not None and done | bit in closed:
                grown[done | bit] = reduce(value * covariance)
        partial = grown
    return Overlaps(whole, partial)
