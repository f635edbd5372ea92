"""Constants: numbers, text, dates, booleans and NULL, and LIKE patterns."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from sharewell.errors import QueryTooComplex
from sharewell.query.attribute import decimal_text
from sharewell.query.diagram import spend
from sharewell.query.sql.text import Source, shortened

#: NULL is None.
Constant = Fraction | str | dt.date | bool | None

#: The bound on numerators and denominators, which keeps the arithmetic fast.
LIMIT = 10**100
#: The maximum of text length times pattern length in LIKE: the worst-case number of steps.
MAX_LIKE_STEPS = 10**7
#: How many characters of text times those of a pattern, or places of an automaton, are compared in the
#: time of one step of a diagram.
CHARACTERS_OF_STEP, PLACES_OF_STEP = 2**9, 2**4
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

    def matches(text: str) -> bool:
        spend(len(text) * len(pattern) // CHARACTERS_OF_STEP)
        return expression.fullmatch(text) is not None

    return matches


#: The parts of a regular expression that are supported: one character, any of some, or any at all.
_ATOM = re.compile(
    r"\\([dwsDWS.\\*+?|^$()\[\]{}-])|(\[\^?\]?(?:\\.|[^\]\\])*\])|([^\\*+?|^$()\[\]{}])", re.DOTALL
)


def regular_matcher(
    node: exp.Expr, source: Source, pattern: str, *, whole: bool
) -> Callable[[str], bool]:
    """Return a test of text by a regular expression, in time linear in the text: by an automaton.

    It has alternatives of sequences, without groups. A state is a place in a sequence; after each
    character, all places that can be reached are known, so no way to match is tried twice.
    """
    sequences = [_sequence(node, source, each, whole=whole) for each in pattern.split("|")]
    places = sum(len(steps) for steps, _, _ in sequences)
    if places * 1_000 > MAX_LIKE_STEPS:
        message = "The regular expression is too long."
        raise source.error(node, message, "Use a shorter pattern.", QueryTooComplex)

    def matches(text: str) -> bool:
        spend(len(text) * places // PLACES_OF_STEP)
        return any(_matches(text, *sequence) for sequence in sequences)

    return matches


#: A test of one character, whether it may be left out, and whether it may be repeated.
_Step = tuple[re.Pattern[str], bool, bool]


def _sequence(
    node: exp.Expr, source: Source, text: str, *, whole: bool
) -> tuple[list[_Step], bool, bool]:
    """Return the steps of a sequence, and whether it is bound to the start and to the end."""
    at_start = whole or text.startswith("^")
    at_end = whole or (text.endswith("$") and not text.endswith("\\$"))
    text = text.removeprefix("^")
    text = text.removesuffix("$") if at_end and not text.endswith("\\$") else text
    steps: list[_Step] = []
    place = 0
    while place < len(text):
        found = _ATOM.match(text, place)
        if found is None:
            message = f"Unsupported regular expression {constant_text(text)}."
            hint = "Use characters, ., [...], *, +, ?, | between alternatives, ^ and $."
            raise source.error(node, message, hint)
        place = found.end()
        sign = text[place] if place < len(text) and text[place] in "*+?" else ""
        place += len(sign)
        try:
            test = re.compile(found[0], re.DOTALL)
        except re.error:
            message = f"Invalid regular expression {constant_text(text)}."
            raise source.error(node, message, "Example: 'New.*'.") from None
        steps.append((test, sign in ("*", "?") and bool(sign), sign in ("*", "+") and bool(sign)))
    return steps, at_start, at_end


def _matches(text: str, steps: list[_Step], at_start: bool, at_end: bool) -> bool:
    def reachable(places: set[int]) -> set[int]:
        """Add the places behind steps that may be left out."""
        for place, (_, optional, _) in enumerate(steps):
            if optional and place in places:
                places.add(place + 1)
        return places

    places = reachable({0})
    for character in text:
        if len(steps) in places and not at_end:
            return True
        after = set() if at_start else {0}
        for place in places:
            if place < len(steps) and steps[place][0].fullmatch(character):
                after |= {place, place + 1} if steps[place][2] else {place + 1}
        places = reachable(after)
    return len(steps) in places
