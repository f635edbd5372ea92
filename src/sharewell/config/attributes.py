"""The tables [attributes] and [measures] of a configuration: their keys, and the domain."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, get_args

from sharewell.config.rounding import round_grid
from sharewell.config.section import Mistakes, Section, blame
from sharewell.errors import ConfigError, DomainError
from sharewell.options import BOOLEAN, REQUIRED, STRING, STRINGS, Option, ValueType, choice
from sharewell.query.attribute import Attribute, Binned, Boolean, Category, Date, Integer, Unit
from sharewell.query.domain import Domain
from sharewell.query.measure import MAX_STEPS_OF_MEASURE, Measure

# The attribute classes validate these values, so that the library and a file have the same rules.
_ANY = (str, int, Decimal, bool, list, dict, dt.date)
_INTEGER = ValueType("a whole number", {"type": "integer"}, _ANY)
_STARTS = ValueType(
    "a table of lists by name",
    {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"type": ["number", "string"]}},
    },
    _ANY,
)
_GROUPS = ValueType(
    "a table of tables of lists",
    {
        "type": "object",
        "additionalProperties": {"type": "object", "additionalProperties": STRINGS.schema},
    },
    _ANY,
)
# A TOML date; JSON has none, and editors pass it as a string.
_DATE = ValueType(
    "a date such as 2024-12-31", {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}"}, _ANY
)
_BINS = "named coarser groupings, which SQL can use like columns"

ATTRIBUTE_OPTIONS = (
    Option("nullable", BOOLEAN, False, "whether NULL has a cell of its own"),
    Option(
        "other",
        ValueType("a string", {"type": "string"}, _ANY),
        None,
        "label of a cell for all other values",
        unset="rows with other values are dropped",
    ),
)
ATTRIBUTE_TYPES: Mapping[str, tuple[type[Attribute], tuple[Option, ...]]] = {
    "integer": (
        Integer,
        (
            Option("low", _INTEGER, REQUIRED, "smallest value"),
            Option("high", _INTEGER, REQUIRED, "largest value"),
            Option("bins", _STARTS, None, _BINS, unset="none"),
        ),
    ),
    "binned": (
        Binned,
        (
            Option(
                "cuts",
                ValueType("a list of numbers", {"type": "array", "items": {"type": "number"}}, _ANY),
                REQUIRED,
                "edges of the bins; a bin contains its lower edge",
            ),
            Option("bins", _STARTS, None, _BINS, unset="none"),
        ),
    ),
    "category": (
        Category,
        (
            Option(
                "categories",
                ValueType("a list of strings", STRINGS.schema, _ANY),
                REQUIRED,
                "the values, exactly as in the column",
            ),
            Option("bins", _GROUPS, None, _BINS, unset="none"),
        ),
    ),
    "boolean": (Boolean, ()),
    "date": (
        Date,
        (
            Option("start", _DATE, REQUIRED, "first day"),
            Option("end", _DATE, REQUIRED, "last day"),
            Option(
                "by",
                ValueType(f"one of {', '.join(get_args(Unit))}", {"enum": list(get_args(Unit))}, _ANY),
                None,
                "period of a cell",
                unset="day",
            ),
            Option("bins", _STARTS, None, _BINS, unset="none"),
        ),
    ),
}

_NUMBER = ValueType("a number", {"type": "number"}, (int, Decimal))
MEASURE_OPTIONS = (
    Option("column", STRING, None, "column with the values", unset="NAME"),
    Option("low", _NUMBER, REQUIRED, "smallest value; smaller ones count as this"),
    Option("high", _NUMBER, REQUIRED, "largest value; larger ones count as this"),
    Option("step", _NUMBER, REQUIRED, "values are rounded to multiples of it, counted from low"),
    Option(
        "nullable", BOOLEAN, True, "whether rows without a value are counted; otherwise they are dropped"
    ),
    Option("square", BOOLEAN, False, "whether its square is summed too, for STDDEV and VARIANCE"),
    Option(
        "products",
        STRINGS,
        None,
        "measures that it is multiplied with, for CORR, COVAR and REGR",
        unset="none",
    ),
)

ATTRIBUTE_TYPE = Option("type", choice(*ATTRIBUTE_TYPES), REQUIRED, "type of the column")


def read_domain(section: Section, summed: Section) -> Domain:
    """The domain of the described attributes and measures."""
    mistakes = Mistakes()
    attributes = [mistakes.of(partial(_read_attribute, section, name)) for name in section]
    declared = [mistakes.of(partial(_read_measure, summed, name)) for name in summed]
    mistakes.check()
    if not attributes:
        raise ConfigError(
            "No attributes are described.",
            hint='Describe one: [attributes.age] with type = "integer", low = 0 and high = 85.',
        )
    measures = [measure for measure, _ in declared]
    products = [pair for _, pairs in declared for pair in pairs]
    return blame("attributes", lambda: Domain(attributes, measures, products))


def _read_attribute(parent: Section, name: str) -> Attribute:
    section = parent.section(name)
    kind, options = ATTRIBUTE_TYPES[section.read(ATTRIBUTE_TYPE)]
    # The class reports what is missing.
    given = section.read_only((*options, *ATTRIBUTE_OPTIONS), given=True)
    return blame(section.path, lambda: kind(name, **given))


def _read_measure(parent: Section, name: str) -> tuple[Measure, list[tuple[str, str]]]:
    """A measure, and the pairs of its products: with itself, if its square is declared."""
    section = parent.section(name)
    values = section.read_only(MEASURE_OPTIONS)
    has_square, others = values.pop("square"), values.pop("products") or []
    try:
        measure = Measure(name, **values | {"column": values["column"] or name})
    except DomainError as error:
        raise ConfigError(
            f"{section.path}: {error.message}", hint=f"{error.hint} {_example(**values)}".strip()
        ) from None
    for other in others:
        if other not in parent:
            raise ConfigError(
                f"{section.path}.products: unknown measure {other!r}.",
                hint=f"The measures are {', '.join(parent)}.",
            )
        if other == name:
            raise ConfigError(
                f"{section.path}.products: {name!r} is the measure itself.", hint="Write square = true."
            )
    return measure, [(name, other) for other in ([name] if has_square else []) + list(others)]


def _example(low: Decimal, high: Decimal, step: Decimal, **_: Any) -> str:
    """Bounds and a step like those given, which a measure can have; empty where they make no sense."""
    if not (all(map(math.isfinite, (low, high, step))) and low < high and step > 0):
        return ""
    span = Fraction(high) - Fraction(low)
    grid = round_grid(Fraction(low), Fraction(high), max(Fraction(step), span / MAX_STEPS_OF_MEASURE))
    return f"For example, {grid}."
