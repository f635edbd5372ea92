"""Scalar expressions: from the parse tree to typed expressions, whatever their leaves are.

The same functions are applied to the values of columns, cell by cell, in WHERE and GROUP BY, and to the
numbers of a result, row by row. Types are strict, except that text in place of a date is read as one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from sqlglot import exp

from sharewell.errors import QueryTooComplex
from sharewell.query.attribute import Binned
from sharewell.query.diagram import is_limited
from sharewell.query.expression import (
    Aggregate,
    Call,
    Constant,
    Expression,
    Field,
    GroupKey,
    Linear,
    Rank,
    call,
    type_of,
)
from sharewell.query.functions import ALIASES, FUNCTIONS, PARTS, Duration, Function, Type, singular
from sharewell.query.sql.constants import (
    DATE_HINT,
    bounded,
    constant_text,
    parse_date,
    read_number,
)
from sharewell.query.sql.grammar import CALL
from sharewell.query.sql.patterns import like_matcher, regular_matcher
from sharewell.query.sql.refusals import subquery
from sharewell.query.sql.text import Source, shortened

SYMBOLS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
    exp.Pow: "POWER",
}
_CASTS: dict[str, tuple[str, Type]] = {
    **dict.fromkeys(("INT", "BIGINT", "SMALLINT", "TINYINT"), ("whole number", "number")),
    **dict.fromkeys(("DOUBLE", "FLOAT", "DECIMAL"), ("number", "number")),
    **dict.fromkeys(("TEXT", "VARCHAR"), ("text", "text")),
}
_TYPE_NAMES = {
    "number": "a number",
    "text": "text",
    "boolean": "a boolean",
    "date": "a date",
    "duration": "a duration",
    "null": "NULL",
}
#: The maximum number of characters that a function of a new question may make.
MAX_LENGTH = 10_000
#: A bound of the number of characters of a number or a date.
_LONGEST_NUMBER = 250
#: The length of text that LIKE is prepared for where the text is not known.
_LONGEST = 1_000
_UNITS = ("year", "quarter", "month", "week", "day")


@dataclass
class Translator:
    """Translates expressions; subclasses read their leaves: columns, and what else the place allows."""

    source: Source
    _lengths: dict[Call, int] = field(default_factory=dict, init=False)

    def leaf(self, node: exp.Expr) -> Expression | None:
        """Read a node that is not computed from its parts; None for any other."""
        raise NotImplementedError

    def translate(self, node: exp.Expr) -> Expression:
        """Translate an expression."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Literal):
            constant = str(node.this) if node.is_string else read_number(node, self.source)
            return Constant(constant, "text" if node.is_string else "number")
        found = self.leaf(node)
        if found is not None:
            return found
        kind = type(node)
        if kind in SYMBOLS:
            return self._call(node, SYMBOLS[kind], [node.this, node.expression])
        if kind in _ARITHMETIC:
            return self._call(node, _ARITHMETIC[kind], [node.this, node.expression])
        match node:
            case exp.Boolean():
                return Constant(bool(node.this), "boolean")
            case exp.Null():
                return Constant(None, "null")
            case exp.Neg():
                return self._call(node, "negate", [node.this])
            case exp.Cast() | exp.TryCast():
                return self._cast(node)
            case exp.And() | exp.Or():
                name = "AND" if isinstance(node, exp.And) else "OR"
                return self._call(node, name, chain(node))
            case exp.Not():
                return self._call(node, "NOT", [node.this])
            case exp.Is():
                return self._is(node)
            case exp.In():
                if not node.expressions:
                    raise self.source.error(node, "IN requires at least one value.", "List a value.")
                return self._call(node, "IN", [node.this, *node.expressions])
            case exp.Between():
                sides = [(">=", node.args["low"]), ("<=", node.args["high"])]
                parts = [self._call(node, symbol, [node.this, end]) for symbol, end in sides]
                return call("AND", *parts, type="boolean")
            case exp.NullSafeNEQ() | exp.NullSafeEQ():
                distinct = self._call(node, "IS DISTINCT FROM", [node.this, node.expression])
                same = isinstance(node, exp.NullSafeEQ)
                return call("NOT", distinct, type="boolean") if same else distinct
            case exp.Like() | exp.ILike():
                return self.like(node, "")
            case exp.Escape(this=exp.Like() | exp.ILike()):
                return self.like(node.this, self.escape(node))
            case exp.SimilarTo() | exp.RegexpLike():
                whole = isinstance(node, exp.SimilarTo)
                return self._regular(node, [node.this, node.expression], whole=whole)
            case exp.DPipe():
                return self._call(node, "||", [node.this, node.expression])
            case exp.Case():
                return self._case(node)
            case exp.Interval():
                return self._duration(node)
            case exp.Extract():
                return self._part(node, node.this.name, node.expression)
            case exp.Anonymous():
                return self._function(node)
        raise self.unsupported(node)

    def unsupported(self, node: exp.Expr) -> Exception:
        """Return the error for a node that is no scalar expression here."""
        match node:
            case exp.Count() | exp.Sum() | exp.Avg() | exp.Filter() | exp.WithinGroup():
                message = "An aggregate is not allowed here."
                hint = "Use it in the SELECT list, HAVING or ORDER BY."
            case exp.Subquery() | exp.Select():
                return subquery(self.source, node)
            case exp.Window():
                message = "A window is not allowed here."
                hint = "Use it in the SELECT list, over aggregates."
            case exp.Tuple():
                message = f"({shortened(self.source.quote(node))}) are several columns at once."
                hint = "Compare them one by one, with AND and OR."
            case _:
                message = f"Unsupported expression {shortened(self.source.quote(node))}."
                hint = "Write a number, 'text', DATE '2024-12-31', TRUE, FALSE, NULL, or a column."
        return self.source.error(node, message, hint)

    # Calls

    def _call(self, node: exp.Expr, name: str, parts: Sequence[exp.Expr]) -> Expression:
        return self.apply(node, name, [self.translate(part) for part in parts], parts)

    def apply(
        self, node: exp.Expr, name: str, arguments: list[Expression], parts: Sequence[exp.Expr] = ()
    ) -> Expression:
        """Apply a function after checking the types of its arguments."""
        function = FUNCTIONS[name]
        if name in ("||", "CONCAT", "REPLACE"):
            self._check_length(node, name, arguments)
        places = [*parts, *[node] * (len(arguments) - len(parts))]
        types = [type_of(each) for each in arguments]
        if name in SYMBOLS.values() or name in ("IN", "IS DISTINCT FROM", "NULLIF"):
            arguments, types = self._same_types(node, arguments, types, places)
        elif name in ("+", "-"):
            return self._add(node, name, arguments, types, places)
        elif name in ("CASE", "COALESCE", "GREATEST", "LEAST"):
            branches = [*range(1, len(types) - 1, 2), len(types) - 1] if name == "CASE" else None
            conditions = range(0, len(types) - 1, 2) if name == "CASE" else ()
            for at in conditions:
                self._require(name, "boolean", types[at], places[at])
            found = self._common(node, types, places, branches or range(len(types)))
            return call(name, *arguments, type=found)
        else:
            for at, own in enumerate(types):
                expected = function.types[min(at, len(function.types) - 1)]
                self._require(name, expected, own, places[at])
        if name in ("/", "//", "%") and isinstance(arguments[1], Constant) and arguments[1].value == 0:
            raise self.source.error(node, "Division by zero.", "Use another divisor.")
        if name == "//" and is_limited():
            self._require_whole(node, arguments, places)
        result: Type = types[0] if function.result == "same" else function.result
        found_call = call(name, *arguments, type=result)
        if isinstance(found_call, Constant) and isinstance(found_call.value, Fraction):
            bounded(node, self.source, found_call.value)
        return found_call

    def _require_whole(
        self, node: exp.Expr, arguments: Sequence[Expression], places: Sequence[exp.Expr]
    ) -> None:
        """Refuse a new question that divides other numbers by //, which DuckDB does not round down."""
        for argument, place in zip(arguments, places, strict=True):
            if not is_whole(argument):
                written = shortened(self.source.quote(place))
                message = f"// divides whole numbers, but {written} need not be one."
                divided = " / ".join(self.source.quote(each) for each in places)
                raise self.source.error(node, message, f"Write FLOOR({shortened(divided)}).")

    def _require(self, name: str, expected: str, own: Type, place: exp.Expr) -> None:
        if expected in ("", own) or own == "null":
            return
        what = {
            "*": "Arithmetic",
            "/": "Arithmetic",
            "//": "Arithmetic",
            "%": "Arithmetic",
            "negate": "Arithmetic",
            "CASE": "WHEN",
        }.get(name, name)
        written = shortened(self.source.quote(place))
        verb = "require" if what in ("AND", "OR") else "requires"
        message = f"{what} {verb} {_TYPE_PLURALS[expected]}, but {written} is {_TYPE_NAMES[own]}."
        hint = {
            "boolean": "Write a condition, such as age >= 20.",
            "number": "Write the value itself.",
            "text": "Write a text column, or text in single quotes.",
            "date": DATE_HINT,
        }.get(expected, "Write a value of that type.")
        raise self.source.error(place, message, hint)

    def _same_types(
        self,
        node: exp.Expr,
        arguments: list[Expression],
        types: list[Type],
        places: Sequence[exp.Expr],
    ) -> tuple[list[Expression], list[Type]]:
        if "date" in types:
            arguments = [self._as_date(each) for each in arguments]
            types = [type_of(each) for each in arguments]
        known = [(own, place) for own, place in zip(types, places, strict=True) if own != "null"]
        for own, place in known[1:]:
            if own != known[0][0]:
                a, b = (shortened(self.source.quote(each)) for each in (known[0][1], place))
                first, second = _TYPE_NAMES[known[0][0]], _TYPE_NAMES[own]
                message = f"Cannot compare {a} ({first}) with {b} ({second})."
                raise self.source.error(node, message, "Compare values of the same type.")
        return arguments, types

    def _as_date(self, argument: Expression) -> Expression:
        if isinstance(argument, Constant) and isinstance(argument.value, str):
            date = parse_date(argument.value)
            return Constant(date, "date") if date else argument
        return argument

    def _common(
        self,
        node: exp.Expr,
        types: list[Type],
        places: Sequence[exp.Expr],
        at: Sequence[int],
    ) -> Type:
        found: Type = "null"
        for each in at:
            if types[each] != "null":
                if found not in ("null", types[each]):
                    message = f"The values are of different types: {_TYPE_NAMES[found]}, and "
                    message += (
                        f"{shortened(self.source.quote(places[each]))}, {_TYPE_NAMES[types[each]]}."
                    )
                    raise self.source.error(node, message, "Use values of the same type.")
                found = types[each]
        return found

    def _check_length(self, node: exp.Expr, name: str, arguments: list[Expression]) -> None:
        """Refuse a function of a new question that may make text too long, for every value."""
        if not is_limited():
            return
        lengths = list(map(self._longest, arguments))
        replaced = name == "REPLACE" and len(lengths) == 3
        if (lengths[0] * max(1, lengths[2]) if replaced else sum(lengths)) > MAX_LENGTH:
            message = (
                f"{shortened(self.source.quote(node))} may have more than {MAX_LENGTH:,} characters."
            )
            raise self.source.error(node, message, "Use shorter text.", QueryTooComplex)

    def _longest(self, expression: Expression) -> int:
        """Return a bound of the number of characters of a value."""
        match expression:
            case Constant(str() as text):
                return len(text)
            case Field(column) if type_of(expression) == "text":
                return max((len(label) for label in column.labels if isinstance(label, str)), default=0)
            case GroupKey(labels) if type_of(expression) == "text":
                return max((len(label) for label in labels if isinstance(label, str)), default=0)
            case Call(function, arguments) if type_of(expression) == "text":
                if expression not in self._lengths:
                    lengths = list(map(self._longest, arguments))
                    if function.name in ("||", "CONCAT"):
                        found = sum(lengths)
                    elif function.name == "REPLACE":
                        found = lengths[0] * max(1, lengths[2])
                    else:  # A letter may have two capitals: 'ß' is 'SS'.
                        found = max([*lengths, _LONGEST_NUMBER]) * (2 if function.name == "UPPER" else 1)
                    self._lengths[expression] = found
                return self._lengths[expression]
        return _LONGEST_NUMBER

    def _add(
        self,
        node: exp.Expr,
        name: str,
        arguments: list[Expression],
        types: list[Type],
        places: Sequence[exp.Expr],
    ) -> Expression:
        """Add or subtract numbers, dates and durations."""
        if "date" in types and "text" in types:
            arguments = [self._as_date(each) for each in arguments]
            types = [type_of(each) for each in arguments]
        match name, *types:
            case ("-", "date", "date"):
                result: Type = "number"
            case (_, "date", "number" | "duration") | ("+", "number" | "duration", "date"):
                result = "date"
            case (_, "duration", "duration"):
                result = "duration"
            case _:
                for own, place in zip(types, places, strict=True):
                    self._require("*", "number", own, place)
                result = "number"
        found = call(name, *arguments, type=result)
        if isinstance(found, Constant) and isinstance(found.value, Fraction):
            bounded(node, self.source, found.value)
        return found

    # Forms of their own

    def _cast(self, node: exp.Cast) -> Expression:
        name = node.to.this.name
        argument = self.translate(node.this)
        if name == "DATE":
            if type_of(argument) in ("date", "null"):
                return argument
            date = self._as_date(argument)
            if (
                isinstance(argument, Constant)
                and type_of(date) != "date"
                and type_of(argument) == "text"
            ):
                message = f"Invalid date {constant_text(argument.value)}."
                raise self.source.error(node, message, DATE_HINT)
            if type_of(date) != "date":
                raise self.source.error(node, "Only strings can be cast to DATE.", DATE_HINT)
            return date
        if name == "BOOLEAN" and type_of(argument) in ("boolean", "null"):
            return argument
        function, result = _CASTS.get(name, ("", "null"))
        own = type_of(argument)
        if not function or (result == "number" and own in ("date", "duration")):
            message = f"{shortened(self.source.quote(node.this))} cannot be cast to {name}."
            hint = "Cast to INTEGER, DOUBLE, DECIMAL, VARCHAR, BOOLEAN or DATE."
            raise self.source.error(node, message, hint)
        parameters = [int(each.name) for each in node.to.expressions]
        if name == "DECIMAL":
            digits = Constant(
                Fraction(parameters[1] if len(parameters) > 1 else 0 if parameters else 3), "number"
            )
            return call("ROUND", call("number", argument), digits)
        if function == "whole number" and isinstance(argument, Constant):
            # A number that is written is a decimal, which is rounded half away from 0.
            return call("ROUND", call("number", argument))
        return call(function, argument, type=result)

    def _is(self, node: exp.Is) -> Expression:
        right = node.expression
        if isinstance(right, exp.Boolean):
            return self._call(node, "IS TRUE" if right.this else "IS FALSE", [node.this])
        if isinstance(right, exp.Null):
            return self._call(node, "IS NULL", [node.this])
        message = "IS requires NULL, TRUE or FALSE."
        raise self.source.error(node, message, "Use = to compare with a value.")

    def _case(self, node: exp.Case) -> Expression:
        operand = node.args.get("this")
        parts: list[exp.Expr] = []
        arguments: list[Expression] = []
        first = self.translate(operand) if operand else None
        for each in node.args["ifs"]:
            condition = self.translate(each.this)
            if first is not None:
                condition = self.apply(each, "=", [first, condition], [node.this, each.this])
            arguments += [condition, self.translate(each.args["true"])]
            parts += [each.this, each.args["true"]]
        default = node.args.get("default")
        arguments.append(self.translate(default) if default else Constant(None, "null"))
        parts.append(default or node)
        return self.apply(node, "CASE", arguments, parts)

    def _duration(self, node: exp.Interval) -> Expression:
        unit = singular(node.text("unit"))
        text = node.this.name if isinstance(node.this, exp.Literal) else ""
        if not re.fullmatch(r"-?\d{1,5}", text) or unit not in _UNITS:
            message = f"Invalid duration {shortened(self.source.quote(node))}."
            raise self.source.error(node, message, "Write it as INTERVAL 3 MONTH.")
        months = {"year": 12, "quarter": 3, "month": 1}.get(unit, 0)
        days = {"week": 7, "day": 1}.get(unit, 0)
        return Constant(Duration(int(text) * months, int(text) * days), "duration")

    def _part(self, node: exp.Expr, unit: str, day: exp.Expr) -> Expression:
        if unit.lower() not in PARTS and singular(unit) not in PARTS:
            message = f'"{shortened(unit)}" is not a part of a date.'
            raise self.source.error(node, message, f"Use one of {', '.join(_UNITS)}, dow or doy.")
        argument = self.translate(day)
        self._require(unit.upper(), "date", type_of(argument), day)
        return call("DATE_PART", Constant(unit.lower(), "text"), argument)

    def _function(self, node: exp.Anonymous) -> Expression:
        written = node.name.removesuffix(CALL)
        if written in self.source.unknown_functions:
            raise self.source.unknown_functions[written]
        name, parts = ALIASES.get(written, written), node.expressions
        if written.lower() in PARTS and len(parts) == 1:
            return self._part(node, written, parts[0])
        if name in ("IF", "IIF"):
            self._arity(node, written, (3, 3))
            arguments = [self.translate(part) for part in parts]
            return self.apply(node, "CASE", arguments, parts)
        if name.startswith("REGEXP"):
            self._arity(node, written, (2, 2))
            return self._regular(node, parts, whole=name == "REGEXP_FULL_MATCH")
        function = FUNCTIONS.get(name)
        if function is None or (not name.isupper() and name not in ALIASES.values()):
            raise self.unsupported(exp.Count(this=exp.Star()) if node.parent is None else node)
        self._arity(node, written, function.arity)
        arguments = [self.translate(part) for part in parts]
        if name in ("DATE_PART", "DATE_TRUNC", "DATE_DIFF"):
            self._check_unit(node, name, arguments[0])
            arguments = [arguments[0], *map(self._as_date, arguments[1:])]
        return self.apply(node, name, arguments, parts)

    def _arity(self, node: exp.Anonymous, name: str, arity: tuple[int, int]) -> None:
        least, most = arity
        if not least <= len(node.expressions) <= most:
            count = f"{least}" if least == most else f"{least} to {most}"
            message = f"{name} takes {count} argument{'' if count == '1' else 's'}, not "
            raise self.source.error(node, f"{message}{len(node.expressions)}.", "Correct the call.")

    def _check_unit(self, node: exp.Expr, name: str, unit: Expression) -> None:
        known = [*PARTS] if name == "DATE_PART" else [*_UNITS, "decade"]
        value = unit.value if isinstance(unit, Constant) else None
        if not isinstance(value, str) or not {value.lower(), singular(value)} & {*known}:
            message = f"{name} requires a unit of time, in single quotes."
            raise self.source.error(node, message, f"Use one of {', '.join(map(repr, _UNITS))}.")

    # Patterns

    def escape(self, node: exp.Escape) -> str:
        """Read the character after ESCAPE."""
        character = self.translate(node.expression)
        if not isinstance(character, Constant) or not isinstance(character.value, str):
            message = "ESCAPE requires a character in single quotes."
            raise self.source.error(node, message, "Example: ESCAPE '!'.")
        return character.value

    def like(self, node: exp.Expr, escape: str) -> Expression:
        """Translate LIKE or ILIKE."""
        argument, pattern = self.translate(node.this), self.translate(node.expression)
        folded = isinstance(node, exp.ILike)
        if "null" in (type_of(argument), type_of(pattern)):
            return Constant(None, "boolean")
        self._check_pattern(node, "ILIKE" if folded else "LIKE", argument, pattern)
        text: str = pattern.value  # type: ignore[union-attr]
        matches = like_matcher(node, self.source, text.lower() if folded else text, escape, _LONGEST)
        test = (lambda each: matches(each.lower())) if folded else matches
        function = Function(f"{'I' * folded}LIKE {text!r} {escape!r}", test, ("text",), "boolean")
        found = apply_once(function, argument)
        return call("NOT", found, type="boolean") if node.args.get("negate") else found

    def _check_pattern(
        self, node: exp.Expr, name: str, argument: Expression, pattern: Expression
    ) -> None:
        text = isinstance(pattern, Constant) and isinstance(pattern.value, str)
        if not text or type_of(argument) != "text":
            message = f"{name} requires a text column and a pattern in single quotes."
            raise self.source.error(node, message, f"Example: state {name} 'New%'.")

    def _regular(self, node: exp.Expr, parts: Sequence[exp.Expr], *, whole: bool) -> Expression:
        argument, pattern = (self.translate(part) for part in parts)
        if "null" in (type_of(argument), type_of(pattern)):
            return Constant(None, "boolean")
        self._check_pattern(node, "A regular expression", argument, pattern)
        text: str = pattern.value  # type: ignore[union-attr]
        matches = regular_matcher(node, self.source, text, whole=whole)
        function = Function(f"regular expression {text!r} {whole}", matches, ("text",), "boolean")
        return apply_once(function, argument)


