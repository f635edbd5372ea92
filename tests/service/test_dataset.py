"""The service of a dataset, in messages of the wire, on a real ledger."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from sharewell import wire
from sharewell.config import read_config
from sharewell.errors import (
    Closed,
    KeyReused,
    LedgerCorrupt,
    LedgerInUse,
    LedgerUnavailable,
    NotFound,
    OverBudget,
    Paused,
    PrivacyError,
    QueryTooComplex,
    RequestError,
    SharingError,
    SourceError,
    SqlError,
    TooMany,
    UnknownPayer,
)
from sharewell.privacy.ledger import Armed, Done, public_events
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.service.tokens import Principal, TokenStore
from tests.service.datasets import open_service, write_dataset
from tests.service.services import MECHANISMS, config, count, serve
from tests.service.waiting import comes_true


def ask(service: DatasetService, analyst: str, sql: str, **more) -> Any:
    ticket = service.submit(analyst, sql, **more)
    ticket.outcome(60)
    return service.describe(ticket)


@pytest.fixture
def service(tmp_path):
    with open_service(tmp_path) as opened:
        yield opened


@pytest.fixture
def stalled(tmp_path):
    """A dataset where everybody waits until it is ann's turn, who never asks."""
    with open_service(tmp_path, scheduler="round-robin", service="most_waiting = 3") as opened:
        yield opened


def wait_in_line(service: DatasetService, analyst: str, sql: str, **more):
    ticket = service.submit(analyst, sql, **more)
    assert ticket.wait_until_ready(60)
    return ticket


def test_a_question_is_answered_with_its_error_its_source_and_its_cost(service):
    shown = ask(service, "ann", count(0, 4), key="mine")
    assert (shown.state, shown.key, shown.sql, shown.pay) == ("answered", "mine", count(0, 4), True)
    assert (shown.position, shown.problem) == (None, None)
    [[number]] = shown.answer.rows
    assert number.source == "measured"
    assert number.interval[0] < number.value < number.interval[1]
    assert (shown.answer.cost, shown.answer.paid_by) == (Fraction(1, 8), "ann")
    free = ask(service, "ben", count(0, 4))
    assert (free.answer.cost, free.answer.paid_by) == (Fraction(0), "ann")
    sent = shown.model_dump_json()
    assert wire.Ticket.model_validate_json(sent).model_dump_json() == sent


def test_a_question_without_pay_costs_nothing(service):
    shown = ask(service, "ann", count(0, 4), pay=False)
    assert (shown.pay, shown.answer.cost, shown.answer.paid_by) == (False, Fraction(0), None)


def test_the_same_key_is_the_same_ticket(service):
    first = service.submit("ann", count(0, 4), key="k")
    assert service.submit("ann", count(0, 4), key="k") is first
    with pytest.raises(KeyReused):
        service.submit("ann", count(0, 5), key="k")


def test_what_cannot_be_asked_is_refused_before_anything_is_stored(service):
    stored = len(service.ledger)
    with pytest.raises(SqlError) as refused:
        service.submit("ann", "SELECT height FROM people")
    assert refused.value.where is not None
    with pytest.raises(UnknownPayer):
        service.submit("zoe", count(0, 4))
    assert len(service.ledger) == stored


def test_a_refused_ticket_says_why(tmp_path):
    with open_service(tmp_path, mechanism="laplace") as service:
        for low in range(5):
            for high in range(low, 20):
                shown = ask(service, "ann", count(low, high))
                if shown.state == "refused":
                    break
        assert shown.state == "refused"
        assert shown.answer is None
        assert shown.problem.code == "privacy.over-budget"
        assert "pot" in shown.problem.message
        assert shown.problem.hint


def test_one_sees_ones_own_tickets_only(service):
    mine = ask(service, "ann", count(0, 4))
    assert service.submission("ann", mine.number).number == mine.number
    for analyst, number in (("ben", mine.number), ("ann", mine.number + 1), ("ann", -1), ("zoe", 0)):
        with pytest.raises(NotFound):
            service.submission(analyst, number)


