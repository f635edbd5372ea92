"""Cells in SQL: where the values of a column fall among the cells of an attribute."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sharewell.engine.base import Column
from sharewell.engine.values import (
    Kind,
    Type,
    date,
    day,
    double,
    is_missing,
    is_null,
    is_whole,
    kind_of,
    number,
    text,
)
from sharewell.errors import SourceError
from sharewell.query.attribute import Attribute, Boolean, Category
from sharewell.query.ordered import Binned, Date, Integer, Unit

#: The kinds of column that an attribute can be read from.
READS: dict[type[Attribute], tuple[Kind, ...]] = {
    Integer: (Kind.INTEGER, Kind.NUMBER, Kind.TEXT),
    Binned: (Kind.INTEGER, Kind.NUMBER, Kind.TEXT),
    Boolean: (Kind.BOOLEAN, Kind.INTEGER, Kind.NUMBER, Kind.TEXT),
    Category: (Kind.TEXT, Kind.INTEGER, Kind.NUMBER, Kind.BOOLEAN, Kind.DATE),
    Date: (Kind.DATE, Kind.TIMESTAMP, Kind.TEXT),
}

#: The text that a Boolean may be written as, in any case and with spaces around it.
BOOLEAN_TEXT = {
    **dict.fromkeys(("false", "f", "no", "n", "0", "0.0"), 0),
    **dict.fromkeys(("true", "t", "yes", "y", "1", "1.0"), 1),
}


@dataclass(frozen=True)
class Placement:
    """Where a column's values fall, as SQL that cannot fail on any row.

    `known` holds for a declared value, `cell` is then its cell, and `missing` holds for NULL and NaN.
    A `lookup` is a join that they need; it finds at most one match a row.
    """

    known: exp.Condition
    cell: exp.Condition
    missing: exp.Condition
    lookup: exp.Join | None = None


def placement(attribute: Attribute, column: Column, alias: str) -> Placement:
    """The SQL that places a column's values; `alias` names the lookup, should there be one.

    Refuses a column whose type can hold no value of the attribute.
    """
    require_fit(attribute, column)
    match attribute:
        case Integer():
            return _integer(attribute, column)
        case Binned():
            return _binned(attribute, column)
        case Boolean():
            return _boolean(column, alias)
        case Date():
            return _date(attribute, column)
        case Category():
            return _category(attribute, column, alias)
    raise TypeError(f"no engine reads a {type(attribute).__name__}")


def require_fit(attribute: Attribute, column: Column) -> None:
    """Refuse a column whose type can hold no value of the attribute, from the type alone."""
    kind, name = kind_of(column), type(attribute).__name__
    if kind in READS[type(attribute)]:
        return
    fitting = " or ".join(kind.value for kind in READS[type(attribute)])
    others = " or ".join(other.__name__ for other, kinds in READS.items() if kind in kinds)
    raise SourceError(
        f"The column {column.name!r} is of type {column.type.sql('duckdb')}, which can hold no {name}.",
        hint=f"Cast the column to {fitting}" + (f", or declare it as {others}." if others else "."),
    )


def _integer(attribute: Integer, column: Column) -> Placement:
    """Bounds are below 2**53, so that a double is as good as the number itself."""
    whole = kind_of(column) is Kind.INTEGER
    value = column.value if whole else number(column)
    inside = value.between(attribute.low, attribute.high)
    short = max(-attribute.low, attribute.high) < 2**31
    return Placement(
        known=inside if whole else exp.and_(inside, is_whole(value)),
        cell=exp.cast(value, Type.INT if short else Type.BIGINT) - attribute.low,
        missing=is_missing(column, None if whole else value),
    )


def _binned(attribute: Binned, column: Column) -> Placement:
    """An edge is what the column's own type makes of it, so that 0.1 is on the edge 0.1."""
    value = number(column)
    precision = np.float32 if column.type.this is Type.FLOAT else np.float64
    edges = np.array([_nearest(edge, precision) for edge in attribute.edges])
    known = exp.and_(value >= double(edges[0]), value < double(edges[-1]))
    cell = _by_arithmetic(value, edges, attribute.edges) or _by_halving(value, edges, 0, len(edges) - 1)
    return Placement(known, cell, is_missing(column, value))


def _nearest(edge: Fraction, precision: type[np.floating[Any]]) -> float:
    """The float nearest to an edge, or the double where single precision does not reach so far."""
    with np.errstate(over="ignore"):
        narrow = precision(float(edge))
    return float(narrow) if np.isfinite(narrow) else float(edge)


def _by_arithmetic(
    value: exp.Condition, edges: NDArray[np.float64], exact: Sequence[Fraction]
) -> exp.Condition | None:
    """The bin as floor((value - low) / width), where the bins are equally wide and that is exact.

    In floating point too, none of these steps ever decreases as the value grows. So what is right at
    every edge, and at the last number before the next, is right everywhere.
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
    """The bin between two edges, by comparing with the middle one."""
    if last - first == 1:
        return exp.Literal.number(first)
    middle = (first + last) // 2
    lower, upper = _by_halving(value, edges, first, middle), _by_halving(value, edges, middle, last)
    # Built by hand: sqlglot's own builder would copy both halves, at every level.
    return exp.Case(ifs=[exp.If(this=value < double(edges[middle]), true=lower)], default=upper)


def _boolean(column: Column, alias: str) -> Placement:
    match kind_of(column):
        case Kind.BOOLEAN:
            missing = is_missing(column)
            return Placement(missing.not_(), exp.case().when(column.value, "1").else_("0"), missing)
        case Kind.TEXT:
            written = exp.Lower(this=exp.Trim(this=text(column)))
            return _looked_up(written, BOOLEAN_TEXT, alias, is_missing(column))
        case _:
            value = number(column)
            return Placement(value.isin(0, 1), exp.cast(value, Type.INT), is_missing(column, value))


def _category(attribute: Category, column: Column, alias: str) -> Placement:
    cells = {label: cell for cell, label in enumerate(attribute.values)}
    value = number(column) if kind_of(column) is Kind.NUMBER else None
    return _looked_up(text(column), cells, alias, is_missing(column, value))


def _looked_up(
    written: exp.Condition, cells: Mapping[str, int], alias: str, missing: exp.Condition
) -> Placement:
    """Text found in a list, by a join: that is faster than a CASE even for a handful of labels."""
    listed = exp.values(list(cells.items()), alias=alias, columns=["label", "cell"])
    label, cell = exp.column("label", table=alias), exp.column("cell", table=alias)
    lookup = exp.Join(this=listed, side="LEFT", on=written.eq(label))
    return Placement(is_null(cell).not_(), cell, missing, lookup)


def _date(attribute: Date, column: Column) -> Placement:
    value = day(column)
    first, last = (dt.date.fromordinal(edge) for edge in (attribute.edges[0], attribute.edges[-1] - 1))
    cell = _periods_since(first, value, attribute.by)
    return Placement(value.between(date(first), date(last)), cell, is_missing(column))


def _periods_since(start: dt.date, value: exp.Condition, by: Unit) -> exp.Condition:
    """How many periods a day comes after the period of `start`."""
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
