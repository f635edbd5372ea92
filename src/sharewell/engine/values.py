"""Values in SQL: a column read as a number, as text or as a day, whatever its type.

Reading cannot fail on some rows and not on others: text is read by TRY_CAST, and no other cast here
has a value that it refuses.
"""

from __future__ import annotations

import datetime as dt
from enum import Enum

from sqlglot import exp

from sharewell.engine.base import Column

Type = exp.DataType.Type


class Kind(Enum):
    """What a column holds, as far as an attribute cares."""

    INTEGER = "whole numbers"
    NUMBER = "numbers"
    TEXT = "text"
    BOOLEAN = "booleans"
    DATE = "dates"
    TIMESTAMP = "timestamps"


#: Integers of more than 64 bits are mere numbers: comparing them with others can overflow.
KINDS = {
    Kind.INTEGER: {
        *(Type.TINYINT, Type.SMALLINT, Type.MEDIUMINT, Type.INT, Type.BIGINT),
        *(Type.UTINYINT, Type.USMALLINT, Type.UMEDIUMINT, Type.UINT, Type.UBIGINT),
    },
    Kind.NUMBER: {Type.FLOAT, Type.DOUBLE, Type.DECIMAL, Type.INT128, Type.UINT128},
    Kind.TEXT: {*exp.DataType.TEXT_TYPES, Type.ENUM, Type.NULL},
    Kind.BOOLEAN: {Type.BOOLEAN},
    Kind.DATE: {Type.DATE},
    Kind.TIMESTAMP: {
        *(Type.TIMESTAMP, Type.TIMESTAMPNTZ, Type.TIMESTAMPTZ, Type.TIMESTAMPLTZ),
        *(Type.TIMESTAMP_S, Type.TIMESTAMP_MS, Type.TIMESTAMP_NS),
    },
}


def kind_of(column: Column) -> Kind | None:
    """What a column holds; None for what no attribute can be read from."""
    return next((kind for kind, types in KINDS.items() if column.type.this in types), None)


def number(column: Column) -> exp.Condition:
    """A column of numbers or text as doubles: text that is no number is NULL."""
    if column.type.this is Type.DOUBLE:
        return column.value
    if kind_of(column) is Kind.TEXT:
        return try_cast(text(column), Type.DOUBLE)
    return exp.cast(column.value, Type.DOUBLE)


def text(column: Column) -> exp.Condition:
    """A column as text; a number's is that of a whole number, and NULL for other numbers.

    Engines write 0.1 in ways of their own, but all write 1 as `1`; pandas makes 1.0 of it as soon as
    another row is missing.
    """
    if column.type.this in exp.DataType.TEXT_TYPES:
        return column.value
    if kind_of(column) is not Kind.NUMBER:
        return exp.cast(column.value, Type.TEXT)
    value = number(column)
    small = exp.and_(is_whole(value), exp.Abs(this=value.copy()) < double(1e15))
    return exp.case().when(small, exp.cast(exp.cast(value, Type.BIGINT), Type.TEXT))


def day(column: Column) -> exp.Condition:
    """A column of dates, timestamps or ISO text as dates; the session's time zone is UTC."""
    match kind_of(column):
        case Kind.DATE:
            return column.value
        case Kind.TEXT:
            written = text(column)
            # Text with a time may have an offset from UTC; reading that is far slower than a date alone.
            return (
                exp.case()
                .when(exp.Length(this=written) <= len("2024-12-31"), try_cast(written, Type.DATE))
                .else_(exp.cast(try_cast(written, Type.TIMESTAMPTZ), Type.DATE))
            )
        case _:
            # Only DuckDB has these types, in which a time can be too far off to be a date.
            far = column.type.this in (Type.TIMESTAMP_S, Type.TIMESTAMP_MS)
            return (try_cast if far else exp.cast)(column.value, Type.DATE)


def is_missing(column: Column, value: exp.Condition | None = None) -> exp.Condition:
    """Whether a column is NULL or, read as a number, NaN, which all engines hold equal to itself."""
    if value is None:
        return is_null(column.value)
    return exp.or_(is_null(column.value), value.eq(exp.cast(exp.Literal.string("NaN"), Type.DOUBLE)))


def is_null(value: exp.Condition) -> exp.Condition:
    """Whether a value is NULL."""
    return value.is_(exp.null())


def is_whole(value: exp.Condition) -> exp.Condition:
    """Whether a double is a whole number, or infinite, or NaN."""
    return value.eq(exp.Floor(this=value.copy()))


def try_cast(value: exp.Condition, to: exp.DType) -> exp.Condition:
    """A cast that gives NULL for what it cannot read."""
    return exp.TryCast(this=value.copy(), to=exp.DataType.build(to), safe=True)


def double(value: float) -> exp.Condition:
    """A double; its exponent keeps engines from taking it for a decimal."""
    digits = repr(float(abs(value)))
    literal = exp.Literal(this=digits if "e" in digits else f"{digits}e0", is_string=False)
    return exp.Neg(this=literal) if value < 0 else literal


def date(value: dt.date) -> exp.Condition:
    """A date."""
    return exp.cast(exp.Literal.string(value.isoformat()), Type.DATE)
