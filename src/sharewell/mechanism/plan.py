"""Planning: which seed, how much for it, and what a query should cost, before a single row is read.

The error of Seeded Cache and Reconstruct depends on the questions and not on the data. So every
setting can be tried on an empty table without noise, and the standard errors that come out are those
that the real table will have.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product, zip_longest

import numpy as np
from numpy.typing import NDArray

from sharewell.engine.data_vector import DataVector
from sharewell.errors import QueryError
from sharewell.mechanism import seed as seeds
from sharewell.mechanism.cache_reconstruct import CacheReconstruct
from sharewell.mechanism.reconstruction import Reconstruction
from sharewell.mechanism.strategy import Strategy
from sharewell.privacy.budget import Amount, Budget, amount
from sharewell.privacy.curator import Curator
from sharewell.privacy.noise import NoNoise
from sharewell.query.block import Block, Neighbours
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: How much of a share goes to the seed, and how many queries the rest pays for, unless told otherwise.
SEED_FRACTIONS = ("1/4", "1/2", "3/4", "9/10")
QUERIES_PER_SHARE = (4, 16, 64)


@dataclass(frozen=True)
class Candidate:
    """One way to set up Seeded Cache and Reconstruct, and what the analysts can expect of it."""

    seed: str
    seed_fraction: Fraction
    query_budget: Fraction
    #: The expected part of each analyst's answers that are within the error threshold.
    within: Mapping[str, float]
    #: The root of the mean of the answers' variances.
    typical_error: float

    @property
    def average(self) -> float:
        """The expected part of all answers within the threshold, analysts counting alike."""
        return float(np.mean(list(self.within.values())))

    @property
    def worst(self) -> float:
        """The same for the analyst who fares worst."""
        return min(self.within.values())


def plan(
    domain: Domain,
    workloads: Mapping[str, Block],
    budget: Budget,
    shares: Mapping[str, Amount],
    error_threshold: float,
    *,
    neighbours: Neighbours = "add-remove",
    strategies: Iterable[Strategy] | None = None,
    seed_fractions: Iterable[Amount] = SEED_FRACTIONS,
    queries_per_share: Iterable[int] = QUERIES_PER_SHARE,
) -> list[Candidate]:
    """Every combination of settings, best first: by answers within the threshold, then by error.

    The workloads are asked in turns. A query budget is the least share's paid part divided by each
    number of `queries_per_share`.

    Privacy: costs nothing; no row is read.
    """
    if set(workloads) != set(shares):
        raise QueryError("Every analyst needs a workload and a share.", hint="Name the same in both.")
    if not math.isfinite(error_threshold) or error_threshold <= 0:
        raise QueryError(f"The error threshold must be a positive number, not {error_threshold!r}.")
    exact = {analyst: amount(share, f"The share of {analyst}") for analyst, share in shares.items()}
    stream = list(in_turns(workloads))
    tried = list(suggested(domain, workloads) if strategies is None else strategies)
    found = []
    for strategy, fraction, queries in product(tried, seed_fractions, queries_per_share):
        part = amount(fraction, "A seed fraction")
        price = min(exact.values()) * (1 - part) / queries
        if price > 0:
            errors = rehearse(strategy, part, price, budget, exact, stream, neighbours)
            found.append(_judge(strategy, part, price, errors, error_threshold))
    return sorted(found, key=lambda c: (-round(c.average, 4), c.typical_error))


def suggested(domain: Domain, workloads: Mapping[str, Block]) -> Iterator[Strategy]:
    """The seeds worth comparing: those by name that determine everything, and the optimised one."""
    for name, make in seeds.NAMED.items():
        if name != "total":
            yield make(domain)
    if len(domain.shape) > 1:
        yield seeds.marginals(domain, 1)
    yield seeds.optimized(domain, Block(domain, [q for block in workloads.values() for q in block]))


def in_turns(workloads: Mapping[str, Block]) -> Iterator[tuple[str, LinearQuery]]:
    """Every analyst's first query, then every analyst's second, and so on."""
    for turn in zip_longest(*workloads.values()):
        for analyst, query in zip(workloads, turn, strict=True):
            if query is not None:
                yield analyst, query


def rehearse(
    strategy: Strategy,
    seed_fraction: Fraction,
    query_budget: Fraction,
    budget: Budget,
    shares: Mapping[str, Fraction],
    stream: Sequence[tuple[str, LinearQuery]],
    neighbours: Neighbours = "add-remove",
) -> list[tuple[str, float]]:
    """Play a stream on an empty table without noise: each answer's analyst and standard error."""
    empty = DataVector(strategy.domain, np.zeros(strategy.domain.size, dtype=np.int64))
    curator = Curator(empty, budget, shares, neighbours=neighbours, noise=NoNoise())
    mechanism = CacheReconstruct(
        curator, seed=strategy, seed_fraction=seed_fraction, query_budget=query_budget
    )
    errors = []
    for analyst, query in stream:
        error = mechanism.answer(query, analyst).standard_error
        errors.append((analyst, math.inf if error is None else error))
    return errors


def matrix_mechanism_variances(
    workload: Sequence[LinearQuery], strategy: Strategy, noise_variance: float
) -> NDArray[np.float64]:
    """The matrix mechanism's error formula: each query's variance from a strategy's noisy rows alone.

    Li, Miklau, Hay, McGregor and Rastogi (2015): noise variance times q' (A'A)^+ q.
    """
    known = Reconstruction(strategy)
    known.observe_seed(np.zeros(len(strategy)), noise_variance)
    return known.estimate(workload)[1]


def _judge(
    strategy: Strategy,
    seed_fraction: Fraction,
    query_budget: Fraction,
    errors: Sequence[tuple[str, float]],
    threshold: float,
) -> Candidate:
    within: dict[str, list[float]] = {}
    for analyst, error in errors:
        chance = math.erf(threshold / (error * math.sqrt(2))) if error else 1.0
        within.setdefault(analyst, []).append(chance)
    typical = math.sqrt(float(np.mean([error**2 for _, error in errors])))
    averages = {analyst: float(np.mean(chances)) for analyst, chances in within.items()}
    return Candidate(strategy.name, seed_fraction, query_budget, averages, typical)
