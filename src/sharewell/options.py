"""Declared options: the type, default and meaning of every key of a configuration file.

The reader, the JSON Schema, the documentation and `sharewell init` all follow from these declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sharewell.errors import ConfigError, SharewellError, advice
from sharewell.privacy.budget import amount

#: The default of an option that a file must give.
REQUIRED: Any = ...

_NUMERIC = (str, int, float, Decimal)


def _keep(value: Any, key: str) -> Any:
    return value


@dataclass(frozen=True)
class ValueType:
    """What a value may be: in words, as JSON Schema, as Python types, and how it is converted."""

    words: str
    schema: Mapping[str, Any] = field(hash=False)
    accepts: tuple[type, ...]
    convert: Callable[[Any, str], Any] = _keep

    def read(self, value: Any, key: str) -> Any:
        """Validate and convert a TOML value; errors name the key."""
        if not isinstance(value, self.accepts) or (isinstance(value, bool) and bool not in self.accepts):
            raise ConfigError(f"{key} must be {self.words}, not {_quote(value)}.")
        return self.convert(value, key)


@dataclass(frozen=True)
class Option:
    """One key: its name, type and default (as a file would write it), and what it does."""

    name: str
    type: ValueType
    default: Any = field(hash=False)
    help: str
    #: What happens without it, where None is the default.
    unset: str = ""

    @property
    def required(self) -> bool:
        """Whether a file must give it."""
        return self.default is REQUIRED


def read_amount(value: Any, key: str) -> Fraction:
    """Read an exact number greater than 0."""
    try:
        return amount(str(value) if isinstance(value, float) else value, key)
    except SharewellError as error:
        raise ConfigError(error.message, hint=error.hint) from None


def _read_part(value: Any, key: str) -> Fraction:
    part = Fraction(0) if str(value) in ("0", "0.0") else read_amount(value, key)
    if part > 1:
        raise ConfigError(f"{key} must be at most 1, not {value}.")
    return part


def _read_strings(value: list[Any], key: str) -> list[str]:
    for each in value:
        if not isinstance(each, str):
            raise ConfigError(
                f"{key} must be a list of strings, and contains {_quote(each)}.",
                hint='Quote every item: ["a", "b"].',
            )
    return value


_NUMBER_TEXT = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?(/[0-9]+)?$"}

STRING = ValueType("a string in quotes", {"type": "string"}, (str,))
STRINGS = ValueType(
    "a list of strings", {"type": "array", "items": {"type": "string"}}, (list,), _read_strings
)
BOOLEAN = ValueType("true or false", {"type": "boolean"}, (bool,))
INTEGER = ValueType("a whole number", {"type": "integer"}, (int,))
AMOUNT = ValueType(
    'a number such as 0.1 or "1/3"',
    {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _NUMBER_TEXT]},
    _NUMERIC,
    read_amount,
)
FRACTION = ValueType(
    'a number from 0 to 1, such as 0.5 or "1/3"',
    {"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, _NUMBER_TEXT]},
    _NUMERIC,
    _read_part,
)
SECONDS = ValueType(
    "a number of seconds greater than 0",
    AMOUNT.schema,
    _NUMERIC,
    lambda *given: float(read_amount(*given)),
)


def integer(low: int, high: int) -> ValueType:
    """A whole number from `low` to `high`, both included."""
    words = f"a whole number from {low:,} to {high:,}"

    def convert(value: int, key: str) -> int:
        if not low <= value <= high:
            raise ConfigError(f"{key} must be {words}, not {value:,}.")
        return value

    return ValueType(words, {"type": "integer", "minimum": low, "maximum": high}, (int,), convert)


def number(low: float, high: float) -> ValueType:
    """A number from `low` to `high`, both included."""
    words = f"a number from {low:,} to {high:,}"

    def convert(value: Any, key: str) -> float:
        found = float(read_amount(value, key))
        if not low <= found <= high:
            raise ConfigError(f"{key} must be {words}, not {found:,g}.")
        return found

    bounds = {"type": "number", "minimum": low, "maximum": high}
    return ValueType(words, {"anyOf": [bounds, _NUMBER_TEXT]}, _NUMERIC, convert)


def choice(*values: str) -> ValueType:
    """One of several strings."""

    def convert(value: str, key: str) -> str:
        if value not in values:
            raise invalid_choice(key, value, values)
        return value

    return ValueType(f"one of {', '.join(values)}", {"enum": list(values)}, (str,), convert)


def by_analyst(each: ValueType, words: str) -> ValueType:
    """A table with a value for each analyst."""

    def convert(value: dict[str, Any], key: str) -> dict[str, Any]:
        return {name: each.read(given, f"{key}.{name}") for name, given in value.items()}

    schema = {"type": "object", "additionalProperties": each.schema}
    return ValueType(words, schema, (dict,), convert)


def invalid_choice(key: str, value: str, choices: Collection[str]) -> ConfigError:
    """The error for a string that is none of the choices, with the nearest one as a suggestion."""
    otherwise = f"Use one of {', '.join(choices)}."
    return ConfigError(f"{key} cannot be {_quote(value)}.", **advice(value, choices, key, otherwise))


def _quote(value: Any) -> str:
    """A TOML value for a message, shortened."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    text = str(value)
    text = text if len(text) <= 40 else f"{text[:40]}..."
    return repr(text) if isinstance(value, str) else text
