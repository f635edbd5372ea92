"""Forecasts: shares, paid questions and expected errors that follow from a configuration alone.

Privacy: reads no row and spends nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sharewell.config.analysts import MAX_ASSUMED_GROUPS, Analyst, expected_workloads
from sharewell.config.config import Config
from sharewell.engine.data_vector import MAX_DENSE
from sharewell.errors import SharingError
from sharewell.mechanisms.base import Mechanism, Prospect, Question, standard_errors
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.registry import MechanismFactory
from sharewell.mechanisms.strategy import Strategy
from sharewell.query.block import ParallelBlock
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell.sharing.collective import Ask, DryRun
from sharewell.sharing.plan import Candidate, evaluate, how_many, in_turns, is_exact, judge_of

#: A dry run of a seed with more rows takes too long, and too much memory.
MAX_SEED_ROWS = 2**24
#: Queries that the seed does not determine are solved by iteration: fast up to so many cells.
MAX_UNDETERMINED_CELLS = 1_000
#: The limit on forecast numbers times the cells that each may take work for; in wide tables, where
#: seeds are marginals, a number takes about as long as one over this many cells.
MAX_WORK, WIDE_CELLS = 30_000_000, 30_000


@dataclass(frozen=True)
class AnalystBudget:
    """What one analyst has; amounts are in the budget's currency."""

    analyst: str
    #: The share as a fraction of the whole budget.
    part: Fraction
    share: Fraction
    #: What the seed takes of it.
    seed: Fraction
    #: How many questions it pays for (from a common pot: those of all analysts); None if not fixed.
    paid_questions: int | None


@dataclass(frozen=True)
class ErrorSummary:
    """The standard errors of some answers, in rows."""

    #: The root mean square.
    typical: float
    #: The probability that an answer is within the error threshold.
    within: float


@dataclass(frozen=True)
class ErrorForecast:
    """The expected error of the first answer to a question; None where there is no such answer."""

    asked: str
    analysts: tuple[str, ...]
    #: From the seed alone.
    free: ErrorSummary | None
    #: When the analyst pays.
    paid: ErrorSummary | None


def analyst_budgets(config: Config) -> tuple[AnalystBudget, ...]:
    """What every analyst has, and how many questions that pays for."""
    make = config.make
    pot = sum(config.shares.values(), Fraction(0))
    shares = dict.fromkeys(config.shares, pot) if make.pooled else config.shares
    count: Mapping[str, int] = {}
    if make.price is not None:
        count = paid_questions(shares, make.seed_fraction, make.price)
    return tuple(
        AnalystBudget(
            analyst.name,
            analyst.share / config.budget.total,
            analyst.share,
            analyst.share * make.seed_fraction,
            count.get(analyst.name),
        )
        for analyst in config.analysts
    )


def paid_questions(
    shares: Mapping[str, Fraction], seed_fraction: Fraction, price: Fraction
) -> dict[str, int]:
    """How many questions every share pays for, after its part of the seed."""
    return {analyst: int(share * (1 - seed_fraction) / price) for analyst, share in shares.items()}


def analysts_without_questions(config: Config) -> tuple[str, ...]:
    """The analysts for whom the file gives no questions, so that some are assumed."""
    return tuple(analyst.name for analyst in config.analysts if not analyst.expects)


def assumed_questions(config: Config) -> str:
    """What is assumed of an analyst without given questions, in words."""
    sums = ", and sums by one" if config.domain.measures else ""
    return f"counts by one and by two columns{sums}, with at most {MAX_ASSUMED_GROUPS:,} groups each"


def can_assume_questions(config: Config) -> bool:
    """Whether any column has few enough values to assume counts by it."""
    return any(attribute.size <= MAX_ASSUMED_GROUPS for attribute in config.domain.attributes)


