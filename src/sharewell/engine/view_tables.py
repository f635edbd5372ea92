"""Sources of rows: one table as it is, or a person view over several tables of one database."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from sqlglot import exp

from sharewell.engine.base import Columns, Engine, SourceColumn, SqlEngine
from sharewell.engine.cells import Kind, Type, kind_of
from sharewell.engine.clickhouse import ClickHouse
from sharewell.engine.duckdb import DuckDB
from sharewell.engine.person_view import BaseTable, compile_view
from sharewell.engine.postgres import Postgres
from sharewell.engine.sources import (
    SQLITE_FILES,
    TIMEOUT,
    CsvFormat,
    file_reader,
    frame_reader,
    is_address,
    open_source,
)
from sharewell.engine.spark import Spark
from sharewell.engine.sqlite import SQLite
from sharewell.engine.view_text import ViewText
from sharewell.engine.view_values import Relation
from sharewell.errors import SourceError

#: Files that have tables of their own.
DATABASE_FILES = (".duckdb", *SQLITE_FILES)


@dataclass(frozen=True)
class ViewTable:
    """A table of a person view: where it is, and the column of the person, or that it is public.

    >>> visits = ViewTable("visits.csv", unit="person")
    >>> districts = ViewTable("districts.csv", public=True)
    """

    source: object
    unit: str | None = None
    public: bool = False
    #: Its name in the database, if that is another one; or the sheet of a workbook.
    table: str | None = None
    csv_format: CsvFormat | None = None


@dataclass(frozen=True)
class PersonView:
    """A source whose rows a SELECT computes, each from the rows of one person.

    >>> view = PersonView(
    ...     "SELECT person, COUNT(*) AS visits FROM visits GROUP BY person",
    ...     {"visits": ViewTable("visits.csv", unit="person")},
    ... )
    """

    text: str
    tables: Mapping[str, ViewTable]


def has_tables(source: object) -> bool:
    """Return whether a source is a database, and not a single table."""
    if is_address(source):
        return True
    return isinstance(source, str | Path) and Path(source).suffix.lower() in DATABASE_FILES


def open_rows(
    source: object,
    wanted: Sequence[str],
    *,
    privacy_unit: str | None = None,
    table: str | None = None,
    csv_format: CsvFormat | None = None,
    timeout: float = TIMEOUT,
) -> Engine:
    """Open the wanted columns of a table, or of a person view."""
    if not isinstance(source, PersonView):
        return open_source(source, wanted, table=table, csv_format=csv_format, timeout=timeout)
    if privacy_unit is None:
        raise SourceError(
            "A person view requires `privacy_unit`.",
            hint="Name the column of the view that is the person.",
        )
    return open_view(source, wanted, privacy_unit, timeout)


class ViewEngine:
    """A person view on an open engine: its relation is a subquery."""

    def __init__(
        self, engines: Sequence[DuckDB | SqlEngine], view: Relation, wanted: Sequence[str]
    ) -> None:
        #: The first runs the statements; each of the others knows its own table.
        self._engines = engines
        self.has_enumerations = engines[0].has_enumerations
        self.has_maps = engines[0].has_maps
        self.slow_to_open = engines[0].slow_to_open
        self.relation: Any = view.tree
        names = {name.casefold(): name for name in view.columns}
        self.columns: dict[str, SourceColumn] = {}
        for name in wanted:
            if (own := names.get(name.casefold())) is None:
                raise SourceError(
                    f"The view has no column {name!r}.",
                    hint=f"Its columns are {', '.join(view.columns)}. Add: ... AS {name}.",
                )
            value = view.columns[own]
            type_ = value.type if value.kind is not None else exp.DataType.build("unknown")
            self.columns[name] = SourceColumn(own, type_, value.sql)

    def run(self, sql: str) -> Sequence[Sequence[Any]]:
        """Run a statement in the engine's dialect and return all rows."""
        return self._engines[0].run(sql)

    def fetch(self, statement: exp.Select) -> Columns:
        """Run a statement whose columns are integers without NULL."""
        return self._engines[0].fetch(statement)

    def rows(self, statement: exp.Select) -> Sequence[Sequence[Any]]:
        """Run a statement whose columns are of any type."""
        return self._engines[0].rows(statement)

    def version(self) -> str | None:
        """Return what all tables say about their version; None where none does."""
        found = [engine.version() for engine in self._engines]
        return None if set(found) == {None} else repr(found)

    def cancel(self) -> None:
        """Stop the statement that runs."""
        self._engines[0].cancel()

    def close(self) -> None:
        """Close the source."""
        for engine in self._engines:
            engine.close()


