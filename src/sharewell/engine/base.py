"""The engine protocol: an open source that can run one GROUP BY.

An engine is part of the trusted base, so engines are on an allow-list (`engine/sources.py`). Each fixes
its session, takes types from the catalogue, and refuses what it cannot fix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, ClassVar, Protocol, TypeVar
from urllib.parse import parse_qs, urlsplit

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sharewell.errors import SourceError, Suggestion

Result = TypeVar("Result")

#: The name of a subquery whose columns are computed once for each row, however often they are used.
COMPUTED_ROWS = "computed"

#: The function that looks text up in a map, until an engine renders it as it can: a JSON object from
#: labels to numbers, and the text. It is NULL for other text, and has one value by its structure.
LOOK_UP = "look_up"

#: Columns of integers, by name.
Columns = Mapping[str, NDArray[np.integer[Any]]]


@dataclass(frozen=True)
class SourceColumn:
    """A column of a source: its name there, its type, and its SQL expression."""

    name: str
    type: exp.DataType
    value: exp.Condition


class Engine(Protocol):
    """An open source, in a session whose time zone is UTC.

    It must compare text byte by byte: under a case-insensitive collation, a row could fall in two cells
    and two people could be taken for one.
    """

    #: Whether labels are looked up in an enumeration, and whether many of them are in a map;
    #: otherwise by comparisons.
    has_enumerations: bool
    has_maps: bool
    #: Whether opening it takes seconds, so that it stays open between statements.
    slow_to_open: bool

    @property
    def relation(self) -> exp.Table:
        """The table to select from."""

    @property
    def columns(self) -> Mapping[str, SourceColumn]:
        """The columns, keyed by the requested names."""

    def fetch(self, statement: exp.Select) -> Columns:
        """Run a statement whose columns are integers without NULL."""

    def rows(self, statement: exp.Select) -> Sequence[Sequence[Any]]:
        """Run a statement whose columns are of any type."""

    def version(self) -> str | None:
        """Return a text that changes when the rows change; None where the source says nothing.

        Privacy: it may tell how many rows there are, and is stored as a secret only.
        """

    def cancel(self) -> None:
        """Stop the statement that runs, as far as the engine can."""

    def close(self) -> None:
        """Close the source."""


def version_of_files(files: Sequence[Path]) -> str | None:
    """Return sizes and times of the last change of files."""
    with suppress(OSError):
        found = [(str(each), each.stat()) for each in files if each.exists()]
        return repr([(name, each.st_size, each.st_mtime_ns, each.st_ino) for name, each in found])
    return None


def find_columns(wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the index of each wanted column: an exact match, or else a unique one ignoring case."""
    return [_find_column(name, names) for name in wanted]


def choose_columns(
    wanted: Sequence[str],
    rows: Sequence[tuple[str, str]],
    describe: Callable[[str, str], SourceColumn],
) -> dict[str, SourceColumn]:
    """Describe the wanted columns of a table, given the names and types of all."""
    found = find_columns(wanted, [name for name, _ in rows])
    return {asked: describe(*rows[at]) for asked, at in zip(wanted, found, strict=True)}


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


class SqlEngine(ABC):
    """A table of a database, read by one statement at a time.

    Privacy: a message of a database may quote a row, so no failure of a statement shows its reason. It
    is not even the context of the error, which is raised after the handler.
    """

    dialect: ClassVar[str]
    has_enumerations = False
    has_maps = False
    slow_to_open = False

    def __init__(self, relation: exp.Table, columns: Mapping[str, SourceColumn], timeout: float) -> None:
        self.relation = relation
        self.columns = columns
        self.timeout = timeout

    @abstractmethod
    def run(self, sql: str) -> Sequence[Sequence[Any]]:
        """Run a statement and return its rows."""

    def version(self) -> str | None:
        """Return nothing: the engine does not say when rows change."""
        return None

    @abstractmethod
    def cancel(self) -> None:
        """Stop the statement that runs, as far as the engine can."""

    @abstractmethod
    def close(self) -> None:
        """Close the session."""

    @abstractmethod
    def adapt(self, node: exp.Expression) -> exp.Expression:
        """Return what stands for a node in the engine's dialect."""

    def render(self, statement: exp.Expression) -> str:
        """Return the text of a statement, adapted from its leaves up."""
        adapted = statement.copy()
        for node in reversed(list(adapted.find_all(exp.Expression))):
            parent, key, index = node.parent, node.arg_key, node.index
            changed = self.adapt(node)
            if changed is not node and parent is not None and key is not None:
                parent.set(key, changed, index)
        return adapted.sql(self.dialect)

    def fetch(self, statement: exp.Select) -> Columns:
        """Run a statement whose columns are integers without NULL."""
        names, rows = statement.named_selects, self.rows(statement)
        table = np.array([tuple(row) for row in rows], dtype=np.int64).reshape(-1, len(names))
        return {name: table[:, at] for at, name in enumerate(names)}

    def rows(self, statement: exp.Select) -> Sequence[Sequence[Any]]:
        """Run a statement whose columns are of any type."""
        sql, found = self.render(statement), None
        with suppress(Exception):
            found = within(self.timeout, lambda: self.run(sql), self.cancel)
        if found is None:
            raise SourceError(
                f"Cannot read the table {self.relation.sql(self.dialect)}.",
                hint="See the log of the database. Its messages may quote rows, so they are not shown.",
            )
        return found


