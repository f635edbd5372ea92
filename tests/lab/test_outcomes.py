"""Outcomes: tidy rows become one number a trial, the same as by the definitions of the desiderata."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell.errors import SourceError
from sharewell_lab.results import Scenario, by_scenario, contestants, read_results
from tests.lab.desiderata import interference, max_ratio_error
from tests.lab.made_up import Model, write

COUNTS = st.lists(
    st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=3, max_size=3), min_size=1, max_size=5
)


def results(table, order):
    """Rows for trials of three analysts, in any order of rows."""
    rows = [(t, a, *counts) for t, trial in enumerate(table) for a, counts in enumerate(trial)]
    trial, analyst, useful, alone, without = np.array(rows)[order].T
    count = len(rows)
    return {
        "study": np.full(count, "s"),
        "epsilon": np.ones(count),
        "p": np.ones(count),
        "trial": trial,
        "contestant": np.full(count, "PMW"),
        "analyst": analyst,
        "asked": np.full(count, 4),
        "useful": useful,
        "alone": alone,
        "without": without,
        "expected_useful": useful / 1,
        "expected_alone": np.full(count, np.nan),
        "expected_without": without / 1,
        "steps": trial + 10,
        "stalls": trial * 0,
    }


@given(COUNTS, st.randoms(use_true_random=False))
def test_ratios_are_those_of_the_desiderata_whatever_the_order_of_rows(table, random):
    order = list(range(3 * len(table)))
    random.shuffle(order)
    found = by_scenario(results(table, order))[Scenario("s", 1.0, 1.0, "PMW")]
    for trial, counts in enumerate(table):
        joint, alone, without = (dict(enumerate(column)) for column in zip(*counts, strict=True))
        assert found.ratio[trial] == max_ratio_error(alone, joint)
        # The largest over all others is in the row already, so one other stands for all of them.
        assert found.interference[trial] == interference(without, joint)
        assert found.expected_interference[trial] == found.interference[trial]
        assert found.accuracy[trial] == sum(joint.values()) / 12
        assert found.steps[trial] == trial + 10
    assert np.isnan(found.expected_ratio).all()


def test_a_file_gives_back_what_was_written_and_null_is_not_known(tmp_path):
    columns = Model(trials=3, studies=("fig3",)).columns()
    known = columns["expected_useful"].tolist()
    columns["expected_useful"] = np.array([None if math.isnan(value) else value for value in known])
    found = by_scenario(read_results(write(columns, tmp_path / "results.parquet")))
    wanted = by_scenario(Model(trials=3, studies=("fig3",)).columns())
    assert list(found) == list(wanted)
    for setting, outcomes in wanted.items():
        np.testing.assert_array_equal(found[setting].expected_useful, outcomes.expected_useful)
        np.testing.assert_array_equal(found[setting].without, outcomes.without)


def test_all_files_of_a_folder_are_read_together(tmp_path):
    Model(trials=2, studies=("fig1",)).write(tmp_path / "fig1.parquet")
    swept = Model(trials=2, studies=("fig3",)).columns()
    swept["set_seed_fraction"] = np.full(len(swept["p"]), 0.25)
    write(swept, tmp_path / "fig3.parquet")
    found = by_scenario(read_results(tmp_path))
    assert {setting.study for setting in found} == {"fig1", "fig3, seed_fraction = 0.25"}


def test_contestants_keep_their_order():
    found = by_scenario(Model(trials=2, studies=("fig3",)).columns())
    assert contestants(found) == ["Uniform", "Ind", "PMW", "RR", "RS", "RS skip", "SCR printed", "SCR"]


def test_results_that_are_not_there_or_not_whole_are_refused(tmp_path):
    with pytest.raises(SourceError, match="No results"):
        read_results(tmp_path / "nothing.parquet")
    with pytest.raises(SourceError, match="No results"):
        read_results(tmp_path)
    columns = Model(trials=2, studies=("fig1",)).columns()
    with pytest.raises(SourceError, match="no column 'alone'"):
        by_scenario({name: column for name, column in columns.items() if name != "alone"})
    with pytest.raises(SourceError, match="lack rows or repeat them"):
        by_scenario({name: column[:-1] for name, column in columns.items()})
    with pytest.raises(SourceError, match="lack rows or repeat them"):
        by_scenario({name: np.concatenate([column, column]) for name, column in columns.items()})


def test_no_rows_are_no_settings():
    columns = Model(trials=2, studies=("fig1",)).columns()
    assert by_scenario({name: column[:0] for name, column in columns.items()}) == {}
