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
#: About the maximum number of steps between the bounds of a product, which is rounded to fit.
MAX_STEPS_OF_PRODUCT = 2**26


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


@dataclass(frozen=True)
class MeasureProduct:
    """A product of measures' centred values, summed over the rows where all of `given` have values.

    Of two factors, which may be the same, it is counted in steps of `scale` from its middle: 1, unless
    it has so many values that it is rounded. Without a factor, it counts the rows.

    >>> wage = Measure("wage", "wage", 0, 100, 0.01)
    >>> square = MeasureProduct((wage, wage), (wage,))
    >>> square.lowest, square.highest, square.scale
    (-12500000, 12500000, 1)
    """

    factors: tuple[Measure, ...]
    given: tuple[Measure, ...]

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest product of the factors' centred values."""
        if len(self.factors) < 2:
            return next(((each.lowest, each.highest) for each in self.factors), (1, 1))
        one, other = self.factors
        ends = [a * b for a in (one.lowest, one.highest) for b in (other.lowest, other.highest)]
        # 0 is a value of every measure.
        return (0 if one == other else min(ends)), max(ends)

    @cached_property
    def scale(self) -> int:
        """What a product of two is rounded to a multiple of: a power of 2 that leaves few enough."""
        low, high = self.bounds
        steps = (high - low) // MAX_STEPS_OF_PRODUCT
        return int(2 ** steps.bit_length()) if len(self.factors) == 2 else 1

    @cached_property
    def steps(self) -> int:
        """The number of multiples between the bounds of a product of two."""
        low, high = self.bounds
        return (high - low + self.scale // 2) // self.scale

    @property
    def middle(self) -> int:
        """The product that counts as 0."""
        return self.bounds[0] + self.steps // 2 * self.scale if len(self.factors) == 2 else 0

    @property
    def lowest(self) -> int:
        """The least whole number that a row adds; one without a value adds 0."""
        return -(self.steps // 2) if len(self.factors) == 2 else min(0, self.bounds[0])

    @property
    def highest(self) -> int:
        """The greatest whole number that a row adds."""
        return self.steps - self.steps // 2 if len(self.factors) == 2 else self.bounds[1]

    @property
    def unit(self) -> Fraction:
        """What 1 stands for in the units of the factors."""
        return math.prod((each.step for each in self.factors), start=Fraction(self.scale))

    @property
    def zero(self) -> Fraction:
        """What 0 stands for in the units of the factors."""
        return self.unit / self.scale * self.middle


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