def test_those_who_wait_are_told_their_position_as_the_scheduler_sees_it(stalled):
    tickets = [wait_in_line(stalled, "ben", count(0, high)) for high in range(3)]
    other = wait_in_line(stalled, "cleo", count(0, 9))
    for ticket in (*tickets, other):
        shown = stalled.describe(ticket)
        assert shown.state == "waiting"
        assert shown.position == stalled.describe(ticket).position
    assert [stalled.describe(ticket).position for ticket in tickets] == [0, 1, 2]
    ask(stalled, "ann", count(0, 1))
    tickets[0].wait(60)
    assert [stalled.describe(ticket).position for ticket in tickets] == [None, 0, 1]


def test_no_more_of_one_analysts_questions_wait_than_may(stalled):
    for high in range(3):
        wait_in_line(stalled, "ben", count(0, high), key=f"key {high}")
    with pytest.raises(TooMany, match="ben has 3 questions pending"):
        stalled.submit("ben", count(5, 6))
    wait_in_line(stalled, "cleo", count(5, 6))
    again = stalled.submit("ben", count(0, 1), key="key 1")
    assert stalled.describe(again).position == 1
    with pytest.raises(KeyReused):
        stalled.submit("ben", count(0, 9), key="key 1")
    with pytest.raises(TooMany):
        stalled.submit("ben", count(0, 9), key="new")
    stalled.leave("ann")
    stalled.leave("cleo")
    again.wait(60)
    assert ask(stalled, "ben", count(5, 6)).state == "answered"


def test_when_a_question_was_answered_is_not_seen_before_the_next_slot(tmp_path):
    settings = read_config(write_dataset(tmp_path, service="most_waiting = 1"))
    with DatasetService.open(settings, release_every=10) as service:
        begun = time.monotonic() // 10
        ticket = service.submit("ann", count(0, 3))
        ticket.wait(60)
        try:
            service.submit("ann", count(0, 4))
            refused = False
        except TooMany:
            refused = True
        assert refused or time.monotonic() // 10 > begun, "it is still the same slot"


def test_what_analysts_see_changes_only_where_a_slot_ends(monkeypatch):
    # The first slot lasts longer than any machine runs.
    with serve(config(), certificate=True, release_every=1e9) as service:

        def seen() -> list[Any]:
            return [
                service.budget("ann"),
                service.quote("ann", count(0, 3)),
                service.certificate("ann"),
                service.certificate(),
                service.questions("ann"),
            ]

        before = seen()
        asked = service.ask("ann", count(0, 3), timeout=60)
        assert service._certificate is not None
        service._certificate.wait()
        assert seen() == before
        assert service.describe(asked).state == "waiting"
        with pytest.raises(NotFound):
            service.submission("ann", asked.number)
        later = SimpleNamespace(monotonic=lambda: 1e9 + 1)
        monkeypatch.setattr("sharewell.service.release_slots.time", later)
        budget, quote, own, everyones, questions = seen()
        assert budget.spent - before[0].spent == asked.cost > 0
        assert quote.paid.cost == 0
        assert own.analysts[0].answers == 1
        assert own.behind == everyones.behind == 0
        assert questions.tickets == (service.describe(service.submission("ann", asked.number)),)
        assert questions.tickets[0].state == "answered"


def test_in_one_process_a_limit_on_waiting_questions_counts_what_waits_now(tmp_path):
    with open_service(tmp_path, service="most_waiting = 1\nrelease_every = 10") as service:
        for _ in range(20):
            assert ask(service, "ann", count(0, 3)).state == "answered"


def test_questions_that_waited_at_the_end_still_wait_at_the_next_beginning(tmp_path):
    options = {"scheduler": "round-robin", "service": "most_waiting = 2"}
    with open_service(tmp_path, **options) as service:
        for high in range(2):
            wait_in_line(service, "ben", count(0, high))
    with open_service(tmp_path, **options) as service:
        [first, second] = service.questions("ben").tickets
        assert (first.position, second.position) == (0, 1)
        with pytest.raises(TooMany):
            service.submit("ben", count(5, 6))


def test_no_question_asks_for_more_numbers_than_one_may(tmp_path):
    with open_service(tmp_path, service="most_numbers = 39") as service:
        stored = len(service.ledger)
        large = "SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex"
        for attempt in (service.submit, service.quote):
            with pytest.raises(QueryTooComplex, match="asks for 40 numbers; the limit is 39"):
                attempt("ann", large)
        assert len(service.ledger) == stored
        assert ask(service, "ann", large.replace("age, sex", "age")).state == "answered"


