"""Laplace, Independent and Private Multiplicative Weights: what they do, spend and refuse."""

import contextlib
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell import Block, Budget, Curator, DataVector, Domain, Integer, LinearQuery
from sharewell.errors import OverBudget, QueryError, SharewellError, UnknownPayer
from sharewell.mechanisms import seed
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.independent import Independent
from sharewell.mechanisms.laplace import Laplace
from sharewell.mechanisms.pmw import PrivateMultiplicativeWeights, SyntheticTable
from sharewell.privacy.ledger import MemoryLedger, Released
from sharewell.privacy.measurement import MeasureRequest
from sharewell.query import workload
from sharewell.query.block import ParallelBlock
from sharewell_lab.noise import NoNoise, SeededNoise
from tests.query.domains import domain_and_vectors

LINE = Domain([Integer("age", 0, 15)])
COUNTS = np.array([900, 500, 300, 100, 50, 20, 10, 5, 5, 10, 20, 50, 100, 300, 500, 900])
PURE, ZCDP = Budget.pure("1"), Budget.zcdp("3", "1e-6")


def scr(curator):
    total = curator.budget.total
    return CacheReconstruct(curator, seed=seed.h2(LINE), seed_fraction="1/2", query_budget=total / 40)


MECHANISMS: dict[str, Any] = {
    "Laplace": lambda curator: Laplace(curator, query_budget=curator.budget.total / 20),
    "PMW": lambda curator: PrivateMultiplicativeWeights(curator, population=3770),
    "PMW, sign": lambda curator: PrivateMultiplicativeWeights(curator, population=3770, update="sign"),
    "PMW, measured total": lambda curator: PrivateMultiplicativeWeights(
        curator, updates=5, threshold=50
    ),
    "SCR": scr,
    "Independent SCR": lambda curator: Independent(curator, scr),
    "Independent Laplace": lambda curator: Independent(curator, MECHANISMS["Laplace"]),
    "Independent PMW": lambda curator: Independent(curator, MECHANISMS["PMW"]),
}


def made(name: str, budget=PURE, noise=None, ledger=None):
    shares = {"ann": budget.total / 2, "bob": budget.total / 2}
    vector = DataVector(LINE, COUNTS)
    return MECHANISMS[name](
        Curator(vector, budget, shares, noise=noise or SeededNoise(1), ledger=ledger)
    )


@pytest.fixture(params=MECHANISMS)
def name(request):
    return request.param


@pytest.fixture(params=[PURE, ZCDP], ids=["pure", "zcdp"])
def budget(request):
    return request.param


RANGES = list(workload.random_ranges(LINE, 40, np.random.default_rng(2)))


def test_nobody_ever_passes_their_share(name, budget):
    mechanism = made(name, budget)
    for at, query in enumerate(RANGES):
        with contextlib.suppress(OverBudget):
            mechanism.ask(query, ("ann", "bob")[at % 2])
        for analyst in ("ann", "bob"):
            assert 0 <= mechanism.curator.left(analyst) <= budget.total / 2


def test_a_preview_spends_nothing_and_bounds_the_cost(name, budget):
    mechanism = made(name, budget)
    for query in RANGES[:6]:
        before = [mechanism.curator.spent(a) for a in ("ann", "bob")]
        preview = mechanism.preview(query, "ann")
        assert [mechanism.curator.spent(a) for a in ("ann", "bob")] == before
        answer = mechanism.ask(query, "ann")
        if preview.paid is None:
            assert answer.cost == 0
            continue
        assert answer.cost <= preview.paid.cost
        if preview.paid.standard_error is not None:
            assert answer.standard_error == pytest.approx(preview.paid.standard_error)


def test_an_answer_says_where_it_came_from_and_how_far_off_it_may_be(name, budget):
    mechanism = made(name, budget)
    for query in RANGES[:10]:
        answer = mechanism.ask(query, "ann")
        assert answer.source in {"measured", "cached", "reconstructed", "synthetic"}
        if answer.standard_error is not None:
            low, high = answer.interval
            assert low <= answer.value <= high
            assert answer.standard_error > 0
        if answer.source == "measured":
            assert answer.payer == "ann"
            assert answer.cost > 0
            assert answer.charge is not None


def test_a_mechanism_made_anew_from_the_ledger_goes_on_where_it_was(name, budget):
    ledger = MemoryLedger()
    mechanism = made(name, budget, ledger=ledger)
    for at, query in enumerate(RANGES[:12]):
        mechanism.ask(query, ("ann", "bob")[at % 2])
    again = made(name, budget, ledger=ledger)
    for analyst in ("ann", "bob"):
        assert again.curator.left(analyst) == mechanism.curator.left(analyst)
        if "Laplace" not in name:
            for query in RANGES:
                free = mechanism.ask(query, analyst, pay=False)
                assert again.ask(query, analyst, pay=False) == free


