from dataclasses import replace

import numpy as np
import pytest

from sharewell import datasets
from sharewell.errors import ConfigError, SharewellError
from sharewell_lab import studies
from sharewell_lab.streams import RandomQueries, draw_questions
from sharewell_lab.studies import fig1, fig1_h2, fig3, people_by, read_histogram, wide
from sharewell_lab.trials import CONTESTANTS

DATA = datasets.movers_by_age()


def rows_of(choice):
    """The questions of a workload that is the same in every trial."""
    return choice.rows


def test_in_the_motivating_experiment_two_analysts_ask_the_same_of_disjoint_halves():
    study = fig1(DATA, [1.0])
    for trial in range(3):
        seed = np.random.SeedSequence([1, trial])
        stream = draw_questions(DATA.domain, study.askers, np.array([0.7, 0.3]), seed)
        lower, upper = (stream.weights[stream.analyst == who] for who in (0, 1))
        assert len(lower) == len(upper) == 200
        assert (lower[:, :43] == upper[:, 43:]).all()
        assert not lower[:, 43:].any()
        assert not upper[:, :43].any()
        # Each is one run of cells, and half of them and a few ranges are single cells.
        assert (np.abs(np.diff(lower.astype(int), axis=1, prepend=0, append=0)).sum(axis=1) == 2).all()
        assert 100 <= (lower.sum(axis=1) == 1).sum() <= 120
    assert [case.p for case in study.cases] == [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


def test_every_interval_of_a_line_is_as_likely_as_any_other():
    """Fails once in more than a million runs with another seed: 10 intervals, 6 standard errors each."""
    drawn = RandomQueries("", 20_000, 1, 4).draw(DATA.domain, np.random.default_rng(3))[10_000:, 1:5]
    counts = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(counts) == 10
    assert np.abs(counts - 1_000).max() < 6 * np.sqrt(10_000 * 0.1 * 0.9)


def test_random_queries_break_the_incentive_of_pmw_where_one_asks_first():
    study = replace(fig1(DATA, [0.1]), contestants=(CONTESTANTS["PMW"],))
    rows = [study.play(study.cases[-1], trial, 1) for trial in range(20)]
    worst = [np.max(one["alone"] / one["useful"]) for one in rows]
    assert np.median(worst) > 1.05


def test_the_hierarchy_of_both_halves_is_asked_beside_it():
    study = fig1_h2(DATA, [1.0])
    lower, upper = (rows_of(asker.choices[0]) for asker in study.askers)
    assert len(lower) == len(upper) == 85  # h2 of 43 cells
    assert not (lower.any(axis=0) & upper.any(axis=0)).any()
    assert (lower[:, :43] == upper[:, 43:]).all()
    assert [case.p for case in study.cases] == [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


def test_in_the_main_experiment_ten_analysts_have_equal_shares():
    study = fig3(DATA, [0.1, 1.0])
    assert [(case.epsilon, case.p) for case in study.cases] == [
        *((0.1, 0.01), (0.1, 0.1), (0.1, 0.9)),
        *((1.0, 0.01), (1.0, 0.1), (1.0, 0.9)),
    ]
    case = study.cases[-1]
    assert case.budgets.tolist() == [0.1] * 10
    assert case.error_threshold == pytest.approx(358.19)
    assert "Laplace" not in [contestant.label for contestant in study.contestants]


def test_the_wide_study_has_2408_cells_and_plays_fewer_trials():
    study = wide([1.0])
    assert study.data.domain.size == 2408
    assert [len(rows_of(choice)) for choice in study.askers[0].choices] == [1, 7, 28, 86, 86, 171]
    assert [study.trials(asked) for asked in (1, 30, 31, 1000)] == [1, 1, 2, 34]
    assert study.cases[0].error_threshold == pytest.approx(277.677)


def test_a_trial_of_the_wide_study_can_be_played():
    study = wide([1.0])
    study = replace(
        study,
        contestants=(CONTESTANTS["SCR"], CONTESTANTS["Uniform"]),
        cases=tuple(replace(case, analysts=2) for case in study.cases),
    )
    rows = study.play(study.cases[0], 0, 1)
    here = rows["contestant"] == "SCR"
    assert (rows["expected_alone"][here] <= rows["expected_useful"][here]).all()
    assert rows["useful"][here].sum() > rows["useful"][~here].sum()


def test_the_bundled_table_is_counted_by_any_columns():
    whole = datasets.massachusetts()
    two = people_by("sex", "moved")
    counts = whole.vector().counts.reshape(whole.domain.shape)
    assert two.counts.tolist() == counts.sum(axis=(0, 2, 3, 4)).reshape(-1).tolist()
    with pytest.raises(ConfigError, match="in the order of the table"):
        people_by("moved", "sex")
    with pytest.raises(SharewellError, match="Unknown attribute 'height'"):
        people_by("height")


@pytest.mark.parametrize(
    "text", ["3\n0\n5\n", "count\n3\n0\n5\n", "age,count\n0,3\n1,0\n2,5\n", "\ufeff3\r\n0\r\n\r\n5"]
)
def test_a_histogram_is_read_with_or_without_a_header(tmp_path, text):
    path = tmp_path / "counts.csv"
    path.write_text(text, encoding="utf-8")
    assert read_histogram(path).counts.tolist() == [3, 0, 5]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("3\nmany\n", "Line 2 of .* ends in 'many', which is not a count"),
        ("3\n-1\n", "Line 2 of .* ends in '-1'"),
        ("2.5\n", "Line 1 of .* ends in '2.5'"),
        ("", "has no positive count"),
        ("count\n", "has no positive count"),
        ("0\n0\n", "has no positive count"),
    ],
)
def test_what_is_no_histogram_is_refused(tmp_path, text, says):
    path = tmp_path / "counts.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=says):
        read_histogram(path)


def test_a_histogram_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        read_histogram(tmp_path / "gone.csv")


def test_the_fingerprint_tells_studies_apart():
    study = fig3(DATA, [1.0])
    other_counts = np.array(DATA.counts)
    other_counts[0] += 1
    others = [
        replace(study, name="other"),
        replace(study, contestants=study.contestants[:-1]),
        replace(study, askers=(replace(study.askers[0], restrict=0.4),)),
        replace(study, askers=(replace(study.askers[0], choices=study.askers[0].choices[:3]),)),
        replace(study, data=type(DATA)(DATA.domain, other_counts)),
    ]
    prints = {one.fingerprint() for one in [study, *others]}
    assert len(prints) == len(others) + 1
    assert fig3(DATA, [0.1]).fingerprint() == study.fingerprint()


def test_a_study_needs_contestants_of_different_names_and_an_asker_for_each_analyst():
    study = fig1(DATA, [1.0])
    with pytest.raises(ConfigError, match="each with a name of its own"):
        replace(study, contestants=(CONTESTANTS["SCR"], CONTESTANTS["SCR"]))
    with pytest.raises(ConfigError, match="2 askers for 3 analysts"):
        replace(study, cases=tuple(replace(case, analysts=3) for case in study.cases))


def test_every_study_has_a_name_to_be_found_by():
    assert {make(DATA, [1.0]).name for make in studies.STUDIES.values()} == set(studies.STUDIES)
