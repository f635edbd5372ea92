"""Variances, correlations and lines from sums: what they are, and between which bounds they lie."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

#: The functions of one column and of two, by what they are called here.
OF_ONE = {
    "STDDEV": "STDDEV_SAMP",
    "VARIANCE": "VAR_SAMP",
    **{name: name for name in ("STDDEV_SAMP", "STDDEV_POP", "VAR_SAMP", "VAR_POP")},
}
OF_TWO = {
    name: name for name in ("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2")
}
#: The sums of products that the functions of two columns use.
PRODUCTS = {
    "COVAR_POP": ("xy",),
    "COVAR_SAMP": ("xy",),
    "CORR": ("xx", "yy", "xy"),
    "REGR_R2": ("xx", "yy", "xy"),
    "REGR_SLOPE": ("xx", "xy"),
    "REGR_INTERCEPT": ("xx", "xy"),
}

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
        found = y + _like(y, centres[1]) - found * (x + _like(x, centres[0]))
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


def _like(value: Any, number: Fraction) -> Any:
    return float(number) if isinstance(value, float) else number
