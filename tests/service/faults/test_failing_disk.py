"""Every change of the files of a SQLite ledger and its witness fails once, in turn; the promises hold.

As SQLite tests itself: a story, from creating the ledger to asking again after a restart, is told as
often as it changes a file, and each time another change fails; then with a disk that fails from there on
until the next start.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import ExitStack
from pathlib import Path

import pytest

from sharewell.config import parse_config
from sharewell.errors import LedgerError
from sharewell.privacy.ledger import Charged
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger, verify_chain
from sharewell.service.ledger.witness import Witness, WitnessRecord
from tests.service.faults.bookkeeping import Books, Plain, Question, whole_events
from tests.service.faults.failing_disk import FailingDisk
from tests.service.services import config, count, plain, serve, status

#: Who asks what under which key, and whether they pay.
QUESTIONS = [("ann", "a", count(0, 4), True), ("ann", "b", count(0, 4), False)]
#: With one analyst: the story is told often, and is to be short.
SETTINGS = parse_config(re.sub(r"\[analysts\.(ben|cleo)\]\nshare = .*\n", "", config().text))
FOREVER = 10**9


def ask(service: DatasetService, analyst: str, key: str, sql: str, pay: bool) -> Plain:
    """Ask, and ask again with the same key if the ledger fails."""
    try:
        return plain(service.ask(analyst, sql, pay=pay, key=key, timeout=60))
    except LedgerError:
        return plain(service.ask(analyst, sql, pay=pay, key=key, timeout=60))


def live(folder: Path, promised: dict[Question, Plain]) -> None:
    """One life of a service: begin or continue its ledger, ask everything, and end."""
    with ExitStack() as stack:
        ledger = stack.enter_context(open_ledger(folder / "ledger.sqlite", create=True))
        witness = Witness.read(folder / "witness.json") or Witness(
            folder / "witness.json", WitnessRecord()
        )
        assert ledger.contains(witness.record.head), "what was witnessed is lost"
        ledger.attach(witness)
        service = stack.enter_context(serve(SETTINGS, ledger))
        for analyst, key, sql, pay in QUESTIONS:
            answers = ask(service, analyst, key, sql, pay)
            assert promised.setdefault((analyst, key), answers) == answers, "another answer"
            assert status(service, analyst).spent <= witness.record.spent[analyst], "not witnessed"


def tell(folder: Path, disk: FailingDisk, fails: range) -> int:
    """Tell the story on a disk, and check what must hold in the end: the number of charges."""
    folder.mkdir()
    promised: dict[Question, Plain] = {}
    disk.calls.clear()
    disk.fails = fails
    for _ in range(2):
        try:
            live(folder, promised)
        except LedgerError:
            # The process ends, and comes back when the disk works.
            disk.fails = range(0) if fails.stop == FOREVER else fails
            live(folder, promised)
    disk.fails = range(0)
    assert promised.keys() == {(analyst, key) for analyst, key, *_ in QUESTIONS}
    with open_ledger(folder / "ledger.sqlite", read_only=True) as ledger:
        books = Books(bought_once=True)
        books.read(whole_events(ledger))
        books.kept(promised)
        charges = sum(isinstance(event, Charged) for event in ledger.events())
    assert verify_chain(folder / "ledger.sqlite") == []
    return charges


@pytest.mark.slow
@pytest.mark.parametrize("until", ["once", "until the next start"])
def test_whatever_change_of_a_file_fails_nothing_is_lost_or_given_away(tmp_path, until):
    disk = FailingDisk()
    with disk.installed():
        charges = tell(tmp_path / "whole", disk, range(0))
        calls = list(disk.calls)
        assert {"write", "sync", "delete", "os.replace", "os.fsync"} <= set(calls)
        for number in range(len(calls)) if until == "once" else range(0, len(calls), 5):
            fails = range(number, number + 1 if until == "once" else FOREVER)
            try:
                assert tell(tmp_path / f"{number}", disk, fails) == charges, "charged once more"
            except Exception as error:
                error.add_note(f"call {number} failed: {calls[number]}")
                raise


def test_the_disk_fails_for_sure(tmp_path):
    disk = FailingDisk()
    with disk.installed():
        connection = sqlite3.connect(tmp_path / "a.sqlite")
        disk.fails = range(FOREVER)
        with pytest.raises(sqlite3.OperationalError):
            connection.execute("CREATE TABLE a (b)")
        disk.fails = range(0)
        connection.execute("CREATE TABLE a (b)")
        connection.close()
    assert disk.calls
