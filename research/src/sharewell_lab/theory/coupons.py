"""The coupon time: how many draws it takes until every analyst has had the turns that they want.

At every step one analyst is drawn, analyst i with probability p_i, and i wants m_i turns. Draw at the
times of a Poisson process of rate 1 instead. Then the analysts' counts are independent, the expected
number of draws is the expected time, and that is the integral of

    1 - product over i of P[Poisson(p_i t) >= m_i]        for t from 0 to infinity.

It is computed as written, by quadrature, and is exact up to an error that tests hold below 1e-9 of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import gammainc, gammainccinv

from sharewell.errors import SharingError
from sharewell_lab.theory.draws import (
    QuotaGroups,
    Quotas,
    between,
    log_all_met,
    log_met,
    transform_length,
    whole,
)

MOST_STEPS = 10**15
#: The most numbers that one exact convolution may work on, a second or so; beyond it there are bounds.
MOST_WORK = 10**8


@dataclass(frozen=True)
class AllMet:
    """The probability that all quotas are met after so many steps.

    Where `exact`, both bounds are the probability itself, up to rounding. Otherwise it is known to lie
    between them, and `probability` is the lower one.
    """

    steps: int
    low: float
    high: float
    exact: bool

    @property
    def probability(self) -> float:
        """What can be relied on."""
        return self.low


@dataclass(frozen=True)
class StepsFor:
    """Steps after which all quotas are met with at least a probability.

    Where `exact`, no fewer do. Otherwise these do, and somewhat fewer might.
    """

    steps: int
    probability: float
    exact: bool


def probability_met(quotas: Sequence[int], probabilities: Sequence[float] | None, steps: int) -> AllMet:
    """The probability that after these steps analyst i was drawn quotas[i] times or more, for all i.

    >>> round(probability_met([1, 1], None, 2).probability, 12)
    0.5
    """
    return met_after(Quotas.of(len(quotas), quotas, probabilities), steps)


def steps_for(
    quotas: Sequence[int], probabilities: Sequence[float] | None, probability: float
) -> StepsFor:
    """The fewest steps after which all quotas are met with at least this probability.

    >>> steps_for([1, 1], None, 0.9).steps
    5
    """
    return steps_until(Quotas.of(len(quotas), quotas, probabilities), probability)


def met_after(quotas: Quotas, steps: int) -> AllMet:
    """`probability_met` for quotas that were checked before."""
    steps = whole(steps, "The number of steps", 0, MOST_STEPS)
    if steps < quotas.least:
        return AllMet(steps, 0.0, 0.0, True)
    if not _feasible(quotas, steps):
        return AllMet(steps, *_bounds(quotas.groups, steps), False)
    exact = min(1.0, math.exp(log_met(_with_idle(quotas), steps)))
    return AllMet(steps, exact, exact, True)


def steps_until(quotas: Quotas, probability: float) -> StepsFor:
    """`steps_for` for quotas that were checked before."""
    probability = between(probability, "The probability", 0.0, 1 - 1e-9)
    least, groups = quotas.least, quotas.groups
    # The bounds cost little, and leave few steps to choose from.
    enough = _first(least, lambda steps: _bounds(groups, steps)[0] >= probability)
    if not _feasible(quotas, enough):
        return StepsFor(enough, probability, False)
    low = _first(least, lambda steps: _bounds(groups, steps)[1] >= probability) - 1
    high = enough
    while high - low > 1:
        middle = (low + high) // 2
        met = met_after(quotas, middle).probability >= probability
        low, high = (low, middle) if met else (middle, high)
    return StepsFor(high, probability, True)


def _feasible(quotas: Quotas, steps: int) -> bool:
    return (len(quotas.groups) + 1) * transform_length(steps) <= MOST_WORK


def _first(least: int, holds: Callable[[int], bool]) -> int:
    """The first number from `least` on where a statement holds that, once true, stays true."""
    low, reach = least - 1, 1
    while not holds(low + reach):
        low, reach = low + reach, 2 * reach
        if low > MOST_STEPS:
            raise SharingError(
                f"It would take more than {MOST_STEPS:,} steps.",
                hint="Ask for a smaller quota, or draw the rarest analyst more often.",
            )
    high = low + reach
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _bounds(groups: QuotaGroups, steps: int) -> tuple[float, float]:
    """A lower and an upper bound, from Poisson numbers of draws that are rarely more, or rarely fewer.

    The probability P(T) grows with T. After N draws, N being Poisson with mean t, it is E[P(N)], which
    is a product. It is at most P(T) + P[N > T], and at least P(T) P[N >= T].
    """
    reach = 6 * math.sqrt(steps)
    fewer, more = max(steps - reach, 0.0), steps + reach + 18
    log_fewer, log_more = log_all_met(groups, np.array([fewer, more])).tolist()
    low = math.exp(log_fewer) - float(gammainc(steps + 1.0, fewer))
    high = math.exp(log_more) / float(gammainc(float(steps), more)) if steps else 1.0
    return max(low, 0.0), min(high, 1.0)


def _with_idle(quotas: Quotas) -> QuotaGroups:
    """The groups, and all who want nothing as one more."""
    groups, idle = quotas.groups, quotas.idle
    if not idle:
        return groups
    return QuotaGroups(
        np.append(groups.quota, 0.0), np.append(groups.probability, idle), np.append(groups.count, 1.0)
    )


#: How far the integrand is from 1 or from 0 where the integral is cut off, as a logarithm.
CUT = -34.0
#: With more different groups than these, single ones no longer show in the integrand.
FEW = 50


@dataclass(frozen=True)
class Reference:
    """A formula that others use for the coupon time, and how it misleads here, if it does."""

    value: float
    warning: str | None = None

    @property
    def too_low(self) -> bool:
        """Whether it promises what cannot be had."""
        return self.warning is not None


@dataclass(frozen=True)
class Coupons:
    """What it takes for every analyst to be drawn as often as they want."""

    quotas: tuple[int, ...]
    probabilities: tuple[float, ...]
    #: The expected number of draws until all quotas are met at once.
    expected: float

    @property
    def analysts(self) -> int:
        """How many there are."""
        return len(self.quotas)

    @property
    def least(self) -> int:
        """The sum of the quotas: no fewer draws can ever do."""
        return sum(self.quotas)

    @cached_property
    def linear(self) -> float:
        """The draws after which every analyst's *expected* number of turns has reached their quota."""
        return max(m / p for m, p in zip(self.quotas, self.probabilities, strict=True))

    @cached_property
    def asymptotic(self) -> Reference | None:
        """The formula k (ln k + (m - 1) ln ln k), for k analysts drawn alike who want m turns each.

        The first terms of Newman and Shepp (1960), for fixed m and k without end: of little use at
        real sizes. None where it says nothing: one analyst, or analysts who differ.
        """
        if self.analysts == 1 or len(set(self.quotas)) > 1 or len(set(self.probabilities)) > 1:
            return None
        log = math.log(self.analysts)
        return self._reference(self.analysts * (log + (self.quotas[0] - 1) * math.log(log)))

    @cached_property
    def upper_bound(self) -> Reference:
        """A bound that is proved: max m_i/p_i + sqrt(2 max(m_i/p_i^2) ln k) + ln k / min p_i.

        Over those who want something. The time until i has m_i turns is a gamma variable; this is the
        bound on the expected maximum of sub-gamma variables (Boucheron, Lugosi and Massart, 2013,
        corollary 2.6).
        """
        wanted = [(m, p) for m, p in zip(self.quotas, self.probabilities, strict=True) if m]
        log = math.log(len(wanted))
        spread = math.sqrt(2 * max(m / p**2 for m, p in wanted) * log)
        return self._reference(self.linear + spread + log / min(p for _, p in wanted))

    def expected_turns(self, steps: int) -> tuple[float, ...]:
        """The expected number of turns of every analyst after this many draws."""
        return expected_turns(self.probabilities, steps)

    def after(self, steps: int) -> AllMet:
        """The probability that all quotas are met after so many draws."""
        return met_after(Quotas(self.quotas, self.probabilities), steps)

    def steps_for(self, probability: float) -> StepsFor:
        """The fewest draws after which all quotas are met with at least this probability."""
        return steps_until(Quotas(self.quotas, self.probabilities), probability)

    def _reference(self, value: float) -> Reference:
        if value < self.least:
            return Reference(value, "less than the sum of the quotas")
        # A bound that is met exactly must not be called too low for the last digit's sake.
        if value < self.expected * (1 - 1e-9):
            return Reference(value, "less than the exact expected number")
        return Reference(value)


