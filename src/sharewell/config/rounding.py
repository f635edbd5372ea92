"""Round numbers: public bounds, cuts and steps around what rows or a curator give."""

from __future__ import annotations

import calendar
import datetime as dt
import math
from fractions import Fraction
from typing import NamedTuple

from sharewell.query.attribute import Unit


class Grid(NamedTuple):
    """Round bounds of a measure, and its step."""

    low: Fraction
    high: Fraction
    step: Fraction

    def __str__(self) -> str:
        """The grid as a sentence names it."""
        low, high, step = map(decimal_text, self)
        return f"low = {low}, high = {high} and step = {step}"


def round_grid(low: Fraction, high: Fraction, least: Fraction) -> Grid:
    """A grid around two numbers whose step is round and at least `least`.

    >>> print(round_grid(Fraction("0.5"), Fraction(97), Fraction("0.03")))
    low = 0.5, high = 97 and step = 0.05
    """
    digit, power = _round_step(least)
    step = digit * Fraction(10) ** power
    first, last = math.floor(low / step), math.ceil(high / step)
    return Grid(first * step, max(last, first + 1) * step, step)


def decimal_text(number: Fraction) -> str:
    """A number with finitely many decimals, as a TOML number.

    >>> decimal_text(Fraction(1, 40)), decimal_text(Fraction(-3))
    ('0.025', '-3')
    """
    power = 0
    while (number * 10**power).denominator > 1:
        power += 1
    return _number_text(int(number * 10**power), -power)


def round_cuts(low: float, high: float, bins: int) -> tuple[str, ...]:
    """Round edges of about `bins` equal bins that contain `low` and `high`.

    >>> round_cuts(3.5, 96, 10)
    ('0', '10', '20', '30', '40', '50', '60', '70', '80', '90', '100')
    """
    if low == high:
        digit, power = 1, math.floor(math.log10(max(abs(low), 1e-300))) if low else 0
    else:
        # Doubles cannot tell numbers apart that are much closer than this.
        span = max(high - low, abs(high) * 1e-9, abs(low) * 1e-9, 1e-300)
        digit, power = _round_step(span / bins)
    step = digit * Fraction(10) ** power
    # Through their texts: the number that a column shows as 0.1 is on the edge 0.1.
    first, last = (math.floor(Fraction(repr(float(end))) / step) for end in (low, high))
    return tuple(_number_text(at * digit, power) for at in range(first, last + 2))


def _round_step(least: float | Fraction) -> tuple[int, int]:
    """The smallest of 1, 2 or 5 times a power of ten that is at least `least`: digit and power."""
    power = math.floor(math.log10(least))
    for digit in (1, 2, 5):
        if digit * Fraction(10) ** power >= Fraction(least):
            return digit, power
    return 1, power + 1


def _number_text(digits: int, power: int) -> str:
    """Digits times a power of ten, as a TOML number."""
    if not digits:
        return "0"
    if 0 <= power <= 15:
        return str(digits * 10**power)
    if -9 <= power < 0:
        whole, part = divmod(abs(digits), 10**-power)
        sign = "-" if digits < 0 else ""
        return f"{sign}{whole}.{part:0{-power}}" if part else f"{sign}{whole}"
    return f"{digits}e{power}"


def round_bounds(low: int, high: int) -> tuple[int, int]:
    """Bounds around whole numbers, both included: a wide range is extended to multiples of ten.

    >>> round_bounds(1, 12), round_bounds(3, 94)
    ((1, 12), (0, 99))
    """
    step = 1 if high - low < 20 else 10
    return low // step * step, (high // step + 1) * step - 1


def round_count(number: int) -> int:
    """A number rounded to two significant digits.

    >>> round_count(35_819)
    36000
    """
    step = int(10 ** max(len(str(number)) - 2, 0))
    return (number + step // 2) // step * step


def round_up(number: Fraction) -> int:
    """The next number with one significant digit.

    >>> round_up(Fraction(25_000)), round_up(Fraction(3_000))
    (30000, 3000)
    """
    step = int(10 ** (len(str(math.ceil(number))) - 1))
    return math.ceil(number / step) * step


def whole_periods(start: dt.date, end: dt.date, unit: Unit) -> tuple[dt.date, dt.date]:
    """The first and last day of the quarters, years or (for other units) months around a range."""
    months = {"quarter": 3, "year": 12}.get(unit, 1)
    first = (start.month - 1) // months * months + 1
    last = ((end.month - 1) // months + 1) * months
    return (
        start.replace(month=first, day=1),
        end.replace(month=last, day=calendar.monthrange(end.year, last)[1]),
    )
