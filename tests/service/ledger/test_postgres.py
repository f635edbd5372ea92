"""A ledger in PostgreSQL: names, locks, and what happens when the server or the line to it fails."""

import select
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar
from uuid import uuid4

import psycopg
import pytest

from sharewell.errors import LedgerError, LedgerInUse, LedgerUnavailable
from sharewell.privacy.ledger import Event
from sharewell.service.ledger import DurableLedger, open_ledger, verify_chain
from sharewell.service.ledger.postgres import PostgresStore
from tests.service.ledger.events import SAMPLES, numbered
from tests.service.ledger.postgres_server import postgres_ledger


@pytest.fixture
def url(postgres):
    return postgres.database()


def run(url, statement, *values):
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def end_the_session(url):
    """End every session of a ledger's writer, as an administrator might."""
    run(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name LIKE 'sharewell%%' AND datname = current_database()",
    )
    while run(url, "SELECT FROM pg_stat_activity WHERE application_name LIKE 'sharewell%%'"):
        time.sleep(0.01)


def test_one_database_holds_ledgers_of_many_names(url):
    names = ["census", "Volkszählung '87", "a" * 100]
    ledgers = [postgres_ledger(url, name) for name in names]
    for i, ledger in enumerate(ledgers):
        assert ledger.append_many([numbered(i)] * (i + 1)) == 0
    for i, (name, ledger) in enumerate(zip(names, ledgers, strict=True)):
        assert list(ledger.events()) == [numbered(i)] * (i + 1)
        ledger.close()
        assert verify_chain(url, name=name) == []
    for name in ("", "zero\0"):
        with pytest.raises(LedgerError, match="needs a name"):
            postgres_ledger(url, name)


def test_a_database_that_cannot_hold_every_text_is_refused(postgres):
    name = f"western_{uuid4().hex}"
    postgres.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    with pytest.raises(LedgerError, match="does not use UTF-8") as refused:
        postgres_ledger(postgres.url_of(name))
    assert "ENCODING 'UTF8'" in refused.value.hint


def test_ledgers_of_other_names_can_be_opened_at_the_same_moment(url):
    with ThreadPoolExecutor(6) as pool:
        ledgers = list(pool.map(lambda i: postgres_ledger(url, f"ledger {i}"), range(6)))
    for ledger in ledgers:
        assert ledger.append(numbered(0)) == 0
        ledger.close()


def test_a_ledger_is_opened_by_its_address(url):
    with open_ledger(url, name="census", create=True) as ledger:
        ledger.append(numbered(0))
    with open_ledger(url, name="census", read_only=True) as ledger:
        assert list(ledger.events()) == [numbered(0)]


def test_every_commit_waits_for_the_disk(url):
    run(url, f"ALTER DATABASE {_name(url)} SET synchronous_commit = off")
    with postgres_ledger(url) as ledger:
        connection = ledger._store._connection  # type: ignore[attr-defined]
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


def _name(url):
    return run(url, "SELECT current_database()")[0][0]


def test_a_server_that_does_not_wait_for_its_disk_is_refused(postgres, url):
    def fsync(setting):
        postgres.execute(f"ALTER SYSTEM SET fsync = {setting}")
        postgres.execute("SELECT pg_reload_conf()")
        while run(url, "SHOW fsync") != [(setting,)]:
            time.sleep(0.01)

    fsync("off")
    try:
        with pytest.raises(LedgerError, match="fsync is off"):
            postgres_ledger(url)
    finally:
        fsync("on")
    postgres_ledger(url).close()


def test_events_are_neither_changed_nor_taken_out_by_a_slip_of_the_hand(url):
    with postgres_ledger(url) as ledger:
        ledger.append_many(SAMPLES)
    for slip in (
        "UPDATE sharewell.events SET body = '{}'",
        "DELETE FROM sharewell.events WHERE number = 3",
        "TRUNCATE sharewell.events",
    ):
        with pytest.raises(psycopg.errors.RaiseException, match="only ever added to"):
            run(url, slip)
    assert verify_chain(url) == []


class NextStore(PostgresStore):
    """The store of a Sharewell to come, whose tables have one column more."""

    migrations: ClassVar = (
        *PostgresStore.migrations,
        ("ALTER TABLE sharewell.events ADD COLUMN note text DEFAULT 'old'",),
    )


