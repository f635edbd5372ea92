"""Write the golden ledger `signed-rows`: the first with signed rows and a closed round.

It was written once, by the version that introduced settings of version 2, and is never written again.
"""

# mypy: ignore-errors

from __future__ import annotations

from pathlib import Path

from sharewell.config import read_config
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from tests.golden.ledgers.recording import BY_CITY, COUNT, record
from tests.service.verify.test_golden_ledgers import as_stored, budgets

MECHANISM = '[mechanism]\nseed = [["age"], ["city"], []]\n'


def story(folder: Path, path: Path) -> dict[str, object]:
    """Counts, a GROUP BY, a closed round, questions after it, and a restart."""
    tickets: dict[str, list] = {}
    for start in range(2):
        with (
            open_ledger(path, create=True) as ledger,
            DatasetService(read_config(folder / "sharewell.toml"), ledger) as dataset,
        ):
            for analyst, sql, pay in [
                ("ann", COUNT.format(2 + start, 5), True),
                ("ben", BY_CITY, True),
                ("cleo", COUNT.format(2 + start, 5), True),
                ("cleo", COUNT.format(start, 6), False),
            ]:
                found = dataset.submit(analyst, sql, pay=pay, key=f"{start} {pay} {sql[:60]}")
                found.outcome(60)
            if start == 0:
                dataset.done("ann")
                dataset.done("cleo")
                dataset.close_round("dana")
            for analyst in ("ann", "ben", "cleo"):
                page = dataset.questions(analyst)
                tickets[analyst] = [as_stored(ticket) for ticket in page.tickets]
            held = budgets(dataset)
    return {"questions": tickets, "budgets": held}


if __name__ == "__main__":
    record("signed-rows", story, lambda text: text.replace("[mechanism]\n", MECHANISM))
