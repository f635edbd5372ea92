"""Constants: numbers, text, dates, booleans and NULL."""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction

from sqlglot import exp

from sharewell.query.attribute import decimal_text
from sharewell.query.sql.text import Source, shortened

#: NULL is None.
Constant = Fraction | str | dt.date | bool | None

#: The bound on numerators and denominators, which keeps the arithmetic fast.
LIMIT = 10**100
MAX_DIGITS = 100
DATE_HINT = "Write a date as DATE '2024-12-31'."

_NUMBER = re.compile(
    rf"(?=\.?\d)\d{{0,{MAX_DIGITS}}}(\.\d{{0,{MAX_DIGITS}}})?([eE][+-]?\d{{1,2}})?", re.ASCII
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)

_TYPE_NAMES: dict[type, str] = {
    type(None): "NULL",
    bool: "a boolean",
    str: "text",
    dt.date: "a date",
    Fraction: "a number",
}


def read_number(node: exp.Literal, source: Source) -> Fraction:
    """Read a number, exactly."""
    number = parse_number(node.name)
    if number is None:
        hint = "Write it as 12.5 or 1e6, with fewer than 100 digits."
        raise source.error(node, f'Invalid number "{shortened(node.name)}".', hint)
    return bounded(node, source, number)


def parse_date(text: str) -> dt.date | None:
    """Parse a date such as 2024-12-31."""
    if not _DATE.fullmatch(text):
        return None
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def parse_number(text: str) -> Fraction | None:
    """Parse a plain decimal number, exactly."""
    if len(text) <= MAX_DIGITS and text.isascii() and text.isdecimal():
        return Fraction(int(text))
    return Fraction(text) if _NUMBER.fullmatch(text) else None


def constant_text(constant: Constant) -> str:
    """Format a constant as an SQL literal."""
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


def type_name(constant: Constant) -> str:
    """Return the type of a constant, in words."""
    return _TYPE_NAMES[type(constant)]


def bounded(node: exp.Expr, source: Source, number: Fraction) -> Fraction:
    """Refuse numbers with too many digits."""
    if abs(number.numerator) >= LIMIT or number.denominator >= LIMIT:
        raise source.error(node, "The number has too many digits.", "Round it.")
    return number