_TYPE_PLURALS = {
    "number": "numbers",
    "text": "text",
    "boolean": "conditions",
    "date": "a date",
    "duration": "a duration",
}


#: Functions whose results are whole numbers, and those whose results are where the arguments are.
_WHOLE = {"//", "SIGN", "LENGTH", "STRPOS", "DATE_PART", "DATE_DIFF", "WIDTH_BUCKET", "whole number"}
_AS_WHOLE = {"+", "-", "*", "%", "negate", "ABS", "ROUND", "TRUNC"}
_AS_WHOLE |= {"CASE", "COALESCE", "NULLIF", "GREATEST", "LEAST"}


def is_whole(expression: Expression) -> bool:
    """Whether an expression is a whole number by its type, whatever its values are."""
    match expression:
        case Constant(Fraction() as number):
            return number.denominator == 1
        case Field(column):
            return not isinstance(column.attribute, Binned)
        case GroupKey(values=values):
            return all(isinstance(each, Fraction) and each.denominator == 1 for each in values if each)
        case Call(function, arguments) if function.name in _AS_WHOLE:
            return all(map(is_whole, (each for each in arguments if type_of(each) == "number")))
        case Call(function):
            return function.name in _WHOLE
    return isinstance(expression, Constant | Aggregate | Linear | Rank)


def apply_once(function: Function, argument: Expression) -> Expression:
    """Apply a function that is made for one call."""
    if isinstance(argument, Constant):
        return Constant(function(argument.value), "boolean")
    return Call(function, (argument,), "boolean")


def chain(node: exp.Expr) -> list[exp.Expr]:
    """Return the parts of a AND b AND c... without recursion: a chain may have thousands."""
    kind, parts = type(node), []
    while type(node) is kind:
        parts.append(node.expression)
        node = node.this
    return [node, *reversed(parts)]
