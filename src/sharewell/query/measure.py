"""Measures: bounded numeric columns on a public grid, whose values are summed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from sharewell.errors import DomainError
from sharewell.query.attribute import Number

#: The maximum number of steps between the bounds of a measure.
MAX_STEPS_OF_MEASURE = 2**31


@dataclass(frozen=True, init=False)
class Measure:
    """A numeric column whose values are summed: rounded to a public grid, then clamped to its bounds.

    The grid is low, low + step, ..., high. Sums are of whole numbers: a value counts as the number of
    steps from `middle`, the grid point in the middle, to it. NULL, NaN and text that is not a number
    are NULL: such a row adds nothing to the sum if the measure is `nullable`; otherwise it is dropped.

    >>> wage = Measure("wage", "wage_per_hour", 0, 100, 0.01)
    >>> wage.middle, wage.lowest, wage.highest
    (Fraction(50, 1), -5000, 5000)
    """

    name: str
    column: str
    low: Fraction
    high: Fraction
    step: Fraction
    nullable: bool

    def __init__(
        self, name: str, column: str, low: Number, high: Number, step: Number, nullable: bool = True
    ) -> None:
        for what, text in (("name", name), ("column", column)):
            if not isinstance(text, str) or not text.strip():
                raise DomainError(f"The {what} of a measure must be a non-empty string, not {text!r}.")
            object.__setattr__(self, what, text)
        for what, number in (("low", low), ("high", high), ("step", step)):
            object.__setattr__(self, what, _exact(number, f"`{what}` of {name!r}"))
        object.__setattr__(self, "nullable", nullable)
        if not isinstance(self.nullable, bool):
            raise DomainError(
                f"`nullable` of {self.name!r} must be True or False, not {self.nullable!r}."
            )
        if self.low >= self.high or self.step <= 0:
            raise DomainError(
                f"{self.name!r} requires low < high and a positive step.", hint="Correct its bounds."
            )
        count = (self.high - self.low) / self.step
        if count.denominator != 1 or count > MAX_STEPS_OF_MEASURE:
            raise DomainError(
                f"The bounds of {self.name!r} are {_plain(count)} steps apart.",
                hint=f"Choose bounds a whole number of steps apart, at most {MAX_STEPS_OF_MEASURE:,}.",
            )

    @cached_property
    def steps(self) -> int:
        """The number of steps from the lower bound to the upper."""
        return int((self.high - self.low) / self.step)

    @cached_property
    def middle(self) -> Fraction:
        """The grid point in the middle, or just below it: it counts as 0."""
        return self.low - self.lowest * self.step

    @property
    def lowest(self) -> int:
        """The whole number that the lower bound counts as."""
        return -(self.steps // 2)

    @property
    def highest(self) -> int:
        """The whole number that the upper bound counts as."""
        return self.steps - self.steps // 2

    @property
    def extremes(self) -> tuple[tuple[int, ...], ...]:
        """What a row can add to the measure's vectors; every row adds a value between these.

        The vectors are, if it is nullable, the number of rows with a value; then their centred sum.
        """
        if self.nullable:
            return (0, 0), (1, self.lowest), (1, self.highest)
        return (self.lowest,), (self.highest,)


def _exact(number: Any, what: str) -> Fraction:
    if (
        isinstance(number, bool)
        or not isinstance(number, int | float | Decimal | Fraction)
        or not math.isfinite(number)
    ):
        raise DomainError(f"{what} must be a finite number, not {number!r}.")
    return Fraction(str(number)) if isinstance(number, float) else Fraction(number)


def _plain(count: Fraction) -> str:
    """A number as it is written in a sentence."""
    return f"{int(count):,}" if count.denominator == 1 else f"{float(count):,.2f}"
