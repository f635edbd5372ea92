"""What a service does with a ledger, or a client, that was left in the middle of something."""

from __future__ import annotations

import threading
from contextlib import suppress
from fractions import Fraction

import pytest

from sharewell.errors import (
    Closed,
    KeyReused,
    LedgerUnavailable,
    QueryError,
    RequestError,
    SharewellError,
    SharingError,
)
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.privacy.ledger import Answered, Asked, Charged, MemoryLedger, Refused
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import DurableLedger
from sharewell.service.ledger.sqlite import SqliteStore
from tests.service.faults.bookkeeping import Books, whole_events
from tests.service.services import config, count, join, plain, serve, status


def service_on(ledger, scheduler="none", **options) -> DatasetService:
    settings = config(scheduler=scheduler)
    return serve(settings, ledger, **options)


class Blinking(SqliteStore):
    """A store that stores and then cannot say so: neither does the commit return, nor can one look."""

    stored_and_gone = False
    gone = False

    def write(self, rows, side, old, new, at):
        if self.gone:
            raise LedgerUnavailable("The line is dead.")
        done = super().write(rows, side, old, new, at)
        if self.stored_and_gone and any(b"charged" in row.body for row in rows):
            self.stored_and_gone, self.gone = False, True
            raise LedgerUnavailable("The line went dead.")
        return done

    def head(self):
        if self.gone:
            raise LedgerUnavailable("The line is dead.")
        return super().head()


def test_what_was_stored_without_a_word_is_found_before_anything_else_is_done(tmp_path):
    store = Blinking(tmp_path / "ledger.sqlite", create=True)
    with DurableLedger(store, patience=0) as ledger, service_on(ledger) as service:
        store.stored_and_gone = True
        for _ in range(2):
            with pytest.raises(LedgerUnavailable):
                service.ask("ann", count(0, 9), key="k")
        store.gone = False
        result = service.ask("ann", count(0, 9), key="k", timeout=60)
        assert isinstance(list(ledger.events())[result.number], Asked)
        assert status(service, "ann").spent == Fraction(5, 4) + Fraction(1, 8)
        books = Books(bought_once=True)
        books.read(whole_events(ledger))
        assert books.spent["ann"] == status(service, "ann").spent


class Failing(MemoryLedger):
    """Fails once at an event of a kind, storing nothing."""

    kind: type | None = None

    def append_many(self, events):
        if self.kind and any(isinstance(event, self.kind) for event in events):
            self.kind = None
            raise LedgerUnavailable("There is no room.")
        return super().append_many(events)


def test_a_retry_that_asks_for_something_else_does_not_get_the_answer_of_its_key():
    ledger = Failing()
    with service_on(ledger) as service:
        ledger.kind = Answered
        with pytest.raises(LedgerUnavailable):
            service.ask("ann", count(0, 9), key="k")
        with pytest.raises(KeyReused):
            service.ask("ann", count(0, 3), key="k", timeout=60)
        assert service.ask("ann", count(0, 9), key="k", timeout=60).answers


def test_a_client_that_gives_up_disturbs_nobody():
    with service_on(MemoryLedger()) as service:
        tickets = [service.submit("ann", count(0, at), key=f"{at}") for at in range(8)]
        for ticket in tickets[::2]:
            with suppress(TimeoutError):
                ticket.wait(timeout=0)
        first = [plain(ticket.wait(60)) for ticket in tickets]
        again = [plain(service.ask("ann", count(0, at), key=f"{at}")) for at in range(8)]
        assert first == again
        assert status(service, "ann").asked == 8


def test_what_is_stored_keeps_its_key_when_something_fails_afterwards(monkeypatch):
    ledger = MemoryLedger()
    with service_on(ledger) as service:
        changed, fails = service._worker._changed, [True]

        def fail_once(state):
            if fails:
                fails.pop()
                raise ValueError
            changed(state)

        monkeypatch.setattr(service._worker, "_changed", fail_once)
        first = plain(service.ask("ann", count(0, 9), key="k"))
        assert plain(service.ask("ann", count(0, 9), key="k")) == first
        service.ask("ben", count(0, 9), key="k")
    assert [event.key for event in ledger.events() if isinstance(event, Asked)] == ["k", "k"]


