"""Noise by inversion: exact thresholds, exact draws, and the same distribution as OpenDP's samplers."""

from bisect import bisect_left
from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest
from scipy import stats

from sharewell.privacy import inversion
from sharewell.privacy.inversion import LEAST_SCALE, Inversion, thresholds
from sharewell.privacy.noise import MANY, ExactNoise, _sampler
from tests.privacy.test_noise import REJECTED, gaussian_mass, laplace_mass, p_value

KINDS = ["laplace", "gaussian"]
MASS = {"laplace": laplace_mass, "gaussian": gaussian_mass}
#: Doubles whose fractions are long, and the least scale that has a table.
SCALES = [LEAST_SCALE, 0.3, 1.0, 7.3, 20.25]


def cumulative(kind: str, scale: float, sizes: int) -> list[Decimal]:
    """P(|noise| <= m) for the first sizes, to 80 digits or 10^-50, as sums over the distribution."""
    exact = Decimal(scale)
    reach = int(40 * scale) + 40 if kind == "gaussian" else int(120 * scale) + 120

    def weight(k: int) -> Decimal:
        return (-k / exact if kind == "laplace" else -(k * k) / (2 * exact * exact)).exp()

    weights = [weight(k) * (1 if k == 0 else 2) for k in range(reach)]
    total, found, below = sum(weights), [], Decimal(0)
    for each in weights[:sizes]:
        below += each
        found.append(below / total)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
def test_thresholds_are_the_whole_parts_of_the_distributions_sums(kind, scale):
    with localcontext(prec=80):
        for bits in (5, 63, 127):
            found = thresholds(kind, scale, bits)
            assert found == [int(2**bits * each) for each in cumulative(kind, scale, len(found))]
            assert found[-1] == 2**bits - 1
            assert found[-1] not in found[:-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.3, 2.0])
def test_every_word_lies_in_the_interval_of_its_size_or_is_refined(kind, scale):
    """All words of few bits: what is decided is right for every continuation of the word."""
    bits, refined = 8, 0
    table = thresholds(kind, scale, bits)
    with localcontext(prec=80):
        limits = [Decimal(0), *cumulative(kind, scale, len(table))]
    for word in range(2**bits):
        size = bisect_left(table, word)
        if table[size] == word:
            refined += 1
        else:
            assert limits[size] * 2**bits <= word
            assert word + 1 <= limits[size + 1] * 2**bits
    assert refined == len(set(table))


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bits", [1, 4, 63])
def test_draws_have_the_distribution_however_many_of_them_are_refined(kind, bits, monkeypatch):
    # The tables of refined words are computed once here, and not for every such draw.
    monkeypatch.setattr(inversion, "thresholds", cache(thresholds))
    scale = 2.6
    drawn = Inversion(kind, scale, bits).draw(20_000)
    assert p_value(drawn, MASS[kind], scale) > REJECTED
    assert p_value(drawn, MASS[kind], scale * 1.3) < REJECTED
    assert p_value(drawn, MASS[kind], scale * 0.7) < REJECTED
    assert abs((drawn > 0).sum() - (drawn < 0).sum()) < 8 * np.sqrt(len(drawn))


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1.5, 40.0])
def test_draws_are_distributed_as_opendps(kind, scale):
    """A chi-square test on the two samples; a sample of another scale is told apart."""
    ours = getattr(ExactNoise(), kind)(scale, 40_000)
    theirs = np.array(_sampler(kind, scale)([0] * 20_000))
    assert two_samples(ours, theirs, scale) > REJECTED
    other = getattr(ExactNoise(), kind)(scale * 1.3, 40_000)
    assert two_samples(other, theirs, scale) < REJECTED


def two_samples(first: np.ndarray, second: np.ndarray, scale: float) -> float:
    """The p-value of a common distribution, over bins of a third of the scale within three of it."""
    width = max(1, int(scale / 3))
    both = [np.clip(each // width, -9, 9) for each in (first, second)]
    counts = np.array([np.bincount(each + 9, minlength=19) for each in both])
    return float(stats.chi2_contingency(counts[:, counts.sum(axis=0) > 20]).pvalue)


@pytest.mark.parametrize("kind", KINDS)
def test_extreme_words_give_zero_and_what_more_bits_decide(kind, monkeypatch):
    sampler = Inversion(kind, 3.0)
    monkeypatch.setattr("sharewell.privacy.inversion.os.urandom", bytes)
    assert sampler.draw(4).tolist() == [0, 0, 0, 0]
    monkeypatch.setattr("sharewell.privacy.inversion.os.urandom", lambda size: b"\xff" * size)
    monkeypatch.setattr("sharewell.privacy.inversion.secrets.randbits", lambda bits: 2**63)
    table = thresholds(kind, 3.0, 127)
    far = bisect_left(table, (2**63 - 1) << 64 | 2**63)
    assert far > len(thresholds(kind, 3.0, 63)) - 2
    assert sampler.draw(2).tolist() == [-far, -far]


def test_many_draws_of_any_scale_arrive():
    noise = ExactNoise()
    for scale in (1e-3, LEAST_SCALE, 1.0, 70.0, 1e5):
        for draw in (noise.laplace, noise.gaussian):
            drawn = draw(scale, MANY + 1)
            assert drawn.dtype == np.int64
            assert len(drawn) == MANY + 1
            assert drawn.any() or scale < 1
