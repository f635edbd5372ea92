"""The table [tables] of a configuration: the tables of a person view."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sharewell.config.section import Section, blame
from sharewell.engine.sources import CsvFormat, is_address
from sharewell.engine.view_tables import ViewTable
from sharewell.engine.view_text import ViewText
from sharewell.errors import ConfigError
from sharewell.options import BOOLEAN, STRING, Option, choice

#: How a .csv file is written, of a dataset and of each table of a view.
CSV_OPTIONS = (
    Option("delimiter", STRING, None, "field separator of a .csv file", unset="a comma"),
    Option("encoding", choice("utf-8", "latin-1"), None, "encoding of a .csv file", unset="utf-8"),
)
VIEW_TABLE_OPTIONS = (
    Option("unit", STRING, None, "column that identifies the person", unset="required, unless public"),
    Option("public", BOOLEAN, False, "whether it has no data about people"),
    Option(
        "source",
        STRING,
        None,
        "file with its rows; tables of different databases cannot be joined",
        unset="dataset.source",
    ),
    Option("table", STRING, None, "its name in the database, or sheet of a workbook", unset="NAME"),
    *CSV_OPTIONS,
)


def read_view(section: Section, dataset: Mapping[str, Any], folder: Path) -> dict[str, ViewTable]:
    """The tables of a view; none without a view."""
    if dataset["view"] is None:
        if list(section):
            raise ConfigError(
                "[tables] requires dataset.view.", hint="Write the SELECT that joins the tables."
            )
        return {}
    if dataset["privacy_unit"] is None:
        raise ConfigError(
            "dataset.view requires dataset.privacy_unit.",
            hint="Name the column of the view that identifies the person.",
        )
    for key in ("table", "delimiter", "encoding"):
        if dataset[key] is not None:
            raise ConfigError(
                f"dataset.{key} and dataset.view are mutually exclusive.",
                hint=f"Set tables.NAME.{key}.",
            )
    tables: dict[str, ViewTable] = {}
    for name, each in section.sections():
        values = each.read_only(VIEW_TABLE_OPTIONS)
        check_delimiter(values["delimiter"], each.path)
        source = values["source"] or dataset["source"]
        if source is None:
            raise ConfigError(
                f"{each.path}.source is missing.", hint="Set it, or dataset.source for all tables."
            )
        if values["public"] == (values["unit"] is not None):
            raise ConfigError(
                f"{each.path} needs either `unit` or `public = true`.",
                hint="`unit` names the column of the person; a public table has no data about people.",
            )
        tables[name] = ViewTable(
            source if is_address(source) else folder / source,
            values["unit"],
            values["public"],
            values["table"],
            csv_format_of(values["delimiter"], values["encoding"]),
        )
    if all(each.public for each in tables.values()):
        raise ConfigError(
            "dataset.view has no private table.",
            hint='Declare its tables: [tables.visits] with unit = "person".',
        )
    blame("dataset.view", lambda: ViewText.parse(dataset["view"]))
    return tables


def check_delimiter(delimiter: str | None, key: str) -> None:
    """Refuse a delimiter that is not one character."""
    if len(delimiter or ",") != 1:
        raise ConfigError(f"{key}.delimiter must be a single character.", hint='For example, ";".')


def csv_format_of(delimiter: str | None, encoding: str | None) -> CsvFormat | None:
    """How a CSV file is written, if either is given."""
    given = {"delimiter": delimiter, "encoding": encoding}
    said = {key: value for key, value in given.items() if value is not None}
    return CsvFormat(**said) if said else None
