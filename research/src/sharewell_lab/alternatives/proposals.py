"""Sharewell with the settings that it recommends, and "everything once": one release and nothing kept.

These play the product's own mechanism, Seeded Cache and Reconstruct, question by question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sharewell import Budget, Curator
from sharewell.mechanisms import seed as seeds
from sharewell.mechanisms.base import Answer, Question, Seed
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct, signing_helps
from sharewell.mechanisms.planned_seed import PlannedSeed
from sharewell.privacy.budget import Currency
from sharewell.privacy.noise import Noise
from sharewell.query.domain import Domain
from sharewell.sharing.plan import Candidate, plan, rank, recommended, suggested
from sharewell_lab.alternatives.rivals import Answers
from sharewell_lab.alternatives.streams import Numbers, TableQuestion, TableStream
from sharewell_lab.noise import NoNoise, SeededNoise

#: The delta of every contestant with Gaussian noise.
DELTA = "1/1000000"
#: Paying hardly helps where an error would still be this part of what it is, as quotes say.
LITTLE_GAIN = 0.95
#: The part of a stream after which the curator closes a round, whether analysts are done or not.
CLOSED = Fraction(3, 4)
#: The currencies, the first of which wins a tie.
CURRENCIES: tuple[Currency, ...] = ("zcdp", "pure")


@lru_cache
def budget_of(currency: Currency, epsilon: float) -> Budget:
    """The budget in a currency that is (epsilon, delta)-private; pure epsilon is so for any delta."""
    exact = Fraction(str(epsilon))
    return Budget.pure(exact) if currency == "pure" else Budget.zcdp(exact, DELTA)


def marginals(stream: TableStream, most: int) -> Seed:
    """All marginals of so many attributes, or of all attributes where there are fewer."""
    domain = stream.data.domain
    return seeds.marginals(domain, min(most, len(domain.shape)))


def views(stream: TableStream) -> Seed:
    """The marginals that the expected questions are about, without those that another one contains."""
    found = {frozenset(question.view) for expected in stream.expects for question in expected}
    most = [view for view in found if not any(view < other for other in found)]
    names = stream.data.domain.names
    return seeds.marginals_of(
        stream.data.domain, [[names[level] for level in view] for view in sorted(map(sorted, most))]
    )


#: The rows that are measured at the start by those who release everything once, by name.
SEEDS: Mapping[str, Callable[[TableStream], Seed]] = {
    "identity": lambda stream: seeds.identity(stream.data.domain),
    "marginals(1)": lambda stream: marginals(stream, 1),
    "marginals(2)": lambda stream: marginals(stream, 2),
    "views": views,
}


class Settings(NamedTuple):
    """Settings of Seeded Cache and Reconstruct: what `sharewell plan` recommends."""

    budget: Budget
    seed: Seed
    seed_fraction: Fraction
    query_budget: Fraction


def proposed(stream: TableStream, epsilon: float) -> Settings:
    """What `sharewell plan` recommends for what the analysts declare, of both kinds of noise.

    Privacy: free, and the same for all data, since errors depend on the questions alone.
    """
    return _planned(stream.data.domain, stream.expects, stream.error_threshold, epsilon)


@lru_cache(maxsize=64)
def _planned(
    domain: Domain,
    expects: tuple[tuple[TableQuestion, ...], ...],
    error_threshold: float,
    epsilon: float,
) -> Settings:
    found, seed_of = list[Candidate](), dict[tuple[Currency, str], Seed]()
    asked: dict[int, list[Question]] = {}
    for declared in expects:
        asked.setdefault(id(declared), [question.asked for question in declared])
    workloads = {str(who): asked[id(declared)] for who, declared in enumerate(expects)}
    for currency in CURRENCIES:
        budget = budget_of(currency, epsilon)
        seeds_here = [*suggested(domain), PlannedSeed(domain, currency, expected=workloads)]
        seed_of |= {(currency, seed.name): seed for seed in seeds_here}
        found += plan(
            domain,
            workloads,
            budget,
            dict.fromkeys(workloads, budget.total / len(expects)),
            error_threshold,
            strategies=seeds_here,
        )
    best = recommended(sorted(found, key=rank))
    seed = seed_of[best.budget.currency, best.seed]
    return Settings(best.budget, seed, best.seed_fraction, best.query_budget)


def play_proposed(stream: TableStream, epsilon: float, rng: np.random.Generator) -> Answers:
    """Every question with the settings that `sharewell plan` recommends, and a closing round."""
    return [*play_with(stream, proposed(stream, epsilon), SeededNoise(rng), closed=CLOSED)]


def play_with(
    stream: TableStream, settings: Settings, noise: Noise, *, closed: Fraction | None = None
) -> list[Numbers]:
    """The values of all answers: questions are asked in order of arrival.

    An analyst pays as long as they can, unless the quote says that paying would hardly help. After the
    part `closed` of the stream the curator closes a round: who has asked their last question is done.
    """
    return [_values(answers) for answers in played(begun(stream, settings, noise), stream, closed)]


Given = Answer | tuple[Answer, ...]


def played(
    mechanism: CacheReconstruct, stream: TableStream, closed: Fraction | None = None
) -> Iterator[Given]:
    """The answers to a stream, in order; equal ones are computed once, until something is measured."""
    asked = list(zip(stream.questions, stream.analyst.astype(str).tolist(), strict=True))
    last = {who: place for place, (_, who) in enumerate(asked)}
    closing = None if closed is None else place_of(closed, stream)
    known: dict[object, Given] = {}
    helps: dict[object, bool] = {}
    for place, (question, who) in enumerate(asked):
        if place == closing:
            mechanism.close_round([each for each, end in last.items() if end < place])
            known, helps = {}, {}
        can_pay = mechanism.curator.left(who) >= mechanism.query_budget
        if can_pay and question.key not in helps:
            helps[question.key] = paying_helps(mechanism, question, who)
        if can_pay and helps[question.key]:
            known, helps = {}, {}  # A purchase may sharpen every other answer.
            known[question.key] = mechanism.ask(question.asked, who)
        if question.key not in known:
            known[question.key] = mechanism.ask(question.asked, who, pay=False)
        yield known[question.key]


def place_of(part: Fraction, stream: TableStream) -> int:
    """How many questions are asked before a part of a stream is over."""
    return round(part * len(stream.questions))


def asked_free(mechanism: CacheReconstruct, stream: TableStream) -> Iterator[Given]:
    """The answers to all questions from what was measured so far."""
    known: dict[object, Given] = {}
    for question in stream.questions:
        if question.key not in known:
            known[question.key] = mechanism.ask(question.asked, "0", pay=False)
        yield known[question.key]


def begun(stream: TableStream, settings: Settings, noise: Noise) -> CacheReconstruct:
    """The mechanism with its seed measured; single counts are bought as signed rows where that helps."""

    def made(noise: Noise, analysts: int, signed_rows: bool) -> CacheReconstruct:
        share = settings.budget.total / stream.analysts
        shares = {str(who): share for who in range(analysts)}
        return CacheReconstruct(
            Curator(stream.data, settings.budget, shares, noise=noise),
            seed=settings.seed,
            seed_fraction=settings.seed_fraction,
            query_budget=settings.query_budget,
            signed_rows=signed_rows,
        )

    declared = {question.key: question for some in stream.expects for question in some}
    alone = made(NoNoise(), 1, False)
    signed = signing_helps(alone, [question.asked for question in declared.values()])
    return made(noise, stream.analysts, signed)


def paying_helps(mechanism: CacheReconstruct, question: TableQuestion, who: str) -> bool:
    """Whether a quote has no note that paying would hardly make the answer more precise."""
    offers = mechanism.preview(question.asked, who)
    if offers.paid is None or not offers.paid.cost:
        return False
    if offers.free is None:
        return True
    pairs = zip(offers.paid.standard_errors, offers.free.standard_errors, strict=True)
    return any(free is None or (paid or 0.0) < LITTLE_GAIN * free for paid, free in pairs)


def everything_once(
    stream: TableStream, budget: Budget, seed: Seed, rng: np.random.Generator
) -> Answers:
    """One measurement with the whole budget, and every answer by least squares from it."""
    shares = {str(who): budget.total / stream.analysts for who in range(stream.analysts)}
    mechanism = CacheReconstruct(
        Curator(stream.data, budget, shares, noise=SeededNoise(rng)),
        seed=seed,
        seed_fraction="1",
        query_budget=budget.total,
    )
    return [_values(answers) for answers in asked_free(mechanism, stream)]


def _several(answers: Given) -> tuple[Answer, ...]:
    return answers if isinstance(answers, tuple) else (answers,)


def _values(answers: Given) -> Numbers:
    """The values, with NaN for what is undetermined."""
    found = _several(answers)
    return np.array([one.value if one.is_determined else np.nan for one in found], dtype=np.float64)


def errors_of(answers: Given) -> Numbers:
    """The standard errors, infinite for what is undetermined."""
    found = [one.standard_error for one in _several(answers)]
    return np.array([np.inf if error is None else error for error in found], dtype=np.float64)