def test_a_question_whose_sql_is_too_long_is_refused_before_it_is_parsed(tmp_path):
    with open_service(tmp_path, service="max_sql_bytes = 120") as service:
        stored = len(service.ledger)
        for attempt in (service.submit, service.quote):
            with pytest.raises(QueryTooComplex, match="has 121 bytes; the limit is 120"):
                attempt("ann", "é" * 60 + ";")
        assert len(service.ledger) == stored
        assert ask(service, "ann", count(0, 5)).state == "answered"


def test_white_space_is_not_stored_and_is_no_other_question(service):
    plain = "SELECT sex, COUNT(*) FROM people GROUP BY sex"
    spaced = "  SELECT sex,\n\tCOUNT(*)   FROM people\nGROUP BY sex\n"
    first = service.ask("ann", spaced, key="k")
    assert first.sql == plain
    assert service.ask("ann", plain, key="k") is first
    assert service.ask("ann", spaced, key="k") is first
    with pytest.raises(KeyReused):
        service.ask("ann", plain.replace("sex", "age"), key="k")


def test_a_quote_tells_the_price_and_spends_nothing(service):
    before = service.budget("ann")
    sql = "SELECT sex, COUNT(*), AVG(age) FROM people GROUP BY sex"
    found = service.quote("ann", sql)
    assert found.paid.cost == Fraction(1, 4)
    assert (found.free.cost, found.means, found.groups) == (Fraction(0), before.left, 2)
    [counts, averages] = found.paid.errors
    assert counts[0] == counts[1] < found.free.errors[0][0]
    assert 0 < averages[1] <= averages[0] < counts[0]
    assert found.paid.group_sizes[0] is None
    assert found.paid.group_sizes[1][0] > 0
    assert service.budget("ann") == before
    answer = ask(service, "ann", sql).answer
    assert answer.cost == found.paid.cost
    assert [row[1].standard_error for row in answer.rows] == pytest.approx(counts, rel=0.01)
    with pytest.raises(UnknownPayer):
        service.quote("zoe", sql)


def test_a_budget_says_how_many_questions_are_left(service):
    before = service.budget("ann")
    assert before == wire.BudgetStatus(
        analyst="ann",
        currency="pure",
        part=Fraction(1, 4),
        share=Fraction(5, 2),
        spent=Fraction(5, 4),
        left=Fraction(5, 4),
        asked=0,
        waiting=0,
        questions_left=10,
    )
    ask(service, "ann", count(0, 4))
    after = service.budget("ann")
    assert (after.spent, after.left, after.asked, after.questions_left) == (
        Fraction(11, 8),
        Fraction(9, 8),
        1,
        9,
    )
    with pytest.raises(UnknownPayer):
        service.budget("zoe")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_dataset_is_described_from_its_configuration_alone(tmp_path, mechanism):
    path = write_dataset(tmp_path, mechanism=mechanism)
    with DatasetService.open(read_config(path)) as service:
        found = service.dataset()
        assert ask(service, "ann", count(0, 4)).state == "answered"
        assert service.dataset() == found
    assert (found.name, found.cells, found.population, found.total) == ("people", 40, 1000, Fraction(10))
    assert [(each.name, each.kind, each.size) for each in found.attributes] == [
        ("age", "integer", 20),
        ("sex", "category", 2),
    ]
    assert found.attributes[1].labels == ("F", "M")
    assert (found.currency, found.epsilon, found.delta) == ("pure", Fraction(10), Fraction(0))
    assert found.query_budget == (None if mechanism == "multiplicative-weights" else Fraction(1, 8))
    assert len(found.promises) == 3
    assert found.paused is False
    (tmp_path / "people.csv").write_text("age,sex\n3,F\n")
    with DatasetService.open(read_config(path)) as service:
        assert service.dataset() == found
    assert wire.DatasetInfo.model_validate_json(found.model_dump_json()) == found


