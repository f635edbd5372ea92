"""Regenerate docs/sharewell.schema.json and the table of keys in docs/configuration.md.

Both follow from the options that the code declares; tests/config/test_schema.py compares them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from sharewell.config.analysts import ANALYST_OPTIONS
from sharewell.config.attributes import (
    ATTRIBUTE_OPTIONS,
    ATTRIBUTE_TYPE,
    ATTRIBUTE_TYPES,
    MEASURE_OPTIONS,
)
from sharewell.config.config import BUDGET_OPTIONS, DATASET_OPTIONS
from sharewell.config.mechanism import MECHANISM_OPTIONS, SCHEDULER_OPTIONS
from sharewell.config.schema import config_schema
from sharewell.config.service import SERVICE_OPTIONS
from sharewell.config.template import toml_value
from sharewell.config.view import VIEW_TABLE_OPTIONS
from sharewell.mechanisms.registry import MECHANISMS
from sharewell.options import Option
from sharewell.schedulers.registry import SCHEDULERS

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- keys: scripts/config_reference.py -->", "<!-- end of keys -->"


def schema_text() -> str:
    """The schema as it is committed."""
    return json.dumps(config_schema(), indent=2, ensure_ascii=False) + "\n"


def keys_table() -> str:
    """Every key, what it does, its type and its default, as Markdown."""
    lines = ["| key | meaning | value | default |", "|---|---|---|---|"]
    for key, option, kinds in _keys():
        only = f" (`{'`, `'.join(kinds)}`)" if kinds else ""
        lines.append(f"| `{key}` | {option.help}{only} | {_value(option)} | {_default(option)} |")
    return "\n".join(lines) + "\n"


def _value(option: Option) -> str:
    """The type of an option, shorter than in an error: a column of them needs no articles."""
    words = option.type.words.replace("|", "\\|").replace("a string in quotes", "string")
    words = words.replace("true or false", "boolean").removesuffix(' such as 0.1 or "1/3"')
    return re.sub(r"^(?:a (?:whole )?number from|one of|an?) ", "", words)


def _default(option: Option) -> str:
    if option.required:
        return "required"
    return option.unset if option.default is None else f"`{toml_value(option.default)}`"


def _keys() -> Iterator[tuple[str, Option, tuple[str, ...]]]:
    """Each key with its option, and the kinds that have it, where not all do."""
    attributes = {name: options for name, (_, options) in ATTRIBUTE_TYPES.items()}
    mechanisms = {name: kind.options for name, kind in MECHANISMS.items()}
    schedulers = {name: kind.options for name, kind in SCHEDULERS.items()}
    yield from _plain("dataset", DATASET_OPTIONS)
    yield from _plain("tables.NAME", VIEW_TABLE_OPTIONS)
    yield from _plain("budget", BUDGET_OPTIONS)
    yield from _plain("attributes.NAME", (ATTRIBUTE_TYPE, *ATTRIBUTE_OPTIONS))
    yield from _varying("attributes.NAME", attributes)
    yield from _plain("measures.NAME", MEASURE_OPTIONS)
    yield from _plain("analysts.NAME", ANALYST_OPTIONS)
    yield from _plain("mechanism", MECHANISM_OPTIONS)
    yield from _varying("mechanism", mechanisms)
    yield from _plain("scheduler", SCHEDULER_OPTIONS)
    yield from _varying("scheduler", schedulers)
    yield from _plain("service", SERVICE_OPTIONS)


def _plain(table: str, options: tuple[Option, ...]) -> Iterator[tuple[str, Option, tuple[str, ...]]]:
    for option in options:
        yield f"{table}.{option.name}", option, ()


def _varying(
    table: str, kinds: Mapping[str, tuple[Option, ...]]
) -> Iterator[tuple[str, Option, tuple[str, ...]]]:
    """Options of some kinds only, each once for all kinds where it is the same."""
    found: dict[tuple[str, str], tuple[Option, list[str]]] = {}
    for kind, options in kinds.items():
        for option in options:
            found.setdefault((option.name, option.type.words), (option, []))[1].append(kind)
    for option, names in found.values():
        yield f"{table}.{option.name}", option, tuple(names)


def with_table(page: str) -> str:
    """The page with the table between its marks replaced."""
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n\n{keys_table()}\n{END}{after}"


if __name__ == "__main__":
    (DOCS / "sharewell.schema.json").write_text(schema_text(), encoding="utf-8")
    page = DOCS / "configuration.md"
    page.write_text(with_table(page.read_text(encoding="utf-8")), encoding="utf-8")