class CloudEngine(SqlEngine):
    """A table of a database service: an open client, and what its catalogue says of the columns."""

    def __init__(
        self,
        client: Any,
        relation: exp.Table,
        rows: Sequence[tuple[str, str]],
        wanted: Sequence[str],
        timeout: float,
    ) -> None:
        self._client = client
        #: What runs the last statement.
        self._job: Any = None
        super().__init__(relation, choose_columns(wanted, rows, self.describe), timeout)

    @staticmethod
    @abstractmethod
    def describe(name: str, type_: str) -> SourceColumn:
        """Describe a column, given its name and type in the catalogue."""

    def close(self) -> None:
        """Close the client."""
        with suppress(Exception):
            self._client.close()


def within(
    seconds: float,
    call: Callable[[], Result],
    cancel: Callable[[], None] = lambda: None,
    discard: Callable[[Result], None] = lambda _: None,
) -> Result:
    """Return the result of a call, or raise TimeoutError: a network may stall for ever.

    The call is then cancelled, and a result that still comes is discarded.
    """
    done: list[Result] = []
    failed: list[BaseException] = []
    lock, late = Lock(), Event()

    def run() -> None:
        try:
            result = call()
        except BaseException as error:
            failed.append(error)
            return
        with lock:
            if not late.is_set():
                done.append(result)
                return
        with suppress(Exception):
            discard(result)

    thread = Thread(target=run, name="engine", daemon=True)
    thread.start()
    thread.join(seconds)
    with lock:
        if done:
            return done[0]
        late.set()
    if failed:
        raise failed[0]
    Thread(target=cancel, name="cancel", daemon=True).start()
    raise TimeoutError


#: The text that each type is converted from. What engines take beyond it differs: PostgreSQL knows the
#: date 'yesterday'. No text can be matched in two ways, or a long one could stall an engine.
TEXT_OF: Mapping[exp.DType, str] = {
    exp.DataType.Type.DOUBLE: "^ *([+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?"
    "|[nN][aA][nN]|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?) *$",
    exp.DataType.Type.DATE: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    exp.DataType.Type.TIMESTAMPTZ: "^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}"
    "(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$",
}


def if_written(node: exp.TryCast, converted: exp.Expression, *valid: exp.Condition) -> exp.Case:
    """Return a conversion of text, or NULL where the text does not have the form of the type."""
    form = exp.RegexpLike(this=node.this.copy(), expression=exp.Literal.string(TEXT_OF[node.to.this]))
    return exp.case().when(exp.and_(form, *valid), converted)


def is_look_up(node: exp.Expression) -> bool:
    """Return whether a node looks text up in a map."""
    return isinstance(node, exp.Anonymous) and node.name == LOOK_UP


def is_nan_test(node: exp.Expression) -> bool:
    """Return whether a node compares a value with NaN."""
    return (
        isinstance(node, exp.EQ)
        and isinstance(node.expression, exp.Cast)
        and node.expression.this == exp.Literal.string("NaN")
    )


def refuse_password(address: str, instead: str) -> None:
    """Refuse an address that has a password: configuration files are copied and shared."""
    try:
        parts = urlsplit(address)
        given = parts.password is not None or "password" in parse_qs(parts.query, keep_blank_values=True)
    except ValueError:
        raise SourceError(
            "The source is not a valid address.", hint="Check its brackets and port."
        ) from None
    if given:
        raise SourceError("The source's address has a password.", hint=f"Remove it, and {instead}.")


def table_of(name: str | None, dialect: str) -> exp.Table:
    """Return the table of a name such as "clinic.visits"."""
    if name is None:
        raise SourceError("A database requires `table`.", hint='Set it, as in "clinic.visits".')
    with suppress(SqlglotError):
        return exp.to_table(name, dialect=dialect)
    raise SourceError(f"{name!r} is not the name of a table.", hint='Write "schema.table".')


def require_columns(
    rows: Sequence[tuple[str, str]] | None, table: str | None
) -> Sequence[tuple[str, str]]:
    """Return the names and types of a table's columns, or refuse a table that has none."""
    if rows:
        return rows
    raise SourceError(
        f"The database has no table {table!r}, or this user may not read it.",
        hint="Check `table`, and GRANT SELECT on it.",
    )


def columns_statement(relation: exp.Table, *conditions: str) -> exp.Select:
    """Return the statement that reads names and types of columns in the information schema."""
    catalogue = exp.table_("columns", db="information_schema", catalog=relation.catalog or None)
    found = exp.select("column_name", "data_type").from_(catalogue)
    return found.where(*conditions).order_by("ordinal_position")


def missing_driver(extra: str) -> SourceError:
    """The error for a driver that is not installed."""
    return SourceError(
        "The driver for this source is not installed.", hint=f"Install sharewell[{extra}]."
    )
