"""Forecasts: what everybody can expect of a configuration, from public things alone.

Privacy: no row is read and nothing is spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from sharewell.config.config import MOST_GROUPS, Analyst, Config, expected_workloads
from sharewell.errors import SharingError
from sharewell.mechanism.base import Mechanism, Offer, Question, errors_of
from sharewell.mechanism.cache_reconstruct import CacheReconstruct
from sharewell.mechanism.independent import Independent
from sharewell.mechanism.laplace import Laplace
from sharewell.mechanism.pmw import PrivateMultiplicativeWeights
from sharewell.mechanism.strategy import Strategy
from sharewell.query.block import ParallelBlock
from sharewell.query.linear import LinearQuery
from sharewell.sharing.collective import Rehearsal
from sharewell.sharing.plan import Candidate, in_turns
from sharewell.sharing.stream import Ask

#: A seed with more rows than this takes long, and much memory, to rehearse.
MOST_SEED_ROWS = 2**24
#: What a seed alone does not determine is computed by iteration: quickly, up to so many cells.
MOST_UNDETERMINED = 1_000
#: How many expected numbers are looked at, times the cells that each may take work for.
MOST_WORK = 30_000_000
#: What is assumed of whoever gives no questions.
ASSUMED = f"counts by one and by two columns, wherever that makes at most {MOST_GROUPS} groups"


@dataclass(frozen=True)
class Settings:
    """The mechanism of a configuration, as it was set up."""

    kind: type[Mechanism]
    independent: bool
    options: dict[str, Any]

    @classmethod
    def of(cls, config: Config) -> Settings:
        """The settings that a configuration makes its mechanism with."""
        make, independent = config.make, False
        if isinstance(make, partial) and make.func is Independent:
            make, independent = make.keywords["make"], True
        if not isinstance(make, partial) or not isinstance(make.func, type):
            raise SharingError("The configuration was not made by a file.", hint="Read one.")
        return cls(make.func, independent, dict(make.keywords))

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return f"Independent {self.kind.name}" if self.independent else self.kind.name

    @property
    def errors_are_public(self) -> bool:
        """Whether the errors can be known before anything is asked."""
        return self.kind.errors_are_public

    @property
    def price(self) -> Fraction | None:
        """What a paid question costs; None where that is not fixed."""
        return self.options.get("query_budget")

    @property
    def seed(self) -> Strategy | None:
        """What is measured at the start."""
        return self.options.get("seed")

    @property
    def seed_fraction(self) -> Fraction:
        """The part of every share that pays for the seed."""
        return Fraction(self.options.get("seed_fraction", 0))

    @property
    def in_common(self) -> bool:
        """Whether all pay from one pot."""
        return not self.independent and self.kind in (Laplace, PrivateMultiplicativeWeights)

    @property
    def determined(self) -> bool:
        """Whether every question can be answered from the seed."""
        return bool(self.seed_fraction) and self.seed is not None and self.seed.covariance is not None


@dataclass(frozen=True)
class Means:
    """What one analyst has: all amounts are in the budget's currency."""

    analyst: str
    #: The part of the whole budget.
    part: Fraction
    share: Fraction
    #: What the seed takes of it.
    seed: Fraction
    #: How many questions can be paid for; of a common pot, by all together.
    questions: int | None


@dataclass(frozen=True)
class Expected:
    """The standard errors of some numbers, in rows: a typical one, and how likely one is useful."""

    typical: float
    within: float


@dataclass(frozen=True)
class Outlook:
    """How far off the first answer to a question will be; None where there is no such answer."""

    asked: str
    analysts: tuple[str, ...]
    #: From the seed alone, for nothing.
    free: Expected | None
    #: When it is paid for.
    paid: Expected | None


def means(config: Config) -> tuple[Means, ...]:
    """What every analyst has, and how many questions that pays for."""
    settings = Settings.of(config)
    pot = sum(config.shares.values(), Fraction(0))
    shares = dict.fromkeys(config.shares, pot) if settings.in_common else config.shares
    count: Mapping[str, int] = {}
    if settings.price is not None:
        count = paid_questions(shares, settings.seed_fraction, settings.price)
    return tuple(
        Means(
            analyst.name,
            analyst.share / config.budget.total,
            analyst.share,
            analyst.share * settings.seed_fraction,
            count.get(analyst.name),
        )
        for analyst in config.analysts
    )


def paid_questions(
    shares: Mapping[str, Fraction], seed_fraction: Fraction, price: Fraction
) -> dict[str, int]:
    """How many questions every share pays for, after its part of the seed."""
    return {analyst: int(share * (1 - seed_fraction) / price) for analyst, share in shares.items()}


def without_questions(config: Config) -> tuple[str, ...]:
    """The analysts for whom the file gives no questions, so that some are assumed."""
    return tuple(analyst.name for analyst in config.analysts if not analyst.expects)


def some_assumed(config: Config) -> bool:
    """Whether there is anything to assume: no two columns make fewer groups than one of them."""
    return any(attribute.size <= MOST_GROUPS for attribute in config.domain.attributes)


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names in a sentence; of very many, the first."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1:,} others"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def rehearsed(config: Config) -> Mechanism:
    """The mechanism of a configuration without data, as it is at the start."""
    seed = Settings.of(config).seed
    if seed is not None and len(seed) > MOST_SEED_ROWS:
        raise SharingError(
            f"mechanism.seed is {seed.name}, which has {len(seed):,} rows for these columns.",
            hint="Choose identity or marginals(1), or describe fewer columns, with fewer cells.",
        )
    return Rehearsal(config.collective).mechanism


