"""A ledger in a SQLite file: how the file is made, and what is refused to be taken for one."""

import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from typing import ClassVar

import pytest

from sharewell.errors import LedgerCorrupt, LedgerError, LedgerInUse, LedgerMissing, LedgerUnavailable
from sharewell.service.ledger import DurableLedger, copy_ledger, open_ledger, verify_chain
from sharewell.service.ledger.sqlite import SqliteStore
from tests.service.ledger.events import SAMPLES, numbered


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


def run(path, *statements):
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            found = connection.execute(statement).fetchall()
        connection.commit()
    return found


@pytest.mark.parametrize("mask", [0o000, 0o077, 0o777])
def test_only_the_owner_may_read_any_of_its_files_whatever_the_umask(path, mask):
    before = os.umask(mask)
    try:
        with open_ledger(path, create=True) as ledger:
            ledger.append(numbered(0))
            files = sorted(path.parent.iterdir())
            assert [file.name.removeprefix(path.name) for file in files] == ["", "-shm", "-wal", ".lock"]
            assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        copied = path.with_name("copied.sqlite")
        copy_ledger(path, copied)
        assert stat.S_IMODE(copied.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_every_commit_waits_for_the_disk(path):
    with open_ledger(path, create=True) as ledger:
        connection = ledger._store._connection  # type: ignore[attr-defined]
        assert connection.execute("PRAGMA journal_mode").fetchone() == (b"wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,), "2 is FULL"


def test_after_closing_all_is_in_the_one_file(path):
    with open_ledger(path, create=True) as ledger:
        ledger.append_many(SAMPLES)
    moved = path.with_name("moved.sqlite")
    path.rename(moved)
    with open_ledger(moved, create=True) as ledger:
        assert list(ledger.events()) == list(SAMPLES)


def test_a_ledger_is_opened_by_its_path(path):
    with open_ledger(path, create=True) as ledger:
        ledger.append(numbered(0))
    with open_ledger(str(path), read_only=True) as ledger:
        assert list(ledger.events()) == [numbered(0)]


def test_events_are_neither_changed_nor_taken_out_by_a_slip_of_the_hand(path):
    with open_ledger(path, create=True) as ledger:
        ledger.append_many(SAMPLES)
    for slip in ("UPDATE events SET body = '{}'", "DELETE FROM events WHERE number = 3"):
        with pytest.raises(sqlite3.IntegrityError, match="only ever added to"):
            run(path, slip)
    assert verify_chain(path) == []


def test_a_database_of_somebody_else_is_refused_and_not_touched(path):
    run(path, "CREATE TABLE people (name TEXT)", "INSERT INTO people VALUES ('ann')")
    before = path.read_bytes()
    for opens in (open_ledger, lambda p: open_ledger(p, read_only=True), verify_chain):
        with pytest.raises(LedgerError, match="not a Sharewell ledger"):
            opens(path)
    assert path.read_bytes() == before


def test_a_database_with_the_mark_of_somebody_else_is_refused(path):
    run(path, "PRAGMA application_id = 77")
    with pytest.raises(LedgerError, match="not a Sharewell ledger"):
        open_ledger(path, create=True)


def test_a_file_that_is_no_database_is_refused_and_not_touched(path):
    path.write_text("Dear diary, " * 100)
    with pytest.raises(LedgerCorrupt, match="not a database"):
        open_ledger(path, create=True)
    assert path.read_text() == "Dear diary, " * 100


def test_an_sqlite_without_strict_tables_is_named(path, monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(LedgerError, match="A ledger needs SQLite"):
        open_ledger(path, create=True)


@pytest.mark.parametrize("options", [{}, {"create": True}, {"read_only": True}])
@pytest.mark.parametrize(
    "statements", [(), ("PRAGMA user_version = 0",), ("PRAGMA journal_mode = WAL",)]
)
def test_a_file_without_tables_never_becomes_a_ledger(path, options, statements):
    path.touch()
    if statements:
        run(path, *statements, "VACUUM")
    before = path.read_bytes()
    with pytest.raises(LedgerCorrupt, match="is empty") as caught:
        open_ledger(path, **options)
    assert "Restore a backup" in caught.value.hint
    assert path.read_bytes() == before


def test_opening_a_ledger_that_is_not_there_leaves_no_file(path):
    with pytest.raises(LedgerMissing, match="No ledger at"):
        open_ledger(path)
    assert list(path.parent.iterdir()) == []


def test_a_new_ledger_is_whole_without_its_log(path):
    ledger = open_ledger(path, create=True)
    copied = path.with_name("copied.sqlite")
    copied.write_bytes(path.read_bytes())
    ledger.append(numbered(0))
    ledger.close()
    with open_ledger(copied) as found:
        assert list(found.events()) == []


def test_a_ledger_whose_creation_was_interrupted_is_created_anew(path):
    path.with_name("ledger.sqlite.new").write_text("half of a ledger")
    with open_ledger(path, create=True) as ledger:
        assert ledger.append(numbered(0)) == 0
    assert not path.with_name("ledger.sqlite.new").exists()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(LedgerError, match="does not exist") as caught:
        open_ledger(tmp_path / "nowhere" / "ledger.sqlite", create=True)
    assert "nowhere" in caught.value.message


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path):
    with pytest.raises(LedgerUnavailable, match="directory"):
        open_ledger(tmp_path, create=True)


class NextStore(SqliteStore):
    """The store of a Sharewell to come, whose tables have one column more."""

    migrations: ClassVar = (
        *SqliteStore.migrations,
        ("ALTER TABLE events ADD COLUMN note TEXT DEFAULT 'old'", "CREATE TABLE notes (text TEXT)"),
    )


def test_older_tables_are_brought_up_to_date_and_newer_ones_refused(path):
    with open_ledger(path, create=True) as ledger:
        ledger.append_many(SAMPLES)
        head = ledger.head
    with DurableLedger(NextStore(path, read_only=True)) as ledger:
        assert list(ledger.events()) == list(SAMPLES), "older tables can be read"
    with DurableLedger(NextStore(path)) as ledger:
        assert ledger.head == head
        assert list(ledger.events()) == list(SAMPLES)
        assert ledger.append(numbered(0)) == len(SAMPLES)
    assert run(path, "SELECT max(version) FROM schema_version") == [(3,)]
    assert run(path, "SELECT DISTINCT note FROM events") == [("old",)]
    with DurableLedger(NextStore(path)) as ledger:
        assert ledger.head.count == len(SAMPLES) + 1, "what is up to date is not migrated again"
    for opens in (open_ledger, lambda p: open_ledger(p, read_only=True)):
        with pytest.raises(LedgerError, match=r"version 3; .* supports up to 2") as caught:
            opens(path)
        assert "newer" in caught.value.hint


def test_a_migration_that_fails_leaves_the_tables_as_they_were(path):
    class Broken(SqliteStore):
        migrations: ClassVar = (*SqliteStore.migrations, ("CREATE TABLE notes (a)", "NOT SQL"))

    with open_ledger(path, create=True) as ledger:
        ledger.append_many(SAMPLES)
    with pytest.raises(LedgerUnavailable, match="syntax"):
        Broken(path)
    assert run(path, "SELECT name FROM sqlite_master WHERE name = 'notes'") == []
    with open_ledger(path, create=True) as ledger:
        assert list(ledger.events()) == list(SAMPLES)


def test_a_writer_whose_lock_was_taken_away_is_stopped_by_the_head(path):
    with open_ledger(path, create=True) as first:
        first.append(numbered(0))
        path.with_name("ledger.sqlite.lock").unlink()
        with open_ledger(path, create=True) as second:
            assert second.append(numbered(1)) == 1
            for _ in range(2):
                with pytest.raises(LedgerInUse, match="Another process has written"):
                    first.append(numbered(9))
            assert second.append(numbered(2)) == 2
    with open_ledger(path, create=True) as ledger:
        assert list(ledger.events()) == [numbered(i) for i in range(3)]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE head SET count = count - 1",
        "UPDATE head SET hash = zeroblob(32)",
        "DELETE FROM events WHERE number = (SELECT max(number) FROM events)",
    ],
)
def test_a_ledger_that_does_not_end_where_it_says_is_not_opened(path, damage):
    with open_ledger(path, create=True) as ledger:
        ledger.append_many(SAMPLES)
    run(path, "DROP TRIGGER events_stay", damage)
    with pytest.raises(LedgerCorrupt, match="last event does not match the head") as caught:
        open_ledger(path, create=True)
    assert "sharewell verify" in caught.value.hint
    with pytest.raises(LedgerCorrupt):
        open_ledger(path, create=True)


