"""The errors of Seeded Cache and Reconstruct in closed form: plans for tables of any size.

A row that was bought is known from its own measurement and from the seed, and every other row from the
seed alone. What bought rows tell about each other is left out: the error of an answer is at most the one
given here, and nothing is solved. What a seed knows is computed once: a donation c times as large
divides all its variances by c, or by c^2 with Laplace noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharewell.engine.data_vector import DataVector
from sharewell.mechanisms.base import Question
from sharewell.mechanisms.marginal_prior import MarginalPrior
from sharewell.mechanisms.marginal_seed import MarginalPart, MarginalSeed
from sharewell.mechanisms.measurements import Measurements
from sharewell.mechanisms.strategy import Strategy
from sharewell.privacy.budget import Budget, Currency
from sharewell.privacy.curator import Curator
from sharewell.privacy.dry_run import DryCurator
from sharewell.privacy.kronecker import ComposedRows
from sharewell.query.block import Block, Measurable, Neighbours, ParallelBlock
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: The most questions of all analysts, and the most numbers of a question, that are looked at.
MOST_QUESTIONS, MOST_NUMBERS = 160, 8
#: The cost for which variances are computed; so large that no scale passes its limit.
REFERENCE = Fraction(10**9)
#: No variance is taken for less.
LEAST_VARIANCE = 1e-12


def sampled(questions: Sequence[Question], most: int = MOST_QUESTIONS) -> list[Question]:
    """Some of many questions, and some numbers of each, at even distances."""
    chosen = [questions[at] for at in _evenly(len(questions), most)]
    return [
        each if isinstance(each, LinearQuery) else _some_numbers(_ByIdentity(each)) for each in chosen
    ]


class _ByIdentity:
    """A block as a key: to compare two blocks would make all their rows."""

    def __init__(self, block: Block) -> None:
        self.block = block

    def __hash__(self) -> int:
        return id(self.block)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and other.block is self.block


@lru_cache(maxsize=4 * MOST_QUESTIONS)
def _some_numbers(asked: _ByIdentity) -> ParallelBlock:
    """Remembered: several analysts, or several plans, may have the same question."""
    block = ParallelBlock.of(asked.block)
    return block.take(_evenly(len(block), MOST_NUMBERS)) if len(block) > MOST_NUMBERS else block


def _evenly(count: int, most: int) -> list[int]:
    return [at * count // min(count, most) for at in range(min(count, most))]


class SeedErrors:
    """What a seed knows of every query when it is measured for the REFERENCE.

    Privacy: costs nothing; no row is read.
    """

    def __init__(self, seed: Strategy | MarginalSeed, curator: Curator) -> None:
        self._seed = seed
        self._curator = curator
        known = Measurements(seed)
        noise = _reference_variances(seed, curator)
        if isinstance(seed, MarginalSeed):
            known.observe_parts(seed, np.broadcast_to(0.0, len(seed)), noise)
        else:
            known.observe_strategy(seed, np.broadcast_to(0.0, len(seed)), float(noise[0]))
        self._prior, rows = known.prior()
        #: Whether the rows leave something open without a closed form.
        self._unknown = rows is not None
        self._known: dict[str, tuple[bool, float]] = {}
        self._alone: dict[tuple[str, ...], NDArray[np.float64]] = {}

    def alone(self, rows: Sequence[LinearQuery]) -> NDArray[np.float64]:
        """The variances of primitive queries that are measured together for the REFERENCE."""
        key = tuple(row.key for row in rows)
        if key not in self._alone:
            block = ParallelBlock(self._curator.domain, rows)
            self._alone[key] = _reference_variances(block, self._curator)
        return self._alone[key]

    def of(self, row: LinearQuery) -> tuple[bool, float]:
        """Whether a primitive query is a row of the seed, and its variance; infinite if it is open."""
        found = self._known.get(row.key)
        if found is None:
            is_open = self._unknown or (
                isinstance(self._prior, MarginalPrior) and not self._prior.determines(row)
            )
            variance = math.inf if is_open else self._prior.variances([row]).item()
            found = self._known[row.key] = self._seed.row_of(row) is not None, variance
        return found

    def factor(self, cost: Fraction) -> float:
        """By how much all variances differ from those for the REFERENCE; infinite for no cost."""
        if not cost:
            return math.inf
        ratio = float(REFERENCE / cost)
        return ratio if self._curator.budget.currency == "zcdp" else ratio**2


def _reference_variances(rows: Measurable, curator: Curator) -> NDArray[np.float64]:
    """The variances of rows measured for the REFERENCE, as if noise were continuous.

    That of whole-number noise does not follow the cost where its scale is far below 1.
    """
    if isinstance(rows, MarginalSeed):
        scales = np.repeat(part_scales(rows, REFERENCE, curator), rows.sizes)
    else:
        scales = curator.scales(rows, REFERENCE)
    return np.asarray((2 if curator.budget.currency == "pure" else 1) * scales**2)


def part_scales(seed: MarginalSeed, cost: Fraction, curator: Curator) -> list[float]:
    """The noise scale of each part of a seed at some cost; refused where one passes its limit.

    The kernel is asked once for each kind of part: with many columns there are few kinds.
    """
    least: dict[tuple[Any, ...], MarginalPart] = {}
    kinds = [seed.kind_of(part) for part in seed.parts]
    for kind, part in zip(kinds, seed.parts, strict=True):
        if kind not in least or part.weight < least[kind].weight:
            least[kind] = part
    few = [(seed.factors_of(part), part.weight) for part in least.values()]
    asked = ComposedRows(seed.domain, few, seed.name)
    starts = accumulate((len(part) for part, _ in asked.parts[:-1]), initial=0)
    scales = dict(zip(least, curator.scales(asked, cost)[list(starts)].tolist(), strict=True))
    power = 1 if curator.budget.currency == "pure" else 0.5
    return [
        scales[kind] * float(least[kind].weight / part.weight) ** power
        for kind, part in zip(kinds, seed.parts, strict=True)
    ]


def part_variances(seed: MarginalSeed, cost: Fraction, curator: Curator) -> list[float]:
    """The variance of the rows of each part of a seed that is measured at some cost."""
    noise, starts = curator.variances(seed, cost), accumulate(seed.sizes[:-1], initial=0)
    return [float(noise[start]) for start in starts]


@lru_cache(maxsize=4)
def seed_errors(
    seed: Strategy | MarginalSeed, privacy: Currency, neighbours: Neighbours, most: int
) -> SeedErrors:
    """Remembered: several fractions and prices are tried with one seed."""
    return SeedErrors(seed, dry_curator(seed.domain, privacy, neighbours, most))


def dry_curator(
    domain: Domain, privacy: Currency, neighbours: Neighbours, max_rows_per_person: int = 1
) -> Curator:
    """A curator that only says how much noise a cost buys."""
    one = Budget(privacy, Fraction(1), Fraction(1))
    empty = DataVector.empty(domain, max_rows_per_person)
    return DryCurator(empty, one, {}, neighbours=neighbours)


def errors_of(
    domain: Domain,
    stream: Sequence[tuple[str, Question]],
    shares: Mapping[str, Fraction],
    *,
    seed: Strategy | MarginalSeed,
    seed_fraction: Fraction,
    query_budget: Fraction,
    privacy: Currency = "pure",
    neighbours: Neighbours = "add-remove",
    max_rows_per_person: int = 1,
    sample: Mapping[str, float] | None = None,
) -> list[tuple[float, ...]]:
    """The standard errors of all questions of a stream; those that nothing determines are infinite.

    `sample` says which part of an analyst's questions the stream has: they pay for the same part of what
    they can pay for.

    Privacy: costs nothing; no row is read.
    """
    known = seed_errors(seed, privacy, neighbours, max_rows_per_person)
    factor = known.factor(sum(shares.values(), Fraction(0)) * seed_fraction)
    price = known.factor(query_budget)
    paid = {name: int(share * (1 - seed_fraction) / query_budget) for name, share in shares.items()}
    left = {name: count * (sample or {}).get(name, 1.0) for name, count in paid.items()}
    bought: dict[str, float] = {}
    seeded = math.isfinite(factor)

    def error(query: LinearQuery) -> float:
        if query.is_zero:
            return 0.0
        row = query.primitive
        both = factor * known.of(row)[1], bought.get(row.key, math.inf)
        precision = sum(1 / max(variance, LEAST_VARIANCE) for variance in both)
        return abs(float(query.scale)) / math.sqrt(precision) if precision else math.inf

    found = []
    for analyst, question in stream:
        queries = [question] if isinstance(question, LinearQuery) else list(question)
        rows = {query.primitive.key: query.primitive for query in queries if not query.is_zero}
        free = {key for key, row in rows.items() if seeded and known.of(row)[0]}
        fresh = [row for key, row in rows.items() if key not in bought and key not in free]
        if fresh and left[analyst] >= 0.5:
            left[analyst] -= 1
            noise = price * known.alone(fresh)
            bought.update(zip((row.key for row in fresh), noise.tolist(), strict=True))
        found.append(tuple(error(query) for query in queries))
    return found


class FirstOffers:
    """The errors of first answers under a seed, in rows: free ones, and those that are paid for.

    Of a single cell, of all rows, and of some questions. Privacy: costs nothing; no row is read.
    """

    def __init__(self, domain: Domain, known: SeedErrors, questions: Iterable[Question]) -> None:
        self._known = known
        cell = LinearQuery.cell(domain, domain.vectors * (domain.cells // 2))
        groups = ([cell], [LinearQuery.all(domain)], list(questions))
        #: For each group, the variances for the REFERENCE of all its numbers: free, and paid for alone.
        self._groups = [_first_variances(group, known) for group in groups]

    def errors(self, donation: Fraction, price: Fraction) -> list[tuple[float, float]]:
        """The root mean square error of each group's answers, free and paid; a price of 0 is none."""
        found = []
        for free, alone in self._groups:
            seeded = free * self._known.factor(donation) if donation else np.full_like(free, math.inf)
            with np.errstate(divide="ignore"):
                paid = 1 / (1 / seeded + 1 / (alone * self._known.factor(price)))
            if len(free):
                found.append((math.sqrt(float(seeded.mean())), math.sqrt(float(paid.mean()))))
        return found


def _first_variances(
    questions: Iterable[Question], known: SeedErrors
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The variances, in rows, of the numbers of some questions: from the seed, and measured alone."""
    free, alone = list[float](), list[float]()
    for question in questions:
        queries = [question] if isinstance(question, LinearQuery) else list(question)
        queries = [query for query in queries if not query.is_zero]
        rows = {query.primitive.key: query.primitive for query in queries}
        fresh = [row for row in rows.values() if not known.of(row)[0]]
        noise = known.alone(fresh).tolist() if fresh else ()
        bought = dict(zip((row.key for row in fresh), noise, strict=True))
        for query in queries:
            row, unit = query.primitive, (float(query.scale) / (float(query.max_abs) or 1.0)) ** 2
            free.append(unit * known.of(row)[1])
            alone.append(unit * float(bought.get(row.key, math.inf)))
    return np.array(free), np.array(alone)


def has_rows_within(domain: Domain, sets: Sequence[Sequence[int]], most: int) -> bool:
    """Whether the marginals over some sets of attributes have at most so many rows."""
    return sum(math.prod(domain.shape[level] for level in each) for each in sets) <= most
