"""Scalar functions of SQL: what they are on values, on bins and on intervals.

A function is applied to three kinds of arguments. On values it means what it means to DuckDB. On the
values of a bin (`spans.py`) it has a result where that is the same, or a span again, for all of them; it
is `CUT` where the bin would be divided. And on intervals (`ranges.py`) it gives the range from which a
computed number has its interval.

Numbers are exact where their arguments are. NULL is None. `OTHER` is an undeclared value: what depends
on it is not known. `CUT` is the result of a function that divides a bin.
"""

from __future__ import annotations

import calendar
import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import partial
from typing import Any, Literal, NamedTuple

from sharewell.query import ranges, spans
from sharewell.query.ranges import Range
from sharewell.query.spans import Cut, Span

Type = Literal["number", "text", "boolean", "date", "duration", "null"]


class Unknown(Enum):
    """What takes the place of a value: undeclared ones, and one that is not the same in all of a bin."""

    OTHER = "other"
    CUT = "cut"


OTHER, CUT = Unknown.OTHER, Unknown.CUT


class Duration(NamedTuple):
    """An INTERVAL of SQL: months and days."""

    months: int
    days: int


@dataclass(frozen=True)
class Function:
    """A function of SQL, by its name there.

    `types` are the types of its arguments, the last one repeated; an empty string accepts any. A strict
    one is NULL where an argument is. `bounds` is None for one whose range is not computed.
    """

    name: str
    evaluate: Callable[..., Any]
    types: tuple[str, ...] = ("number",)
    result: Type | Literal["same"] = "number"
    arity: tuple[int, int] = (1, 1)
    strict: bool = True
    bounds: Callable[..., Range | None] | None = None
    on_span: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Apply the function to values."""
        for each in arguments if self.strict else ():
            if each is None:
                return None
            if isinstance(each, Unknown):
                return _unknown(arguments)
        if any(isinstance(each, Span) for each in arguments) and self.strict:
            try:
                return self.on_span(*arguments) if self.on_span else CUT
            except Cut:
                return CUT
        return self.evaluate(*arguments)


# Numbers


def _add(a: Any, b: Any) -> Any:
    if isinstance(a, dt.date) or isinstance(b, dt.date):
        return _shift(a, b, 1) if isinstance(a, dt.date) else _shift(b, a, 1)
    if isinstance(a, Duration):
        return Duration(a.months + b.months, a.days + b.days)
    return a + b


def _subtract(a: Any, b: Any) -> Any:
    if isinstance(a, dt.date):
        return Fraction((a - b).days) if isinstance(b, dt.date) else _shift(a, b, -1)
    return a - b


def _shift(day: dt.date, by: Any, sign: int) -> dt.date | None:
    """Add days, or months and days; a day that a month does not have becomes its last."""
    months, days = by if isinstance(by, Duration) else (0, int(by))
    month = day.year * 12 + day.month - 1 + sign * months
    year, month = divmod(month, 12)
    try:
        last = calendar.monthrange(year, month + 1)[1]
        return dt.date(year, month + 1, min(day.day, last)) + dt.timedelta(sign * days)
    except (ValueError, OverflowError):
        return None


def _divide(a: Any, b: Any) -> Any:
    return None if b == 0 else a / b


def _whole_divide(a: Any, b: Any) -> Any:
    return None if b == 0 else _floor(a / b) if a % b == 0 or (a < 0) == (b < 0) else math.ceil(a / b)


def _modulo(a: Any, b: Any) -> Any:
    """The remainder with the sign of the dividend."""
    return None if b == 0 else a - b * _truncate(a / b)


def _floor(a: Any) -> Fraction:
    return Fraction(math.floor(a))


def _ceiling(a: Any) -> Fraction:
    return Fraction(math.ceil(a))


def _truncate(a: Any) -> Fraction:
    return Fraction(math.trunc(a))


def _round(a: Any, digits: Any = 0) -> Any:
    """Round half away from zero."""
    unit = Fraction(10) ** max(-30, min(30, int(digits)))
    exact = Fraction(a) * unit
    whole = math.floor(abs(exact) + Fraction(1, 2))
    found = Fraction(whole if exact >= 0 else -whole) / unit
    return float(found) if isinstance(a, float) else found


def _power(a: Any, b: Any) -> float | None:
    try:
        found = float(a) ** float(b)
    except (OverflowError, ZeroDivisionError):
        return None
    return None if isinstance(found, complex) else found


def _defined(function: Callable[[float], float], a: Any) -> float | None:
    try:
        return function(float(a))
    except (ValueError, OverflowError):
        return None


def _sign(a: Any) -> Fraction:
    return Fraction((a > 0) - (a < 0))


def _bucket(a: Any, low: Any, high: Any, count: Any) -> Any:
    """The number of the bucket of equal width; 0 below the first, count + 1 from the end of the last."""
    if high <= low or count < 1:
        return None
    return max(Fraction(0), min(_floor((a - low) * count / (high - low)) + 1, Fraction(count + 1)))


# Step functions on spans


def _span_round(a: Span, digits: Any = 0) -> Fraction:
    return spans.steps(lambda x: _round(x, digits), a)


def _span_bucket(a: Any, low: Any, high: Any, count: Any) -> Any:
    return spans.steps(lambda x: _bucket(x, low, high, count), a)


# Text, dates and logic


def text_of(value: Any) -> str:
    """A value as text, as DuckDB casts it."""
    match value:
        case bool():
            return str(value).lower()
        case dt.date():
            return value.isoformat()
        case str():
            return value
    if value == int(value):
        return str(int(value))
    return repr(float(value))


def _left(a: str, count: Any) -> str:
    return a[: int(count)]


def _right(a: str, count: Any) -> str:
    count = int(count)
    return a[-count:] if count > 0 else a[-count:] if count < 0 else ""


def _substring(a: str, start: Any, length: Any = None) -> str:
    """From a one-based position on; negative ones count from the end, negative lengths go back."""
    first = len(a) + int(start) if start < 0 else int(start) - 1
    end = len(a) if length is None else first + int(length)
    return a[max(0, min(first, end)) : max(0, first, end)]


def _split_part(a: str, separator: str, place: Any) -> str:
    """The part at a one-based place, or from the end; empty where there is none."""
    parts = a.split(separator) if separator else list(a)
    at = int(place)
    return parts[at - 1 if at > 0 else at] if at and -len(parts) <= at <= len(parts) else ""


PARTS: dict[str, Callable[[dt.date], int]] = {
    "year": lambda d: d.year,
    "quarter": lambda d: (d.month + 2) // 3,
    "month": lambda d: d.month,
    "day": lambda d: d.day,
    "dow": lambda d: d.isoweekday() % 7,
    "isodow": lambda d: d.isoweekday(),
    "doy": lambda d: d.timetuple().tm_yday,
    "week": lambda d: d.isocalendar()[1],
    "isoyear": lambda d: d.isocalendar()[0],
    "decade": lambda d: d.year // 10,
    "century": lambda d: (d.year + 99) // 100,
}
PARTS |= {"dayofweek": PARTS["dow"], "dayofyear": PARTS["doy"], "dayofmonth": PARTS["day"]}
PARTS |= {"weekofyear": PARTS["week"], "weekday": PARTS["dow"]}

_FIRST_DAYS: dict[str, Callable[[dt.date], dt.date]] = {
    "day": lambda d: d,
    "week": lambda d: d - dt.timedelta(d.weekday()),
    "month": lambda d: d.replace(day=1),
    "quarter": lambda d: d.replace(month=(d.month - 1) // 3 * 3 + 1, day=1),
    "year": lambda d: d.replace(month=1, day=1),
    "decade": lambda d: d.replace(year=max(1, d.year // 10 * 10), month=1, day=1),
}


def singular(unit: str) -> str:
    """The name of a unit of time without its plural."""
    return unit.lower().removesuffix("s")


def _part(unit: str, day: dt.date) -> Fraction:
    return Fraction(PARTS[singular(unit) if unit.lower() not in PARTS else unit.lower()](day))


def _first_day(unit: str, day: dt.date) -> dt.date:
    return _FIRST_DAYS[singular(unit)](day)


def _difference(unit: str, start: dt.date, end: dt.date) -> Fraction:
    """How many first days of a unit lie between two days."""
    match singular(unit):
        case "day":
            return Fraction((end - start).days)
        case "week":
            return Fraction((_first_day("week", end) - _first_day("week", start)).days // 7)
        case "month":
            return Fraction((end.year - start.year) * 12 + end.month - start.month)
        case "quarter":
            quarters = (end.month - 1) // 3 - (start.month - 1) // 3
            return Fraction((end.year - start.year) * 4 + quarters)
    return Fraction(end.year - start.year)


def _last_day(day: dt.date) -> dt.date:
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])


def _compare(symbol: str, a: Any, b: Any) -> bool:
    match symbol:
        case "=":
            return bool(a == b)
        case "<>":
            return bool(a != b)
        case "<":
            return bool(a < b)
        case "<=":
            return bool(a <= b)
        case ">":
            return bool(a > b)
    return bool(a >= b)


def _and(*parts: Any) -> Any:
    if any(part is False for part in parts):
        return False
    return True if all(part is True for part in parts) else _unknown(parts)


def _or(*parts: Any) -> Any:
    if any(part is True for part in parts):
        return True
    return False if all(part is False for part in parts) else _unknown(parts)


def _unknown(parts: Sequence[Any]) -> Any:
    found = [part for part in parts if isinstance(part, Unknown)]
    return CUT if CUT in found else OTHER if found else None


def _in(value: Any, *members: Any) -> Any:
    if value is None or isinstance(value, Unknown):
        return value
    equal = FUNCTIONS["="]
    return _or(*(equal(value, member) for member in members))


def _case(*arguments: Any) -> Any:
    """Conditions and values in turn, then the default."""
    for condition, value in zip(arguments[:-1:2], arguments[1:-1:2], strict=True):
        if isinstance(condition, Unknown):
            return condition
        if condition:
            return value
    return arguments[-1]


def _coalesce(*arguments: Any) -> Any:
    return next((each for each in arguments if each is not None), None)


def _null_if(a: Any, b: Any) -> Any:
    same = FUNCTIONS["="](a, b)
    return same if isinstance(same, Unknown) else None if same else a


def _extreme(choose: Callable[[Any], Any], *arguments: Any) -> Any:
    if any(isinstance(each, Unknown | Span) for each in arguments):
        return _unknown(arguments) or CUT
    known = [each for each in arguments if each is not None]
    return choose(known) if known else None


def _distinct(a: Any, b: Any) -> Any:
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return True if a is None or b is None else _unknown((a, b))
    return (a is not b) if a is None or b is None else FUNCTIONS["<>"](a, b)


def _is_truth(expected: bool, a: Any) -> Any:
    return CUT if a is CUT else a is expected


def _is_null(a: Any) -> Any:
    return CUT if a is CUT else a is None


def _to_number(a: Any) -> Any:
    if isinstance(a, str):
        try:
            return Fraction(a.strip())
        except (ValueError, ZeroDivisionError):
            return None
    return Fraction(int(a)) if isinstance(a, bool) else a


def _to_whole(a: Any) -> Any:
    """Round to a whole number, half to even, as doubles are."""
    number = _to_number(a)
    return None if number is None else Fraction(round(number))


def _concatenate(*parts: Any) -> Any:
    if any(isinstance(part, Unknown | Span) for part in parts):
        return _unknown(parts) or CUT
    return "".join(text_of(part) for part in parts if part is not None)


_ROUND: dict[str, Any] = {"arity": (1, 2), "bounds": ranges.increasing(_round), "on_span": _span_round}
_ANY: dict[str, Any] = {"types": ("",), "result": "same", "strict": False, "arity": (1, 1000)}
_TEXT: dict[str, Any] = {"types": ("text",), "result": "text"}
_LOGIC: dict[str, Any] = {"types": ("boolean",), "result": "boolean", "strict": False}


def _logarithm(base: Callable[[float], float]) -> dict[str, Any]:
    function = partial(_defined, base)
    return {"evaluate": function, "bounds": ranges.increasing(function)}


_LIST: list[Function] = [
    Function("+", _add, ("",), "same", (2, 2), bounds=ranges.add, on_span=spans.add),
    Function(
        "-",
        _subtract,
        ("",),
        "same",
        (2, 2),
        bounds=ranges.subtract,
        on_span=partial(spans.add, sign=-1),
    ),
    Function("*", lambda a, b: a * b, arity=(2, 2), bounds=ranges.multiply, on_span=spans.multiply),
    Function("/", _divide, arity=(2, 2), bounds=ranges.divide, on_span=spans.divide),
    Function(
        "//",
        _whole_divide,
        arity=(2, 2),
        on_span=lambda a, b: spans.steps(_truncate, spans.divide(a, b)),
    ),
    Function("%", _modulo, arity=(2, 2), bounds=ranges.modulo),
    Function(
        "negate", lambda a: -a, bounds=lambda a: (-a[1], -a[0]), on_span=partial(spans.multiply, -1)
    ),
    Function("ABS", abs, bounds=ranges.absolute, on_span=spans.absolute),
    Function("ROUND", _round, **_ROUND),
    Function("FLOOR", _floor, bounds=ranges.increasing(_floor), on_span=partial(spans.steps, _floor)),
    Function(
        "CEIL", _ceiling, bounds=ranges.increasing(_ceiling), on_span=partial(spans.steps, _ceiling)
    ),
    Function(
        "TRUNC", _truncate, bounds=ranges.increasing(_truncate), on_span=partial(spans.steps, _truncate)
    ),
    Function("SIGN", _sign, bounds=ranges.increasing(_sign), on_span=partial(spans.steps, _sign)),
    Function("POWER", _power, arity=(2, 2), bounds=ranges.power),
    Function("SQRT", **_logarithm(math.sqrt)),
    Function("LN", **_logarithm(math.log)),
    Function("LOG10", **_logarithm(math.log10)),
    Function("LOG2", **_logarithm(math.log2)),
    Function("EXP", **_logarithm(math.exp)),
    Function("WIDTH_BUCKET", _bucket, arity=(4, 4), on_span=_span_bucket),
    Function("GREATEST", partial(_extreme, max), bounds=ranges.greatest, **_ANY),
    Function("LEAST", partial(_extreme, min), bounds=ranges.least, **_ANY),
    Function("COALESCE", _coalesce, **_ANY),
    Function("NULLIF", _null_if, **(_ANY | {"arity": (2, 2)})),
    Function("CASE", _case, **(_ANY | {"arity": (3, 100_000)})),
    Function("AND", _and, arity=(1, 100_000), **_LOGIC),
    Function("OR", _or, arity=(1, 100_000), **_LOGIC),
    Function("NOT", lambda a: not a, types=("boolean",), result="boolean"),
    Function("IN", _in, ("",), "boolean", (2, 100_000), strict=False),
    Function("IS NULL", _is_null, ("",), "boolean", strict=False),
    Function("IS TRUE", partial(_is_truth, True), **_LOGIC),
    Function("IS FALSE", partial(_is_truth, False), **_LOGIC),
    Function("IS DISTINCT FROM", _distinct, ("",), "boolean", (2, 2), strict=False),
    Function("number", _to_number, ("",), bounds=lambda a: a, on_span=lambda a: a),
    Function(
        "whole number",
        _to_whole,
        ("",),
        bounds=ranges.increasing(_to_whole),
        on_span=partial(spans.steps, _to_whole),
    ),
    Function("text", text_of, ("",), "text"),
    Function("UPPER", str.upper, **_TEXT),
    Function("LOWER", str.lower, **_TEXT),
    Function("TRIM", lambda a: a.strip(" "), **_TEXT),
    Function("LTRIM", lambda a: a.lstrip(" "), **_TEXT),
    Function("RTRIM", lambda a: a.rstrip(" "), **_TEXT),
    Function("REVERSE", lambda a: a[::-1], **_TEXT),
    Function("LENGTH", lambda a: Fraction(len(a)), ("text",)),
    Function("LEFT", _left, ("text", "number"), "text", (2, 2)),
    Function("RIGHT", _right, ("text", "number"), "text", (2, 2)),
    Function("SUBSTRING", _substring, ("text", "number"), "text", (2, 3)),
    Function("REPLACE", lambda a, b, c: a.replace(b, c) if b else a, ("text",), "text", (3, 3)),
    Function("SPLIT_PART", _split_part, ("text", "text", "number"), "text", (3, 3)),
    Function("STRPOS", lambda a, b: Fraction(a.find(b) + 1), ("text",), arity=(2, 2)),
    Function("STARTS_WITH", str.startswith, ("text",), "boolean", (2, 2)),
    Function("ENDS_WITH", str.endswith, ("text",), "boolean", (2, 2)),
    Function("CONTAINS", lambda a, b: b in a, ("text",), "boolean", (2, 2)),
    Function("CONCAT", _concatenate, ("",), "text", (1, 1000), strict=False),
    Function("||", lambda a, b: text_of(a) + text_of(b), ("",), "text", (2, 2)),
    Function("DATE_PART", _part, ("text", "date"), "number", (2, 2)),
    Function("DATE_TRUNC", _first_day, ("text", "date"), "date", (2, 2)),
    Function("DATE_DIFF", _difference, ("text", "date"), "number", (3, 3)),
    Function("LAST_DAY", _last_day, ("date",), "date"),
    Function("MONTHNAME", lambda d: calendar.month_name[d.month], ("date",), "text"),
    Function("DAYNAME", lambda d: calendar.day_name[d.weekday()], ("date",), "text"),
    *(
        Function(
            symbol,
            partial(_compare, symbol),
            ("",),
            "boolean",
            (2, 2),
            on_span=partial(spans.compare, symbol),
        )
        for symbol in ("=", "<>", "<", "<=", ">", ">=")
    ),
]
FUNCTIONS: dict[str, Function] = {function.name: function for function in _LIST}

#: Other names of the functions.
ALIASES = {
    "CEILING": "CEIL",
    "TRUNCATE": "TRUNC",
    "POW": "POWER",
    "LOG": "LOG10",
    "MOD": "%",
    "UCASE": "UPPER",
    "LCASE": "LOWER",
    "LEN": "LENGTH",
    "CHAR_LENGTH": "LENGTH",
    "SUBSTR": "SUBSTRING",
    "IFNULL": "COALESCE",
    "DATEPART": "DATE_PART",
    "DATETRUNC": "DATE_TRUNC",
    "DATEDIFF": "DATE_DIFF",
    "PREFIX": "STARTS_WITH",
    "SUFFIX": "ENDS_WITH",
    "INSTR": "STRPOS",
}
