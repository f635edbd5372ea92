import math

import numpy as np
import pytest

from sharewell_lab.estimates import METRICS, per_trial, summaries, summary
from sharewell_lab.results import Scenario, by_scenario
from tests.lab.desiderata import interference, max_ratio_error

SETTING = Scenario("made-up", 1.0, 0.5, "SCR")


def results(trials=40, analysts=3, seed=0):
    """Made-up tidy results of one contestant."""
    rng = np.random.default_rng(seed)
    count = trials * analysts
    useful, alone, without = (rng.integers(0, 5, count) for _ in range(3))
    return {
        "study": np.full(count, "made-up"),
        "epsilon": np.ones(count),
        "p": np.full(count, 0.5),
        "trial": np.repeat(np.arange(trials), analysts),
        "contestant": np.full(count, "SCR"),
        "analyst": np.tile(np.arange(analysts), trials),
        "asked": np.full(count, 5),
        "useful": useful,
        "alone": alone,
        "without": without,
        "expected_useful": useful + 1.0,
        "expected_alone": alone + 1.0,
        "expected_without": without + 1.0,
        "steps": np.full(count, 15),
        "stalls": np.zeros(count, dtype=np.int64),
    }


def test_the_metrics_of_a_trial_are_the_desiderata():
    tidy = results()
    found = per_trial(by_scenario(tidy)[SETTING])
    for trial in range(40):
        rows = tidy["trial"] == trial
        joint, alone, without = (
            dict(enumerate(tidy[name][rows].tolist())) for name in ("useful", "alone", "without")
        )
        assert found["accuracy"][trial] == sum(joint.values()) / 15
        assert found["max_ratio_error"][trial] == max_ratio_error(alone, joint)
        assert found["interference"][trial] == interference(without, joint)
        assert found["time_to_completion"][trial] == 15


def test_there_is_one_summary_for_each_metric_and_setting():
    found = list(summaries(results()))
    assert [one.metric for one in found] == list(METRICS)
    assert {one.trials for one in found} == {40}


def test_metrics_that_are_not_known_are_left_out():
    tidy = {**results(), "expected_useful": np.full(120, np.nan)}
    assert [one.metric for one in summaries(tidy)] == [
        *("accuracy", "max_ratio_error", "interference", "time_to_completion")
    ]


def test_the_value_is_the_mean_unless_a_trial_is_infinite():
    finite = summary(SETTING, "interference", np.arange(100.0))
    assert (finite.centre, finite.value, finite.infinite) == ("mean", 49.5, 0.0)
    spread = 1.6604 * np.arange(100.0).std(ddof=1) / 10
    assert finite.interval_high - finite.value == pytest.approx(spread, rel=1e-3)
    assert (finite.band_low, finite.band_high) == (4.0, 94.0)
    endless = summary(SETTING, "interference", np.array([*np.arange(90.0), *[math.inf] * 10]))
    assert (endless.centre, endless.value, endless.infinite) == ("median", 49.5, 0.1)
    assert 40 < endless.interval_low < 49.5 < endless.interval_high < 59
    assert endless.band_high == math.inf


def test_the_interval_of_the_mean_covers_it_about_nine_times_in_ten():
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(1000):
        one = summary(SETTING, "accuracy", rng.normal(3, 2, 30))
        covered += one.interval_low <= 3 <= one.interval_high
    # Five standard deviations of a binomial with 1,000 draws of 0.9.
    assert 852 < covered < 948


def test_infinity_is_a_text_in_plain_data():
    plain = summary(SETTING, "interference", np.array([math.inf] * 3)).plain()
    assert plain["value"] == "infinite"
    assert plain["infinite"] == 1.0