def test_bins_are_described(tmp_path):
    path = write_dataset(tmp_path)
    path.write_text(path.read_text().replace("high = 19", "high = 19\nbins = { grown = [0, 18] }"))
    with DatasetService.open(read_config(path)) as service:
        assert service.dataset().attributes[0].bins == {"grown": ("0-17", "18-19")}


def test_questions_are_listed_page_by_page_and_nobody_elses(service):
    asked = []
    for high in range(7):
        asked.append(ask(service, "ann", count(0, high)).number)
        ask(service, "ben", count(1, high + 1))
    found: list[int] = []
    after: int | None = -1
    pages = 0
    while after is not None:
        page = service.questions("ann", after, 3)
        found += [ticket.number for ticket in page.tickets]
        after, pages = page.next, pages + 1
    assert (found, pages) == (asked, 3)
    assert service.questions("ann", asked[-1]).tickets == ()
    assert service.questions("ann", limit=7).next is None
    assert service.questions("zoe").tickets == ()


@pytest.mark.parametrize(("after", "limit"), [(-2, 5), (0, 0), (0, -1), (0, 1_001)])
def test_a_page_that_makes_no_sense_is_refused(service, after, limit):
    for pages in (lambda *page: service.questions("ann", *page), service.events):
        with pytest.raises(RequestError, match="`limit` must be from 1 to 1,000"):
            pages(after, limit)


@pytest.mark.parametrize("mechanism", ["cache-reconstruct", "multiplicative-weights"])
def test_the_ledger_is_shown_page_by_page_without_what_is_secret(tmp_path, mechanism):
    with open_service(tmp_path, mechanism=mechanism) as service:
        for high in range(4):
            ask(service, "ann", count(0, high))
        for limit in (1, 3, 1000):
            found: list[wire.LedgerEvent] = []
            after: int | None = -1
            while after is not None:
                page = service.events(after, limit)
                assert len(page.events) <= limit
                assert page.head == str(service.ledger.head)  # type: ignore[attr-defined]
                found += page.events
                after = page.next
            public = [(n, type(event).__name__.lower()) for n, event in public_events(service.ledger)]
            assert [(event.number, event.kind) for event in found] == public
        secret = [event.noisy_threshold for event in service.ledger.events() if isinstance(event, Armed)]
        assert bool(secret) == (mechanism == "multiplicative-weights")
        text = json.dumps([event.model_dump() for event in found])
        assert "armed" not in text
        assert "noisy_threshold" not in text
        assert service.events(10_000).events == ()


def test_an_event_is_shown_as_it_is_stored(service):
    ask(service, "ann", count(0, 4), key="k")
    [asked] = [event for event in service.events().events if event.kind == "asked"]
    assert asked.content == {
        "key": "k",
        "analyst": "ann",
        "question": {"sql": count(0, 4)},
        "pay": True,
    }
    [charged] = [event for event in service.events(asked.number).events if event.kind == "charged"]
    assert charged.content["bill"] == {"ann": "1/8"}


def test_a_page_does_not_read_the_whole_ledger(service, monkeypatch):
    for high in range(4):
        ask(service, "ann", count(0, high))
    starts: list[int] = []
    read = service.ledger._store.read

    def note(start, stop):
        starts.append(start)
        return read(start, stop)

    monkeypatch.setattr(service.ledger._store, "read", note)
    assert service.events(8, 2).events[0].number == 9
    assert starts == [8]


def test_a_newcomer_has_a_part_of_the_budget_and_a_token(service):
    assert service.analysts().unallocated == Fraction(5, 2)
    token = service.join(wire.Newcomer(name="dan", share="1/10"))
    assert service.authenticate(token) == Principal("dan", "analyst")
    assert service.budget("dan").share == Fraction(1)
    assert service.analysts().unallocated == Fraction(3, 2)
    assert [each.analyst for each in service.analysts().analysts] == ["ann", "ben", "cleo", "dan"]
    assert ask(service, "dan", count(0, 4)).answer.paid_by == "dan"