def open_view(
    view: PersonView, wanted: Sequence[str], privacy_unit: str, timeout: float = TIMEOUT
) -> ViewEngine:
    """Open the wanted columns of a person view."""
    parsed = ViewText.parse(view.text)
    if not view.tables:
        raise SourceError(
            "The view has no tables.", hint='Declare them: [tables.NAME] with unit = "...".'
        )
    for name, declared in view.tables.items():
        _check_declaration(name, declared)
    _check_declared_once(view.tables)
    parsed.require_declared(view.tables)
    used = parsed.wanted({name: table.unit for name, table in view.tables.items()})
    for name, columns in used.items():
        if not columns or not parsed.uses(name):
            raise SourceError(
                f"The view uses no column of the table {name!r}.", hint="Remove the table."
            )
    opened = _open_tables(view.tables, used, timeout)
    engines = list(dict.fromkeys(own for own, *_ in opened.values()))
    try:
        tables = {
            name: BaseTable(
                relation,
                {
                    asked: _scanned(column, own, asked == view.tables[name].unit)
                    for asked, column in columns.items()
                },
                view.tables[name].unit,
            )
            for name, (own, relation, columns) in opened.items()
        }
        for name, table in tables.items():
            _check_unit(name, table)
        compiled = compile_view(parsed, tables, privacy_unit, engines[0].dialect)
        return ViewEngine(engines, compiled, tuple(dict.fromkeys(wanted)))
    except SourceError:
        for each in engines:
            each.close()
        raise


def _check_declaration(name: str, table: ViewTable) -> None:
    if table.public == (table.unit is not None):
        raise SourceError(
            f"The table {name!r} needs either `unit` or `public = true`.",
            hint="`unit` names the column of the person; a public table has no data about people.",
        )


def _check_declared_once(tables: Mapping[str, ViewTable]) -> None:
    """Refuse a table that is private and public, or has two units: a row would be of several people."""
    for (name, table), (other, again) in combinations(tables.items(), 2):
        if _same_table(name, table, other, again) and table.unit != again.unit:
            raise SourceError(
                f"{name!r} and {other!r} are one table, with different units.",
                hint="Declare it once; a view can use it several times, with aliases.",
            )


def _same_table(name: str, table: ViewTable, other: str, again: ViewTable) -> bool:
    if not isinstance(table.source, str | Path) or not isinstance(again.source, str | Path):
        return table.source is again.source
    if is_address(table.source) or is_address(again.source):
        same = str(table.source) == str(again.source)
    else:
        same = Path(table.source).resolve() == Path(again.source).resolve()
    if not same or not has_tables(table.source):
        return same and table.table == again.table
    one, two = (table.table or name).casefold().split("."), (again.table or other).casefold().split(".")
    # A name without a schema may be that of any.
    return all(x == y for x, y in zip(reversed(one), reversed(two), strict=False))


def _check_unit(name: str, table: BaseTable) -> None:
    if table.unit is None:
        return
    unit = table.columns[table.unit]
    if unit.type.this in (Type.FLOAT, Type.DOUBLE):
        raise SourceError(
            f"The unit {table.unit!r} of {name!r} has type {unit.type.sql('duckdb')}, in which large "
            "ids may be equal.",
            hint="Cast it to integers or text in the table.",
        )
    if kind_of(unit) is None and unit.type.this is not Type.UUID:
        raise SourceError(
            f"The unit {table.unit!r} of {name!r} has type {unit.type.sql('duckdb')}, which has no "
            "comparison that all engines agree on.",
            hint="Use a column of integers or text.",
        )