def join_names(names: Sequence[str], most: int = 5) -> str:
    """Join names for a sentence; long lists are shortened."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1:,} others"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def dry_run(config: Config) -> Mechanism:
    """The configured mechanism at its start, without data."""
    seed = config.make.seed_of(config.shares)
    if seed is not None and len(seed) > MAX_SEED_ROWS:
        raise SharingError(
            f"mechanism.seed {seed.name!r} has {len(seed):,} rows here, which is too many.",
            hint="Use identity or marginals(1), or describe fewer columns, with fewer cells.",
        )
    return DryRun(config.decided().collective).mechanism


#: The fields of a forecast, without the analysts, after its position among the others.
_Row = tuple[int, str, ErrorSummary | None, ErrorSummary | None]


def forecast_errors(config: Config, mechanism: Mechanism) -> tuple[ErrorForecast, ...]:
    """The expected errors of a single cell, of the total and of the expected questions.

    Empty for a mechanism whose errors depend on the data. On a large domain only the first of very
    many expected questions are included.
    """
    make = config.make
    if not make.errors_are_public:
        return ()
    analysts_of: dict[_Row, list[str]] = {}
    forecasts: dict[tuple[Any, ...], list[_Row]] = {}
    for analyst in config.analysts:
        # Analysts who are alike in all that matters share one computation.
        means = mechanism.spendable(analyst.name)
        alike = (analyst.expects, means if make.independent else means >= (make.price or 0))
        if alike not in forecasts:
            forecasts[alike] = list(_forecast(config, mechanism, analyst))
        for row in forecasts[alike]:
            analysts_of.setdefault(row, []).append(analyst.name)
    return tuple(
        ErrorForecast(asked, tuple(analysts), free, paid)
        for (_, asked, free, paid), analysts in sorted(analysts_of.items(), key=lambda item: item[0][0])
    )


def _forecast(config: Config, mechanism: Mechanism, analyst: Analyst) -> Iterable[_Row]:
    domain, make = config.domain, config.make
    workload = expected_workloads(domain, config.name, [analyst])[analyst.name]
    first = _first(workload, WIDE_CELLS if domain.size > MAX_DENSE else domain.size)
    asked: list[tuple[str, Sequence[Question]]] = [
        ("the rows of one cell", [_one_cell(domain)]),
        ("all rows", [LinearQuery.all(domain)]),
    ]
    if workload:
        asked.append((_describe(len(first), len(workload), analyst), first))
    # Where the seed determines nothing and iterating is slow, only fresh measurements are forecast.
    fresh_only = make.seed is not None and not _is_determined(make)
    fresh_only = fresh_only and domain.size > MAX_UNDETERMINED_CELLS
    price = make.price or Fraction(0)
    for place, (what, questions) in enumerate(asked):
        free: list[list[float] | None] = []
        paid: list[list[float] | None] = []
        for question in questions:
            queries = Ask(analyst.name, question).queries
            if fresh_only:
                free.append(None)
                can_pay = mechanism.spendable(analyst.name) >= price
                paid.append(_fresh_errors(mechanism, queries, price) if can_pay else None)
                continue
            preview = mechanism.preview(question, analyst.name)
            free.append(_offered_errors(queries, preview.free))
            paid.append(_offered_errors(queries, preview.paid))
        yield place, what, _summarize(config, free), _summarize(config, paid)


def _one_cell(domain: Domain) -> LinearQuery:
    """The query that counts the rows of a cell in the middle."""
    return LinearQuery.cell(domain, domain.vectors * (domain.cells // 2))


def _is_determined(make: MechanismFactory) -> bool:
    """Whether the seed determines the answer to every question, or says at once that it does not."""
    if not isinstance(make.seed, Strategy):
        return True
    return bool(make.seed_fraction) and make.seed.covariance is not None


def _describe(included: int, of: int, analyst: Analyst) -> str:
    kind = "expected" if analyst.expects else "assumed"
    if included == of:
        return f"the {kind} questions"
    first = "the first" if included == 1 else f"the first {included:,}"
    return f"{first} of {of:,} {kind} questions"


def _first(questions: Sequence[Question], cells: int) -> Sequence[Question]:
    """The first questions, at least one, within MAX_WORK."""
    numbers = 0
    for at, question in enumerate(questions):
        numbers += 1 if isinstance(question, LinearQuery) else len(question)
        if at and numbers * cells > MAX_WORK:
            return questions[:at]
    return questions


def _fresh_errors(mechanism: Mechanism, queries: Sequence[LinearQuery], price: Fraction) -> list[float]:
    """The errors, in rows, of queries measured now and known from nothing else."""
    rows = ParallelBlock(mechanism.domain, queries).primitive
    errors = standard_errors(mechanism.curator.variances(rows, price), queries)
    return [_error_in_rows(query, error) for query, error in zip(queries, errors, strict=True)]


def _offered_errors(queries: Sequence[LinearQuery], offer: Prospect | None) -> list[float] | None:
    if offer is None:
        return None
    return [
        math.inf if error is None else _error_in_rows(query, error)
        for query, error in zip(queries, offer.standard_errors, strict=True)
    ]


def _summarize(config: Config, found: Sequence[list[float] | None]) -> ErrorSummary | None:
    """The root mean square of the errors, and the fraction of normal errors within the threshold."""
    errors = [error for each in found if each is not None for error in each]
    if not errors or any(each is None for each in found):
        return None
    threshold = config.error_threshold
    chances = [math.erf(threshold / (error * math.sqrt(2))) if error else 1.0 for error in errors]
    return ErrorSummary(math.sqrt(float(np.mean(np.square(errors)))), float(np.mean(chances)))


def _error_in_rows(query: LinearQuery, error: float) -> float:
    """A standard error in rows: that of a sum, divided by its largest weight."""
    return error / (float(query.max_abs) or 1)


def delta_for(population: int | None) -> str:
    """A usual delta: below one in the number of people, and at most one in a million."""
    return f"1e-{max(6, len(str(population or 0)))}"


def current_candidate(config: Config) -> Candidate | None:
    """The file's own settings as `sharewell plan` evaluates them; None if it does not compare them."""
    make = config.make
    if make.kind is not CacheReconstruct or make.independent or make.seed is None:
        return None
    price, workloads = make.price or Fraction(0), config.workloads()
    settings = how_many(config.domain)
    stream = list(in_turns(workloads))
    errors: Sequence[tuple[float, ...] | None]
    if is_exact(config.domain, workloads, settings):
        errors = list(config.collective.errors(stream))
    else:
        judge = judge_of(
            config.domain,
            workloads,
            config.budget,
            config.shares,
            config.neighbours,
            settings,
            config.max_rows_per_person,
        )
        stream, errors = judge(make.seed, make.seed_fraction, price)
    setting = make.seed.name, make.seed_fraction, price
    return evaluate(setting, config.budget, stream, errors, config.error_threshold)