def test_bad_input_is_refused_and_changes_nothing(name):
    ledger = MemoryLedger()
    mechanism = made(name, ledger=ledger)
    before = list(ledger.events())
    wrong_domain = LinearQuery.all(Domain([Integer("age", 0, 14)]))
    for ask in (
        lambda: mechanism.ask(RANGES[0], "eve"),
        lambda: mechanism.preview(RANGES[0], "eve"),
        lambda: mechanism.ask(LinearQuery.zero(LINE), "ann"),
        lambda: mechanism.ask(wrong_domain, "ann"),
        lambda: mechanism.ask(workload.prefixes(LINE), "ann"),
        lambda: mechanism.leave("eve"),
        lambda: mechanism.join("cem", "0"),
    ):
        with pytest.raises(SharewellError):
            ask()
    assert list(ledger.events()) == before


def test_without_noise_what_is_measured_is_exact(name):
    mechanism = made(name, noise=NoNoise())
    for query in RANGES[:10]:
        answer = mechanism.ask(query, "ann")
        if answer.source != "synthetic":
            assert answer.value == pytest.approx(query.dot(COUNTS), abs=1e-6)


def test_a_group_by_is_answered_row_by_row(name):
    mechanism = made(name)
    block = ParallelBlock.group_by(
        LinearQuery.of(LINE, age=range(4, 16)), {0: [0] * 4 + [1] * 6 + [2] * 6}
    )
    answers = mechanism.ask(block, "ann")
    assert len(answers) == 3
    assert (answers[0].source, answers[0].value) == ("public", 0)


# Laplace


def test_laplace_takes_from_the_common_pot_until_it_is_empty_for_all():
    mechanism = made("Laplace")
    for _ in range(20):
        mechanism.ask(RANGES[0], "ann")
    assert mechanism.curator.left("ann") == mechanism.curator.left("bob") == 0
    with pytest.raises(OverBudget, match="pot holds 0"):
        mechanism.ask(RANGES[0], "bob")
    assert mechanism.preview(RANGES[0], "bob").paid is None


def test_laplace_reuses_nothing_and_has_nothing_for_free():
    mechanism = made("Laplace")
    assert mechanism.ask(RANGES[0], "ann").value != mechanism.ask(RANGES[0], "ann").value
    with pytest.raises(QueryError, match="keeps no measurements"):
        mechanism.ask(RANGES[0], "ann", pay=False)


# Independent


def test_independent_analysts_pay_for_themselves_and_share_nothing():
    mechanism = made("Independent SCR")
    mechanism.ask(RANGES[0], "ann")
    assert mechanism.ask(RANGES[0], "bob").source == "measured"
    spent = Fraction(1, 4) + Fraction(1, 40)
    assert mechanism.curator.spent("ann") == mechanism.curator.spent("bob") == spent


def test_independent_instances_come_and_go_with_their_analysts():
    curator = Curator(DataVector(LINE, COUNTS), PURE, {"ann": "1/2"}, noise=SeededNoise(1))
    mechanism = Independent(curator, scr)
    mechanism.join("cem", "1/4")
    assert mechanism.ask(RANGES[0], "cem").source == "measured"
    mechanism.leave("cem")
    with pytest.raises(UnknownPayer):
        mechanism.ask(RANGES[0], "cem")


# Private Multiplicative Weights


@given(domain_and_vectors(2, low=0, high=1), st.floats(-1.5, 1.5))
def test_a_synthetic_table_is_bent_like_a_dense_one(case, step):
    domain, (x, y) = case
    table = SyntheticTable(domain, 100.0)
    naive = np.full(domain.size, 100.0 / domain.size)
    for weights in (x, y, x):
        table.bend(LinearQuery.from_vector(domain, weights), step)
        naive *= np.exp(step * weights)
        naive *= 100.0 / naive.sum()
    assert table.counts() == pytest.approx(naive)
    assert table.answer(LinearQuery.from_vector(domain, y)) == pytest.approx(y @ naive)


def test_a_synthetic_table_bends_along_weights_other_than_one():
    table = SyntheticTable(LINE, 10.0, prior=np.arange(1, 17))
    naive = np.arange(1, 17) / 136 * np.exp(0.1 * np.arange(16))
    table.bend(LinearQuery.product(LINE, {"age": np.arange(16)}), 0.1)
    assert table.counts() == pytest.approx(10 * naive / naive.sum())


