"""ClickHouse: one GROUP BY on a server, or in this process by chDB."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from sqlglot import exp

from sharewell.engine.base import (
    SourceColumn,
    SqlEngine,
    choose_columns,
    if_written,
    is_look_up,
    is_nan_test,
    missing_driver,
    refuse_password,
    require_columns,
    table_of,
    within,
)
from sharewell.errors import SourceError

Type = exp.DataType.Type

#: What a profile may have limits for.
OVERFLOWS = ("timeout", "read", "group_by", "sort", "result", "join", "set", "distinct", "transfer")

SETTINGS: dict[str, Any] = {
    "session_timezone": "UTC",
    "join_use_nulls": 1,
    "cast_keep_nullable": 1,
    "prefer_column_name_to_alias": 1,
    "count_distinct_implementation": "uniqExact",
    # A branch of CASE is evaluated only where it is taken, so that none can fail on other rows.
    "short_circuit_function_evaluation": "force_enable",
    # A part of the rows is no answer: not that of a cache, nor what was found when a limit was reached.
    "use_query_cache": 0,
    "skip_unavailable_shards": 0,
    **{f"{what}_overflow_mode": "throw" for what in OVERFLOWS},
    # Many labels make a long statement.
    "max_query_size": 2**28,
    "readonly": 2,
}

#: Types around others that change how values are stored, and not what they are.
WRAPPERS = re.compile(r"^(?:Nullable|LowCardinality)\((.*)\)$")
#: ClickHouse's types by the names that all dialects know.
TYPES = {
    "String": "text",
    "UUID": "uuid",
    "Bool": "boolean",
    "Date": "date",
    "Date32": "date",
    **{
        f"Int{bits}": name
        for bits, name in ((8, "tinyint"), (16, "smallint"), (32, "int"), (64, "bigint"))
    },
    **{
        f"UInt{bits}": name
        for bits, name in ((8, "utinyint"), (16, "usmallint"), (32, "uint"), (64, "ubigint"))
    },
    "Float32": "float",
    "Float64": "double",
}

#: The integers that expressions are cast to.
INTEGERS = {Type.TINYINT: "Int8", Type.SMALLINT: "Int16", Type.INT: "Int32", Type.BIGINT: "Int64"}

#: The years of a Date32.
YEARS = (1900, 2299)


class ClickHouse(SqlEngine):
    """A table of a ClickHouse database."""

    dialect = "clickhouse"
    has_maps = True

    def __init__(self, address: str, table: str | None, wanted: Sequence[str], timeout: float) -> None:
        refuse_password(address, "set CLICKHOUSE_PASSWORD")
        relation = table_of(table, self.dialect)
        self._client = _client(address, timeout)
        self._settings = SETTINGS | {"max_execution_time": max(1, int(timeout))}
        self._fix_session(timeout)
        rows = None
        with suppress(Exception):
            describe = f"DESCRIBE TABLE {relation.sql(self.dialect)}"
            found = within(timeout, lambda: self.run(describe))
            rows = [(str(name), str(type_)) for name, type_, *_ in found]
        try:
            columns = choose_columns(wanted, require_columns(rows, table), _column)
        except SourceError:
            self.close()
            raise
        super().__init__(relation, columns, timeout)

    def _fix_session(self, timeout: float) -> None:
        """Refuse a server that does not take the settings: it may be too old, or the user confined."""
        with suppress(Exception):
            within(timeout, lambda: self.run("SELECT 1"))
            return
        self.close()
        raise SourceError(
            "The server does not let this user change settings.",
            hint="Use ClickHouse 23.8 or newer, and a profile with readonly = 2 and not 1.",
        )

    def run(self, sql: str) -> Sequence[Sequence[Any]]:
        """Run a statement."""
        rows: Sequence[Sequence[Any]] = self._client.query(sql, settings=self._settings).result_rows
        return rows

    def version(self) -> str | None:
        """Return the latest blocks of the table and its number of rows; merges change neither."""
        table = exp.column("table").eq(exp.Literal.string(self.relation.name))
        database = exp.Literal.string(self.relation.db) if self.relation.db else "currentDatabase()"
        place = exp.and_(table, exp.column("database").eq(database))
        parts = exp.select("sum(rows)", "max(max_block_number)", "max(data_version)")
        tables = exp.select("uuid", "total_rows").from_("system.tables").where(place)
        found = [
            self.run(each.sql(self.dialect))
            for each in (parts.from_("system.parts").where("active", place), tables)
        ]
        return repr(found) if found[1] else None

    def cancel(self) -> None:
        """Close the connection; the server gives up at `max_execution_time`."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        with suppress(Exception):
            self._client.close()

    def adapt(self, node: exp.Expression) -> exp.Expression:
        """Return what stands for a node in ClickHouse's dialect."""
        match node:
            case exp.TryCast() if node.to.this is Type.DOUBLE:
                trimmed = exp.Trim(this=node.this.copy())
                return if_written(node, exp.Anonymous(this="toFloat64OrNull", expressions=[trimmed]))
            case exp.TryCast():
                return if_written(node, *_converted(node))
            case exp.EQ() if is_nan_test(node):
                return exp.Coalesce(
                    this=exp.Anonymous(this="isNaN", expressions=[node.this]), expressions=[exp.false()]
                )
            case exp.Cast() if node.to.this is Type.DATE:
                return _date(node.this)
            case exp.Cast() if node.to.this in INTEGERS:
                # A cast is computed for NULL too, from what is stored beneath, and fails on infinity.
                integer = exp.Literal.string(INTEGERS[node.to.this])
                return exp.Anonymous(this="accurateCastOrNull", expressions=[node.this, integer])
            case exp.Anonymous() if is_look_up(node):
                labels, written = node.expressions
                cells = json.loads(labels.name)
                lists = [exp.convert(list(cells)), exp.convert(list(cells.values()))]
                found = [written, *lists, exp.null()]
                return exp.Anonymous(this="transform", expressions=found)
            case exp.Length():
                return exp.Anonymous(this="lengthUTF8", expressions=[node.this])
            case exp.Substring():
                parts = [node.this, node.args["start"], node.args["length"]]
                return exp.Anonymous(this="substringUTF8", expressions=parts)
            case exp.Round():
                # Halves go to the even number.
                return exp.Floor(this=exp.Add(this=node.this, expression=exp.Literal.number("0.5")))
        return node


