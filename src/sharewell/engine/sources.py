"""The registry of data sources: databases by address, files by suffix, and data frames."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar

from sqlglot import exp

from sharewell.engine.base import Engine, find_columns, missing_driver
from sharewell.engine.bigquery import BigQuery
from sharewell.engine.clickhouse import ClickHouse
from sharewell.engine.duckdb import DuckDB
from sharewell.engine.postgres import Postgres
from sharewell.engine.snowflake import Snowflake
from sharewell.engine.spark import Spark
from sharewell.engine.sqlite import SQLite
from sharewell.engine.trino import Trino
from sharewell.errors import SourceError

DuckDBType = TypeVar("DuckDBType", bound=DuckDB)

#: How a database is opened: its address, the table, the wanted columns, and the seconds of a statement.
Connect = Callable[[str, str | None, Sequence[str], float], Engine]

#: The allowed databases, by the beginning of their addresses.
DATABASES: dict[str, Connect] = {
    "postgresql://": Postgres,
    "postgres://": Postgres,
    "clickhouse://": ClickHouse,
    "chdb://": ClickHouse,
    "spark://": Spark,
    "sc://": Spark,
    "local[": Spark,
    "trino://": Trino.open,
    "snowflake://": Snowflake.open,
    "bigquery://": BigQuery.open,
}

SUPPORTED = (
    "Use a .csv, .tsv, .parquet, .jsonl, .xlsx, .dta, .sav, .duckdb or .sqlite file, a folder of "
    ".parquet files, the address of a PostgreSQL, Spark, ClickHouse, Trino, Snowflake or BigQuery "
    "database, or a data frame of pandas, Polars or Arrow."
)

#: The seconds that a statement may take, unless given.
TIMEOUT = 3600.0


@dataclass(frozen=True)
class CsvFormat:
    """How the lines of a CSV file are written."""

    delimiter: str = ","
    encoding: str = "utf-8"


def is_address(source: object) -> bool:
    """Return whether a source is the address of a database, and not a path."""
    return isinstance(source, str) and (source.startswith("local[") or "://" in source)


def open_source(
    source: object,
    wanted: Sequence[str],
    *,
    table: str | None = None,
    csv_format: CsvFormat | None = None,
    timeout: float = TIMEOUT,
) -> Engine:
    """Open the wanted columns of a database, a file or a data frame."""
    wanted = tuple(dict.fromkeys(wanted))
    if isinstance(source, str) and is_address(source):
        for beginning, connect in DATABASES.items():
            if source.startswith(beginning):
                return connect(source, table, wanted, timeout)
        # The address is not quoted: it may have a password.
        raise SourceError("Unsupported database.", hint=SUPPORTED)
    if isinstance(source, str | Path):
        path = Path(source)
        if path.suffix.lower() in SQLITE_FILES and path.is_file():
            return SQLite(path, table, wanted, timeout)
        return open_file(path, wanted, table, DuckDB, csv_format)
    if table is not None:
        raise SourceError("`table` requires a database.", hint="Remove `table`.")
    return _open_frame(source, wanted)


def open_file(
    path: Path,
    wanted: Sequence[str],
    table: str | None,
    kind: type[DuckDBType],
    csv_format: CsvFormat | None = None,
) -> DuckDBType:
    """Open the wanted columns of a file in a session of the given class."""
    read, unreadable = file_reader(path, table, csv_format)
    return _read_into(kind(unreadable), read, wanted)


def _read_into(
    engine: DuckDBType, read: Callable[[DuckDB, Sequence[str]], None], wanted: Sequence[str]
) -> DuckDBType:
    """Read a source in a session, which is closed if that fails."""
    try:
        read(engine, wanted)
    except SourceError:
        engine.close()
        raise
    return engine


def file_reader(
    path: Path, table: str | None, csv_format: CsvFormat | None = None
) -> tuple[Callable[[DuckDB, Sequence[str]], None], SourceError]:
    """Return how the wanted columns of a file are read in a session, and the error if they cannot be."""
    files = _files(path)
    reader, requirement = FILES.get(_suffix(files[0]), (None, ""))
    if reader is None:
        raise SourceError(f"Unsupported file type: {path.name!r}.", hint=SUPPORTED)
    if table is not None and reader not in (_read_database, _read_excel):
        raise SourceError("`table` requires a database or a workbook.", hint="Remove `table`.")
    if csv_format is not None and reader is not _read_csv:
        raise SourceError("`delimiter` and `encoding` require a .csv or .tsv file.", hint="Remove them.")
    source = FileSource(files, table, csv_format)

    def read(engine: DuckDB, wanted: Sequence[str]) -> None:
        engine.files = [*engine.files, *files]
        reader(engine, source, wanted)

    return read, SourceError(f"Cannot read {path.name!r}.", hint=requirement)


@dataclass(frozen=True)
class FileSource:
    """The files of a source, and how to read them."""

    files: Sequence[Path]
    table: str | None
    csv_format: CsvFormat | None

    @property
    def path(self) -> Path:
        """The only file, or the first."""
        return self.files[0]


def _files(path: Path) -> list[Path]:
    """Return the file of a path, or all Parquet files of a folder or a pattern."""
    if not path.exists() and path.suffix.lower() == ".parquet" and any(s in path.name for s in "*?"):
        found = sorted(path.parent.glob(path.name))
    elif path.is_dir():
        found = sorted(path.rglob("*.parquet"))
    else:
        found = [path]
    if not found:
        raise SourceError(f"There is no .parquet file in {str(path)!r}.", hint=SUPPORTED)
    for each in found:
        if _suffix(each) in FILES and not each.is_file():
            raise SourceError(f"{str(each)!r} does not exist.", hint=SUPPORTED)
        if any(sign in str(each.resolve()) for sign in "*?["):
            raise SourceError(
                f"The path {str(each)!r} contains a wildcard.", hint="Remove *, ? and [ from it."
            )
    return [each.resolve() for each in found]


def _suffix(path: Path) -> str:
    """Return the suffix that gives the format, without that of a compressed file."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix == ".gz" else suffix


