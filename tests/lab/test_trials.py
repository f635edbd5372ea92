"""What must hold in every trial, whatever the noise."""

from dataclasses import replace

import numpy as np
import pytest

from sharewell import datasets
from sharewell.errors import ConfigError
from sharewell_lab import engines, trials
from sharewell_lab.studies import Study, fig1, fig3
from sharewell_lab.trials import CONTESTANTS, Case, Contestant

DATA = datasets.movers_by_age()


def study_of(analysts=4, **changes) -> Study:
    """The main experiment, smaller, with every contestant."""
    made = fig3(DATA, [1.0])
    cases = tuple(replace(case, analysts=analysts, **changes) for case in made.cases)
    return replace(made, contestants=tuple(CONTESTANTS.values()), cases=cases)


STUDY = study_of()


def of(rows, label, name):
    return rows[name][rows["contestant"] == label]


def played(study=STUDY, case=0, trial=0, seed=1):
    return study.play(study.cases[case], trial, seed)


@pytest.fixture
def runs(monkeypatch):
    """Every run that a trial plays: what was asked for, and what came of it."""
    seen = []

    def watched(name, play):
        def watching(*given):
            made = play(*given)
            seen.append((name or given[0], *given[-6:], made))
            return made

        return watching

    monkeypatch.setattr(engines, "play", watched(None, engines.play))
    monkeypatch.setattr(engines, "play_scr_both", watched("both", engines.play_scr_both))
    return seen


@pytest.mark.parametrize("p", range(3))
@pytest.mark.parametrize("threshold", [30.0, 100.0])
def test_nobody_expects_to_be_worse_off_with_estimates(p, threshold):
    for analysts, epsilon in ((2, 0.1), (5, 0.3), (10, 1.0)):
        study = study_of(analysts, error_threshold=threshold, epsilon=epsilon)
        study = replace(study, contestants=(CONTESTANTS["SCR"],))
        for trial in range(9):
            rows = played(study, p, trial)
            here = of(rows, "SCR", "expected_useful")
            assert (of(rows, "SCR", "expected_alone") <= here).all()
            assert (of(rows, "SCR", "expected_without") <= here).all()


def test_somebody_can_expect_to_be_worse_off_as_printed():
    study = replace(study_of(10, error_threshold=100.0), contestants=(CONTESTANTS["SCR printed"],))
    rows = [played(study, 0, trial) for trial in range(9)]
    assert any((one["expected_without"] > one["expected_useful"]).any() for one in rows)


def test_all_contestants_see_the_same_questions(runs):
    played()
    streams = {id(questions) for _, questions, *_ in runs}
    assert len(streams) == 1
    assert {name for name, *_ in runs} == {"uniform", "laplace", "pmw", "both"}


def test_schedulers_answer_the_same_questions_as_plain_pmw(runs):
    played()
    joint = [order for name, _, order, _, _, present, _, _ in runs if name == "pmw" and present.all()]
    assert len(joint) == 4  # PMW, RR, RS, and RS that skips those who are done
    assert len({tuple(order) for order in joint}) == 4
    assert len({tuple(sorted(order)) for order in joint}) == 1


def test_within_an_analyst_a_scheduler_keeps_the_order(runs):
    played()
    for _, questions, order, _, _, present, _, _ in runs:
        assert sorted(order) == questions.places(present).tolist()
        for analyst in range(questions.analysts):
            mine = order[questions.analyst[order] == analyst]
            assert (np.diff(mine) > 0).all()


def test_without_a_scheduler_it_takes_the_length_of_the_stream():
    rows = played()
    length = of(rows, "PMW", "asked").sum()
    for label in ("Uniform", "Ind", "Laplace", "PMW", "SCR", "SCR printed"):
        assert (of(rows, label, "steps") == length).all()
        assert (of(rows, label, "stalls") == 0).all()
    for label in ("RR", "RS"):
        assert (of(rows, label, "steps") - of(rows, label, "stalls") == length).all()
        assert (of(rows, label, "steps") > length).all()


def test_the_uniform_guess_knows_no_noise():
    one, other = (of(played(seed=1), "Uniform", "useful") for _ in range(2))
    assert (one == other).all()
    changed = study_of(epsilon=0.01)
    assert (of(played(changed), "Uniform", "useful") == one).all()
    assert (of(played(changed), "PMW", "useful") != of(played(), "PMW", "useful")).any()


def test_whoever_is_independent_gets_the_same_with_and_without_the_others():
    rows = played()
    alone = of(rows, "PMW", "alone")
    for name in ("useful", "alone", "without"):
        assert (of(rows, "Ind", name) == alone).all()


def test_every_world_is_played_once_with_noise_of_its_own(runs):
    played()
    worlds = [(name, present.tobytes()) for name, _, _, _, _, present, _, _ in runs]
    seeds = {(seed.entropy, seed.spawn_key) for *_, seed, _ in runs}
    assert len(seeds) == len(runs)
    alone = [world for world in worlds if sum(world[1]) == 1]
    assert len(set(alone)) == len(alone) == 3 * 4  # laplace, pmw and both SCRs; 4 analysts
    assert sum(name == "pmw" for name, _ in worlds) == 4 + 4 * 5


def test_what_a_contestant_gets_does_not_depend_on_the_others_who_compete():
    # So little budget that the noise of every contestant matters.
    study = study_of(epsilon=0.05, error_threshold=60.0)
    rows = played(study)
    for label, one in CONTESTANTS.items():
        own = played(replace(study, contestants=(one,)))
        for name in ("useful", "alone", "without", "expected_without", "steps"):
            assert np.array_equal(own[name], of(rows, label, name), equal_nan=True), (label, name)


