"""Intervals of variances, correlations and lines.

Given the means, a variance is a ratio of linear numbers: with the true mean m, the sum of squares of
x - m less the variance times the number of rows is 0. So it has Fieller's interval for every m, and the
variance lies in one of them while the mean lies in its own interval. The sum changes little with m near
the mean, and exact covariances count: the interval is hardly wider than for a known mean. The same
holds for covariances and slopes, given two means, and for an intercept given the slope. A correlation is
between what the intervals of its covariance and of its variances allow.

All these statements hold together with 95 % (Bonferroni's inequality); `statements` is their number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharewell.query.expression import Spread
from sharewell.query.statistics import limits_of
from sharewell.service.intervals import Interval

#: The means that are tried in the interval of one, and of each of two.
POINTS_OF_ONE, POINTS_OF_TWO = 33, 9


def statements(kind: str) -> int:
    """How many intervals must hold at once for that of a spread to hold."""
    if kind in ("CORR", "REGR_R2"):
        return 5
    return {"VAR": 2, "STD": 2, "COV": 3}.get(kind[:3], 4 if kind == "REGR_INTERCEPT" else 3)


#: The names of the sums, and of the number 1.
NAMES = ("count", "x", "y", "xx", "yy", "xy", "one")
_AT = {name: at for at, name in enumerate(NAMES)}

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class NoisySums:
    """Sums in the order of `NAMES`, the covariances of their errors, and how many errors count."""

    values: Vector
    covariances: Vector
    critical: float

    @classmethod
    def of(
        cls,
        values: Mapping[str, float],
        covariances: Mapping[tuple[str, str], float],
        critical: float,
    ) -> NoisySums:
        """Take sums by their names; those that are not given are not used."""
        sums, errors = np.zeros(len(NAMES)), np.zeros((len(NAMES), len(NAMES)))
        sums[_AT["one"]] = 1.0
        for name, value in values.items():
            sums[_AT[name]] = value
        for (one, two), both in covariances.items():
            errors[_AT[one], _AT[two]] = both
        return cls(sums, errors, critical)

    def __getitem__(self, name: str) -> float:
        return float(self.values[_AT[name]])

    def ratios(self, above: Vector, below: Vector) -> Interval | None:
        """The union of Fieller's intervals of combinations of the sums, each divided by another.

        Combinations are rows of coefficients in the order of `NAMES`.
        """
        top, bottom = above @ self.values, below @ self.values
        left, right = above @ self.covariances, below @ self.covariances
        low, high = fieller_union(
            top,
            bottom,
            (left * above).sum(axis=1),
            (right * below).sum(axis=1),
            (left * below).sum(axis=1),
            self.critical,
        )
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def fieller_union(
    total: Vector, count: Vector, total_variance: Vector, count_variance: Vector, both: Vector, z: float
) -> Interval:
    """The least interval that has all of Fieller's intervals; infinite where one is. See `fieller`."""
    square = z * z
    weight = count * count - square * count_variance
    if not bool(((count > 0) & (weight > 0)).all()):
        return -math.inf, math.inf
    middle = total * count - square * both
    spread = total * total * count_variance - 2 * total * count * both + count * count * total_variance
    spread = square * (spread - square * (total_variance * count_variance - both * both))
    reach = np.sqrt(np.maximum(spread, 0.0))
    return float(((middle - reach) / weight).min()), float(((middle + reach) / weight).max())


def _combinations(size: int, **coefficients: Vector | float) -> Vector:
    """Rows of coefficients, by the names of the sums."""
    found = np.zeros((size, len(NAMES)))
    for name, each in coefficients.items():
        found[:, _AT[name]] = each
    return found


def spread_interval(leaf: Spread, sums: NoisySums) -> Interval | None:
    """The interval of a spread, within its bounds; None if it has none, and may be anything."""
    limits = limits_of(leaf.kind, leaf.spans)
    found = _interval(leaf, sums)
    if found is None or limits is None:
        return limits if found is None else found
    low, high = (min(max(end, limits[0]), limits[1]) for end in found)
    return low, high


