"""Probabilities of random turns: quotas, independent Poisson counts, and exact multinomial counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import brentq
from scipy.special import gammainc, gammaincc, gammaln

from sharewell.errors import SharingError

MOST_ANALYSTS = 100_000
MOST_QUOTA = 1_000_000
LEAST_PROBABILITY = 1e-12
#: How far from 1 probabilities may sum, so that decimals such as ten times 0.1 are taken.
SLACK = 1e-9


@dataclass(frozen=True)
class QuotaGroups:
    """Analysts who want the same number of turns and are drawn alike, as columns of a table."""

    quota: NDArray[np.float64]
    probability: NDArray[np.float64]
    count: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.quota)


@dataclass(frozen=True)
class Quotas:
    """One quota and one probability of being drawn for each analyst, checked.

    A quota may be 0: such an analyst is drawn and waits for nothing. That is also how idle steps are
    written. Probabilities are above 0 and sum to 1.
    """

    quotas: tuple[int, ...]
    probabilities: tuple[float, ...]

    @classmethod
    def of(
        cls,
        analysts: int,
        quota: int | Sequence[int],
        probabilities: Sequence[float] | None = None,
    ) -> Quotas:
        """The same quota for all or one each; the same probability unless they are given."""
        count = whole(analysts, "The number of analysts", 1, MOST_ANALYSTS)
        each = list(quota) if isinstance(quota, Sequence | np.ndarray) else [quota] * count
        if len(each) != count:
            raise SharingError(
                f"There are {count:,} analysts and {len(each):,} quotas.",
                hint="Give one quota for all, or one for each.",
            )
        quotas = tuple(whole(one, "A quota", 0, MOST_QUOTA) for one in each)
        if not any(quotas):
            raise SharingError(
                "All quotas are 0, so there is nothing to wait for.", hint="Give a quota of at least 1."
            )
        if probabilities is None:
            return cls(quotas, (1 / count,) * count)
        return cls(quotas, _normalised(probabilities, count))

    @property
    def least(self) -> int:
        """The sum of the quotas: no fewer steps can ever do."""
        return sum(self.quotas)

    @cached_property
    def groups(self) -> QuotaGroups:
        """Those who want something, equal ones together."""
        wanted = Counter((m, p) for m, p in zip(self.quotas, self.probabilities, strict=True) if m)
        pairs = np.array(list(wanted), dtype=np.float64)
        return QuotaGroups(pairs[:, 0], pairs[:, 1], np.array(list(wanted.values()), dtype=np.float64))

    @cached_property
    def idle(self) -> float:
        """The probability of drawing an analyst without a quota."""
        return math.fsum(p for m, p in zip(self.quotas, self.probabilities, strict=True) if not m)


def whole(value: Any, what: str, least: int, most: int) -> int:
    """A whole number within limits."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise SharingError(f"{what} must be a whole number, not {str(value)[:40]}.")
    number = int(value)
    if not least <= number <= most:
        raise SharingError(f"{what} must be from {least:,} to {most:,}, not {_short(number)}.")
    return number


def between(value: Any, what: str, above: float, below: float) -> float:
    """A number above one limit and below another."""
    if not _is_real(value) or not above < value < below:
        raise SharingError(
            f"{what} must be a number above {above:.10g} and below {below:.10g}, not {str(value)[:40]}."
        )
    return float(value)


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _short(value: int) -> str:
    # Very long whole numbers cannot be printed, and need not be.
    return f"{value:,}" if abs(value) < 10**30 else "a number of more than 30 digits"


def _normalised(probabilities: Sequence[float], count: int) -> tuple[float, ...]:
    stated = list(probabilities)
    if len(stated) != count:
        raise SharingError(
            f"There are {count:,} analysts and {len(stated):,} probabilities.",
            hint="Give one probability for each, or none if all are drawn alike.",
        )
    for one in stated:
        if not _is_real(one) or not LEAST_PROBABILITY <= one <= 1:
            raise SharingError(
                f"A probability must be from {LEAST_PROBABILITY:g} to 1, not {str(one)[:40]}.",
                hint="An analyst who is never drawn never meets a quota.",
            )
    exact = [float(one) for one in stated]
    total = math.fsum(exact)
    if abs(total - 1) > SLACK:
        raise SharingError(
            f"The probabilities sum to {total:.10g}, and they must sum to 1.",
            hint="At every step exactly one analyst is drawn.",
        )
    return tuple(one / total for one in exact)


#: A tail of less than exp(-60) is not computed: with 100,000 analysts it stays far below rounding.
FAR = 60.0


def log_all_met(groups: QuotaGroups, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithm of the probability that all quotas are met, at each of the times.

    By logarithms of the smaller tail, so that both the probability and what it lacks of 1, which is
    `-expm1` of the result, keep their relative accuracy.
    """
    mean = np.multiply.outer(times, groups.probability)
    quota = np.broadcast_to(groups.quota, mean.shape)
    gap = mean - quota
    # Chernoff: a Poisson number is at least m > x with probability at most exp(-(m - x)^2 / 2m),
    # and less than m < x with probability at most exp(-(x - m)^2 / 2x).
    near = gap**2 <= 2 * FAR * np.maximum(mean, quota)
    logs = np.where(gap < 0, -np.inf, 0.0)
    above, below = near & (gap >= 0), near & (gap < 0)
    logs[above] = np.log1p(-gammaincc(quota[above], mean[above]))
    with np.errstate(divide="ignore"):
        logs[below] = np.log(gammainc(quota[below], mean[below]))
    total: NDArray[np.float64] = (logs * groups.count).sum(axis=1)
    return total


Floats = NDArray[np.float64]

#: Numbers in memory at once.
CHUNK = 2**20
#: Below this an incomplete gamma function is close to where floating-point numbers end.
UNDERFLOW = 1e-280


def transform_length(steps: int) -> int:
    """How many values of S are distinguished.

    S is ultra-log-concave with a mean of about T, so it is d off with a probability of at most
    exp(-d^2 / 2(T + d)) (Aravinda, Marsiglietti and Melbourne, 2022, Concentration inequalities for
    ultra log-concave distributions). Values so far away that they fold onto T are below exp(-40).
    """
    return 20 * math.isqrt(steps) + 200


def log_met(groups: QuotaGroups, steps: int) -> float:
    """The logarithm of the probability that all quotas are met after so many draws.

    The groups' probabilities sum to 1, and the steps are no fewer than the sum of the quotas.
    """
    theta = _tilt(groups, steps)
    mean = theta * groups.probability
    centre = groups.quota + _excess(groups.quota, mean)
    length = int(next_fast_len(transform_length(steps), real=True))
    transform = np.ones(length // 2 + 1, dtype=np.complex128)
    all_met = -_log_poisson(steps, theta)
    # QuotaGroups of about the same mean are taken together, since their windows are about as wide.
    order = np.argsort(centre)
    for start in range(0, len(order), max(1, CHUNK // length)):
        part = order[start : start + max(1, CHUNK // length)]
        weights, logs = _conditional(groups.quota[part], mean[part], centre[part], length)
        all_met += float(logs @ groups.count[part])
        transform *= np.prod(rfft(weights, axis=1) ** groups.count[part, None], axis=0)
    at_steps = float(irfft(transform, n=length)[steps % length])
    return all_met + math.log(at_steps) if at_steps > 0 else -math.inf


def _tilt(groups: QuotaGroups, steps: int) -> float:
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
