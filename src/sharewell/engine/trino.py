"""Trino: one GROUP BY on a cluster that reads many stores. Not tested against a real one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from sqlglot import exp

from sharewell.engine.base import (
    CloudEngine,
    SourceColumn,
    columns_statement,
    if_written,
    is_nan_test,
    missing_driver,
    refuse_password,
    require_columns,
    table_of,
    within,
)
from sharewell.errors import SourceError

Type = exp.DataType.Type


class Trino(CloudEngine):
    """A table of one of Trino's catalogues. Text is compared byte by byte."""

    dialect = "trino"

    @classmethod
    def open(cls, address: str, table: str | None, wanted: Sequence[str], timeout: float) -> Trino:
        """Connect to trino://user@host:port/catalog/schema; the password is in TRINO_PASSWORD."""
        refuse_password(address, "set TRINO_PASSWORD")
        relation = table_of(table, cls.dialect)
        connection, rows = _connect(address, timeout), None
        name = exp.Literal.string(relation.name).sql(cls.dialect)
        schema = exp.Literal.string(relation.db).sql(cls.dialect) if relation.db else "current_schema"
        statement = columns_statement(relation, f"table_name = {name}", f"table_schema = {schema}")
        with suppress(Exception):
            rows = within(timeout, lambda: _run(connection, statement.sql(cls.dialect)))
        return cls(connection, relation, require_columns(rows, table), wanted, timeout)

    @staticmethod
    def describe(name: str, type_: str) -> SourceColumn:
        """Describe a column; char(n) loses the blanks that it is padded with."""
        value: exp.Condition = exp.column(name, quoted=True)
        built = exp.DataType.build(type_, dialect="trino", udt=True)
        if built.this is Type.TIMESTAMPTZ:
            return SourceColumn(name, built, _utc(value))
        if built.this is Type.CHAR or type_ == "uuid":
            text = exp.cast(value, Type.VARCHAR)
            return SourceColumn(
                name, exp.DataType.build("text"), exp.Trim(this=text, position="TRAILING")
            )
        return SourceColumn(name, built, value)

    def run(self, sql: str) -> Sequence[Sequence[Any]]:
        """Run a statement."""
        self._job = self._client.cursor()
        self._job.execute(sql)
        rows: Sequence[Sequence[Any]] = self._job.fetchall()
        return rows

    def cancel(self) -> None:
        """Stop the statement that runs."""
        with suppress(Exception):
            self._job.cancel()

    def adapt(self, node: exp.Expression) -> exp.Expression:
        """Return what stands for a node in Trino's dialect."""
        match node:
            case exp.TryCast() if node.to.this is Type.TIMESTAMPTZ:
                return if_written(node, _moment(node.this.copy()))
            case exp.TryCast():
                return if_written(node, node.copy())
            case exp.EQ() if is_nan_test(node):
                return exp.Anonymous(this="IS_NAN", expressions=[node.this])
            case exp.MD5():
                written = exp.Anonymous(this="TO_UTF8", expressions=[node.this])
                digest = exp.Anonymous(this="MD5", expressions=[written])
                return exp.Lower(this=exp.Anonymous(this="TO_HEX", expressions=[digest]))
        return node


def _utc(moment: exp.Expression | exp.Condition) -> exp.Anonymous:
    """Return a moment in UTC: its date would be that of its own time zone."""
    return exp.Anonymous(this="AT_TIMEZONE", expressions=[moment, exp.Literal.string("UTC")])


def _moment(text: exp.Expression) -> exp.Expression:
    signs = exp.Literal.string(" "), exp.Literal.string("T")
    iso = exp.Anonymous(this="REPLACE", expressions=[text, *signs])
    parsed = exp.Anonymous(this="FROM_ISO8601_TIMESTAMP", expressions=[iso])
    return exp.Anonymous(this="TRY", expressions=[_utc(parsed)])


def _connect(address: str, timeout: float) -> Any:
    try:
        from trino import auth, dbapi
    except ImportError:
        raise missing_driver("trino") from None
    parts, password = urlsplit(address), os.environ.get("TRINO_PASSWORD")
    place = [each for each in parts.path.split("/") if each]
    if parts.hostname is None or parts.username is None or len(place) != 2:
        raise SourceError(
            "The address of a Trino database is not complete.",
            hint="Write trino://user@host:port/catalog/schema.",
        )
    return dbapi.connect(
        host=parts.hostname,
        port=parts.port or (443 if password else 8080),
        user=parts.username,
        catalog=place[0],
        schema=place[1],
        http_scheme="https" if password else "http",
        auth=auth.BasicAuthentication(parts.username, password) if password else None,
        timezone="UTC",
        session_properties={"query_max_run_time": f"{max(1, int(timeout))}s"},
        request_timeout=min(timeout, 60.0),
    )


def _run(connection: Any, sql: str) -> list[tuple[str, str]]:
    cursor = connection.cursor()
    cursor.execute(sql)
    return [(str(name), str(type_)) for name, type_ in cursor.fetchall()]
