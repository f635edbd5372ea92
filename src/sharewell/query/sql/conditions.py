"""WHERE: from the parse tree to a predicate over cells.

A column against constants is decided by its order and labels. Any other expression of columns is
evaluated on every cell.

A comparison is unknown on NULL. On the `other` cell of numbers and dates, whose rows may have any
value, order comparisons are unknown, and so is equality with an undeclared value. The `other` cell of a
category is one more category.
"""

from __future__ import annotations

import datetime as dt
import operator
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from sqlglot import exp

from sharewell.errors import CutsThroughBin, SqlError, Suggestion, UnknownName
from sharewell.query.attribute import Boolean, BoundInsideCell, Category, Date, Mask, Ordered
from sharewell.query.diagram import spend
from sharewell.query.domain import Column
from sharewell.query.expression import Constant as Literal
from sharewell.query.expression import Expression, type_of
from sharewell.query.predicate import And, IsTruth, Not, Or, Predicate, TruthValue
from sharewell.query.sql.cells import evaluate_cells, field_of
from sharewell.query.sql.constants import (
    DATE_HINT,
    Constant,
    constant_text,
    parse_date,
    parse_number,
    type_name,
)
from sharewell.query.sql.expressions import SYMBOLS, Translator, chain
from sharewell.query.sql.patterns import like_matcher
from sharewell.query.sql.text import Source, did_you_mean, listing

Operand = Column | Expression

OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
#: How many steps of a diagram it takes to read a pattern, and how many labels are compared in one.
STEPS_OF_PATTERN, LABELS_OF_STEP = 16, 16
#: How many it takes to compare a column with a constant, and the labels of how many are marked in one.
STEPS_OF_CONDITION, MARKED_OF_STEP = 2, 2**13
_LOGICAL = {exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Like, exp.Escape, *SYMBOLS}


@dataclass(frozen=True, eq=False)
class ColumnTruth(Predicate):
    """A leaf given by masks over a column's labels: where it is true, and where true or unknown."""

    column: Column
    true: Mask
    possible: Mask


@dataclass(frozen=True, eq=False)
class ColumnTruths(Predicate):
    """True where the conditions on several columns all are: a product, which is one chain of nodes."""

    parts: tuple[ColumnTruth, ...]


def _merged(parts: Iterable[Predicate], combine: Callable[[Mask, Mask], Mask]) -> tuple[Predicate, ...]:
    """Combine parts about the same column by their masks: thousands of queries would be slow."""
    found: dict[object, Predicate] = {}
    for place, part in enumerate(parts):
        key = (part.column.level, part.column.name) if isinstance(part, ColumnTruth) else place
        before = found.get(key)
        if isinstance(part, ColumnTruth) and isinstance(before, ColumnTruth):
            true, possible = combine(before.true, part.true), combine(before.possible, part.possible)
            part = ColumnTruth(part.column, true, possible)
        found[key] = part
    return tuple(found.values())


def _negated(part: Predicate) -> Predicate:
    if isinstance(part, ColumnTruth):
        return ColumnTruth(part.column, ~part.possible, ~part.true)
    return Not(part)


def _all_of(parts: Iterable[Predicate]) -> Predicate:
    """Return the predicate that is true where all parts are."""
    merged = _merged(parts, operator.and_)
    columns = tuple(part for part in merged if isinstance(part, ColumnTruth))
    if len(columns) > 1:
        others = (part for part in merged if not isinstance(part, ColumnTruth))
        merged = (ColumnTruths(columns), *others)
    return merged[0] if len(merged) == 1 else And(merged)


class CellTranslator(Translator):
    """Translates expressions of columns, whose leaves are the fields of a cell."""

    def leaf(self, node: exp.Expr) -> Expression | None:
        """Read a column as a field of an expression."""
        return field_of(self.source.column(node)) if isinstance(node, exp.Column) else None


