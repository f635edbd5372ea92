"""The store: what a ledger asks of the place where its rows are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

from sharewell.errors import LedgerError
from sharewell.service.ledger.chain import Head, Row

#: How many rows are read at a time: long reads hold up nobody.
CHUNK = 5_000


class Store(ABC):
    """Keeps rows and the head, which it changes together or not at all.

    A store that was opened for writing holds a lock that no second writer can take. `migrations` are
    the statements that lead from each version of the tables to the next, beginning with none; they are
    only ever added to.
    """

    migrations: ClassVar[tuple[tuple[str, ...], ...]]
    read_only: bool

    @abstractmethod
    def head(self) -> Head:
        """The head that is stored for good, after taking back whatever was begun and not finished.

        A connection that was lost is made again, and with it the lock is taken again.
        """

    @abstractmethod
    def write(self, rows: Sequence[Row], old: Head, new: Head, at: float) -> bool:
        """Add rows and move the head, in one durable transaction; False where the head is not `old`.

        After a LedgerUnavailable it is not known whether they are stored: `head` says.
        """

    @abstractmethod
    def read(self, start: int, stop: int) -> Iterator[Row]:
        """The stored rows with numbers from start up to stop, in order; from any thread."""

    @abstractmethod
    def check(self) -> list[str]:
        """What the store itself finds wrong with its files, in words."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file or the connection, and of the lock."""


def pending(migrations: Sequence[Sequence[str]], version: int) -> list[str]:
    """The statements that bring tables of a version up to date; refuses those of the future."""
    if version > len(migrations):
        raise LedgerError(
            f"The ledger's tables have version {version}, and this Sharewell knows {len(migrations)}.",
            hint="Open the ledger with the version of Sharewell that wrote it, or a newer one.",
        )
    return [statement for step in migrations[version:] for statement in step]
