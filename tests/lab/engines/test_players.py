"""Every player equals the real mechanism, draw for draw. This is the licence to use the players."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell import Domain, Integer, datasets
from sharewell.mechanisms.pmw import tuned
from sharewell.mechanisms.reconstruction import FEW_CELLS
from sharewell.privacy.sparse_vector import SparseVectorPlan
from sharewell.query import workload
from sharewell_lab.engines import MECHANISMS, PlaySettings, play
from sharewell_lab.engines.players import pmw_tuning
from sharewell_lab.engines.world import exact
from sharewell_lab.streams import Questions, draw_questions
from sharewell_lab.studies import wide
from tests.lab.engines.cases import cases
from tests.lab.engines.real import MECHANISMS as REAL
from tests.lab.engines.real import Case, check_equal, play_real
from tests.lab.engines.script import Script

SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("mechanism", REAL)
@given(case=cases(), seed=SEEDS)
def test_a_player_gives_every_answer_of_the_real_mechanism(mechanism, case, seed):
    check_equal(
        MECHANISMS[mechanism](case.world, Script(seed)), play_real(mechanism, case, Script(seed))
    )


@given(case=cases())
def test_the_uniform_guess_divides_the_population_evenly(case):
    run = MECHANISMS["uniform"](case.world, Script(0))
    for place, weights in enumerate(case.questions.weights):
        if not case.present[case.questions.analyst[place]]:
            assert np.isnan([run.value[place], run.error[place]]).all()
            continue
        guess = case.population * weights.sum() / len(weights)
        assert run.value[place] == pytest.approx(guess)
        assert run.error[place] == pytest.approx(abs(guess - case.counts[weights == 1].sum()))
    assert np.isnan(run.expected).all()
    assert (run.payer == -1).all()


def stream(domain: Domain, counts: np.ndarray, arrivals: int, *, absent: int = -1, **changed) -> Case:
    """Ten analysts who ask ranges, prefix sums and single cells of one line, some of them often."""
    rng = np.random.default_rng(5)
    pools = [
        list(workload.prefixes(domain)),
        list(workload.identity(domain)),
        list(workload.random_ranges(domain, 60, rng)),
    ]
    who = rng.integers(0, 10, arrivals)
    asked = [pools[i % 3][rng.integers(len(pools[i % 3]))] for i in who]
    questions = Questions.of(asked, who, analysts=10)
    present = np.arange(10) != absent
    case = Case(
        domain=domain,
        questions=questions,
        order=questions.places(present),
        counts=counts,
        shares=[Fraction(1, 10)] * 10,
        seed_fraction=Fraction(1, 2),
        query_budget=Fraction(1, 160),
        population=float(counts.sum()) + 0.3,
        present=present,
    )
    return replace(case, **changed)


@pytest.mark.parametrize("mechanism", REAL)
@pytest.mark.parametrize("absent", [-1, 3])
def test_players_equal_the_real_ones_on_the_papers_data(mechanism, absent):
    movers = datasets.movers_by_age()
    case = stream(movers.domain, np.asarray(movers.counts), 250, absent=absent)
    real = play_real(mechanism, case, Script(7))
    check_equal(MECHANISMS[mechanism](case.world, Script(7)), real)
    # The stream is one on which something happens: answers of both kinds, paid and not paid.
    assert 0 < (real.payer >= 0).sum() < len(case.order)


@pytest.mark.parametrize("mechanism", ["scr", "scr-as-printed"])
def test_scr_equals_the_real_one_where_that_reconstructs_from_rows(mechanism):
    cells = FEW_CELLS + 50
    counts = np.random.default_rng(1).integers(0, 200, cells)
    case = stream(Domain([Integer("at", 0, cells - 1)]), counts, 120, query_budget=Fraction(1, 100))
    check_equal(MECHANISMS[mechanism](case.world, Script(2)), play_real(mechanism, case, Script(2)))


def test_pmw_equals_the_real_one_when_wild_measurements_reach_the_largest_step():
    counts = np.array([4000, 0, 0, 5])
    case = stream(Domain([Integer("at", 0, 3)]), counts, 60, population=11.7, updates=12, threshold=0)
    real = play_real("pmw", case, Script(3))
    assert (np.abs(real.value - case.population) > 4 * case.population).any()
    check_equal(MECHANISMS["pmw"](case.world, Script(3)), real)


@pytest.mark.parametrize(
    ("mechanism", "shares", "budget"),
    [
        ("laplace", ["1/10"] * 3, "1/10"),
        ("scr", ["3/10"], "1/100"),
        ("scr-as-printed", ["3/10"], "1/100"),
    ],
)
def test_the_last_question_that_is_paid_for_to_the_penny_is_measured(mechanism, shares, budget):
    # In floats 0.1 + 0.1 + 0.1 is not 3 * 0.1, and 0.3 * (1 - 0.9) / 0.01 is less than 3.
    weights = np.tri(5, dtype=np.uint8)[1:]
    case = Case(
        domain=Domain([Integer("at", 0, 4)]),
        questions=Questions.of_rows(weights, [0] * 4, analysts=len(shares)),
        order=np.arange(4),
        counts=np.array([5, 0, 7, 1, 2]),
        shares=[Fraction(share) for share in shares],
        seed_fraction=Fraction(9, 10),
        query_budget=Fraction(budget),
        population=15.2,
        present=np.ones(len(shares), dtype=bool),
    )
    run = MECHANISMS[mechanism](case.world, Script(4))
    assert (run.payer >= 0).tolist() == [True, True, True, False]
    check_equal(run, play_real(mechanism, case, Script(4)))


@pytest.mark.parametrize(
    ("count", "measured"), [(6, True), (7, True), (8, False), (12, False), (13, True), (14, True)]
)
def test_pmw_tests_a_guess_that_is_a_whole_number_and_the_threshold_itself_is_far(count, measured):
    # So much budget that there is no noise. The guess is 10.1, which is tested as 10.
    case = Case(
        domain=Domain([Integer("at", 0, 3)]),
        questions=Questions.of_rows([[1, 0, 0, 0]], [0], analysts=1),
        order=np.arange(1),
        counts=np.array([count, 10, 10, 10]),
        shares=[Fraction(10_000)],
        seed_fraction=Fraction(1, 2),
        query_budget=Fraction(1),
        population=40.4,
        present=np.ones(1, dtype=bool),
        updates=2,
        threshold=3,
    )
    run = MECHANISMS["pmw"](case.world, Script(6))
    assert (run.payer >= 0).tolist() == [measured]
    check_equal(run, play_real("pmw", case, Script(6)))


@pytest.mark.parametrize(
    ("population", "alpha", "epsilon", "updates"),
    [(35_819, 358.19, 0.1, 16), (35_819, 358.19, 10, 80), (277_677, 277.677, 10, 253)],
)
def test_the_cap_and_the_threshold_of_pmw_follow_alpha_and_epsilon(population, alpha, epsilon, updates):
    def found(**settings):
        shares = np.array([epsilon])
        return pmw_tuning(PlaySettings(shares, population, 0.5, 0.1, **settings), epsilon)

    mine = found(error_threshold=alpha)
    assert mine.updates == updates
    noise = SparseVectorPlan(exact(epsilon) / 2, 1, updates).query_scale
    assert mine.threshold == pytest.approx(max(2 * noise, alpha / 2), rel=0.01)
    assert found() == tuned(population, epsilon), "without alpha the product's defaults"
    given = found(error_threshold=alpha, updates=7, threshold=3)
    assert (given.updates, given.threshold) == (7, 3)


def test_pmw_that_is_tuned_for_a_small_alpha_answers_more():
    study = wide([10.0])
    case = study.cases[1]
    stream = draw_questions(
        study.data.domain, study.asker(case), case.arrival, np.random.SeedSequence(1)
    )
    everyone = np.ones(10, dtype=np.bool_)

    def useful(error_threshold):
        setting = PlaySettings(case.budgets, case.population, 0.5, 0.1, error_threshold=error_threshold)
        order, seed = stream.places(everyone), np.random.SeedSequence(2)
        run = play("pmw", stream, order, study.data.counts, setting, everyone, seed)
        return np.mean(run.error <= case.error_threshold)

    assert useful(case.error_threshold) > useful(None) + 0.1