def test_a_question_whose_answer_cannot_be_computed_is_refused_and_the_others_go_on(monkeypatch):
    ledger = MemoryLedger()
    answer = CacheReconstruct.answer

    def fragile(self, block, analyst, pay):
        found = yield from answer(self, block, analyst, pay)
        if pay is False:
            raise ZeroDivisionError("17 people")
        return found

    monkeypatch.setattr(CacheReconstruct, "answer", fragile)
    with service_on(ledger) as service:
        for _ in range(2):
            with pytest.raises(SharewellError, match="could not be computed") as refusal:
                service.ask("ann", count(0, 9), pay=False, key="poison", timeout=60)
            assert "17" not in str(refusal.value)
        assert refusal.value.code == QueryError.code
        assert service.ask("ann", count(0, 9), timeout=60).answers
    assert [type(event) for event in ledger.events()].count(Refused) == 1
    with service_on(ledger) as service:
        assert service.ask("ben", count(0, 9), timeout=60).answers


def test_a_newcomer_whom_the_scheduler_refuses_is_not_in_the_ledger():
    ledger = MemoryLedger()
    with service_on(ledger, "round-robin") as service:
        with pytest.raises(SharingError, match="ann is already an analyst"):
            join(service, "ann", Fraction(1, 10))
        service._worker.state.scheduler.join("eve")
        with pytest.raises(SharingError, match="named twice"):
            join(service, "eve", Fraction(1, 10))
        service._worker.state.scheduler.leave("eve")
        with pytest.raises(SharewellError):
            join(service, "dora", "1000")
        join(service, "dora", Fraction(1, 10))
        assert service.analyst_names == ("ann", "ben", "cleo", "dora")
    with service_on(ledger, "round-robin") as service:
        assert service.analyst_names == ("ann", "ben", "cleo", "dora")


def test_questions_of_somebody_who_left_in_a_crash_are_refused_at_the_next_opening():
    ledger = Failing()
    with service_on(ledger, "round-robin") as service:
        service.ask("ann", count(0, 3))
        held = service.submit("ann", count(0, 4), key="held")
        assert held.wait_until_ready(60)
        ledger.kind = Refused
        with pytest.raises(LedgerUnavailable):
            service.leave("ann")
        with pytest.raises(RequestError, match="has left"):
            held.wait(60)
        service.ask("ben", count(0, 4), timeout=60)
    for _ in range(2):
        with service_on(ledger, "round-robin") as service:
            [asked] = [t for t in service._submissions.of("ann") if t.key == "held"]
            with pytest.raises(RequestError, match="has left"):
                asked.wait(60)
    assert [type(event) for event in ledger.events()].count(Refused) == 1


@pytest.mark.parametrize("first", ["round-robin", "weighted", "randomized"])
@pytest.mark.parametrize("second", ["none", "round-robin", "randomized"])
def test_a_ledger_goes_on_under_another_scheduler(first, second):
    ledger = MemoryLedger()
    with service_on(ledger, first, tick=0.001) as service:
        join(service, "dora", Fraction(1, 10))
        service.ask("ann", count(0, 3))
        service.leave("cleo")
        held = [service.submit(name, count(0, 4), key="held") for name in ("ann", "ben", "dora")]
        assert all(ticket.wait_until_ready(60) for ticket in held)
    with service_on(ledger, second, tick=0.001) as service:
        for name in service.analyst_names:
            service.done(name)
        for name in ("ann", "ben", "dora"):
            assert service.ask(name, count(0, 4), key="held", timeout=60).answers


def test_a_question_that_is_being_stored_has_a_position():
    reached, go_on = threading.Event(), threading.Event()

    class Slow(MemoryLedger):
        def append_many(self, events):
            if any(isinstance(event, Charged) for event in events) and armed:
                reached.set()
                go_on.wait(60)
            return super().append_many(events)

    armed: list[bool] = []
    with service_on(Slow()) as service:
        armed.append(True)
        ticket = service.submit("ann", count(0, 9))
        assert reached.wait(60)
        assert service.describe(ticket).position == 0
        go_on.set()
        assert ticket.wait(60).answers


def test_a_certificate_that_cannot_follow_says_so_and_answers_go_on():
    with service_on(MemoryLedger(), certificate=True) as service:
        asked = service.ledger.append(Asked("k", "ann", {"sql": "SELECT 17 people"}, pay=True))
        service.ledger.append(Answered(asked, ()))
        service.ask("ann", count(0, 9))
        with pytest.raises(SharingError, match="could not follow") as refusal:
            service.report(up_to_date=True)
        assert "17" not in str(refusal.value)
        assert service.ask("ben", count(0, 9)).answers
    with pytest.raises(Closed):
        service.report(up_to_date=True)
