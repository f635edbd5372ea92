"""From a workload to a seed: which rows to measure, each for which part of a donation.

A plan gives the questions of a workload the least total variance. Every question counts once: the
variance of a table is the mean over its rows. A query's weights split into one part for every set U of
attributes (see `marginal_seed.py`). Under zCDP each part is measured alone, by rows that are centred
along U. With g_U the square of the workload in part U over the number of cells, and c_U
the squared sensitivity of the rows over their number, the total variance at a price w_U for each part is

    sum over U of c_U g_U / (2 w_U),   least for w_U in proportion to sqrt(c_U g_U).

No strategy does better where the workload treats the cells of every attribute alike, as tables do.
Ranges and prefixes do not. On few cells, attributes with such questions are *ordered*: g_U is then a
Gram matrix over their cells, and the rows along them are those of the matrix X with unit diagonal for
which tr(G_U X^-1) is least (Li, Miklau, Hay, McGregor and Rastogi, 2015; the descent is on X = C C').

With Laplace noise, centred rows are too sensitive: there the parts are weighted marginals, or the
p-Identity strategy of every attribute.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from sharewell.mechanisms.kronecker import written_out
from sharewell.mechanisms.marginal_seed import MarginalPart, submasks
from sharewell.mechanisms.p_identity import p_identity
from sharewell.mechanisms.products import QueryProduct, products_of
from sharewell.mechanisms.strategy import Rows
from sharewell.privacy.budget import Currency
from sharewell.privacy.kronecker import KroneckerProduct, Matrix
from sharewell.query.block import Block, GroupedBlock, Neighbours
from sharewell.query.diagram import MAX_WEIGHT
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]
Question = LinearQuery | Block
Item = TypeVar("Item")
#: Parts with weights that sum to 1.
Plan = tuple[MarginalPart, ...]

#: The part of a plan for expected questions that goes to the default workload: it bounds the loss on
#: questions that were not expected.
FLOOR = Fraction(1, 10)
#: The tables of the default workload have at most so many cells.
MOST_TABLE_CELLS = 10_000
#: The most rows and parts of one plan; larger parts are left to be bought.
MOST_ROWS, MOST_PARTS = 250_000, 4_000
#: Of a workload the most queries that are looked at one by one, and of a query the most products.
MOST_QUERIES, MOST_PRODUCTS = 4_096, 16
#: A query about more attributes at a time has too many parts.
MOST_MENTIONED = 10
#: The most cells with ordered attributes, of one of those, and of all; and what they must bring.
MOST_CELLS, MOST_ORDERED, MOST_TOGETHER, LEAST_GAIN = 4096, 256, 1024, 0.95
#: What every cell gets where some attribute is ordered, so that nothing is left undetermined.
CELLS = Fraction(1, 100)
#: Weights are multiples of one over this.
GRID = 2**24
#: Rows along ordered attributes are rounded to so many bits.
BITS, GRID_BITS = 8, 12
#: What is added to Gram matrices so that no direction is free, and rounds of weights for unions.
RIDGE, ROUNDS = 1e-3, 12
#: Amounts differ at most by a factor of e to this.
LARGEST_LOG = 100.0
#: A part with a smaller fraction is not worth measuring where others tell the same.
LEAST_AMOUNT = 1e-4


# What a workload asks


class Along(NamedTuple):
    """What a question asks along one attribute: two weights of every cell for each of its queries.

    They are the same, but for a query that is a sum of products, where each meets each.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]

    @property
    def moments(self) -> tuple[float, float]:
        """With all cells equally likely: the weights' covariances, and products of means, summed."""
        size = self.left.shape[1]
        means = float((self.left.sum(axis=1) / size) @ (self.right.sum(axis=1) / size))
        return float((self.left.astype(np.float64) * self.right).sum()) / size - means, means

    @property
    def gram(self) -> Vector:
        """The sum of the weights' outer products, made symmetric."""
        product = self.left.astype(np.float64).T @ self.right
        return np.asarray(product + product.T) / 2