def _read_csv(engine: DuckDB, source: FileSource, wanted: Sequence[str]) -> None:
    """Read every field as text, so that no type is inferred from a person's row."""
    tabs = CsvFormat(delimiter="\t") if _suffix(source.path) == ".tsv" else CsvFormat()
    form = source.csv_format or tabs
    names = _header(source.path, form)
    columns = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.Literal.string(f"c{i}"), expression=exp.Literal.string("VARCHAR"))
            for i in range(len(names))
        ]
    )
    format_ = {
        "auto_detect": False,
        "header": True,
        "delim": form.delimiter,
        "quote": '"',
        "escape": '"',
    }
    if form.encoding != "utf-8":
        format_ |= {"encoding": form.encoding}
    origin = _function("read_csv", source.path, **format_, columns=columns)
    engine.seal(source.path)
    engine.view(origin, wanted, names)


def _header(path: Path, form: CsvFormat) -> list[str]:
    encoding = "utf-8-sig" if form.encoding == "utf-8" else form.encoding
    with suppress(OSError, EOFError, csv.Error), _opened(path, encoding) as file:
        if names := next(csv.reader(file, delimiter=form.delimiter), []):
            return names
    raise SourceError(
        f"Cannot read the header of {path.name!r}.", hint="The first line must name the columns."
    )


