"""From a workload to a seed: which rows to measure, each for which part of a donation.

A plan gives the questions of a workload the least total variance. Every question counts once: the
variance of a table is the mean over its rows. A query's weights split into one part for every set U of
attributes (see `marginal_seed.py`). Under zCDP each part is measured alone, by rows that are centred
along U. With g_U the square of the workload in part U over the number of cells, and c_U
the squared sensitivity of the rows over their number, the total variance at a price w_U for each part is

    sum over U of c_U g_U / (2 w_U),   least for w_U in proportion to sqrt(c_U g_U).

No strategy does better where the workload treats the cells of every attribute alike, as tables do.
Ranges and prefixes do not. On few cells, attributes with such questions are *ordered*: g_U is then a
Gram matrix over their cells, and the rows along them are those of `best_union`.

With Laplace noise, centred rows are too sensitive: there the parts are weighted marginals
(`best_amounts`), or the p-Identity strategy of every attribute.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from sharewell.mechanisms.kronecker import written_out
from sharewell.mechanisms.marginal_seed import MarginalPart, submasks
from sharewell.mechanisms.optimization import (
    best_amounts,
    best_matrix,
    best_union,
    largest_square,
    least_alike,
    p_identity,
    still_covering,
    unit_gram,
)
from sharewell.mechanisms.strategy import Rows
from sharewell.mechanisms.workload_terms import (
    Question,
    Term,
    Vector,
    default_squares,
    default_terms,
    largest_weights,
    levels_of,
    parts_of,
    squares_of,
    terms_of,
)
from sharewell.privacy.budget import Currency
from sharewell.privacy.kronecker import KroneckerProduct, Matrix
from sharewell.query.block import Neighbours
from sharewell.query.diagram import MAX_WEIGHT
from sharewell.query.domain import Domain

#: Parts with weights that sum to 1.
Plan = tuple[MarginalPart, ...]

#: The part of a plan for expected questions that goes to the default workload: it bounds the loss on
#: questions that were not expected.
FLOOR = Fraction(1, 10)
#: The most rows and parts of one plan; larger parts are left to be bought.
MOST_ROWS, MOST_PARTS = 250_000, 4_000
#: The most cells with ordered attributes, of one of those, and of all; and what they must bring.
MOST_CELLS, MOST_ORDERED, MOST_TOGETHER, LEAST_GAIN = 4096, 256, 1024, 0.95
#: What every cell gets where some attribute is ordered, so that nothing is left undetermined.
CELLS = Fraction(1, 100)
#: Weights are multiples of one over this.
GRID = 2**24
#: p-Identity rows are rounded to so many bits.
GRID_BITS = 12


def plan_seed(
    domain: Domain, questions: Iterable[Question], currency: Currency, neighbours: Neighbours
) -> Plan:
    """The plan for some questions, with a floor for those that are not expected, or for default ones.

    Privacy: depends on public things alone, and costs nothing.
    """
    # On small matrices threads cost more than they save, fifty times more where the machine is busy.
    with threadpool_limits(1):
        terms = terms_of(questions)
        if not terms:
            return default_plan(domain, currency, neighbours)
        planner = SeedPlanner(domain, currency, neighbours)
        if currency == "pure":
            # An amount costs more there: precision grows with its square.
            return planner.of_terms(terms, floor=FLOOR**2)
        default = default_plan(domain, currency, neighbours)
        return mixed([(planner.of_terms(terms), 1 - FLOOR), (default, FLOOR)])


@lru_cache(maxsize=4)
def default_plan(domain: Domain, currency: Currency, neighbours: Neighbours) -> Plan:
    """The plan for the default workload. Remembered: it is the floor of every donor's plan."""
    return SeedPlanner(domain, currency, neighbours).of_squares(default_squares(domain, MOST_PARTS))


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
        self._largest = largest_weights(domain)
        self._sensitivities: dict[tuple[tuple[int, ...], int, bool], int] = {}

    def of_terms(self, terms: Sequence[Term], floor: Fraction = Fraction(0)) -> Plan:
        """The plan with the least total variance for a workload.

        With Laplace noise, precision grows with the square of an amount: a floor is then no part of the
        donation, but what the default workload counts in the total variance.
        """
        squares = squares_of(terms)
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
        largest = math.prod(self._shape[at] - 1 for at in levels_of(mask)) * self._largest[vector]
        centred = mask > 0 and largest <= MAX_WEIGHT
        return MarginalPart(tuple(levels_of(mask)), vector, Fraction(1), centred)

    def _cost(self, part: MarginalPart) -> float:
        """c_U: the squared sensitivity, over the number of centred rows, or times that of plain ones."""
        size = math.prod(self._shape[at] for at in part.attributes)
        sensitivity = self._sensitivity(part)
        return sensitivity / size if part.centred or not part.attributes else sensitivity * size

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
        return math.prod(self._shape[at] for at in levels_of(mask))

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
                alike = least_alike(gram)
                least = np.trace(np.linalg.solve(best_matrix(gram), gram)) if alike else 0.0
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
            for mask, square in parts_of(others).items():
                if square and all(self._shape[at] > 1 for at in levels_of(mask)):
                    grams[mask] += factor * square * gram
        parts, weights = list[MarginalPart](), list[float]()
        for mask, gram in grams.items():
            union = best_union(gram, sizes)
            variance = float(
                np.trace(np.linalg.solve(sum(w * unit_gram(rows) for rows, w in union), gram))
            )
            for rows, weight in union:
                part = self._part(mask, dict(zip(ordered, rows, strict=True)))
                alone = self._sensitivity(part) / largest_square(rows) / self._size(mask)
                parts.append(part)
                weights.append(weight * math.sqrt(alone * max(variance, 0.0)))
        every = MarginalPart(tuple(range(len(self._domain.attributes))), 0, Fraction(1))
        return mixed([(_weighted(parts, weights), 1 - CELLS), ((every,), CELLS)])

    def _part(self, mask: int, along: Mapping[int, Rows]) -> MarginalPart:
        """Centred rows along a set of attributes, given rows along others, and sums along the rest."""
        kept = {level: rows for level, rows in along.items() if not rows.is_total}
        levels = tuple(sorted({*levels_of(mask), *kept}))
        if not kept:
            return MarginalPart(levels, 0, Fraction(1), mask > 0)
        return MarginalPart(levels, 0, Fraction(1), False, tuple(kept.get(at) for at in levels))

    # Marginals and p-Identity, with Laplace noise

    def _pure(
        self, terms: Sequence[Term], squares: Mapping[tuple[int, int], float], floor: float
    ) -> Plan:
        """Weighted marginals, or on few cells p-Identity strategies, if those have less variance."""
        if floor:
            default = default_squares(self._domain, MOST_PARTS)
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
        parts = [MarginalPart(tuple(levels_of(mask)), vector, Fraction(1)) for vector, mask in sets]
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

        widths = np.array([len(part.attributes) for part in parts])
        amounts, variance = best_amounts(precision, wanted, widths)
        kept = still_covering(amounts, precision)
        plan = _weighted([parts[at] for at in kept], [float(amounts[at]) for at in kept])
        return plan, variance


def _weighted(parts: Sequence[MarginalPart], weights: Sequence[float]) -> Plan:
    """Parts with weights on a grid that sum to 1, in proportion to these; none is 0."""
    total = sum(weights) or 1.0
    whole = [max(1, math.floor(weight / total * (GRID - len(parts)))) for weight in weights]
    whole[int(np.argmax(weights))] += GRID - sum(whole)
    return tuple(
        part._replace(weight=Fraction(each, GRID)) for part, each in zip(parts, whole, strict=True)
    )
