"""Expressions of person views over one row: columns, conditions, choices, numbers, text and dates.

None can fail on some rows and not on others: arithmetic is in doubles whose size is known, casts give
NULL, and dates stay in the calendar of the engine.
"""

from __future__ import annotations

import datetime as dt
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from sharewell.engine.base import find_columns
from sharewell.engine.cells import Kind, Type, date, day, double, is_null, number, text
from sharewell.engine.view_text import ViewText
from sharewell.engine.view_values import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    TEXT,
    Relation,
    Scope,
    Value,
    choice_of,
    is_id,
    is_null_literal,
)
from sharewell.errors import SourceError

#: Numbers beyond these sizes count as NULL, and as zero, where a view computes with them.
LARGEST, SMALLEST = 1e15, 1e-15
#: Results of arithmetic must be between these sizes, so that no engine can raise an error.
MOST, LEAST = 1e290, 1e-290
#: The days that a view computes with, and those of ClickHouse.
DAYS = (dt.date(1, 1, 1), dt.date(9999, 12, 31))
CLICKHOUSE_DAYS = (dt.date(1900, 1, 1), dt.date(2299, 12, 31))
#: How each dialect compares text byte by byte; others have no collations.
BYTEWISE = {
    "duckdb": exp.to_identifier("binary", quoted=True),
    "postgres": exp.to_identifier("C", quoted=True),
    "sqlite": exp.var("BINARY"),
}
PARTS = ("YEAR", "QUARTER", "MONTH")
SMALL = re.compile(r"[0-9]{1,6}\Z")
#: Parts of nodes that are refused: their words and the way out.
REFUSED_PARTS = {
    "db": ("A schema", "Set tables.NAME.table."),
    "expressions": ("A further argument", "Remove it."),
    "count": ("A further argument", "Remove it."),
    "spec": ("A frame of a window", "Remove ROWS, RANGE or GROUPS."),
    "sample": ("Sampling", "Remove it."),
    "pivots": ("PIVOT", "Use aggregates with FILTER."),
}