def _interval(leaf: Spread, sums: NoisySums) -> Interval | None:
    kind = leaf.kind
    one = -1.0 if kind.endswith("SAMP") else 0.0
    means = [_mean(name, span, sums) for name, span in zip("xy", leaf.spans, strict=False)]
    if kind.startswith(("VAR", "STDDEV")):
        found = _variance("x", means[0], one, sums)
        return found and _with_bins(leaf, found, sums)
    x, y = (each.ravel() for each in np.meshgrid(*(np.linspace(*mean, POINTS_OF_TWO) for mean in means)))
    rows = _combinations(len(x), count=1.0, one=one)
    products = _combinations(len(x), xy=1.0, x=-y, y=-x, count=x * y)
    if kind.startswith("COVAR"):
        return sums.ratios(products, rows)
    if kind in ("CORR", "REGR_R2"):
        both = sums.ratios(products, rows)
        variances = [_variance(name, mean, one, sums) for name, mean in zip("xy", means, strict=True)]
        found = _correlation(both, *variances)
        return found if kind == "CORR" or found is None else _square(found)
    slope = sums.ratios(products, _combinations(len(x), xx=1.0, x=-2 * x, count=x * x))
    if kind == "REGR_SLOPE" or slope is None:
        return slope
    slopes = np.linspace(*slope, POINTS_OF_ONE)
    shift = float(leaf.centres[1]) - slopes * float(leaf.centres[0])
    lines = _combinations(len(slopes), y=1.0, x=-slopes, count=shift)
    return sums.ratios(lines, _combinations(len(slopes), count=1.0))


def _mean(name: str, span: tuple[Any, Any], sums: NoisySums) -> Interval:
    """The interval of a mean, less its centre: between the bounds of the values."""
    low, high = map(float, span)
    found = sums.ratios(_combinations(1, **{name: 1.0}), _combinations(1, count=1.0))
    if found is None:
        return low, high
    return min(max(found[0], low), high), min(max(found[1], low), high)


def _variance(name: str, mean: Interval, one: float, sums: NoisySums) -> Interval | None:
    # The sum of squares is least at the mean of the noisy sums.
    least = min(max(sums[name] / sums["count"], mean[0]), mean[1]) if sums["count"] else mean[0]
    points = np.append(np.linspace(*mean, POINTS_OF_ONE), least)
    squares = {name * 2: 1.0, name: -2 * points, "count": points * points}
    size = len(points)
    found = sums.ratios(_combinations(size, **squares), _combinations(size, count=1.0, one=one))
    return found and (max(found[0], 0.0), max(found[1], 0.0))


def _correlation(both: Interval | None, one: Interval | None, other: Interval | None) -> Interval | None:
    """The range of covariance / sqrt(variance * variance), between -1 and 1."""
    if both is None or one is None or other is None:
        return None
    least, most = (math.sqrt(a * b) for a, b in zip(one, other, strict=True))

    def end(covariance: float, outwards: bool) -> float:
        divisor = least if outwards else most
        return covariance / divisor if divisor else math.copysign(1.0, covariance) * bool(covariance)

    low, high = both
    return max(end(low, outwards=low < 0), -1.0), min(end(high, outwards=high > 0), 1.0)


def _square(found: Interval) -> Interval:
    low, high = sorted(abs(end) for end in found)
    return (0.0 if found[0] <= 0 <= found[1] else low * low), high * high


def _with_bins(leaf: Spread, variance: Interval, sums: NoisySums) -> Interval:
    """Widen the interval of a variance for values that are only known by their bins.

    Standard deviations obey the triangle inequality: that of the values differs from that of the
    midpoints by at most that of their distances, and so by at most half a bin.
    """
    low, high = map(math.sqrt, variance)
    reach = float(leaf.half_bin)
    if reach and leaf.kind.endswith("SAMP"):
        error = math.sqrt(sums.covariances[_AT["count"], _AT["count"]])
        rows = max(2.0, sums["count"] - sums.critical * error)
        reach *= math.sqrt(rows / (rows - 1))
    low, high = max(low - reach, 0.0), high + reach
    return (low, high) if leaf.kind.startswith("STDDEV") else (low * low, high * high)
