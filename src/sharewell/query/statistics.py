"""Statistics of noisy answers: quantiles from counts, variances, correlations and lines from sums.

Exact answers give what SQL gives. Noisy ones give the nearest number that the statistic can be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import scipy

Ends = Sequence[tuple[Fraction, Fraction]]


def quantile(
    fraction: Fraction, ends: Ends, counts: Sequence[Any], *, continuous: bool
) -> float | Fraction | None:
    """Return a quantile of values, given how many rows have each of them; None without rows.

    Noisy counts may be negative, so their running totals are first made to increase: by isotonic
    regression, the nearest that do. A value with two different ends is a bin, in which the rows are
    taken as spread evenly. Exact counts of exact values give what SQL gives.

    >>> exact = [(Fraction(x), Fraction(x)) for x in range(4)]
    >>> quantile(Fraction(1, 2), exact, [1, 1, 0, 2], continuous=True)
    Fraction(2, 1)
    """
    if any(count is None for count in counts):
        return None
    totals: Sequence[Any] = list(accumulate(counts))
    if any(count < 0 for count in counts):
        fitted = scipy.optimize.isotonic_regression(np.maximum(np.array(totals, dtype=float), 0.0)).x
        totals = fitted.tolist()
    rows = totals[-1] if totals else 0
    if not rows > 0:
        return None
    if any(low < high for low, high in ends):
        return _inside_bin(
            fraction * rows if isinstance(rows, int) else float(fraction) * rows, ends, totals
        )
    if not continuous:
        # The first value that at least this fraction of the rows does not exceed.
        wanted = fraction * rows if isinstance(rows, int) else float(fraction) * rows
        return next(
            (low for (low, _), total in zip(ends, totals, strict=True) if total >= wanted and total),
            None,
        )
    # Between two neighbours in the order of all rows, which are numbered from 0.
    place = fraction * (rows - 1) if isinstance(rows, int) else max(0.0, float(fraction) * (rows - 1))
    below = int(place)
    low, high = (_at(ends, totals, number) for number in (below, below + 1))
    return low + (high - low) * (Fraction(place) - below)


def _at(ends: Ends, totals: Sequence[Any], number: int) -> Fraction:
    """The value of a row by its number in order; that of the last where there are not so many."""
    found = next((low for (low, _), total in zip(ends, totals, strict=True) if total > number), None)
    if found is None:
        last = next(at for at, total in enumerate(totals) if total >= totals[-1])
        found = ends[last][0]
    return found


def _inside_bin(wanted: Any, ends: Ends, totals: Sequence[Any]) -> float:
    before = 0.0
    for (low, high), total in zip(ends, totals, strict=True):
        if total >= wanted and total > before:
            return float(low) + float(high - low) * (float(wanted) - before) / (float(total) - before)
        before = float(total)
    return float(ends[-1][1])


#: The bounds of a number; None where it has none.
Limits = tuple[float, float] | None


def spread(
    kind: str, sums: Mapping[str, Any], spans: Sequence[tuple[Any, Any]], centres: Sequence[Fraction]
) -> Any:
    """Return a spread from its sums; None where there are too few rows, or their values are all equal.

    Sums without noise give what SQL gives; of noisy ones it is moved into its bounds.

    >>> spread("VAR_POP", {"count": 2, "x": 4, "xx": 10}, [(0, 3)], [Fraction(0)])
    Fraction(1, 1)
    """
    if any(value is None for value in sums.values()):
        return None
    given = {name: Fraction(each) if isinstance(each, int) else each for name, each in sums.items()}
    count = given["count"]
    rows = count - 1 if kind.endswith("SAMP") else count
    if rows <= 0 or count <= 0:
        return None
    centred: dict[str, Any] = {
        name: given[name] - given[name[0]] * given[name[1]] / count
        for name in ("xx", "yy", "xy")
        if name in given
    }
    found = _of_centred(kind, centred, rows)
    if found is not None and kind == "REGR_INTERCEPT":
        x, y = (given[name] / count for name in "xy")
        found = y + number_like(y, centres[1]) - found * (x + number_like(x, centres[0]))
    if found is None or isinstance(found, Fraction):
        return found
    limits = limits_of(kind, spans)
    return found if limits is None else min(max(found, limits[0]), limits[1])


def _of_centred(kind: str, centred: Mapping[str, Any], rows: Any) -> Any:
    """Return a spread from the sums of products of distances from the means."""
    if kind.startswith(("VAR", "STDDEV")):
        variance = centred["xx"] / rows
        return math.sqrt(max(variance, 0)) if kind.startswith("STDDEV") else variance
    if kind.startswith("COVAR"):
        return centred["xy"] / rows
    if centred["xx"] <= 0:
        return None
    if kind in ("REGR_SLOPE", "REGR_INTERCEPT"):
        return centred["xy"] / centred["xx"]
    if centred["yy"] <= 0:
        return 1.0 if kind == "REGR_R2" and not centred["yy"] else None
    correlation = float(centred["xy"]) / math.sqrt(centred["xx"]) / math.sqrt(centred["yy"])
    return correlation**2 if kind == "REGR_R2" else correlation


def limits_of(kind: str, spans: Sequence[tuple[Any, Any]]) -> Limits:
    """Return the bounds of a spread, from those of its columns: the half of a span is the most.

    Of a sample of two, the variance is twice that of the two alone; of more it is less than that.
    """
    if kind in ("CORR", "REGR_R2"):
        return (-1.0 if kind == "CORR" else 0.0), 1.0
    if kind.startswith("REGR"):
        return None
    halves = [float(high - low) / 2 for low, high in spans]
    most = halves[0] * halves[-1]
    most *= 2 if kind.endswith("SAMP") else 1
    if kind.startswith("COVAR"):
        return -most, most
    return 0.0, math.sqrt(most) if kind.startswith("STDDEV") else most


def number_like(value: Any, number: Fraction) -> Any:
    """Return a number as a value can be combined with it: exactly, or as a float."""
    if isinstance(value, float):
        return float(number)
    return number.numerator if number.denominator == 1 else number
