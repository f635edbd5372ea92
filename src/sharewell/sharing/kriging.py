"""Estimates from marginals and from rows bought since, one by one: the second implementation by rows.

It writes out the formulas of docs/guarantees/cache-reconstruct.md with whole numbers. Along an attribute
of n cells let two queries have the sums s and t, and the inner product d. Then

    a = n d - s t,    b = s t,    a + b = n d       (each over n^2)

are their covariance, the product of their means, and the mean of their product. The part for a set T of
attributes is the product of a over T and of b over all others. A measured marginal that contains T knows
it, with variance f_T; what no marginal knows is *open*. The prior covariance of two queries is

    K = sum over known T of f_T * part_T  +  huge * sum over open T of part_T,

and the estimate is that of kriging. Whether the rows determine a query's open parts is decided modulo a
random prime; then the huge number cancels, and is large enough not to be seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from random import SystemRandom
from typing import Any, NamedTuple

import numpy as np
from flint import arb, arb_mat, ctx, fmpq, fmpz, nmod_mat
from numpy.typing import NDArray

from sharewell.query.diagram import Node
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell.sharing.merged_cells import NoisyMarginal

#: Binary digits of the arithmetic, with open parts and without, and the exponent of their variance.
DIGITS, FEW_DIGITS, HUGE = 1024, 256, 340
#: The most products of one query, and the most known sets of attributes for a pair of them.
MOST_PRODUCTS, MOST_SETS = 64, 1024
#: A result that is not known up to this part of itself is no result.
PRECISE = 1e-9
#: Roughly the nanoseconds for a pair of rows, and for a number in a step of the elimination.
PAIR, STEP = 20_000.0, 500.0

#: The first cell and the weight of every run of cells along an attribute.
Runs = tuple[tuple[int, ...], tuple[int, ...]]


class Product(NamedTuple):
    """A factor on one data vector, and the weights along each attribute that is mentioned."""

    vector: int
    factor: int
    axes: dict[int, Runs]


class Overlap(NamedTuple):
    """What two products have in common: (attribute, a, b) for each that both mention, and the rest."""

    vector: int
    common: tuple[tuple[int, int, int], ...]
    rest: fmpq


class BeyondReach(Exception):
    """The second implementation by rows takes too long here."""


class Kriging:
    """Estimates of primitive queries from marginals, and from rows with their values and variances."""

    def __init__(self, domain: Domain, marginals: Sequence[NoisyMarginal]) -> None:
        self._shape = domain.shape
        self._marginals = marginals
        self._prime = _random_prime()
        self._factors: dict[tuple[int, frozenset[int]], arb] = {}
        self._sets: dict[tuple[int, frozenset[int]], list[frozenset[int]]] = {}
        self._tables: dict[tuple[int, frozenset[int]], NDArray[np.longdouble]] = {}
        self._rows: list[LinearQuery] = []
        #: Below the diagonal and on it: covariances, and open parts modulo the prime.
        self._covariances: list[list[arb]] = []
        self._open: list[list[int]] = []
        self._values: list[float] = []
        self._variances: list[float] = []
        self.work = 0.0

    def __len__(self) -> int:
        return len(self._rows)

    def append(self, row: LinearQuery, value: float, variance: float) -> None:
        """Add a measured row."""
        with ctx.workprec(DIGITS):
            pairs = [self._pair(row, other) for other in (*self._rows, row)]
        self._rows.append(row)
        self._covariances.append([covariance for covariance, _ in pairs])
        self._open.append([part for _, part in pairs])
        self._values.append(value)
        self._variances.append(variance)

    def estimate(
        self, queries: Sequence[LinearQuery], with_values: bool
    ) -> list[tuple[float, float]] | None:
        """The value and the variance of each query; None where the arithmetic is not precise enough."""
        with ctx.workprec(DIGITS), suppress(ZeroDivisionError):  # The rows look dependent.
            return self._estimate(queries, with_values)
        return None

    def _estimate(
        self, queries: Sequence[LinearQuery], with_values: bool
    ) -> list[tuple[float, float]] | None:
        beside = [[self._pair(row, query) for query in queries] for row in self._rows]
        own = [self._pair(query, query) for query in queries]
        determined = self._determined(
            [[part for _, part in pairs] for pairs in beside], [part for _, part in own]
        )
        means = [self._mean(query) if with_values else arb(0) for query in queries]
        results = [(mean, covariance) for mean, (covariance, _) in zip(means, own, strict=True)]
        if self._rows:
            columns = [[covariance for covariance, _ in pairs] for pairs in beside]
            is_open = any(map(any, self._open)) or any(part for _, part in own)
            with ctx.workprec(DIGITS if is_open else FEW_DIGITS):
                results = self._update(results, columns, with_values)
        found: list[tuple[float, float]] = []
        for (value, variance), finite in zip(results, determined, strict=True):
            if not finite:
                found.append((0.0, math.inf))
            elif variance.rad() > PRECISE * abs(variance.mid()) and variance.rad() > 1e-9:
                return None
            else:
                found.append((float(value.mid()), max(float(variance.mid()), 0.0)))
        return found

    def _update(
        self, prior: Sequence[tuple[arb, arb]], columns: list[list[arb]], with_values: bool
    ) -> list[tuple[arb, arb]]:
        """The estimates and variances after the rows are known."""
        count = len(self._rows)
        matrix = arb_mat(count, count)
        for i, covariances in enumerate(self._covariances):
            for j, covariance in enumerate(covariances):
                matrix[i, j] = matrix[j, i] = covariance
            matrix[i, i] = matrix[i, i] + arb(self._variances[i])
        surprises = [arb(0)] * count
        if with_values:
            rows = zip(self._rows, self._values, strict=True)
            surprises = [arb(value) - self._mean(row) for row, value in rows]
        right = arb_mat([[*column, last] for column, last in zip(columns, surprises, strict=True)])
        solved = matrix.solve(right)
        self.work += STEP * count**2 * (count / 3 + right.ncols())
        products = arb_mat(columns).transpose() * solved
        last = right.ncols() - 1
        return [
            (mean + products[at, last], variance - products[at, at])
            for at, (mean, variance) in enumerate(prior)
        ]

    def _determined(self, beside: list[list[int]], own: list[int]) -> list[bool]:
        """Whether each query's open parts are a combination of those of the rows."""
        if not any(own):
            return [True] * len(own)
        count, prime = len(self._rows), self._prime
        if not count:
            return [part == 0 for part in own]
        table = [[0] * (count + len(own)) for _ in range(count)]
        for i, parts in enumerate(self._open):
            for j, part in enumerate(parts):
                table[i][j] = table[j][i] = part
            table[i][count:] = beside[i]
        flat = [part for row in table for part in row]
        reduced, rank = nmod_mat(count, count + len(own), flat, prime).rref()
        self.work += 10.0 * count**3
        found = []
        for at, part in enumerate(own):
            # The inner product with the combination of rows that the reduced table gives.
            for i in range(rank):
                pivot = next(j for j in range(count + len(own)) if int(reduced[i, j]))
                if pivot < count:
                    part -= int(reduced[i, count + at]) * beside[pivot][at]
            found.append(part % prime == 0)
        return found

    def _pair(self, left: LinearQuery, right: LinearQuery) -> tuple[arb, int]:
        """The prior covariance of two queries, and their open parts modulo the prime."""
        self.work += PAIR
        known, open_parts = arb(0), fmpq(0)
        for vector, common, rest in _overlaps(left, right):
            everything = math.prod(a + b for _, a, b in common)
            for chosen in self._known(vector, frozenset(level for level, _, _ in common)):
                part = math.prod(a if level in chosen else b for level, a, b in common)
                everything -= part
                known += self._factor(vector, chosen) * arb(rest * part)
            open_parts += rest * everything
        residue = int(open_parts.p) * pow(int(open_parts.q), -1, self._prime) % self._prime
        return known + arb(open_parts) * arb(2) ** HUGE, residue

    def _known(self, vector: int, within: frozenset[int]) -> list[frozenset[int]]:
        """The sets of some attributes that a measured marginal contains."""
        found = self._sets.get((vector, within))
        if found is None:
            marginals = [m for m in self._marginals if m.vector == vector]
            largest = {within & set(m.levels) for m in marginals if not m.centred}
            # Centred rows tell of their own set alone, and those of its subsets are measured too.
            largest |= {frozenset(m.levels) for m in marginals if within.issuperset(m.levels)}
            if sum(2 ** len(each) for each in largest) > MOST_SETS:
                largest = {a for a in largest if not any(a < b for b in largest)}
            if sum(2 ** len(each) for each in largest) > MOST_SETS:
                raise BeyondReach
            sets = {subset for each in largest for subset in _subsets(each)}
            found = self._sets[vector, within] = sorted(sets, key=sorted)
        return found

    def _factor(self, vector: int, chosen: frozenset[int]) -> arb:
        """The variance f_T of a unit of a part."""
        found = self._factors.get((vector, chosen))
        if found is None:
            precision = arb(0)
            for variance, rows, marginal in self._containing(vector, chosen):
                precision += (arb(rows) if marginal.centred else 1 / arb(rows)) / arb(variance)
            found = self._factors[vector, chosen] = 1 / precision
        return found

    def _containing(
        self, vector: int, chosen: frozenset[int]
    ) -> Iterator[tuple[float, int, NoisyMarginal]]:
        for marginal in self._marginals:
            levels = set(marginal.levels)
            tells = chosen == levels if marginal.centred else chosen <= levels
            if marginal.vector == vector and tells:
                yield marginal.variance, math.prod(marginal.table.shape), marginal

    def _mean(self, query: LinearQuery) -> arb:
        """The estimate of what the marginals know of a query."""
        total = arb(0)
        for vector, factor, axes in _products(query):
            means = {level: fmpq(_sum(runs, n := self._shape[level]), n) for level, runs in axes.items()}
            for chosen in self._known(vector, frozenset(axes)):
                part: Any = self._table(vector, chosen)
                for level in sorted(chosen, reverse=True):
                    part = part @ _centred(axes[level], self._shape[level])
                others = math.prod(
                    (m for at, m in means.items() if at not in chosen), start=fmpq(factor)
                )
                # A long double is the sum of two doubles.
                high = float(part)
                total += (
                    self._factor(vector, chosen) * arb(others) * (arb(high) + arb(float(part - high)))
                )
        return total

    def _table(self, vector: int, chosen: frozenset[int]) -> NDArray[np.longdouble]:
        """The marginals that contain a set of attributes, summed to it and weighted by precision."""
        found = self._tables.get((vector, chosen))
        if found is None:
            found = np.zeros(tuple(self._shape[level] for level in sorted(chosen)), dtype=np.longdouble)
            for variance, rows, marginal in self._containing(vector, chosen):
                others = tuple(at for at, level in enumerate(marginal.levels) if level not in chosen)
                summed = marginal.table.sum(axis=others, dtype=np.int64)
                found = found + summed / (np.longdouble(variance) * (1 if marginal.centred else rows))
                self.work += 2.0 * rows
            self._tables[vector, chosen] = found
        return found


