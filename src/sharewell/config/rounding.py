"""Round numbers and whole periods around what was seen, so that a proposal repeats no row's value."""

from __future__ import annotations

import calendar
import datetime as dt
import math
from fractions import Fraction

from sharewell.query.ordered import Unit

#: The digits of a round step.
STEPS = (1, 2, 5)


def round_cuts(low: float, high: float, bins: int) -> tuple[str, ...]:
    """At most about so many equal bins with round edges, from `low` or less to more than `high`.

    >>> round_cuts(3.5, 96, 10)
    ('0', '10', '20', '30', '40', '50', '60', '70', '80', '90', '100')
    """
    if low == high:
        digits, tens = 1, math.floor(math.log10(max(abs(low), 1e-300))) if low else 0
    else:
        # A double cannot tell numbers apart that are much nearer to each other than this.
        span = max(high - low, abs(high) * 1e-9, abs(low) * 1e-9, 1e-300)
        digits, tens = _round_step(span / bins)
    step = digits * Fraction(10) ** tens
    # Through their texts: the number that a column shows as 0.1 is on the edge 0.1.
    first, last = (math.floor(Fraction(repr(float(end))) / step) for end in (low, high))
    last += 1
    return tuple(_written(at * digits, tens) for at in range(first, last + 1))


def _round_step(least: float) -> tuple[int, int]:
    """The smallest round step from `least` on, as its digit and its power of ten."""
    tens = math.floor(math.log10(least))
    for digits in STEPS:
        if digits * Fraction(10) ** tens >= Fraction(least):
            return digits, tens
    return 1, tens + 1


def _written(digits: int, tens: int) -> str:
    """Some digits times a power of ten, as TOML writes a number."""
    if not digits:
        return "0"
    if 0 <= tens <= 15:
        return str(digits * 10**tens)
    if -9 <= tens < 0:
        exact = Fraction(digits) * Fraction(10) ** tens
        return str(exact.numerator) if exact.denominator == 1 else f"{float(exact):.{-tens}f}"
    return f"{digits}e{tens}"


def round_bounds(low: int, high: int) -> tuple[int, int]:
    """Bounds of whole numbers, both included: few values as they are, many out to round numbers.

    >>> round_bounds(1, 12), round_bounds(3, 94)
    ((1, 12), (0, 99))
    """
    step = 1 if high - low < 20 else 10
    return low // step * step, (high // step + 1) * step - 1


def round_count(number: int) -> int:
    """A number of rows with two digits that count.

    >>> round_count(35_819)
    36000
    """
    step = int(10 ** max(len(str(number)) - 2, 0))
    return (number + step // 2) // step * step


def whole_periods(start: dt.date, end: dt.date, unit: Unit) -> tuple[dt.date, dt.date]:
    """The first and last day of the months, quarters or years around a range; months for days."""
    months = {"quarter": 3, "year": 12}.get(unit, 1)
    first = (start.month - 1) // months * months + 1
    last = ((end.month - 1) // months + 1) * months
    return (
        start.replace(month=first, day=1),
        end.replace(month=last, day=calendar.monthrange(end.year, last)[1]),
    )