@pytest.mark.parametrize("number", [0, 5, 12])
def test_events_that_were_changed_are_not_read(path, number):
    with open_ledger(path, create=True) as ledger:
        ledger.append_many(SAMPLES)
    run(
        path,
        "DROP TRIGGER events_stay_as_they_are",
        f"UPDATE events SET body = replace(body, 'a', 'b') WHERE number = {number}",
    )
    with open_ledger(path, create=True) as ledger:
        events = ledger.events()
        assert [next(events) for _ in range(number)] == list(SAMPLES[:number])
        with pytest.raises(LedgerCorrupt, match=f"Event {number} does not match its hash"):
            next(events)


def test_a_gap_is_not_read_over(path):
    with open_ledger(path, create=True) as ledger:
        ledger.append_many(SAMPLES)
    run(path, "DROP TRIGGER events_stay", "DELETE FROM events WHERE number = 4")
    with (
        open_ledger(path, create=True) as ledger,
        pytest.raises(LedgerCorrupt, match="Event 4 is missing"),
    ):
        list(ledger.events())


def test_long_ledgers_are_read_in_chunks(path, monkeypatch):
    monkeypatch.setattr("sharewell.service.ledger.sqlite.CHUNK", 4)
    with open_ledger(path, create=True) as ledger:
        for count in range(10):
            assert list(ledger.events()) == [numbered(i) for i in range(count)]
            ledger.append(numbered(count))