def outlooks(config: Config, mechanism: Mechanism) -> tuple[Outlook, ...]:
    """How far off the answers to a single cell, to a total and to the expected questions will be.

    Empty for a mechanism whose errors depend on the data. Of very many expected questions on a large
    domain only the first are looked at.
    """
    settings = Settings.of(config)
    if not settings.errors_are_public:
        return ()
    who_gets: dict[Row, list[str]] = {}
    looked_at: dict[tuple[Any, ...], list[Row]] = {}
    for analyst in config.analysts:
        # Analysts who are alike in all that matters are looked at once.
        means = mechanism.means(analyst.name)
        pays = means if settings.independent else means >= (settings.price or 0)
        alike = (analyst.expects, pays)
        if alike not in looked_at:
            looked_at[alike] = list(_look(config, settings, mechanism, analyst))
        for row in looked_at[alike]:
            who_gets.setdefault(row, []).append(analyst.name)
    return tuple(
        Outlook(asked, tuple(analysts), free, paid)
        for (_, asked, free, paid), analysts in sorted(who_gets.items(), key=lambda item: item[0][0])
    )


#: What an outlook is made of, with its place among them.
Row = tuple[int, str, Expected | None, Expected | None]


def _look(config: Config, settings: Settings, mechanism: Mechanism, analyst: Analyst) -> Iterable[Row]:
    domain = config.domain
    workload = expected_workloads(domain, config.name, [analyst])[analyst.name]
    first = _first(workload, domain.size)
    asked: list[tuple[str, Sequence[Question]]] = [
        ("the rows of one cell", [LinearQuery.cell(domain, domain.size // 2)]),
        ("all rows", [LinearQuery.all(domain)]),
    ]
    if workload:
        asked.append((_called(len(first), len(workload), analyst), first))
    undetermined = settings.kind is CacheReconstruct and not settings.determined
    price = settings.price or Fraction(0)
    able = mechanism.means(analyst.name) >= price
    for place, (what, questions) in enumerate(asked):
        free: list[list[float] | None] = []
        paid: list[list[float] | None] = []
        for question in questions:
            queries = Ask(analyst.name, question).queries
            if undetermined and domain.size > MOST_UNDETERMINED:
                free.append(None)
                paid.append(_fresh(mechanism, queries, price) if able else None)
                continue
            found = mechanism.preview(question, analyst.name)
            free.append(_errors(queries, found.free))
            paid.append(_errors(queries, found.paid))
        yield place, what, _expected(config, free), _expected(config, paid)


def _called(looked_at: int, of: int, analyst: Analyst) -> str:
    """What the questions are called: nobody expects those that are only assumed."""
    kind = "expected" if analyst.expects else "assumed"
    if looked_at == of:
        return f"the {kind} questions"
    first = "the first" if looked_at == 1 else f"the first {looked_at:,}"
    return f"{first} of {of:,} {kind} questions"


def _first(questions: Sequence[Question], cells: int) -> Sequence[Question]:
    """The first questions, as many as can be looked at in a moment, and at least one."""
    numbers = 0
    for at, question in enumerate(questions):
        numbers += 1 if isinstance(question, LinearQuery) else len(question)
        if at and numbers * cells > MOST_WORK:
            return questions[:at]
    return questions


def _fresh(mechanism: Mechanism, queries: Sequence[LinearQuery], price: Fraction) -> list[float]:
    """The errors of what is measured now: where nothing else is known, it is all there is."""
    rows = ParallelBlock(mechanism.domain, queries, disjoint=True).primitive
    errors = errors_of(mechanism.curator.variances(rows, price), queries)
    return [in_rows(query, error) for query, error in zip(queries, errors, strict=True)]


def _errors(queries: Sequence[LinearQuery], offer: Offer | None) -> list[float] | None:
    """The errors of one question in rows: as many of each query's largest weight."""
    if offer is None:
        return None
    return [
        math.inf if error is None else in_rows(query, error)
        for query, error in zip(queries, offer.standard_errors, strict=True)
    ]


def _expected(config: Config, found: Sequence[list[float] | None]) -> Expected | None:
    errors = [error for each in found if each is not None for error in each]
    if not errors or any(each is None for each in found):
        return None
    return expected(errors, config.error_threshold)


def in_rows(query: LinearQuery, error: float) -> float:
    """A standard error in rows: a sum's is that of as many rows of its largest weight."""
    return error / (float(query.max_abs) or 1)


def expected(errors: Sequence[float], threshold: float) -> Expected:
    """The root of the mean square of errors, and the part within a threshold, by the normal law."""
    chances = [math.erf(threshold / (error * math.sqrt(2))) if error else 1.0 for error in errors]
    return Expected(math.sqrt(float(np.mean(np.square(errors)))), float(np.mean(chances)))


def as_it_is(config: Config) -> Candidate | None:
    """What `sharewell plan` would say of the settings that a file has; None where it compares no such.

    The workloads are asked in turns, as there.
    """
    settings = Settings.of(config)
    if settings.kind is not CacheReconstruct or settings.independent or settings.seed is None:
        return None
    stream = list(in_turns(config.workloads()))
    of: dict[str, list[float]] = {}
    for (analyst, question), errors in zip(stream, config.collective.errors(stream), strict=True):
        queries = Ask(analyst, question).queries
        found = of.setdefault(analyst, [])
        found += [in_rows(query, error) for query, error in zip(queries, errors or (), strict=True)]
    judge: Callable[[Sequence[float]], Expected] = partial(expected, threshold=config.error_threshold)
    return Candidate(
        settings.seed.name,
        settings.seed_fraction,
        settings.price or Fraction(0),
        {analyst: judge(errors).within for analyst, errors in of.items()},
        judge([error for errors in of.values() for error in errors]).typical,
    )