def test_older_tables_are_brought_up_to_date_and_newer_ones_refused(url):
    with postgres_ledger(url) as ledger:
        ledger.append_many(SAMPLES)
    with DurableLedger(NextStore(url, read_only=True)) as ledger:
        assert list(ledger.events()) == list(SAMPLES), "older tables can be read"
    with DurableLedger(NextStore(url)) as ledger:
        assert list(ledger.events()) == list(SAMPLES)
        assert ledger.append(numbered(0)) == len(SAMPLES)
    assert run(url, "SELECT DISTINCT note FROM sharewell.events") == [("old",)]
    for read_only in (False, True):
        with pytest.raises(LedgerError, match=r"version 3; .* supports up to 2"):
            postgres_ledger(url, read_only=read_only)


def test_an_address_that_is_none_is_refused_without_repeating_it():
    with pytest.raises(LedgerError, match="Invalid PostgreSQL URL") as caught:
        postgres_ledger("postgresql://ann:secret@[nowhere")
    assert "secret" not in str(caught.value)


def test_a_server_that_is_not_there_is_named_without_the_password(tmp_path):
    with pytest.raises(LedgerUnavailable, match="unavailable") as caught:
        postgres_ledger(f"postgresql://ann:secret@/census?host={tmp_path}")
    assert "secret" not in str(caught.value)
    assert caught.value.hint


def test_a_lost_connection_is_made_again(url):
    with postgres_ledger(url, patience=60) as ledger:
        for i in range(4):
            end_the_session(url)
            assert ledger.append(numbered(i)) == i
        assert list(ledger.events()) == [numbered(i) for i in range(4)]
        with pytest.raises(LedgerInUse):  # The lock was taken again.
            postgres_ledger(url)


def test_whoever_lost_the_lock_to_somebody_who_wrote_does_not_go_on(url):
    with postgres_ledger(url, patience=0.2) as first:
        first.append(numbered(0))
        end_the_session(url)
        with postgres_ledger(url) as second:
            with pytest.raises(LedgerUnavailable, match="is in use by") as caught:
                first.append(numbered(9))
            assert caught.value.uncertain
            assert second.append(numbered(1)) == 1
        for _ in range(2):
            with pytest.raises(LedgerInUse, match="Another process has written"):
                first.append(numbered(9))
    with postgres_ledger(url) as third:
        assert list(third.events()) == [numbered(0), numbered(1)]


def test_whoever_lost_the_lock_to_somebody_who_wrote_nothing_goes_on(url):
    with postgres_ledger(url, patience=60) as first:
        first.append(numbered(0))
        end_the_session(url)
        postgres_ledger(url).close()
        assert first.append(numbered(1)) == 1


class Line:
    """A line to the server that a test can cut: before a request arrives, or before its answer does."""

    def __init__(self, server):
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cut: str | None = None
        self.dead = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.dead:
                client.close()
                continue
            there = socket.socket(socket.AF_UNIX)
            there.connect(str(self._server))
            threading.Thread(target=self._carry, args=(client, there), daemon=True).start()

    def _carry(self, client, there):
        with client, there:
            while True:
                for source in select.select([client, there], [], [])[0]:
                    data = source.recv(1 << 16)
                    if not data or (source is client and self.cut == "before"):
                        return
                    if source is there and self.cut == "after":
                        return
                    (there if source is client else client).sendall(data)

    def close(self):
        self._listener.close()


@pytest.fixture
def line(postgres):
    line = Line(postgres.socket)
    yield line
    line.close()


class Cut(PostgresStore):
    """Cuts the line at its second write, and mends it when the connection is gone, or not yet."""

    line: Line
    how = "after"
    stay_dead = False
    writes = 0

    def write(self, rows, side, old, new, at):
        self.writes += 1
        if self.writes != 2:
            return super().write(rows, side, old, new, at)
        self.line.cut, self.line.dead = self.how, self.stay_dead
        try:
            return super().write(rows, side, old, new, at)
        finally:
            if self.how == "after":
                self._wait_until_stored(new)
            self.line.cut = None

    def _wait_until_stored(self, new):
        direct = f"postgresql://postgres@/{_name_of(self._url)}?host={self.line._server.parent}"
        while run(direct, "SELECT count FROM sharewell.heads") != [(new.count,)]:
            time.sleep(0.01)


def _name_of(conninfo):
    return psycopg.conninfo.conninfo_to_dict(conninfo)["dbname"]


@pytest.mark.parametrize("how", ["before", "after"])
def test_after_a_commit_of_unknown_outcome_the_ledger_looks_before_it_goes_on(url, line, how):
    store = Cut(f"postgresql://postgres@127.0.0.1:{line.port}/{_name(url)}", create=True)
    store.line, store.how = line, how
    with DurableLedger(store, patience=60) as ledger:
        assert [ledger.append(numbered(i)) for i in range(4)] == [0, 1, 2, 3]
        assert list(ledger.events()) == [numbered(i) for i in range(4)]
        # Stored by a commit whose answer was lost, it must not be written twice; lost on the way, it is
        # written again.
        assert store.writes == (4 if how == "after" else 5)
    assert verify_chain(url) == []