@pytest.mark.parametrize(
    ("name", "share", "error"),
    [
        ("dan", "1/2", OverBudget),
        ("dan", "0", PrivacyError),
        ("dan", "-1/10", PrivacyError),
        ("dan", "a tenth", PrivacyError),
        ("dan", "1/0", PrivacyError),
        ("dan", "nan", PrivacyError),
        ("ann", "1/10", SharingError),
        ("Ann", "1/10", RequestError),
        ("curator", "1/10", RequestError),
        ("d/n", "1/10", RequestError),
        ("..", "1/10", RequestError),
    ],
)
def test_a_failed_join_gives_no_token_and_takes_nothing(service, name, share, error):
    known = service.token("ann")
    before, stored = service.analysts(), len(service.ledger)
    with pytest.raises(error):
        service.join(wire.Newcomer(name=name, share=share))
    assert service.tokens.holders == (Principal("ann", "analyst"),)
    assert service.authenticate(known) == Principal("ann", "analyst")
    assert (service.analysts(), len(service.ledger)) == (before, stored)


def test_the_token_of_one_who_leaves_ends_and_the_share_stays_taken(service):
    token = service.join(wire.Newcomer(name="dan", share="1/10"))
    service.leave("dan", donate=True)
    assert service.authenticate(token) is None
    assert service.analysts().unallocated == Fraction(3, 2)
    assert [each.analyst for each in service.analysts().analysts] == ["ann", "ben", "cleo"]
    for attempt in (
        lambda: service.leave("dan"),
        lambda: service.leave("a/b"),
        lambda: service.submit("dan", count(0, 4)),
    ):
        with pytest.raises(UnknownPayer):
            attempt()


def test_a_token_that_outlived_its_holder_can_still_be_ended(service):
    service.leave("ann")
    token = service.tokens.issue("ann", "analyst")
    with pytest.raises(UnknownPayer):
        service.leave("ann")
    assert service.authenticate(token) is None


def test_a_leave_that_fails_ends_no_token(tmp_path):
    with open_service(tmp_path, mechanism="laplace") as service:
        token = service.token("ann")
        with pytest.raises(Exception, match="cannot use a donation"):
            service.leave("ann", donate=True)
        assert service.authenticate(token) == Principal("ann", "analyst")


def test_a_new_token_is_for_analysts_only(service):
    first = service.token("ann")
    second = service.token("ann")
    assert service.authenticate(first) is None
    assert service.authenticate(second) == Principal("ann", "analyst")
    for name in ("zoe", "curator", ""):
        with pytest.raises(NotFound):
            service.token(name)


def test_a_curator_who_is_no_longer_named_is_not_let_in(service):
    assert service.authenticate(service.tokens.issue("curator", "curator")) == Principal(
        "curator", "curator"
    )
    assert service.authenticate(service.tokens.issue("former", "curator")) is None


def test_while_it_is_paused_nothing_is_asked_and_all_can_be_looked_at(tmp_path):
    path = write_dataset(tmp_path)
    with DatasetService.open(read_config(path)) as service:
        number = ask(service, "ann", count(0, 4), key="k").number
        service.pause()
    with DatasetService.open(read_config(path)) as service:
        stored = len(service.ledger)
        assert service.dataset().paused is True
        with pytest.raises(Paused):
            service.submit("ann", count(0, 5))
        with pytest.raises(Paused):
            service.done("ann")
        assert len(service.ledger) == stored
        assert service.describe(service.submission("ann", number)).state == "answered"
        assert service.quote("ann", count(0, 5)).paid is not None
        assert service.budget("ann").asked == 1
        service.join(wire.Newcomer(name="dan", share="1/10"))
        service.leave("dan")
        TokenStore(service.tokens.path).resume()
        comes_true(lambda: service.dataset().paused is False)
        assert ask(service, "ann", count(0, 5)).state == "answered"


def test_done_lets_the_rotation_pass(stalled):
    waiting = wait_in_line(stalled, "ben", count(0, 4))
    stalled.done("ann")
    assert waiting.wait(60)
    with pytest.raises(UnknownPayer):
        stalled.done("zoe")


@pytest.mark.parametrize("scheduler", ["none", "round-robin"])
def test_done_is_stored_once_until_the_analyst_asks_again(tmp_path, scheduler):
    def stored(service):
        return sum(isinstance(event, Done) for event in service.ledger.events())

    with open_service(tmp_path, scheduler=scheduler) as service:
        for _ in range(3):
            service.done("ann")
        assert stored(service) == 1
        assert ask(service, "ann", count(0, 4)).state == "answered"
        for _ in range(3):
            service.done("ann")
        assert stored(service) == 2
    with DatasetService.open(service.config) as service:
        service.done("ann")
        assert stored(service) == 2


