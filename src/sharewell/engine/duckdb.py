"""The embedded engine: DuckDB, in memory, shut off from all but its one source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sharewell.engine.base import CellCounts, Column, positions, render
from sharewell.errors import SourceError

SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    # It hands a TRY_CAST to the CSV reader as a plain cast, which fails on text that is no number.
    "disabled_optimizers": "type_pushdown",
    # An object column of pandas is text, whatever its first rows hold.
    "pandas_analyze_sample": 0,
    "python_enable_replacements": False,
    # Rows must not spill into a directory that the curator does not know of.
    "temp_directory": "",
}

#: Types by names that sqlglot knows.
OTHER_NAMES = {'"NULL"': "NULL", "TIMESTAMPTZ_NS": "TIMESTAMPTZ"}


class DuckDB:
    """A session of its own, whose view `source` has the columns asked for, as c0, c1, ...

    Whatever goes wrong raises the one error that it was given. DuckDB's own words may quote a row, so
    they must not even be the context of that error: it is raised after the handler, not inside.
    """

    dialect = "duckdb"

    def __init__(self, unreadable: SourceError) -> None:
        self._unreadable = unreadable
        self._columns: dict[str, Column] = {}
        self._connection = duckdb.connect(config=SETTINGS)
        self.run("SET TimeZone = 'UTC'")
        self.run("SET enable_progress_bar = false")

    @property
    def relation(self) -> exp.Table:
        """The view."""
        return exp.to_table("source")

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns of the view."""
        return self._columns

    def run(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        with suppress(Exception):
            return self._connection.execute(sql, parameters).fetchall()
        raise self._unreadable

    def fetch(self, statement: exp.Select) -> CellCounts:
        """The cells and their counts."""
        sql = render(statement, self.dialect)
        with suppress(Exception):
            found = self._connection.execute(sql).fetchnumpy()
            return np.asarray(found["cell"], dtype=np.int64), np.asarray(found["count"], dtype=np.int64)
        raise self._unreadable

    def register(self, frame: object) -> exp.Table:
        """Take in a data frame, without copying it."""
        with suppress(Exception):
            self._connection.register("frame", frame)
            return exp.to_table("frame")
        raise self._unreadable

    def view(self, origin: exp.Table, wanted: Sequence[str], names: Sequence[str] = ()) -> None:
        """Make `source` of an origin's columns; `names` are their true ones, where DuckDB has others."""
        rows = self.run("DESCRIBE " + exp.select("*").from_(origin).sql(self.dialect))
        own = [name for name, *_ in rows]
        types = [_type(text) for _, text, *_ in rows]
        names = names or own
        found = positions(wanted, names)
        values = [_binary(exp.column(own[p], quoted=True), types[p]) for p in found]
        select = exp.select(*(value.as_(f"c{i}") for i, value in enumerate(values))).from_(origin)
        self.run("CREATE TEMP VIEW source AS " + select.sql(self.dialect))
        self._columns = {
            asked: Column(names[p], types[p], exp.column(f"c{i}", table="source"))
            for i, (asked, p) in enumerate(zip(wanted, found, strict=True))
        }

    def seal(self, *allowed: Path) -> None:
        """Forbid every other file from now on, whatever a view in a database may ask for."""
        paths = exp.convert([str(path) for path in allowed]).sql(self.dialect)
        self.run(f"SET allowed_paths = {paths}")
        self.run("SET enable_external_access = false")
        self.run("SET lock_configuration = true")

    def close(self) -> None:
        """End the session."""
        self._connection.close()


def _type(text: str) -> exp.DataType:
    try:
        return exp.DataType.build(OTHER_NAMES.get(text, text), dialect="duckdb")
    except SqlglotError:
        return exp.DataType.build(text, udt=True)


def _binary(column: exp.Column, type_: exp.DataType) -> exp.Condition:
    """A column without the collation that its table may have given it."""
    if type_.this not in exp.DataType.TEXT_TYPES:
        return column
    return exp.Collate(this=column, expression=exp.to_identifier("binary", quoted=True))