def test_utilities_are_counted_from_the_errors_of_each_world(runs):
    rows = played()
    case = STUDY.cases[0]
    questions = runs[0][1]
    tables = {}
    for name, _, _, _, _, present, _, run in runs:
        if name == "laplace":
            good = run.error <= case.error_threshold
            counts = [int(good[questions.analyst == i].sum()) for i in range(4)]
            tables[tuple(np.flatnonzero(present).tolist())] = counts
    assert of(rows, "Laplace", "useful").tolist() == tables[0, 1, 2, 3]
    assert of(rows, "Laplace", "alone").tolist() == [tables[i,][i] for i in range(4)]
    assert of(rows, "Laplace", "without").tolist() == [
        max(counts[i] for who, counts in tables.items() if len(who) == 3 and i in who) for i in range(4)
    ]


def test_expected_errors_are_known_of_scr_and_laplace_only():
    rows = played()
    for label in CONTESTANTS:
        known = label in ("SCR", "SCR printed", "Laplace")
        assert np.isnan(of(rows, label, "expected_useful")).all() != known


def test_the_same_seed_gives_the_same_rows_and_another_seed_others():
    one, again, other = played(seed=1), played(seed=1), played(seed=2)
    assert all(
        np.array_equal(one[name], again[name], equal_nan=one[name].dtype.kind == "f") for name in one
    )
    assert not np.array_equal(one["asked"], other["asked"])
    assert not np.array_equal(one["asked"], played(trial=1)["asked"])


def test_alone_with_two_analysts_is_without_the_other():
    rows = fig1(DATA, [0.1]).play(fig1(DATA, [0.1]).cases[0], 0, 1)
    for label in ("Laplace", "PMW", "SCR"):
        assert (of(rows, label, "alone") == of(rows, label, "without")).all()


def test_a_single_analyst_has_nobody_to_be_without():
    rows = played(study_of(1))
    for label in CONTESTANTS:
        assert (of(rows, label, "without") == of(rows, label, "useful")).all()
        assert (of(rows, label, "alone") == of(rows, label, "useful")).all()


def test_a_scheduler_around_independent_mechanisms_costs_time_and_changes_no_answer():
    both = (
        Contestant("plain", "scr", independent=True),
        Contestant("turns", "scr", "round-robin", independent=True),
    )
    rows = played(replace(STUDY, contestants=both))
    assert (of(rows, "plain", "useful") == of(rows, "turns", "useful")).all()
    assert (of(rows, "plain", "steps") < of(rows, "turns", "steps")).all()


def test_unequal_shares_make_weighted_turns_and_probabilities_make_draws():
    chances = (0.7, 0.1, 0.1, 0.1)
    contestants = (
        Contestant("turns", "laplace", "weighted-round-robin"),
        Contestant("alike", "laplace", "round-robin"),
        Contestant("draws", "laplace", "randomized", probabilities=chances),
        Contestant("fair", "laplace", "randomized"),
    )
    study = study_of(shares=(0.7, 0.1, 0.1, 0.1), epsilon=0.2)
    many = next(trial for trial in range(20) if played(study, 2, trial)["asked"][0] > 80)
    rows = played(replace(study, contestants=contestants), 2, many)
    assert of(rows, "turns", "expected_useful")[0] > of(rows, "alike", "expected_useful")[0]
    assert of(rows, "draws", "expected_useful")[0] > of(rows, "fair", "expected_useful")[0]


def test_prices_are_found_where_none_is_set():
    case = Case(1.0, 10, 35_819, 358.19)
    assert case.price(CONTESTANTS["SCR"]) == pytest.approx(0.1 * 0.5 / 8)
    # Laplace noise of scale 1 / price is beyond the threshold with probability exp(-threshold * price).
    assert np.exp(-358.19 * case.price(CONTESTANTS["Laplace"])) == pytest.approx(0.05)
    assert replace(case, query_budget=0.01).price(CONTESTANTS["SCR"]) == pytest.approx(0.01)
    own = replace(CONTESTANTS["SCR"], query_budget=0.02)
    assert replace(case, query_budget=0.01).price(own) == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"epsilon": 0.0}, "epsilon must be greater than 0"),
        ({"epsilon": float("nan")}, "epsilon must be greater than 0"),
        ({"analysts": 0}, "analysts must be at least 1"),
        ({"p": 1.5}, "p must be from 0 to 1"),
        ({"seed_fraction": 1.0}, "seed_fraction must be between 0 and 1"),
        ({"query_budget": 2.0}, "query_budget must be a part of 1"),
        ({"updates": 0}, "updates must be at least 1"),
        ({"shares": (0.5,)}, "10 analysts and 1 shares"),
        ({"analysts": 2, "shares": (0.9, 0.9)}, "together at most 1"),
        ({"analysts": 2, "chances": (0.0, 0.0)}, "at least one must be positive"),
    ],
)
def test_a_case_that_cannot_be_is_refused(changes, says):
    with pytest.raises(ConfigError, match=says):
        replace(Case(1.0, 10, 100.0, 1.0), **changes)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Contestant("x", "magic"), "Unknown mechanism 'magic'"),
        (lambda: Contestant("x", "pmw", "magic"), "Unknown scheduler 'magic'"),
        (lambda: Contestant("x", "pmw", probabilities=(1.0,)), "takes no probabilities"),
        (
            lambda: Contestant("x", "pmw", "randomized", probabilities=(0.5, 0.6)).check(2),
            "2 positive numbers that sum to 1",
        ),
    ],
)
def test_a_contestant_that_cannot_be_is_refused(make, says):
    with pytest.raises(ConfigError, match=says):
        make()


def test_the_engines_know_every_mechanism():
    assert set(trials.MECHANISMS) == set(engines.MECHANISMS)
