"""The range of a function while its arguments lie in intervals: interval arithmetic.

None stands for a range that is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

Range = tuple[float, float]

ANYTHING: Range = (-math.inf, math.inf)


def add(a: Range, b: Range) -> Range:
    """The range of a + b."""
    return a[0] + b[0], a[1] + b[1]


def subtract(a: Range, b: Range) -> Range:
    """The range of a - b."""
    return a[0] - b[1], a[1] - b[0]


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b


def multiply(a: Range, b: Range) -> Range:
    """The range of a * b."""
    ends = [_times(x, y) for x in a for y in b]
    return min(ends), max(ends)


def divide(a: Range, b: Range) -> Range | None:
    """The range of a / b; none where b may be zero."""
    if b[0] <= 0 <= b[1]:
        return None
    return multiply(a, (1 / b[1], 1 / b[0]))


def absolute(a: Range) -> Range:
    """The range of the absolute value."""
    return (0.0 if a[0] <= 0 <= a[1] else min(map(abs, a))), max(map(abs, a))


def increasing(function: Callable[..., Any]) -> Callable[..., Range | None]:
    """The bounds of a function that increases in its first argument, given the values of the others."""

    def bounds(a: Range, *others: Range) -> Range | None:
        if any(low != high for low, high in others):
            return None
        ends = []
        for end, infinite in zip(a, ANYTHING, strict=True):
            found = infinite if math.isinf(end) else function(end, *(low for low, _ in others))
            ends.append(infinite if found is None else float(found))
        return ends[0], ends[1]

    return bounds


def power(a: Range, b: Range) -> Range | None:
    """The range of a to a known power."""
    if b[0] != b[1] or math.isinf(a[0]) or math.isinf(a[1]):
        return None
    exponent = b[0]
    if exponent == 2:
        low, high = absolute(a)
        return low * low, high * high
    if a[0] <= 0 and exponent != abs(int(exponent)):
        return None
    if exponent < 0 and a[0] <= 0:
        return None
    ends = [float(x) ** exponent for x in a]
    if exponent == int(exponent) and int(exponent) % 2 == 0 and a[0] < 0 < a[1]:
        ends.append(0.0)
    return min(ends), max(ends)


def modulo(a: Range, b: Range) -> Range | None:
    """The range of the remainder, which has the sign of a."""
    if b[0] != b[1] or b[0] == 0:
        return None
    most = abs(b[0])
    return (0.0 if a[0] >= 0 else -most), (0.0 if a[1] <= 0 else most)


def greatest(*arguments: Range) -> Range:
    """The range of the largest argument."""
    return max(low for low, _ in arguments), max(high for _, high in arguments)


def least(*arguments: Range) -> Range:
    """The range of the smallest argument."""
    return min(low for low, _ in arguments), min(high for _, high in arguments)


def union(ranges: Sequence[Range]) -> Range:
    """The smallest range that holds all of them."""
    return min(low for low, _ in ranges), max(high for _, high in ranges)
