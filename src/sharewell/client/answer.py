"""Answers: a noisy number, how far off it may be, where it came from and what it cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sharewell import wire
from sharewell.client.wording import give_or_take, price
from sharewell.errors import RequestError


@dataclass(frozen=True, repr=False)
class Estimate:
    """A noisy number, as a field of a table or by itself.

    >>> estimate = Estimate(6231.3, 14.1, (6203.3, 6259.3), "measured")
    >>> estimate
    6,231 ± 28 (95 %), measured
    >>> float(estimate), int(estimate), f"{estimate:,.1f}"
    (6231.3, 6231, '6,231.3')
    """

    #: None where SQL would say NULL, such as an average over nobody.
    value: float | None
    #: None where it is not known.
    standard_error: float | None
    #: Holds the true number in 95 of 100 cases; None where it is not known.
    interval: tuple[float, float] | None
    source: str

    def __float__(self) -> float:
        if self.value is None:
            raise RequestError(
                "The answer is NULL, not a number.", hint="Look at `value`, which is None, first."
            )
        return float(self.value)

    def __int__(self) -> int:
        """The nearest whole number."""
        return round(float(self))

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __str__(self) -> str:
        return give_or_take(self.value, self.interval)

    def __repr__(self) -> str:
        return f"{self}, {self.source}"


@dataclass(frozen=True, repr=False)
class Answer(Estimate):
    """The answer to a question for one number.

    >>> Answer(6231.0, 14.1, (6203.0, 6259.0), "measured", Fraction(1, 100), "ann", "SELECT ...")
    6,231 ± 28 (95 %), measured, cost 1/100
    """

    #: What the question has cost whoever asked it.
    cost: Fraction
    #: Who paid for what the answer is made of, where that was one person.
    paid_by: str | None
    sql: str
    #: What to know before one relies on it.
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "\n".join((f"{super().__repr__()}, {price(self.cost)}", *self.notes))


def estimate(number: wire.Number) -> Estimate:
    """A number as it came over the wire, where an end of an interval that is not there is infinite."""
    return Estimate(number.value, number.standard_error, _ends(number.interval), number.source)


def only_answer(of: wire.Answer, sql: str) -> Answer:
    """The answer of a result that is one number."""
    found = wire.Number.model_validate(of.rows[0][0])
    own = estimate(found)
    return Answer(
        own.value,
        own.standard_error,
        own.interval,
        own.source,
        Fraction(of.cost),
        of.paid_by,
        sql,
        of.notes,
    )


def _ends(interval: tuple[float | None, float | None] | None) -> tuple[float, float] | None:
    if interval is None:
        return None
    low, high = interval
    return (-math.inf if low is None else low, math.inf if high is None else high)
