"""PostgreSQL: one GROUP BY in a read-only transaction of the server that has the rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sharewell.engine.base import (
    COMPUTED_ROWS,
    SourceColumn,
    SqlEngine,
    find_columns,
    if_written,
    is_look_up,
    missing_driver,
    refuse_password,
    table_of,
    within,
)
from sharewell.errors import SourceError

Type = exp.DataType.Type

#: The first version with pg_input_is_valid, without which text cannot be converted without failing.
TRIES_CASTS = 160_000
#: Encodings in which the order of bytes is that of the characters.
ENCODINGS = ("LATIN1", "UTF8")
#: Why a connection was refused, by the class of its SQLSTATE.
REFUSALS = {
    "28": ("the user name or the password is wrong", "Set PGPASSWORD, or add a line to ~/.pgpass."),
    "3D": ("the database does not exist", "Check the address."),
    "53": ("the server has too many connections", "Try again later."),
}

_COLUMNS = """
SELECT a.attname, format_type(coalesce(nullif(t.typbasetype, 0), a.atttypid), a.atttypmod), t.typtype
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""


#: For a table and its partitions: TRUNCATE, VACUUM FULL and the like give it another file.
_VERSION = """
SELECT c.oid, c.relfilenode, pg_stat_get_tuples_inserted(c.oid), pg_stat_get_tuples_updated(c.oid),
    pg_stat_get_tuples_deleted(c.oid)
FROM pg_class c
WHERE c.relkind IN ('r', 'p', 'm')
    AND (c.oid = to_regclass({0}) OR c.oid IN (SELECT relid FROM pg_partition_tree(to_regclass({0}))))
ORDER BY c.oid
"""


class Postgres(SqlEngine):
    """A table or view of a PostgreSQL database."""

    dialect = "postgres"
    has_maps = True

    def __init__(self, address: str, table: str | None, wanted: Sequence[str], timeout: float) -> None:
        refuse_password(address, "set PGPASSWORD or use ~/.pgpass")
        relation = table_of(table, self.dialect)
        self._connection = _connect(address, timeout)
        rows = None
        try:
            self._fix_session(timeout)
            rows = self._describe(relation, str(table))
            found = find_columns(wanted, [name for name, *_ in rows])
        except SourceError:
            self.close()
            raise
        except Exception:
            self.close()
        if rows is None:
            raise SourceError("The connection to the database was lost.", hint="Try again.")
        columns = {asked: _column(*rows[at]) for asked, at in zip(wanted, found, strict=True)}
        #: Numbers of any size, whose conversion to doubles could fail.
        self._unbounded = {rows[at][0] for at in found if rows[at][1] == "numeric"}
        super().__init__(relation, columns, timeout)

    def _fix_session(self, timeout: float) -> None:
        run = self._connection.execute
        run("SET default_transaction_isolation = 'repeatable read'")
        run("SET default_transaction_read_only = on")
        run("SET timezone = 'UTC'; SET datestyle = 'ISO, YMD'; SET intervalstyle = 'postgres'")
        run("SET standard_conforming_strings = on; SET search_path = pg_catalog, public")
        run(f"SET statement_timeout = {int(timeout * 1000)}")
        [(encoding,)] = run("SHOW server_encoding").fetchall()
        if encoding not in ENCODINGS:
            raise SourceError(
                f"The database has the encoding {encoding}.",
                hint=f"Use a database in {' or '.join(ENCODINGS)}.",
            )

    def _describe(self, relation: exp.Table, table: str) -> list[tuple[str, str, str]]:
        run, name = self._connection.execute, relation.sql(self.dialect)
        [(oid,)] = run("SELECT to_regclass(%s)::oid", [name]).fetchall()
        if oid is None:
            raise SourceError(
                f"The database has no table {table!r}, or this user may not see it.",
                hint="Check `table`, and GRANT USAGE on its schema.",
            )
        [(allowed,)] = run("SELECT has_table_privilege(%s, 'SELECT')", [oid]).fetchall()
        if not allowed:
            raise SourceError(f"This user may not read {table!r}.", hint=f"GRANT SELECT ON {table}.")
        rows: list[tuple[str, str, str]] = run(_COLUMNS, [oid]).fetchall()
        return rows

    def run(self, sql: str) -> Sequence[Sequence[Any]]:
        """Run a statement in a transaction of its own."""
        rows: Sequence[Sequence[Any]] = self._connection.execute(sql).fetchall()
        return rows

    def version(self) -> str | None:
        """Return how many rows statistics say were changed, and the table's file; views say nothing."""
        rows = self.run(
            _VERSION.format(exp.Literal.string(self.relation.sql(self.dialect)).sql(self.dialect))
        )
        return repr(rows) if rows else None

    def cancel(self) -> None:
        """Ask the server to stop, and drop the connection."""
        with suppress(Exception):
            self._connection.cancel_safe(timeout=5)
        self.close()

    def close(self) -> None:
        """Close the connection."""
        with suppress(Exception):
            self._connection.close()

    def adapt(self, node: exp.Expression) -> exp.Expression:
        """Return what stands for a node in PostgreSQL's dialect."""
        match node:
            case exp.TryCast():
                return self._converted(node)
            case exp.Cast(this=exp.Column() as column) if (
                node.to.this is Type.DOUBLE and column.name in self._unbounded
            ):
                return _bounded(column)
            case exp.DateDiff():
                # The difference of two dates is a number of days.
                return exp.paren(exp.Sub(this=node.this, expression=node.expression))
            case exp.Round():
                # ROUND takes halves to the even number.
                return exp.Floor(this=exp.Add(this=node.this, expression=exp.Literal.number("0.5")))
            case exp.Subquery(this=exp.Select() as rows) if node.alias == COMPUTED_ROWS:
                # A subquery with OFFSET is not merged into the statement, which would copy what computes
                # a column to every place that uses it.
                rows.set("offset", exp.Offset(expression=exp.Literal.number(0)))
            case exp.Anonymous() if is_look_up(node):
                # A JSON object keeps its keys sorted by their bytes.
                labels, written = node.expressions
                found = [exp.cast(labels, Type.JSONB), written]
                return exp.Anonymous(this="jsonb_extract_path_text", expressions=found)
            case exp.MD5():
                return exp.Collate(this=node, expression=exp.to_identifier("C", quoted=True))
        return node

    def _converted(self, node: exp.TryCast) -> exp.Expression:
        if self._connection.info.server_version < TRIES_CASTS:
            raise SourceError(
                "This server cannot convert text without failing on some.",
                hint="Use PostgreSQL 16 or newer, or a view whose columns have the types described.",
            )
        type_ = exp.Literal.string(node.to.sql(self.dialect))
        valid = exp.Anonymous(this="pg_input_is_valid", expressions=[node.this.copy(), type_])
        return if_written(node, exp.cast(node.this, node.to), valid)


