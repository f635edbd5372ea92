"""Quotes: what a statement would cost, paid and free, and the standard errors to expect.

Privacy: computed from public sizes, and from estimates that every analyst can have for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from sharewell import wire
from sharewell.cancellation import checked
from sharewell.mechanisms.base import LAPLACE_CRITICAL, Answer, Mechanism, Prospect
from sharewell.query.block import Block
from sharewell.query.expression import (
    Aggregate,
    Average,
    Call,
    Expression,
    Form,
    Linear,
    Quantile,
    Ratio,
    Spread,
)
from sharewell.query.statement import Statement
from sharewell.service.answers import free_answers, released_answers
from sharewell.service.expected_errors import ErrorOfGroup, ExpectedErrors
from sharewell.service.intervals import Interval, is_undetermined
from sharewell.service.numbers import is_number
from sharewell.service.results import columns
from sharewell.sharing.plan import LITTLE_GAIN
from sharewell.wire.text import GAINS_LITTLE

#: The size of a group that the error of an average is stated for where nothing is known about it.
ASSUMED_SIZE = 1_000


def quote(
    mechanism: Mechanism, statement: Statement, analyst: str, population: int | None = None
) -> wire.Quote:
    """The quote of a statement: its blocks are bought one after the other, while there is money.

    The public `population` gives the size of a group of which nothing is known.
    """
    funds = mechanism.spendable(analyst)
    cost = Fraction(0)
    paid: list[float | None] = []
    free: list[float | None] = []
    can_pay, can_ask_free, short = True, True, False
    for block in checked(statement.blocks, 1):
        preview = mechanism.preview(block, analyst)
        affordable = preview.paid is not None and cost + preview.paid.cost <= funds
        best = preview.paid if affordable else preview.free
        short |= not affordable
        cost += best.cost if best else 0
        can_pay &= best is not None
        can_ask_free &= preview.free is not None
        paid += _errors(best, block)
        free += _errors(preview.free, block)
    # Where something would have to be bought and nothing can be, paying is not an option.
    can_pay &= not short or cost > 0
    groups: dict[Average, list[Group]] = {}
    for output in statement.outputs:
        if isinstance(output.source, Average):
            groups[output.source] = _groups(mechanism, statement, output.source, analyst, population)
    released = None
    if any(_is_computed(output.source) for output in statement.outputs):
        released = released_answers(mechanism, statement, analyst)
    return quote_message(
        statement,
        cost,
        funds,
        paid if can_pay else None,
        free if can_ask_free else None,
        groups,
        released,
        _assumed_size(len(statement.group_labels), population),
        mechanism.critical,
    )


class Group(NamedTuple):
    """What the error of an average is stated for: the number of rows, and sum over count, at most."""

    size: float
    ratio: float


def _groups(
    mechanism: Mechanism, statement: Statement, average: Average, analyst: str, population: int | None
) -> list[Group]:
    """The groups of an average, from what is released already; where that is vague, public sizes.

    Privacy: post-processes estimates that every analyst can have for nothing.
    """
    found = []
    counts, totals = (
        free_answers(mechanism, statement.blocks[at], analyst) for at in (average.count, average.total)
    )
    public = _public_groups(statement, average, population)
    for row, group in enumerate(public):
        count = counts[row] if counts else None
        if count is not None and count.interval is not None and 0 < count.interval[0] < math.inf:
            total = totals[row] if totals else None
            ratio = group.ratio
            if total is not None and total.interval is not None and not is_undetermined(total):
                ratio = min(ratio, max(map(abs, total.interval)) / count.value)
            group = Group(count.value, ratio)
        found.append(group)
    return found


def _public_groups(statement: Statement, average: Average, population: int | None = None) -> list[Group]:
    """Groups of equal sizes, with the largest averages that they can have.

    No larger than the assumed size: how many rows a condition leaves is not known.
    """
    totals = statement.blocks[average.total]
    size = _assumed_size(len(totals), population)
    return [Group(size, float(query.max_abs)) for query in totals]


def _assumed_size(groups: int, population: int | None) -> float:
    """The number of rows in a group of which nothing is known."""
    return ASSUMED_SIZE if population is None else max(1, min(ASSUMED_SIZE, population / groups))


def _is_computed(column: Expression) -> bool:
    """Whether the error of a column depends on the numbers themselves, other than that of an average."""
    return is_number(column) and isinstance(column, Ratio | Spread | Quantile | Call)


def quote_message(
    statement: Statement,
    cost: Fraction,
    funds: Fraction,
    paid: Sequence[float | None] | None,
    free: Sequence[float | None] | None,
    groups: Mapping[Average, Sequence[Group]] | None = None,
    released: Sequence[Answer] | None = None,
    size: float = ASSUMED_SIZE,
    critical: float = LAPLACE_CRITICAL,
) -> wire.Quote:
    """A quote, from the standard errors of all answers with and without paying; None: impossible."""
    rows = len(statement.group_labels)
    gains_little = paid is not None and free is not None and cost > 0 and _gains_little(paid, free)

    def offer(price: Fraction, errors: Sequence[float | None] | None) -> wire.Offer | None:
        if errors is None:
            return None
        expected = ExpectedErrors(statement, errors, released, size, critical)
        return _offer(statement, price, errors, groups or {}, expected)

    paid_offer, free_offer = offer(cost, paid), offer(Fraction(0), free)
    if free_offer is not None and free_offer.undetermined and not any(free_offer.errors):
        free_offer = None
    return wire.Quote(
        sql=statement.text,
        columns=columns(statement),
        groups=rows if statement.limit is None else min(rows, statement.limit),
        paid=paid_offer,
        free=free_offer,
        means=funds,
        critical=critical,
        notes=(*statement.notes, *((GAINS_LITTLE,) if gains_little else ())),
    )


def _errors(prospect: Prospect | None, block: Block) -> tuple[float | None, ...]:
    return prospect.standard_errors if prospect else (None,) * len(block)


def _gains_little(paid: Sequence[float | None], free: Sequence[float | None]) -> bool:
    """Whether paying would buy next to nothing."""
    pairs = list(zip(paid, free, strict=True))
    return all(p is not None and f is not None and p >= LITTLE_GAIN * f for p, f in pairs) and any(free)


def _offer(
    statement: Statement,
    cost: Fraction,
    errors: Sequence[float | None],
    groups: Mapping[Average, Sequence[Group]],
    expected: ExpectedErrors,
) -> wire.Offer:
    numbers = [each.source for each in statement.outputs if is_number(each.source)]
    found = [
        expected.column(each) if _is_computed(each) else _column_errors(each, statement, errors, groups)
        for each in numbers
    ]
    averages = statement.has_average
    sizes = tuple(map(_sizes, found))
    return wire.Offer(
        cost=cost,
        errors=tuple(map(_extremes, found)),
        averages=tuple([_parts(each, statement, errors) for each in numbers]) if averages else (),
        group_sizes=sizes if any(sizes) else (),
        undetermined=sum(each is not None and math.isinf(each) for own in found for each, _ in own),
        unknown=sum(each is None for own in found for each, _ in own),
    )


def _column_errors(
    column: Expression,
    statement: Statement,
    errors: Sequence[float | None],
    groups: Mapping[Average, Sequence[Group]],
) -> list[ErrorOfGroup]:
    """The error of each row of a column that is linear in the answers, or an average.

    The parts of a sum or an average are taken as uncorrelated: how they will be depends on what is
    bought meanwhile.
    """
    match column:
        case Aggregate(block, _, None):
            return [(error, None) for error in statement.answers_of(block, errors)]
        case Aggregate(block, _, int(count), middle):
            own, of_counts = (statement.answers_of(at, errors) for at in (block, count))
            pairs = zip(own, of_counts, strict=True)
            return [(_hypot(a, b, float(middle)), None) for a, b in pairs]
        case Average(total, count):
            known = groups.get(column) or _public_groups(statement, column)
            own, of_counts = (statement.answers_of(at, errors) for at in (total, count))
            return [
                (
                    None if (error := _hypot(a, b, group.ratio)) is None else error / group.size,
                    group.size,
                )
                for a, b, group in zip(own, of_counts, known, strict=True)
            ]
        case Linear(forms):
            return [(_combined_error(statement.forms[at], errors), None) for at in forms]
    return [(None, None)] * len(statement.group_labels)


def _combined_error(form: Form, errors: Sequence[float | None]) -> float | None:
    parts = [(errors[at], float(factor)) for at, factor in form]
    if any(error is None for error, _ in parts):
        return None
    return math.hypot(*(factor * error for error, factor in parts if error is not None))


def _hypot(a: float | None, b: float | None, factor: float) -> float | None:
    return None if a is None or b is None else math.hypot(a, factor * b) if factor else a


def _parts(column: Expression, statement: Statement, errors: Sequence[float | None]) -> Interval | None:
    """The largest errors of an average's sums and of its counts; None where one is not known."""
    if not isinstance(column, Average):
        return None
    parts = [statement.answers_of(at, errors) for at in (column.total, column.count)]
    total, count = (_extremes([(error, None) for error in part]) for part in parts)
    return (total[0], count[0]) if total and count else None


def _extremes(errors: Sequence[ErrorOfGroup]) -> Interval | None:
    """The largest and the smallest error of what is determined; None if no error is known."""
    finite = [error for error, _ in errors if error is not None and math.isfinite(error)]
    return (max(finite), min(finite)) if finite else None


def _sizes(errors: Sequence[ErrorOfGroup]) -> tuple[int, int] | None:
    """The sizes of the groups with the largest and the smallest error; None if the column has none."""
    sized = [
        (error, size)
        for error, size in errors
        if error is not None and size is not None and math.isfinite(error)
    ]
    if not sized:
        return None
    largest, smallest = (max(1, round(size)) for _, size in (max(sized), min(sized)))
    return largest, smallest
