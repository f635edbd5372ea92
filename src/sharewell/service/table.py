"""Tables: results and quotes in the words of the wire, column by column and row by row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from sharewell import wire
from sharewell.config.findings import HARDLY
from sharewell.mechanism.base import Answer, Source
from sharewell.query.statement import Grouped, Mean, Output, Statement, Total
from sharewell.service.quote import Quote
from sharewell.service.result import Result

#: How much wider an interval must be to hold with 97.5 % instead of 95 %, so that two of them hold at
#: once with 95 % whatever their errors have to do with each other (Bonferroni). Gaussian noise needs
#: 2.2414 / 1.96 = 1.144. One Laplace draw needs ln 40 / ln 20 = 1.231 from the exact 95 % interval, and
#: 2.6085 / 2.06 = 1.267 from the one of `Mechanism.critical`, which lies between those of one draw and
#: of sums of many.
WIDER = 1.27

#: Where a value may have come from, the least trusted first.
WEAKEST_FIRST: tuple[Source, ...] = ("synthetic", "reconstructed", "cached", "measured", "public")

Interval = tuple[float, float]

TOO_LITTLE = "What was left of your share was not enough to have it measured."
HARDLY_BETTER = "Paid for, it would be hardly more precise than it is for nothing."


def answer_table(result: Result, *, pay: bool = False) -> wire.Answer:
    """A result: one row for each group that HAVING, ORDER BY and LIMIT leave.

    With `pay` it was to be paid for, so that what is not measured could not be.
    """
    statement, answers = result.statement, result.answers
    fields = [_field(output, statement, answers) for output in statement.outputs]
    kept = statement.arrange([answer.value for answer in answers])
    rows = tuple([tuple([field(row) for field in fields]) for row in kept])
    return wire.Answer(
        columns=columns(statement),
        rows=rows,
        cost=str(result.cost),
        paid_by=_payer(answers),
        notes=(
            *notes(statement),
            *(_of_averages(rows) if statement.averages else ()),
            *((TOO_LITTLE,) if pay and any(a.source == "reconstructed" for a in answers) else ()),
        ),
    )


def quote_table(quote: Quote) -> wire.Quote:
    """A quote: for every column of numbers the largest and the smallest standard error of its rows."""
    statement = quote.statement
    groups = len(statement.group_labels)
    return wire.Quote(
        sql=statement.text,
        columns=columns(statement),
        groups=groups if statement.limit is None else min(groups, statement.limit),
        paid=_offer(statement, str(quote.cost), quote.paid),
        free=_offer(statement, "0", quote.free),
        means=str(quote.means),
        notes=(*notes(statement), *((HARDLY_BETTER,) if _hardly_better(quote) else ())),
    )


def _hardly_better(quote: Quote) -> bool:
    """Whether one would pay for next to nothing."""
    if not quote.cost or quote.paid is None or quote.free is None:
        return False
    pairs = list(zip(quote.paid, quote.free, strict=True))
    return all(p is not None and f is not None and p >= HARDLY * f for p, f in pairs) and any(
        free for _, free in pairs
    )


def notes(statement: Statement) -> tuple[str, ...]:
    """What the numbers of a result do not say of themselves."""
    found = [
        f"{column} is known by its bins only: a sum or an average takes each for its middle, and no "
        "interval says how far off that is."
        for column in statement.middles
    ]
    if statement.chooses:
        found.append(
            "Noisy numbers decide which rows are shown, so that the largest tend to be too large."
        )
    return tuple(found)


def _of_averages(rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Why some of them have no value, or no interval."""
    numbers = [field for row in rows for field in row if isinstance(field, wire.Number)]
    if any(each.value is None and each.source == "public" for each in numbers):
        yield "NULL: an average of nothing, whatever the rows are."
    if any(each.value is None and each.source != "public" for each in numbers):
        yield "NULL: the noisy count of such an average is not positive."
    if any(each.value is not None and each.interval is None for each in numbers):
        yield "An average without an interval may be anything: the rows that it is of may be none."


