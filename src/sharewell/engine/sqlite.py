"""SQLite: one GROUP BY in a connection that can only read."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import md5
from pathlib import Path
from typing import Any

from sqlglot import exp

from sharewell.engine.base import (
    TEXT_OF,
    SourceColumn,
    SqlEngine,
    choose_columns,
    is_look_up,
    is_nan_test,
    version_of_files,
)
from sharewell.errors import SourceError

Type = exp.DataType.Type

#: The types of a STRICT table, which SQLite enforces. Other declared types say nothing about the values.
STRICT_TYPES = {"INT": "bigint", "INTEGER": "bigint", "REAL": "double", "TEXT": "text"}

#: The number of steps of SQLite's machine between two looks at the clock.
STEPS = 1_000_000


class SQLite(SqlEngine):
    """A table of an SQLite file.

    Where the table is not STRICT, a column can hold values of any type, and is read as text: as in a CSV
    file. Text is converted in Python, because a CAST of SQLite takes text that is no number for 0.
    """

    dialect = "sqlite"
    has_maps = True

    def __init__(self, path: Path, table: str | None, wanted: Sequence[str], timeout: float) -> None:
        self._path = path
        self._deadline = math.inf
        #: The functions that look labels up, by the JSON object of the labels.
        self._look_ups: dict[str, str] = {}
        self._connection = self._try(
            lambda: sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=ro",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
            )
        )
        try:
            relation, rows = self._describe(table)
            columns = choose_columns(wanted, rows, _column)
        except SourceError:
            self.close()
            raise
        super().__init__(relation, columns, timeout)

    def _try(self, call: Callable[[], Any]) -> Any:
        with suppress(sqlite3.Error):
            return call()
        raise SourceError(
            f"Cannot read {self._path.name!r}.", hint="It must be an SQLite database in UTF-8."
        )

    def _catalogue(self, sql: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._try(lambda: self._connection.execute(sql).fetchall())
        return rows

    def _describe(self, table: str | None) -> tuple[exp.Table, list[tuple[str, str]]]:
        """Fix the session, and read the catalogue."""
        for name, function in FUNCTIONS.items():
            self._connection.create_function(name, 1, function, deterministic=True)
        self._connection.create_window_function("exact_sum", 1, ExactSum)
        self._connection.text_factory = lambda written: written.decode(errors="replace")
        self._connection.set_progress_handler(lambda: time.monotonic() > self._deadline, STEPS)
        for setting in ("query_only = ON", "trusted_schema = OFF", "busy_timeout = 5000"):
            self._catalogue(f"PRAGMA {setting}")
        if self._catalogue("PRAGMA encoding") != [("UTF-8",)]:
            # Text would not be in the order of its characters.
            raise SourceError(
                f"{self._path.name!r} is not in UTF-8.", hint="Dump and restore it in UTF-8."
            )
        listed = {
            str(name): bool(strict)
            for schema, name, kind, _, _, strict in self._catalogue("PRAGMA table_list")
            if schema == "main" and kind in ("table", "view") and not name.startswith("sqlite_")
        }
        chosen = next(iter(listed)) if table is None and len(listed) == 1 else table or ""
        if chosen not in listed:
            problem = f"has no table {chosen!r}" if chosen else f"has {len(listed)} tables"
            raise SourceError(
                f"The database {self._path.name!r} {problem}.",
                hint=f"Set `table` to one of {', '.join(sorted(listed))}." if listed else "It is empty.",
            )
        relation = exp.table_(chosen, quoted=True)
        described = self._catalogue(f"PRAGMA table_xinfo({relation.sql(self.dialect)})")
        return relation, [(name, type_ if listed[chosen] else "") for _, name, type_, *_ in described]

    def run(self, sql: str) -> Sequence[Sequence[Any]]:
        """Run a statement, within the timeout."""
        self._deadline = time.monotonic() + self.timeout
        rows: Sequence[Sequence[Any]] = self._connection.execute(sql).fetchall()
        return rows

    def version(self) -> str | None:
        """Return sizes and times of the file and of its log."""
        return version_of_files([self._path, self._path.with_name(f"{self._path.name}-wal")])

    def cancel(self) -> None:
        """Stop the statement that runs."""
        self._connection.interrupt()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def adapt(self, node: exp.Expression) -> exp.Expression:
        """Return what stands for a node in SQLite's dialect, in which dates are text."""
        match node:
            case exp.TryCast():
                return _call(f"to_{node.to.this.value.lower()}", _raw(node.this))
            case exp.Cast(this=exp.Expression() as written) if node.to.this is Type.DATE:
                return written
            case exp.DateDiff():
                days = [
                    exp.Anonymous(this="JULIANDAY", expressions=[each])
                    for each in (node.this, node.expression)
                ]
                return exp.cast(exp.Sub(this=days[0], expression=days[1]), Type.INT)
            case exp.Extract():
                return _part(node.name, node.expression)
            case exp.EQ() if is_nan_test(node):
                # SQLite stores NaN as NULL, but text can say it.
                return _call("is_nan", node.this.find(exp.Column))
            case exp.Anonymous() if is_look_up(node):
                labels, written = node.expressions
                return _call(self._look_up(labels.name), written)
            case exp.MD5():
                written = exp.cast(node.this, exp.DataType.build("blob"))
                return exp.Anonymous(this="md5", expressions=[written])
            case exp.Floor():
                return exp.Anonymous(this="to_floor", expressions=[node.this])
        return node

    def _look_up(self, labels: str) -> str:
        """Return the function that looks up the bytes of a text among labels."""
        if labels not in self._look_ups:
            name = f"look_up_{len(self._look_ups)}"
            cells = {label.encode(): cell for label, cell in json.loads(labels).items()}
            self._connection.create_function(name, 1, cells.get, deterministic=True)
            self._look_ups[labels] = name
        return self._look_ups[labels]


