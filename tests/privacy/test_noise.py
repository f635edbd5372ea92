"""Noise: the right distribution is accepted and a scale 30 % off is rejected, in both directions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sharewell.errors import PrivacyError
from sharewell.privacy.noise import (
    MAX_SCALE,
    ExactNoise,
    gaussian_scale,
    gaussian_variance,
    laplace_scale,
    laplace_variance,
)
from sharewell_lab.noise import NoNoise, SeededNoise

SOURCES = [ExactNoise(), SeededNoise(2024)]
DRAWS = 20_000
SCALES = [0.4, 1.0, 3.7, 50.0]
#: The p-value below which a distribution is rejected. Without a seed, draws of the right scale have less
#: once in 10^12 runs (by a sum over Poisson counts: small bins have heavier tails than chi-square), and
#: those of a scale 30 % off have 1e-170.
REJECTED = 1e-30


def laplace_mass(k: np.ndarray, scale: float) -> np.ndarray:
    decay = math.exp(-1 / scale)
    return (1 - decay) / (1 + decay) * decay ** np.abs(k)


def gaussian_mass(k: np.ndarray, scale: float) -> np.ndarray:
    reach = np.arange(-int(60 * scale) - 60, int(60 * scale) + 61)
    return np.exp(-(k**2) / (2 * scale**2)) / np.exp(-(reach**2) / (2 * scale**2)).sum()


def p_value(drawn: np.ndarray, mass, scale: float) -> float:
    """A chi-square test of the draws against a distribution, over bins that expect at least 20."""
    values = np.arange(drawn.min() - 2, drawn.max() + 3)
    width = max(1, int(scale / 3))
    bins = (values - values[0]) // width
    expected = np.bincount(bins, mass(values, scale)) * len(drawn)
    observed = np.bincount((drawn - values[0]) // width, minlength=len(expected))
    keep = expected >= 20
    observed = np.append(observed[keep], observed[~keep].sum())
    expected = np.append(expected[keep], len(drawn) - expected[keep].sum())
    if expected[-1] < 5:
        observed, expected = (
            observed[:-1],
            expected[:-1] * observed[:-1].sum() / expected[:-1].sum(),
        )
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


@pytest.mark.statistical
@pytest.mark.parametrize("source", SOURCES, ids=["exact", "seeded"])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_right_scale_is_accepted_and_thirty_percent_off_rejected(source, scale, kind):
    mass = laplace_mass if kind == "laplace" else gaussian_mass
    drawn = getattr(source, kind)(scale, DRAWS)
    assert drawn.dtype == np.int64
    assert p_value(drawn, mass, scale) > REJECTED
    assert p_value(drawn, mass, scale * 1.3) < REJECTED
    assert p_value(drawn, mass, scale * 0.7) < REJECTED


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [0.3, 0.8, 2.0, 30.0])
def test_the_reported_variance_is_that_of_the_draws(scale):
    noise = SeededNoise(5)
    for draw, variance in ((noise.laplace, laplace_variance), (noise.gaussian, gaussian_variance)):
        drawn = draw(scale, 400_000)
        spread = drawn.astype(float) ** 2
        error = 6 * spread.std() / math.sqrt(len(drawn)) + 1e-9
        assert abs(spread.mean() - variance(scale)) < error
        assert abs(spread.mean() - variance(scale * 1.3)) > error


def test_the_reported_variance_is_the_sum_over_the_distribution():
    k = np.arange(-4000, 4001)
    for scale in (0.2, 0.5, 1, 5, 19.9, 20.1, 80):
        assert laplace_variance(scale) == pytest.approx((k**2 * laplace_mass(k, scale)).sum(), rel=1e-9)
        assert gaussian_variance(scale) == pytest.approx(
            (k**2 * gaussian_mass(k, scale)).sum(), rel=1e-9
        )
    assert laplace_variance(0) == gaussian_variance(0) == 0
    assert laplace_variance(1e-6) == 0


@given(st.integers(0, 10**6), st.fractions("1/1000", 100, max_denominator=10**6))
def test_a_scale_is_never_rounded_below_what_was_paid_for(sensitivity, cost):
    laplace = Fraction(laplace_scale(sensitivity, cost))
    gaussian = Fraction(gaussian_scale(sensitivity, cost))
    assert laplace >= sensitivity / cost
    assert gaussian**2 >= sensitivity / (2 * cost)
    assert laplace <= sensitivity / cost * (1 + Fraction(1, 2**50))
    assert gaussian**2 <= sensitivity / (2 * cost) * (1 + Fraction(1, 2**50))


def test_a_cost_too_small_for_any_answer_is_refused():
    for cost in (Fraction(1, 2**41), Fraction(1, 10**400)):
        with pytest.raises(PrivacyError, match="too small"):
            laplace_scale(1, cost)
    with pytest.raises(PrivacyError, match="too small"):
        gaussian_scale(1, Fraction(1, 10**400))
    assert laplace_scale(1, Fraction(1, int(MAX_SCALE))) == MAX_SCALE


def test_opendp_confirms_that_the_scale_is_private_enough():
    import opendp.prelude as dp

    from sharewell.privacy.noise import _sampler

    for cost in (Fraction(1, 10), Fraction(1, 3), Fraction(7, 5)):
        laplace = _sampler("laplace", laplace_scale(3, cost))
        gaussian = _sampler("gaussian", gaussian_scale(9, cost))
        assert laplace.map(3) == pytest.approx(float(cost), rel=1e-12)
        assert gaussian.map(3) == pytest.approx(float(cost), rel=1e-12)
    assert isinstance(laplace, dp.Measurement)


def test_many_draws_are_split_among_threads_and_all_arrive():
    assert len(ExactNoise().laplace(1.0, 12_345)) == 12_345
    assert ExactNoise().laplace(1.0, 12_345).any()


def test_exact_noise_has_no_seed_and_the_lab_noise_needs_one():
    assert ExactNoise.exact
    assert not SeededNoise(1).exact
    assert not NoNoise().exact
    with pytest.raises(TypeError):
        ExactNoise(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        SeededNoise()  # type: ignore[call-arg]


def test_seeded_noise_repeats_itself_and_wide_noise_too():
    for kind in ("laplace", "gaussian"):
        for scale in (0.0, 2.0, 1e5):
            first, second = (getattr(SeededNoise(9), kind)(scale, 50) for _ in range(2))
            assert np.array_equal(first, second)
            assert np.array_equal(getattr(NoNoise(), kind)(scale, 3), [0, 0, 0])
    assert SeededNoise(9).gaussian(1e5, 1000).std() == pytest.approx(1e5, rel=0.1)
