"""The same rows as every kind of source that there is."""

import csv
import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet

MakeSource = Callable[[pa.Table, Path], object]


def to_csv(rows: pa.Table, folder: Path) -> Path:
    path = folder / "people.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows.column_names)
        writer.writerows([written(value) for value in row.values()] for row in rows.to_pylist())
    return path


def written(value: Any) -> str:
    """A value as a careful person writes it in a CSV file."""
    if value is None:
        return ""
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def to_parquet(rows: pa.Table, folder: Path) -> Path:
    path = folder / "people.parquet"
    pyarrow.parquet.write_table(rows, path)
    return path


def to_duckdb(rows: pa.Table, folder: Path) -> str:
    path = folder / "people.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(path) as connection:
        connection.register("arrow", rows)
        connection.execute("CREATE TABLE people AS SELECT * FROM arrow").fetchall()
    return str(path)


SOURCES: dict[str, MakeSource] = {
    "csv": to_csv,
    "parquet": to_parquet,
    "duckdb": to_duckdb,
    "pandas": lambda rows, _: rows.to_pandas(),
    "polars": lambda rows, _: polars.from_arrow(rows),
    "lazy polars": lambda rows, _: polars.DataFrame(polars.from_arrow(rows)).lazy(),
    "arrow table": lambda rows, _: rows,
    "arrow batch": lambda rows, _: pa.RecordBatch.from_pylist(rows.to_pylist(), rows.schema),
}
