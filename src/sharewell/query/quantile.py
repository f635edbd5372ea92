"""Quantiles of a histogram with noisy counts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

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
        fitted = isotonic_regression(np.maximum(np.array(totals, dtype=float), 0.0)).x
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
