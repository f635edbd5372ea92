"""Planning: compare seeds, seed fractions and query budgets without reading a row.

The error of Seeded Cache and Reconstruct depends on the questions and not on the data. So every
setting can be tried on an empty table without noise, and the standard errors are those of the
real table. On tables with very many cells they are computed in closed form, for seeds of marginals only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product, zip_longest
from typing import Any

import numpy as np

from sharewell.errors import SharingError
from sharewell.mechanisms import seed as seeds
from sharewell.mechanisms.base import Question, Seed
from sharewell.mechanisms.marginal_seed import MarginalSeed
from sharewell.privacy.budget import Amount, Budget, amount
from sharewell.query.block import Block, Neighbours
from sharewell.query.domain import MAX_CELLS, Domain
from sharewell.query.linear import LinearQuery
from sharewell.sharing.certificate import outcomes
from sharewell.sharing.closed_form import (
    MOST_NUMBERS,
    MOST_QUESTIONS,
    errors_of,
    has_rows_within,
    sampled,
)
from sharewell.sharing.collective import Ask, expected_errors

#: Defaults: the part of a share that goes to the seed, and the number of queries that the rest pays for.
SEED_FRACTIONS = ("1/4", "1/2", "3/4", "9/10")
QUERIES_PER_SHARE = (4, 16, 64)
#: With more cells, errors are computed in closed form.
MOST_CELLS = 100_000
#: Of the seeds that are compared then: the most columns of a marginal, marginals, and rows of all.
MOST_COLUMNS, MOST_MARGINALS, MOST_SEED_ROWS = 3, 2_000, 2**24


@dataclass(frozen=True)
class Candidate:
    """Settings of Seeded Cache and Reconstruct, and the errors that the analysts can expect."""

    seed: str
    seed_fraction: Fraction
    query_budget: Fraction
    #: The expected part of each analyst's answers within the error threshold, for normal errors.
    within: Mapping[str, float]
    #: The root mean square of the finite standard errors, in rows.
    typical_error: float

    @property
    def average(self) -> float:
        """The expected part of all answers within the threshold, averaged over the analysts."""
        return float(np.mean(list(self.within.values())))

    @property
    def worst(self) -> float:
        """The expected part for the worst-off analyst."""
        return min(self.within.values())


def plan(
    domain: Domain,
    workloads: Mapping[str, Sequence[Question]],
    budget: Budget,
    shares: Mapping[str, Amount],
    error_threshold: float,
    *,
    neighbours: Neighbours = "add-remove",
    strategies: Iterable[Seed] | None = None,
    seed_fractions: Iterable[Amount] = SEED_FRACTIONS,
    queries_per_share: Iterable[int] = QUERIES_PER_SHARE,
    watch: Callable[[int, int], object] = lambda done, of: None,
) -> list[Candidate]:
    """Every combination of settings, best first: by answers within the threshold, then by error.

    The threshold is in rows; for a sum, in multiples of its largest weight.
    The workloads are asked in turns. A query budget is the least share's paid part divided by each
    number of `queries_per_share`. `watch` is called with the number of combinations done, and of all.

    With more than MOST_CELLS cells, errors are computed in closed form, on a sample of the questions:
    see `not_compared`.

    Privacy: costs nothing; no row is read.
    """
    if set(workloads) != set(shares):
        raise SharingError("Every analyst needs a workload and a share.", hint="Name the same in both.")
    if not math.isfinite(error_threshold) or error_threshold <= 0:
        raise SharingError(f"The error threshold must be a positive number, not {error_threshold!r}.")
    exact = {analyst: amount(share, f"The share of {analyst}") for analyst, share in shares.items()}
    in_closed_form = strategies is None and domain.size > MOST_CELLS
    if in_closed_form:
        workloads = {name: sampled(questions) for name, questions in workloads.items()}
    stream = list(in_turns(workloads))
    tried: list[Any] = list(suggested(domain, workloads) if strategies is None else strategies)
    found = []
    settings = list(product(tried, seed_fractions, queries_per_share))
    for at, (strategy, fraction, queries) in enumerate(settings, start=1):
        part = amount(fraction, "A seed fraction")
        price = min(exact.values()) * (1 - part) / queries
        if price > 0:
            expect = errors_of if in_closed_form else expected_errors
            errors = expect(
                domain,
                stream,
                exact,
                seed=strategy,
                seed_fraction=part,
                query_budget=price,
                privacy=budget.currency,
                neighbours=neighbours,
            )
            found.append(evaluate((strategy.name, part, price), stream, errors, error_threshold))
        watch(at, len(settings))
    return sorted(found, key=lambda c: (-round(c.average, 4), c.typical_error))


def suggested(domain: Domain, workloads: Mapping[str, Sequence[Question]]) -> Iterator[Seed]:
    """The seeds worth comparing: those by name that can be measured here, and the optimised one."""
    if domain.size > MOST_CELLS:
        yield from wide_seeds(domain)
        return
    for make in _by_name(domain):
        yield make(domain)
    if _has_every_cell(domain):
        yield seeds.optimized(domain, asked_together(domain, workloads))


def how_many(domain: Domain) -> int:
    """The number of settings compared by default; building some seeds takes minutes."""
    named = len(_by_name(domain)) + _has_every_cell(domain)
    count = len(wide_seeds(domain)) if domain.size > MOST_CELLS else named
    return count * len(SEED_FRACTIONS) * len(QUERIES_PER_SHARE)


def wide_seeds(domain: Domain) -> list[MarginalSeed]:
    """The seeds worth comparing on a table with very many cells: marginals with few enough rows."""
    levels, found = range(len(domain.attributes)), []
    for k in sorted({*range(1, min(MOST_COLUMNS, len(levels)) + 1), len(levels)}):
        # The identity is the marginal over all attributes.
        name = "identity" if k == len(levels) else f"marginals({k})"
        if math.comb(len(levels), k) > MOST_MARGINALS:
            continue
        sets = list(combinations(levels, k))
        if has_rows_within(domain, sets, MOST_SEED_ROWS):
            found.append(MarginalSeed.of(domain, sets, name=name))
    return found or [MarginalSeed.of(domain, [()], name="total")]


def not_compared(domain: Domain, workloads: Mapping[str, Sequence[Question]]) -> str:
    """What `plan` leaves out on a table with very many cells, in sentences; empty for others."""
    if domain.size <= MOST_CELLS:
        return ""
    text = (
        f"The table has more than {MOST_CELLS:,} cells: only seeds of marginals are compared, not h2, "
        "hb, prefix and optimized, and the errors leave out what paid answers tell about each other."
    )
    many = max(map(len, workloads.values()), default=0) > MOST_QUESTIONS
    large = any(
        not isinstance(q, LinearQuery) and len(q) > MOST_NUMBERS for w in workloads.values() for q in w
    )
    if many or large:
        text += (
            f" At most {MOST_QUESTIONS} questions of each analyst are looked at, and {MOST_NUMBERS} "
            "numbers of each question, at even distances."
        )
    return text


def _by_name(domain: Domain) -> list[Callable[[Domain], Seed]]:
    found: list[Callable[[Domain], Seed]] = []
    if _has_every_cell(domain):
        found = [make for name, make in seeds.NAMED.items() if name != "total"]
    several = len(domain.attributes) > 1 or not found
    return [*found, seeds.marginals, seeds.tables] if several else found


def _has_every_cell(domain: Domain) -> bool:
    """Whether seeds that measure every cell are suitable: of counts, and not too many."""
    return domain.size <= MAX_CELLS and not domain.measures


def asked_together(domain: Domain, workloads: Mapping[str, Sequence[Question]]) -> Block:
    """All queries of all workloads as one block."""
    asked = [question for workload in workloads.values() for question in workload]
    queries = [q for asks in asked for q in ([asks] if isinstance(asks, LinearQuery) else asks)]
    return Block(domain, [query for query in queries if not query.is_zero])


def in_turns(workloads: Mapping[str, Sequence[Question]]) -> Iterator[tuple[str, Question]]:
    """Every analyst's first question, then every analyst's second, and so on."""
    for turn in zip_longest(*workloads.values()):
        for analyst, question in zip(workloads, turn, strict=True):
            if question is not None:
                yield analyst, question


def evaluate(
    setting: tuple[str, Fraction, Fraction],
    stream: Sequence[tuple[str, Question]],
    errors: Sequence[float | tuple[float, ...] | None],
    threshold: float,
) -> Candidate:
    """The candidate of a seed, a seed fraction and a query budget, from the errors of a stream."""
    within: dict[str, list[float]] = {}
    squares: list[float] = []
    for (analyst, question), found in zip(stream, errors, strict=True):
        for outcome in outcomes(
            Ask(analyst, question).queries, np.atleast_1d(np.asarray(found, dtype=np.float64)).tolist()
        ):
            # In rows: as many of the query's largest weight.
            error = outcome.error / (float(outcome.query.max_abs) or 1)
            chance = math.erf(threshold / (error * math.sqrt(2))) if error else 1.0
            within.setdefault(analyst, []).append(chance)
            if math.isfinite(error):
                squares.append(error**2)
    typical = math.sqrt(float(np.mean(squares))) if squares else math.inf
    averages = {analyst: float(np.mean(chances)) for analyst, chances in within.items()}
    seed, seed_fraction, query_budget = setting
    return Candidate(seed, seed_fraction, query_budget, averages, typical)
