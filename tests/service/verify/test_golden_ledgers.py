"""Ledgers of earlier versions open, verify and continue; see tests/golden/ledgers/README.md."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from fractions import Fraction
from functools import cache
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest

from sharewell import wire
from sharewell.config import read_config
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.service.ledger.codec import KINDS, decode, encode
from sharewell.service.lifecycle import adopt
from sharewell.service.verify import verify

GOLDEN = Path(__file__).parents[2] / "golden" / "ledgers"
NAMES = sorted(path.parent.name for path in GOLDEN.glob("*/events.txt"))
#: Ledgers in which something was open when they were written: opening them adds events.
UNFINISHED = {
    "charge-not-released",
    "turn-not-answered",
    "turn-not-answered-weights",
    "withdrawn",
}

pytestmark = pytest.mark.usefixtures("in_place_at_once")

Row = tuple[bytes, str]


def read_rows(name: str) -> list[Row]:
    lines = (GOLDEN / name / "events.txt").read_text(encoding="utf-8").splitlines()
    return [(bytes.fromhex(line[:64]), line[65:]) for line in lines]


@cache
def expected(name: str) -> dict:
    return json.loads((GOLDEN / name / "expected.json").read_text(encoding="utf-8"))


def rebuild(name: str, folder: Path, rows: list[Row] | None = None) -> Path:
    """Copy a golden ledger into a folder, with its file as that version of SQLite tables was."""
    for file in GOLDEN.joinpath(name).glob("*.*"):
        if file.suffix in (".toml", ".csv"):
            shutil.copy(file, folder)
    rows = rows or read_rows(name)
    path = folder / "ledger.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((GOLDEN / "sqlite.sql").read_text())
        numbered = [(at, body, digest, 1.6e9 + at) for at, (digest, body) in enumerate(rows)]
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", numbered)
        connection.execute("INSERT INTO head VALUES (?, ?)", (len(rows), rows[-1][0]))
        if (answers := GOLDEN / name / "answers.txt").exists():
            connection.executescript((GOLDEN / "sqlite-2.sql").read_text())
            fill_side_tables(connection, rows, answers.read_text(encoding="utf-8").splitlines())
        connection.commit()
    return path


def fill_side_tables(connection: sqlite3.Connection, rows: list[Row], answers: list[str]) -> None:
    """Fill the tables that are beside the chain since version 2, by their definition."""

    def digest(*texts: str) -> str:
        return sha256("\0".join(texts).encode()).hexdigest()[:32]

    for number, (_, body) in enumerate(rows):
        kind, data = (json.loads(body)[part] for part in ("kind", "data"))
        if kind == "asked":
            both = digest(data["analyst"]), digest(data["analyst"], data["key"])
            connection.execute("INSERT INTO questions VALUES (?, ?, ?)", (number, *both))
        elif kind in ("answered", "answeredfree", "refused"):
            connection.execute("INSERT INTO endings VALUES (?, ?)", (data["asked"], number))
    for line in answers:
        at, _, text = line.partition(" ")
        connection.execute("INSERT INTO answers VALUES (?, ?)", (int(at), text))


def open_dataset(folder: Path) -> DatasetService:
    """Open a ledger; one from before witnesses is adopted first."""
    config = read_config(folder / "sharewell.toml")
    if not config.witness.exists():
        adopt(config)
    return DatasetService.open(config)


def head_of(path: Path) -> str:
    with open_ledger(path, read_only=True) as ledger:
        return str(ledger.head)


def ask(dataset: DatasetService, analyst: str, question: wire.Question) -> wire.Ticket:
    """Submit a question, keep the scheduler going, and wait for the outcome."""
    ticket = dataset.submit(analyst, question.sql, pay=question.pay, key=question.key)
    ticket.wait_until_ready(60)
    if not ticket.done:
        for each in dataset.analysts().analysts:
            if each.analyst != analyst:
                dataset.done(each.analyst)
    ticket.outcome(60)
    return dataset.describe(ticket)


def as_stored(ticket: wire.Ticket) -> dict:
    return {
        "number": ticket.number,
        "key": ticket.key,
        "sql": ticket.sql,
        "pay": ticket.pay,
        "answer": ticket.answer and ticket.answer.model_dump(mode="json", exclude={"notes"}),
        "problem": ticket.problem and [ticket.problem.code, ticket.problem.message],
    }


def undetermined_as_null(stored: dict) -> dict:
    """A stored ticket as it is given now: a value that nothing determines, or its average, is NULL."""
    for row in stored["answer"]["rows"] if stored["answer"] else ():
        numbers = [field for field in row if isinstance(field, dict)]
        if any(number["interval"] == [None, None] for number in numbers):
            for number in numbers:
                if number["interval"] in (None, [None, None]):
                    number.update(value=None, interval=[None, None])
    return stored


def _rows(now: dict, stored: dict) -> list[tuple]:
    answers = (now["answer"], stored["answer"])
    return list(zip(*(answer["rows"] for answer in answers), strict=True)) if all(answers) else []


def given_again(now: dict, stored: dict) -> bool:
    """Whether a ticket is as it was stored; intervals of rows that noise has chosen are wider now.

    An average that was paid for in part was called cached.
    """
    stored = undetermined_as_null(stored)
    for row, before in _rows(now, stored):
        for number, old in zip(row, before, strict=True):
            if isinstance(number, dict) and (number["source"], old["source"]) == ("measured", "cached"):
                assert stored["answer"]["cost"] != "0"
                number["source"] = "cached"
    if stored["answer"] and ("HAVING" in stored["sql"] or "LIMIT" in stored["sql"]):
        for row, before in zip(now["answer"]["rows"], stored["answer"]["rows"], strict=True):
            for number, old in zip(row, before, strict=True):
                if isinstance(number, dict) and old["interval"] and None not in old["interval"]:
                    (low, high), (least, most) = number["interval"], old["interval"]
                    assert low <= least <= most <= high
                    number["interval"] = old["interval"]
    return now == stored


def budgets(dataset: DatasetService) -> dict[str, list]:
    return {
        each.analyst: [str(each.share), str(each.spent), each.asked]
        for each in dataset.analysts().analysts
    }


def ask_on(dataset: DatasetService, free_only: bool = False) -> list[wire.Ticket]:
    """Ask something new, and something free, for each analyst."""
    name, attribute = dataset.dataset().name, dataset.dataset().attributes[0].name
    found = []
    for pay in (False,) if free_only else (True, False):
        for analyst in budgets(dataset):
            sql = f"SELECT COUNT(*) FROM {name} WHERE {attribute} BETWEEN 1 AND 6"
            question = wire.Question(sql=sql, pay=pay, key=f"later {pay}")
            found.append(ask(dataset, analyst, question))
    return found


def test_every_kind_of_event_occurs_and_is_written_the_same_today():
    kinds = set()
    for name in NAMES:
        for _, body in read_rows(name):
            event, stored = decode(body.encode()), json.loads(body)
            assert encode(event) == body.encode() or event.version > stored["version"]
            kinds.add(stored["kind"])
    assert kinds >= {
        *("opened", "granted", "charged", "released", "armed", "exceeded", "left"),
        *("configured", "asked", "answered", "answeredfree", "refused", "turn", "done"),
        *("begun", "recovered", "curatoraction"),
    }
    assert kinds == set(KINDS)


@pytest.mark.parametrize("name", NAMES)
def test_verify_finds_what_it_found_then(name, tmp_path):
    outcome = expected(name)
    found = verify(rebuild(name, tmp_path), expected_head=outcome["head"])
    assert found.findings == []
    assert str(found.head) == outcome["head"]
    assert sorted(note.code for note in found.notes) == outcome["notes"]
    for name, counts in outcome["counts"].items():
        assert found.check(name).counts.items() >= counts.items()
    assert (found.certificate is None) == (outcome["certificate"] is None)
    assert_close(found.to_json()["certificate"], outcome["certificate"])


def assert_close(found: object, expected: object) -> None:
    """Every field that was there then has the same value, up to rounding; new fields may be there."""
    if isinstance(expected, dict):
        assert isinstance(found, dict)
        for key, value in expected.items():
            assert_close(found[key], value)
    elif isinstance(expected, list):
        assert isinstance(found, list | tuple)
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9)
    else:
        assert found == expected


@pytest.mark.parametrize("name", NAMES)
def test_stored_answers_are_given_again_and_budgets_are_equal(name, tmp_path):
    outcome = expected(name)
    path = rebuild(name, tmp_path)
    assert head_of(path) == outcome["head"]
    adopt(read_config(tmp_path / "sharewell.toml"))
    adopted = head_of(path)
    with open_dataset(tmp_path) as dataset:
        for analyst, tickets in outcome["questions"].items():
            for stored in tickets:
                question = wire.Question(sql=stored["sql"], pay=stored["pay"], key=stored["key"])
                assert given_again(as_stored(ask(dataset, analyst, question)), stored)
        if name not in UNFINISHED:
            assert budgets(dataset) == outcome["budgets"]
    if name not in UNFINISHED:
        assert head_of(path) == adopted, "nothing was added"


@pytest.mark.parametrize("name", NAMES)
def test_the_ledger_continues(name, tmp_path):
    path = rebuild(name, tmp_path)
    with open_dataset(tmp_path) as dataset:
        before = budgets(dataset)
        answered = ask_on(dataset)
        assert {ticket.problem.code for ticket in answered if ticket.problem} <= {
            "privacy.over-budget",
            "query.invalid",
        }
        after = budgets(dataset)
    for analyst, (share, spent, asked) in before.items():
        assert after[analyst][0] == share
        assert Fraction(after[analyst][1]) >= Fraction(spent)
        assert after[analyst][2] == asked + 2
    found = verify(path)
    assert found.findings == []
    assert found.events > len(read_rows(name))
    with open_dataset(tmp_path) as dataset:
        assert [as_stored(ticket) for ticket in ask_on(dataset)] == [as_stored(t) for t in answered]
        assert budgets(dataset) == after


@pytest.mark.parametrize("name", ["charge-not-released", "turn-not-answered"])
def test_what_was_charged_before_a_crash_is_released_and_answered(name, tmp_path):
    path = rebuild(name, tmp_path)
    with open_dataset(tmp_path) as dataset:
        sql = "SELECT COUNT(*) FROM people WHERE age BETWEEN 1 AND 6"
        ticket = ask(dataset, "ben", wire.Question(sql=sql, key="lost"))
        assert ticket.answer is not None
        spent = {analyst: values[1] for analyst, values in budgets(dataset).items()}
    assert spent == {analyst: values[1] for analyst, values in expected(name)["budgets"].items()}
    assert verify(path).ok


def test_a_turn_before_a_crash_is_answered(tmp_path):
    path = rebuild("turn-not-answered-weights", tmp_path)
    with open_dataset(tmp_path) as dataset:
        sql = "SELECT COUNT(*) FROM people WHERE age BETWEEN 1 AND 6"
        assert ask(dataset, "ann", wire.Question(sql=sql, key="lost")).answer is not None
    assert verify(path).ok


REFUSING = [name for name in NAMES if any('"kind":"refused"' in body for _, body in read_rows(name))]


@pytest.mark.parametrize("name", REFUSING)
def test_nothing_depends_on_the_text_of_a_refusal(name, tmp_path):
    rows = []
    digest = bytes(32)
    for number, (_, body) in enumerate(read_rows(name)):
        event = json.loads(body)
        if event["kind"] == "refused":
            event["data"]["message"] = "Another text."
            body = json.dumps(event, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
        digest = sha256(digest + number.to_bytes(8, "big") + body.encode()).digest()
        rows.append((digest, body))
    continued = []
    for folder, stored in ((tmp_path / "old", None), (tmp_path / "new", rows)):
        folder.mkdir()
        path = rebuild(name, folder, stored)
        found = verify(path)
        assert found.findings == []
        assert sorted(note.code for note in found.notes) == expected(name)["notes"]
        with open_dataset(folder) as dataset:
            # Without noise: what is free, where no paid question is open.
            free = [] if name in UNFINISHED else ask_on(dataset, free_only=True)
            answers = [ticket.answer or ticket.problem for ticket in free]
            continued.append((answers, budgets(dataset)))
    assert continued[0] == continued[1]


@pytest.mark.parametrize("name", ["estimate", "turn-not-answered"])
def test_a_ledger_in_postgresql_opens_verifies_and_continues(name, tmp_path, postgres):
    url = postgres.database()
    rows = read_rows(name)
    with psycopg.connect(url) as connection:
        connection.execute((GOLDEN / "postgres.sql").read_text())
        for number, (digest, body) in enumerate(rows):
            connection.execute(
                "INSERT INTO sharewell.events VALUES ('people', %s, %s, %s, 0)", (number, body, digest)
            )
        connection.execute(
            "INSERT INTO sharewell.heads VALUES ('people', %s, %s)", (len(rows), rows[-1][0])
        )
    outcome = expected(name)
    assert verify(url, name="people", expected_head=outcome["head"]).findings == []
    rebuild(name, tmp_path)
    settings = tmp_path / "sharewell.toml"
    settings.write_text(settings.read_text().replace('"ledger.sqlite"', f'"{url}"'))
    with open_dataset(tmp_path) as dataset:
        for analyst, tickets in outcome["questions"].items():
            for stored in tickets:
                question = wire.Question(sql=stored["sql"], pay=stored["pay"], key=stored["key"])
                assert given_again(as_stored(ask(dataset, analyst, question)), stored)
        ask_on(dataset)
    assert verify(url, name="people").findings == []
