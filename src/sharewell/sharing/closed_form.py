"""The errors of Seeded Cache and Reconstruct in closed form: plans for tables of any size.

A row that was bought is known from its own measurement and from the seed, and every other row from the
seed alone. What bought rows tell about each other is left out: the error of an answer is at most the one
given here, and nothing is solved. What a seed knows is computed once: a donation c times as large
divides all its variances by c, or by c^2 with Laplace noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from sharewell.engine.data_vector import DataVector
from sharewell.mechanisms.base import Question
from sharewell.mechanisms.marginal_prior import MarginalPrior
from sharewell.mechanisms.marginal_seed import MarginalSeed
from sharewell.mechanisms.measurements import Measurements
from sharewell.mechanisms.strategy import Strategy
from sharewell.privacy.budget import Budget, Currency
from sharewell.privacy.curator import Curator
from sharewell.privacy.dry_run import DryCurator
from sharewell.query.block import Block, Neighbours, ParallelBlock
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: The most questions of all analysts, and the most numbers of a question, that are looked at.
MOST_QUESTIONS, MOST_NUMBERS = 160, 8
#: The donation for which what a seed knows is computed.
REFERENCE = Fraction(1, 1000)


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
        noise = curator.variances(seed, REFERENCE)
        if isinstance(seed, MarginalSeed):
            known.observe_parts(seed, np.broadcast_to(0.0, len(seed)), noise)
        else:
            known.observe_strategy(seed, np.broadcast_to(0.0, len(seed)), float(noise[0]))
        self._prior, rows = known.prior()
        #: Whether the rows leave something open without a closed form.
        self._unknown = rows is not None
        self._known: dict[str, tuple[bool, float]] = {}

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


def part_variances(seed: MarginalSeed, cost: Fraction, curator: Curator) -> list[float]:
    """The variance of the rows of each part of a seed that is measured at some cost."""
    noise, starts = curator.variances(seed, cost), accumulate(seed.sizes[:-1], initial=0)
    return [float(noise[start]) for start in starts]


@lru_cache(maxsize=4)
def _seed_errors(
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
    known = _seed_errors(seed, privacy, neighbours, max_rows_per_person)
    factor = known.factor(sum(shares.values(), Fraction(0)) * seed_fraction)
    curator = dry_curator(domain, privacy, neighbours, max_rows_per_person)
    paid = {name: int(share * (1 - seed_fraction) / query_budget) for name, share in shares.items()}
    left = {name: count * (sample or {}).get(name, 1.0) for name, count in paid.items()}
    bought: dict[str, float] = {}
    seeded = math.isfinite(factor)

    def error(query: LinearQuery) -> float:
        if query.is_zero:
            return 0.0
        row = query.primitive
        both = factor * known.of(row)[1], bought.get(row.key, math.inf)
        precision = sum(1 / max(variance, 1e-12) for variance in both)
        return abs(float(query.scale)) / math.sqrt(precision) if precision else math.inf

    found = []
    for analyst, question in stream:
        queries = [question] if isinstance(question, LinearQuery) else list(question)
        rows = {query.primitive.key: query.primitive for query in queries if not query.is_zero}
        free = {key for key, row in rows.items() if seeded and known.of(row)[0]}
        fresh = [row for key, row in rows.items() if key not in bought and key not in free]
        if fresh and left[analyst] >= 0.5:
            left[analyst] -= 1
            noise = curator.variances(ParallelBlock(domain, fresh), query_budget).tolist()
            bought.update(zip((row.key for row in fresh), noise, strict=True))
        found.append(tuple(error(query) for query in queries))
    return found


def has_rows_within(domain: Domain, sets: Sequence[Sequence[int]], most: int) -> bool:
    """Whether the marginals over some sets of attributes have at most so many rows."""
    return sum(math.prod(domain.shape[level] for level in each) for each in sets) <= most
