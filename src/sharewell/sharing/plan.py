"""Planning: compare seeds, seed fractions and query budgets without reading a row.

The error of Seeded Cache and Reconstruct depends on the questions and not on the data. So every
setting can be tried on an empty table without noise, and the standard errors are those of the
real table. Where there are many questions or cells they are computed in closed form, on a sample of the
questions: comparing takes seconds at any width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, product, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import PrivacyError, SharingError
from sharewell.mechanisms import seed as seeds
from sharewell.mechanisms.base import Question, Seed
from sharewell.mechanisms.marginal_seed import MarginalSeed
from sharewell.mechanisms.planned_seed import PlannedSeed
from sharewell.privacy.budget import Amount, Budget, amount
from sharewell.query.block import Block, Neighbours
from sharewell.query.domain import MAX_CELLS, Domain
from sharewell.query.linear import LinearQuery
from sharewell.sharing.closed_form import (
    MOST_NUMBERS,
    MOST_QUESTIONS,
    FirstOffers,
    errors_of,
    has_rows_within,
    sampled,
    seed_errors,
)
from sharewell.sharing.collective import expected_errors

#: Defaults: the part of a share that goes to the seed, and the number of queries that the rest pays for.
SEED_FRACTIONS = ("1/4", "1/2", "3/4", "9/10", "49/50", "1")
QUERIES_PER_SHARE = (4, 16, 64)
#: With more cells, or more numbers to compute for all settings, errors are computed in closed form.
MOST_CELLS, MOST_EXACT = 1_000, 2_000
#: With more cells, no seeds are compared that measure cells along every attribute.
MANY_CELLS = 100_000
#: Of the seeds that are compared then: the most columns of a marginal, marginals, and rows of all.
MOST_COLUMNS, MOST_MARGINALS, MOST_SEED_ROWS = 2, 2_000, 2**18
#: What a reserve for questions that were not expected may cost: useful answers, and times the error.
RESERVE, RESERVE_ERROR = 0.01, 1.12
#: Paying helps little where it leaves more than this fraction of the error.
LITTLE_GAIN = 0.95


@dataclass(frozen=True)
class Candidate:
    """Settings of Seeded Cache and Reconstruct, and the errors that the analysts can expect."""

    seed: str
    seed_fraction: Fraction
    #: In the currency of the budget; where the seed takes all, what a question would cost.
    query_budget: Fraction
    #: The expected part of each analyst's answers within the error threshold, for normal errors; of a
    #: question with several, their mean.
    within: Mapping[str, float]
    #: The root mean square of the questions' finite standard errors, in rows.
    typical_error: float
    #: The budget, whose currency decides the noise.
    budget: Budget
    #: The error of the most precise first answer, in rows.
    least_error: float = field(default=0.0, compare=False)
    #: Whether paying makes some first answer clearly more precise, and then within the threshold.
    paying_helps: bool = field(default=True, compare=False)
    paying_is_useful: bool = field(default=True, compare=False)
    #: What this follows from, in rows: by analyst, the errors of every question's numbers; and those of
    #: first answers, free and paid.
    errors: Mapping[str, Sequence[NDArray[np.float64]]] = field(
        default_factory=dict, compare=False, repr=False
    )
    offered: Sequence[tuple[float, float]] = field(default=(), compare=False, repr=False)

    @property
    def average(self) -> float:
        """The expected part of all answers within the threshold, averaged over the analysts."""
        return float(np.mean(list(self.within.values())))

    @property
    def worst(self) -> float:
        """The expected part for the worst-off analyst."""
        return min(self.within.values())

    def with_threshold(self, threshold: float) -> Candidate:
        """The same settings, judged by another error threshold in rows."""
        within = {
            # Every question counts once, whatever the number of its rows.
            analyst: float(np.mean([_chance_within(threshold, each) for each in errors]))
            for analyst, errors in self.errors.items()
        }
        useful = helps(pair for pair in self.offered if pair[1] <= threshold)
        return replace(self, within=within, paying_is_useful=useful)


def plan(
    domain: Domain,
    workloads: Mapping[str, Sequence[Question]],
    budget: Budget,
    shares: Mapping[str, Amount],
    error_threshold: float,
    *,
    neighbours: Neighbours = "add-remove",
    max_rows_per_person: int = 1,
    strategies: Iterable[Seed] | None = None,
    seed_fractions: Iterable[Amount] = SEED_FRACTIONS,
    queries_per_share: Iterable[int] = QUERIES_PER_SHARE,
    expected: Mapping[str, Sequence[Question]] | None = None,
    watch: Callable[[int, int], object] = lambda done, of: None,
) -> list[Candidate]:
    """Every combination of settings, best first: by answers within the threshold, then error.

    The threshold is in rows; for a sum, in multiples of its largest weight.
    The workloads are asked in turns. A query budget is the least share's paid part divided by each
    number of `queries_per_share`. Planned seeds are for what is `expected`: by default, the workloads.
    `watch` is called with the number of combinations done, and of all.

    Where there is much to compute, errors are computed in closed form, on a sample of the questions: see
    `not_compared`.

    Privacy: costs nothing; no row is read.
    """
    if set(workloads) != set(shares):
        raise SharingError("Every analyst needs a workload and a share.", hint="Name the same in both.")
    if not math.isfinite(error_threshold) or error_threshold <= 0:
        raise SharingError(f"The error threshold must be a positive number, not {error_threshold!r}.")
    exact = {analyst: amount(share, f"The share of {analyst}") for analyst, share in shares.items()}
    tried: list[Any] = list(suggested(domain) if strategies is None else strategies)
    if strategies is None:
        wanted = workloads if expected is None else expected
        tried.append(PlannedSeed(domain, budget.currency, neighbours, wanted))
    settings = list(product(tried, _prices(exact, seed_fractions, queries_per_share)))
    judge = judge_of(domain, workloads, budget, exact, neighbours, how_many(domain), max_rows_per_person)
    paying = _paying_of(domain, workloads, budget, exact, neighbours, max_rows_per_person)
    found = []
    for done, (strategy, (part, price)) in enumerate(settings):
        watch(done, len(settings))
        try:
            stream, errors = judge(strategy, part, price)
        except PrivacyError:
            continue  # A sum would need more noise than there may be.
        offered = paying(strategy, part, price if part < 1 else Fraction(0))
        setting = strategy.name, part, price
        found.append(evaluate(setting, budget, stream, errors, error_threshold, offered))
    watch(len(settings), len(settings))
    if not found:
        raise SharingError(
            "None of the settings compared can be measured: the noise would exceed its limit.",
            hint="Raise epsilon or the shares, or give the measures coarser steps.",
        )
    return sorted(found, key=rank)


def rank(candidate: Candidate) -> tuple[float, float]:
    """The sort key of candidates, best first: by useful answers, in tenths of a percent."""
    return -round(candidate.average, 3), candidate.typical_error


def _prices(
    shares: Mapping[str, Fraction], fractions: Iterable[Amount], queries: Iterable[int]
) -> Iterator[tuple[Fraction, Fraction]]:
    """Every seed fraction with every price; where the seed takes all, there is nothing to choose."""
    least, counts = min(shares.values()), list(queries)
    for fraction in fractions:
        part = amount(fraction, "A seed fraction")
        if part < 1:
            yield from ((part, least * (1 - part) / count) for count in counts)
        else:
            yield part, least / max(counts)


#: Computes the stream and the errors of a seed, a seed fraction and a price.
Judge = Callable[[Seed, Fraction, Fraction], tuple[list[tuple[str, Question]], Sequence[Any]]]


def judge_of(
    domain: Domain,
    workloads: Mapping[str, Sequence[Question]],
    budget: Budget,
    shares: Mapping[str, Fraction],
    neighbours: Neighbours,
    settings: int,
    max_rows_per_person: int = 1,
) -> Judge:
    """The way to compute errors that takes seconds for so many settings."""
    stream = list(in_turns(workloads))
    if is_exact(domain, workloads, settings):

        def judge(seed: Seed, part: Fraction, price: Fraction) -> Any:
            return stream, expected_errors(
                domain,
                stream,
                shares,
                seed=seed,
                seed_fraction=part,
                query_budget=price,
                privacy=budget.currency,
                neighbours=neighbours,
                max_rows_per_person=max_rows_per_person,
            )

        return judge
    some, sample = samples(workloads)
    asked, measured = list(in_turns(some)), dict[int, Any]()

    def judge_in_closed_form(seed: Seed, part: Fraction, price: Fraction) -> Any:
        # What donors measure together does not depend on the fraction.
        if id(seed) not in measured:
            measured[id(seed)] = seed.bought_by(shares)
        return asked, errors_of(
            domain,
            asked,
            shares,
            seed=measured[id(seed)],
            seed_fraction=part,
            query_budget=price,
            privacy=budget.currency,
            neighbours=neighbours,
            max_rows_per_person=max_rows_per_person,
            sample=sample,
        )

    return judge_in_closed_form


def samples(
    workloads: Mapping[str, Sequence[Question]],
) -> tuple[dict[str, list[Question]], dict[str, float]]:
    """Some of every analyst's questions, and which part of them that is."""
    most = max(MOST_QUESTIONS // max(len(workloads), 1), 8)
    some = {name: sampled(questions, most) for name, questions in workloads.items()}
    return some, {name: len(few) / max(len(workloads[name]), 1) for name, few in some.items()}


def is_exact(domain: Domain, workloads: Mapping[str, Sequence[Question]], settings: int = 1) -> bool:
    """Whether the errors of so many settings are computed by dry runs, and not in closed form."""
    numbers = sum(1 if isinstance(q, LinearQuery) else len(q) for w in workloads.values() for q in w)
    return domain.size <= MOST_CELLS and numbers * settings <= MOST_EXACT


#: Computes the errors of first answers, free and paid, of a seed, a seed fraction and a price.
Paying = Callable[[Seed, Fraction, Fraction], list[tuple[float, float]]]


def _paying_of(
    domain: Domain,
    workloads: Mapping[str, Sequence[Question]],
    budget: Budget,
    shares: Mapping[str, Fraction],
    neighbours: Neighbours,
    max_rows_per_person: int,
) -> Paying:
    """What paying for a first answer adds, in closed form."""
    asked = {id(each): each for few in samples(workloads)[0].values() for each in few}.values()
    settings = budget.currency, neighbours, max_rows_per_person
    known: dict[int, FirstOffers] = {}
    donated = sum(shares.values(), Fraction(0))

    def offers(seed: Seed, part: Fraction, price: Fraction) -> list[tuple[float, float]]:
        if id(seed) not in known:
            errors = seed_errors(seed.bought_by(shares), *settings)
            known[id(seed)] = FirstOffers(domain, errors, asked)
        return known[id(seed)].errors(part * donated, price)

    return offers


def helps(offered: Iterable[tuple[float, float]]) -> bool:
    """Whether some paid answer is clearly more precise than the free one, of pairs of their errors."""
    return any(paid <= LITTLE_GAIN * free and math.isfinite(paid) for free, paid in offered)


def recommended(
    found: Sequence[Candidate], accepts: Callable[[Candidate], bool] = lambda candidate: True
) -> Candidate:
    """The best settings, with a reserve for questions that were not expected, if it costs little.

    A reserve must be of use: paying makes some answer more precise, and best within the threshold. Where
    no such reserve costs little, everything is on the seed. `accepts` may refuse settings.
    """
    best = next(filter(accepts, found), found[0])
    allowed = [each for each in found if _costs_little(each, best)]
    wanted: Sequence[Callable[[Candidate], bool]] = (
        lambda each: each.paying_is_useful,
        lambda each: each.paying_helps,
        lambda each: each.seed_fraction == 1,
    )
    for wants in wanted:
        for each in filter(wants, allowed):
            if accepts(each):
                return each
    return best


def _costs_little(candidate: Candidate, best: Candidate) -> bool:
    """Whether a reserve costs no analyst too many useful answers, nor too much precision."""
    useful = all(candidate.within[name] >= part - RESERVE for name, part in best.within.items())
    return useful and candidate.typical_error <= RESERVE_ERROR * best.typical_error


def suggested(domain: Domain) -> Iterator[Seed]:
    """The seeds worth comparing beside the planned one: those by name that can be measured here."""
    if domain.size > MANY_CELLS:
        yield from wide_seeds(domain)
        return
    for make in _by_name(domain):
        yield make(domain)


def how_many(domain: Domain) -> int:
    """The number of settings compared by default."""
    named = len(wide_seeds(domain)) if domain.size > MANY_CELLS else len(_by_name(domain))
    prices = (len(SEED_FRACTIONS) - 1) * len(QUERIES_PER_SHARE) + 1
    return (named + 1) * prices


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
    """What `plan` leaves out where there is much to compute, in sentences; empty otherwise."""
    if is_exact(domain, workloads, how_many(domain)):
        return ""
    text = "Errors of paid answers are computed as if no other answer had been paid for."
    if domain.size > MANY_CELLS:
        text = f"With more than {MANY_CELLS:,} cells, h2 and hb are not compared. {text}"
    many = any(part < 1 for part in samples(workloads)[1].values())
    large = any(
        not isinstance(q, LinearQuery) and len(q) > MOST_NUMBERS for w in workloads.values() for q in w
    )
    if many or large:
        text += (
            f" The comparison uses a sample of about {MOST_QUESTIONS} questions, and {MOST_NUMBERS} "
            "numbers of each."
        )
    return text


def _by_name(domain: Domain) -> list[Callable[[Domain], Seed]]:
    found: list[Callable[[Domain], Seed]] = []
    if _has_every_cell(domain):
        found = [seeds.identity, seeds.h2, seeds.hb]
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
    budget: Budget,
    stream: Sequence[tuple[str, Question]],
    errors: Sequence[float | tuple[float, ...] | None],
    threshold: float,
    offered: Sequence[tuple[float, float]] = (),
) -> Candidate:
    """The candidate of a seed, a seed fraction and a query budget, from the errors of a stream.

    `offered` are the errors of first answers, free and paid.
    """
    in_rows: dict[str, list[NDArray[np.float64]]] = {}
    for (analyst, question), errors_of_one in zip(stream, errors, strict=True):
        units = _largest_weights(question)
        each = np.atleast_1d(np.asarray(errors_of_one, dtype=np.float64)) / units
        in_rows.setdefault(analyst, []).append(each[np.isfinite(units)])
    squares = [
        float(np.mean(finite**2))
        for each in in_rows.values()
        for one in each
        if (finite := one[np.isfinite(one)]).size
    ]
    typical = math.sqrt(float(np.mean(squares))) if squares else math.inf
    candidate = Candidate(
        *setting,
        within={},
        typical_error=typical,
        budget=budget,
        least_error=min(map(min, offered), default=0.0),
        paying_helps=helps(offered),
        errors=in_rows,
        offered=offered,
    )
    return candidate.with_threshold(threshold)


def _largest_weights(question: Question) -> NDArray[np.float64]:
    """The largest weight of each query, in whose multiples its error is counted; infinite for none."""
    queries = [question] if isinstance(question, LinearQuery) else question
    return np.array([float(query.max_abs) or math.inf for query in queries])


def _chance_within(threshold: float, errors: NDArray[np.float64]) -> float:
    """The probability that a normal error is within a threshold, on average."""
    chances = [math.erf(threshold / (error * math.sqrt(2))) if error else 1.0 for error in errors]
    return float(np.mean(chances)) if chances else 1.0
