"""Damaged ledgers of wide tables: grouped blocks, sums, scales in runs and releases in parts."""

from __future__ import annotations

import copy
import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest

from sharewell import DataVector, compile_sql
from sharewell.config import parse_config
from sharewell.errors import LedgerCorrupt, SharewellError
from sharewell.mechanisms.base import is_seed
from sharewell.privacy import measurement
from sharewell.privacy.ledger import Charged, Event, MemoryLedger, QuestionLedger, Released
from sharewell.query import block as query_block
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.service.tokens import TokenStore
from sharewell.service.verify import verify
from sharewell.service.verify.accounts import has_own_units
from tests.service.faults.bookkeeping import whole_events
from tests.service.verify.ledgers import ask_all, written

CONFIG = parse_config("""
[dataset]
source = "people.csv"
population = 1000
max_rows = 2000
[budget]
epsilon = 10
error_threshold = 20
[attributes.age]
type = "integer"
low = 0
high = 5
[attributes.sex]
type = "category"
categories = ["F", "M"]
[measures.pay]
low = 0
high = 8
step = 2
[analysts.ann]
share = "1/2"
[analysts.ben]
share = "1/2"
[mechanism]
seed = [["sex"], ["sex", "pay"]]
query_budget = "1/80"
""")
ASKED = [
    ("ann", "SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex", True),
    ("ann", "SELECT age, sex, COUNT(*), SUM(pay) FROM people WHERE age > 0 GROUP BY age, sex", True),
    ("ben", "SELECT age, AVG(pay) FROM people GROUP BY age", True),
    ("ben", "SELECT COUNT(*) FROM people WHERE age = 2 AND sex = 'F'", False),
]


def table() -> DataVector:
    rng = np.random.default_rng(4)
    sums = np.zeros((6, 2, CONFIG.domain.vectors), dtype=np.int64)
    sums[..., 0] = rng.integers(20, 50, (6, 2))
    sums[..., 1] = sums[..., 0] - 5
    sums[..., 2] = rng.integers(-30, 30, (6, 2))
    return DataVector(CONFIG.domain, sums.ravel())


def serve(ledger: QuestionLedger) -> DatasetService:
    tokens = TokenStore(Path(mkdtemp(dir=os.environ.get("XDG_STATE_HOME"))) / "access.json")
    return DatasetService(CONFIG, ledger, tokens, data=table(), certificate=False, tick=0.001)


@cache
def good() -> tuple[Event, ...]:
    """The events of a service whose releases have at most five values each."""
    ledger = MemoryLedger()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "MAX_VALUES", 5)
        with serve(ledger) as service:
            ask_all(service, ASKED, "a")
    return tuple(whole_events(ledger))


def grouped() -> list[int]:
    """The numbers of the charges for rows by groups."""
    return [
        at
        for at, event in enumerate(good())
        if isinstance(event, Charged) and event.purpose["measure"]["kind"] == "grouped"
    ]


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where numbers and texts are in plain data."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inner:
        yield from leaves(value, (*path, key))
    if not isinstance(data, dict | list):
        yield path


def damaged(rng: random.Random, number: int) -> list[Event]:
    """The events with one number or text of a charge changed, left out, or doubled in its list."""
    event = good()[number]
    assert isinstance(event, Charged)
    purpose = copy.deepcopy(dict(event.purpose))
    *parents, last = rng.choice(list(leaves(purpose)))
    inner: Any = purpose
    for key in parents:
        inner = inner[key]
    before = inner[last]
    way = rng.choice(["change", "remove", "double", "type"])
    if way == "remove" and isinstance(inner, list):
        del inner[last]
    elif way == "double" and isinstance(inner, list):
        inner.insert(last, before)
    elif way == "type":
        inner[last] = rng.choice([None, [], {}, -1, 2**62, 0.5, "x", True])
        if inner[last] == before:
            inner[last] = None
    elif isinstance(before, str):
        at = rng.randrange(len(before)) if before else 0
        inner[last] = f"{before[:at]}9{before[at + 1 :]}" if before[at : at + 1] != "9" else f"{before}1"
    else:
        inner[last] = (before or 0) + rng.choice([-1, 1, 7])
    return [*good()[:number], replace(event, purpose=purpose), *good()[number + 1 :]]