def _scanned(column: SourceColumn, engine: DuckDB | SqlEngine, is_unit: bool) -> SourceColumn:
    """Return a column as a view reads it: decimals as doubles, except ids, and labels as text."""
    kind, type_ = kind_of(column), column.type.this
    if kind is Kind.NUMBER and type_ not in (Type.FLOAT, Type.DOUBLE) and not is_unit:
        value: Any = exp.cast(column.value.copy(), Type.DOUBLE)
        # A table's own engine knows which of its numbers are too large for doubles.
        value = engine.adapt(value) if isinstance(engine, SqlEngine) else value
        return SourceColumn(column.name, exp.DataType.build("double"), value)
    if kind is Kind.TEXT:
        value = column.value
        if type_ not in exp.DataType.TEXT_TYPES:
            value = exp.cast(column.value.copy(), Type.TEXT)
        return SourceColumn(column.name, exp.DataType.build("text"), value)
    return column


#: The engine that knows a table, the table in its dialect, and the columns.
Opened = tuple[DuckDB | SqlEngine, exp.Expression, Mapping[str, SourceColumn]]


def _open_tables(
    tables: Mapping[str, ViewTable], used: Mapping[str, Sequence[str]], timeout: float
) -> dict[str, Opened]:
    """Open all tables of a view in one session."""
    places = {_place(table.source) for table in tables.values()}
    if len(places) > 1:
        raise SourceError(
            "The tables of the view are in different databases.",
            hint="Use tables of one database; files can be joined with each other.",
        )
    if places == {""}:
        return _open_files(tables, used)
    return _open_database(tables, used, timeout)


def _place(source: object) -> str:
    """Return what a session is opened for: a database, or nothing for all that DuckDB reads."""
    if is_address(source):
        return str(source)
    if isinstance(source, str | Path) and Path(source).suffix.lower() in SQLITE_FILES:
        return str(Path(source).resolve())
    return ""


def _open_database(
    tables: Mapping[str, ViewTable], used: Mapping[str, Sequence[str]], timeout: float
) -> dict[str, Opened]:
    """Open a session for each table, to describe it; the first runs the statements."""
    opened: dict[str, Opened] = {}
    engines: list[SqlEngine] = []
    try:
        for name, table in tables.items():
            engine = open_source(table.source, used[name], table=table.table or name, timeout=timeout)
            if not isinstance(engine, SqlEngine):
                raise TypeError(f"{type(engine).__name__} is not an engine of a database")
            engines.append(engine)
            _require_base_table(name, engine)
            opened[name] = (engine, engine.relation, engine.columns)
    except SourceError:
        for engine in engines:
            engine.close()
        raise
    return opened


def _require_base_table(name: str, engine: SqlEngine) -> None:
    """Refuse views of the database: a row of theirs may depend on several people."""
    if type(engine) not in BASE_TABLES:
        raise SourceError(
            f"A person view cannot read the table {name!r} of this database.",
            hint="Use files, or PostgreSQL, Spark, ClickHouse or SQLite.",
        )
    is_base: Callable[[], bool] = BASE_TABLES[type(engine)](engine)
    found = None
    with suppress(Exception):
        found = is_base()
    if found is None:
        raise SourceError(f"Cannot look up the table {name!r} in the catalogue.", hint="GRANT it.")
    if not found:
        raise _not_a_table(name)


def _not_a_table(name: str) -> SourceError:
    return SourceError(
        f"{name!r} is a view of the database, whose rows may depend on several people.",
        hint="Use the tables that it selects from.",
    )


def _is_table_of_postgres(engine: Any) -> Callable[[], bool]:
    name = exp.Literal.string(engine.relation.sql(engine.dialect)).sql(engine.dialect)
    kind = f"SELECT relkind::text FROM pg_class WHERE oid = to_regclass({name})"  # noqa: S608
    return lambda: engine.run(kind)[0][0] in ("r", "p", "f")


