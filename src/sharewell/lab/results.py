"""Tidy results on disk: one row a study, case, trial, contestant and analyst, as Parquet and CSV."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sharewell.lab.trials import Columns

#: Names and kinds of the columns that every study has, in order; swept parameters follow.
COLUMNS = {
    "study": "VARCHAR",
    "epsilon": "DOUBLE",
    "p": "DOUBLE",
    "trial": "BIGINT",
    "contestant": "VARCHAR",
    "analyst": "BIGINT",
    "asked": "BIGINT",
    "useful": "BIGINT",
    "alone": "BIGINT",
    "without": "BIGINT",
    "expected_useful": "DOUBLE",
    "expected_alone": "DOUBLE",
    "expected_without": "DOUBLE",
    "steps": "BIGINT",
    "stalls": "BIGINT",
}


def together(parts: Sequence[Columns]) -> Columns:
    """The rows of all parts, one after the other; a column that a part lacks is not known there."""
    names = [*COLUMNS, *dict.fromkeys(name for part in parts for name in part if name not in COLUMNS)]
    return {name: np.concatenate([_column(part, name) for part in parts]) for name in names}


def _column(part: Columns, name: str) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    return part[name] if name in part else np.full(len(part["analyst"]), np.nan)


def nothing() -> Columns:
    """Results without a row."""
    kinds = {"VARCHAR": np.str_, "DOUBLE": np.float64, "BIGINT": np.int64}
    return {name: np.zeros(0, dtype=kinds[kind]) for name, kind in COLUMNS.items()}


def write_results(columns: Columns, folder: Path) -> Path:
    """Write `results.parquet` and `results.csv`, and return the path of the former.

    The same rows give the same bytes. What is not known is NULL, and empty in the CSV file.
    """
    import duckdb

    chosen = ", ".join(
        f'CAST("{name}" AS {COLUMNS.get(name, "DOUBLE")}) AS "{name}"' for name in columns
    )
    rows = {name: column if len(column) else column.astype(object) for name, column in columns.items()}
    folder.mkdir(parents=True, exist_ok=True)
    # One thread writes the rows in their order.
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.register("results", rows)
        for suffix, form in (("csv", "FORMAT csv, HEADER"), ("parquet", "FORMAT parquet")):
            path = folder / f"results.{suffix}"
            half = folder / f".results.{suffix}.{os.getpid()}"
            connection.execute(
                f"COPY (SELECT {chosen} FROM results) TO {_quoted(half)} ({form})"  # noqa: S608
            )
            half.replace(path)
    return path


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
