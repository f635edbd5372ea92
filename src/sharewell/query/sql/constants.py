"""Constants: numbers, texts, days, truth values and NULL, and exact arithmetic on them."""

from __future__ import annotations

import datetime as dt
import operator
import re
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from sharewell.errors import SqlError
from sharewell.query.ordered import decimal_text
from sharewell.query.sql.text import SqlText, shortened

#: NULL is None.
Constant = Fraction | str | dt.date | bool | None

#: Numbers stay below this in numerator and denominator: no text makes the arithmetic slow.
LIMIT = 10**100
_NUMBER = re.compile(r"(?=\.?\d)\d{0,100}(\.\d{0,100})?([eE][+-]?\d{1,2})?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)

_ARITHMETIC: dict[type[exp.Expr], Callable[[Fraction, Fraction], Fraction]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: operator.truediv,
}


def read_constant(node: exp.Expr, source: SqlText) -> Constant:
    """The value of a constant expression; anything else is refused."""
    match node:
        case exp.Literal(is_string=True):
            return str(node.this)
        case exp.Literal():
            return _number(node, source)
        case exp.Boolean():
            return bool(node.this)
        case exp.Null():
            return None
        case exp.Paren():
            return read_constant(node.this, source)
        case exp.Cast():
            return _cast(node, source)
        case exp.Neg():
            return _bounded(node, source, -_term(node.this, source))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            return _arithmetic(node, source)
    raise _not_constant(node, source)


def as_day(text: str) -> dt.date | None:
    """The day that a text such as 2024-12-31 names."""
    if not _DAY.fullmatch(text):
        return None
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def as_number(text: str) -> Fraction | None:
    """The number that a plain decimal text names, exactly."""
    return Fraction(text) if _NUMBER.fullmatch(text) else None


def constant_text(constant: Constant) -> str:
    """A constant as one would write it in SQL."""
    match constant:
        case None:
            return "NULL"
        case bool():
            return str(constant).upper()
        case str():
            return "'{}'".format(shortened(constant).replace("'", "''"))
        case dt.date():
            return f"DATE '{constant.isoformat()}'"
    return decimal_text(constant)


def kind(constant: Constant) -> str:
    """What a constant is, in words."""
    match constant:
        case None:
            return "NULL"
        case bool():
            return "a truth value"
        case str():
            return "text"
        case dt.date():
            return "a day"
    return "a number"


def _number(node: exp.Literal, source: SqlText) -> Fraction:
    number = as_number(node.name)
    if number is None:
        raise SqlError(
            f"{shortened(node.name)} is not a number as they are read here.",
            hint="Write it as 12.5 or 1e6, with fewer than 100 digits.",
            where=source.at_node(node),
        )
    return _bounded(node, source, number)


def _bounded(node: exp.Expr, source: SqlText, number: Fraction) -> Fraction:
    if abs(number.numerator) >= LIMIT or number.denominator >= LIMIT:
        raise SqlError(
            "The number has more digits than are computed with.",
            hint="Round it to fewer digits.",
            where=source.at_node(node),
        )
    return number


def _cast(node: exp.Cast, source: SqlText) -> dt.date:
    if not node.to.is_type("date") or not node.this.is_string:
        raise SqlError(
            "Only a text is cast, and only to a day.",
            hint="Write days as DATE '2024-12-31', and numbers and texts as they are.",
            where=source.at_node(node),
        )
    day = as_day(node.this.name)
    if day is None:
        raise SqlError(
            f"{constant_text(node.this.name)} is not a day.",
            hint="Write days as DATE '2024-12-31'.",
            where=source.at_node(node),
        )
    return day


def _arithmetic(node: exp.Binary, source: SqlText) -> Fraction:
    left, right = _term(node.left, source), _term(node.right, source)
    if isinstance(node, exp.Div) and right == 0:
        raise SqlError(
            "The constant divides by zero.", hint="Write the number.", where=source.at_node(node)
        )
    return _bounded(node, source, _ARITHMETIC[type(node)](left, right))


def _term(node: exp.Expr, source: SqlText) -> Fraction:
    constant = read_constant(node, source)
    if isinstance(constant, Fraction):
        return constant
    raise SqlError(
        f"Only numbers are computed with, and {constant_text(constant)} is {kind(constant)}.",
        hint="Write the value itself.",
        where=source.at_node(node),
    )


def _not_constant(node: exp.Expr, source: SqlText) -> SqlError:
    if isinstance(node, exp.Column):
        message = "Columns are not computed with."
        hint = "Use the column by itself: age > 20 instead of age - 10 > 10."
    elif isinstance(node, exp.Count | exp.Sum | exp.Avg | exp.Filter):
        message = "An aggregate cannot stand here."
        hint = "Put it into the SELECT list, HAVING or ORDER BY, by itself."
    elif isinstance(node, exp.Case):
        message = "CASE is answered inside SUM, AVG and COUNT only."
        hint = "Write the condition with AND and OR."
    else:
        message = "There should be a constant here."
        hint = (
            "Write a number, a text in single quotes, a day as DATE '2024-12-31', TRUE, FALSE or NULL."
        )
    return SqlError(message, hint=hint, where=source.at_node(node))
