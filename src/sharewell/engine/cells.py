"""Cells in SQL: expressions that map the values of a column to the cells of an attribute.

No expression may fail on some rows and not on others: text is converted by TRY_CAST, and every other
cast here accepts all values of its type.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sharewell.engine.base import LOOK_UP, Engine, SourceColumn
from sharewell.errors import SourceError
from sharewell.query.attribute import Attribute, Binned, Boolean, Category, Date, Integer, Unit
from sharewell.query.measure import Measure

Type = exp.DataType.Type


class Kind(Enum):
    """The kind of values that a column holds."""

    INTEGER = "integers"
    NUMBER = "numbers"
    TEXT = "text"
    BOOLEAN = "booleans"
    DATE = "dates"
    TIMESTAMP = "timestamps"


#: Integers of more than 64 bits count as numbers: comparing them with other types can overflow.
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


#: The kinds of column that each attribute can be read from.
READS: dict[type[Attribute], tuple[Kind, ...]] = {
    Integer: (Kind.INTEGER, Kind.NUMBER, Kind.TEXT),
    Binned: (Kind.INTEGER, Kind.NUMBER, Kind.TEXT),
    Boolean: (Kind.BOOLEAN, Kind.INTEGER, Kind.NUMBER, Kind.TEXT),
    Category: (Kind.TEXT, Kind.INTEGER, Kind.NUMBER, Kind.BOOLEAN, Kind.DATE),
    Date: (Kind.DATE, Kind.TIMESTAMP, Kind.TEXT),
}

#: The accepted text of a Boolean, ignoring case and surrounding spaces.
BOOLEAN_TEXT = {
    **dict.fromkeys(("false", "f", "no", "n", "0", "0.0"), 0),
    **dict.fromkeys(("true", "t", "yes", "y", "1", "1.0"), 1),
}


#: More labels than these are looked up in a map, where the engine has one: a CASE of 100,000 takes
#: a minute to write, and ClickHouse refuses it.
MAX_COMPARED = 1000

#: Maps text to cells: the text, the cell of each label, and which rows are missing.
LookUp = Callable[[exp.Condition, Mapping[str, int], exp.Condition], "Placement"]


@dataclass(frozen=True)
class Placement:
    """SQL that maps a column's values to cells.

    `known` is true for declared values, and `cell` is then their cell; `missing` is true for NULL and
    NaN.
    """

    known: exp.Condition
    cell: exp.Condition
    missing: exp.Condition


def placement(attribute: Attribute, column: SourceColumn, look_up: LookUp) -> Placement:
    """Return the SQL that maps a column's values to cells; `look_up` maps text."""
    require_fit(attribute, column)
    match attribute:
        case Integer():
            return _integer(attribute, column)
        case Binned():
            return _binned(attribute, column)
        case Boolean():
            return _boolean(column, look_up)
        case Date():
            return _date(attribute, column)
        case Category():
            return _category(attribute, column, look_up)
    raise TypeError(f"cannot read a {type(attribute).__name__}")


def require_fit(attribute: Attribute, column: SourceColumn) -> None:
    """Raise SourceError if the type of a column can hold no value of the attribute."""
    kind, name = kind_of(column), type(attribute).__name__
    if kind in READS[type(attribute)]:
        return
    fitting = _either([kind.value for kind in READS[type(attribute)]])
    others = _either([other.__name__ for other, kinds in READS.items() if kind in kinds])
    raise SourceError(
        f"Cannot read column {column.name!r} of type {column.type.sql('duckdb')} as {name}.",
        hint=f"Cast it to {fitting}" + (f", or declare it as {others}." if others else "."),
    )


