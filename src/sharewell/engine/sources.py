"""The registry of data sources: files by suffix, and data frames."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from sqlglot import exp

from sharewell.engine.base import Engine, find_columns
from sharewell.engine.duckdb import DuckDB
from sharewell.errors import SourceError

DuckDBType = TypeVar("DuckDBType", bound=DuckDB)

SUPPORTED = "Use a .csv, .parquet or .duckdb file, or a data frame of pandas, Polars or Arrow."


def open_source(source: object, wanted: Sequence[str], *, table: str | None = None) -> Engine:
    """Open the wanted columns of a file or a data frame."""
    wanted = tuple(dict.fromkeys(wanted))
    if isinstance(source, str | Path):
        return open_file(Path(source), wanted, table, DuckDB)
    if table is not None:
        raise SourceError("`table` requires a .duckdb file.", hint="Remove `table`.")
    return _open_frame(source, wanted)


def open_file(
    path: Path, wanted: Sequence[str], table: str | None, kind: type[DuckDBType]
) -> DuckDBType:
    """Open the wanted columns of a file in a session of the given class."""
    reader, requirement = FILES.get(path.suffix.lower(), (None, ""))
    if reader is None:
        raise SourceError(f"Unsupported file type: {path.name!r}.", hint=SUPPORTED)
    if not path.is_file():
        what = "is a directory" if path.is_dir() else "does not exist"
        raise SourceError(f"{str(path)!r} {what}.", hint=SUPPORTED)
    if any(sign in str(path.resolve()) for sign in "*?["):
        raise SourceError(
            f"The path {str(path)!r} contains a wildcard.", hint="Remove *, ? and [ from it."
        )
    if table is not None and reader is not _read_database:
        raise SourceError("`table` requires a .duckdb file.", hint="Remove `table`.")
    engine = kind(SourceError(f"Cannot read {path.name!r}.", hint=requirement))
    try:
        reader(engine, path.resolve(), wanted, table)
    except SourceError:
        engine.close()
        raise
    return engine


def _read_csv(engine: DuckDB, path: Path, wanted: Sequence[str], _: str | None) -> None:
    """Read every field as text, so that no type is inferred from a person's row."""
    names = _header(path)
    columns = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.Literal.string(f"c{i}"), expression=exp.Literal.string("VARCHAR"))
            for i in range(len(names))
        ]
    )
    format_ = {"auto_detect": False, "header": True, "delim": ",", "quote": '"', "escape": '"'}
    origin = _function("read_csv", path, **format_, columns=columns)
    engine.seal(path)
    engine.view(origin, wanted, names)


def _header(path: Path) -> list[str]:
    with (
        suppress(OSError, csv.Error),
        path.open(encoding="utf-8-sig", errors="replace", newline="") as file,
    ):
        if names := next(csv.reader(file), []):
            return names
    raise SourceError(
        f"Cannot read the header of {path.name!r}.", hint="The first line must name the columns."
    )


def _read_parquet(engine: DuckDB, path: Path, wanted: Sequence[str], _: str | None) -> None:
    engine.seal(path)
    schema = engine.run("SELECT name, num_children FROM parquet_schema(?)", [str(path)])
    # Statistics ignore NaN; with them, DuckDB would let NaN pass its filters.
    origin = _function("read_parquet", path, can_have_nan=True, hive_partitioning=False)
    engine.view(origin, wanted, _top_level(schema))


def _top_level(schema: Sequence[tuple[str, int | None]]) -> list[str]:
    """Return the true column names, since DuckDB renames those that differ only in case."""
    names, inside = [], 0
    for name, children in schema[1:]:
        if not inside:
            names.append(name)
        inside = max(inside - 1, 0) + (children or 0)
    return names


def _read_database(engine: DuckDB, path: Path, wanted: Sequence[str], table: str | None) -> None:
    engine.run(f"ATTACH {exp.Literal.string(str(path)).sql('duckdb')} AS data (READ_ONLY)")
    engine.seal()
    found = engine.run(
        "SELECT table_schema, table_name FROM information_schema.tables"
        " WHERE table_catalog = 'data' ORDER BY ALL"
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
    engine.view(exp.table_(name, db=schema, catalog="data", quoted=True), wanted)


def _function(name: str, path: Path, **options: Any) -> exp.Table:
    """Return a call of one of DuckDB's table functions on a file."""
    settings = [
        exp.EQ(this=exp.var(key), expression=exp.convert(value)) for key, value in options.items()
    ]
    call = exp.Anonymous(this=name, expressions=[exp.Literal.string(str(path)), *settings])
    return exp.Table(this=call)


Reader = Callable[[DuckDB, Path, Sequence[str], str | None], None]

#: The supported files: the reader of each suffix, and the hint if it fails.
FILES: dict[str, tuple[Reader, str]] = {
    ".csv": (
        _read_csv,
        "It must be UTF-8, comma-separated, with consistent line endings, and every line must have as "
        "many fields as the header.",
    ),
    ".parquet": (_read_parquet, "It must be a complete, unencrypted Parquet file."),
    ".duckdb": (
        _read_database,
        "It must be a DuckDB database that no other process is writing to, and its views must not read "
        "other files.",
    ),
}


def _open_frame(source: object, wanted: Sequence[str]) -> Engine:
    """Open a data frame; DuckDB sees only the wanted columns, renamed c0, c1, ..."""
    names = _names(source)
    found = find_columns(wanted, names)
    frame = _narrow(source, found)
    kinds = ", ".join(f"{names[p]!r} is {kind}" for p, kind in zip(found, _kinds(frame), strict=True))
    engine = DuckDB(
        SourceError(
            f"Cannot read the columns of the data frame: {kinds}.",
            hint="Use columns of numbers, text, booleans, dates or timestamps.",
        )
    )
    try:
        engine.view(engine.register(frame), wanted, names=wanted)
        engine.seal()
    except SourceError:
        engine.close()
        raise
    return engine


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
    raise SourceError("Cannot collect the lazy frame.", hint="Call `.collect()` on it to see why.")


def _kinds(frame: Any) -> list[str]:
    """Return the class names of the columns' types: the repr of a type may list its categories."""
    types = frame.schema.types if _is(frame, "pyarrow", "Table", "RecordBatch") else frame.dtypes
    return [type(kind).__name__ for kind in types]


def _is(source: object, module: str, *names: str) -> bool:
    """Return whether a value is an instance of a library's class, without importing the library."""
    library = sys.modules.get(module)
    return library is not None and isinstance(source, tuple(getattr(library, name) for name in names))
