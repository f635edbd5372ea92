"""Seeded Cache and Reconstruct: the algorithm, and that nobody is worse off for sharing."""

import contextlib
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sharewell import Budget, Curator, DataVector, Domain, Integer, LinearQuery
from sharewell.errors import PrivacyError, QueryError, SharewellError, UnknownPayer
from sharewell.mechanisms import seed
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.privacy.ledger import Charged, MemoryLedger, Released
from sharewell.query import workload
from sharewell.query.block import Block, ParallelBlock
from sharewell_lab.noise import NoNoise, SeededNoise

LINE = Domain([Integer("age", 0, 7)])
SEEDS = {**seed.NAMED, "optimized": lambda d: seed.optimized(d, workload.ranges(d), starts=1)}
NAMES = ("ann", "bob", "cem")


def made(counts=range(8), *, noise=None, ledger=None, seed_name="identity", budget=None, **options):
    vector = DataVector(LINE, np.array(counts, dtype=np.int64))
    shares = options.pop("shares", dict.fromkeys(NAMES, "1/3"))
    curator = Curator(
        vector,
        budget or Budget.pure("1"),
        shares,
        noise=noise or NoNoise(),
        ledger=ledger,
        neighbours=options.pop("neighbours", "add-remove"),
    )
    settings = {"seed_fraction": "1/2", "query_budget": "1/24", **options}
    return CacheReconstruct(curator, seed=SEEDS[seed_name](LINE), **settings)


def interval(first: int, last: int) -> LinearQuery:
    return LinearQuery.of(LINE, age=range(first, last + 1))


# What the algorithm does


def test_a_new_query_is_paid_by_who_asks_and_free_for_all_afterwards():
    mechanism = made()
    first = mechanism.ask(interval(2, 5), "ann")
    again = mechanism.ask(interval(2, 5), "bob")
    assert (first.source, first.cost, first.payer) == ("measured", Fraction(1, 24), "ann")
    assert (again.source, again.cost, again.payer) == ("cached", 0, "ann")
    assert mechanism.curator.spent("bob") == Fraction(1, 6), "the seed alone"
    assert (first.value, again.value) == (14, 14)


def test_who_has_no_budget_left_is_answered_from_what_is_known():
    mechanism = made()
    for last in range(1, 5):
        assert mechanism.ask(interval(0, last), "ann").source == "measured"
    known = mechanism.ask(interval(3, 6), "ann")
    assert (known.source, known.cost, known.payer) == ("reconstructed", 0, None)
    assert known.value == pytest.approx(18)
    assert mechanism.preview(interval(3, 6), "ann").paid is None


def test_what_was_bought_before_is_offered_also_to_those_who_have_nothing_left():
    mechanism = made()
    for last in range(1, 5):
        mechanism.ask(interval(0, last), "ann")
    offered = mechanism.preview(interval(0, 1), "ann")
    assert offered.paid == offered.free
    assert (offered.paid.cost, offered.paid.sources) == (0, ("cached",))
    assert mechanism.ask(interval(0, 1), "ann").source == "cached"


def test_a_seed_row_is_never_bought_again_unless_that_is_wanted():
    assert made().ask(interval(3, 3), "ann").source == "cached"
    bought = made(buy_seed_rows=True).ask(interval(3, 3), "ann")
    assert bought.source == "measured"
    assert bought.standard_error < made().ask(interval(3, 3), "ann").standard_error


def test_a_block_costs_one_query_and_measures_only_what_is_new():
    mechanism = made()
    mechanism.ask(interval(0, 1), "ann")
    by_pair = ParallelBlock.group_by(LinearQuery.all(LINE), {0: [0, 0, 1, 1, 2, 2, 3, 3]})
    answers = mechanism.ask(by_pair, "bob")
    assert [a.source for a in answers] == ["cached", "measured", "measured", "measured"]
    assert [a.payer for a in answers] == ["ann", "bob", "bob", "bob"]
    assert len({a.charge for a in answers[1:]}) == 1
    assert mechanism.curator.spent("bob") == Fraction(1, 6) + Fraction(1, 24)
    assert [a.value for a in answers] == pytest.approx([1, 5, 9, 13])


