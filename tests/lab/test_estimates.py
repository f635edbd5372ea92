"""Estimates: intervals hold what they should as often as they should, and infinity is a value."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sharewell_lab.estimates import difference, mean, median, share

RUNS = 2_000


def covered(estimates, truth):
    return np.mean([one.low <= truth <= one.high for one in estimates])


@pytest.mark.statistical
def test_intervals_hold_the_truth_in_nine_cases_of_ten():
    # Of 2,000 intervals, 90 % +- 3.4 % is five standard deviations.
    rng = np.random.default_rng(5)
    samples = rng.exponential(1.0, (RUNS, 60))
    assert covered([median(one) for one in samples], math.log(2)) == pytest.approx(0.92, abs=0.034)
    normal = rng.normal(3.0, 1.0, (RUNS, 12))
    assert covered([mean(one) for one in normal], 3.0) == pytest.approx(0.9, abs=0.034)
    other = rng.normal(1.0, 2.0, (RUNS, 20))
    gaps = [difference(one, two) for one, two in zip(normal, other, strict=True)]
    assert covered(gaps, 2.0) == pytest.approx(0.9, abs=0.034)
    hits = rng.random((RUNS, 200)) < 0.3
    assert 0.9 <= covered([share(one) for one in hits], 0.3) <= 0.95


def test_a_mean_has_the_interval_of_a_t_test():
    values = [3.0, 1.0, 4.0, 1.0, 5.0]
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert (mean(values).low, mean(values).high) == pytest.approx((low, high))
    low, high = stats.ttest_ind(values, [2.0, 7.0, 1.0], equal_var=False).confidence_interval(0.9)
    found = difference(values, [2.0, 7.0, 1.0])
    assert (found.low, found.high) == pytest.approx((low, high))


@given(st.integers(1, 80), st.data())
def test_a_share_has_the_exact_interval(count, data):
    hits = data.draw(st.integers(0, count))
    low, high = stats.binomtest(hits, count).proportion_ci(0.9, method="exact")
    found = share([True] * hits + [False] * (count - hits))
    assert (found.value, found.low, found.high) == pytest.approx((hits / count, low, high))


@given(st.lists(st.floats(0, 10) | st.just(math.inf), min_size=1, max_size=60))
def test_a_median_lies_in_its_interval_and_never_is_a_nan(values):
    found = median(values)
    assert found.low <= found.value <= found.high
    assert len(values) >= 5 or (found.low, found.high) == (-math.inf, math.inf)


def test_infinite_trials_do_not_spoil_a_median():
    found = median([1.0] * 30 + [math.inf] * 3)
    assert (found.value, found.low, found.high) == (1, 1, 1)
    assert median([1.0] + [math.inf] * 30).value == math.inf


def test_too_few_trials_decide_nothing():
    for found in (mean([1.0]), median([1.0, 1.0, 1.0]), difference([1.0], [2.0, 3.0])):
        assert (found.low, found.high) == (-math.inf, math.inf)