def test_after_a_restart_all_is_as_it_was(tmp_path):
    with open_service(tmp_path) as service:
        for high in range(3):
            ask(service, "ann", count(0, high))
        ask(service, "ann", "SELECT sex, AVG(age) FROM people GROUP BY sex")
        token = service.token("ann")
        known = service.questions("ann"), service.budget("ann"), service.analysts(), service.dataset()
    with open_service(tmp_path) as service:
        assert (
            service.questions("ann"),
            service.budget("ann"),
            service.analysts(),
            service.dataset(),
        ) == known
        assert service.authenticate(token) == Principal("ann", "analyst")


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM questions",
        "UPDATE questions SET key = analyst",
        "DELETE FROM endings",
        "UPDATE endings SET number = (SELECT sum(number) FROM endings) - number",
    ],
)
def test_a_dataset_whose_index_of_questions_is_damaged_is_not_opened(tmp_path, damage):
    with open_service(tmp_path, mechanism="laplace") as service:
        for key, sql in (("p1", count(2, 4)), ("p2", count(5, 9))):
            assert ask(service, "ann", sql, key=key).state == "answered"
    with closing(sqlite3.connect(service.config.service.ledger)) as connection, connection:
        connection.execute(damage)
    with pytest.raises(LedgerCorrupt, match="index of questions is wrong") as refused:
        DatasetService.open(service.config)
    assert "`sharewell verify`" in refused.value.hint
    assert "backup" in refused.value.hint


def test_answers_mixed_up_in_the_index_while_it_serves_are_not_given_away(tmp_path):
    questions = [("p1", count(2, 4)), ("p2", count(5, 9))]
    with open_service(tmp_path, mechanism="laplace") as service:
        for key, sql in questions:
            ask(service, "ann", sql, key=key)
    with DatasetService.open(service.config) as service:
        with closing(sqlite3.connect(service.config.service.ledger)) as connection, connection:
            connection.execute("UPDATE endings SET number = (SELECT sum(number) FROM endings) - number")
        spent = service.budget("ann").spent
        for key, sql in questions:
            with pytest.raises(LedgerCorrupt, match="index of questions"):
                ask(service, "ann", sql, key=key)
        assert service.budget("ann").spent == spent


def test_a_refusal_is_remembered_after_a_restart(tmp_path):
    with open_service(tmp_path, mechanism="laplace") as service:
        shown = ask(service, "ann", count(0, 4), pay=False)
        assert shown.problem.code == "query.invalid"
    with open_service(tmp_path, mechanism="laplace") as service:
        again: Any = service.describe(service.submission("ann", shown.number))
        assert (again.state, again.problem.code) == ("refused", "query.invalid")
        assert again.problem.message == shown.problem.message


def test_a_ticket_that_was_never_stored_raises_its_refusal(service, monkeypatch):
    def full(*_):
        raise LedgerUnavailable("The disk is full.")

    with monkeypatch.context() as broken:
        broken.setattr(service.ledger._store, "write", full)
        lost = service.submit("ann", count(0, 4))
        lost.outcome(60)
        with pytest.raises(LedgerUnavailable, match="disk is full"):
            service.describe(lost)
    assert ask(service, "ann", count(0, 5)).number == lost.number
    with pytest.raises(LedgerUnavailable, match="disk is full"):
        service.describe(lost)


def test_a_closed_desk_takes_nothing_and_lets_go_of_the_ledger(tmp_path):
    service = open_service(tmp_path)
    with pytest.raises(LedgerInUse):
        open_service(tmp_path)
    service.close()
    service.close()
    with pytest.raises(Closed):
        service.submit("ann", count(0, 4))
    open_service(tmp_path).close()


def test_a_desk_that_cannot_be_opened_lets_go_of_the_ledger(tmp_path):
    path = write_dataset(tmp_path)
    rows = (tmp_path / "people.csv").read_text()
    (tmp_path / "people.csv").unlink()
    with pytest.raises(SourceError):
        DatasetService.open(read_config(path))
    (tmp_path / "people.csv").write_text(rows)
    DatasetService.open(read_config(path)).close()