def _is_table_of_sqlite(engine: Any) -> Callable[[], bool]:
    name = exp.Literal.string(engine.relation.name).sql(engine.dialect)
    kind = f"SELECT type FROM sqlite_schema WHERE name = {name}"  # noqa: S608
    return lambda: engine.run(kind)[0][0] == "table"


def _is_table_of_clickhouse(engine: Any) -> Callable[[], bool]:
    shown = f"SHOW CREATE TABLE {engine.relation.sql(engine.dialect)}"
    return lambda: str(engine.run(shown)[0][0]).upper().startswith("CREATE TABLE")


def _is_table_of_spark(engine: Any) -> Callable[[], bool]:
    shown = f"DESCRIBE TABLE EXTENDED {engine.relation.sql(engine.dialect)}"

    def is_base() -> bool:
        # A database may have the name of a format, but no table of it that of a path.
        files = engine.relation.db.lower() in ("parquet", "orc", "delta", "json", "csv")
        if files and re.search(r"\W", engine.relation.name):
            return True
        kinds = [row[1] for row in engine.run(shown) if row[0] == "Type"]
        return bool(kinds) and kinds[0] in ("MANAGED", "EXTERNAL")

    return is_base


#: How each database knows whether a name is that of a table.
BASE_TABLES: Mapping[type[SqlEngine], Callable[[Any], Callable[[], bool]]] = {
    Postgres: _is_table_of_postgres,
    SQLite: _is_table_of_sqlite,
    ClickHouse: _is_table_of_clickhouse,
    Spark: _is_table_of_spark,
}


class TableSession(DuckDB):
    """A session with several tables, each a view source_0, source_1, ... It is sealed after the last."""

    def __init__(self, unreadable: SourceError) -> None:
        super().__init__(unreadable)
        self._allowed: list[Path] = []

    def read(
        self, number: int, read: Callable[[DuckDB, Sequence[str]], None], wanted: Sequence[str]
    ) -> Opened:
        """Read one more table."""
        self._name = f"source_{number}"
        read(self, wanted)
        return self, self.relation, dict(self.columns)

    def seal(self, *allowed: Path) -> None:
        """Remember what one table needs."""
        self._allowed += allowed

    def seal_all(self) -> None:
        """Forbid access to all other files."""
        super().seal(*self._allowed)


def _open_files(tables: Mapping[str, ViewTable], used: Mapping[str, Sequence[str]]) -> dict[str, Opened]:
    """Read files, tables of DuckDB databases and data frames in one session."""
    session = TableSession(SourceError("Cannot read the tables of the view."))
    opened: dict[str, Opened] = {}
    try:
        for number, (name, table) in enumerate(tables.items()):
            if isinstance(table.source, str | Path):
                path = Path(table.source)
                own = table.table or (name if has_tables(path) else None)
                read, unreadable = file_reader(path, own, table.csv_format)
            else:
                read, unreadable = frame_reader(table.source, used[name])
            session.unreadable = unreadable
            if isinstance(table.source, str | Path) and path.suffix.lower() == ".duckdb":
                _require_table_of_duckdb(name, own or name, session, path.resolve())
            opened[name] = session.read(number, read, used[name])
        session.unreadable = SourceError(
            "Cannot read the tables of the view.",
            hint="Each file must be complete, and every line of a CSV file as long as its header.",
        )
        session.seal_all()
    except SourceError:
        session.close()
        raise
    return opened


def _require_table_of_duckdb(name: str, table: str, session: DuckDB, path: Path) -> None:
    schema, _, own = table.rpartition(".")
    found = session.run(
        "SELECT table_type FROM information_schema.tables WHERE table_catalog = ? AND table_schema = ? "
        "AND table_name = ?",
        [session.attach(path), schema or "main", own],
    )
    if found and found != [("BASE TABLE",)]:
        raise _not_a_table(name)
