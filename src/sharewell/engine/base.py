"""What an engine is: something that holds an open source and can run one GROUP BY over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sharewell.errors import SourceError

CellCounts = tuple[NDArray[np.int64], NDArray[np.int64]]

#: Engines where a cast that fails on one row fails the statement, so that no text can be tried.
NO_TRY_CAST = frozenset({"postgres"})


@dataclass(frozen=True)
class Column:
    """A column of a source: its name there, its type, and how SQL reads it."""

    name: str
    type: exp.DataType
    value: exp.Column


class Engine(Protocol):
    """An open source, in a session that is set to UTC.

    It compares text byte by byte: under a collation that takes `a` for `A`, a row could fall into
    two cells, and two people could be taken for one.
    """

    @property
    def dialect(self) -> str:
        """The name of its SQL, as sqlglot knows it."""

    @property
    def relation(self) -> exp.Table:
        """What to select from."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns, keyed by the names that they were asked for by."""

    def fetch(self, statement: exp.Select) -> CellCounts:
        """Run a statement that gives one cell and its count a row."""

    def close(self) -> None:
        """Let go of the source."""


def render(statement: exp.Select, dialect: str) -> str:
    """A statement in an engine's own SQL."""
    if dialect in NO_TRY_CAST and statement.find(exp.TryCast):
        raise SourceError(
            f"{dialect} cannot read text as numbers or dates row by row.",
            hint="Give it columns of the right types, through a view if need be.",
        )
    return statement.sql(dialect)


def positions(wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """Where the wanted columns stand: of that very name, or else of one that differs in case alone."""
    return [_position(name, names) for name in wanted]


def _position(wanted: str, names: Sequence[str]) -> int:
    exact = [i for i, name in enumerate(names) if name == wanted]
    found = exact or [i for i, name in enumerate(names) if name.casefold() == wanted.casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        raise SourceError(f"More than one column is called {wanted!r}.", hint="Rename all but one.")
    # Close matches alone: where a CSV file lacks its header, the other names are somebody's row.
    close = " or ".join(map(repr, get_close_matches(wanted, names)))
    raise SourceError(
        f"There is no column {wanted!r}.",
        hint=f"Did you mean {close}?" if close else "Name each attribute after its column.",
    )
