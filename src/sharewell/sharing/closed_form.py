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
from typing import Any, NamedTuple

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


class KnownNumbers(NamedTuple):
    """What is known of a question's numbers from a seed, and from a measurement of their own.

    Both are measured for the REFERENCE. Numbers that count no cell are left out: they are public.
    """

    #: How many numbers there are, and the places of those that are not left out.
    numbers: int
    places: list[int]
    #: The rows that the numbers are multiples of, which of them are seed rows, and the multiples.
    rows: tuple[str, ...]
    is_seed_row: NDArray[np.bool_]
    scales: NDArray[np.float64]
    #: The same over the largest weight: errors of sums are counted in rows.
    in_rows: NDArray[np.float64]
    #: The variances of the rows: those from the seed are infinite where it leaves them open.
    seeded: NDArray[np.float64]
    alone: NDArray[np.float64]


class SeedErrors:
    """What a seed knows of every question when it is measured for the REFERENCE.

    Privacy: costs nothing; no row is read.
    """

    def __init__(self, seed: Strategy | MarginalSeed, curator: Curator) -> None:
        self._seed = seed
        self._domain = curator.domain
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
        #: By the identity of the question, which is kept.
        self._known: dict[int, tuple[Question, KnownNumbers]] = {}

    def of(self, question: Question) -> KnownNumbers:
        """What is known of a question's numbers; remembered."""
        if id(question) not in self._known:
            self._known[id(question)] = question, self._of(question)
        return self._known[id(question)][1]

    def _of(self, question: Question) -> KnownNumbers:
        asked = Block(self._domain, [question]) if isinstance(question, LinearQuery) else question
        if not isinstance(asked, ParallelBlock):
            asked = ParallelBlock(self._domain, asked.queries)
        block, places = asked.filled
        rows = block.primitive
        seeded = np.full(len(rows), math.inf)
        if closed := [at for at, row in enumerate(rows) if not self._is_open(row)]:
            seeded[closed] = self._prior.variances([rows[at] for at in closed])
        return KnownNumbers(
            len(asked),
            list(places),
            tuple(row.key for row in rows),
            np.array([self._seed.row_of(row) is not None for row in rows], dtype=bool),
            np.array([abs(float(query.scale)) for query in block]),
            np.array([abs(float(query.scale)) / float(query.max_abs) for query in block]),
            seeded,
            _reference_variances(rows, self._curator) if len(rows) else np.zeros(0),
        )

    def _is_open(self, row: LinearQuery) -> bool:
        return self._unknown or (
            isinstance(self._prior, MarginalPrior) and not self._prior.determines(row)
        )

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
) -> list[NDArray[np.float64]]:
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
    is_seeded, found = math.isfinite(factor), []
    for analyst, question in stream:
        asked = known.of(question)
        not_free = ~asked.is_seed_row if is_seeded else np.ones_like(asked.is_seed_row)
        fresh = [at for at in np.flatnonzero(not_free).tolist() if asked.rows[at] not in bought]
        if fresh and left[analyst] >= 0.5:
            left[analyst] -= 1
            bought |= {asked.rows[at]: price * float(asked.alone[at]) for at in fresh}
        own = np.array([bought.get(row, math.inf) for row in asked.rows])
        found.append(np.zeros(asked.numbers))
        found[-1][asked.places] = asked.scales * np.sqrt(_together(factor * asked.seeded, own))
    return found


def _together(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """The variances of what is known from two independent estimates."""
    with np.errstate(divide="ignore"):
        return np.asarray(1 / (1 / np.fmax(one, LEAST_VARIANCE) + 1 / np.fmax(other, LEAST_VARIANCE)))


class FirstOffers:
    """The errors of first answers under a seed, in rows: free ones, and those that are paid for.

    Of a single cell, of all rows, and of some questions. Privacy: costs nothing; no row is read.
    """

    def __init__(self, domain: Domain, known: SeedErrors, questions: Iterable[Question]) -> None:
        self._known = known
        cell = LinearQuery.cell(domain, domain.vectors * (domain.cells // 2))
        groups = ([cell], [LinearQuery.all(domain)], questions)
        #: For each group, the variances for the REFERENCE of all its numbers: free, and paid for alone.
        self._groups = [_first_variances(map(known.of, group)) for group in groups]

    def errors(self, donation: Fraction, price: Fraction) -> list[tuple[float, float]]:
        """The root mean square error of each group's answers, free and paid; a price of 0 is none."""
        found = []
        for free, alone in self._groups:
            seeded = free * self._known.factor(donation) if donation else np.full_like(free, math.inf)
            paid = _together(seeded, alone * self._known.factor(price))
            if len(free):
                found.append((math.sqrt(float(seeded.mean())), math.sqrt(float(paid.mean()))))
        return found


def _first_variances(
    questions: Iterable[KnownNumbers],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The variances, in rows, of the numbers of some questions: from the seed, and measured alone."""
    free, alone = [np.zeros(0)], [np.zeros(0)]
    for asked in questions:
        free.append(asked.in_rows**2 * asked.seeded)
        # A row of the seed is not for sale.
        alone.append(asked.in_rows**2 * np.where(asked.is_seed_row, math.inf, asked.alone))
    return np.concatenate(free), np.concatenate(alone)


def has_rows_within(domain: Domain, sets: Sequence[Sequence[int]], most: int) -> bool:
    """Whether the marginals over some sets of attributes have at most so many rows."""
    return sum(math.prod(domain.shape[level] for level in each) for each in sets) <= most
