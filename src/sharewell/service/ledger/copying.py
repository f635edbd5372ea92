"""Copying a ledger to another place, such as from a file into PostgreSQL."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from sharewell.errors import LedgerError
from sharewell.service.ledger.chain import Head
from sharewell.service.ledger.opening import open_store
from sharewell.service.ledger.verify import verify_chain

#: What fits into one commit, in bytes. Stores take a billion, and some characters become two on the way.
MOST_BYTES = 400_000_000


def copy_ledger(
    source: str | Path,
    target: str | Path,
    *,
    source_name: str = "default",
    target_name: str = "default",
) -> Head:
    """Copy all events to a place where there is no ledger yet, and give the head, which is the same.

    Nobody may write to the source meanwhile: its lock is taken. The events are stored as they are, all
    of them or none, so the copy has the same chain. The times beside them become those of the copy.

    Privacy: two ledgers of one dataset are two budgets. Go on with one of them, and put the other away.
    """
    if found := verify_chain(source, name=source_name):
        raise LedgerError(f"The ledger cannot be copied: {found[0]}", hint="Restore it from a backup.")
    with closing(open_store(source, name=source_name)) as old:
        head = old.head()
        rows = list(old.read(0, head.count))
        if (size := sum(len(row.body) for row in rows)) > MOST_BYTES:
            raise LedgerError(
                f"The ledger has {size:,} bytes of events, and up to {MOST_BYTES:,} are copied at once.",
                hint="Leave it where it is; a file may be moved while nobody has it open.",
            )
        with closing(open_store(target, name=target_name)) as new:
            if new.head() != Head():
                raise LedgerError(
                    f"There is a ledger at {new} already.", hint="Copy to a new place, or a new name."
                )
            if rows and not new.write(rows, Head(), head, time.time()):
                raise LedgerError(
                    f"Somebody else has begun a ledger at {new}.", hint="Try another place."
                )
    return head
