"""The errors of Seeded Cache and Reconstruct in closed form: plans for tables of any width.

A row that was bought is known from its own measurement and from the seed's marginals, and every other
row from the marginals alone. What rows tell about each other is left out: the error of an answer is at
most the one given here, and nothing is solved.
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
from sharewell.mechanisms.marginal_seed import MarginalPart, MarginalPrior, MarginalSeed
from sharewell.mechanisms.strategy import Strategy
from sharewell.privacy.budget import Budget, Currency
from sharewell.privacy.curator import Curator
from sharewell.privacy.dry_run import DryCurator
from sharewell.query.block import Neighbours, ParallelBlock
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: The most questions of an analyst, and the most numbers of a question, that are looked at.
MOST_QUESTIONS, MOST_NUMBERS = 128, 16


def sampled(questions: Sequence[Question]) -> list[Question]:
    """Some of many questions, and some numbers of each, at even distances."""
    chosen = [questions[at] for at in _evenly(len(questions), MOST_QUESTIONS)]
    return [
        each if isinstance(each, LinearQuery) else _some_numbers(ParallelBlock.of(each))
        for each in chosen
    ]


def _some_numbers(block: ParallelBlock) -> ParallelBlock:
    return block.take(_evenly(len(block), MOST_NUMBERS)) if len(block) > MOST_NUMBERS else block


def _evenly(count: int, most: int) -> list[int]:
    return [at * count // min(count, most) for at in range(min(count, most))]


def as_marginals(seed: Strategy | MarginalSeed) -> MarginalSeed | None:
    """A seed as a set of marginals and parts of them; None where it is something else."""
    if isinstance(seed, MarginalSeed):
        return None if any(part.rows for part in seed.parts) else seed
    levels = range(len(seed.domain.attributes))
    if len(seed.parts) > 1 or seed.domain.measures:
        return None
    [part] = seed.parts
    if any(rows.matrix is not None and not rows.is_total for rows in part):
        return None
    kept = tuple(level for level in levels if part[level].matrix is None)
    return MarginalSeed(seed.domain, (MarginalPart(kept, 0, Fraction(1)),), seed.name)


class SeedErrors:
    """What a seed knows of every query when it is measured at some cost.

    Privacy: costs nothing; no row is read.
    """

    def __init__(self, seed: MarginalSeed, cost: Fraction, curator: Curator) -> None:
        self._seed = seed
        self._cost = cost
        self._prior = MarginalPrior(seed.domain)
        self._known: dict[str, tuple[bool, float]] = {}
        if not cost:
            return
        noise = part_variances(seed, cost, curator)
        for part, size, variance in zip(seed.parts, seed.sizes, noise, strict=True):
            zeros = np.broadcast_to(0.0, size)
            self._prior = self._prior.with_marginal(
                part.mask, part.vector, zeros, variance, centred=part.centred
            )

    def of(self, row: LinearQuery) -> tuple[bool, float]:
        """Whether a primitive query is a row of the seed, and its variance; infinite if it is open."""
        found = self._known.get(row.key)
        if found is None:
            variance = self._prior.variance(row) if self._prior.determines(row) else math.inf
            measured = self._cost > 0 and self._seed.row_of(row) is not None
            found = self._known[row.key] = measured, variance
        return found


def part_variances(seed: MarginalSeed, cost: Fraction, curator: Curator) -> list[float]:
    """The variance of the rows of each part of a seed that is measured at some cost."""
    noise, starts = curator.variances(seed, cost), accumulate(seed.sizes[:-1], initial=0)
    return [float(noise[start]) for start in starts]


@lru_cache(maxsize=2)
def _seed_errors(
    seed: MarginalSeed, cost: Fraction, privacy: Currency, neighbours: Neighbours
) -> SeedErrors:
    """Remembered: several prices are tried with one seed."""
    return SeedErrors(seed, cost, dry_curator(seed.domain, privacy, neighbours))


def dry_curator(domain: Domain, privacy: Currency, neighbours: Neighbours) -> Curator:
    """A curator that only says how much noise a cost buys."""
    one = Budget(privacy, Fraction(1), Fraction(1))
    return DryCurator(DataVector.empty(domain), one, {}, neighbours=neighbours)


def errors_of(
    domain: Domain,
    stream: Sequence[tuple[str, Question]],
    shares: Mapping[str, Fraction],
    *,
    seed: MarginalSeed,
    seed_fraction: Fraction,
    query_budget: Fraction,
    privacy: Currency = "pure",
    neighbours: Neighbours = "add-remove",
) -> list[tuple[float, ...]]:
    """The standard errors of all questions of a stream; those that nothing determines are infinite.

    Privacy: costs nothing; no row is read.
    """
    donated = sum(shares.values(), Fraction(0)) * seed_fraction
    known = _seed_errors(seed, donated, privacy, neighbours)
    curator = dry_curator(domain, privacy, neighbours)
    left = {name: share * (1 - seed_fraction) for name, share in shares.items()}
    bought: dict[str, float] = {}

    def error(query: LinearQuery) -> float:
        if query.is_zero:
            return 0.0
        row = query.primitive
        both = known.of(row)[1], bought.get(row.key, math.inf)
        precision = sum(1 / max(variance, 1e-12) for variance in both)
        return abs(float(query.scale)) / math.sqrt(precision) if precision else math.inf

    found = []
    for analyst, question in stream:
        queries = [question] if isinstance(question, LinearQuery) else list(question)
        rows = {query.primitive.key: query.primitive for query in queries if not query.is_zero}
        fresh = [row for key, row in rows.items() if key not in bought and not known.of(row)[0]]
        if fresh and left[analyst] >= query_budget:
            left[analyst] -= query_budget
            noise = curator.variances(ParallelBlock(domain, fresh), query_budget).tolist()
            bought.update(zip((row.key for row in fresh), noise, strict=True))
        found.append(tuple(error(query) for query in queries))
    return found


def has_rows_within(domain: Domain, sets: Sequence[Sequence[int]], most: int) -> bool:
    """Whether the marginals over some sets of attributes have at most so many rows."""
    return sum(math.prod(domain.shape[level] for level in each) for each in sets) <= most
