"""One analyst's large questions and quotes beside another's small ones."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

from sharewell.config import parse_config
from sharewell.errors import QueryError, QueryTooComplex, RequestError, TooMany
from sharewell.mechanisms.base import Work
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.privacy.ledger import AnsweredFree, Asked, Charged, Ending, MemoryLedger, Turn
from sharewell.query.sql import StatementCache
from sharewell.service.dataset import DatasetService
from sharewell.service.submissions import LARGE_SECONDS
from tests.service.services import config, count, held, plain, serve, status
from tests.service.verify.ledgers import verified
from tests.service.waiting import comes_true

LARGE = "SELECT age, COUNT(*) FROM people WHERE age <> {} GROUP BY age"
SMALL = count(0, 4)
WIDE = """
[dataset]
source = "people.csv"
population = 1000
[budget]
epsilon = 10
error_threshold = 20
[attributes.a]
type = "integer"
low = 0
high = {high}
[attributes.b]
type = "integer"
low = 0
high = {high}
[analysts.ann]
share = "1/2"
[mechanism]
seed = "{seed}"
query_budget = "1/80"
"""
GROUPS = "SELECT a, b, COUNT(*) FROM people GROUP BY a, b"


@pytest.fixture(autouse=True)
def few_numbers_are_large(monkeypatch):
    monkeypatch.setattr("sharewell.service.submissions.LARGE_SIZE", 10)


class Slow:
    """Makes the computation of large questions wait; counts those that have begun."""

    def __init__(self, monkeypatch) -> None:
        self.begun = 0
        self.go_on = threading.Event()
        estimate, expect = CacheReconstruct._estimate, CacheReconstruct.expect

        def wait(block):
            if len(block) > 10:
                self.begun += 1
                assert self.go_on.wait(60)

        def estimate_slowly(mechanism, block, *args, **options):
            wait(block)
            return estimate(mechanism, block, *args, **options)

        def expect_slowly(mechanism, block, *args):
            wait(block)
            return expect(mechanism, block, *args)

        monkeypatch.setattr(CacheReconstruct, "_estimate", estimate_slowly)
        monkeypatch.setattr(CacheReconstruct, "expect", expect_slowly)


@contextmanager
def opened(ledger=None, scheduler="none", **options) -> Iterator[DatasetService]:
    with serve(config(scheduler=scheduler), ledger, **options) as service:
        yield service


def ended(ledger) -> list[str]:
    """The analysts in the order in which their questions ended."""
    events = list(ledger.events())
    return [events[event.asked].analyst for event in events if isinstance(event, Ending)]


@pytest.mark.parametrize("scheduler", ["none", "round-robin", "weighted"])
def test_a_cached_question_passes_ten_large_ones_of_another(scheduler, monkeypatch, tmp_path):
    slow, ledger = Slow(monkeypatch), MemoryLedger()
    with opened(ledger, scheduler) as service:
        for name in ("ann", "ben", "cleo"):
            service.done(name)
        paid = plain(service.ask("ann", SMALL, timeout=60))
        large = [service.submit("ben", LARGE.format(at), pay=False) for at in range(10)]
        service.done("ann")
        service.done("ben")
        comes_true(lambda: slow.begun == 1)
        for _ in range(3):
            cached = plain(service.ask("ann", SMALL, pay=False, timeout=60))
            assert cached[0]["value"] == paid[0]["value"]
            service.done("ann")
        assert not any(ticket.done for ticket in large)
        slow.go_on.set()
        assert all(len(ticket.wait(60).answers) >= 19 for ticket in large)
    assert ended(ledger) == ["ann"] * 4 + ["ben"] * 10
    assert verified(tmp_path / "ledger.sqlite", list(ledger.events())).findings == []


def test_a_question_that_buys_waits_for_the_large_one_and_is_stored_after_it(monkeypatch, tmp_path):
    slow, ledger = Slow(monkeypatch), MemoryLedger()
    with opened(ledger) as service:
        large = service.submit("ben", LARGE.format(0), pay=False)
        comes_true(lambda: slow.begun == 1)
        bought = service.submit("ann", SMALL)
        comes_true(lambda: any(isinstance(e, Asked) and e.analyst == "ann" for e in ledger.events()))
        assert not bought.done
        slow.go_on.set()
        assert bought.wait(60).cost
        assert large.wait(60).cost == 0
    kinds = [type(event) for event in ledger.events() if isinstance(event, Charged | AnsweredFree)]
    assert kinds == [Charged, AnsweredFree, Charged], "the seed, the large question, the small one"
    assert verified(tmp_path / "ledger.sqlite", list(ledger.events())).findings == []


@pytest.mark.parametrize("scheduler", ["none", "round-robin"])
def test_a_large_question_that_buys_is_charged_once_and_for_both_who_ask(scheduler, tmp_path):
    ledger = MemoryLedger()
    with opened(ledger, scheduler) as service:
        with held(service):
            both = [service.submit(name, LARGE.format(0)) for name in ("ann", "ben")]
            small = service.submit("cleo", SMALL)
        assert {answer.value for answer in both[0].wait(60).answers} == {
            answer.value for answer in both[1].wait(60).answers
        }
        assert small.wait(60).answers
        assert sorted(ticket.cost > 0 for ticket in both) == [False, True]
    assert verified(tmp_path / "ledger.sqlite", list(ledger.events())).findings == []


def test_large_questions_of_several_analysts_are_answered_in_turn():
    ledger = MemoryLedger()
    with opened(ledger) as service:
        with held(service):
            large = [service.submit("ben", LARGE.format(at), pay=False) for at in range(4)]
            large += [service.submit("ann", LARGE.format(at), pay=False) for at in range(2)]
        for ticket in large:
            ticket.wait(60)
    assert ended(ledger) == ["ben", "ann", "ben", "ann", "ben", "ben"]


def test_with_a_scheduler_the_turns_of_large_questions_are_kept(tmp_path):
    ledger = MemoryLedger()
    with opened(ledger, "round-robin") as service:
        service.done("cleo")
        with held(service):
            tickets = [service.submit("ben", LARGE.format(at)) for at in range(3)]
            tickets += [service.submit("ann", count(at, 9)) for at in range(3)]
        service.done("ann")
        service.done("ben")
        for ticket in tickets:
            ticket.wait(60)
    assert ended(ledger) == ["ann", "ben"] * 3
    assert any(isinstance(event, Turn) for event in ledger.events())
    assert verified(tmp_path / "ledger.sqlite", list(ledger.events())).findings == []


def test_a_large_question_that_waits_is_answered_after_a_restart(monkeypatch, tmp_path):
    slow, ledger = Slow(monkeypatch), MemoryLedger()
    with opened(ledger) as service, monkeypatch.context() as patch:
        # As if the process had been killed: nothing more is stored.
        large = [service.submit("ben", LARGE.format(at), pay=False, key=f"{at}") for at in range(3)]
        comes_true(lambda: service._worker.state.large.waiting == 2)
        patch.setattr(service._worker, "_is_finished", lambda: True)
        patch.setattr(service._worker, "_finish_large", lambda: None)
        copy = MemoryLedger()
        copy.append_many(list(ledger.events()))
        slow.go_on.set()
    assert not [ticket for ticket in large if ticket.done and ticket.stored is False]
    with opened(copy) as service:
        answers = [service.ask("ben", LARGE.format(at), pay=False, key=f"{at}") for at in range(3)]
        assert all(ticket.wait(60).answers for ticket in answers)
    assert len([e for e in copy.events() if isinstance(e, Asked)]) == 3
    assert verified(tmp_path / "ledger.sqlite", list(copy.events())).findings == []


def test_quotes_stop_neither_questions_nor_the_quotes_of_others(monkeypatch):
    slow = Slow(monkeypatch)
    with opened() as service, ThreadPoolExecutor() as threads:
        quotes = [threads.submit(service.quote, "ben", LARGE.format(at)) for at in range(4)]
        comes_true(lambda: slow.begun == 1)
        assert service.ask("ann", SMALL, timeout=60).cost
        found = service.quote("ann", SMALL).paid
        assert found is not None
        assert found.cost == 0
        assert slow.begun == 1, "one quote of each analyst is computed at a time"
        assert not any(quote.done() for quote in quotes)
        slow.go_on.set()
        assert all(quote.result(60).groups for quote in quotes)


def test_a_quote_whose_client_is_gone_is_not_computed(monkeypatch):
    slow = Slow(monkeypatch)
    gone = threading.Event()
    two = "SELECT age, COUNT(*), SUM(age) FROM people GROUP BY age"
    with opened() as service, ThreadPoolExecutor() as threads:
        quote = threads.submit(service.quote, "ben", two, cancelled=gone.is_set)
        comes_true(lambda: slow.begun == 1)
        waits = threads.submit(service.quote, "ben", LARGE.format(0), cancelled=gone.is_set)
        gone.set()
        slow.go_on.set()
        for each in (quote, waits):
            with pytest.raises(RequestError, match="cancelled"):
                each.result(60)
        # It ends at the first row that is looked up: without paying and the second block come never.
        assert slow.begun == 1


def is_at_least(counter: Iterator[int], last: int) -> bool:
    return next(counter) >= last


@pytest.mark.parametrize(
    ("seed", "cells"),
    [("identity", 2500), ("identity", 256), ("prefix", 400), ("total", 400)],
    ids=["sparse", "dense", "woodbury", "square root"],
)
def test_a_quote_is_cancelled_within_a_block_of_many_groups(seed, cells):
    side = math.isqrt(cells)
    settings = parse_config(WIDE.format(seed=seed, high=side - 1))
    checks = itertools.count(1)
    with serve(settings) as service:
        service.quote("ann", GROUPS)
        service.quote("ann", GROUPS, cancelled=lambda: not next(checks))
        every = next(checks) - 1
        assert every > cells / 256, "it is checked often"
        for last in (2, every // 2, every):
            checks = itertools.count(1)
            with pytest.raises(RequestError, match="cancelled"):
                service.quote("ann", GROUPS, cancelled=partial(is_at_least, checks, last))
            assert next(checks) == last + 1, "nothing was computed after it"
        assert service.quote("ann", GROUPS).groups == cells


def test_a_quote_that_waits_for_its_turn_ends_once_its_client_is_gone(monkeypatch):
    slow = Slow(monkeypatch)
    gone = threading.Event()
    with opened() as service, ThreadPoolExecutor() as threads:
        quote = threads.submit(service.quote, "ben", LARGE.format(0))
        comes_true(lambda: slow.begun == 1)
        waits = threads.submit(service.quote, "ben", LARGE.format(1), cancelled=gone.is_set)
        gone.set()
        try:
            with pytest.raises(RequestError, match="cancelled"):
                waits.result(60)
        finally:
            slow.go_on.set()
        assert quote.result(60).groups
        assert service.quote("ben", SMALL).paid


def limited(**limits) -> DatasetService:
    settings = config()
    return serve(replace(settings, service=replace(settings.service, **limits)))


def test_a_question_that_takes_too_long_is_refused_and_costs_nothing():
    with limited(max_seconds=0.003) as service:
        before = status(service, "ann")
        for refused in (service.ask, service.quote):
            with pytest.raises(QueryTooComplex) as refusal:
                refused("ann", LARGE.format(30))
            assert "takes about 0.004" in refusal.value.message
            assert "the limits are 0.003 s" in refusal.value.message
            assert refusal.value.hint
        assert status(service, "ann") == before
        assert service.ask("ann", SMALL).answers


def quantiles(count: int) -> str:
    fractions = (f"PERCENTILE_CONT({at / (count + 1):.4f})" for at in range(1, count + 1))
    return f"SELECT {', '.join(f'{each} WITHIN GROUP (ORDER BY a)' for each in fractions)} FROM people"


def test_the_numbers_that_quantiles_add_up_count_as_work():
    """A hundred of them took some 15 seconds, though the question has no more than 120 numbers."""
    text = WIDE.format(seed="identity", high=79)
    with serve(parse_config(text.replace("high = 79\n[analysts", "high = 1\n[analysts"))) as service:
        before = status(service, "ann")
        for refused in (partial(service.ask, pay=False), service.quote):
            with pytest.raises(QueryTooComplex, match=r"takes about 9\.\d s"):
                refused("ann", quantiles(120))
        assert status(service, "ann") == before
        few = service.submit("ann", quantiles(2), pay=False)
        assert few.wait(60).answers
        assert few.seconds > LARGE_SECONDS, "it is computed beside the worker"
        assert service.find_light(quantiles(2), "ann") is None, "and shown beside the event loop"


def test_the_functions_of_a_result_count_as_work():
    """To find the ranges of 300 functions in each of 1,600 rows took 5 seconds."""

    def text(branches: int) -> str:
        sizes = " ".join(f"WHEN COUNT(*) > {at} THEN {at}" for at in range(branches))
        return f"SELECT a, b, CASE {sizes} END AS n FROM people GROUP BY a, b"

    with serve(parse_config(WIDE.format(seed="identity", high=39))) as service:
        for refused in (partial(service.ask, pay=False), service.quote):
            with pytest.raises(QueryTooComplex, match=r"takes about \d\.\d s"):
                refused("ann", text(300))
        assert service.quote("ann", text(2)).cost == 0


@pytest.mark.parametrize("limit", ["expressions.MAX_LENGTH", "grammar.MAX_COLUMNS", "MAX_STEPS"])
def test_a_question_of_before_a_limit_is_read_for_ever(limit, monkeypatch, tmp_path):
    """Limits are for new questions: a ledger that has a larger one opens, verifies and gives it."""
    text = f"SELECT COUNT(*) FROM people WHERE CONCAT(sex, '{'x' * 200}') LIKE 'F%'"
    ledger = MemoryLedger()
    with opened(ledger) as service:
        asked = plain(service.ask("ann", text, key="old", timeout=60))
    monkeypatch.setattr("sharewell.query.sql.STATEMENTS", StatementCache(0))
    monkeypatch.setattr(f"sharewell.query.sql.{limit}", 0)
    with opened(ledger) as service:
        assert plain(service.ask("ann", text, key="old", timeout=60)) == asked
        with pytest.raises(QueryTooComplex):
            service.ask("ann", text, key="new", timeout=60)
    assert verified(tmp_path / "ledger.sqlite", list(ledger.events())).findings == []


def test_what_a_vague_seed_would_spoil_is_refused_and_costs_nothing():
    """A seed of 625 cells for next to nothing: no double holds both it and a paid answer."""
    text = WIDE.format(seed="identity", high=24) + 'seed_fraction = "1/100000000"'
    with serve(parse_config(text)) as service:
        before = status(service, "ann")
        for refused in (service.ask, service.quote):
            with pytest.raises(QueryError, match="seed is far too imprecise") as refusal:
                refused("ann", "SELECT COUNT(*) FROM people WHERE a < 5")
            assert "seed_fraction" in str(refusal.value.hint)
        assert status(service, "ann") == before
        assert service.ask("ann", "SELECT COUNT(*) FROM people WHERE a < 5", pay=False).answers


def test_a_question_that_takes_too_much_memory_is_refused(monkeypatch):
    monkeypatch.setattr(CacheReconstruct, "work", lambda self, question, pay=True: Work(0.0, 2e6))
    with limited(max_megabytes=1) as service, pytest.raises(QueryTooComplex, match=r"2 MB; .* 1 MB"):
        service.quote("ann", SMALL)


def test_the_work_of_pending_questions_is_limited_for_each_analyst(monkeypatch):
    slow = Slow(monkeypatch)
    monkeypatch.setattr(CacheReconstruct, "work", lambda self, question, pay=True: Work(0.0, 0.0))
    with limited(max_seconds_waiting=0.01) as service:
        first = [service.submit("ben", LARGE.format(at), pay=False) for at in (30, 31)]
        other = service.submit("cleo", LARGE.format(33), pay=False)
        try:
            with pytest.raises(TooMany, match=r"take about 0.008 s .* this one 0.004 s.* is 0.01 s"):
                service.submit("ben", LARGE.format(32), pay=False)
        finally:
            slow.go_on.set()
        assert all(ticket.wait(60).answers for ticket in (*first, other))
