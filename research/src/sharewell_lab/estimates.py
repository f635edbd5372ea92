"""Estimates with 90 % intervals: of a mean, of a median, and of a share of the trials.

Three rules, none of which draws anything at random. A mean has Student's interval. A median has the
interval between two order statistics (Thompson, 1936), which needs no assumption about the
distribution and stands infinite values. A share has the interval of Clopper and Pearson (1934). With too
few trials for an interval it is unbounded, so that nothing is concluded from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, betaincinv, stdtrit

from sharewell_lab.results import Numbers, Outcomes, Results, Scenario, by_scenario

#: The part of the distribution beyond each end of an interval.
TAIL = 0.05


def three_digits(value: float) -> str:
    """A number with three digits."""
    return f"{value:.3g}".replace("inf", "∞")


@dataclass(frozen=True)
class IntervalEstimate:
    """A number, and the 90 % interval that the trials leave for it."""

    value: float
    low: float
    high: float
    trials: int

    def text(self, number: Callable[[float], str] = three_digits) -> str:
        """The value with its interval in brackets; without one where it is unbounded or a point."""
        if self.low == self.high == self.value:
            return number(self.value)
        return f"{number(self.value)} [{number(self.low)}, {number(self.high)}]"


def mean(values: ArrayLike) -> IntervalEstimate:
    """The mean, with Student's interval.

    >>> mean([1.0, 2.0, 3.0]).text()
    '2 [0.314, 3.69]'
    """
    found = np.asarray(values, dtype=np.float64)
    count = len(found)
    middle = float(found.mean()) if count else math.nan
    if not math.isfinite(middle) or count < 2:
        return IntervalEstimate(middle, -math.inf, math.inf, count)
    reach = float(stdtrit(count - 1, 1 - TAIL) * found.std(ddof=1) / math.sqrt(count))
    return IntervalEstimate(middle, middle - reach, middle + reach, count)


def difference(one: ArrayLike, other: ArrayLike) -> IntervalEstimate:
    """How much larger the first mean is, of samples that are not paired; Welch's interval."""
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    count = min(len(first), len(second))
    gap = float(first.mean() - second.mean()) if count else math.nan
    if count < 2:
        return IntervalEstimate(gap, -math.inf, math.inf, count)
    parts = [float(found.var(ddof=1)) / len(found) for found in (first, second)]
    if not sum(parts):
        return IntervalEstimate(gap, gap, gap, count)
    squares = [part**2 / (len(f) - 1) for part, f in zip(parts, (first, second), strict=True)]
    reach = float(stdtrit(sum(parts) ** 2 / sum(squares), 1 - TAIL)) * math.sqrt(sum(parts))
    return IntervalEstimate(gap, gap - reach, gap + reach, count)


def median(values: ArrayLike) -> IntervalEstimate:
    """The median, with an interval between two order statistics.

    >>> median([1, 2, 3, 4, 5, 6, 7, float("inf")]).text()
    '4.5 [2, 7]'
    """
    found = np.sort(np.asarray(values, dtype=np.float64))
    count = len(found)
    middle = float(np.median(found)) if count else math.nan
    # The place-th smallest is above the median when fewer than `place` values are below it.
    places = np.arange(1, count // 2 + 1)
    place = int(np.sum(bdtr(places - 1, count, 0.5) <= TAIL)) if count else 0
    if not place:
        return IntervalEstimate(middle, -math.inf, math.inf, count)
    return IntervalEstimate(middle, float(found[place - 1]), float(found[count - place]), count)


def share(happened: ArrayLike) -> IntervalEstimate:
    """The share of the trials in which something happened, with the interval of Clopper and Pearson.

    >>> share([False] * 50).text()
    '0 [0, 0.0582]'
    """
    found = np.asarray(happened, dtype=np.bool_)
    count, hits = len(found), int(found.sum())
    if not count:
        return IntervalEstimate(math.nan, 0.0, 1.0, 0)
    low = float(betaincinv(hits, count - hits + 1, TAIL)) if hits else 0.0
    high = float(betaincinv(hits + 1, count - hits, 1 - TAIL)) if hits < count else 1.0
    return IntervalEstimate(hits / count, low, high, count)


#: The metrics by name; those that are expected rest on standard errors, the others on what happened.
METRICS = (
    "accuracy",
    "max_ratio_error",
    "interference",
    "expected_accuracy",
    "expected_max_ratio_error",
    "expected_interference",
    "time_to_completion",
)


@dataclass(frozen=True)
class Summary:
    """One metric of one contestant in one case."""

    study: str
    epsilon: float
    p: float
    contestant: str
    metric: str
    trials: int
    #: "mean", or "median" where some trial was infinite.
    centre: str
    value: float
    interval_low: float
    interval_high: float
    band_low: float
    band_high: float
    #: The part of the trials in which the metric was infinite.
    infinite: float

    def plain(self) -> dict[str, Any]:
        """The summary as plain data; infinity becomes a text, since JSON has no number for it."""
        return {name: _json_value(value) for name, value in asdict(self).items()}


def per_trial(outcomes: Outcomes) -> dict[str, Numbers]:
    """Every metric, one number a trial; NaN where the mechanism does not know its errors."""
    return {
        "accuracy": outcomes.accuracy,
        "max_ratio_error": outcomes.ratio,
        "interference": outcomes.interference,
        "expected_accuracy": outcomes.expected_accuracy,
        "expected_max_ratio_error": outcomes.expected_ratio,
        "expected_interference": outcomes.expected_interference,
        "time_to_completion": outcomes.steps,
    }


def summaries(results: Results) -> Iterator[Summary]:
    """All metrics of all contestants in all cases of tidy results; those not known are left out."""
    for setting, outcomes in by_scenario(results).items():
        for metric, values in per_trial(outcomes).items():
            if not np.isnan(values).any():
                yield summary(setting, metric, values)


def summary(setting: Scenario, metric: str, values: Numbers) -> Summary:
    """One metric over the trials of one setting."""
    infinite = float(np.isinf(values).mean())
    centre = median(values) if infinite else mean(values)
    # An order statistic, not a value between two: halfway to infinity is no number.
    low, high = np.quantile(values, (0.05, 0.95), method="inverted_cdf")
    return Summary(
        *setting,
        metric,
        len(values),
        "median" if infinite else "mean",
        centre.value,
        centre.low,
        centre.high,
        float(low),
        float(high),
        infinite,
    )


def _json_value(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "infinite" if value > 0 else "-infinite" if value < 0 else None
    return value