def _client(address: str, timeout: float) -> Any:
    try:
        import clickhouse_connect
    except ImportError:
        raise missing_driver("clickhouse") from None
    parts, given = urlsplit(address), dict[str, Any]()
    if parts.scheme == "clickhouse":
        given = {
            "username": parts.username or os.environ.get("CLICKHOUSE_USER"),
            "password": os.environ.get("CLICKHOUSE_PASSWORD", ""),
            "connect_timeout": 10,
            "send_receive_timeout": timeout,
        }
    client = None
    with suppress(Exception):
        client = within(
            min(timeout, 30.0),
            lambda: clickhouse_connect.get_client(dsn=address, **given),
            discard=lambda late: late.close(),
        )
    if client is None:
        raise SourceError(
            "Cannot connect to the database.",
            hint="Check the address, CLICKHOUSE_USER and CLICKHOUSE_PASSWORD.",
        )
    return client


def _column(name: str, type_: str) -> SourceColumn:
    value: exp.Condition = exp.column(name, quoted=True)
    while wrapped := WRAPPERS.match(type_):
        type_ = wrapped[1]
    if type_.startswith(("Enum8", "Enum16", "FixedString")) or type_ == "UUID":
        return SourceColumn(name, exp.DataType.build("text"), exp.cast(value, Type.TEXT))
    if type_.startswith("DateTime"):
        return SourceColumn(name, exp.DataType.build("timestamptz"), value)
    if type_.startswith("Decimal"):
        return SourceColumn(name, exp.DataType.build("decimal"), value)
    return SourceColumn(name, exp.DataType.build(TYPES.get(type_, "unknown")), value)


def _date(value: exp.Expression) -> exp.Expression:
    """Return a date; a timestamp's is that in UTC, although its column may have another time zone."""
    if isinstance(value, exp.Literal):
        if not YEARS[0] <= int(value.name[:4]) <= YEARS[1]:
            raise SourceError(
                f"ClickHouse has no dates such as {value.name}.",
                hint=f"Describe dates from {YEARS[0]} to {YEARS[1]}.",
            )
        return exp.Anonymous(this="toDate32", expressions=[value])
    utc = exp.Anonymous(this="toTimeZone", expressions=[value, exp.Literal.string("UTC")])
    return exp.Anonymous(this="toDate32", expressions=[utc])


def _converted(node: exp.TryCast) -> tuple[exp.Expression, exp.Condition]:
    """Return the date or time of a text, and whether there is such a day, unlike 30 February."""
    written = node.this.copy()
    day = exp.Substring(this=written, start=exp.Literal.number(1), length=exp.Literal.number(10))
    date = exp.Anonymous(this="toDate32OrNull", expressions=[day])
    exists = exp.EQ(this=exp.Anonymous(this="toString", expressions=[date]), expression=day.copy())
    if node.to.this is Type.DATE:
        return date.copy(), exists
    precise = [written.copy(), exp.Literal.number(6), exp.Literal.string("UTC")]
    return exp.Anonymous(this="parseDateTime64BestEffortOrNull", expressions=precise), exists