def test_rows_of_a_block_that_select_nothing_are_public_zeros():
    adults = interval(4, 7)
    block = ParallelBlock.group_by(adults, {0: [0, 0, 0, 0, 1, 1, 2, 2]})
    answers = made().ask(block, "ann")
    assert (answers[0].value, answers[0].standard_error, answers[0].source) == (0, 0, "public")
    assert answers[1].source == "measured"


def test_sums_are_answered_with_their_scale():
    total_age = LinearQuery.product(LINE, {"age": range(8)}) * Fraction(1, 2)
    answer = made().ask(total_age, "ann")
    assert answer.value == pytest.approx(sum(i * i / 2 for i in range(8)))


@pytest.mark.parametrize("seed_name", [name for name in SEEDS if name != "total"])
@pytest.mark.parametrize("answers", ["estimate", "as-printed"])
def test_without_noise_every_answer_is_exact(seed_name, answers):
    mechanism = made(seed_name=seed_name, answers=answers)
    for query in workload.random_ranges(LINE, 30, np.random.default_rng(1)):
        value = mechanism.ask(query, "bob").value
        assert value == pytest.approx(query.dot(np.arange(8)), abs=1e-6)


@pytest.mark.parametrize("budget", [Budget.pure("1"), Budget.zcdp("3", "1e-6")], ids=["pure", "zcdp"])
@pytest.mark.parametrize("answers", ["estimate", "as-printed"])
def test_a_preview_costs_nothing_and_tells_what_then_happens(budget, answers):
    share, price = budget.total / 3, budget.total / 24
    mechanism = made(
        budget=budget, shares=dict.fromkeys(NAMES, share), query_budget=price, answers=answers
    )
    by_pair = ParallelBlock.group_by(LinearQuery.all(LINE), {0: [0, 0, 1, 1, 2, 2, 3, 3]})
    for question in (interval(1, 6), by_pair, interval(1, 6), interval(3, 3), interval(2, 7)):
        left = mechanism.curator.left("ann")
        preview = mechanism.preview(question, "ann")
        assert mechanism.preview(question, "ann") == preview
        assert mechanism.curator.left("ann") == left
        free = mechanism.ask(question, "cem", pay=False)
        found = mechanism.ask(question, "ann")
        for offer, answer in ((preview.free, free), (preview.paid, found)):
            answers_found = answer if isinstance(answer, tuple) else (answer,)
            errors = [a.standard_error for a in answers_found]
            assert errors == pytest.approx(offer.standard_errors, rel=1e-9)
            assert tuple(a.source for a in answers_found) == offer.sources
        assert left - mechanism.curator.left("ann") == preview.paid.cost


def test_a_free_question_never_spends():
    mechanism = made()
    left = mechanism.curator.left("ann")
    assert mechanism.ask(interval(2, 5), "ann", pay=False).source == "reconstructed"
    assert mechanism.curator.left("ann") == left


def test_those_who_join_sharpen_the_seed_and_those_who_leave_may():
    mechanism = made(shares={"ann": "1/4", "bob": "1/4"})
    alone = mechanism.ask(interval(0, 6), "ann", pay=False).standard_error
    mechanism.join("cem", "1/4")
    joined = mechanism.ask(interval(0, 6), "ann", pay=False).standard_error
    mechanism.leave("cem", donate=True)
    donated = mechanism.ask(interval(0, 6), "ann", pay=False).standard_error
    assert donated < joined < alone
    assert mechanism.curator.left("cem") == 0
    with pytest.raises(UnknownPayer):
        mechanism.ask(interval(0, 1), "cem")


def test_what_is_not_determined_has_an_infinite_error():
    answer = made(seed_name="total", query_budget="1/3").ask(interval(0, 3), "ann", pay=False)
    assert math.isinf(answer.standard_error)


