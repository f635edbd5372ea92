"""Comparisons of a column with constants: on which cells they are true, and on which unknown.

Unknown is a comparison with NULL; an order comparison with the `other` cell of numbers and days,
whose rows may lie anywhere; and such a cell's equality with a value that was not declared. The
`other` cell of a category is one more category.

The errors raised here carry no place: the caller knows it.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from sharewell.errors import CutsThroughBin, SqlError, UnknownName
from sharewell.query.attribute import Boolean, Mask
from sharewell.query.condition import Marks
from sharewell.query.ordered import CutsCell, Date, Ordered
from sharewell.query.sql.constants import Constant, as_day, as_number, constant_text, kind
from sharewell.query.sql.like import like_matcher
from sharewell.query.sql.names import Column, suggestion


def position(column: Column, constant: Constant, symbol: str = "=") -> int | None:
    """Where the label that a constant names stands; None for a value outside the declared ones."""
    if isinstance(constant, str) and constant in column.positions:
        return column.positions[constant]
    if column.is_text:
        raise _not_a_label(column, constant)
    if isinstance(column.attribute, Ordered):
        return _cell(column, column.attribute, constant, symbol)
    if isinstance(constant, bool):
        return int(constant)
    raise _mismatch(column, constant)


def one_of(column: Column, positions: Iterable[int | None], *, null: bool = False) -> Marks:
    """Where a column has one of the labels at these positions; `null` says that NULL is listed too."""
    distinct = set(positions)
    true = np.zeros(len(column.labels), dtype=bool)
    true[[at for at in distinct if at is not None]] = True
    unknown = ~true if null else np.zeros_like(true)
    if column.null is not None:
        unknown[column.null] = True
    if None in distinct and column.other is not None:
        unknown[column.other] = not true[column.other]
    return _marks(column, true, unknown)


def ordered(column: Column, symbol: str, constant: Constant) -> Marks:
    """Where a column is <, <=, > or >= a constant."""
    attribute = column.attribute
    if column.is_text or not isinstance(attribute, Ordered):
        raise SqlError(
            f"{column.name} has no order, so {symbol} is not answered for it.",
            hint=f"Use =, <>, IN{', LIKE' if column.is_text else ''} or IS NULL.",
        )
    try:
        below = attribute.below(_point(column, constant), inclusive=symbol in ("<=", ">"))
    except CutsCell as cut:
        raise _cuts(column, symbol, constant, cut) from None
    declared = attribute.mask(slice(0, len(attribute.values)))
    return _marks(column, below if symbol in ("<", "<=") else declared & ~below, ~declared)


def null(column: Column) -> Marks:
    """Where a column IS NULL."""
    true = np.zeros(len(column.labels), dtype=bool)
    if column.null is not None:
        true[column.null] = True
    return _marks(column, true, np.zeros_like(true))


def holds(column: Column) -> Marks:
    """Where a column that stands as a condition is true; unknown where it is neither true nor false."""
    if not isinstance(column.attribute, Boolean):
        raise SqlError(
            f"{column.name} is no condition by itself: it is not true or false.",
            hint=f"Compare it with a value, as in {column.name} = {_example(column)}.",
        )
    declared = column.attribute.mask([0, 1])
    return _marks(column, column.attribute.mask([1]), ~declared)


def like(column: Column, pattern: str, escape: str) -> Marks:
    """Where a column's label is LIKE a pattern."""
    if not column.is_text:
        raise SqlError(
            f"LIKE is for text, and {column.name} is not text.",
            hint=f"Compare it with a value, as in {column.name} = {_example(column)}.",
        )
    labels = [label for label in column.labels if isinstance(label, str)]
    matches = like_matcher(pattern, escape, max(map(len, labels)))
    return one_of(column, (column.positions[label] for label in labels if matches(label)))


def _marks(column: Column, true: Mask, unknown: Mask) -> Marks:
    return Marks(column.cells(true), column.cells(unknown), column.level)


def _cell(column: Column, attribute: Ordered, constant: Constant, symbol: str) -> int | None:
    """The declared cell that holds one value and no other."""
    point, edges = _point(column, constant), attribute.edges
    cell = bisect_right(edges, point) - 1
    if not 0 <= cell < len(edges) - 1 or (attribute.discrete and isinstance(point, Fraction)):
        return None
    if attribute.discrete and edges[cell] == point == edges[cell + 1] - 1:
        return cell
    cut = CutsCell(attribute.edge_text(edges[cell]), attribute.edge_text(edges[cell + 1]))
    raise _cuts(column, symbol, constant, cut)


def _point(column: Column, constant: Constant) -> int | Fraction:
    """A constant as a number on an ordered attribute's line; an int where it is whole."""
    if isinstance(column.attribute, Date):
        day = as_day(constant) if isinstance(constant, str) else constant
        if isinstance(day, dt.date):
            return day.toordinal()
    elif isinstance(constant, Fraction):
        return constant.numerator if constant.denominator == 1 else constant
    raise _mismatch(column, constant)


def _cuts(column: Column, symbol: str, constant: Constant, cut: CutsCell) -> CutsThroughBin:
    name, day = column.name, isinstance(column.attribute, Date)
    lower, upper = (f"DATE '{edge}'" if day else edge for edge in (cut.lower, cut.upper))
    instead = {
        "=": f"{name} >= {lower} AND {name} < {upper}",
        "<>": f"{name} < {lower} OR {name} >= {upper}",
        "<": f"{name} < {lower} or {name} < {upper}",
        ">": f"{name} >= {lower} or {name} >= {upper}",
    }
    written = f"{name} {symbol} {constant_text(constant)}"
    return CutsThroughBin(
        f"{written} falls inside the bin from {cut.lower} to {cut.upper}.",
        hint=f"Write {instead.get(symbol) or instead[symbol[0]]}.",
    )


def _not_a_label(column: Column, constant: Constant) -> SqlError:
    if not isinstance(constant, str):
        return _mismatch(column, constant)
    labels = [label for label in column.labels if isinstance(label, str)]
    return UnknownName(
        f"{constant_text(constant)} is not a value of {column.name}.",
        hint=suggestion(constant, labels, "Its values are", show=constant_text),
    )


def _mismatch(column: Column, constant: Constant) -> SqlError:
    text, number = constant_text(constant), as_number(constant) if isinstance(constant, str) else None
    if column.is_text:
        holds, hint = "holds text", f"Write it in quotes, as in {column.name} = {_example(column)}."
    elif isinstance(column.attribute, Boolean):
        holds, hint = "is true or false", f"Write {column.name} = TRUE or {column.name} = FALSE."
    elif isinstance(column.attribute, Date):
        holds, hint = "holds days", "Write days as DATE '2024-12-31'."
    else:
        holds = "holds numbers"
        hint = "Compare it with a number." if number is None else f"Write {constant}, without quotes."
        if number is None and isinstance(column.labels[0], str):
            hint = f"Compare it with a number, or with a range: {column.name} = {_example(column)}."
    return SqlError(f"{column.name} {holds}, and {text} is {kind(constant)}.", hint=hint)


def _example(column: Column) -> str:
    """The column's first label, as one would write it."""
    label = column.labels[0]
    return constant_text(label) if isinstance(label, str | bool) else str(label)
