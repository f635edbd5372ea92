"""Tables as data frames: an estimate becomes four columns, its value, its error and its interval."""

from __future__ import annotations

import re
from collections.abc import Container
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sharewell.client.answer import Estimate
from sharewell.client.table import in_words
from sharewell.errors import RequestError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from sharewell.client.table import AnswerTable

#: What is set behind the name of a number: nothing for its value, and these.
ENDINGS = ("", "_error", "_low", "_high")


def to_pandas(table: AnswerTable) -> pandas.DataFrame:
    """A pandas frame; a number that is not known is NaN."""
    labels, numbers = as_columns(table)
    frame: pandas.DataFrame = _library("pandas").DataFrame({**labels, **numbers})
    return frame.astype(dict.fromkeys(numbers, "float64"))


def to_polars(table: AnswerTable) -> polars.DataFrame:
    """A Polars frame; a number that is not known is null."""
    library = _library("polars")
    labels, numbers = as_columns(table)
    floats = dict.fromkeys(numbers, library.Float64)
    frame: polars.DataFrame = library.DataFrame({**labels, **numbers}, schema_overrides=floats)
    return frame


def to_arrow(table: AnswerTable) -> pyarrow.Table:
    """An Arrow table; a number that is not known is null."""
    library = _library("pyarrow")
    labels, numbers = as_columns(table)
    floats = {name: library.array(column, library.float64()) for name, column in numbers.items()}
    return library.table({**labels, **floats})


def as_columns(table: AnswerTable) -> tuple[dict[str, list[Any]], dict[str, list[float | None]]]:
    """The columns of labels and those of numbers, under names that need no quotes."""
    labels: dict[str, list[Any]] = {}
    numbers: dict[str, list[float | None]] = {}
    for at, (name, group) in enumerate(zip(table.columns, table.grouped, strict=True)):
        fields = [row[at] for row in table.rows]
        taken = labels.keys() | numbers.keys()
        if group:
            labels[_free(name, taken, ("",))] = _of_one_kind(fields)
        else:
            stem = _free(plain_name(name), taken, ENDINGS)
            numbers |= zip((stem + end for end in ENDINGS), _parts(fields), strict=True)
    return labels, numbers


def plain_name(name: str) -> str:
    """A column's name that can be written without quotes.

    >>> plain_name("movers"), plain_name("COUNT(*)"), plain_name("AVG(age)")
    ('movers', 'count', 'avg_age')
    """
    return name if name.isidentifier() else re.sub(r"\W+", "_", name).strip("_").lower() or "number"


def _free(name: str, taken: Container[str], endings: tuple[str, ...]) -> str:
    """A name that nobody has, with a number behind it where it must be."""
    free, count = name, 1
    while any(free + end in taken for end in endings):
        count += 1
        free = f"{name}_{count}"
    return free


def _of_one_kind(labels: list[Any]) -> list[Any]:
    """Labels as they are, or as texts where numbers and texts are mixed: a column has one type."""
    kinds = {type(label) for label in labels if label is not None}
    return (
        labels if len(kinds) < 2 else [label if label is None else in_words(label) for label in labels]
    )


def _parts(fields: list[Estimate]) -> tuple[list[float | None], ...]:
    """Values, errors, and the two ends of the intervals."""
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
            f"This needs {name}, which is not installed.",
            hint="Install it with: pip install 'sharewell[dataframes]'",
        ) from None