def test_a_mechanism_made_anew_from_the_ledger_answers_to_the_last_bit_alike():
    ledger = MemoryLedger()
    mechanism = made(noise=SeededNoise(3), ledger=ledger, shares={"ann": "1/3", "bob": "1/3"})
    queries = workload.random_ranges(LINE, 12, np.random.default_rng(5))
    for at, query in enumerate(queries):
        mechanism.ask(query, ("ann", "bob")[at % 2])
    mechanism.join("cem", "1/3")
    mechanism.ask(workload.identity(LINE), "cem")
    mechanism.leave("bob", donate=True)
    again = made(ledger=ledger, shares={"ann": "1/3", "bob": "1/3"})
    assert again.analysts == mechanism.analysts
    for query in workload.random_ranges(LINE, 20, np.random.default_rng(6)):
        assert again.ask(query, "ann", pay=False) == mechanism.ask(query, "ann", pay=False)


def test_those_who_are_added_by_a_restart_donate_like_everybody():
    ledger = MemoryLedger()
    before = made(ledger=ledger, shares={"ann": "1/3"}).ask(interval(0, 6), "ann", pay=False)
    again = made(ledger=ledger, shares={"ann": "1/3", "bob": "1/3"})
    assert again.curator.spent("ann") == again.curator.spent("bob") == Fraction(1, 6)
    assert again.ask(interval(0, 6), "ann", pay=False).standard_error < before.standard_error


def test_a_seed_that_was_charged_before_a_crash_is_measured_after_it():
    class Crashing(MemoryLedger):
        def append_many(self, events):
            if any(isinstance(event, Released) for event in events):
                raise OSError("power cut")
            return super().append_many(events)

    ledger = Crashing()
    with pytest.raises(OSError, match="power cut"):
        made(ledger=ledger, seed_fraction="3/4")
    recovered = MemoryLedger()
    for event in ledger.events():
        recovered.append(event)
    again = made(ledger=recovered, seed_fraction="3/4")
    assert again.curator.spent("ann") == again.curator.share("ann") * 3 / 4, "charged once, and now used"
    assert math.isfinite(again.ask(interval(0, 6), "ann").standard_error)


@pytest.mark.parametrize(
    ("ask", "error", "says"),
    [
        (lambda m: m.ask(interval(0, 1), "eve"), UnknownPayer, "'eve'"),
        (lambda m: m.preview(interval(0, 1), "eve"), UnknownPayer, "'eve'"),
        (lambda m: m.ask(LinearQuery.zero(LINE), "ann"), QueryError, "selects no cell"),
        (lambda m: m.ask(Block(LINE, []), "ann"), QueryError, "selects no cell"),
        (lambda m: m.ask(workload.prefixes(LINE), "ann"), QueryError, "overlap in a cell"),
        (
            lambda m: m.ask(LinearQuery.all(Domain([Integer("age", 0, 8)])), "ann"),
            QueryError,
            "domain",
        ),
        (lambda m: m.join("ann", "1/9"), PrivacyError, "already holds"),
        (lambda m: m.join("dan", "1/9"), PrivacyError, "exceeds the unallocated budget"),
        (lambda m: m.leave("eve"), UnknownPayer, "'eve'"),
    ],
)
def test_bad_input_changes_nothing(ask, error, says):
    ledger = MemoryLedger()
    mechanism = made(ledger=ledger)
    before = list(ledger.events())
    with pytest.raises(error, match=says):
        ask(mechanism)
    assert list(ledger.events()) == before


@pytest.mark.parametrize(
    "settings",
    [{"query_budget": "0"}, {"query_budget": "-1"}, {"seed_fraction": "2"}, {"answers": "raw"}],
)
def test_bad_settings_are_refused_before_anything_is_spent(settings):
    ledger = MemoryLedger()
    with pytest.raises(SharewellError):
        made(ledger=ledger, **settings)
    assert not any(isinstance(event, Charged) for event in ledger.events())


# Nobody is worse off, query by query


@dataclass(frozen=True)
class Game:
    """A collective, and what happens to it."""

    seed_name: str
    zcdp: bool
    neighbours: str
    shares: tuple[int, ...]
    late: int
    price: int
    seed_fraction: str
    buy_seed_rows: bool
    events: tuple[tuple[Any, ...], ...]