def _subsets(chosen: frozenset[int]) -> Iterator[frozenset[int]]:
    members = sorted(chosen)
    for bits in range(1 << len(members)):
        yield frozenset(level for at, level in enumerate(members) if bits >> at & 1)


def _random_prime() -> int:
    """A random prime of 61 bits: no analyst can have chosen weights for it."""
    draw = SystemRandom()
    while not fmpz(candidate := draw.randrange(2**60 + 1, 2**61, 2)).is_prime():
        pass
    return candidate


@lru_cache(maxsize=2**13)
def _products(query: LinearQuery) -> tuple[Product, ...]:
    """The products that sum to a query's primitive query."""
    attributes, found = len(query.domain.attributes), list[Product]()

    def visit(node: Node, level: int, axes: dict[int, Runs]) -> None:
        while level < attributes and len(node.starts) == 1:
            node, level = node.children[0], level + 1
        if len(found) > MOST_PRODUCTS:
            raise BeyondReach
        if level < attributes:
            for at, child in enumerate(node.children):
                weights = np.where(node.which == at, node.weights, 0)
                visit(
                    child,
                    level + 1,
                    {**axes, level: (tuple(node.starts.tolist()), tuple(weights.tolist()))},
                )
        elif node.children:
            found.extend(Product(k, weight, axes) for a, b, weight, _ in node.runs for k in range(a, b))
        else:
            found.append(Product(0, 1, axes))

    if query.root is not None:
        visit(query.root, 0, {})
    return tuple(found)


