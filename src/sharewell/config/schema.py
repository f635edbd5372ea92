"""The JSON Schema of `sharewell.toml`, for editors: `python -m sharewell.config.schema` prints it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from sharewell.config.analysts import ANALYST_OPTIONS
from sharewell.config.attributes import (
    ATTRIBUTE_OPTIONS,
    ATTRIBUTE_TYPE,
    ATTRIBUTE_TYPES,
    MEASURE_OPTIONS,
)
from sharewell.config.config import BUDGET_OPTIONS, DATASET_OPTIONS
from sharewell.config.mechanism import MECHANISM_OPTIONS, SCHEDULER_OPTIONS
from sharewell.config.service import SERVICE_OPTIONS
from sharewell.config.view import VIEW_TABLE_OPTIONS
from sharewell.mechanisms.registry import MECHANISMS
from sharewell.options import Option
from sharewell.schedulers.registry import SCHEDULERS


def config_schema() -> dict[str, Any]:
    """The schema, generated from the declared options."""
    attributes = {name: options for name, (_, options) in ATTRIBUTE_TYPES.items()}
    tables: dict[str, Any] = {
        "dataset": _table(DATASET_OPTIONS),
        "tables": _named(_table(VIEW_TABLE_OPTIONS), least=0),
        "budget": _table(BUDGET_OPTIONS),
        "attributes": _named(_variants((ATTRIBUTE_TYPE, *ATTRIBUTE_OPTIONS), attributes)),
        "measures": _named(_table(MEASURE_OPTIONS), least=0),
        "analysts": _named(_table(ANALYST_OPTIONS)),
        "mechanism": _variants(
            MECHANISM_OPTIONS, {name: kind.options for name, kind in MECHANISMS.items()}
        ),
        "scheduler": _variants(
            SCHEDULER_OPTIONS, {name: kind.options for name, kind in SCHEDULERS.items()}
        ),
        "service": _table(SERVICE_OPTIONS),
    }
    tables["dataset"]["anyOf"] = [{"required": ["source"]}, {"required": ["view"]}]
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "sharewell.toml",
        "type": "object",
        "properties": tables,
        "required": ["dataset", "budget", "attributes", "analysts"],
        "additionalProperties": False,
    }


def _properties(options: Iterable[Option]) -> dict[str, Any]:
    """The schema of each option, with its meaning and default."""
    found: dict[str, Any] = {}
    for option in options:
        found[option.name] = {**option.type.schema, "description": option.help}
        if not option.required and option.default is not None:
            found[option.name]["default"] = option.default
    return found


def _table(options: tuple[Option, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": _properties(options),
        "required": [option.name for option in options if option.required],
        "additionalProperties": False,
    }


def _named(each: dict[str, Any], least: int = 1) -> dict[str, Any]:
    """A table of tables, by names that the file chooses."""
    return {"type": "object", "minProperties": least, "additionalProperties": each}


def _variants(common: tuple[Option, ...], kinds: Mapping[str, tuple[Option, ...]]) -> dict[str, Any]:
    """A table whose first common option selects which further options it has."""
    key = common[0]
    cases = []
    for name, options in kinds.items():
        selected: dict[str, Any] = {"properties": {key.name: {"const": name}}}
        if name != key.default:
            selected["required"] = [key.name]
        then: dict[str, Any] = {
            "properties": _properties(options),
            "propertyNames": {"enum": [option.name for option in (*common, *options)]},
            "required": [option.name for option in options if option.required],
        }
        cases.append({"if": selected, "then": then})
    required = [option.name for option in common if option.required]
    return {"type": "object", "properties": _properties(common), "required": required, "allOf": cases}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(config_schema(), indent=2, ensure_ascii=False) + "\n")
