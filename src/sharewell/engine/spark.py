"""Spark: one GROUP BY on a cluster, by Spark Connect, or in this machine."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from contextlib import suppress
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sharewell.engine.base import (
    SourceColumn,
    SqlEngine,
    choose_columns,
    if_written,
    is_look_up,
    missing_driver,
    table_of,
    within,
)
from sharewell.errors import SourceError

Type = exp.DataType.Type

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    # No expression may fail on some rows.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
}


class Spark(SqlEngine):
    """A table of Spark's catalogue, or files such as parquet.`/data/visits`."""

    dialect = "spark"
    has_maps = True
    slow_to_open = True

    def __init__(self, address: str, table: str | None, wanted: Sequence[str], timeout: float) -> None:
        if table is None:
            raise SourceError(
                "Spark requires `table`.",
                hint='Set it, as in "clinic.visits" or "parquet.`/data/visits`".',
            )
        relation = table_of(table, self.dialect)
        self._session, self._started = _session(address, timeout)
        fields = None
        with suppress(Exception):
            fields = within(timeout, lambda: self._described(relation), self.cancel)
        try:
            if fields is None:
                raise SourceError(f"Spark has no table {table!r}.", hint="Check `table`.")
            columns = choose_columns(wanted, fields, _column)
        except SourceError:
            self.close()
            raise
        super().__init__(relation, columns, timeout)

    def _described(self, relation: exp.Table) -> list[tuple[str, str]]:
        for key, value in SETTINGS.items():
            self._session.conf.set(key, value)
        empty = exp.select("*").from_(relation).limit(0)
        schema = self._session.sql(empty.sql(self.dialect)).schema
        return [(field.name, field.dataType.simpleString()) for field in schema.fields]

    def run(self, sql: str) -> Sequence[Sequence[Any]]:
        """Run a statement; only its result leaves Spark."""
        table = self._session.sql(sql).toArrow()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def version(self) -> str | None:
        """Return the files that the table is read from; other tables say nothing."""
        files = self._session.sql(exp.select("*").from_(self.relation).sql(self.dialect)).inputFiles()
        return repr(sorted(files)) if files else None

    def cancel(self) -> None:
        """Stop all jobs of the session."""
        with suppress(Exception):
            self._session.interruptAll()

    def close(self) -> None:
        """Stop the session, unless it was there before."""
        if self._started:
            self._session.stop()

    def adapt(self, node: exp.Expression) -> exp.Expression:
        """Return what stands for a node in Spark's dialect."""
        match node:
            case exp.TryCast():
                return if_written(node, node.copy())
            case exp.Anonymous() if is_look_up(node):
                return _look_up(*node.expressions)
        return node


def _session(address: str, timeout: float) -> tuple[Any, bool]:
    """Return the session of an address, and whether it was started here."""
    try:
        from pyspark.sql import SparkSession

        if address.startswith("sc://"):
            # Fails without the packages that Spark Connect needs beside pyspark.
            import pyspark.sql.connect.session  # noqa: F401
    except ImportError:
        raise missing_driver("spark") from None
    with suppress(Exception):
        # Of any thread: what is measured in place is opened in one of its own.
        return SparkSession.active(), False
    builder: Any = SparkSession.builder.appName("sharewell").config("spark.ui.enabled", "false")
    builder = builder.remote(address) if address.startswith("sc://") else builder.master(address)
    if address.startswith("local"):
        # By default a folder in the working directory.
        folder = mkdtemp(prefix="sharewell-spark-")
        atexit.register(rmtree, folder, ignore_errors=True)
        builder = builder.config("spark.sql.warehouse.dir", folder)
    session = None
    with suppress(Exception):
        session = within(min(timeout, 120.0), builder.getOrCreate, discard=lambda late: late.stop())
    if session is None:
        raise SourceError(
            "Cannot connect to Spark.", hint="Check the address, and that Java 17 or newer is installed."
        )
    return session, True


def _look_up(labels: exp.Expression, written: exp.Expression) -> exp.Expression:
    """Return the least cell of a label, which Spark finds by a join; maps of its own it would search."""
    parsed = exp.Anonymous(this="from_json", expressions=[labels, exp.Literal.string("map<string,int>")])
    listed = exp.select(exp.Anonymous(this="explode", expressions=[parsed]))
    same = exp.EQ(this=exp.column("key", table="labels"), expression=written)
    cell = exp.Min(this=exp.column("value", table="labels"))
    return exp.select(cell).from_(listed.subquery("labels")).where(same).subquery()


def _column(name: str, type_: str) -> SourceColumn:
    """Describe a column; text of another collation is compared byte by byte."""
    value: exp.Condition = exp.column(name, quoted=True)
    if type_.startswith("string collate"):
        value = exp.Collate(this=value, expression=exp.to_identifier("UTF8_BINARY"))
        return SourceColumn(name, exp.DataType.build("text"), exp.paren(value))
    try:
        return SourceColumn(name, exp.DataType.build(type_, dialect="spark"), value)
    except SqlglotError:
        return SourceColumn(name, exp.DataType.build("unknown"), value)
