"""Constants: numbers, text, dates, booleans and NULL, and LIKE patterns."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from sharewell.errors import QueryTooComplex
from sharewell.query.attribute import decimal_text
from sharewell.query.sql.text import Source, shortened

#: NULL is None.
Constant = Fraction | str | dt.date | bool | None

#: The bound on numerators and denominators, which keeps the arithmetic fast.
LIMIT = 10**100
#: The maximum of text length times pattern length in LIKE: the worst-case number of steps.
MAX_LIKE_STEPS = 10**7
DATE_HINT = "Write a date as DATE '2024-12-31'."

_NUMBER = re.compile(r"(?=\.?\d)\d{0,100}(\.\d{0,100})?([eE][+-]?\d{1,2})?", re.ASCII)
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


def like_matcher(
    node: exp.Expr, source: Source, pattern: str, escape: str, longest: int
) -> Callable[[str], bool]:
    """Return a test for text of at most `longest` characters; % matches any text, _ any character."""
    if longest * len(pattern) > MAX_LIKE_STEPS:
        message = "The LIKE pattern and the text it is compared with are too long."
        raise source.error(node, message, "Use a shorter pattern.", QueryTooComplex)
    if len(escape) > 1:
        raise source.error(node, "ESCAPE requires a single character.", "Example: ESCAPE '!'.")
    # The pattern split at every %, each piece a list of regular expressions for one character each.
    pieces: list[list[str]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            character = next(characters, "")
            if not character:
                message = "The LIKE pattern ends with its escape character."
                raise source.error(node, message, "Write the escape character twice.")
            pieces[-1].append(re.escape(character))
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append("." if character == "_" else re.escape(character))
    first, *others = pieces
    *middle, last = others or [[]]
    if len(first) + sum(map(len, middle)) + len(last) > longest:
        return lambda _text: False
    # Between two %, the first occurrence is as good as any. Atomic groups commit to it, so the time does
    # not grow with the number of ways to match.
    inner = "".join(f"(?>.*?{''.join(piece)})" for piece in middle if piece)
    rest = f"{inner}.*{''.join(last)}" if others else ""
    expression = re.compile("".join(first) + rest, re.DOTALL)
    return lambda text: expression.fullmatch(text) is not None
