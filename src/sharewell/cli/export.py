"""Results for other programs: CSV on standard output, and Parquet files.

Labels keep their columns. A number n becomes four columns, as in data frames: n, n_error, n_low, n_high.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import typer

from sharewell import wire
from sharewell.errors import RequestError
from sharewell.wire.frames import as_columns


@dataclass(frozen=True)
class Export:
    """The formats that a command was asked for; at most one."""

    csv: bool = False
    json: bool = False
    parquet: str | None = None

    def check(self) -> None:
        """Refuse what could not be written, before a question is asked and charged."""
        given = [name for name in ("csv", "json", "parquet") if getattr(self, name)]
        if len(given) > 1:
            raise RequestError(f"--{given[0]} and --{given[1]} are mutually exclusive.")
        if self.parquet is None:
            return
        if find_spec("pyarrow") is None:
            raise RequestError(
                "Parquet files need pyarrow.", hint="Run: pip install 'sharewell[dataframes]'"
            )
        path = Path(self.parquet)
        if path.is_dir() or not path.parent.is_dir():
            reason = "it is a folder" if path.is_dir() else f"there is no folder '{path.parent}'"
            raise RequestError(f"Cannot write '{path}': {reason}.")

    def write(self, result: wire.Result) -> bool:
        """Write a result as CSV or Parquet; False if it is to be printed otherwise."""
        if self.csv:
            typer.echo(to_csv(result), nl=False)
        elif self.parquet is not None:
            _write_parquet(result, self.parquet)
        return self.csv or self.parquet is not None


def to_csv(result: wire.Result) -> str:
    """Return a result as CSV; NULL and unknown numbers are empty fields."""
    labels, numbers = as_columns(result)
    columns = {**labels, **numbers}
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return file.getvalue()


def _write_parquet(result: wire.Result, path: str) -> None:
    import pyarrow.parquet

    try:
        pyarrow.parquet.write_table(result.to_arrow(), path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise RequestError(f"Cannot write '{path}': {reason}.") from None
    rows = "1 row" if len(result) == 1 else f"{len(result):,} rows"
    typer.echo(f"Wrote {rows} to {path}.", err=True)
