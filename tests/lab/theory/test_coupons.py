"""The coupon time: exact at every size, beside a naive recursion, simulation and known formulas."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell.errors import SharingError
from sharewell_lab.theory.coupons import coupons, expected_turns
from tests.lab.theory import oracle
from tests.lab.theory.tables import small_quotas


@given(small_quotas())
def test_the_coupon_time_is_that_of_first_step_analysis(table):
    quotas, probabilities = table
    exact = oracle.expected_draws(quotas, probabilities)
    found = coupons(len(quotas), quotas, [float(p) for p in probabilities])
    assert found.expected == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize(
    ("analysts", "quota", "expected"), [(2, 5, 12.4609375), (10, 50, 614.290391), (50, 20, 1572.927818)]
)
def test_known_coupon_times_come_out(analysts, quota, expected):
    assert coupons(analysts, quota).expected == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("analysts", [1, 2, 7, 1000, 10_000])
def test_one_turn_each_is_the_classical_coupon_collector(analysts):
    harmonic = math.fsum(1 / i for i in range(1, analysts + 1))
    assert coupons(analysts, 1).expected == pytest.approx(analysts * harmonic, rel=1e-10)


@pytest.mark.parametrize("quota", [1, 3, 250, 10_000])
def test_who_is_alone_waits_for_nobody(quota):
    assert coupons(1, quota).expected == pytest.approx(quota, rel=1e-10)


@pytest.mark.parametrize("probability", [0.3, 1e-3, 1e-9])
@pytest.mark.parametrize("quota", [1, 40, 10_000])
def test_beside_idle_steps_it_is_the_mean_of_a_negative_binomial(quota, probability):
    found = coupons(2, [quota, 0], [probability, 1 - probability])
    assert found.expected == pytest.approx(quota / probability, rel=1e-10)


def test_two_who_want_one_turn_each_have_a_closed_form_however_unequal():
    for rare in (0.4, 1e-3, 1e-6, 1e-9):
        exact = 1 / rare + 1 / (1 - rare) - 1
        assert coupons(2, 1, [rare, 1 - rare]).expected == pytest.approx(exact, rel=1e-10)


def test_a_ladder_of_probabilities_agrees_with_inclusion_and_exclusion():
    probabilities = [Fraction(1, 2**i) for i in (1, 2, 4, 6, 9, 12, 20, 28)]
    probabilities.append(1 - sum(probabilities, Fraction(0)))
    exact = Fraction(0)
    for subset in range(1, 2 ** len(probabilities)):
        chosen = [p for i, p in enumerate(probabilities) if subset >> i & 1]
        exact -= (-1) ** len(chosen) / sum(chosen)
    found = coupons(len(probabilities), 1, [float(p) for p in probabilities])
    assert found.expected == pytest.approx(float(exact), rel=1e-9)


def test_equal_analysts_may_be_grouped_or_told_apart():
    # The tiny differences make every analyst a group of their own.
    apart = np.full(300, 1 / 300) * (1 + np.linspace(-1e-12, 1e-12, 300))
    quotas = [40] * 300
    grouped = coupons(300, quotas).expected
    assert coupons(300, quotas, list(apart / apart.sum())).expected == pytest.approx(grouped, rel=1e-9)


@given(small_quotas(most_analysts=5, most=60))
def test_the_coupon_time_lies_between_what_it_must(table):
    quotas, probabilities = table
    found = coupons(len(quotas), quotas, [float(p) for p in probabilities])
    assert found.linear * (1 - 1e-9) <= found.expected
    assert found.least * (1 - 1e-9) <= found.expected
    assert found.expected <= found.upper_bound.value * (1 + 1e-9)
    assert not found.upper_bound.too_low


@pytest.mark.parametrize(("analysts", "quota"), [(10_000, 10_000), (10_000, 1), (2, 10_000)])
def test_large_sizes_stay_below_the_upper_bound_and_close_to_it(analysts, quota):
    found = coupons(analysts, quota)
    assert found.linear < found.expected < found.upper_bound.value < 2 * found.expected


def test_very_unequal_analysts_in_large_numbers_are_ruled_by_the_rarest():
    rng = np.random.default_rng(5)
    probabilities = rng.dirichlet(np.ones(2000))
    probabilities[0] = 1e-9
    probabilities /= probabilities.sum()
    found = coupons(2000, [100, *rng.integers(1, 50, 1999)], list(probabilities))
    assert found.expected == pytest.approx(100 / probabilities[0], rel=1e-6)


@pytest.mark.statistical
def test_simulated_draws_take_the_coupon_time():
    """Fails once in about 1e8 runs with another seed: the mean must be within 5.7 standard errors."""
    rng = np.random.default_rng(20)
    quotas, probabilities = [6, 2, 9], [0.5, 0.1, 0.4]
    draws = rng.choice(3, size=(20_000, 200), p=probabilities)
    met = np.ones(draws.shape, dtype=bool)
    for analyst, quota in enumerate(quotas):
        met &= np.cumsum(draws == analyst, axis=1) >= quota
    assert met[:, -1].all()
    times = met.argmax(axis=1) + 1
    error = times.std() / math.sqrt(len(times))
    expected = coupons(3, quotas, probabilities).expected
    assert abs(times.mean() - expected) < 5.7 * error
    assert 5.7 * error < 0.05 * expected, "sharp enough to see an error of 5 %"


def test_the_asymptotic_formula_is_given_with_a_warning_where_it_is_too_low():
    shown = coupons(10, 50).asymptotic
    assert shown is not None
    assert round(shown.value, 1) == 431.7
    assert shown.too_low
    assert "sum of the quotas" in str(shown.warning)
    absurd = coupons(2, 5).asymptotic
    assert absurd is not None
    assert round(absurd.value, 1) == -1.5
    assert absurd.too_low
    between = coupons(50, 20).asymptotic
    assert between is not None
    assert between.warning == "less than the exact expected number"


def test_the_asymptotic_formula_is_not_always_too_low():
    shown = coupons(10_000, 10_000).asymptotic
    assert shown is not None
    assert not shown.too_low


@pytest.mark.parametrize(
    "found",
    [coupons(1, 5), coupons(2, [5, 6]), coupons(2, 5, [0.4, 0.6])],
    ids=["one analyst", "unequal quotas", "unequal probabilities"],
)
def test_the_asymptotic_formula_says_nothing_where_it_does_not_apply(found):
    assert found.asymptotic is None


def test_expected_turns_grow_in_proportion_to_the_steps():
    assert expected_turns([0.25, 0.75], 1000) == pytest.approx((250, 750))
    assert coupons(4, 3).expected_turns(8) == pytest.approx((2, 2, 2, 2))


@given(small_quotas(), st.integers(0, 1000))
def test_expected_turns_sum_to_the_steps(table, steps):
    _, probabilities = table
    assert sum(expected_turns([float(p) for p in probabilities], steps)) == pytest.approx(steps)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((0, 5), "from 1 to 100,000, not 0"),
        ((-3, 5), "not -3"),
        ((10**40, 5), "more than 30 digits"),
        ((2.0, 5), "whole number"),
        ((True, 5), "whole number"),
        ((2, 0), "nothing to wait for"),
        ((2, [0, 0]), "nothing to wait for"),
        ((2, [1, -1]), "from 0 to 1,000,000, not -1"),
        ((2, 10**7), "not 10,000,000"),
        ((2, 1.5), "whole number, not 1.5"),
        ((2, math.nan), "whole number, not nan"),
        ((2, "55"), "whole number"),
        ((2, [1, 2, 3]), "2 analysts and 3 quotas"),
        ((2, 1, [0.5, 0.6]), "sum to 1.1"),
        ((2, 1, [0.5, 0.5 - 1e-6]), "sum to 0.999999"),
        ((2, 1, [1.5, -0.5]), "not 1.5"),
        ((2, 1, [1.0, 0.0]), "never drawn"),
        ((2, 1, [math.nan, 0.5]), "not nan"),
        ((2, 1, [math.inf, 0.5]), "not inf"),
        ((2, 1, ["0.5", 0.5]), "not 0.5"),
        ((2, 1, [1.0]), "2 analysts and 1 probabilities"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(arguments, says):
    with pytest.raises(SharingError, match=says) as refused:
        coupons(*arguments)
    assert refused.value.message.endswith(".")


def test_decimals_that_miss_1_by_rounding_are_taken():
    found = coupons(10, 1, [0.1] * 10)
    assert math.fsum(found.probabilities) == pytest.approx(1, abs=1e-15)
    assert found.expected == pytest.approx(coupons(10, 1).expected, rel=1e-12)
