"""The probability that multinomial counts all reach their quotas, by one convolution.

After T draws the counts are multinomial. Let X_i be independent Poisson numbers with means theta p_i.
Given that they sum to T they are distributed as the counts, whatever theta is, so

    P[all met] = P[all X_i >= m_i] * P[S = T] / P[Poisson(theta) = T],

where S is the sum of the X_i, each taken on the condition that X_i >= m_i. Theta is chosen so that S
has about the mean T: then P[S = T] is not small, and a probability of 1e-200 comes out with as many
digits as one of 1/2. The distribution of S is a convolution, done by a Fourier transform.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import brentq
from scipy.special import gammainc, gammaincc, gammaln

from sharewell.sharing.theory.quotas import Groups

Floats = NDArray[np.float64]

#: Numbers in memory at once.
CHUNK = 2**20
#: Below this an incomplete gamma function is close to where floating-point numbers end.
UNDERFLOW = 1e-280


def transform_length(steps: int) -> int:
    """How many values of S are told apart.

    S is ultra-log-concave with a mean of about T, so it is d off with a probability of at most
    exp(-d^2 / 2(T + d)) (Aravinda, Marsiglietti and Melbourne, 2022, Concentration inequalities for
    ultra log-concave distributions). Values so far away that they fold onto T are below exp(-40).
    """
    return 20 * math.isqrt(steps) + 200


def log_met(groups: Groups, steps: int) -> float:
    """The logarithm of the probability that all quotas are met after so many draws.

    The groups' probabilities sum to 1, and the steps are no fewer than the sum of the quotas.
    """
    theta = _tilt(groups, steps)
    mean = theta * groups.probability
    centre = groups.quota + _excess(groups.quota, mean)
    length = int(next_fast_len(transform_length(steps), real=True))
    transform = np.ones(length // 2 + 1, dtype=np.complex128)
    all_met = -_log_poisson(steps, theta)
    # Groups of about the same mean are taken together, since their windows are about as wide.
    order = np.argsort(centre)
    for start in range(0, len(order), max(1, CHUNK // length)):
        part = order[start : start + max(1, CHUNK // length)]
        weights, logs = _conditional(groups.quota[part], mean[part], centre[part], length)
        all_met += float(logs @ groups.count[part])
        transform *= np.prod(rfft(weights, axis=1) ** groups.count[part, None], axis=0)
    at_steps = float(irfft(transform, n=length)[steps % length])
    return all_met + math.log(at_steps) if at_steps > 0 else -math.inf


def _tilt(groups: Groups, steps: int) -> float:
    """The theta for which S has about the mean `steps`; the result does not hang on its digits."""
    target = max(steps - float(groups.quota @ groups.count), 0.5)

    def beyond(log_theta: float) -> float:
        mean = math.exp(log_theta) * groups.probability
        return float(_excess(groups.quota, mean) @ groups.count) - target

    low, high = math.log(target) - 1, math.log(steps + 1.0)
    while beyond(low) > 0:
        low -= 2
    while beyond(high) < 0:
        high += 1
    return math.exp(brentq(beyond, low, high, xtol=1e-9))


def _excess(quota: Floats, mean: Floats) -> Floats:
    """About how far a Poisson number is above its quota on average, given that it is not below."""
    met = np.where(quota > 0, gammainc(np.maximum(quota, 1), mean), 1.0)
    ratio = mean / (quota + 1)
    # Deep in the tail the distribution is about geometric, and the exact formula has no digits left.
    deep = (quota > 0) & ((met < UNDERFLOW) | (ratio < 1e-3))
    at_quota = np.exp(quota * np.log(mean) - mean - gammaln(quota + 1))
    usual = np.maximum(mean - quota + quota * at_quota / np.maximum(met, UNDERFLOW), 0.0)
    return np.where(deep, ratio / (1 - np.minimum(ratio, 0.999)), usual)


def _conditional(quota: Floats, mean: Floats, centre: Floats, length: int) -> tuple[Floats, Floats]:
    """Each X_i on the condition that X_i >= m_i, folded to a length; and log P[X_i >= m_i]."""
    reach = 10 * np.sqrt(centre) + 80
    first = np.maximum(quota, np.floor(centre - reach))
    width = min(length, int((centre + reach - first).max()) + 1)
    values = first[:, None] + np.arange(1, width)
    # From one value to the next a Poisson probability grows by mean / value: no large factorials.
    logs = np.cumsum(np.log(mean[:, None] / values), axis=1)
    logs = np.concatenate([np.zeros((len(first), 1)), logs], axis=1)
    top = logs.max(axis=1, keepdims=True)
    weights = np.exp(logs - top)
    sums = weights.sum(axis=1, keepdims=True)
    folded = np.zeros((len(first), length))
    where = (first[:, None].astype(np.int64) + np.arange(width)) % length
    np.put_along_axis(folded, where, weights / sums, axis=1)
    return folded, _log_at_least(quota, mean, (top + np.log(sums))[:, 0])


def _log_at_least(quota: Floats, mean: Floats, log_from_quota: Floats) -> Floats:
    """The logarithm of P[Poisson(mean) >= quota]; far down, from the sum that starts at the quota."""
    likely = mean >= quota
    short = np.where(likely & (quota > 0), gammaincc(np.maximum(quota, 1), mean), 0.0)
    met = np.where(likely, 1.0, gammainc(np.maximum(quota, 1), mean))
    at_quota = quota * np.log(mean) - mean - gammaln(quota + 1)
    rare = np.where(met > UNDERFLOW, np.log(np.maximum(met, UNDERFLOW)), at_quota + log_from_quota)
    return np.where(likely, np.log1p(-short), rare)


def _log_poisson(steps: int, theta: float) -> float:
    """The logarithm of P[Poisson(theta) = steps], without differences of large numbers."""
    if steps < 20:
        return float(steps * math.log(theta) - theta - gammaln(steps + 1.0))
    off = theta / steps - 1
    stirling = (1 / 12 - (1 / 360 - 1 / (1260 * steps**2)) / steps**2) / steps
    return steps * (math.log1p(off) - off) - math.log(2 * math.pi * steps) / 2 - stirling
