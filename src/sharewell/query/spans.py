"""Functions on the values of a bin, which are a span of numbers.

Each has a result where that is the same, or a span again, for all values; it raises `Cut` where the bin
would be divided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


class Cut(Exception):
    """A function is not constant on a bin, or not defined on it."""


@dataclass(frozen=True)
class Span:
    """All numbers from `low` to `high`; each end belongs to it or not."""

    low: Fraction
    high: Fraction
    has_low: bool = True
    has_high: bool = False

    def map(self, low: Fraction, high: Fraction) -> Span:
        """Return the span between the images of the ends; they may have changed places."""
        if low <= high:
            return Span(low, high, self.has_low, self.has_high)
        return Span(high, low, self.has_high, self.has_low)


def add(a: Any, b: Any, sign: int = 1) -> Any:
    """Add a number, or subtract it; two spans have no common sum."""
    if isinstance(a, Span) and isinstance(b, Span):
        raise Cut
    if isinstance(a, Span):
        return a.map(a.low + sign * b, a.high + sign * b)
    return b.map(a + sign * b.low, a + sign * b.high)


def multiply(a: Any, b: Any) -> Any:
    """Multiply a span by a number."""
    if isinstance(a, Span) and isinstance(b, Span):
        raise Cut
    span, factor = (a, b) if isinstance(a, Span) else (b, a)
    return Fraction(0) if factor == 0 else span.map(span.low * factor, span.high * factor)


def divide(a: Any, b: Any) -> Any:
    """Divide a span by a number."""
    if isinstance(b, Span):
        raise Cut
    return None if b == 0 else a.map(a.low / b, a.high / b)


def steps(function: Callable[[Any], Fraction], a: Span) -> Fraction:
    """A step function on a span: its value where both ends, or what is next to them, have the same."""
    tiny = (a.high - a.low) / 10**9
    ends = {
        function(a.low if a.has_low else a.low + tiny),
        function(a.high if a.has_high else a.high - tiny),
    }
    if len(ends) > 1:
        raise Cut
    return ends.pop()


def absolute(a: Span) -> Span:
    """Take the absolute values of a span on one side of zero."""
    if a.low < 0 < a.high:
        raise Cut
    return a.map(abs(a.low), abs(a.high))


def compare(symbol: str, a: Any, b: Any) -> bool:
    """Compare a span with a number or a span, where the result is the same for all of it."""
    if isinstance(b, Span):
        if isinstance(a, Span):
            return _compare_spans(symbol, a, b)
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(symbol, symbol)
        return compare(mirrored, b, a)
    below = a.high < b or (a.high == b and not a.has_high)
    above = a.low > b or (a.low == b and not a.has_low)
    if symbol in ("=", "<>"):
        if below or above:
            return symbol == "<>"
        raise Cut
    if symbol in ("<=", ">"):
        below = a.high <= b
    else:
        above = a.low >= b
    if not (below or above):
        raise Cut
    return below if symbol in ("<", "<=") else above


def _compare_spans(symbol: str, a: Span, b: Span) -> bool:
    below = a.high < b.low or (a.high == b.low and not (a.has_high and b.has_low))
    above = b.high < a.low or (b.high == a.low and not (b.has_high and a.has_low))
    if not (below or above):
        raise Cut
    return symbol == "<>" or (below if symbol in ("<", "<=") else above and symbol in (">", ">="))