def opens(path: Path) -> None:
    """Open a service on a ledger; only errors with a sentence may come out."""
    with closing(open_ledger(path)) as ledger:
        serve(ledger).close()


def test_the_ledger_has_what_is_damaged_below(tmp_path):
    events = good()
    assert len(grouped()) >= 3
    assert any(isinstance(event, Charged) and is_seed(event.purpose["measure"]) for event in events)
    assert any(isinstance(event, Released) and event.rest for event in events)
    path = written(tmp_path / "ledger.sqlite", events)
    assert verify(path).findings == []
    opens(path)


@pytest.mark.parametrize("seed", range(24))
def test_a_charge_that_was_changed_is_found_and_never_a_crash(seed, tmp_path):
    """All hashes are made anew, as by a person who knows how."""
    rng = random.Random(seed)
    numbers = [at for at, event in enumerate(good()) if isinstance(event, Charged)]
    path = written(tmp_path / "ledger.sqlite", damaged(rng, rng.choice([*numbers, *grouped()])))
    # The certificate takes most of the time, and finds nothing that the other checks do not find.
    found = verify(path, certificate=seed % 4 == 0)
    assert not found.ok
    assert all(finding.message for finding in found.findings)
    with suppress(SharewellError):
        opens(path)


@pytest.mark.parametrize("way", ["lost", "swapped", "last lost", "doubled", "first lost"])
def test_a_release_with_lost_or_moved_parts_is_refused_at_the_start(way, tmp_path):
    events = list(good())
    parts = [at for at, e in enumerate(events) if isinstance(e, Released) and e.rest > 4]
    first = parts[0]
    last = next(
        at for at, e in enumerate(events) if at > first and isinstance(e, Released) and not e.rest
    )
    match way:
        case "lost":
            del events[first + 1]
        case "swapped":
            events[first], events[first + 1] = events[first + 1], events[first]
        case "last lost":
            del events[last]
        case "doubled":
            events.insert(first, events[first])
        case "first lost":
            del events[first]
    path = written(tmp_path / "ledger.sqlite", events)
    assert not verify(path).ok
    with pytest.raises(SharewellError, match=r"\.$|\. "):
        opens(path)


@pytest.mark.parametrize("seed", range(8))
def test_a_flipped_bit_of_the_stored_events_is_refused(seed, tmp_path):
    rng = random.Random(seed)
    path = written(tmp_path / "ledger.sqlite", good())
    number = rng.choice(grouped())
    with closing(sqlite3.connect(path)) as connection:
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        columns = [row[1] for row in connection.execute("PRAGMA table_info(events)")]
        [[body]] = connection.execute(
            f"SELECT {columns[1]} FROM events WHERE {columns[0]} = ?", [number]
        )
        raw = bytearray(body.encode() if isinstance(body, str) else body)
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(7)
        flipped = bytes(raw).decode() if isinstance(body, str) else bytes(raw)
        connection.execute(
            f"UPDATE events SET {columns[1]} = ? WHERE {columns[0]} = ?", [flipped, number]
        )
        connection.commit()
    assert not verify(path).ok
    with pytest.raises(LedgerCorrupt):
        opens(path)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_wrong_unit_of_a_sum_is_found(neighbours, monkeypatch):
    """Half of the truth, which is what a bound alone charges for values on both sides of 0."""
    block = compile_sql(ASKED[1][1], CONFIG.domain).blocks[1].primitive.filled[0]
    assert has_own_units(block, neighbours)
    unit = query_block._unit
    monkeypatch.setattr(query_block, "_unit", lambda query, kind: unit(query, kind) // 2)
    assert not has_own_units(block, neighbours)
