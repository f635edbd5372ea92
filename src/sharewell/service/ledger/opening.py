"""Open, verify and copy ledgers by location: a path, or the URL of a PostgreSQL database."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from sharewell.errors import LedgerCorrupt, LedgerError
from sharewell.service.ledger.chain import ChainDamage, find_damage
from sharewell.service.ledger.durable import DurableLedger
from sharewell.service.ledger.sqlite import SqliteStore
from sharewell.service.ledger.store import Head, SideRows, Store

_POSTGRES = ("postgresql://", "postgres://")


def open_store(
    where: str | Path,
    *,
    name: str = "default",
    read_only: bool = False,
    create: bool = False,
    wait: float = 0.0,
) -> Store:
    """Open the store in a SQLite file, or the one of that name in a PostgreSQL database."""
    if not str(where).startswith(_POSTGRES):
        return SqliteStore(where, read_only=read_only, create=create, wait=wait)
    try:
        from sharewell.service.ledger.postgres import PostgresStore
    except ImportError:
        raise LedgerError(
            "A ledger in PostgreSQL needs psycopg, which is not installed.",
            hint="Install sharewell[postgres].",
        ) from None
    return PostgresStore(str(where), name, read_only=read_only, create=create, wait=wait)


def open_ledger(
    where: str | Path,
    *,
    name: str = "default",
    read_only: bool = False,
    create: bool = False,
    wait: float = 0.0,
) -> DurableLedger:
    """Open the ledger in a SQLite file, or the one of that name in a PostgreSQL database.

    A ledger that does not exist is created with `create`, and otherwise raises LedgerMissing. While
    another process writes to it, waits for up to `wait` seconds and then raises LedgerInUse.

    >>> import tempfile
    >>> from sharewell.privacy.ledger import Left
    >>> path = f"{tempfile.mkdtemp()}/ledger.sqlite"
    >>> with open_ledger(path, create=True) as ledger:
    ...     ledger.append(Left("ann"))
    0
    >>> with open_ledger(path, read_only=True) as ledger:
    ...     list(ledger.events())
    [Left(payer='ann')]
    """
    store = open_store(where, name=name, read_only=read_only, create=create, wait=wait)
    return DurableLedger(store)


def verify_chain(
    where: str | Path, *, name: str = "default", expected_head: Head | str | None = None
) -> list[ChainDamage]:
    """Verify the hash chain of a ledger offline, and list every defect; an intact chain has none.

    `expected_head` is a head noted earlier. Only with it can an older copy be told from the ledger, or
    a ledger whose end was rewritten. A ledger that is missing or unreachable is an error, not a defect.
    """
    expected = Head.parse(expected_head) if isinstance(expected_head, str) else expected_head
    try:
        store = open_store(where, name=name, read_only=True)
    except LedgerCorrupt as error:
        return [ChainDamage("damaged", error.message)]
    with closing(store):
        return find_damage(store, expected)


def copy_ledger(
    source: str | Path,
    target: str | Path,
    *,
    source_name: str = "default",
    target_name: str = "default",
) -> Head:
    """Copy all events to an empty location and return the head, which is the same.

    Locks the source while copying. The copy has the same events and the same chain, all or nothing; the
    times stored with the events become those of the copy.

    Privacy: two ledgers of one dataset are two budgets. Continue one of them and archive the other.
    """
    if found := verify_chain(source, name=source_name):
        raise LedgerError(f"Cannot copy the ledger: {found[0]}", hint="Restore it from a backup.")
    with closing(open_store(source, name=source_name)) as old:
        head = old.head()
        rows = list(old.read(0, head.count))
        side = old.side_rows() or SideRows({}, {}, {})
        with closing(open_store(target, name=target_name, create=True)) as new:
            if new.head() != Head():
                raise LedgerError(
                    f"A ledger already exists at {new}.", hint="Copy to a new location or a new name."
                )
            if rows and not new.write(rows, side, Head(), head, time.time()):
                raise LedgerError(f"Another process created a ledger at {new}.", hint="Copy elsewhere.")
    return head