@dataclass
class Conditions:
    """Compiles conditions over the cells of columns."""

    source: Source

    @cached_property
    def translator(self) -> Translator:
        """Translates what is evaluated on cells."""
        return CellTranslator(self.source)

    def on_cells(self, node: exp.Expr) -> Predicate:
        """Return the predicate for a condition that is evaluated on every cell."""
        return self._truth(node, self.translator.translate(node))

    def _truth(self, node: exp.Expr, condition: Expression) -> Predicate:
        if type_of(condition) not in ("boolean", "null"):
            raise self.source.error(node, "Expected a condition.", "Example: age >= 20.")
        if isinstance(condition, Literal):
            return TruthValue(condition.value)
        return evaluate_cells(self.source, node, condition).truth(self.source.domain)

    def operand(self, node: exp.Expr) -> Operand:
        """Read an operand of a comparison: a column, a constant, or an expression of columns."""
        node = node.unnest()
        if isinstance(node, exp.Column):
            return self.source.column(node)
        return self.translator.translate(node)

    def compile(self, node: exp.Expr) -> Predicate:
        """Compile a condition."""
        if symbol := SYMBOLS.get(type(node)):
            left, right = self.operand(node.this), self.operand(node.expression)
            return self._compare(node, symbol, left, right, [node.this, node.expression])
        match node:
            case exp.Paren():
                return self.compile(node.this)
            case exp.And():
                return _all_of(map(self._part, chain(node)))
            case exp.Or():
                return Or(_merged(map(self._part, chain(node)), operator.or_))
            case exp.Not():
                return _negated(self.compile(node.this))
            case exp.Is():
                return self._is(node)
            case exp.In():
                return self._in(node)
            case exp.Between():
                value, low, high = node.this, node.args["low"], node.args["high"]
                middle, *ends = map(self.operand, (value, low, high))
                if not isinstance(middle, Column) or not all(isinstance(end, Literal) for end in ends):
                    return self.on_cells(node)
                above = self._compare(node, ">=", middle, ends[0], [value, low])
                return _all_of([above, self._compare(node, "<=", middle, ends[1], [value, high])])
            case exp.Like() | exp.ILike():
                return self._like(node, "")
            case exp.Escape(this=exp.Like() | exp.ILike()):
                return self._like(node.this, self.translator.escape(node))
        return self._bare(node)

    def _part(self, node: exp.Expr) -> Predicate:
        """Compile a part of AND or OR; a mistake in it is collected, and the others are looked for."""
        found: list[Predicate] = [TruthValue(None)]
        with self.source.collected():
            found.append(self.compile(node))
        return found[-1]

    def _compare(
        self, node: exp.Expr, symbol: str, left: Operand, right: Operand, sides: Sequence[exp.Expr]
    ) -> Predicate:
        if isinstance(left, Column) and isinstance(right, Literal):
            return self._compare_column(node, symbol, left, right.value)
        if isinstance(right, Column) and isinstance(left, Literal):
            return self._compare_column(node, _MIRRORED[symbol], right, left.value)
        arguments = [field_of(each) if isinstance(each, Column) else each for each in (left, right)]
        return self._truth(node, self.translator.apply(node, symbol, arguments, sides))

    def _compare_column(self, node: exp.Expr, symbol: str, column: Column, other: Constant) -> Predicate:
        if other is None:
            return TruthValue(None)
        spend(STEPS_OF_CONDITION + len(column.labels) // MARKED_OF_STEP)
        if symbol not in ("=", "<>"):
            return self._ordered(node, column, symbol, other)
        equal = _one_of(column, [self._position(node, column, other, symbol)])
        return equal if symbol == "=" else _negated(equal)

    def _ordered(self, node: exp.Expr, column: Column, symbol: str, constant: Constant) -> ColumnTruth:
        """Return where a column is <, <=, > or >= a constant."""
        attribute = column.attribute
        if isinstance(attribute, Category) and isinstance(constant, str):
            return self._text_order(column, symbol, constant)
        if column.is_text or not isinstance(attribute, Ordered):
            message = f'Column "{column.name}" has no order, so {symbol} is not supported.'
            hint = f"Use =, <>, IN{', LIKE' if column.is_text else ''} or IS NULL."
            if isinstance(attribute, Ordered):
                hint = f"Compare {attribute.name} itself: {attribute.name} {symbol} ..."
            raise self.source.error(node, message, hint)
        try:
            point = self._point(node, column, constant)
            below = attribute.cells_below(point, inclusive=symbol in ("<=", ">"))
        except BoundInsideCell as bound:
            raise self._splits_bin(node, attribute, symbol, constant, bound.cell) from None
        declared = len(attribute.values)
        start, end = (0, below) if symbol in ("<", "<=") else (below, declared)
        true = attribute.mask(slice(start, end))
        return ColumnTruth(column, true, true | attribute.mask(slice(declared, None)))

    def _text_order(self, column: Column, symbol: str, constant: str) -> ColumnTruth:
        """Return where text comes before or after a constant, character by character."""
        compare = OPERATORS[symbol]
        spend(len(column.labels) // LABELS_OF_STEP)
        true = [isinstance(label, str) and compare(label, constant) for label in column.labels]
        return ColumnTruth(column, np.array(true), np.array(true) | is_null(column))

    def _position(
        self, node: exp.Expr, column: Column, constant: Constant, symbol: str = "="
    ) -> int | None:
        """Return the index of the label that a constant names; None for an undeclared value."""
        if isinstance(constant, str) and constant in column.positions:
            return column.positions[constant]
        attribute = column.attribute
        if column.is_text and isinstance(constant, str):
            raise self._unknown_value(node, column, constant)
        if not column.is_text and isinstance(attribute, Ordered):
            # The declared cell that holds this value and no other.
            point, edges = self._point(node, column, constant), attribute.edges
            cell = bisect_right(edges, point) - 1
            if not 0 <= cell < len(edges) - 1 or (attribute.discrete and isinstance(point, Fraction)):
                return None
            if attribute.discrete and edges[cell] == point == edges[cell + 1] - 1:
                return cell
            raise self._splits_bin(node, attribute, symbol, constant, cell)
        if not column.is_text and isinstance(constant, bool):
            return int(constant)
        raise self._type_mismatch(node, column, constant)

    def _point(self, node: exp.Expr, column: Column, constant: Constant) -> int | Fraction:
        """Convert a constant to a number on an ordered attribute's axis; an int if it is whole."""
        if isinstance(column.attribute, Date):
            date = parse_date(constant) if isinstance(constant, str) else constant
            if isinstance(date, dt.date):
                return date.toordinal()
        elif isinstance(constant, Fraction):
            return constant.numerator if constant.denominator == 1 else constant
        raise self._type_mismatch(node, column, constant)

    def _in(self, node: exp.In) -> Predicate:
        operand = self.operand(node.this)
        if not isinstance(operand, Column):
            return self.on_cells(node)
        members = [(member, self.operand(member)) for member in node.expressions]
        values = [(member, found.value) for member, found in members if isinstance(found, Literal)]
        if not values or len(values) < len(members):
            return self.on_cells(node)
        known = [(member, value) for member, value in values if value is not None]
        positions = [self._position(member, operand, value) for member, value in known]
        return _one_of(operand, positions, null=len(known) < len(values))

    def _is(self, node: exp.Is) -> Predicate:
        this, right = node.this.unnest(), node.expression
        if isinstance(right, exp.Boolean):
            return IsTruth(self.compile(this), bool(right.this))
        if not isinstance(right, exp.Null):
            message = "IS requires NULL, TRUE or FALSE."
            raise self.source.error(node, message, "Use = to compare with a value.")
        if type(this) in _LOGICAL:
            return IsTruth(self.compile(this), None)
        operand = self.operand(this)
        if isinstance(operand, Column):
            return ColumnTruth(operand, is_null(operand), is_null(operand))
        return self._truth(node, self.translator.apply(node, "IS NULL", [operand], [this]))

    def _like(self, node: exp.Expr, escape: str) -> Predicate:
        operand, found = self.operand(node.this), self.operand(node.expression)
        pattern = found.value if isinstance(found, Literal) else None
        if not isinstance(pattern, str) or not isinstance(operand, Column):
            return self._truth(node, self.translator.like(node, escape))
        if operand.is_text:
            fold = str.lower if isinstance(node, exp.ILike) else str
            folded = {
                at: fold(label) for label, at in operand.positions.items() if isinstance(label, str)
            }
            spend(STEPS_OF_PATTERN + len(folded) // LABELS_OF_STEP)
            longest = max(map(len, folded.values()))
            matches = like_matcher(node, self.source, fold(pattern), escape, longest)
            positions = [at for at, label in folded.items() if matches(label)]
            liked = _one_of(operand, positions)
        else:
            name = "ILIKE" if isinstance(node, exp.ILike) else "LIKE"
            message = f'{name} requires text, but column "{operand.name}" is not text.'
            hint = f"Compare it with a value: {_example(operand)}."
            if isinstance(operand.attribute, Date):
                year = pattern[:4] if re.match(r"\d{4}", pattern, re.ASCII) else "2024"
                hint = f"Compare its year: YEAR({operand.name}) = {year}."
            raise self.source.error(node, message, hint)
        return _negated(liked) if node.args.get("negate") else liked

    def _bare(self, node: exp.Expr) -> Predicate:
        """Compile a column or a constant that is a condition by itself."""
        operand = self.operand(node)
        if not isinstance(operand, Column):
            return self._truth(node, operand)
        if not isinstance(operand.attribute, Boolean):
            message = f'Column "{operand.name}" is not boolean.'
            raise self.source.error(node, message, f"Compare it with a value: {_example(operand)}.")
        return ColumnTruth(operand, operand.attribute.mask([1]), ~operand.attribute.mask([0]))

    def _splits_bin(
        self, node: exp.Expr, attribute: Ordered, symbol: str, constant: Constant, cell: int
    ) -> CutsThroughBin:
        name, literal = attribute.name, "DATE '{}'" if isinstance(attribute, Date) else "{}"
        start, end = (attribute.edge_text(attribute.edges[at]) for at in (cell, cell + 1))
        lower, upper = literal.format(start), literal.format(end)
        instead = {
            "=": f"{name} >= {lower} AND {name} < {upper}",
            "<>": f"{name} < {lower} OR {name} >= {upper}",
            "<": f"{name} < {lower} or {name} < {upper}",
            ">": f"{name} >= {lower} or {name} >= {upper}",
        }
        condition = f"{name} {symbol} {constant_text(constant)}"
        message = f"{condition} splits the bin from {start} to {end}."
        hint = f"Write {instead.get(symbol) or instead[symbol[0]]}."
        return self.source.error(node, message, hint, CutsThroughBin)

    def _unknown_value(self, node: exp.Expr, column: Column, value: str) -> UnknownName:
        labels = [label for label in column.labels if isinstance(label, str)]
        hint, to = did_you_mean(value, labels, constant_text)
        return self.source.error(
            node,
            f'Unknown value {constant_text(value)} of column "{column.name}".',
            hint or f"The values are {listing([constant_text(label) for label in labels])}.",
            UnknownName,
            Suggestion(change=constant_text(value), to=constant_text(to)) if to else None,
        )

    def _type_mismatch(self, node: exp.Expr, column: Column, constant: Constant) -> SqlError:
        if column.is_text:
            type_, hint = "text", f"Write a string: {_example(column)}."
        elif isinstance(column.attribute, Boolean):
            type_, hint = "boolean", f"Write {column.name} = TRUE or {column.name} = FALSE."
        elif isinstance(column.attribute, Date):
            type_, hint = "a date", DATE_HINT
        else:
            type_, hint = "a number", "Compare it with a number."
            if isinstance(constant, str) and parse_number(constant) is not None:
                hint = f"Write {constant} without quotes."
            elif isinstance(column.labels[0], str):
                hint = f"Compare it with a number, or with a range: {_example(column)}."
        value = f"{constant_text(constant)} is {type_name(constant)}"
        return self.source.error(node, f'Column "{column.name}" is {type_}, but {value}.', hint)


def is_null(column: Column) -> Mask:
    """Return where a column is NULL."""
    true = np.zeros(len(column.labels), dtype=bool)
    if column.null is not None:
        true[column.null] = True
    return true


def _one_of(column: Column, positions: Iterable[int | None], *, null: bool = False) -> ColumnTruth:
    """Return where a column has one of the labels at these indices; `null` if NULL is listed too."""
    distinct = set(positions)
    true = np.zeros(len(column.labels), dtype=bool)
    true[[at for at in distinct if at is not None]] = True
    possible = np.ones_like(true) if null else true.copy()
    if column.null is not None:
        possible[column.null] = True
    if None in distinct and column.other is not None:
        possible[column.other] = True
    return ColumnTruth(column, true, possible)


def _example(column: Column) -> str:
    """Return a comparison with the column's first label."""
    label = column.labels[0]
    return f"{column.name} = {constant_text(label) if isinstance(label, str | bool) else label}"