class ScalarExpressions(ABC):
    """Compiles the expressions of one row for a dialect."""

    def __init__(self, view: ViewText, dialect: str) -> None:
        self.view = view
        self.dialect = dialect

    def refuse(self, node: exp.Expr, message: str, hint: str) -> SourceError:
        """The error for a part of the view."""
        return self.view.refuse(node, message, hint)

    def _only(self, node: exp.Expr, *keys: str) -> None:
        """Refuse arguments of a node that are not expected."""
        for key, value in node.args.items():
            if value and key not in keys:
                at = value if isinstance(value, exp.Expr) else node
                shown, hint = REFUSED_PARTS.get(
                    key, (key.strip("_").replace("_", " ").upper(), "Remove it.")
                )
                raise self.refuse(at, f"{shown} is not supported here.", hint)

    @abstractmethod
    def _value(self, node: exp.Expr, scope: Scope) -> Value:
        """Compile any expression that is allowed here."""

    @abstractmethod
    def _unsupported(self, node: exp.Expr) -> SourceError:
        """Return the error for an expression that is not supported."""

    # Columns

    def _named(self, relation: Relation, identifier: exp.Expr) -> Value:
        names = list(relation.columns)
        try:
            [at] = find_columns([identifier.name], names)
        except SourceError as error:
            raise self.refuse(identifier, error.message, error.hint) from None
        return relation.columns[names[at]]

    def _column(self, node: exp.Column, scope: Scope) -> Value:
        self._only(node, "this", "table")
        if not isinstance(node.this, exp.Identifier):
            raise self.refuse(node, "* is only allowed in COUNT(*).", "Name a column.")
        if node.table:
            relation = scope.sources.get(node.table.casefold())
            if relation is None:
                raise self.refuse(
                    node,
                    f"Unknown source {node.table!r}: a subquery sees only its own FROM.",
                    f"The sources here are {', '.join(scope.sources)}.",
                )
        elif len(scope.sources) == 1 or node.name.casefold() in scope.merged:
            relation = next(iter(scope.sources.values()))
        else:
            raise self.refuse(
                node,
                f"Ambiguous column {node.name!r}: name its table.",
                f"Write {' or '.join(f'{alias}.{node.name}' for alias in scope.sources)}.",
            )
        value = self._named(relation, node.this)
        if value.kind is None and not value.is_unit and not is_id(value.type):
            raise self.refuse(
                node,
                f"A view cannot read a column of type {value.type.sql()}.",
                "Use columns of numbers, text, booleans, dates or timestamps.",
            )
        return value

    def _unaliased(self, node: exp.Expr, scope: Scope) -> exp.Expr:
        """Return what a name of the SELECT list stands for."""
        if isinstance(node, exp.Column) and not node.table:
            return scope.aliases.get(node.name.casefold(), node)
        return node

    def _unit_name(self, scope: Scope) -> str:
        alias, first = next(iter(scope.sources.items()))
        return f"{alias}.{first.units[0]}" if len(scope.sources) > 1 else first.units[0]

    # Literals and conditions

    def _condition(self, node: exp.Expr, scope: Scope) -> exp.Condition:
        value = self._value(node, scope)
        if value.kind is not Kind.BOOLEAN:
            raise self.refuse(node, "This is not a condition.", "Compare it with a value.")
        return value.sql

    def _literal(self, node: exp.Expr, scope: Scope) -> Value:
        if node.is_string:
            collation = BYTEWISE.get(self.dialect)
            sql: exp.Condition = exp.Literal.string(node.name)
            if collation is not None:
                sql = exp.paren(exp.Collate(this=sql, expression=collation.copy()))
            return Value(sql, Kind.TEXT, TEXT)
        value = float(node.name)
        if not abs(value) <= LARGEST or 0 < abs(value) < SMALLEST:
            raise self.refuse(
                node, "This number is too large or too small.", f"Use at most {LARGEST:g}."
            )
        if node.name.isdigit():
            return Value(exp.Literal.number(node.name), Kind.INTEGER, BIGINT, abs(value))
        return Value(double(value), Kind.NUMBER, DOUBLE, abs(value), abs(value) or 1.0)

    def _truth(self, node: exp.Expr, scope: Scope) -> Value:
        return Value(exp.Boolean(this=bool(node.this)), Kind.BOOLEAN, BOOLEAN)

    def _null(self, node: exp.Expr, scope: Scope) -> Value:
        return Value(exp.null(), None)

    def _paren(self, node: exp.Expr, scope: Scope) -> Value:
        value = self._value(node.this, scope)
        return value if isinstance(value.sql, exp.Column) else replace(value, sql=exp.paren(value.sql))

    def _logic(self, node: exp.Expr, scope: Scope) -> Value:
        sides = [exp.paren(self._condition(each, scope)) for each in (node.this, node.expression)]
        both: Any = type(node)(this=sides[0], expression=sides[1])
        return Value(both, Kind.BOOLEAN, BOOLEAN)

    def _not(self, node: exp.Expr, scope: Scope) -> Value:
        condition = exp.Not(this=exp.paren(self._condition(node.this, scope)))
        return Value(condition, Kind.BOOLEAN, BOOLEAN)

    def _comparison(self, node: exp.Expr, scope: Scope) -> Value:
        left, right = self._value(node.this, scope), self._value(node.expression, scope)
        return Value(self._compare(type(node), left, right, node), Kind.BOOLEAN, BOOLEAN)

    def _compare(
        self, operator: type[exp.Expr], left: Value, right: Value, node: exp.Expr
    ) -> exp.Condition:
        left, right = self._alike([left, right], node)
        return exp.paren(operator(this=left.sql.copy(), expression=right.sql.copy()))

    def _alike(self, values: Sequence[Value], node: exp.Expr) -> list[Value]:
        """Convert values to one kind, or refuse."""
        kinds = {value.kind for value in values if not is_null_literal(value)}
        if kinds == {Kind.INTEGER, Kind.NUMBER}:
            return [value if is_null_literal(value) else self._number(value, node) for value in values]
        if kinds == {Kind.DATE, Kind.TEXT}:
            return [
                value if value.kind is not Kind.TEXT else self._day_literal(value, node)
                for value in values
            ]
        types = {
            value.type
            for value in values
            if value.kind in (None, Kind.TIMESTAMP) and not is_null_literal(value)
        }
        if len(kinds) > 1 or len(types) > 1:
            shown = " and ".join(sorted(kind.value if kind else "another type" for kind in kinds))
            raise self.refuse(
                node, f"These are of different types: {shown}.", "Use TRY_CAST(x AS DOUBLE) or AS DATE."
            )
        return list(values)

    def _day_literal(self, value: Value, node: exp.Expr) -> Value:
        """Return the date of an ISO text in a comparison with a date."""
        literal = value.sql.unnest()
        literal = literal.this if isinstance(literal, exp.Collate) else literal
        if not isinstance(literal, exp.Literal):
            raise self.refuse(node, "A date is compared with text.", "Use TRY_CAST(x AS DATE).")
        return Value(date(self._iso(literal, node)), Kind.DATE, DATE)

    def _iso(self, literal: exp.Expr, node: exp.Expr) -> dt.date:
        try:
            found = dt.date.fromisoformat(literal.name)
        except ValueError:
            raise self.refuse(node, f"{literal.name!r} is not a date.", "Write 2024-12-31.") from None
        low, high = self._days
        if not low <= found <= high:
            raise self.refuse(node, f"{found} is out of range.", f"Use dates from {low} to {high}.")
        return found

    @property
    def _days(self) -> tuple[dt.date, dt.date]:
        return CLICKHOUSE_DAYS if self.dialect == "clickhouse" else DAYS

    def _between(self, node: exp.Expr, scope: Scope) -> Value:
        self._only(node, "this", "low", "high")
        written = [self._value(node.args[key], scope) for key in ("this", "low", "high")]
        value, low, high = (each.sql.copy() for each in self._alike(written, node))
        return Value(exp.paren(exp.Between(this=value, low=low, high=high)), Kind.BOOLEAN, BOOLEAN)

    def _in(self, node: exp.Expr, scope: Scope) -> Value:
        if node.args.get("query") is not None or node.args.get("unnest") is not None:
            raise self._unsupported(node.args.get("query") or node)
        self._only(node, "this", "expressions")
        written = [self._value(each, scope) for each in (node.this, *node.expressions)]
        value, *listed = (each.sql.copy() for each in self._alike(written, node))
        return Value(exp.paren(exp.In(this=value, expressions=listed)), Kind.BOOLEAN, BOOLEAN)

    def _is(self, node: exp.Expr, scope: Scope) -> Value:
        if not isinstance(node.expression, exp.Null):
            raise self.refuse(node, "Only IS NULL and IS NOT NULL are supported.", "Use = TRUE.")
        value = self._value(node.this, scope)
        return Value(exp.paren(is_null(value.sql.copy())), Kind.BOOLEAN, BOOLEAN)

    def _like(self, node: exp.Expr, scope: Scope) -> Value:
        """Compile LIKE 'prefix%' as a comparison of the prefix: in SQLite, LIKE folds case."""
        self._only(node, "this", "expression")
        value, pattern = self._text(node.this, scope), node.expression
        written = pattern.name if isinstance(pattern, exp.Literal) and pattern.is_string else ""
        prefix = written.removesuffix("%")
        if not prefix or prefix == written or any(sign in prefix for sign in "%_\\"):
            raise self.refuse(
                node, "LIKE is supported for prefixes only.", "Write LIKE 'abc%', or use = or SUBSTRING."
            )
        start = exp.Substring(
            this=value.sql.copy(), start=exp.Literal.number(1), length=exp.Literal.number(len(prefix))
        )
        literal = self._literal(exp.Literal.string(prefix), scope)
        return Value(exp.paren(exp.EQ(this=start, expression=literal.sql)), Kind.BOOLEAN, BOOLEAN)

    # Choices

    def _case(self, node: exp.Expr, scope: Scope) -> Value:
        subject = self._value(node.this, scope) if node.args.get("this") is not None else None
        conditions: list[exp.Condition] = []
        results: list[Value] = []
        for each in node.args["ifs"]:
            if subject is None:
                conditions.append(self._condition(each.this, scope))
            else:
                other = self._value(each.this, scope)
                conditions.append(self._compare(exp.EQ, subject, other, each))
            results.append(self._value(each.args["true"], scope))
        default = node.args.get("default")
        results.append(self._value(default, scope) if default is not None else Value(exp.null(), None))
        return self._choice(conditions, results, node)

    def _if(self, node: exp.Expr, scope: Scope) -> Value:
        default = node.args.get("false")
        results = [self._value(node.args["true"], scope)]
        results.append(self._value(default, scope) if default is not None else Value(exp.null(), None))
        return self._choice([self._condition(node.this, scope)], results, node)

    def _choice(
        self, conditions: Sequence[exp.Condition], results: Sequence[Value], node: exp.Expr
    ) -> Value:
        *branches, default = self._alike(results, node)
        case = exp.Case(
            ifs=[
                exp.If(this=condition.copy(), true=branch.sql.copy())
                for condition, branch in zip(conditions, branches, strict=True)
            ],
            default=None if is_null_literal(default) else default.sql.copy(),
        )
        return choice_of(case, [*branches, default])

    def _coalesce(self, node: exp.Expr, scope: Scope) -> Value:
        self._only(node, "this", "expressions")
        values = self._alike([self._value(each, scope) for each in (node.this, *node.expressions)], node)
        first, *others = (value.sql.copy() for value in values)
        return choice_of(exp.Coalesce(this=first, expressions=others), values)

    def _nullif(self, node: exp.Expr, scope: Scope) -> Value:
        values = self._alike([self._value(each, scope) for each in (node.this, node.expression)], node)
        first, second = (value.sql.copy() for value in values)
        return choice_of(exp.Nullif(this=first, expression=second), values[:1])

    # Numbers

    def _number(self, value: Value, node: exp.Expr) -> Value:
        """Convert to a double whose size is known; NaN and infinities become NULL."""
        if value.kind is Kind.INTEGER:
            literal = isinstance(value.sql, exp.Literal)
            sql = double(float(value.sql.name)) if literal else exp.cast(value.sql.copy(), Type.DOUBLE)
            return Value(sql, Kind.NUMBER, DOUBLE, value.largest or 2e19, 1.0)
        if value.kind is not Kind.NUMBER:
            raise self.refuse(node, "This is not a number.", "Use TRY_CAST(x AS DOUBLE).")
        if value.largest is not None:
            return value
        sql = number(value.column)
        size = exp.Abs(this=sql.copy())
        bounded = (
            exp.case()
            .when(size < double(SMALLEST), double(0.0))
            .when(exp.LTE(this=size.copy(), expression=double(LARGEST)), sql.copy())
        )
        return Value(bounded, Kind.NUMBER, DOUBLE, LARGEST, SMALLEST)

    def _operand(self, node: exp.Expr, scope: Scope) -> Value:
        return self._number(self._value(node, scope), node)

    def _arithmetic(self, node: exp.Expr, scope: Scope) -> Value:
        values = [self._value(each, scope) for each in (node.this, node.expression)]
        if isinstance(node, exp.Sub) and [value.kind for value in values] == [Kind.DATE] * 2:
            return self._days_between(values[0], values[1])
        left, right = (self._number(value, node) for value in values)
        large, small = left.largest or MOST, right.largest or MOST
        match node:
            case exp.Add() | exp.Sub():
                largest, smallest = large + small, min(left.smallest, right.smallest) * 2.0**-53
            case exp.Mul():
                largest, smallest = large * small, left.smallest * right.smallest
            case _:
                largest, smallest = large / right.smallest, left.smallest / small
        if largest > MOST or smallest < LEAST:
            raise self.refuse(
                node, "The result may be too large or too small.", "Use fewer multiplications."
            )
        first, second = exp.paren(left.sql.copy()), exp.paren(right.sql.copy())
        if isinstance(node, exp.Div):
            divisor = exp.Nullif(this=second, expression=double(0.0))
            sql: exp.Expr = exp.Div(this=first, expression=divisor, typed=False, safe=False)
        else:
            sql = type(node)(this=first, expression=second)
        return Value(exp.paren(sql), Kind.NUMBER, DOUBLE, largest, smallest)

    def _negative(self, node: exp.Expr, scope: Scope) -> Value:
        value = self._operand(node.this, scope)
        return replace(value, sql=exp.paren(exp.Neg(this=exp.paren(value.sql.copy()))))

    def _rounded(self, node: exp.Expr, scope: Scope) -> Value:
        """Compile ABS, FLOOR, CEIL and ROUND; halves are rounded up."""
        self._only(node, "this")
        value = self._operand(node.this, scope)
        sql = exp.paren(value.sql.copy())
        match node:
            case exp.Abs():
                return replace(value, sql=exp.Abs(this=sql))
            case exp.Floor():
                whole: exp.Condition = exp.Floor(this=sql)
            case exp.Ceil():
                whole = exp.paren(exp.Neg(this=exp.Floor(this=exp.paren(exp.Neg(this=sql)))))
            case _:
                whole = exp.Floor(this=exp.Add(this=sql, expression=double(0.5)))
        return Value(whole, Kind.NUMBER, DOUBLE, (value.largest or MOST) + 1, 1.0)

    # Text

    def _text(self, node: exp.Expr, scope: Scope) -> Value:
        value = self._value(node, scope)
        if value.kind is not Kind.TEXT:
            raise self.refuse(node, "This is not text.", "Use CAST(x AS TEXT).")
        return value

    def _text_function(self, node: exp.Expr, scope: Scope) -> Value:
        self._only(node, "this")
        sql: Any = type(node)(this=self._text(node.this, scope).sql.copy())
        if isinstance(node, exp.Length):
            return Value(exp.cast(sql, Type.BIGINT), Kind.INTEGER, BIGINT, 2e9)
        return Value(sql, Kind.TEXT, TEXT)

    def _substring(self, node: exp.Expr, scope: Scope) -> Value:
        self._only(node, "this", "start", "length")
        start, length = node.args.get("start"), node.args.get("length")
        for each in (start, length):
            if each is None or not is_small_number(each):
                raise self.refuse(
                    node, "SUBSTRING needs a constant start and length.", "Write SUBSTRING(x, 1, 3)."
                )
        if start is None or length is None or int(start.name) < 1:
            raise self.refuse(node, "SUBSTRING starts at 1.", "Write SUBSTRING(x, 1, 3).")
        sql = exp.Substring(
            this=self._text(node.this, scope).sql.copy(),
            start=exp.Literal.number(start.name),
            length=exp.Literal.number(length.name),
        )
        return Value(sql, Kind.TEXT, TEXT)

    # Conversions and dates

    def _cast(self, node: exp.Cast, scope: Scope) -> Value:
        """Compile the casts that cannot fail, and DATE '2024-12-31'."""
        to = node.to.this
        if node.to.expressions:
            raise self.refuse(node, "A type has no length or precision here.", "Use SUBSTRING or ROUND.")
        if isinstance(node.this, exp.Literal) and node.this.is_string and to is Type.DATE:
            return Value(date(self._iso(node.this, node)), Kind.DATE, DATE)
        value = self._value(node.this, scope)
        tries = isinstance(node, exp.TryCast)
        match value.kind:
            case _ if to is Type.DATE and value.kind in (Kind.DATE, Kind.TIMESTAMP):
                return Value(day(value.column), Kind.DATE, DATE)
            case Kind.TEXT if tries and to is Type.DATE:
                return Value(day(value.column), Kind.DATE, DATE)
            case Kind.TEXT if tries and to is Type.DOUBLE:
                # No size is known of it: the first operation bounds it.
                return Value(number(value.column), Kind.NUMBER, DOUBLE)
            case Kind.INTEGER | Kind.NUMBER if to is Type.DOUBLE:
                return self._number(value, node)
            case Kind.INTEGER | Kind.TEXT if to in exp.DataType.TEXT_TYPES:
                return Value(text(value.column), Kind.TEXT, TEXT)
        if value.kind is Kind.TEXT and to in (Type.DATE, Type.DOUBLE):
            hint = f"Use TRY_CAST(... AS {to.value}), which gives NULL instead."
            raise self.refuse(node, "CAST fails on text that cannot be converted.", hint)
        raise self.refuse(
            node,
            f"A cast to {node.to.sql()} is not supported here: it may fail, or engines differ.",
            "Use TRY_CAST(x AS DOUBLE), with FLOOR or ROUND for whole numbers, or TRY_CAST(x AS DATE).",
        )

    def _bounded_day(self, value: Value, node: exp.Expr) -> exp.Condition:
        """Return a day that an engine can compute with: PostgreSQL has infinite ones."""
        if value.kind is Kind.TIMESTAMP:
            value = Value(day(value.column), Kind.DATE, DATE)
        if value.kind is not Kind.DATE:
            raise self.refuse(node, "This is not a date.", "Use TRY_CAST(x AS DATE).")
        low, high = (date(each) for each in self._days)
        inside = exp.Between(this=value.sql.copy(), low=low, high=high)
        return exp.paren(exp.case().when(inside, value.sql.copy()))

    def _days_between(self, later: Value, earlier: Value) -> Value:
        one, other = (self._bounded_day(each, each.sql) for each in (later, earlier))
        days = exp.DateDiff(this=one, expression=other, unit=exp.var("DAY"))
        return Value(exp.paren(days), Kind.INTEGER, BIGINT, 4e6)

    def _date_diff(self, node: exp.Expr, scope: Scope) -> Value:
        if node.text("unit").upper() != "DAY":
            raise self.refuse(node, "Only days are counted between dates.", "Divide by 365.25.")
        return self._days_between(self._value(node.this, scope), self._value(node.expression, scope))

    def _extract(self, node: exp.Expr, scope: Scope) -> Value:
        part = node.name.upper() if isinstance(node, exp.Extract) else type(node).__name__.upper()
        written = node.expression if isinstance(node, exp.Extract) else node.this
        if part not in PARTS:
            raise self.refuse(node, f"EXTRACT({part}) is not supported.", f"Use {', '.join(PARTS)}.")
        value = self._bounded_day(self._value(written, scope), node)
        extracted = exp.cast(exp.Extract(this=exp.var(part), expression=value), Type.INT)
        return Value(extracted, Kind.INTEGER, BIGINT, 1e4)


def is_small_number(node: exp.Expr) -> bool:
    """Return whether a node is a whole number that every engine takes as a constant."""
    return isinstance(node, exp.Literal) and not node.is_string and bool(SMALL.match(node.name))
