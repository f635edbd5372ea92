"""Estimates with 90 % intervals: of a mean, of a median, and of a share of the trials.

Three rules, none of which draws anything at random. A mean has Student's interval. A median has the
interval between two order statistics (Thompson, 1936), which needs no assumption about the
distribution and stands infinite values. A share has the interval of Clopper and Pearson (1934). With too
few trials for an interval it is unbounded, so that nothing is concluded from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, betaincinv, stdtrit

#: The part of the distribution beyond each end of an interval.
TAIL = 0.05


def plain(value: float) -> str:
    """A number with three digits."""
    return f"{value:.3g}".replace("inf", "∞")


@dataclass(frozen=True)
class Estimate:
    """A number, and the 90 % interval that the trials leave for it."""

    value: float
    low: float
    high: float
    trials: int

    def shown(self, number: Callable[[float], str] = plain) -> str:
        """The value with its interval in brackets; without one where it is unbounded or a point."""
        if self.low == self.high == self.value:
            return number(self.value)
        return f"{number(self.value)} [{number(self.low)}, {number(self.high)}]"


def mean(values: ArrayLike) -> Estimate:
    """The mean, with Student's interval.

    >>> mean([1.0, 2.0, 3.0]).shown()
    '2 [0.314, 3.69]'
    """
    found = np.asarray(values, dtype=np.float64)
    count = len(found)
    middle = float(found.mean()) if count else math.nan
    if not math.isfinite(middle) or count < 2:
        return Estimate(middle, -math.inf, math.inf, count)
    reach = float(stdtrit(count - 1, 1 - TAIL) * found.std(ddof=1) / math.sqrt(count))
    return Estimate(middle, middle - reach, middle + reach, count)


def difference(one: ArrayLike, other: ArrayLike) -> Estimate:
    """How much larger the first mean is, of samples that are not paired; Welch's interval."""
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    count = min(len(first), len(second))
    gap = float(first.mean() - second.mean()) if count else math.nan
    if count < 2:
        return Estimate(gap, -math.inf, math.inf, count)
    parts = [float(found.var(ddof=1)) / len(found) for found in (first, second)]
    if not sum(parts):
        return Estimate(gap, gap, gap, count)
    squares = [part**2 / (len(f) - 1) for part, f in zip(parts, (first, second), strict=True)]
    reach = float(stdtrit(sum(parts) ** 2 / sum(squares), 1 - TAIL)) * math.sqrt(sum(parts))
    return Estimate(gap, gap - reach, gap + reach, count)


def median(values: ArrayLike) -> Estimate:
    """The median, with an interval between two order statistics.

    >>> median([1, 2, 3, 4, 5, 6, 7, float("inf")]).shown()
    '4.5 [2, 7]'
    """
    found = np.sort(np.asarray(values, dtype=np.float64))
    count = len(found)
    middle = float(np.median(found)) if count else math.nan
    # The place-th smallest is above the median when fewer than `place` values are below it.
    places = np.arange(1, count // 2 + 1)
    place = int(np.sum(bdtr(places - 1, count, 0.5) <= TAIL)) if count else 0
    if not place:
        return Estimate(middle, -math.inf, math.inf, count)
    return Estimate(middle, float(found[place - 1]), float(found[count - place]), count)


def share(happened: ArrayLike) -> Estimate:
    """The share of the trials in which something happened, with the interval of Clopper and Pearson.

    >>> share([False] * 50).shown()
    '0 [0, 0.0582]'
    """
    found = np.asarray(happened, dtype=np.bool_)
    count, hits = len(found), int(found.sum())
    if not count:
        return Estimate(math.nan, 0.0, 1.0, 0)
    low = float(betaincinv(hits, count - hits + 1, TAIL)) if hits else 0.0
    high = float(betaincinv(hits + 1, count - hits, 1 - TAIL)) if hits < count else 1.0
    return Estimate(hits / count, low, high, count)