def _opened(path: Path, encoding: str) -> TextIO:
    """Open a text file, which may be compressed."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding=encoding, errors="replace", newline="")
    return path.open(encoding=encoding, errors="replace", newline="")


def _read_json(engine: DuckDB, source: FileSource, wanted: Sequence[str]) -> None:
    """Read every value as text; the first line names the columns."""
    names: list[str] = []
    with suppress(OSError, EOFError, ValueError), _opened(source.path, "utf-8-sig") as file:
        first = json.loads(file.readline())
        names = list(first) if isinstance(first, dict) else []
    if not names:
        raise SourceError(
            f"Cannot read the first line of {source.path.name!r}.", hint="Each line must be an object."
        )
    columns = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.Literal.string(name), expression=exp.Literal.string("VARCHAR"))
            for name in names
        ]
    )
    origin = _function("read_json", source.path, format="newline_delimited", columns=columns)
    engine.seal(source.path)
    engine.view(origin, wanted, names)


def _read_excel(engine: DuckDB, source: FileSource, wanted: Sequence[str]) -> None:
    """Read a sheet, every value as text: in a workbook each has a type of its own."""
    try:
        import pyarrow
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise missing_driver("files") from None
    rows: Any = None
    sheets: list[str] = []
    with suppress(Exception):
        book: Any = CalamineWorkbook.from_path(str(source.path))
        sheets = list(book.sheet_names)
        chosen = source.table or (sheets[0] if len(sheets) == 1 else None)
        rows = book.get_sheet_by_name(chosen).to_python() if chosen in sheets else None
    if not rows:
        raise SourceError(
            f"Cannot read the sheet of {source.path.name!r}.",
            hint=f"Set `table` to one of {', '.join(sheets)}; its first line must name the columns.",
        )
    names = [_written(value) or "" for value in rows[0]]
    columns = list(zip(*rows[1:], strict=True)) or [() for _ in names]
    table = pyarrow.table(
        {
            f"c{i}": pyarrow.array(list(map(_written, each)), pyarrow.string())
            for i, each in enumerate(columns)
        }
    )
    engine.view(engine.register(table), wanted, names)
    engine.seal()


def _written(value: object) -> str | None:
    """Return a cell of a workbook as text; an empty one is NULL, and a whole number has no fraction."""
    if value is None or value == "":
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_statistics(engine: DuckDB, source: FileSource, wanted: Sequence[str]) -> None:
    """Read a file of Stata or SPSS: the values, not their labels."""
    try:
        import pyreadstat
    except ImportError:
        raise missing_driver("files") from None
    read = pyreadstat.read_dta if _suffix(source.path) == ".dta" else pyreadstat.read_sav
    frame: Any = None
    with suppress(Exception):
        frame, _ = read(str(source.path))
    if frame is None:
        raise SourceError(
            f"Cannot read {source.path.name!r}.", hint="It must be a complete file of Stata or SPSS."
        )
    names = [str(name) for name in frame.columns]
    renamed = frame.set_axis([f"c{i}" for i in range(len(names))], axis="columns")
    engine.view(engine.register(renamed), wanted, names)
    engine.seal()


def _read_parquet(engine: DuckDB, source: FileSource, wanted: Sequence[str]) -> None:
    engine.seal(*source.files)
    schema = engine.run("SELECT name, num_children FROM parquet_schema(?)", [str(source.path)])
    # Statistics ignore NaN; with them, DuckDB would let NaN pass its filters.
    origin = _function("read_parquet", *source.files, can_have_nan=True, hive_partitioning=False)
    engine.view(origin, wanted, _top_level(schema))


def _top_level(schema: Sequence[tuple[str, int | None]]) -> list[str]:
    """Return the true column names, since DuckDB renames those that differ only in case."""
    names, inside = [], 0
    for name, children in schema[1:]:
        if not inside:
            names.append(name)
        inside = max(inside - 1, 0) + (children or 0)
    return names


def _read_database(engine: DuckDB, source: FileSource, wanted: Sequence[str]) -> None:
    path, table = source.path, source.table
    catalogue = engine.attach(path)
    engine.seal()
    found = engine.run(
        "SELECT table_schema, table_name FROM information_schema.tables"
        " WHERE table_catalog = ? ORDER BY ALL",
        [catalogue],
    )
    tables = {name if schema == "main" else f"{schema}.{name}": (schema, name) for schema, name in found}
    if table is None and len(tables) == 1:
        table = next(iter(tables))
    if table not in tables:
        problem = f"has no table {table!r}" if table else f"has {len(tables)} tables"
        raise SourceError(
            f"The database {path.name!r} {problem}.",
            hint=f"Set `table` to one of {', '.join(tables)}." if tables else "It is empty.",
        )
    schema, name = tables[table]
    engine.view(exp.table_(name, db=schema, catalog=catalogue, quoted=True), wanted)


def _function(name: str, *paths: Path, **options: Any) -> exp.Table:
    """Return a call of one of DuckDB's table functions on files."""
    settings = [
        exp.EQ(this=exp.var(key), expression=exp.convert(value)) for key, value in options.items()
    ]
    files = exp.convert([str(path) for path in paths])
    call = exp.Anonymous(this=name, expressions=[files, *settings])
    return exp.Table(this=call)


Reader = Callable[[DuckDB, FileSource, Sequence[str]], None]

_CSV = (
    _read_csv,
    "It must be UTF-8 and comma-separated, unless `encoding` and `delimiter` say otherwise, with "
    "consistent line endings, and every line must have as many fields as the header.",
)
_JSON = (_read_json, "Each line must be an object, in UTF-8.")
_EXCEL = (_read_excel, "It must be a workbook without a password.")
_STATISTICS = (_read_statistics, "It must be a complete file of Stata or SPSS.")