def _either(words: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _integer(attribute: Integer, column: SourceColumn) -> Placement:
    """Map integers; the bounds are below 2**53, so doubles are exact."""
    whole = kind_of(column) is Kind.INTEGER
    value = column.value if whole else number(column)
    inside = value.between(attribute.low, attribute.high)
    short = max(-attribute.low, attribute.high) < 2**31
    return Placement(
        known=inside if whole else exp.and_(inside, is_whole(value)),
        cell=exp.cast(value, Type.INT if short else Type.BIGINT) - attribute.low,
        missing=is_missing(column, None if whole else value),
    )


def _binned(attribute: Binned, column: SourceColumn) -> Placement:
    """Map bins; edges are rounded to the column's type, so that 0.1 is on the edge 0.1."""
    value = number(column)
    precision = np.float32 if column.type.this is Type.FLOAT else np.float64
    edges = np.array([_nearest(edge, precision) for edge in attribute.edges])
    known = exp.and_(value >= double(edges[0]), value < double(edges[-1]))
    cell = _by_arithmetic(value, edges, attribute.edges) or _by_halving(value, edges, 0, len(edges) - 1)
    return Placement(known, cell, is_missing(column, value))


def _nearest(edge: Fraction, precision: type[np.floating[Any]]) -> float:
    """Return the float nearest to an edge, or the double if single precision overflows."""
    with np.errstate(over="ignore"):
        narrow = precision(float(edge))
    return float(narrow) if np.isfinite(narrow) else float(edge)


def _by_arithmetic(
    value: exp.Condition, edges: NDArray[np.float64], exact: Sequence[Fraction]
) -> exp.Condition | None:
    """Return the bin as floor((value - low) / width), if the bins are equally wide and that is exact.

    Each step is monotone in floating point too, so a formula that is right at every edge, and at the
    last number before the next edge, is right everywhere.
    """
    cells = np.arange(len(edges) - 1)
    low, width = float(edges[0]), float((exact[-1] - exact[0]) / len(cells))
    for numbers in (edges[:-1], np.nextafter(edges[1:], -np.inf)):
        with np.errstate(all="ignore"):
            if not np.array_equal(np.floor((numbers - low) / width), cells):
                return None
    distance = value if low == 0 else exp.paren(value - double(low))
    return exp.cast(exp.Floor(this=exp.Div(this=distance, expression=double(width))), Type.INT)


def _by_halving(
    value: exp.Condition, edges: NDArray[np.float64], first: int, last: int
) -> exp.Condition:
    """Return the bin between two edges by binary search."""
    if last - first == 1:
        return exp.Literal.number(first)
    middle = (first + last) // 2
    lower, upper = _by_halving(value, edges, first, middle), _by_halving(value, edges, middle, last)
    # Built directly: sqlglot's builder would copy both halves at every level.
    return exp.Case(ifs=[exp.If(this=value < double(edges[middle]), true=lower)], default=upper)


def _boolean(column: SourceColumn, look_up: LookUp) -> Placement:
    match kind_of(column):
        case Kind.BOOLEAN:
            missing = is_missing(column)
            return Placement(missing.not_(), exp.case().when(column.value, "1").else_("0"), missing)
        case Kind.TEXT:
            written = exp.Lower(this=exp.Trim(this=text(column)))
            return look_up(written, BOOLEAN_TEXT, is_missing(column))
        case _:
            value = number(column)
            return Placement(value.isin(0, 1), exp.cast(value, Type.INT), is_missing(column, value))


def _category(attribute: Category, column: SourceColumn, look_up: LookUp) -> Placement:
    cells = {label: cell for cell, label in enumerate(attribute.values)}
    value = number(column) if kind_of(column) is Kind.NUMBER else None
    return look_up(text(column), cells, is_missing(column, value))


def look_up_of(engine: Engine) -> LookUp:
    """Return how an engine maps text to cells."""
    if engine.has_enumerations:
        return enumerate_labels
    return find_labels if engine.has_maps else compare_labels


def enumerate_labels(
    written: exp.Condition, cells: Mapping[str, int], missing: exp.Condition
) -> Placement:
    """Look text up in an enumeration of the labels: for DuckDB, which is fastest at this.

    It has the value that is equal byte by byte, or none.
    """
    if list(cells.values()) != list(range(len(cells))):
        return compare_labels(written, cells, missing)
    labels = exp.DataType(this=Type.ENUM, expressions=[exp.Literal.string(each) for each in cells])
    value = exp.TryCast(this=written.copy(), to=labels, safe=True)
    return Placement(is_null(value).not_(), exp.func("ENUM_CODE", value.copy()), missing)


def compare_labels(
    written: exp.Condition, cells: Mapping[str, int], missing: exp.Condition
) -> Placement:
    """Look text up by a CASE that halves the sorted labels.

    It has one value by its structure, whatever an engine takes for equal: a row is in one cell.
    """
    labels = sorted(cells, key=str.encode)

    def halve(first: int, last: int) -> exp.Condition:
        if last - first == 1:
            return exp.Literal.number(cells[labels[first]])
        middle = (first + last) // 2
        below = written.copy() < exp.Literal.string(labels[middle])
        return exp.Case(ifs=[exp.If(this=below, true=halve(first, middle))], default=halve(middle, last))

    known = exp.In(this=written.copy(), expressions=[exp.Literal.string(each) for each in labels])
    return Placement(known, halve(0, len(labels)), missing)


def find_labels(written: exp.Condition, cells: Mapping[str, int], missing: exp.Condition) -> Placement:
    """Look text up in a map, which has one value for a label: a row is in one cell."""
    if len(cells) <= MAX_COMPARED:
        return compare_labels(written, cells, missing)
    labels = exp.Literal.string(json.dumps(cells, ensure_ascii=False))
    found = exp.Anonymous(this=LOOK_UP, expressions=[labels, written.copy()])
    return Placement(is_null(found).not_(), exp.cast(found.copy(), Type.INT), missing)


def _date(attribute: Date, column: SourceColumn) -> Placement:
    value = day(column)
    first, last = (dt.date.fromordinal(edge) for edge in (attribute.edges[0], attribute.edges[-1] - 1))
    cell = _periods_since(first, value, attribute.by)
    return Placement(value.between(date(first), date(last)), cell, is_missing(column))


def _periods_since(start: dt.date, value: exp.Condition, by: Unit) -> exp.Condition:
    """Return the number of periods between `start` and a date."""
    match by:
        case "day":
            return _days_since(start, value)
        case "week":
            monday = start - dt.timedelta(days=start.weekday())
            return exp.IntDiv(this=_days_since(monday, value), expression=exp.convert(7))
        case "month":
            return _part("YEAR", value) * 12 + _part("MONTH", value) - (start.year * 12 + start.month)
        case "quarter":
            quarter = (start.month + 2) // 3
            return _part("YEAR", value) * 4 + _part("QUARTER", value) - (start.year * 4 + quarter)
        case "year":
            return _part("YEAR", value) - start.year


def _days_since(start: dt.date, value: exp.Condition) -> exp.Condition:
    return exp.DateDiff(this=value.copy(), expression=date(start), unit=exp.var("DAY"))


def _part(name: str, value: exp.Condition) -> exp.Condition:
    return exp.cast(exp.Extract(this=exp.var(name), expression=value.copy()), Type.INT)


def centred_value(measure: Measure, column: SourceColumn) -> exp.Condition:
    """Return the SQL of a measure's value: the number of steps from the middle, or NULL.

    The value is clamped before it is rounded, so that no step can overflow. Both are monotone and the
    bounds are on the grid: the result is the same as the other way round.
    """
    kinds = (Kind.INTEGER, Kind.NUMBER, Kind.TEXT)
    if kind_of(column) not in kinds:
        raise SourceError(
            f"Cannot read column {column.name!r} of type {column.type.sql('duckdb')} as Measure.",
            hint=f"Cast it to {_either([kind.value for kind in kinds])}.",
        )
    value, low = number(column), double(float(measure.low))
    clamped = exp.Least(
        this=exp.Greatest(this=value, expressions=[low], ignore_nulls=True),
        expressions=[double(float(measure.high))],
        ignore_nulls=True,
    )
    step = double(float(measure.step))
    steps = exp.Round(this=exp.Div(this=exp.paren(clamped - low), expression=step))
    # Bounds that are no doubles may be further apart as doubles, and their distance may be infinite.
    within = exp.Least(this=steps, expressions=[double(measure.steps)], ignore_nulls=True)
    centred = exp.cast(within, Type.BIGINT) + measure.lowest
    missing = exp.or_(is_null(value), value.eq(exp.cast(exp.Literal.string("NaN"), Type.DOUBLE)))
    return exp.case().when(missing.not_(), centred)


def kind_of(column: SourceColumn) -> Kind | None:
    """Return the kind of a column; None if no attribute can be read from it."""
    return next((kind for kind, types in KINDS.items() if column.type.this in types), None)


def number(column: SourceColumn) -> exp.Condition:
    """Convert a column of numbers or text to doubles; text that is not a number becomes NULL."""
    if column.type.this is Type.DOUBLE:
        return column.value
    if kind_of(column) is Kind.TEXT:
        return try_cast(text(column), Type.DOUBLE)
    return exp.cast(column.value, Type.DOUBLE)


def text(column: SourceColumn) -> exp.Condition:
    """Convert a column to text; numbers that are not integers become NULL.

    Engines format 0.1 differently, but all format 1 as `1`. pandas turns 1 into 1.0 as soon as another
    row is missing.
    """
    if column.type.this in exp.DataType.TEXT_TYPES:
        return column.value
    if kind_of(column) is not Kind.NUMBER:
        return exp.cast(column.value, Type.TEXT)
    value = number(column)
    small = exp.and_(is_whole(value), exp.Abs(this=value.copy()) < double(1e15))
    return exp.case().when(small, exp.cast(exp.cast(value, Type.BIGINT), Type.TEXT))


def day(column: SourceColumn) -> exp.Condition:
    """Convert a column of dates, timestamps or ISO text to dates; the session's time zone is UTC."""
    match kind_of(column):
        case Kind.DATE:
            return column.value
        case Kind.TEXT:
            written = text(column)
            # Text with a time may have an offset from UTC; converting it is far slower than a date.
            return (
                exp.case()
                .when(exp.Length(this=written) <= len("2024-12-31"), try_cast(written, Type.DATE))
                .else_(exp.cast(try_cast(written, Type.TIMESTAMPTZ), Type.DATE))
            )
        case _:
            # DuckDB's own types, whose range exceeds that of a date.
            wide = column.type.this in (Type.TIMESTAMP_S, Type.TIMESTAMP_MS)
            return (try_cast if wide else exp.cast)(column.value, Type.DATE)


def is_missing(column: SourceColumn, value: exp.Condition | None = None) -> exp.Condition:
    """Return whether a column is NULL or, if read as a number, NaN (which equals itself in SQL)."""
    if value is None:
        return is_null(column.value)
    return exp.or_(is_null(column.value), value.eq(exp.cast(exp.Literal.string("NaN"), Type.DOUBLE)))


def is_null(value: exp.Condition) -> exp.Condition:
    """Return whether a value is NULL."""
    return value.is_(exp.null())


def is_whole(value: exp.Condition) -> exp.Condition:
    """Return whether a double is an integer, infinite or NaN."""
    return value.eq(exp.Floor(this=value.copy()))


def try_cast(value: exp.Condition, to: exp.DType) -> exp.Condition:
    """Cast, with NULL for values that cannot be converted."""
    return exp.TryCast(this=value.copy(), to=exp.DataType.build(to), safe=True)


def double(value: float) -> exp.Condition:
    """Return a double literal; its exponent keeps engines from reading it as a decimal."""
    digits = repr(float(abs(value)))
    literal = exp.Literal(this=digits if "e" in digits else f"{digits}e0", is_string=False)
    return exp.Neg(this=literal) if value < 0 else literal


def date(value: dt.date) -> exp.Condition:
    """Return a date literal."""
    return exp.cast(exp.Literal.string(value.isoformat()), Type.DATE)
