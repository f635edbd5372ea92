"""Write the golden ledger `free-answers`: the first whose free answers are beside the chain.

It was written once, by the version that introduced tables of version 2, and is never written again.
"""

# mypy: ignore-errors

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from sharewell.config import read_config
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.service.verify import verify
from tests.service.verify.test_golden_ledgers import as_stored, budgets

HERE = Path(__file__).parent
BY_CITY = "SELECT city, COUNT(*), AVG(age) FROM people GROUP BY city"
COUNT = "SELECT COUNT(*) FROM people WHERE age BETWEEN {} AND {}"


def story(folder: Path, path: Path) -> dict[str, list]:
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


def main() -> None:
    target = HERE / "free-answers"
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
