"""The embedded engine: an in-memory DuckDB session that can read only its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sharewell.engine.base import Columns, SourceColumn, find_columns, version_of_files
from sharewell.errors import SourceError

SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    # This optimizer turns a TRY_CAST into a plain cast in the CSV reader, which fails on other text.
    "disabled_optimizers": "type_pushdown",
    # Read object columns of pandas as text, regardless of their first rows.
    "pandas_analyze_sample": 0,
    "python_enable_replacements": False,
    # Rows must not spill to disk.
    "temp_directory": "",
}

#: DuckDB's type names, as sqlglot spells them.
TYPE_NAMES = {'"NULL"': "NULL", "TIMESTAMPTZ_NS": "TIMESTAMPTZ"}


class DuckDB:
    """A session whose view `source` has the requested columns as c0, c1, ...

    Privacy: every failure raises the one error given at construction. DuckDB's messages may quote a
    row, so they must not even be its context: it is raised after the handler, not inside.
    """

    dialect = "duckdb"
    has_enumerations = True
    has_maps = False
    slow_to_open = False

    def __init__(self, unreadable: SourceError) -> None:
        self.unreadable = unreadable
        #: The files that the rows are in.
        self.files: Sequence[Path] = ()
        self._name = "source"
        self._attached: dict[Path, str] = {}
        self._columns: dict[str, SourceColumn] = {}
        self._connection = duckdb.connect(config=SETTINGS)
        self.run("SET TimeZone = 'UTC'")
        self.run("SET enable_progress_bar = false")

    @property
    def relation(self) -> exp.Table:
        """The view."""
        return exp.to_table(self._name)

    @property
    def columns(self) -> Mapping[str, SourceColumn]:
        """The columns of the view."""
        return self._columns

    def run(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return all rows."""
        with suppress(Exception):
            return self._connection.execute(sql, parameters).fetchall()
        raise self.unreadable

    def fetch(self, statement: exp.Select) -> Columns:
        """Run a statement and return its columns."""
        with suppress(Exception):
            # Not copied first: that takes as long as counting 50,000 rows.
            sql = statement.sql(self.dialect, copy=False)
            found = self._connection.execute(sql).fetchnumpy()
            return {name: np.asarray(column) for name, column in found.items()}
        raise self.unreadable

    def rows(self, statement: exp.Select) -> Sequence[Sequence[Any]]:
        """Run a statement and return its rows."""
        return self.run(statement.sql(self.dialect))

    def register(self, frame: object) -> exp.Table:
        """Register a data frame without copying it."""
        with suppress(Exception):
            self._connection.register(f"{self._name}_frame", frame)
            return exp.to_table(f"{self._name}_frame")
        raise self.unreadable

    def attach(self, path: Path) -> str:
        """Attach a database, once, and return the name of its catalogue."""
        if path not in self._attached:
            name = f"data{len(self._attached) or ''}"
            self.run(f"ATTACH {exp.Literal.string(str(path)).sql(self.dialect)} AS {name} (READ_ONLY)")
            self._attached[path] = name
        return self._attached[path]

    def view(self, origin: exp.Table, wanted: Sequence[str], names: Sequence[str] = ()) -> None:
        """Create the view `source`; `names` are the true column names, if DuckDB changed them."""
        rows = self.run("DESCRIBE " + exp.select("*").from_(origin).sql(self.dialect))
        own = [name for name, *_ in rows]
        types = [_type(text) for _, text, *_ in rows]
        names = names or own
        found = find_columns(wanted, names)
        values = [_binary(exp.column(own[p], quoted=True), types[p]) for p in found]
        select = exp.select(*(value.as_(f"c{i}") for i, value in enumerate(values))).from_(origin)
        self.run(f"CREATE TEMP VIEW {self._name} AS " + select.sql(self.dialect))
        self._columns = {
            asked: SourceColumn(names[p], types[p], exp.column(f"c{i}", table=self._name))
            for i, (asked, p) in enumerate(zip(wanted, found, strict=True))
        }

    def seal(self, *allowed: Path) -> None:
        """Forbid access to all other files, including by views of a database."""
        paths = exp.convert([str(path) for path in allowed]).sql(self.dialect)
        self.run(f"SET allowed_paths = {paths}")
        self.run("SET enable_external_access = false")
        self.run("SET lock_configuration = true")

    def version(self) -> str | None:
        """Return sizes and times of the files; a data frame says nothing."""
        return version_of_files(self.files) if self.files else None

    def cancel(self) -> None:
        """Stop the statement that runs."""
        self._connection.interrupt()

    def close(self) -> None:
        """Close the session."""
        self._connection.close()


def _type(text: str) -> exp.DataType:
    try:
        return exp.DataType.build(TYPE_NAMES.get(text, text), dialect="duckdb")
    except SqlglotError:
        return exp.DataType.build(text, udt=True)


def _binary(column: exp.Column, type_: exp.DataType) -> exp.Condition:
    """Override the collation of a text column."""
    if type_.this not in exp.DataType.TEXT_TYPES:
        return column
    return exp.Collate(this=column, expression=exp.to_identifier("binary", quoted=True))
