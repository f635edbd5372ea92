"""The errors of Seeded Cache and Reconstruct in closed form: plans for tables of any width.

A row that was bought is known from its own measurement and from the seed's marginals, and every other
row from the marginals alone. What rows tell about each other is left out: the error of an answer is at
most the one given here, and nothing is solved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from sharewell.engine.data_vector import DataVector
from sharewell.mechanisms.base import Question
from sharewell.mechanisms.marginal_seed import MarginalPart, MarginalPrior, MarginalSeed
from sharewell.mechanisms.strategy import Strategy
from sharewell.privacy.budget import Budget, Currency
from sharewell.privacy.curator import Curator
from sharewell.privacy.dry_run import DryCurator
from sharewell.privacy.kronecker import ComposedRows
from sharewell.query.block import Block, Neighbours, ParallelBlock
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: The most questions of an analyst, and the most numbers of a question, that are looked at.
MOST_QUESTIONS, MOST_NUMBERS = 128, 16


def sampled(questions: Sequence[Question]) -> list[Question]:
    """Some of many questions, and some numbers of each, at even distances."""
    chosen = [questions[at] for at in _evenly(len(questions), MOST_QUESTIONS)]
    return [
        each
        if isinstance(each, LinearQuery) or len(each) <= MOST_NUMBERS
        else ParallelBlock.of(Block(each.domain, [each[at] for at in _evenly(len(each), MOST_NUMBERS)]))
        for each in chosen
    ]


def _evenly(count: int, most: int) -> list[int]:
    return [at * count // min(count, most) for at in range(min(count, most))]


def as_marginals(seed: Strategy | MarginalSeed) -> MarginalSeed | None:
    """A seed as a set of marginals; None where it is something else."""
    if isinstance(seed, MarginalSeed):
        return seed
    levels = range(len(seed.domain.attributes))
    if len(seed.parts) > 1 or seed.domain.measures:
        return None
    [part] = seed.parts
    if any(rows.matrix is not None and not rows.is_total for rows in part):
        return None
    kept = tuple(level for level in levels if part[level].matrix is None)
    return MarginalSeed(seed.domain, (MarginalPart(kept, 0, Fraction(1)),), seed.name)


class SeededErrors:
    """The errors that analysts get from one seed, question by question.

    Privacy: costs nothing; no row is read.
    """

    def __init__(
        self,
        domain: Domain,
        shares: Mapping[str, Fraction],
        *,
        seed: MarginalSeed,
        seed_fraction: Fraction,
        query_budget: Fraction,
        privacy: Currency = "pure",
        neighbours: Neighbours = "add-remove",
    ) -> None:
        total = sum(shares.values(), Fraction(0))
        empty = DataVector.empty(domain)
        self._curator: Curator = DryCurator(
            empty, Budget(privacy, total, total), {}, neighbours=neighbours
        )
        self._domain, self._seed = domain, seed
        self._is_seeded = seed_fraction > 0
        self._price = query_budget
        self._left = {name: share * (1 - seed_fraction) for name, share in shares.items()}
        #: The variances of rows that were bought, by key.
        self._bought: dict[str, float] = {}
        self._prior = MarginalPrior(domain)
        if self._is_seeded:
            noise = self._curator.variances(_composed(seed), total * seed_fraction)
            start = 0
            for part, size in zip(seed.parts, seed.sizes, strict=True):
                zeros = np.broadcast_to(0.0, size)
                self._prior = self._prior.with_marginal(
                    part.mask, part.vector, zeros, float(noise[start])
                )
                start += size

    def ask(self, analyst: str, question: Question) -> tuple[float, ...]:
        """The standard errors of a question's answers; those that nothing determines are infinite."""
        queries = [question] if isinstance(question, LinearQuery) else list(question)
        rows = {query.primitive.key: query.primitive for query in queries if not query.is_zero}
        fresh = [row for key, row in rows.items() if key not in self._bought and not self._is_known(row)]
        if fresh and self._left[analyst] >= self._price:
            self._left[analyst] -= self._price
            block = ParallelBlock(self._domain, fresh)
            noise = self._curator.variances(block, self._price).tolist()
            self._bought.update(zip((row.key for row in fresh), noise, strict=True))
        return tuple(self._error(query) for query in queries)

    def _is_known(self, row: LinearQuery) -> bool:
        return self._is_seeded and self._seed.row_of(row) is not None

    def _error(self, query: LinearQuery) -> float:
        if query.is_zero:
            return 0.0
        row = query.primitive
        free = self._prior.variance(row) if self._prior.determines(row) else math.inf
        paid = self._bought.get(row.key, math.inf)
        precision = sum(1 / max(each, 1e-12) for each in (free, paid))
        return abs(float(query.scale)) / math.sqrt(precision) if precision else math.inf


def _composed(seed: MarginalSeed) -> ComposedRows:
    """The rows of a seed as the kernel measures them."""
    last, products = len(seed.domain.attributes), []
    for part in seed.parts:
        factors: dict[int, sp.csr_array | None] = dict.fromkeys(part.attributes)
        if seed.domain.measures:
            chosen = np.zeros((1, seed.vectors), dtype=np.int64)
            chosen[0, part.vector] = 1
            factors[last] = sp.csr_array(chosen)
        products.append((factors, part.weight))
    return ComposedRows(seed.domain, products, seed.name)


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
    """The errors of all questions of a stream, in order."""
    known = SeededErrors(
        domain,
        shares,
        seed=seed,
        seed_fraction=seed_fraction,
        query_budget=query_budget,
        privacy=privacy,
        neighbours=neighbours,
    )
    return [known.ask(analyst, question) for analyst, question in stream]


def has_rows_within(domain: Domain, sets: Sequence[Sequence[int]], most: int) -> bool:
    """Whether the marginals over some sets of attributes have at most so many rows."""
    return sum(math.prod(domain.shape[level] for level in each) for each in sets) <= most
