"""Metrics: what the trials of a study came to, as one number each with its 90 % interval.

Of every metric two intervals are told apart. The *band* is where the middle 90 % of the trials lie:
how much one stream differs from another. The *interval* is what the trials leave open about the metric
itself; it shrinks with more of them. The metric's value is the mean over the trials with Student's
interval. Ratios can be infinite, where somebody has nothing with the others and something without
them. If that happens in any trial there is no mean: the value is then the median, with the interval
between two order statistics, and `infinite` says in which part of the trials it happened.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sharewell.lab.estimates import mean, median
from sharewell.lab.outcomes import Numbers, Outcomes, Results, Setting, by_setting

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
        return {name: _plain(value) for name, value in asdict(self).items()}


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
    for setting, outcomes in by_setting(results).items():
        for metric, values in per_trial(outcomes).items():
            if not np.isnan(values).any():
                yield summary(setting, metric, values)


def summary(setting: Setting, metric: str, values: Numbers) -> Summary:
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


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "infinite" if value > 0 else "-infinite" if value < 0 else None
    return value
