"""Write the golden ledger `in-place`: the first of a source that is measured where it is, and changes.

It was written once, by the version that introduced measuring in place, and is never written again.
"""

# mypy: ignore-errors

from __future__ import annotations

from pathlib import Path

from sharewell.config import read_config
from sharewell.engine.in_place import InPlaceData
from sharewell.service.dataset import DatasetService
from sharewell.service.lifecycle import begin
from tests.golden.ledgers.recording import BY_CITY, COUNT, record
from tests.service.verify.test_golden_ledgers import as_stored, budgets


def in_place(text: str) -> str:
    """The settings of `estimate`, measured in place."""
    return text.replace("[dataset]\n", '[dataset]\nmeasure = "in-place"\ndeadline = 60\n')


def story(folder: Path, path: Path) -> dict[str, object]:
    """Purchases before and after the file has changed, and after a restart."""
    config = read_config(folder / "sharewell.toml")
    rows = folder / "people.csv"
    begin(config)
    for start in range(2):
        with DatasetService.open(config) as dataset:
            for analyst, sql, pay in [
                ("ann", COUNT.format(start, 4), True),
                ("ben", COUNT.format(start, 5), False),
                ("cleo", BY_CITY, True),
            ]:
                dataset.submit(analyst, sql, pay=pay, key=f"{start} {pay} {sql}").outcome(60)
                if start == 0 and analyst == "ann":
                    rows.write_text(rows.read_text(encoding="utf-8") + "3,Zürich\n", encoding="utf-8")
            tickets = {
                name: [as_stored(ticket) for ticket in dataset.questions(name).tickets]
                for name in ("ann", "ben", "cleo")
            }
            held = budgets(dataset)
    return {"questions": tickets, "budgets": held}


if __name__ == "__main__":
    InPlaceData.__init__.__kwdefaults__["wait"] = lambda seconds: None
    record("in-place", story, in_place)