class Term(NamedTuple):
    """Queries of one data vector that are products: a factor, and what they ask along attributes."""

    vector: int
    factor: float
    axes: Mapping[int, Along]


def terms_of(questions: Iterable[Question]) -> list[Term]:
    """What a workload asks. Every question counts once, and all its rows alike, however many it has.

    Of very many queries that are no tables, some of every question are looked at, at even distances.
    """
    found, listed = list[Term](), list[Sequence[LinearQuery]]()
    for question in questions:
        table = _of_table(question) if isinstance(question, GroupedBlock) else None
        if table is not None:
            found.append(table)
        else:
            listed.append([question] if isinstance(question, LinearQuery) else question.queries)
    chosen = evenly(listed, MOST_QUERIES)
    most = MOST_QUERIES
    while sum(min(len(queries), most) for queries in chosen) > MOST_QUERIES:
        most //= 2
    for queries in chosen:
        some = evenly(queries, most)
        for query in some:
            found += _of_query(query, len(listed) / len(chosen) / len(some))
    return found


def evenly(every: Sequence[Item], most: int) -> Sequence[Item]:
    """Some of very many, at even distances."""
    count = min(len(every), most)
    return [every[at * len(every) // count] for at in range(count)]


def _of_table(block: GroupedBlock) -> Term | None:
    """All rows of a GROUP BY at once, where its base is one product and no group is left out."""
    products = products_of(block.base)
    if len(products) != 1 or not len(block):
        return None
    [product] = products
    axes, full = {level: _same(axis.dense()[None, :]) for level, axis in product.axes.items()}, 1
    for level, groups in block.groups.items():
        own = product.axes.get(level)
        weights = np.ones(len(groups), dtype=np.int64) if own is None else own.dense()
        used = np.unique(groups[weights != 0])
        axes[level] = _same((used[:, None] == groups) * weights)
        full *= len(used)
    if full != len(block):
        return None
    return Term(product.vector, (product.factor * _in_rows(block.base)) ** 2 / len(block), axes)


def _in_rows(query: LinearQuery) -> float:
    """What a unit of a primitive query's error is in rows: of a sum, over its largest weight."""
    return float(query.scale) / (float(query.max_abs) or 1.0)


def _same(weights: NDArray[np.int64]) -> Along:
    return Along(weights, weights)


def _of_query(query: LinearQuery, times: float) -> Iterator[Term]:
    """Every product of a query with every other on the same data vector."""
    products = products_of(query) if not query.is_zero else ()
    if len(products) > MOST_PRODUCTS:
        return
    for one in products:
        for other in products:
            if one.vector == other.vector:
                factor = times * _in_rows(query) ** 2 * one.factor * other.factor
                yield Term(one.vector, factor, _axes(one, other, query.domain.shape))


def _axes(one: QueryProduct, other: QueryProduct, shape: Sequence[int]) -> dict[int, Along]:
    def weights(product: QueryProduct, level: int) -> NDArray[np.int64]:
        axis = product.axes.get(level)
        return (np.ones(shape[level], dtype=np.int64) if axis is None else axis.dense())[None, :]

    return {at: Along(weights(one, at), weights(other, at)) for at in {**one.axes, **other.axes}}


def _default_tables(domain: Domain) -> Iterator[tuple[int, tuple[int, ...], int]]:
    """The default workload: data vectors, with tables by some attributes of so many cells.

    The totals and the tables by one attribute, of counts and sums; the tables of counts by two.
    """
    shape, levels = domain.shape, range(len(domain.attributes))
    for vector in range(domain.vectors):
        for count in (0, 1) if vector else (0, 1, 2):
            for table in combinations(levels, count):
                cells = math.prod(shape[at] for at in table)
                if cells <= MOST_TABLE_CELLS:
                    yield vector, table, cells


def default_squares(domain: Domain) -> dict[tuple[int, int], float]:
    """g_U of the default workload, in closed form.

    A table's rows give each U within it the product of n - 1 along U, over the number of its cells.
    """
    squares: defaultdict[tuple[int, int], float] = defaultdict(float)
    every = range(domain.vectors)
    largest = [max(abs(int(row[at])) for row in domain.row_extremes([at])) or 1 for at in every]
    for vector, table, cells in _default_tables(domain):
        for mask in submasks(sum(1 << at for at in table)):
            square = math.prod(domain.shape[at] - 1 for at in _levels(mask)) / cells**2
            squares[vector, mask] += square / largest[vector] ** 2
    return dict(squares)


def default_terms(domain: Domain) -> list[Term]:
    """The default workload of counts, table by table: the same as `default_squares`."""
    along = [_same(np.eye(n, dtype=np.int64)) for n in domain.shape]
    return [
        Term(0, 1 / cells, {at: along[at] for at in table})
        for vector, table, cells in _default_tables(domain)
        if not vector
    ]


# Plans


def plan_seed(
    domain: Domain, questions: Iterable[Question], currency: Currency, neighbours: Neighbours
) -> Plan:
    """The plan for some questions, with a floor for those that are not expected, or for default ones.

    Privacy: depends on public things alone, and costs nothing.
    """
    # On small matrices threads cost more than they save, fifty times more where the machine is busy.
    with threadpool_limits(1):
        planner = SeedPlanner(domain, currency, neighbours)
        default = planner.of_squares(default_squares(domain))
        terms = terms_of(questions)
        if not terms:
            return default
        if currency == "pure":
            # An amount costs more there: precision grows with its square.
            return planner.of_terms(terms, floor=FLOOR**2)
        return mixed([(planner.of_terms(terms), 1 - FLOOR), (default, FLOOR)])


def mixed(plans: Iterable[tuple[Plan, Fraction]]) -> Plan:
    """One plan that gives each of several its fraction: the same part is measured once."""
    parts: dict[tuple[Any, ...], MarginalPart] = {}
    for plan, fraction in plans:
        for part in plan:
            before = parts[part.key].weight if part.key in parts else Fraction(0)
            parts[part.key] = part._replace(weight=before + fraction * part.weight)
    return tuple(parts.values())


class SeedPlanner:
    """Plans for workloads over one domain, in one currency."""

    def __init__(self, domain: Domain, currency: Currency, neighbours: Neighbours) -> None:
        self._domain = domain
        self._shape = domain.shape
        self._currency = currency
        self._neighbours = neighbours
        self._dense = domain.size <= MOST_CELLS and not domain.measures
        self._sensitivities: dict[tuple[tuple[int, ...], int, bool], int] = {}

    def of_terms(self, terms: Sequence[Term], floor: Fraction = Fraction(0)) -> Plan:
        """The plan with the least total variance for a workload.

        With Laplace noise, precision grows with the square of an amount: a floor is then no part of the
        donation, but what the default workload counts in the total variance.
        """
        squares = self._squares(terms)
        if self._currency == "pure":
            return self._pure(terms, squares, float(floor))
        ordered = self._ordered(terms) if self._dense else ()
        return self._beside_ordered(terms, ordered) if ordered else self.of_squares(squares)

    def of_squares(self, squares: Mapping[tuple[int, int], float]) -> Plan:
        """The plan for a workload of which only the squares g_U count."""
        chosen = self._within_limits(squares)
        if self._currency == "pure":
            return self._marginals(squares, chosen)[0]
        parts = [self._centred(vector, mask) for vector, mask in chosen]
        return _weighted(parts, self._roots(squares, parts))

    def least_variance(self, squares: Mapping[tuple[int, int], float]) -> float:
        """The total variance of a workload at a donation of 1, under its plan."""
        chosen = self._within_limits(squares)
        if self._currency == "pure":
            return self._marginals(squares, chosen)[1]
        parts = [self._centred(vector, mask) for vector, mask in chosen]
        return sum(self._roots(squares, parts)) ** 2 / 2

    def _roots(
        self, squares: Mapping[tuple[int, int], float], parts: Iterable[MarginalPart]
    ) -> list[float]:
        """The root of c_U g_U for each part."""
        return [
            math.sqrt(self._cost(part) * squares.get((part.vector, part.mask), 0.0)) for part in parts
        ]

    def _centred(self, vector: int, mask: int) -> MarginalPart:
        """The part U of a data vector: centred rows, or a plain table where those are too large.

        Weights have a limit, and a sum in fine steps may be near it.
        """
        largest = math.prod(self._shape[at] - 1 for at in _levels(mask)) * self._largest(vector)
        centred = mask > 0 and largest <= MAX_WEIGHT
        return MarginalPart(tuple(_levels(mask)), vector, Fraction(1), centred)

    def _cost(self, part: MarginalPart) -> float:
        """c_U: the squared sensitivity, over the number of centred rows, or times that of plain ones."""
        size = math.prod(self._shape[at] for at in part.attributes)
        sensitivity = self._sensitivity(part)
        return sensitivity / size if part.centred or not part.attributes else sensitivity * size

    def _largest(self, vector: int) -> int:
        """The largest weight of a row in a data vector."""
        return max(abs(int(row[vector])) for row in self._domain.row_extremes([vector])) or 1

    def _squares(self, terms: Iterable[Term]) -> dict[tuple[int, int], float]:
        """g_U of a workload, by data vector and set of attributes."""
        squares: defaultdict[tuple[int, int], float] = defaultdict(float)
        for vector, factor, axes in terms:
            if len(axes) <= MOST_MENTIONED:
                for mask, part in _parts({at: along.moments for at, along in axes.items()}).items():
                    squares[vector, mask] += factor * part
        return {key: max(square, 0.0) for key, square in squares.items()}

    def _within_limits(self, squares: Mapping[tuple[int, int], float]) -> list[tuple[int, int]]:
        """The parts to measure, smallest first, with all their subsets: no more rows than allowed."""
        chosen, rows = dict[tuple[int, int], None](), 0
        several = sum(1 << at for at, n in enumerate(self._shape) if n > 1)
        for _, vector, mask in sorted((self._size(mask), vector, mask) for vector, mask in squares):
            new = {(vector, t): None for t in submasks(mask & several) if (vector, t) not in chosen}
            rows += sum(self._size(t) for _, t in new)
            if rows > MOST_ROWS or len(chosen) + len(new) > MOST_PARTS:
                break
            chosen |= new
        return sorted(chosen) or [(0, 0)]

    def _size(self, mask: int) -> int:
        return math.prod(self._shape[at] for at in _levels(mask))

    def _sensitivity(self, part: MarginalPart) -> int:
        """The sensitivity of a part's rows as the kernel computes it: squared for Gaussian noise.

        Remembered for parts that differ in their attributes alone, and not in the sizes of these.
        """
        if part.rows:
            return self._kernel_sensitivity(part)
        sizes = tuple(sorted(self._shape[at] for at in part.attributes))
        key = sizes, part.vector, part.centred
        if key not in self._sensitivities:
            self._sensitivities[key] = self._kernel_sensitivity(part)
        return self._sensitivities[key]

    def _kernel_sensitivity(self, part: MarginalPart) -> int:
        last = len(self._domain.attributes)
        pairs = zip(part.attributes, part.matrices(self._shape), strict=True)
        factors: dict[int, Matrix] = dict(pairs)
        if self._domain.measures:
            chosen = np.eye(self._domain.vectors, dtype=np.int64)[[part.vector]]
            factors[last] = sp.csr_array(chosen)
        rows = KroneckerProduct(self._domain, factors)
        pure = self._currency == "pure"
        return (rows.l1_sensitivity if pure else rows.l2_sensitivity_squared)(self._neighbours)

    # Ordered attributes, under zCDP

    def _ordered(self, terms: Sequence[Term]) -> tuple[int, ...]:
        """The attributes whose own best rows have less variance than rows that treat cells alike."""
        gains = []
        for level in range(len(self._domain.attributes)):
            if 2 < self._shape[level] <= MOST_ORDERED:
                gram = self._gram(terms, level)
                alike = _least_alike(gram)
                least = np.trace(np.linalg.solve(_least_variance(gram), gram)) if alike else 0.0
                gains += [(float(least) / alike, level)] if least < LEAST_GAIN * alike else []
        chosen, cells = list[int](), 1
        for _, level in sorted(gains):
            if cells * self._shape[level] <= MOST_TOGETHER or not chosen:
                chosen.append(level)
                cells *= self._shape[level]
        return tuple(sorted(chosen))

    def _gram(self, terms: Iterable[Term], level: int) -> Vector:
        """What a workload asks of one attribute, summed over all cells of the others."""
        size = self._shape[level]
        gram = np.zeros((size, size))
        for term in terms:
            others = math.prod(sum(along.moments) for at, along in term.axes.items() if at != level)
            gram += term.factor * others * (term.axes[level].gram if level in term.axes else 1.0)
        return gram

    def _beside_ordered(self, terms: Sequence[Term], ordered: Sequence[int]) -> Plan:
        """Centred rows along all other attributes, each with the best rows along the ordered ones."""
        sizes = [self._shape[level] for level in ordered]
        grams: defaultdict[int, Vector] = defaultdict(lambda: np.zeros((math.prod(sizes),) * 2))
        for _, factor, axes in terms:
            gram = written_out(
                axes[level].gram if level in axes else np.ones((size, size))
                for level, size in zip(ordered, sizes, strict=True)
            )
            others = {at: along.moments for at, along in axes.items() if at not in ordered}
            for mask, square in _parts(others).items():
                if square and all(self._shape[at] > 1 for at in _levels(mask)):
                    grams[mask] += factor * square * gram
        parts, weights = list[MarginalPart](), list[float]()
        for mask, gram in grams.items():
            union = _union(gram, sizes)
            variance = float(np.trace(np.linalg.solve(sum(w * _unit(rows) for rows, w in union), gram)))
            for rows, weight in union:
                part = self._part(mask, dict(zip(ordered, rows, strict=True)))
                alone = self._sensitivity(part) / _largest_square(rows) / self._size(mask)
                parts.append(part)
                weights.append(weight * math.sqrt(alone * max(variance, 0.0)))
        every = MarginalPart(tuple(range(len(self._domain.attributes))), 0, Fraction(1))
        return mixed([(_weighted(parts, weights), 1 - CELLS), ((every,), CELLS)])

    def _part(self, mask: int, along: Mapping[int, Rows]) -> MarginalPart:
        """Centred rows along a set of attributes, given rows along others, and sums along the rest."""
        kept = {level: rows for level, rows in along.items() if not rows.is_total}
        levels = tuple(sorted({*_levels(mask), *kept}))
        if not kept:
            return MarginalPart(levels, 0, Fraction(1), mask > 0)
        return MarginalPart(levels, 0, Fraction(1), False, tuple(kept.get(at) for at in levels))

    # Marginals and p-Identity, with Laplace noise

    def _pure(
        self, terms: Sequence[Term], squares: Mapping[tuple[int, int], float], floor: float
    ) -> Plan:
        """Weighted marginals, or on few cells p-Identity strategies, if those have less variance."""
        if floor:
            default = default_squares(self._domain)
            least = [self._marginals(each, self._within_limits(each))[1] for each in (squares, default)]
            own, other = (1 - floor) / (least[0] or 1.0), floor / (least[1] or 1.0)
            squares = {
                key: own * squares.get(key, 0.0) + other * default.get(key, 0.0)
                for key in {**squares, **default}
            }
            terms = [term._replace(factor=own * term.factor) for term in terms]
            if self._dense:
                terms += [t._replace(factor=other * t.factor) for t in default_terms(self._domain)]
        plan, variance = self._marginals(squares, self._within_limits(squares))
        if not self._dense:
            return plan
        levels = range(len(self._domain.attributes))
        bits = min(GRID_BITS, 30 // len(levels))
        rows = {level: p_identity(self._gram(terms, level), bits) for level in levels}
        part = MarginalPart(tuple(levels), 0, Fraction(1), False, tuple(rows.values()))
        inverses = {level: np.linalg.inv(each.gram) for level, each in rows.items()}
        totals = {level: float(inverse.sum()) for level, inverse in inverses.items()}
        found = sum(
            term.factor
            * math.prod(
                float((term.axes[at].gram * inverses[at]).sum()) if at in term.axes else totals[at]
                for at in levels
            )
            for term in terms
        )
        return (part,) if 2 * self._sensitivity(part) ** 2 * found < variance else plan

    def _marginals(
        self, squares: Mapping[tuple[int, int], float], chosen: Sequence[tuple[int, int]]
    ) -> tuple[Plan, float]:
        """Weighted marginals, and their total variance at a donation of 1.

        A marginal that gets a part `a` of it has variance 2 (s / a)^2. Not convex: the best of several
        starts.
        """
        sets = list(chosen)
        if (whole := (0, (1 << len(self._domain.attributes)) - 1)) not in sets:
            sets += [whole] if self._size(whole[1]) <= MOST_ROWS else []
        parts = [MarginalPart(tuple(_levels(mask)), vector, Fraction(1)) for vector, mask in sets]
        known = {key: at for at, key in enumerate(key for key in chosen if squares.get(key))}
        pairs = [
            (known[vector, t], at, 1 / (2 * self._sensitivity(part) ** 2 * self._size(mask)))
            for at, ((vector, mask), part) in enumerate(zip(sets, parts, strict=True))
            for t in submasks(mask)
            if (vector, t) in known
        ]
        to, of, value = (np.array(each) for each in zip(*pairs, strict=True))
        precision = sp.csr_array((value, (to, of)), shape=(len(known), len(sets)))
        wanted = np.array([squares[key] for key in known])

        def variance(logs: Vector) -> tuple[float, Vector]:
            # An amount never becomes 0, nor does the square of its square.
            amounts = np.exp(np.maximum(logs - logs.max(), -LARGEST_LOG))
            amounts /= amounts.sum()
            known_by = precision @ amounts**2
            slope = -2 * amounts * (precision.T @ (wanted / known_by**2))
            total = float((wanted / known_by).sum())
            return math.log(total), amounts * (slope - slope @ amounts) / total

        widths = np.array([len(part.attributes) for part in parts])
        starts = [np.zeros(len(parts)), *(-4.0 * (widths != width) for width in np.unique(widths)[-4:])]
        found = [minimize(variance, start, jac=True, method="L-BFGS-B") for start in starts]
        best = min(found, key=lambda each: float(each.fun))
        amounts = np.exp(best.x - best.x.max())
        kept = _still_covering(amounts / amounts.sum(), precision)
        plan = _weighted([parts[at] for at in kept], [float(amounts[at]) for at in kept])
        return plan, math.exp(float(best.fun))


def _still_covering(amounts: Vector, precision: sp.csr_array) -> list[int]:
    """The marginals worth measuring: small amounts are left out where others cover the same parts."""
    covers = (precision > 0).astype(np.int64).tocsc()
    count, kept = np.asarray(covers.sum(axis=1)).ravel(), list[int]()
    for at in np.argsort(amounts).tolist():
        own = covers.indices[covers.indptr[at] : covers.indptr[at + 1]]
        if amounts[at] < LEAST_AMOUNT and (count[own] > 1).all():
            count[own] -= 1
        else:
            kept.append(at)
    return sorted(kept)


# Matrices with unit diagonal


def _least_alike(gram: Vector) -> float:
    """The least variance with rows that treat all cells of an attribute alike."""
    size = len(gram)
    square = max(float(gram.sum()) / size**2, 0.0)
    covariance = max(float(np.trace(gram)) / size - square, 0.0)
    return (math.sqrt(square) + math.sqrt((size - 1) * covariance)) ** 2


def _least_variance(gram: Vector) -> Vector:
    """The matrix X with unit diagonal for which tr(G X^-1) is about the least."""
    size = len(gram)
    gram = gram / (np.trace(gram) / size) + RIDGE * np.eye(size)

    def variance(flat: Vector) -> tuple[float, Vector]:
        rows = flat.reshape(size, size)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows / norms
        inverse = np.linalg.inv(rows @ rows.T)
        middle = inverse @ gram @ inverse
        slope = -2 * middle @ rows
        slope -= (slope * rows).sum(axis=1, keepdims=True) * rows
        return float((inverse * gram).sum()), (slope / norms).ravel()

    # The square root of G is optimal but for its diagonal.
    values, vectors = np.linalg.eigh(gram)
    start = (vectors * np.maximum(values, RIDGE) ** 0.25) @ vectors.T
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    found = minimize(variance, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 150})
    rows = found.x.reshape(size, size)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows @ rows.T)


def _union(gram: Vector, sizes: Sequence[int]) -> list[tuple[tuple[Rows, ...], float]]:
    """Rows along ordered attributes, with weights that sum to 1, for the least tr(G X^-1).

    For one attribute, those of the best matrix. For several, a weighted union of Kronecker products of
    sums, cells and each attribute's own best rows: each weight is multiplied by the root of what more of
    its product would gain, over and over (a fixed point of that is optimal).
    """
    if len(sizes) == 1:
        return [((_rounded(_least_variance(gram)),), 1.0)]
    tensor = gram.reshape(*sizes, *sizes)
    own = []
    for level, size in enumerate(sizes):
        moved = np.moveaxis(tensor, (level, len(sizes) + level), (0, 1)).reshape(size, size, -1)
        rest = math.isqrt(moved.shape[2])
        traced = np.trace(moved.reshape(size, size, rest, rest), axis1=2, axis2=3)
        total = Rows(size, sp.csr_array(np.ones((1, size), dtype=np.int64)))
        own.append([total, Rows(size), _rounded(_least_variance(traced))])
    products = list(itertools.product(*own))
    weights = np.full(len(products), 1 / len(products))
    units = [_unit(rows) for rows in products]
    for _ in range(ROUNDS):
        inverse = np.linalg.inv(sum(w * unit for w, unit in zip(weights, units, strict=True)))
        gains = inverse @ gram @ inverse
        weights *= np.sqrt([max(float((gains * unit).sum()), 0.0) for unit in units])
        weights /= weights.sum()
    chosen = [(r, float(w)) for r, w in zip(products, weights, strict=True) if w > LEAST_AMOUNT]
    return [(rows, weight / sum(w for _, w in chosen)) for rows, weight in chosen]


def _rounded(matrix: Vector) -> Rows:
    """Whole-number rows whose Gram matrix is about a multiple of a matrix with unit diagonal."""
    root = np.linalg.cholesky(matrix).T
    whole = np.rint(root * 2**BITS).astype(np.int64)
    return Rows(len(matrix), sp.csr_array(whole[whole.any(axis=1)]))


def _unit(rows: Sequence[Rows]) -> Vector:
    """The Gram matrix of a Kronecker product of rows, divided by its largest diagonal entry."""
    return written_out(each.gram for each in rows) / _largest_square(rows)


def _largest_square(rows: Sequence[Rows]) -> int:
    return math.prod(int(each.norms(2).max()) for each in rows)


# Weights and sets


def _weighted(parts: Sequence[MarginalPart], weights: Sequence[float]) -> Plan:
    """Parts with weights on a grid that sum to 1, in proportion to these; none is 0."""
    total = sum(weights) or 1.0
    whole = [max(1, math.floor(weight / total * (GRID - len(parts)))) for weight in weights]
    whole[int(np.argmax(weights))] += GRID - sum(whole)
    return tuple(
        part._replace(weight=Fraction(each, GRID)) for part, each in zip(parts, whole, strict=True)
    )


def _parts(moments: Mapping[int, tuple[float, float]]) -> dict[int, float]:
    """The product of covariances along each set of attributes, and of squared means along the others."""
    found = {0: 1.0}
    for level, (covariance, square) in moments.items():
        found = {
            mask | bit: part * factor
            for mask, part in found.items()
            for bit, factor in ((0, square), (1 << level, covariance))
        }
    return found


def _levels(mask: int) -> list[int]:
    """The attributes of a set, lowest first."""
    levels = []
    while mask:
        lowest = mask & -mask
        levels.append(lowest.bit_length() - 1)
        mask ^= lowest
    return levels