def columns(statement: Statement) -> tuple[wire.Column, ...]:
    """The columns of a statement's result."""
    return tuple([_column(each.name, isinstance(each.source, Grouped)) for each in statement.outputs])


@lru_cache(maxsize=1024)
def _column(name: str, is_group: bool) -> wire.Column:
    return wire.Column(name=name, kind="group" if is_group else "number")


def _field(output: Output, statement: Statement, answers: Sequence[Answer]) -> Callable[[int], Any]:
    """What a column shows in each row."""
    rows = len(statement.group_labels)
    match output.source:
        case Grouped(labels):
            return labels.__getitem__
        case Total(block):
            return lambda row: number(answers[block * rows + row])
        case Mean(total, count):
            return lambda row: mean(answers[total * rows + row], answers[count * rows + row])


def number(answer: Answer) -> wire.Number:
    """One answer."""
    return wire.Number(
        value=_finite(answer.value),
        standard_error=_finite(answer.standard_error),
        interval=answer.interval and (_finite(answer.interval[0]), _finite(answer.interval[1])),
        source=answer.source,
    )


def mean(total: Answer, count: Answer) -> wire.Number:
    """A sum by a count; it has no value where the noisy count is not positive.

    It has an interval, and no standard error: the quotient of two noisy numbers has no variance, and a
    linear approximation of one would need the covariance of the two, which nobody keeps.
    """
    return wire.Number(
        value=_finite(total.value / count.value) if count.value > 0 else None,
        standard_error=None,
        interval=_quotient(total, count),
        source=min(total.source, count.source, key=WEAKEST_FIRST.index),
    )


def _quotient(total: Answer, count: Answer) -> Interval | None:
    """All that the quotient can be while both numbers lie in their intervals; None where it is anything.

    The true quotient lies in it wherever the two true numbers lie in theirs, so it holds at least as
    often as both of those do.
    """
    if total.interval is None or count.interval is None:
        return None
    (low, high), (least, most) = _wider(total), _wider(count)
    # Not only where it crosses 0: a count may then be as near to 0 as it likes.
    if not least > 0 or not all(map(math.isfinite, (low, high, most))):
        return None
    return low / (most if low >= 0 else least), high / (least if high >= 0 else most)


def _wider(answer: Answer) -> Interval:
    low, high = answer.interval or (-math.inf, math.inf)
    return answer.value - WIDER * (answer.value - low), answer.value + WIDER * (high - answer.value)


def _payer(answers: Sequence[Answer]) -> str | None:
    """Who paid for all that was not known without looking, where that was one person."""
    payers = {answer.payer for answer in answers if answer.source != "public"}
    return payers.pop() if len(payers) == 1 else None


def _offer(statement: Statement, cost: str, errors: Sequence[float | None] | None) -> wire.Offer | None:
    if errors is None:
        return None
    rows = len(statement.group_labels)
    numbers = [each.source for each in statement.outputs if not isinstance(each.source, Grouped)]
    return wire.Offer(
        cost=cost,
        errors=tuple([_extremes(each, rows, errors) for each in numbers]),
        averages=tuple([_parts(each, rows, errors) for each in numbers]) if statement.averages else (),
    )


def _parts(column: Total | Mean, rows: int, errors: Sequence[float | None]) -> Interval | None:
    """The largest errors of an average's sums and of its counts; None where one is not known."""
    if isinstance(column, Total):
        return None
    total, count = (_extremes(Total(block), rows, errors) for block in column.blocks)
    return (total[0], count[0]) if total and count else None


def _extremes(column: Total | Mean, rows: int, errors: Sequence[float | None]) -> Interval | None:
    """The largest and the smallest error of a column; None for averages, and where one is not known."""
    if isinstance(column, Mean):
        return None
    own = errors[column.block * rows : (column.block + 1) * rows]
    known = [error for error in own if error is not None and math.isfinite(error)]
    return (max(known), min(known)) if known and len(known) == len(own) else None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
