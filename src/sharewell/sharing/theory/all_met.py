"""How likely all quotas are met after a number of draws, and how many draws make it likely."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc

from sharewell.errors import SharingError
from sharewell.sharing.theory.multinomial import log_met, transform_length
from sharewell.sharing.theory.poissonised import log_all_met
from sharewell.sharing.theory.quotas import Groups, Quotas, between, whole

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


def _bounds(groups: Groups, steps: int) -> tuple[float, float]:
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


def _with_idle(quotas: Quotas) -> Groups:
    """The groups, and all who want nothing as one more."""
    groups, idle = quotas.groups, quotas.idle
    if not idle:
        return groups
    return Groups(
        np.append(groups.quota, 0.0), np.append(groups.probability, idle), np.append(groups.count, 1.0)
    )
