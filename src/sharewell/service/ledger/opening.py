"""Opening a ledger by the name of its place: a path, or the address of a database."""

from __future__ import annotations

from pathlib import Path

from sharewell.errors import LedgerError
from sharewell.service.ledger.durable import DurableLedger
from sharewell.service.ledger.sqlite import SqliteStore
from sharewell.service.ledger.store import Store

_POSTGRES = ("postgresql://", "postgres://")


def open_store(
    where: str | Path, *, name: str = "default", read_only: bool = False, wait: float = 0.0
) -> Store:
    """The store at a path of a SQLite file, or at a PostgreSQL address, where it has a name."""
    if not str(where).startswith(_POSTGRES):
        return SqliteStore(where, read_only=read_only, wait=wait)
    try:
        from sharewell.service.ledger.postgres import PostgresStore
    except ImportError:
        raise LedgerError(
            "A ledger in PostgreSQL needs psycopg, which is not installed.",
            hint="Install sharewell[postgres].",
        ) from None
    return PostgresStore(str(where), name, read_only=read_only, wait=wait)


def open_ledger(
    where: str | Path, *, name: str = "default", read_only: bool = False, wait: float = 0.0
) -> DurableLedger:
    """The ledger at a path of a SQLite file, or at a PostgreSQL address, where it has a name.

    A ledger that is not there yet is begun, unless it is opened for reading. One that somebody else
    writes to is refused, after `wait` seconds.
    """
    return DurableLedger(open_store(where, name=name, read_only=read_only, wait=wait))
