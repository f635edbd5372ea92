"""Results as files: CSV and Parquet, with the columns of a data frame."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from sharewell import wire
from sharewell.wire.frames import as_columns
from sharewell.wire.text import format_label

#: The type of a column of labels in DuckDB, by the Python type of its values.
_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE"}
#: How a formula begins in a spreadsheet.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def to_csv(result: wire.Result) -> bytes:
    """Write a result as CSV in UTF-8; a number n has the columns n, n_error, n_low and n_high.

    Spreadsheets compute a text that begins like a formula: such a label or name gets an apostrophe,
    which they take as the mark of a text. The Parquet file has it as it is.
    """
    labels, numbers = as_columns(result)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(map(_as_text, [*labels, *numbers]))
    columns = [
        *([None if each is None else _as_text(each) for each in column] for column in labels.values()),
        *numbers.values(),
    ]
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue().encode()


def _as_text(label: Any) -> str:
    starts_formula = isinstance(label, str) and label.startswith(_FORMULA_STARTS)
    return f"'{label}" if starts_formula else format_label(label)


def to_parquet(result: wire.Result) -> bytes:
    """Write a result as a Parquet file with the columns of the CSV file."""
    labels, numbers = as_columns(result)
    types = {name: _type_of(column) for name, column in labels.items()}
    types |= dict.fromkeys(numbers, "DOUBLE")
    rows = zip(*labels.values(), *numbers.values(), strict=True)
    with TemporaryDirectory(prefix="sharewell-") as folder, duckdb.connect() as connection:
        lines, parquet = Path(folder) / "rows.json", Path(folder) / "rows.parquet"
        with lines.open("w", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(dict(zip(types, map(_plain, row), strict=True))) + "\n")
        connection.read_json(str(lines), columns=types, format="newline_delimited").write_parquet(
            str(parquet)
        )
        return parquet.read_bytes()


def _type_of(labels: list[Any]) -> str:
    kinds = {type(label) for label in labels if label is not None}
    return _TYPES.get(kinds.pop(), "VARCHAR") if len(kinds) == 1 else "VARCHAR"


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # DuckDB reads 'inf' as infinity
    return value if value is None or isinstance(value, bool | int | float) else str(value)