def _connect(address: str, timeout: float) -> Any:
    """Open a connection; a failure shows no text of the server's."""
    try:
        import psycopg
    except ImportError:
        raise missing_driver("postgres") from None
    state, host = None, ""
    try:
        options: dict[str, Any] = {
            "connect_timeout": 10,
            "keepalives_idle": 30,
            "tcp_user_timeout": 60_000,
        }
        return within(
            min(timeout, 30.0),
            lambda: psycopg.connect(address, autocommit=True, **options),
            discard=lambda late: late.close(),
        )
    except psycopg.Error as error:
        state = error.sqlstate or _state(str(error))
    except TimeoutError:
        host = "the server does not answer"
    reason, hint = REFUSALS.get(
        (state or "")[:2], (host or "no server answers there", "Check the address.")
    )
    raise SourceError(f"Cannot connect to the database: {reason}.", hint=hint)


def _state(message: str) -> str | None:
    """The SQLSTATE of a failure to connect, which the driver gives as text only."""
    known = {"authentication failed": "28", "no password supplied": "28", "does not exist": "3D"}
    return next((state for words, state in known.items() if words in message), None)


def _column(name: str, type_: str, kind: str) -> SourceColumn:
    """Describe a column; all text is compared byte by byte, whatever its type and collation."""
    value = exp.column(name, quoted=True)
    try:
        built = exp.DataType.build(type_, dialect="postgres")
    except SqlglotError:
        built = exp.DataType.build("unknown")
    is_text = built.this in exp.DataType.TEXT_TYPES or kind == "e" or type_ in ("citext", "uuid", "name")
    if is_text:
        text = exp.cast(value, Type.TEXT)
        collated = exp.Collate(this=text, expression=exp.to_identifier("C", quoted=True))
        return SourceColumn(name, exp.DataType.build("text"), exp.paren(collated))
    return SourceColumn(name, built, value)


def _bounded(column: exp.Column) -> exp.Case:
    """Convert a number of any size: those beyond doubles become infinite, or zero."""
    large, small = (
        exp.Literal(this="1e300", is_string=False),
        exp.Literal(this="1e-300", is_string=False),
    )
    ends: dict[str, exp.Condition] = {
        "NaN": column.eq(exp.cast(exp.Literal.string("NaN"), Type.DECIMAL))
    }
    ends["Infinity"], ends["-Infinity"] = column >= large, column <= exp.Neg(this=large)
    converted = exp.case()
    for text, condition in ends.items():
        converted = converted.when(condition, exp.cast(exp.Literal.string(text), Type.DOUBLE))
    tiny = exp.Abs(this=column.copy()) < small
    zero = exp.cast(exp.Literal.number(0), Type.DOUBLE)
    return converted.when(tiny, zero).else_(exp.cast(column.copy(), Type.DOUBLE))
