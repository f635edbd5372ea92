"""Results by study, case, trial, contestant and analyst, on disk and as matrices.

A results file has one row for each analyst and trial. Figures and claims need one number for each trial:
the share of useful answers, the worst ratio against being alone, the number of steps. Realised and
expected numbers are kept apart everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import SourceError
from sharewell_lab.trials import Columns

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


#: The columns of tidy results, by name.
Results = Mapping[str, NDArray[Any]]
Numbers = NDArray[np.float64]

KEYS = ("study", "epsilon", "p", "contestant")
#: Display order of the contestants; others follow by name.
ORDER = ("Uniform", "Ind", "Laplace", "PMW", "RR", "RS", "RS skip", "SCR printed", "SCR")


class Scenario(NamedTuple):
    """What all trials of one line of a table have in common."""

    study: str
    epsilon: float
    p: float
    contestant: str


@dataclass(frozen=True)
class Outcomes:
    """All trials of one setting: matrices with a row a trial and a column an analyst."""

    trial: NDArray[np.int64]
    asked: Numbers
    useful: Numbers
    alone: Numbers
    without: Numbers
    expected_useful: Numbers
    expected_alone: Numbers
    expected_without: Numbers
    steps: Numbers

    @cached_property
    def accuracy(self) -> Numbers:
        """The share of all questions that was answered within alpha."""
        return _share(self.useful.sum(1), self.asked.sum(1))

    @cached_property
    def accuracy_by_analyst(self) -> Numbers:
        """The same for every analyst."""
        return _share(self.useful, self.asked)

    @cached_property
    def expected_accuracy(self) -> Numbers:
        """The share of all questions whose standard error is within alpha; NaN where it is not known."""
        return _share(self.expected_useful.sum(1), self.asked.sum(1))

    @cached_property
    def ratio(self) -> Numbers:
        """The max ratio error: above 1, an analyst is better off alone."""
        return _worst(self.alone, self.useful)

    @cached_property
    def expected_ratio(self) -> Numbers:
        """The same of expected errors; NaN where they are not known."""
        return _worst(self.expected_alone, self.expected_useful)

    @cached_property
    def interference(self) -> Numbers:
        """The empirical interference: above 1, an analyst gains if another leaves."""
        return _worst(self.without, self.useful)

    @cached_property
    def expected_interference(self) -> Numbers:
        """The same of expected errors; NaN where they are not known."""
        return _worst(self.expected_without, self.expected_useful)

    def at(self, trials: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of these trials, all of which must be here."""
        return np.searchsorted(self.trial, trials)


#: Every setting of a run, with its trials.
OutcomeTable = Mapping[Scenario, Outcomes]


def read_results(path: Path) -> Results:
    """The columns of a Parquet file of tidy results, or of all such files of a folder together."""
    import duckdb

    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        raise SourceError(
            f"No results in {os.fspath(path)}.",
            hint="Run `sharewell reproduce` or `sharewell simulate` first.",
        )
    with duckdb.connect() as connection:
        # Files of different studies may have different swept parameters, so columns go by name.
        found = connection.execute(
            "SELECT * FROM read_parquet(?, union_by_name = true)", [[os.fspath(file) for file in files]]
        ).fetchnumpy()
    return {name: _plain(column) for name, column in found.items()}


def by_scenario(results: Results) -> dict[Scenario, Outcomes]:
    """The outcomes of every setting, in the order of studies, budgets, probabilities and contestants."""
    if missing := [name for name in COLUMNS if name not in results]:
        raise SourceError(
            f"The results have no column {missing[0]!r}.",
            hint="Use the Parquet file that `sharewell reproduce` or `sharewell simulate` wrote.",
        )
    study = _with_swept(results)
    keys = [study, *(results[name] for name in KEYS[1:])]
    codes = [np.unique(key, return_inverse=True)[1] for key in keys]
    order = np.lexsort((results["analyst"], results["trial"], *reversed(codes)))
    if not len(order):
        return {}
    changes = np.any([np.diff(code[order]) != 0 for code in codes], axis=0)
    found = {}
    for rows in np.split(order, np.flatnonzero(changes) + 1):
        first = rows[0]
        setting = Scenario(
            str(study[first]),
            float(results["epsilon"][first]),
            float(results["p"][first]),
            str(results["contestant"][first]),
        )
        found[setting] = _outcomes(results, rows, setting)
    return dict(sorted(found.items(), key=lambda item: (*item[0][:3], _place(item[0].contestant))))


def contestants(settings: Iterable[Scenario]) -> list[str]:
    """The contestants, each once, in display order."""
    return sorted({setting.contestant for setting in settings}, key=_place)


def _outcomes(results: Results, rows: NDArray[np.int64], setting: Scenario) -> Outcomes:
    analysts = len(np.unique(results["analyst"][rows]))
    trials = results["trial"][rows].astype(np.int64)
    table = trials.reshape(-1, analysts) if len(rows) % analysts == 0 else trials[:, None]
    if table.shape[1] != analysts or np.any(table != table[:, :1]) or np.any(np.diff(table[:, 0]) <= 0):
        raise SourceError(
            f"The results of {setting.contestant} in {setting.study} lack rows or repeat them.",
            hint="There must be one row a trial and analyst. Run the study again.",
        )

    def matrix(name: str) -> Numbers:
        return results[name][rows].astype(np.float64).reshape(-1, analysts)

    return Outcomes(
        table[:, 0],
        matrix("asked"),
        matrix("useful"),
        matrix("alone"),
        matrix("without"),
        matrix("expected_useful"),
        matrix("expected_alone"),
        matrix("expected_without"),
        matrix("steps")[:, 0],
    )


def _with_swept(results: Results) -> NDArray[Any]:
    """The name of the study, and the values of the parameters that it sweeps."""
    names = [str(name) for name in results["study"]]
    for column in sorted(name for name in results if name.startswith("set_")):
        label = column.removeprefix("set_")
        names = [
            name if _is_missing(value) else f"{name}, {label} = {value}"
            for name, value in zip(names, results[column].tolist(), strict=True)
        ]
    return np.array(names, dtype=object).astype(str)


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _plain(column: Any) -> NDArray[Any]:
    """A column as an array: DuckDB masks what is NULL, which here stands for what is not known."""
    if not isinstance(column, np.ma.MaskedArray):
        return np.asarray(column)
    floats = column.dtype.kind == "f"
    return np.asarray(
        np.ma.filled(column, np.nan) if floats else np.ma.filled(column.astype(object), None)
    )


def _place(contestant: str) -> tuple[int, str]:
    return (ORDER.index(contestant) if contestant in ORDER else len(ORDER), contestant)


def _share(part: Numbers, whole: Numbers) -> Numbers:
    """Part of a whole; of nothing, all is well."""
    return np.divide(part, whole, out=np.ones_like(part), where=whole > 0)


def _worst(elsewhere: Numbers, joint: Numbers) -> Numbers:
    """The largest `sharing.certificate.ratio` of every row; NaN where a side is not known."""
    nothing = np.where(elsewhere > 0, np.inf, 1.0)
    ratios = np.divide(elsewhere, joint, out=nothing, where=joint > 0)
    known = ~np.isnan(elsewhere) & ~np.isnan(joint)
    return np.asarray(np.where(known, ratios, np.nan).max(1), dtype=np.float64)
