"""What measured marginals say about every query, in closed form: for tables of any width.

A query's weights split into one part for every set T of attributes: the part that sums to zero along the
attributes of T and is constant along all others. Measuring the marginal over S, with variance v_S for
each of its n_S rows, determines the parts T within S. A part U can also be measured alone, by the n_U
centred rows n_i e_j - 1 along its attributes, with variance v_U. With all cells of an attribute equally
likely, m_i the mean of a query's weights there and cov_i their covariance with another's,

    1 / f_T = sum over measured S containing T of 1 / (v_S n_S), and n_T / v_T if T was measured alone
    K0(q, r) = sum over determined T of f_T * product over T of cov_i * product over others of m_i m'_i

is the covariance of two queries' estimates. T is *open* where it was measured in neither way. What is
left of the queries' inner product, D(q, r), belongs to their open parts, and is a rational number that
is known exactly. Everything is apart for each data vector: the count, and the vectors of the measures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sharewell.cancellation import checked
from sharewell.mechanisms.marginal_seed import MarginalPart, submasks
from sharewell.mechanisms.product_store import REAL, Arithmetic, Modular, ProductStore, squares
from sharewell.mechanisms.products import ProductBatch, batches_of, products_of
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]

#: How many numbers are computed at a time.
MOST_NUMBERS = 2**20


class MeasuredMarginal(NamedTuple):
    """All measurements of one marginal: their precision, and the values weighted by it, summed."""

    precision: float
    weighted: Vector


def _divided(values: Vector, variance: float) -> Vector:
    """Values divided by their variance; the zeros of a dry run are not written out one by one."""
    if values.size and not any(values.strides):
        return np.broadcast_to(np.float64(values.flat[0] / variance), values.shape)
    return np.asarray(values, dtype=np.float64) / variance


class MarginalPrior:
    """What measured marginals say about every query: an estimate, covariances, and what they leave open.

    Queries are primitive. Immutable: `with_marginal` gives a new one. Without any, everything is open.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self._shape = domain.shape
        #: By data vector and set of attributes, one bit each.
        self._measured: dict[tuple[int, int], MeasuredMarginal] = {}
        #: The same for parts that were measured alone, by centred rows.
        self._centred: dict[tuple[int, int], MeasuredMarginal] = {}
        self._contained: dict[tuple[int, int], bool] = {}
        self._factors: dict[tuple[int, int], float] = {}
        self._residuals: dict[tuple[int, int], Vector] = {}
        self._sets: dict[tuple[int, int], dict[int, float]] = {}

    def with_marginal(
        self, mask: int, vector: int, values: Vector, variance: float, *, centred: bool = False
    ) -> MarginalPrior:
        """The prior that knows one more measurement of a marginal, in C order of its attributes.

        Of centred rows there are those of all subsets too, or marginals that contain them: what is
        determined is closed under subsets.
        """
        new = MarginalPrior(self.domain)
        precision, weighted = 1 / variance, _divided(values, variance)
        new._measured, new._centred = dict(self._measured), dict(self._centred)
        same = new._centred if centred and mask else new._measured
        if known := same.get((vector, mask)):
            precision, weighted = known.precision + precision, known.weighted + weighted
        same[vector, mask] = MeasuredMarginal(precision, weighted)
        return new

    @cached_property
    def size(self) -> int:
        """How many rows were measured of all marginals, and of all parts measured alone."""
        measured = (*self._measured.values(), *self._centred.values())
        return sum(each.weighted.size for each in measured)

    def measured_parts(self) -> Iterator[tuple[MarginalPart, float, Vector]]:
        """Every marginal and every part measured alone: its precision, and the values weighted by it."""
        for centred, measured in ((False, self._measured), (True, self._centred)):
            for (vector, mask), (precision, weighted) in measured.items():
                part = MarginalPart(tuple(self._levels(mask)), vector, Fraction(1), centred)
                yield part, precision, weighted

    def measured_row(self, mask: int, vector: int, at: int) -> tuple[float, float] | None:
        """The mean of all measurements of one row of a marginal, and its variance."""
        found = self._measured.get((vector, mask))
        return (float(found.weighted[at]) / found.precision, 1 / found.precision) if found else None

    def determines(self, query: LinearQuery) -> bool:
        """Whether every product of a query is one of a measured marginal: then it has no open part."""
        return all(self._contains(each.vector, each.mentioned) for each in products_of(query))

    def _contains(self, vector: int, mask: int) -> bool:
        """Whether some attributes are within a measured marginal, or were measured alone."""
        found = self._contained.get((vector, mask))
        if found is None:
            found = (vector, mask) in self._centred or any(
                k == vector and not mask & ~s for k, s in self._measured
            )
            self._contained[vector, mask] = found
        return found

    def _levels(self, mask: int) -> list[int]:
        return [at for at in range(mask.bit_length()) if mask >> at & 1]

    def _size(self, mask: int) -> int:
        return math.prod(self._shape[at] for at in self._levels(mask))

    def factor(self, vector: int, mask: int) -> float:
        """The variance f_T of a unit of the part T; infinite where it is open."""
        found = self._factors.get((vector, mask))
        if found is None:
            precision = sum(
                measured.precision / self._size(s)
                for (k, s), measured in self._measured.items()
                if k == vector and not mask & ~s
            )
            if alone := self._centred.get((vector, mask)):
                precision += alone.precision * self._size(mask)
            found = self._factors[vector, mask] = 1 / precision if precision else math.inf
        return found

    def sets(self, vector: int, mentioned: int) -> dict[int, float]:
        """The determined sets within some attributes, each with its factor; closed under subsets."""
        found = self._sets.get((vector, mentioned))
        if found is None:
            within = {s & mentioned for k, s in self._measured if k == vector}
            within |= {s for k, s in self._centred if k == vector and not s & ~mentioned}
            largest = [s for s in within if not any(s != other and not s & ~other for other in within)]
            subsets = {t for s in largest for t in submasks(s)}
            found = self._sets[vector, mentioned] = {t: self.factor(vector, t) for t in sorted(subsets)}
        return found

    def residual(self, vector: int, mask: int) -> Vector:
        """The table h_T: the estimate of the marginal over T, centred along every attribute of it."""
        found = self._residuals.get((vector, mask))
        if found is None:
            total = np.zeros(tuple(self._shape[at] for at in self._levels(mask)))
            for (k, s), measured in self._measured.items():
                if k == vector and not mask & ~s:
                    levels = self._levels(s)
                    table = measured.weighted.reshape([self._shape[at] for at in levels])
                    others = tuple(at for at, level in enumerate(levels) if not mask >> level & 1)
                    total += table.sum(axis=others) / self._size(s)
            if alone := self._centred.get((vector, mask)):
                total = total + alone.weighted.reshape(total.shape)
            for axis in range(total.ndim):
                total = total - total.mean(axis=axis, keepdims=True)
            found = self._residuals[vector, mask] = total * self.factor(vector, mask)
        return found

    def means(self, queries: Sequence[LinearQuery]) -> Vector:
        """The estimates of the queries' determined parts."""
        total = np.zeros(len(queries))
        for batch in batches_of(queries):
            found = np.zeros(len(batch))
            for chosen in self.sets(batch.vector, batch.mentioned):
                found += self._residual_means(batch, chosen)
            places, sums = batch.summed(found * batch.factors)
            total[places] += sums
        return total

    def _residual_means(self, batch: ProductBatch, chosen: int) -> Vector:
        """Every product of a batch times one residual table, and times its means along the others."""
        table, levels = self.residual(batch.vector, chosen), self._levels(chosen)
        others = np.ones(len(batch))
        for level, (axes, which) in batch.axes.items():
            if not chosen >> level & 1:
                others *= np.array([axis.total / axis.size for axis in axes])[which]
        if not levels:
            return others * float(table)
        found = np.empty(len(batch))
        step = max(1, MOST_NUMBERS // max(1, table.size // len(table)))
        for start in range(0, len(batch), step):
            part: Any = None
            for level in levels:
                axes, which = batch.axes[level]
                which = which[start : start + step]
                cells = [axis.cell for axis in axes]
                if part is not None:
                    weights = np.array([axis.dense() for axis in axes])[which]
                    part = np.einsum("pn,pn...->p...", weights, part)
                elif None in cells:
                    weights = np.array([axis.dense() for axis in axes])
                    part = np.einsum("an,n...->a...", weights, table)[which]
                else:
                    part = table[np.array(cells)[which]]
            found[start : start + step] = part
        return found * others

    def variances(self, queries: Sequence[LinearQuery]) -> Vector:
        """K0 of every query with itself."""
        simple, others = _by_products(queries)
        found = np.zeros(len(queries))
        for batch in batches_of([queries[at] for at in simple]):
            sets = self.sets(batch.vector, batch.mentioned)
            _, parts = squares(batch, REAL, self._shape, sets)
            own = sum(sets[chosen] * part for chosen, part in parts.items())
            found[np.array(simple)[batch.query_of]] = own * batch.factors.astype(np.float64) ** 2
        for at in others:
            rows = self.rows()
            rows.append(queries[at])
            found[at] = rows.covariances([queries[at]]).item()
        return found

    def open_squares(self, queries: Sequence[LinearQuery], prime: int) -> Integers:
        """D of every query with itself, over the number of cells, modulo a prime."""
        simple, others = _by_products(queries)
        found = np.zeros(len(queries), dtype=np.int64)
        for batch in batches_of([queries[at] for at in simple]):
            sets = self.sets(batch.vector, batch.mentioned)
            whole, parts = squares(batch, Modular(prime), self._shape, sets)
            rest, factors = (whole - sum(parts.values())) % prime, batch.factors % prime
            found[np.array(simple)[batch.query_of]] = rest * (factors**2 % prime) % prime
        for at in others:
            rows = self.rows([prime])
            rows.append(queries[at])
            found[at] = rows.open_products([queries[at]], 0).item()
        return found

    def rows(self, primes: Sequence[int] = ()) -> MarginalRows:
        """An empty store of rows; their open parts are known modulo each of these primes."""
        return MarginalRows(self, primes)


class MarginalRows:
    """Stored rows, and what each of them has in common with a query. Rows and queries are primitive."""

    def __init__(self, prior: MarginalPrior, primes: Sequence[int] = ()) -> None:
        self._prior = prior
        self._primes = primes
        self._arithmetics: list[Arithmetic] = [REAL, *map(Modular, primes)]
        self._stores: dict[int, ProductStore] = {}
        self.count = 0

    def append(self, row: LinearQuery) -> None:
        """Store one more row."""
        for product in products_of(row):
            if product.vector not in self._stores:
                self._stores[product.vector] = ProductStore(self._prior.domain.shape, self._arithmetics)
            self._stores[product.vector].append(self.count, product)
        self.count += 1

    def copy(self) -> MarginalRows:
        """A copy that grows on its own."""
        new = copy(self)
        new._stores = {vector: store.copy() for vector, store in self._stores.items()}
        return new

    def _pairs(self, queries: Sequence[LinearQuery]) -> Iterator[tuple[ProductBatch, ProductStore]]:
        """The products of queries, in parts that have a bounded number of pairs with the stored ones."""
        for batch in batches_of(queries):
            if store := self._stores.get(batch.vector):
                step = max(1, MOST_NUMBERS // store.row_of.count)
                for start in checked(range(0, len(batch), step), 1):
                    yield batch.part(start, start + step), store

    def covariances(self, queries: Sequence[LinearQuery]) -> Vector:
        """K0 of every query with every row: one line for each query."""
        total = np.zeros((len(queries), self.count))
        for batch, store in self._pairs(queries):
            sets = self._prior.sets(batch.vector, batch.mentioned)
            _, parts = store.overlaps(batch, 0, sets)
            if parts:
                found = sum(sets[chosen] * part for chosen, part in parts.items())
                _add(total, batch, store, found * np.outer(batch.factors, store.factors.array * 1.0))
        return total

    def open_products(self, queries: Sequence[LinearQuery], which: int) -> Integers:
        """D of every query with every row, over the number of cells, modulo one of the primes."""
        prime = self._primes[which]
        total = np.zeros((len(queries), self.count), dtype=np.int64)
        for batch, store in self._pairs(queries):
            sets = self._prior.sets(batch.vector, batch.mentioned)
            whole, parts = store.overlaps(batch, 1 + which, sets)
            rest = (whole - sum(parts.values())) % prime
            factors = np.outer(batch.factors % prime, store.factors.array % prime) % prime
            _add(total, batch, store, rest * factors % prime)
        return total % prime


def _add(total: NDArray[Any], batch: ProductBatch, store: ProductStore, values: NDArray[Any]) -> None:
    """Add what pairs of products have in common to what their queries and rows have."""
    rows = store.row_of.array
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    if len(first) < len(rows):
        values = np.add.reduceat(values, first, axis=1)
    places, sums = batch.summed(values)
    total[np.ix_(places, rows[first])] += sums


def _by_products(queries: Sequence[LinearQuery]) -> tuple[list[int], list[int]]:
    """The places of the queries that are one product, and of the others."""
    single = [len(products_of(query)) == 1 for query in queries]
    return [at for at, each in enumerate(single) if each], [
        at for at, each in enumerate(single) if not each
    ]
