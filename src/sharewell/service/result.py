"""Results: what an analyst is given for a question, as an object and as plain data for the ledger."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sharewell.mechanism.base import NOTHING, Answer
from sharewell.query.statement import Statement


@dataclass(frozen=True, eq=False)
class Result:
    """The answers to one question: one for each of the statement's queries."""

    number: int
    analyst: str
    statement: Statement
    answers: tuple[Answer, ...]

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The result as SQL would show it."""
        return self.statement.rows([answer.value for answer in self.answers])

    @property
    def cost(self) -> Fraction:
        """What the question has cost, each charge counted once."""
        charges = {a.charge: a.cost for a in self.answers if a.charge is not None}
        if len(charges) == 1:
            return next(iter(charges.values()))
        return sum(charges.values(), NOTHING)

    @property
    def plain(self) -> tuple[dict[str, Any], ...]:
        """The answers as plain data."""
        return tuple(to_plain(answer) for answer in self.answers)


def to_plain(answer: Answer) -> dict[str, Any]:
    """An answer as plain data; what is infinite is written as a text."""
    return {
        "value": _write(answer.value),
        "standard_error": _write(answer.standard_error),
        "interval": None if answer.interval is None else [_write(end) for end in answer.interval],
        "source": answer.source,
        "cost": str(answer.cost),
        "payer": answer.payer,
        "charge": answer.charge,
    }


def from_plain(stored: Mapping[str, Any]) -> Answer:
    """The answer that `to_plain` wrote."""
    ends: Sequence[Any] | None = stored["interval"]
    return Answer(
        float(stored["value"]),
        None if stored["standard_error"] is None else float(stored["standard_error"]),
        None if ends is None else (float(ends[0]), float(ends[1])),
        stored["source"],
        Fraction(stored["cost"]),
        stored["payer"],
        stored["charge"],
    )


def _write(number: float | None) -> float | str | None:
    return number if number is None or math.isfinite(number) else str(number)
