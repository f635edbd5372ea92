"""Snowflake: one GROUP BY in a warehouse. Not tested against the service."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sqlglot import exp

from sharewell.engine.base import (
    CloudEngine,
    SourceColumn,
    columns_statement,
    if_written,
    missing_driver,
    refuse_password,
    require_columns,
    table_of,
    within,
)
from sharewell.errors import SourceError

Type = exp.DataType.Type

#: The types of the catalogue, as sqlglot spells them.
TYPES = {"TEXT": "text", "NUMBER": "decimal", "FLOAT": "double", "BOOLEAN": "boolean", "DATE": "date"}


#: The functions that convert text without failing.
TRIES = {
    Type.DOUBLE: "TRY_TO_DOUBLE",
    Type.DATE: "TRY_TO_DATE",
    Type.TIMESTAMPTZ: "TRY_TO_TIMESTAMP_TZ",
}


class Snowflake(CloudEngine):
    """A table of a Snowflake database."""

    dialect = "snowflake"

    @classmethod
    def open(cls, address: str, table: str | None, wanted: Sequence[str], timeout: float) -> Snowflake:
        """Connect to snowflake://user@account/database/schema?warehouse=name."""
        refuse_password(address, "set SNOWFLAKE_PASSWORD")
        relation = table_of(table, cls.dialect)
        connection, rows = _connect(address, timeout), None
        name = exp.Literal.string(relation.name).sql(cls.dialect)
        schema = exp.Literal.string(relation.db).sql(cls.dialect) if relation.db else "CURRENT_SCHEMA()"
        statement = columns_statement(
            relation, f"table_name = UPPER({name})", f"table_schema = UPPER({schema})"
        )
        with suppress(Exception):
            rows = within(timeout, lambda: _run(connection, statement.sql(cls.dialect)))
        return cls(connection, relation, require_columns(rows, table), wanted, timeout)

    @staticmethod
    def describe(name: str, type_: str) -> SourceColumn:
        """Describe a column; an empty collation compares text byte by byte."""
        value: exp.Condition = exp.column(name, quoted=True)
        if type_.startswith("TIMESTAMP"):
            ours = "timestamp" if type_ == "TIMESTAMP_NTZ" else "timestamptz"
            return SourceColumn(
                name, exp.DataType.build(ours), value if ours == "timestamp" else _utc(value)
            )
        if type_ == "TEXT":
            value = exp.Anonymous(this="COLLATE", expressions=[value, exp.Literal.string("")])
        return SourceColumn(name, exp.DataType.build(TYPES.get(type_, "unknown")), value)

    def run(self, sql: str) -> Sequence[Sequence[Any]]:
        """Run a statement."""
        rows: Sequence[Sequence[Any]] = self._client.cursor().execute(sql).fetchall()
        return rows

    def cancel(self) -> None:
        """Close the connection; the service gives up at STATEMENT_TIMEOUT_IN_SECONDS."""
        self.close()

    def adapt(self, node: exp.Expression) -> exp.Expression:
        """Return what stands for a node in Snowflake's dialect."""
        match node:
            case exp.TryCast():
                # TRY_CAST takes only what is known to be text.
                name = TRIES[node.to.this]
                converted = exp.Anonymous(this=name, expressions=[node.this.copy()])
                is_moment = node.to.this is Type.TIMESTAMPTZ
                return if_written(node, _utc(converted) if is_moment else converted)
        return node


def _utc(moment: exp.Expression | exp.Condition) -> exp.Anonymous:
    """Return a moment in UTC: its date would be that of its own time zone."""
    zone = exp.Literal.string("UTC")
    return exp.Anonymous(this="CONVERT_TIMEZONE", expressions=[zone, moment])


def _connect(address: str, timeout: float) -> Any:
    try:
        import snowflake.connector
    except ImportError:
        raise missing_driver("snowflake") from None
    parts = urlsplit(address)
    place = [each for each in parts.path.split("/") if each]
    if parts.hostname is None or parts.username is None or len(place) != 2:
        raise SourceError(
            "The address of a Snowflake database is not complete.",
            hint="Write snowflake://user@account/database/schema?warehouse=name.",
        )
    given = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    connection = None
    with suppress(Exception):
        connection = within(
            min(timeout, 60.0),
            lambda: snowflake.connector.connect(
                account=parts.hostname,
                user=parts.username,
                password=os.environ.get("SNOWFLAKE_PASSWORD"),
                database=place[0],
                schema=place[1],
                warehouse=given.get("warehouse"),
                role=given.get("role"),
                session_parameters={
                    "TIMEZONE": "UTC",
                    "STATEMENT_TIMEOUT_IN_SECONDS": max(1, int(timeout)),
                },
            ),
            discard=lambda late: late.close(),
        )
    if connection is None:
        raise SourceError(
            "Cannot connect to Snowflake.", hint="Check the address and SNOWFLAKE_PASSWORD."
        )
    return connection


def _run(connection: Any, sql: str) -> list[tuple[str, str]]:
    rows = connection.cursor().execute(sql).fetchall()
    return [(str(name), str(type_)) for name, type_ in rows]
