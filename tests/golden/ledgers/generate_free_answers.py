"""Write the golden ledger `free-answers`: the first whose free answers are beside the chain.

It was written once, by the version that introduced tables of version 2, and is never written again.
"""

# mypy: ignore-errors

from __future__ import annotations

from pathlib import Path

from sharewell.config import read_config
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from tests.golden.ledgers.recording import BY_CITY, COUNT, record
from tests.service.verify.test_golden_ledgers import as_stored, budgets


def story(folder: Path, path: Path) -> dict[str, object]:
    """Paid and free questions, and a restart: the tickets of each analyst."""
    tickets: dict[str, list] = {}
    for start in range(2):
        with (
            open_ledger(path, create=True) as ledger,
            DatasetService(read_config(folder / "sharewell.toml"), ledger) as dataset,
        ):
            for analyst, sql, pay in [
                ("ann", BY_CITY, True),
                ("ben", BY_CITY, True),
                ("cleo", COUNT.format(2, 5), False),
                ("ann", COUNT.format(start, 6), True),
                ("ann", f"{BY_CITY} HAVING COUNT(*) > 2", False),
            ]:
                found = dataset.submit(analyst, sql, pay=pay, key=f"clé ✓ {start} {pay} {sql[:40]}")
                found.outcome(60)
            for analyst in ("ann", "ben", "cleo"):
                page = dataset.questions(analyst)
                tickets[analyst] = [as_stored(ticket) for ticket in page.tickets]
            held = budgets(dataset)
    return {"questions": tickets, "budgets": held}


if __name__ == "__main__":
    record("free-answers", story)