def coupons(
    analysts: int, quota: int | Sequence[int], probabilities: Sequence[float] | None = None
) -> Coupons:
    """The coupon time of analysts with one quota for all or one each, drawn alike unless stated.

    >>> round(coupons(10, 50).expected, 1)
    614.3
    >>> round(coupons(2, [5, 1], [0.9, 0.1]).expected, 3)
    11.46
    """
    checked = Quotas.of(analysts, quota, probabilities)
    return Coupons(checked.quotas, checked.probabilities, expected_draws(checked.groups))


def expected_turns(probabilities: Sequence[float], steps: int) -> tuple[float, ...]:
    """T * p_i: the turns that an analyst who always has a question waiting can expect.

    It grows in proportion to the steps from the first one on. The coupon time is longer because it
    waits for all quotas at once.
    """
    checked = Quotas.of(len(probabilities), 1, probabilities)
    steps = whole(steps, "The number of steps", 0, MOST_STEPS)
    return tuple(steps * p for p in checked.probabilities)


def expected_draws(groups: QuotaGroups) -> float:
    """The integral: 1 up to where an analyst surely waits, and by quadrature from there on."""
    # Before its own start a group has not met its quotas, up to a probability of exp(CUT). After its
    # own end the chance that it waits is so small that all such chances together are below exp(CUT).
    short, late = -np.expm1(CUT / groups.count), np.exp(CUT) / groups.count.sum()
    starts = gammainccinv(groups.quota, short) / groups.probability
    ends = gammainccinv(groups.quota, late) / groups.probability
    end = float(ends.max())
    # What is cut away at the front is at most 1e-12 of the end, and far less than that of the whole.
    start = max(float(starts.max()), 1e-12 * end)

    def any_waits(time: float) -> float:
        return float(-np.expm1(log_all_met(groups, np.array([time])))[0])

    start = _last(start, end, lambda time: any_waits(time) == 1.0)
    own = np.concatenate([starts, groups.quota / groups.probability, ends])
    points = _points(start, end, own if len(groups) <= FEW else own[:0])
    area, *_ = quad(
        any_waits,
        start,
        end,
        points=points or None,
        epsabs=1e-10 * start,
        epsrel=1e-10,
        limit=500 + len(points),
        full_output=1,
    )
    return start + float(area)


def _last(low: float, high: float, holds: Callable[[float], bool]) -> float:
    """About the last number where something holds that holds at `low` and not at `high`."""
    while high > 1.05 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _points(start: float, end: float, own: NDArray[np.float64]) -> list[float]:
    """Where to divide the integral, so that no step of the integrand falls between the first nodes.

    One in every doubling, and where single groups come and go, unless the last is very close.
    """
    doublings = start * 2.0 ** np.arange(1, max(1, math.log2(end / start)))
    points = [start]
    for point in np.sort(np.concatenate([doublings, own])).tolist():
        if points[-1] * 1.02 < point < end / 1.02:
            points.append(point)
    return points[1:]