def test_one_may_wait_for_the_last_writer_to_go(tmp_path):
    path = write_dataset(tmp_path)
    config = read_config(path)
    ledger = open_ledger(config.service.ledger, create=True)
    later = threading.Timer(0.2, ledger.close)
    later.start()
    DatasetService.open(config, wait=120).close()
    later.join()


def test_the_certificate_tells_curators_all_and_analysts_their_own(tmp_path):
    with open_service(tmp_path, service="certificate = true") as service:
        for high in range(3):
            ask(service, "ann", count(0, high))
            ask(service, "ben", count(0, high + 1))
        service.report(up_to_date=True)
        everybodys, own = service.certificate(None), service.certificate("ann")
        assert [each.analyst for each in everybodys.analysts] == ["ann", "ben", "cleo"]
        assert set(everybodys.analysts[0].without or ()) == {"ben", "cleo"}
        [standing] = own.analysts
        assert (standing.analyst, standing.answers, standing.without) == ("ann", 3, None)
        assert (own.exact, own.holds, own.entries) == (True, True, 6)
        assert own.worst_ratio == standing.ratio
        assert own.worst_interference == standing.interference
        assert len(own.promises) == 3
        nobody = service.certificate("zoe")
        assert (nobody.exact, nobody.holds, nobody.worst_ratio) == (True, None, None)
        assert "ben" not in own.model_dump_json()


def test_a_certificate_that_is_switched_off_is_not_there(service):
    with pytest.raises(RequestError, match="disabled"):
        service.certificate("ann")


def test_many_threads_ask_look_and_come_and_go(tmp_path):
    with open_service(tmp_path, service="most_waiting = 5") as service:
        everybody = ("ann", "ben", "cleo")

        def analyst(number: int) -> None:
            who = everybody[number % 3]
            for high in range(12):
                try:
                    shown = ask(service, who, count(number % 7, 7 + high))
                except TooMany:
                    continue
                assert shown.state == "answered"
                assert service.describe(service.submission(who, shown.number)) == shown
                assert service.budget(who).asked >= 1
                service.questions(who, limit=5)

        def curator(number: int) -> None:
            token = service.join(wire.Newcomer(name=f"new{number}", share="1/100"))
            assert service.authenticate(token) == Principal(f"new{number}", "analyst")
            service.events(limit=20)
            assert service.analysts().unallocated < Fraction(5, 2)
            service.leave(f"new{number}")
            assert service.authenticate(token) is None

        with ThreadPoolExecutor(12) as pool:
            list(pool.map(analyst, range(9)))
            for future in [
                *(pool.submit(analyst, n) for n in range(9)),
                *(pool.submit(curator, n) for n in range(5)),
            ]:
                future.result(60)
        assert service.analysts().unallocated == Fraction(2)
        spent = sum(Fraction(service.budget(who).spent) for who in everybody)
        assert spent <= Fraction(15, 2)


def test_a_crowd_never_has_more_waiting_than_may(stalled):
    def attempt(high: int) -> bool:
        try:
            wait_in_line(stalled, "ben", count(0, high))
        except TooMany:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(20))) == 3
    assert stalled.budget("ben").waiting == 3


def test_who_would_get_more_than_there_is_is_told_how_much_there_is(service):
    with pytest.raises(OverBudget, match=r"share of zoe is 3/5 of the budget, and 1/4 is unallocated"):
        service.join(wire.Newcomer(name="zoe", share="3/5"))
    assert service.analysts().unallocated_part == Fraction(1, 4)


def test_a_page_has_no_more_numbers_than_a_question_may_have(tmp_path):
    with open_service(tmp_path, service="most_numbers = 20") as service:
        for low in range(3):
            ask(service, "ann", f"SELECT age, COUNT(*) FROM people WHERE age >= {low} GROUP BY age")
        first = service.questions("ann")
        assert len(first.tickets) == 1
        second = service.questions("ann", after=first.next or 0)
        assert [len(second.tickets), len(service.questions("ann", after=second.next or 0).tickets)] == [
            1,
            1,
        ]
