"""Write the golden ledger `releases-in-parts`: the first with scales in runs, and releases in parts.

It was written once, by the version that introduced charges and releases of version 2, and is never
written again. Five values an event make parts of small releases; a later version may write other parts.
"""

# mypy: ignore-errors

from __future__ import annotations

from pathlib import Path

from sharewell.config import read_config
from sharewell.privacy import measurement
from sharewell.service.dataset import DatasetService
from sharewell.service.lifecycle import begin
from tests.golden.ledgers.recording import BY_CITY, COUNT, record
from tests.service.verify.test_golden_ledgers import as_stored, budgets


def story(folder: Path, path: Path) -> dict[str, object]:
    """A seed and paid questions in parts, a donation in parts, and a restart."""
    config = read_config(folder / "sharewell.toml")
    begin(config)
    for start in range(2):
        with DatasetService.open(config) as dataset:
            for analyst, sql, pay in [
                ("ann", f"{BY_CITY}, age", True),
                ("ann", COUNT.format(start, 4), True),
                ("cleo", BY_CITY, True),
                ("cleo", COUNT.format(start, 6), False),
            ]:
                dataset.submit(analyst, sql, pay=pay, key=f"{start} {pay} {sql}").outcome(60)
            if start:
                dataset.leave("ben", donate=True)
                dataset.submit("ann", COUNT.format(1, 5), key="after the donation").outcome(60)
            tickets = {
                name: [as_stored(ticket) for ticket in dataset.questions(name).tickets]
                for name in ("ann", "cleo")
            }
            held = budgets(dataset)
    return {"questions": tickets, "budgets": held}


if __name__ == "__main__":
    measurement.MAX_VALUES = 5
    record("releases-in-parts", story)