@pytest.mark.parametrize("how", ["before", "after"])
def test_where_it_cannot_look_it_says_so_and_looks_as_soon_as_it_can(url, line, how):
    store = Cut(f"postgresql://postgres@127.0.0.1:{line.port}/{_name(url)}", create=True)
    store.line, store.how, store.stay_dead = line, how, True
    with DurableLedger(store, patience=0.2) as ledger:
        ledger.append(numbered(0))
        for _ in range(2):
            with pytest.raises(LedgerUnavailable, match="not known yet") as caught:
                ledger.append(numbered(1))
            assert caught.value.uncertain
        line.dead = False
        ledger._patience = 60.0
        stored = [numbered(1)] if how == "after" else []
        assert ledger.append(numbered(2)) == 1 + len(stored)
        assert list(ledger.events()) == [numbered(0), *stored, numbered(2)]
    assert verify_chain(url) == []


def test_a_server_that_is_stopped_and_started_under_load_loses_nothing(postgres, url):
    promised: dict[int, Event] = {}
    refused: set[Event] = set()
    unknown: set[Event] = set()
    over = threading.Event()

    def work(thread):
        i = 0
        while not over.is_set():
            name = thread * 1_000_000 + (i := i + 1)
            try:
                promised[ledger.append(numbered(name))] = numbered(name)
            except LedgerUnavailable as error:
                (unknown if error.uncertain else refused).add(numbered(name))

    with postgres_ledger(url, patience=0.1) as ledger, ThreadPoolExecutor(8) as pool:
        working = [pool.submit(work, thread) for thread in range(8)]
        try:
            for mode in ("immediate", "fast", "immediate"):
                so_far = len(promised)
                while len(promised) < so_far + 50:
                    time.sleep(0.01)
                postgres.stop(mode)
                before = len(refused) + len(unknown)
                while len(refused) + len(unknown) == before:
                    time.sleep(0.01)
                postgres.start()
            so_far = len(promised)
            while len(promised) < so_far + 50:
                time.sleep(0.01)
        finally:
            over.set()
        for future in working:
            future.result(60)
        events = list(ledger.events())
    assert verify_chain(url) == []
    assert {n: events[n] for n in promised} == promised
    assert not refused & set(events), "what was refused for certain is not there"
    assert set(events) - set(promised.values()) <= unknown
    assert len(events) == len(set(events)), "nothing is there twice"


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("sharewell.service.ledger.postgres.STATEMENT_SECONDS", 2.0)
    monkeypatch.setattr("sharewell.service.ledger.postgres.CLOSING_SECONDS", 0.2)


def test_a_server_that_hangs_makes_a_commit_uncertain_in_bounded_time(postgres, url, impatient):
    with postgres_ledger(f"{url}&connect_timeout=2", patience=60) as ledger:
        ledger.append(numbered(0))
        ledger._patience = 0.5
        with postgres.hanging():
            for _ in range(2):
                with pytest.raises(LedgerUnavailable, match="not known yet") as caught:
                    ledger.append(numbered(1))
                assert caught.value.uncertain
            with pytest.raises(LedgerUnavailable):
                ledger.question(0)
        ledger._patience = 60.0
        stored = len(ledger)
        assert stored in (1, 2)
        assert ledger.append(numbered(2)) == stored
        expected = [numbered(0), numbered(1), numbered(2)] if stored == 2 else [numbered(0), numbered(2)]
        assert list(ledger.events()) == expected
    assert verify_chain(url) == []


def test_a_ledger_in_a_server_that_hangs_is_closed_in_bounded_time(postgres, url, impatient):
    ledger = postgres_ledger(url)
    ledger.append(numbered(0))
    with postgres.hanging():
        ledger.close()
    with postgres_ledger(url, wait=120) as ledger:
        assert list(ledger.events()) == [numbered(0)]


def test_a_statement_that_the_server_does_not_finish_is_cancelled_by_it(postgres, url, impatient):
    with postgres_ledger(url, patience=60) as ledger, psycopg.connect(url) as other:
        ledger.append(numbered(0))
        ledger._patience = 0.0
        other.execute("LOCK TABLE sharewell.events IN EXCLUSIVE MODE")
        with pytest.raises(LedgerUnavailable, match=r"statement timeout|no response"):
            ledger.append(numbered(1))
        other.rollback()
        ledger._patience = 60.0
        assert ledger.append(numbered(1)) in (1, 2)