#: The supported files: the reader of each suffix, and the hint if it fails.
FILES: dict[str, tuple[Reader, str]] = {
    ".csv": _CSV,
    ".tsv": _CSV,
    ".parquet": (_read_parquet, "It must be a complete, unencrypted Parquet file."),
    ".jsonl": _JSON,
    ".ndjson": _JSON,
    ".xlsx": _EXCEL,
    ".xls": _EXCEL,
    ".ods": _EXCEL,
    ".dta": _STATISTICS,
    ".sav": _STATISTICS,
    ".duckdb": (
        _read_database,
        "It must be a DuckDB database that no other process is writing to, and its views must not read "
        "other files.",
    ),
}
SQLITE_FILES = (".sqlite", ".sqlite3", ".db")


def _open_frame(source: object, wanted: Sequence[str]) -> Engine:
    """Open a data frame in a session of its own."""
    read, unreadable = frame_reader(source, wanted)
    return _read_into(DuckDB(unreadable), read, wanted)


def frame_reader(
    source: object, wanted: Sequence[str]
) -> tuple[Callable[[DuckDB, Sequence[str]], None], SourceError]:
    """Return how a frame is read, and the error if it cannot be.

    DuckDB sees only the wanted columns, renamed c0, c1, ...
    """
    source = _arrow_table(source)
    names = _names(source)
    found = find_columns(wanted, names)
    frame = _narrow(source, found)
    kinds = ", ".join(f"{names[p]!r} is {kind}" for p, kind in zip(found, _kinds(frame), strict=True))

    def read(engine: DuckDB, wanted: Sequence[str]) -> None:
        engine.view(engine.register(frame), wanted, names=wanted)
        engine.seal()

    return read, SourceError(
        f"Cannot read the columns of the data frame: {kinds}.",
        hint="Use columns of numbers, text, booleans, dates or timestamps.",
    )


def _arrow_table(source: Any) -> Any:
    """Return a frame that is not of a known library as an Arrow table, if it offers itself as one."""
    if any(_is(source, *known) for known in FRAMES) or not hasattr(source, "__arrow_c_stream__"):
        return source
    try:
        import pyarrow
    except ImportError:
        raise missing_driver("dataframes") from None
    return _collected(lambda: pyarrow.RecordBatchReader.from_stream(source).read_all())


#: The known classes of frames, by library.
FRAMES = (
    ("pandas", "DataFrame"),
    ("polars", "DataFrame", "LazyFrame"),
    ("pyarrow", "Table", "RecordBatch"),
)


def _names(source: Any) -> list[str]:
    if _is(source, "pandas", "DataFrame") or _is(source, "polars", "DataFrame"):
        return [str(name) for name in source.columns]
    if _is(source, "pyarrow", "Table", "RecordBatch"):
        return list(source.schema.names)
    if _is(source, "polars", "LazyFrame"):
        return list(_collected(source.collect_schema).names())
    raise SourceError(f"Unsupported source: {type(source).__name__}.", hint=SUPPORTED)


def _narrow(source: Any, found: Sequence[int]) -> Any:
    """Select columns by index, renamed c0, c1, ..."""
    names = [f"c{i}" for i in range(len(found))]
    if _is(source, "pandas", "DataFrame"):
        return source.iloc[:, list(found)].set_axis(names, axis="columns")
    if _is(source, "pyarrow", "Table", "RecordBatch"):
        return source.select(list(found)).rename_columns(names)
    lazy = source.lazy()
    own = _collected(lazy.collect_schema).names()
    column = sys.modules["polars"].col
    picks = [column(own[p]).alias(name) for p, name in zip(found, names, strict=True)]
    return _collected(lazy.select(picks).collect)


def _collected(collect: Callable[[], Any]) -> Any:
    """Collect a lazy frame; its errors may quote a row, so ours is raised after the handler."""
    with suppress(Exception):
        return collect()
    raise SourceError("Cannot read the frame.", hint="If it is lazy, call `.collect()` to see why.")


def _kinds(frame: Any) -> list[str]:
    """Return the class names of the columns' types: the repr of a type may list its categories."""
    types = frame.schema.types if _is(frame, "pyarrow", "Table", "RecordBatch") else frame.dtypes
    return [type(kind).__name__ for kind in types]


def _is(source: object, module: str, *names: str) -> bool:
    """Return whether a value is an instance of a library's class, without importing the library."""
    library = sys.modules.get(module)
    return library is not None and isinstance(source, tuple(getattr(library, name) for name in names))
