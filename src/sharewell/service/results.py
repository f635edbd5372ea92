"""Results: the rows of an answered statement, and notes about their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sharewell import wire
from sharewell.mechanisms.base import Answer, total_cost
from sharewell.query.expression import Average, Call, Expression, Ratio, Spread
from sharewell.query.ranges import ANYTHING
from sharewell.query.statement import Statement
from sharewell.service.intervals import range_of
from sharewell.service.numbers import RowNumbers, is_number

SHARE_USED_UP = "Not measured: your remaining share does not cover the cost."
SOURCE_CHANGED = (
    "The rows have changed since the first measurement: this mixes measurements of several states, and "
    "has no exact interval."
)
UNDETERMINED = "NULL: not determined by what was measured so far; it needs a paid question."


def result(statement: Statement, answers: Sequence[Answer], *, pay: bool = False) -> wire.Result:
    """A result: one row for each group that HAVING, ORDER BY and LIMIT leave."""
    numbers = RowNumbers(statement, answers)
    fields = [numbers.column(output.source) for output in statement.outputs]
    kept = statement.select_rows(numbers.values)
    rows = tuple([tuple([field(row) for field in fields]) for row in kept])
    notes = [*statement.notes, *_number_notes(statement, rows)]
    if any(answer.source_changed for answer in answers):
        rows = tuple([tuple([_without_error(field) for field in row]) for row in rows])
        notes.append(SOURCE_CHANGED)
    if pay and any(answer.source == "reconstructed" for answer in answers):
        notes.append(SHARE_USED_UP)
    payers = {answer.payer for answer in answers if answer.source != "public"}
    return wire.Result(
        columns=columns(statement),
        rows=rows,
        cost=total_cost(answers),
        paid_by=payers.pop() if len(payers) == 1 else None,
        notes=tuple(notes),
    )


def _without_error(field: Any) -> Any:
    """Withdraw what is stated about the error of a number."""
    if not isinstance(field, wire.Number) or field.source == "public":
        return field
    return field.model_copy(update={"standard_error": None, "interval": None})


def columns(statement: Statement) -> tuple[wire.ResultColumn, ...]:
    """The columns of a statement's result; text and conditions are labels, computed or not."""
    return tuple(
        [
            wire.ResultColumn(name=each.name, kind="number" if is_number(each.source) else "group")
            for each in statement.outputs
        ]
    )


def _number_notes(statement: Statement, rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Why some numbers have no value, or an interval that says nothing."""
    nulls: list[tuple[wire.Number, Expression]] = []
    unbounded: list[Expression] = []
    has_whole_range = False
    for row in rows:
        for each, output in zip(row, statement.outputs, strict=True):
            if not isinstance(each, wire.Number):
                continue
            if each.value is None:
                nulls.append((each, output.source))
            elif each.interval is None:
                unbounded.append(output.source)
            elif isinstance(output.source, Average):
                has_whole_range |= each.interval == range_of(output.source, statement)
    if any(isinstance(source, Spread) for _, source in nulls):
        yield "NULL: judging by the noisy sums, there are too few rows, or all values are the same."
    if simple := [(each, source) for each, source in nulls if not isinstance(source, Call | Spread)]:
        if any(each.interval == ANYTHING for each, _ in simple):
            yield UNDETERMINED
        known = [(each, source) for each, source in simple if each.interval != ANYTHING]
        averages = [each for each, source in known if not isinstance(source, Ratio) or source.positive]
        if len(averages) < len(known):
            yield "NULL: the divisor is 0."
        if any(each.source == "public" for each in averages):
            yield "NULL: the average of an empty set, whatever the rows are."
        if any(each.source != "public" for each in averages):
            yield "NULL: the noisy count of the average is not positive."
    if any(isinstance(source, Average) for source in unbounded):
        yield "An average without an interval can have any value: its count may be 0."
    if has_whole_range:
        yield "An average whose interval has every possible value: its count may be 0."
    if any(isinstance(source, Ratio | Spread | Call) for source in unbounded):
        yield "A computed number without an interval can have any value: a divisor may be 0."
