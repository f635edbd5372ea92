"""Copying a ledger to another place, such as from a file into PostgreSQL."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

from sharewell.errors import LedgerError
from sharewell.service.ledger.chain import Head
from sharewell.service.ledger.opening import open_store
from sharewell.service.ledger.verify import verify_chain


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
