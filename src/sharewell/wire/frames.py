"""Data frames of results: a number becomes four columns, for its value, its error and its interval."""

from __future__ import annotations

import re
from collections.abc import Container
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sharewell.errors import RequestError
from sharewell.wire.result import Number, Result
from sharewell.wire.text import format_label

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: Suffixes of the four columns of a number.
SUFFIXES = ("", "_error", "_low", "_high")


def to_pandas(result: Result) -> pandas.DataFrame:
    """Return a pandas frame; an unknown number is NaN."""
    labels, numbers = as_columns(result)
    frame: pandas.DataFrame = _library("pandas").DataFrame({**labels, **numbers})
    return frame.astype(dict.fromkeys(numbers, "float64"))


def to_polars(result: Result) -> polars.DataFrame:
    """Return a Polars frame; an unknown number is null."""
    library = _library("polars")
    labels, numbers = as_columns(result)
    floats = dict.fromkeys(numbers, library.Float64)
    frame: polars.DataFrame = library.DataFrame({**labels, **numbers}, schema_overrides=floats)
    return frame


def to_arrow(result: Result) -> pyarrow.Table:
    """Return an Arrow table; an unknown number is null."""
    library = _library("pyarrow")
    labels, numbers = as_columns(result)
    floats = {name: library.array(column, library.float64()) for name, column in numbers.items()}
    return library.table({**labels, **floats})


def as_columns(result: Result) -> tuple[dict[str, list[Any]], dict[str, list[float | None]]]:
    """Return the columns of labels and those of numbers, under names that need no quotes."""
    labels: dict[str, list[Any]] = {}
    numbers: dict[str, list[float | None]] = {}
    for at, column in enumerate(result.columns):
        fields = [row[at] for row in result.rows]
        taken = labels.keys() | numbers.keys()
        if column.kind == "group":
            labels[_unused(column.name, taken, ("",))] = _of_one_type(fields)
        else:
            stem = _unused(plain_name(column.name), taken, SUFFIXES)
            numbers |= zip((stem + suffix for suffix in SUFFIXES), _parts(fields), strict=True)
    return labels, numbers


def plain_name(name: str) -> str:
    """Return a column name that needs no quotes.

    >>> plain_name("movers"), plain_name("COUNT(*)"), plain_name("AVG(age)")
    ('movers', 'count', 'avg_age')
    """
    return name if name.isidentifier() else re.sub(r"\W+", "_", name).strip("_").lower() or "number"


def _unused(name: str, taken: Container[str], suffixes: tuple[str, ...]) -> str:
    """Return the name, numbered where it is taken."""
    unused, count = name, 1
    while any(unused + suffix in taken for suffix in suffixes):
        count += 1
        unused = f"{name}_{count}"
    return unused


def _of_one_type(labels: list[Any]) -> list[Any]:
    """Return the labels, as text where their types are mixed: a column has one type."""
    if len({type(label) for label in labels if label is not None}) < 2:
        return labels
    return [label if label is None else format_label(label) for label in labels]


def _parts(fields: list[Number]) -> tuple[list[float | None], ...]:
    """Return values, standard errors, and the two ends of the intervals."""
    ends = [field.interval or (None, None) for field in fields]
    return (
        [field.value for field in fields],
        [field.standard_error for field in fields],
        [low for low, _ in ends],
        [high for _, high in ends],
    )


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != name:
            raise
        raise RequestError(
            f"Data frames of {name} need the package {name}, which is not installed.",
            hint="Install it with: pip install 'sharewell[dataframes]'",
        ) from None