def test_many_steps_neither_overflow_nor_lose_the_population():
    table = SyntheticTable(LINE, 10.0)
    for _ in range(3000):
        table.bend(LinearQuery.of(LINE, age=range(8)), 1.9)
    assert table.counts().sum() == pytest.approx(10.0)
    assert np.isfinite(table.counts()).all()


@pytest.mark.parametrize("population", [0, -1, math.nan, math.inf])
def test_an_impossible_population_is_refused(population):
    with pytest.raises(QueryError, match="positive number"):
        SyntheticTable(LINE, population)


@pytest.mark.parametrize("prior", [np.zeros(16), np.ones(15), np.full(16, math.nan), -np.ones(16)])
def test_an_impossible_prior_is_refused(prior):
    with pytest.raises(QueryError, match="prior"):
        SyntheticTable(LINE, 10.0, prior)


def test_pmw_stops_measuring_after_its_updates_and_spends_all_but_never_more():
    mechanism = PrivateMultiplicativeWeights(
        Curator(DataVector(LINE, COUNTS), PURE, {"ann": "1/2", "bob": "1/2"}, noise=SeededNoise(4)),
        population=3770,
        updates=3,
        threshold=0,
    )
    sources = [mechanism.ask(query, "ann").source for query in RANGES]
    assert sources.count("measured") == 3
    assert mechanism.updates_left == 0
    assert mechanism.curator.left("ann") == mechanism.curator.left("bob") == 0
    assert mechanism.preview(RANGES[0], "ann").paid is None


def test_pmw_answers_sums_from_the_table_without_a_test():
    mechanism = made("PMW")
    left = mechanism.updates_left
    answer = mechanism.ask(LinearQuery.product(LINE, {"age": range(16)}), "ann")
    assert (answer.source, answer.standard_error) == ("synthetic", None)
    assert mechanism.updates_left == left


def test_pmw_takes_nobody_in_later():
    with pytest.raises(QueryError, match="join later"):
        made("PMW").join("cem", "1/4")


@pytest.mark.statistical
def test_replay_beats_the_sign_step_and_the_uniform_guess():
    truth = np.array([query.dot(COUNTS) for query in RANGES])

    def error(name: str) -> float:
        misses = []
        for at in range(5):
            mechanism = made(name, noise=SeededNoise(at))
            values = [mechanism.ask(query, "ann").value for query in RANGES]
            misses.append(np.abs(np.array(values) - truth).mean())
        return float(np.mean(misses))

    uniform = np.abs(np.array([float(q.l1_norm) for q in RANGES]) * 3770 / 16 - truth).mean()
    assert error("PMW") < 0.6 * error("PMW, sign")
    assert error("PMW") < 0.6 * uniform


def test_laplace_gives_what_was_paid_for_before_a_crash_to_who_asks_for_it_and_once():
    class Crashing(MemoryLedger):
        broken = True

        def append_many(self, events):
            if self.broken and any(isinstance(event, Released) for event in events):
                raise OSError("power cut")
            return super().append_many(events)

    ledger = Crashing()
    question = LinearQuery.of(LINE, age=range(3))

    def opened() -> Laplace:
        table = DataVector(LINE, np.arange(16))
        shares = {"ann": "1/2", "bob": "1/2"}
        return Laplace(Curator(table, Budget.pure("1"), shares, ledger=ledger), query_budget="1/10")

    with pytest.raises(OSError, match="power cut"):
        opened().ask(question, "ann")
    ledger.broken = False
    again = opened()
    spent = sum(again.curator.spent(name) for name in again.analysts)
    first, second = (again.step(question, "ann") for _ in range(2))
    assert next(first) is None, "paid for before the crash"
    assert isinstance(next(second), MeasureRequest)
    second.close()
    with pytest.raises(StopIteration) as finished:
        first.send(None)
    assert finished.value.value[0].source == "measured"
    assert sum(again.curator.spent(name) for name in again.analysts) == spent
    assert isinstance(next(again.step(question, "ann")), MeasureRequest)


def test_what_laplace_owes_stays_owed_while_no_question_takes_it():
    table, ledger = DataVector(LINE, np.arange(16)), MemoryLedger()
    question = LinearQuery.of(LINE, age=range(3))
    curator = Curator(table, Budget.pure("1"), {"ann": "1"}, ledger=ledger)
    curator.charge([curator.reserve(MeasureRequest(Block(LINE, [question]), Fraction(1, 10), "ann"))])
    again = Laplace(Curator(table, Budget.pure("1"), {"ann": "1"}, ledger=ledger), query_budget="1/10")
    for _ in range(2):
        step = again.step(question, "ann")
        assert next(step) is None
        step.close()
    assert again.ask(question, "ann").source == "measured"
    assert again.curator.spent("ann") == Fraction(1, 10)
