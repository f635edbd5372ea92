"""Write the golden ledger `recovered`: begun, restored from an older copy, recovered, and continued.

It was written once, by the version that introduced witnesses, and is never written again.
"""

# mypy: ignore-errors

from __future__ import annotations

import shutil
from pathlib import Path

from sharewell import wire
from sharewell.config import read_config
from sharewell.service.dataset import DatasetService
from sharewell.service.lifecycle import begin, recover
from tests.golden.ledgers.recording import BY_CITY, COUNT, record
from tests.service.verify.test_golden_ledgers import as_stored, budgets


def ask(dataset: DatasetService, *questions: tuple[str, str, bool]) -> None:
    for analyst, sql, pay in questions:
        dataset.submit(analyst, sql, pay=pay, key=f"{pay} {sql}").outcome(60)


def story(folder: Path, path: Path) -> dict[str, object]:
    config = read_config(folder / "sharewell.toml")
    begin(config)
    with DatasetService.open(config) as dataset:
        ask(dataset, ("ann", BY_CITY, True), ("ben", BY_CITY, True))
    shutil.copy(path, folder / "backup")
    with DatasetService.open(config) as dataset:
        ask(dataset, ("ben", COUNT.format(1, 3), True), ("cleo", COUNT.format(2, 6), True))
    shutil.copy(folder / "backup", path)
    recover(config)
    with DatasetService.open(config) as dataset:
        dataset.join(wire.Newcomer(name="dora", share="1/8"), "curator")
        ask(dataset, ("dora", COUNT.format(2, 5), True), ("cleo", COUNT.format(0, 6), False))
        dataset.pause("curator")
        dataset.resume("curator")
        dataset.leave("dora", donate=True, by="curator")
        ask(dataset, ("ann", COUNT.format(4, 6), True), ("ben", COUNT.format(1, 3), True))
        tickets = {
            analyst: [as_stored(ticket) for ticket in dataset.questions(analyst).tickets]
            for analyst in ("ann", "ben", "cleo")
        }
        return {"questions": tickets, "budgets": budgets(dataset)}


if __name__ == "__main__":
    record("recovered", story)