FORK = """
import os, sys
from sharewell.errors import LedgerInUse
from sharewell.privacy.ledger import Done
from sharewell.service.ledger import open_ledger
ledger = open_ledger(sys.argv[1], create=True)
ledger.append(Done("parent"))
child = os.fork()
try:
    ledger.append(Done("after"))
except LedgerInUse as error:
    os._exit(7 if "fork of it" in str(error) else 1)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), ledger.head.count)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_copy_of_the_process_is_not_a_second_writer(path):
    done = subprocess.run([sys.executable, "-c", FORK, path], capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.stderr) == (["7", "2"], "")


FORK_AND_CLOSE = """
import os, sys
from sharewell.service.ledger import open_ledger
ledger = open_ledger(sys.argv[1], create=True)
reading, writing = os.pipe()
if os.fork() == 0:
    os.close(writing)
    os.read(reading, 1)  # As if it had not come to exec yet: it holds what the parent had open.
    os._exit(0)
if os.fork() == 0:
    ledger.close()  # The parent's lock is not the child's to free.
    os._exit(0)
os.wait()
try:
    open_ledger(sys.argv[1], create=True)
except Exception as error:
    print(type(error).__name__)
ledger.close()
open_ledger(sys.argv[1], create=True).close()
print("opened")
os.close(writing)
os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_closing_frees_the_lock_also_while_a_forked_process_has_not_come_to_exec(path):
    done = subprocess.run(
        [sys.executable, "-c", FORK_AND_CLOSE, path], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout.split(), done.stderr) == (["LedgerInUse", "opened"], "")


def test_a_file_that_was_cut_off_does_not_begin_anew(path):
    with open_ledger(path, create=True) as ledger:
        ledger.append_many(SAMPLES * 20)
    content = path.read_bytes()
    for size in (1, 99, 100, 511, 512, 4095, 4096, len(content) - 4096, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(LedgerCorrupt, match="damaged"):
            open_ledger(path, create=True)
        assert path.read_bytes() == content[:size]
