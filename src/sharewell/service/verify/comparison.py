"""Comparing answers that were stored with the same answers computed again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sharewell.mechanism.base import Answer
from sharewell.service.result import from_plain, to_plain
from sharewell.service.verify.finding import Check

#: How far a number may be from the one that was computed again, beside its size or its error.
#: Another machine adds up in another order; what it changes stays far below this.
TOLERANCE = 1e-9


def compare(
    check: Check, number: int, stored: Sequence[Mapping[str, Any]], found: Sequence[Answer]
) -> None:
    """See that every stored answer is the one that was found."""
    check.count("answers", len(found))
    if len(stored) != len(found):
        check.fault(
            "differs", f"Event {number} has {len(stored)} answers instead of {len(found)}.", number
        )
        return
    for place, (was, again) in enumerate(zip(stored, found, strict=True)):
        expected = to_plain(again)
        if was == expected:
            continue
        if was.keys() != expected.keys():
            check.fault("differs", f"Answer {place} of event {number} has other fields.", number)
        elif what := _difference(from_plain(was), again):
            check.fault(
                "differs",
                f"The {what.replace('_', ' ')} of answer {place} in event {number} does not follow from "
                f"what was released: it is {was[what]} and should be {expected[what]}.",
                number,
            )


def _difference(was: Answer, again: Answer) -> str:
    """Which part of an answer differs by more than rounding; empty where none does."""
    for what in ("source", "cost", "payer", "charge"):
        if getattr(was, what) != getattr(again, what):
            return what
    error = again.standard_error
    size = 0.0 if error is None or not math.isfinite(error) else error
    if not _near(was.value, again.value, size):
        return "value"
    if not _near(was.standard_error, error, 0.0):
        return "standard_error"
    ends, others = was.interval, again.interval
    if (ends is None) != (others is None):
        return "interval"
    if ends and others and not all(_near(a, b, size) for a, b in zip(ends, others, strict=True)):
        return "interval"
    return ""


def _near(was: float | None, again: float | None, size: float) -> bool:
    if was is None or again is None:
        return was is again
    if not (math.isfinite(was) and math.isfinite(again)):
        return was == again
    return abs(was - again) <= TOLERANCE * max(abs(was), abs(again), size)