@lru_cache(maxsize=2**16)
def _overlaps(left: LinearQuery, right: LinearQuery) -> tuple[Overlap, ...]:
    """What each product of one query has in common with each of another, on the same data vector."""
    shape, found = left.domain.shape, []
    for vector, factor, axes in _products(left):
        for other, times, others in _products(right):
            if vector != other:
                continue
            common, rest, over = [], factor * times, 1
            for level in sorted(axes.keys() | others.keys()):
                n = shape[level]
                if level in axes and level in others:
                    means = _sum(axes[level], n) * _sum(others[level], n)
                    common.append((level, n * _dot(axes[level], others[level], n) - means, means))
                    over *= n * n
                else:
                    rest, over = rest * _sum((axes.get(level) or others[level]), n), over * n
            found.append(Overlap(vector, tuple(common), fmpq(rest, over)))
    return tuple(found)


@lru_cache(maxsize=2**14)
def _sum(runs: Runs, size: int) -> int:
    starts, weights = runs
    ends = (*starts[1:], size)
    return sum(w * (end - start) for w, start, end in zip(weights, starts, ends, strict=True))


@lru_cache(maxsize=2**16)
def _dot(left: Runs, right: Runs, size: int) -> int:
    """The inner product of two vectors of weights."""
    edges = sorted({*left[0], *right[0], size})
    total, i, j = 0, 0, 0
    for start, end in pairwise(edges):
        while i + 1 < len(left[0]) and left[0][i + 1] <= start:
            i += 1
        while j + 1 < len(right[0]) and right[0][j + 1] <= start:
            j += 1
        total += left[1][i] * right[1][j] * (end - start)
    return total


def _centred(runs: Runs, size: int) -> NDArray[np.longdouble]:
    """The weight of every cell, less the mean."""
    starts, weights = (np.array(part, dtype=np.int64) for part in runs)
    dense = np.repeat(weights, np.diff(starts, append=size)).astype(np.longdouble)
    return np.asarray(dense - np.longdouble(_sum(runs, size)) / size)
