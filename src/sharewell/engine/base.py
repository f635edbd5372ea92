"""The engine protocol: an open source that can run one GROUP BY."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sharewell.errors import SourceError, Suggestion

#: Columns of integers, by name.
Columns = Mapping[str, NDArray[np.integer[Any]]]


@dataclass(frozen=True)
class SourceColumn:
    """A column of a source: its name there, its type, and its SQL expression."""

    name: str
    type: exp.DataType
    value: exp.Column


class Engine(Protocol):
    """An open source, in a session whose time zone is UTC.

    It must compare text byte by byte: under a case-insensitive collation, a row could fall in two cells
    and two people could be taken for one.
    """

    @property
    def relation(self) -> exp.Table:
        """The table to select from."""

    @property
    def columns(self) -> Mapping[str, SourceColumn]:
        """The columns, keyed by the requested names."""

    def fetch(self, statement: exp.Select) -> Columns:
        """Run a statement whose columns are integers without NULL."""

    def close(self) -> None:
        """Close the source."""


def find_columns(wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the index of each wanted column: an exact match, or else a unique one ignoring case."""
    return [_find_column(name, names) for name in wanted]


def _find_column(wanted: str, names: Sequence[str]) -> int:
    exact = [i for i, name in enumerate(names) if name == wanted]
    found = exact or [i for i, name in enumerate(names) if name.casefold() == wanted.casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        raise SourceError(f"Several columns match {wanted!r}.", hint="Rename all but one.")
    # Only close matches: if a CSV file lacks its header, the other names are a person's row.
    close = get_close_matches(wanted, names)
    hint = f"Did you mean {' or '.join(map(repr, close))}?"
    raise SourceError(
        f"Unknown column {wanted!r}.",
        hint=hint if close else "Use the column's name as the name of the attribute.",
        suggestion=Suggestion(change=wanted, to=close[0]) if close else None,
    )
