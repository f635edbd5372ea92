"""Write the golden ledger `recovered`: begun, restored from an older copy, recovered, and continued.

It was written once, by the version that introduced witnesses, and is never written again.
"""

# mypy: ignore-errors

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from sharewell import wire
from sharewell.config import read_config
from sharewell.service.dataset import DatasetService
from sharewell.service.lifecycle import begin, recover
from sharewell.service.verify import verify
from tests.service.verify.test_golden_ledgers import as_stored, budgets

HERE = Path(__file__).parent
BY_CITY = "SELECT city, COUNT(*), AVG(age) FROM people GROUP BY city"
COUNT = "SELECT COUNT(*) FROM people WHERE age BETWEEN {} AND {}"


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


def main() -> None:
    target = HERE / "recovered"
    target.mkdir()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("sharewell.toml", "people.csv"):
            shutil.copy(HERE / "estimate" / name, folder)
            shutil.copy(HERE / "estimate" / name, target)
        path = folder / "ledger.sqlite"
        told = story(folder, path)
        found = verify(path)
        assert found.ok, found.findings
        with closing(sqlite3.connect(path)) as connection:
            events = connection.execute("SELECT hash, body FROM events ORDER BY number").fetchall()
            answers = connection.execute("SELECT number, text FROM answers ORDER BY number").fetchall()
    (target / "events.txt").write_text("".join(f"{h.hex()} {body}\n" for h, body in events))
    (target / "answers.txt").write_text("".join(f"{number} {text}\n" for number, text in answers))
    expected = {
        "head": str(found.head),
        **told,
        "counts": {check.name: check.counts for check in found.checks},
        "notes": sorted(note.code for note in found.notes),
        "certificate": found.to_json()["certificate"],
    }
    (target / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
