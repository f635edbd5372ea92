"""Questions that have ended: kept in the ledger, found by key and number, and not kept in memory."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import Any

import pytest

from sharewell import wire
from sharewell.config import parse_config
from sharewell.errors import KeyReused, NotFound, StorageFull, TooMany
from sharewell.privacy.ledger import AnsweredFree, Asked, MemoryLedger
from sharewell.query.sql import StatementCache
from sharewell.service.certificate_worker import EndedQuestion, _entry
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.service.verify import verify
from sharewell.sharing.certificate import Certificate
from tests.service.services import config, count, plain, serve, status

BY_AGE = "SELECT age, COUNT(*) FROM people GROUP BY age"


def opened(ledger, service: str = "", cache_bytes: int = 10_000, **options) -> DatasetService:
    """A dataset with a cache of a few submissions."""
    settings = parse_config(f"{config(**options).text}\n[service]\nmost_waiting = 10000\n{service}\n")
    found = serve(settings, ledger)
    found._submissions._cache_bytes = cache_bytes
    return found


@contextmanager
def on_disk(path: Path, **options) -> Iterator[DatasetService]:
    with open_ledger(path, create=True) as ledger, opened(ledger, **options) as service:
        yield service


def ask_free(service: DatasetService, keys: range) -> None:
    """Ask free questions with 20 answers each, some of them at once."""
    for start in keys[::50]:
        asked = [
            service.submit("ann", BY_AGE, pay=False, key=f"{key}") for key in range(start, start + 50)
        ]
        for submission in asked:
            submission.wait(60)


def memory() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.slow
def test_memory_is_bounded_by_the_cache_and_not_by_what_was_asked(tmp_path):
    path = tmp_path / "ledger.sqlite"
    tracemalloc.start()
    try:
        with on_disk(path, cache_bytes=200_000) as service:
            ask_free(service, range(100))
            before = memory()
            ask_free(service, range(100, 2100))
            assert memory() < before + 500_000
        assert path.stat().st_size > 5_000_000
        with on_disk(path, cache_bytes=200_000) as service:
            assert memory() < before + 500_000
            assert status(service, "ann").asked == 2100
            assert len(service.submit("ann", BY_AGE, pay=False, key="7").wait(60).answers) == 20
            assert memory() < before + 500_000
    finally:
        tracemalloc.stop()


def weighted(number: int) -> str:
    """A question that was never asked before."""
    return f"SELECT SUM(CASE WHEN age = 3 THEN {number} WHEN age > 7 THEN 1 ELSE 0 END) FROM people"


@pytest.fixture
def growth(monkeypatch) -> Callable[[Callable[[int], object]], float]:
    """How many bytes are kept of each call with another number, beside caches of limited size."""
    monkeypatch.setattr("sharewell.mechanisms.reconstruction.MOST_REMEMBERED", 16)
    monkeypatch.setattr("sharewell.query.sql.STATEMENTS", StatementCache(50_000))

    def kept() -> int:
        for each in gc.get_objects():
            if type(each) is _lru_cache_wrapper and each.__module__.startswith("sharewell."):
                each.cache_clear()
        return memory()

    def measured(call: Callable[[int], object]) -> float:
        # What came first fills the caches; of two batches, the smaller growth is no accident.
        sizes = []
        tracemalloc.start()
        try:
            for batch in range(3):
                for number in range(80 * batch + 1, 80 * batch + 81):
                    call(number)
                sizes.append(kept())
        finally:
            tracemalloc.stop()
        return min(sizes[1] - sizes[0], sizes[2] - sizes[1]) / 80

    return measured


@pytest.mark.slow
def test_nothing_is_kept_of_free_questions_that_all_differ(tmp_path, growth):
    with on_disk(tmp_path / "ledger.sqlite", cache_bytes=20_000) as service:
        assert growth(lambda number: service.ask("ann", weighted(number), pay=False)) < 1000


@pytest.mark.slow
def test_the_certificates_process_keeps_nothing_of_free_questions_that_all_differ(growth):
    settings = config()
    certificate = Certificate(settings.collective, error_threshold=20.0)

    def follow(number: int) -> None:
        sent = EndedQuestion("ann", weighted(number), pay=False)
        certificate.record(_entry(sent, settings.collective, settings.name))

    assert growth(follow) < 1000
    assert certificate.report().of("ann").answers == 240


@pytest.mark.parametrize("scheduler", ["none", "round-robin"])
def test_keys_and_numbers_find_what_is_no_longer_in_memory(tmp_path, scheduler):
    path = tmp_path / "ledger.sqlite"
    asked = [(f"{at}", count(0, at), at % 2 == 0) for at in range(15)]
    with on_disk(path, scheduler=scheduler) as service:
        first = {}
        for key, sql, pay in asked:
            submission = service.submit("ann", sql, pay=pay, key=key)
            for name in ("ann", "ben", "cleo"):
                service.done(name)
            first[key] = (submission.wait(60).number, plain(submission))
        spent = status(service, "ann").spent
        assert len(service._submissions._by_key) < len(asked)
    for _ in range(2):
        with on_disk(path, scheduler=scheduler) as service:
            for key, sql, pay in asked:
                again = service.submit("ann", sql, pay=pay, key=key).wait(60)
                assert (again.number, plain(again)) == first[key]
                assert plain(service.submission("ann", again.number)) == first[key][1]
                assert service.describe(again).state == "answered"
                with pytest.raises(KeyReused):
                    service.submit("ann", count(3, 4), pay=pay, key=key).wait(60)
                with pytest.raises(NotFound):
                    service.submission("ben", again.number)
            assert status(service, "ann").spent == spent
            assert status(service, "ann").asked == len(asked)
    assert verify(path, certificate=False).findings == []


def outline(ticket: wire.Ticket) -> tuple[object, ...]:
    """A ticket without the hint of its refusal, which is not stored."""
    problem = ticket.problem and (ticket.problem.code, ticket.problem.message)
    return ticket.number, ticket.key, ticket.sql, ticket.state, ticket.answer, problem


def test_a_refused_question_is_refused_alike_when_it_comes_from_the_ledger(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with on_disk(path, mechanism="laplace") as service:
        questions = [count(low, high) for low in range(4) for high in range(4, 20)]
        asked = [service.submit("ann", sql, key=sql) for sql in questions]
        for submission in asked:
            submission.outcome(60)
        first = [outline(service.describe(submission)) for submission in asked]
        assert {ticket[3] for ticket in first} == {"answered", "refused"}
    with on_disk(path, mechanism="laplace") as service:
        assert [outline(ticket) for ticket in service.questions("ann").tickets] == first
        again = service.submit("ann", questions[-1], key=questions[-1])
        again.outcome(60)
        assert outline(service.describe(again)) == first[-1]


def test_the_history_is_whole_in_pages(tmp_path):
    with on_disk(tmp_path / "ledger.sqlite") as service:
        ask_free(service, range(100))
        service.ask("ben", BY_AGE)
        found: list[str] = []
        after: int | None = -1
        while after is not None:
            page = service.questions("ann", after, limit=7)
            assert len(page.tickets) <= 7
            found += [ticket.key for ticket in page.tickets]
            after = page.next
        assert found == [f"{key}" for key in range(100)]


def test_free_answers_are_stored_beside_the_chain_which_has_their_digest(tmp_path):
    with on_disk(tmp_path / "ledger.sqlite") as service:
        paid = service.ask("ann", count(0, 9))
        free = service.ask("ben", BY_AGE, pay=False)
        events = list(service.ledger.events())
        [stored] = [event for event in events if isinstance(event, AnsweredFree)]
        assert (stored.asked, stored.size, stored.text) == (free.number, 20, None)
        ended = service._submissions._ledger.question(paid.number)
        assert ended is not None
        assert ended.ending is not None
        assert ended.ending in events, "a paid answer is in the chain"


def test_a_restart_reads_no_free_answer(tmp_path, monkeypatch):
    path = tmp_path / "ledger.sqlite"
    with on_disk(path) as service:
        ask_free(service, range(50))
    monkeypatch.delattr("sharewell.service.submissions.read_answers")
    with on_disk(path) as service:
        assert status(service, "ann").asked == 50


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_above_the_quota_new_free_questions_are_refused_and_all_others_answered(kind, tmp_path):
    ledger = open_ledger(tmp_path / "a.sqlite", create=True) if kind == "file" else MemoryLedger()
    limit = "max_free_bytes = 20000\nrelease_every = 0.001"

    def ask(service: DatasetService, sql: str, key: str, **options: bool) -> list[dict[str, Any]]:
        return plain(service.ask("ann", sql, key=key, timeout=60, **options))

    with opened(ledger, limit) as service:
        answered: list[object] = []

        def fill() -> None:
            for number in range(100):
                answered.append(ask(service, BY_AGE, f"{number}", pay=False))

        with pytest.raises(StorageFull, match="the limit is 20,000") as caught:
            fill()
        assert 4 < len(answered) < 20
        assert "max_free_bytes" in caught.value.hint
        stored = sum(isinstance(event, Asked) for event in ledger.events())
        assert stored == len(answered), "a question that is refused is not stored"
        assert ask(service, BY_AGE, "0", pay=False) == answered[0]
        assert service.ask("ben", BY_AGE, pay=False).answers
        paid = ask(service, count(2, 3), "paid")
        assert paid[0]["charge"] is not None
    with opened(ledger, limit) as service:
        with pytest.raises(StorageFull):
            ask(service, count(2, 3), "would pay, and is free by now")
        assert ask(service, count(2, 3), "paid") == paid
        assert ask(service, BY_AGE, "0", pay=False) == answered[0]
    with opened(ledger, "max_free_bytes = 200000") as service:
        assert ask(service, BY_AGE, "new", pay=False)


def test_a_known_key_is_answered_whatever_limit_is_reached(tmp_path):
    with on_disk(tmp_path / "ledger.sqlite", service="max_sql_bytes = 1000") as service:
        first = plain(service.ask("ann", BY_AGE, pay=False, key="known"))
        ask_free(service, range(50))
        assert service._submissions.find("ann", "known") is None
        service._submissions._most_waiting = 0
        with pytest.raises(TooMany):
            service.submit("ann", BY_AGE, pay=False, key="new")
        assert plain(service.submit("ann", BY_AGE, pay=False, key="known")) == first