def _column(name: str, type_: str) -> SourceColumn:
    value: exp.Condition = exp.column(name, quoted=True)
    built = exp.DataType.build(STRICT_TYPES.get(type_.upper(), "text"))
    if built.this is Type.TEXT:
        text = exp.cast(value, Type.TEXT)
        value = exp.paren(exp.Collate(this=text, expression=exp.var("BINARY")))
    return SourceColumn(name, built, value)


def _call(function: str, value: Any) -> exp.Anonymous:
    """Call a function of ours; it gets text as bytes, because Python fails on text that is not UTF-8."""
    kind = exp.Anonymous(this="TYPEOF", expressions=[value.copy()])
    written = (
        exp.Case(this=kind)
        .when("'text'", exp.cast(value.copy(), exp.DataType.build("blob")))
        .when("'blob'", exp.null())
        .else_(value.copy())
    )
    return exp.Anonymous(this=function, expressions=[written])


def _raw(value: exp.Expression) -> exp.Expression:
    """Return the column that is read as text, if it is one: as text, a number would lose digits."""
    inner = value
    while isinstance(inner, exp.Paren | exp.Collate | exp.Cast):
        inner = inner.this
    return inner if isinstance(inner, exp.Column) else value


def _part(name: str, day: exp.Expression) -> exp.Expression:
    """Return the year, month or quarter of a date in ISO text."""
    start, length = (1, 4) if name.upper() == "YEAR" else (6, 2)
    digits = exp.Substring(this=day, start=exp.Literal.number(start), length=exp.Literal.number(length))
    number = exp.cast(digits, Type.INT)
    if name.upper() != "QUARTER":
        return number
    return exp.paren(exp.Div(this=exp.paren(number + 2), expression=exp.Literal.number(3)))


def _text(value: object) -> str:
    """Return the text of bytes; empty where there is none."""
    with suppress(UnicodeDecodeError):
        return value.decode() if isinstance(value, bytes) else ""
    return ""


def _to_double(value: object) -> float | None:
    if isinstance(value, bytes):
        return float(_text(value)) if re.search(TEXT_OF[Type.DOUBLE], _text(value)) else None
    return float(value) if isinstance(value, int | float) else None


def _is_nan(value: object) -> bool:
    return _text(value).strip(" ").lower() == "nan"


def _to_date(value: object) -> str | None:
    with suppress(ValueError):
        if re.search(TEXT_OF[Type.DATE], _text(value)):
            return dt.date.fromisoformat(_text(value)).isoformat()
    return None


def _to_timestamptz(value: object) -> str | None:
    """Return the date in UTC."""
    with suppress(ValueError, OverflowError):
        if re.search(TEXT_OF[Type.TIMESTAMPTZ], _text(value)):
            moment = dt.datetime.fromisoformat(_text(value))
            return (moment.astimezone(dt.UTC) if moment.tzinfo else moment).date().isoformat()
    return None


def _to_floor(value: object) -> float | None:
    if not isinstance(value, int | float):
        return None
    return float(math.floor(value)) if math.isfinite(value) else float(value)


def _md5(value: object) -> str | None:
    return md5(value, usedforsecurity=False).hexdigest() if isinstance(value, bytes) else None


class ExactSum:
    """The sum of integers of any size, or NULL; SQLite's own fails where it is too large."""

    def __init__(self) -> None:
        self._total = self._count = 0

    def step(self, value: object) -> None:
        """Add a value."""
        self._add(value, 1)

    def inverse(self, value: object) -> None:
        """Take a value out of the window."""
        self._add(value, -1)

    def _add(self, value: object, sign: int) -> None:
        if isinstance(value, int):
            self._total += sign * value
            self._count += sign

    def value(self) -> float | None:
        """Return the sum so far."""
        return float(self._total) if self._count else None

    finalize = value


#: Each is defined for every value: none can fail on some rows.
FUNCTIONS: dict[str, Callable[[object], object]] = {
    "to_double": _to_double,
    "is_nan": _is_nan,
    "to_date": _to_date,
    "to_timestamptz": _to_timestamptz,
    "to_floor": _to_floor,
    "md5": _md5,
}
