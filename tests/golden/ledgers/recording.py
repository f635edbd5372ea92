"""Record a golden ledger: what a story stores, and what later versions must find in it."""

# mypy: ignore-errors

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from sharewell.service.verify import verify

HERE = Path(__file__).parent
BY_CITY = "SELECT city, COUNT(*), AVG(age) FROM people GROUP BY city"
COUNT = "SELECT COUNT(*) FROM people WHERE age BETWEEN {} AND {}"


def record(
    name: str,
    story: Callable[[Path, Path], dict[str, object]],
    settings: Callable[[str], str] = lambda text: text,
) -> None:
    """Write the folder `name`, which must not exist: the data of `estimate` under another story.

    The story is given a folder with settings and data, and the path of the ledger to write. `settings`
    changes the text of those of `estimate`.
    """
    target = HERE / name
    target.mkdir()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for file in ("sharewell.toml", "people.csv"):
            shutil.copy(HERE / "estimate" / file, folder)
            shutil.copy(HERE / "estimate" / file, target)
        text = settings((HERE / "estimate" / "sharewell.toml").read_text(encoding="utf-8"))
        for place_of in (folder, target):
            (place_of / "sharewell.toml").write_text(text, encoding="utf-8")
        path = folder / "ledger.sqlite"
        outcome = story(folder, path)
        found = verify(path)
        assert found.ok, found.findings
        with closing(sqlite3.connect(path)) as connection:
            events = connection.execute("SELECT hash, body FROM events ORDER BY number").fetchall()
            answers = connection.execute("SELECT number, text FROM answers ORDER BY number").fetchall()
    (target / "events.txt").write_text("".join(f"{h.hex()} {body}\n" for h, body in events))
    (target / "answers.txt").write_text("".join(f"{number} {text}\n" for number, text in answers))
    expected = {
        "head": str(found.head),
        **outcome,
        "counts": {check.name: check.counts for check in found.checks},
        "notes": sorted(note.code for note in found.notes),
        "certificate": found.to_json()["certificate"],
    }
    (target / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")
