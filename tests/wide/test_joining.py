"""No answer is worse for another analyst having joined: seeds of marginals, wide tables, measures."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sharewell import Budget, Curator, DataVector, Domain, Integer, LinearQuery
from sharewell.errors import PrivacyError
from sharewell.mechanisms import seed
from sharewell.mechanisms.base import Answer
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.marginal_seed import MarginalSeed
from sharewell.privacy.ledger import MemoryLedger
from sharewell.query.block import GroupedBlock, Neighbours
from sharewell.query.measure import Measure
from sharewell_lab.noise import NoNoise, SeededNoise

NAMES = ("ann", "bob", "cem")
ATTRIBUTES = [Integer("a", 0, 2), Integer("b", 0, 1), Integer("c", 0, 2)]
DOMAINS = {
    "narrow": Domain(ATTRIBUTES),
    "wide": Domain([*ATTRIBUTES, *(Integer(f"d{at}", 0, 9) for at in range(20))]),
    "measures": Domain(
        ATTRIBUTES, [Measure("pay", "pay", -2, 4, 1), Measure("age", "age", 0, 9, 3, False)]
    ),
}
WHOLE = st.integers(-2, 3)


@lru_cache
def data(name: str) -> DataVector:
    """Thirty rows."""
    domain, rng = DOMAINS[name], np.random.default_rng(7)
    codes = [rng.integers(0, each.size, 30) for each in domain.attributes]
    if name == "wide":
        return DataVector.of_cells(domain, codes, np.ones(30, dtype=np.int64), max_rows=40)
    added = [np.ones(30, dtype=np.int64)]
    if domain.measures:
        paid = rng.integers(0, 2, 30)
        added += [paid, paid * rng.integers(-3, 4, 30), rng.integers(-1, 2, 30)]
    sums = np.zeros((*domain.shape[:3], domain.vectors), dtype=np.int64)
    np.add.at(sums, tuple(codes), np.column_stack(added))
    return DataVector(domain, sums.ravel())


@st.composite
def seeds(draw, domain: Domain) -> MarginalSeed:
    """Some tables of counts and sums, with weights of many sizes; or all that have a name."""
    if draw(st.booleans()):
        named = [seed.tables, *(lambda d, k=k: seed.marginals(d, k) for k in (0, 1, 2))]
        return draw(st.sampled_from(named))(domain)
    names = [each.name for each in ATTRIBUTES]
    sets = [
        [*chosen, *([measure] if measure else [])]
        for chosen in draw(
            st.lists(st.lists(st.sampled_from(names), unique=True).map(sorted), min_size=1, max_size=4)
        )
        for measure in [draw(st.sampled_from([None, *(each.name for each in domain.measures)]))]
    ]
    distinct = [list(each) for each in dict.fromkeys(map(tuple, sets))]
    weights = [Fraction(draw(st.sampled_from([1, 3, 50]))) for _ in distinct]
    return seed.marginals_of(domain, distinct, weights)


@st.composite
def questions(draw, domain: Domain):
    """A condition or a difference on a few attributes, of counts or of sums; or one by groups."""
    levels = draw(st.sets(st.integers(0, min(4, len(domain.attributes) - 1)), max_size=3))
    weights = {}
    for level in levels:
        size = domain.shape[level]
        signed = draw(st.booleans())
        each = st.lists(WHOLE if signed else st.integers(0, 1), min_size=size, max_size=size)
        weights[level] = np.array(draw(each), dtype=np.int64)
    if domain.measures:
        of_vectors = st.lists(st.integers(-1, 1), min_size=domain.vectors, max_size=domain.vectors)
        only_count = np.eye(domain.vectors, dtype=np.int64)[0]
        weights[len(domain.attributes)] = (
            np.array(draw(of_vectors)) if draw(st.booleans()) else only_count
        )
    query = LinearQuery.of_vectors(domain, weights)
    if not domain.measures and draw(st.integers(0, 3)) == 0:
        query = LinearQuery.all(domain) - query * draw(st.sampled_from([1, 2]))
    assume(not query.is_zero)
    if draw(st.integers(0, 2)) == 0:
        by = draw(st.sets(st.integers(0, 2), min_size=1))
        block = GroupedBlock(query, {level: range(domain.shape[level]) for level in sorted(by)})
        assume(len(block))
        return block
    return query


@dataclass(frozen=True)
class Game:
    """A collective, and what happens to it."""

    domain: str
    seed: MarginalSeed
    zcdp: bool
    neighbours: Neighbours
    shares: tuple[int, ...]
    late: int
    price: int
    seed_fraction: str
    buy_seed_rows: bool
    events: tuple[tuple[Any, ...], ...]


@st.composite
def games(draw) -> Game:
    name = draw(st.sampled_from(sorted(DOMAINS)))
    domain = DOMAINS[name]
    asks = st.tuples(st.just("ask"), st.sampled_from(NAMES), questions(domain), st.booleans())
    events = st.one_of(asks, asks, asks, st.tuples(st.sampled_from(["join", "leave"]), st.booleans()))
    return Game(
        name,
        draw(seeds(domain)),
        draw(st.booleans()),
        draw(st.sampled_from(["add-remove", "replace-one"])),
        draw(st.tuples(*[st.integers(1, 6)] * 3)),
        draw(st.integers(1, 6)),
        draw(st.integers(1, 12)),
        draw(st.sampled_from(["0", "1/3", "4/5"])),
        draw(st.booleans()),
        tuple(draw(st.lists(events, min_size=1, max_size=9))),
    )


def made(game: Game, present: frozenset[str], ledger=None, noise=None) -> CacheReconstruct:
    budget = Budget.zcdp("9", "1e-6") if game.zcdp else Budget.pure("4")
    unit = budget.total / 24
    curator = Curator(
        data(game.domain),
        budget,
        {a: unit * part for a, part in zip(NAMES, game.shares, strict=True) if a in present},
        neighbours=game.neighbours,
        noise=noise or NoNoise(),
        ledger=ledger,
    )
    return CacheReconstruct(
        curator,
        seed=game.seed,
        seed_fraction=game.seed_fraction,
        query_budget=unit * game.price / 12,
        buy_seed_rows=game.buy_seed_rows,
    )


def play(
    mechanism: CacheReconstruct, game: Game, present: frozenset[str]
) -> list[tuple[str, LinearQuery, Answer]]:
    """Who asked, each query and its answer; dan may join late."""
    unit, found = mechanism.curator.budget.total / 24, []
    for event in game.events:
        match event:
            case ("ask", analyst, question, pay) if analyst in mechanism.analysts:
                answers = mechanism.ask(question, analyst, pay=pay)
                if isinstance(question, LinearQuery):
                    question, answers = [question], [answers]
                found += [(analyst, *pair) for pair in zip(question, answers, strict=True)]
            case ("ask", *_):
                pass
            case ("join", _) if "dan" in present and "dan" not in mechanism.analysts:
                with contextlib.suppress(PrivacyError):
                    mechanism.join("dan", unit * game.late)
            case ("leave", donate) if "cem" in mechanism.analysts:
                mechanism.leave("cem", donate=donate)
    return found


ALL = frozenset((*NAMES, "dan"))
LONG = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
    ],
)


@LONG
@given(games(), st.sets(st.sampled_from(sorted(ALL)), min_size=1, max_size=3).map(frozenset))
def test_no_answer_is_worse_for_another_analyst_having_joined(game, present):
    assume(present & set(NAMES))
    alone = [row.standard_error or 0 for *_, row in play(made(game, present), game, present)]
    played = play(made(game, ALL), game, ALL)
    joint = [row.standard_error or 0 for analyst, _, row in played if analyst in present]
    assert len(joint) == len(alone)
    for error, without in zip(joint, alone, strict=True):
        assert error <= without * (1 + 1e-7) + 1e-9


@settings(LONG, max_examples=25)
@given(games())
def test_a_mechanism_made_anew_from_the_ledger_answers_to_the_last_bit_alike(game):
    ledger = MemoryLedger()
    mechanism = made(game, ALL, ledger, SeededNoise(5))
    play(mechanism, game, ALL)
    again = made(game, ALL, ledger)
    assert again.analysts == mechanism.analysts
    for event in game.events:
        if event[0] == "ask":
            analyst = mechanism.analysts[0]
            found = [each.ask(event[2], analyst, pay=False) for each in (mechanism, again)]
            assert found[0] == found[1]


@settings(LONG, max_examples=25)
@given(games())
def test_without_noise_every_answer_is_exact_or_undetermined(game):
    vector = data(game.domain)
    for _, query, answer in play(made(game, ALL), game, ALL):
        if answer.is_determined:
            truth = vector.answer(query.primitive) * float(query.scale)
            assert answer.value == pytest.approx(truth, abs=1e-5)
        else:
            assert answer.standard_error == math.inf
            assert answer.interval == (-math.inf, math.inf)