questions = st.one_of(
    st.tuples(st.integers(0, 7), st.integers(0, 7)).map(lambda ends: interval(min(ends), max(ends))),
    st.sampled_from([(0, 0, 1, 1, 2, 2, 3, 3), (0, 0, 0, 1, 1, 1, 2, 2), (0, 1, 2, 3, 4, 5, 6, 7)]).map(
        lambda groups: ParallelBlock.group_by(LinearQuery.all(LINE), {0: groups})
    ),
    st.just(LinearQuery.product(LINE, {"age": list(range(8))})),
    st.just(LinearQuery.product(LINE, {"age": [1, -1, 0, 2, 0, 0, -3, 1]})),
)
asks = st.tuples(st.just("ask"), st.sampled_from(NAMES), questions, st.booleans())
events = st.one_of(asks, asks, asks, st.tuples(st.sampled_from(["join", "leave"]), st.booleans()))
games = st.builds(
    Game,
    st.sampled_from([*SEEDS]),
    st.booleans(),
    st.sampled_from(["add-remove", "replace-one"]),
    st.tuples(*[st.integers(1, 6)] * 3),
    st.integers(1, 6),
    st.integers(1, 12),
    st.sampled_from(["1/3", "4/5"]),
    st.booleans(),
    st.lists(events, min_size=1, max_size=14).map(tuple),
)


def errors(game: Game, present: frozenset[str], answers: str = "estimate") -> list[tuple[str, float]]:
    """Each answer's analyst and standard errors, with these analysts only; dan may join late."""
    budget = Budget.zcdp("9", "1e-6") if game.zcdp else Budget.pure("4")
    unit = budget.total / 24
    shares = {a: unit * part for a, part in zip(NAMES, game.shares, strict=True) if a in present}
    mechanism = made(
        seed_name=game.seed_name,
        budget=budget,
        shares=shares,
        neighbours=game.neighbours,
        seed_fraction=game.seed_fraction,
        query_budget=unit * game.price / 12,
        answers=answers,
        buy_seed_rows=game.buy_seed_rows,
    )
    found = []
    for event in game.events:
        match event:
            case ("ask", analyst, question, pay) if analyst in mechanism.analysts:
                told = mechanism.ask(question, analyst, pay=pay)
                rows = told if isinstance(told, tuple) else (told,)
                found += [(analyst, row.standard_error) for row in rows]
            case ("ask", *_):
                pass
            case ("join", _) if "dan" in present and "dan" not in mechanism.analysts:
                with contextlib.suppress(PrivacyError):
                    mechanism.join("dan", unit * game.late)
            case ("leave", donate) if "cem" in mechanism.analysts:
                mechanism.leave("cem", donate=donate)
    return found


def harmed(game: Game, present: frozenset[str], answers: str = "estimate") -> bool:
    """Whether some answer to somebody present is worse with everybody than with these alone."""
    alone = [error for _, error in errors(game, present, answers)]
    everybody = frozenset((*NAMES, "dan"))
    joint = [error for analyst, error in errors(game, everybody, answers) if analyst in present]
    assert len(joint) == len(alone)
    return any(a * (1 + 1e-9) + 1e-9 < j for a, j in zip(alone, joint, strict=True))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(games, st.sets(st.sampled_from((*NAMES, "dan")), min_size=1, max_size=3).map(frozenset))
def test_no_answer_is_worse_for_another_analyst_having_joined(game, present):
    assume(present & set(NAMES))
    assert not harmed(game, present)


def test_the_printed_algorithm_is_caught_making_an_answer_worse():
    """Bob pays for Ann's first question, so she has budget left for a raw answer that is worse.

    Alone, she would have spent it, and her second question would be reconstructed from the seed.
    """
    first, second = interval(0, 3), interval(2, 5)
    stream = (("ask", "bob", first, True), ("ask", "ann", first, True), ("ask", "ann", second, True))
    game = Game("identity", False, "add-remove", (1, 6, 6), 1, 2, "4/5", False, stream)
    assert harmed(game, frozenset({"ann"}), "as-printed")
    assert not harmed(game, frozenset({"ann"})), "the same stream is safe with estimates"
