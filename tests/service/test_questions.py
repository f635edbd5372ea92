"""Questions from end to end: submitted from many threads, and found again after a restart."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest

from sharewell.config import parse_config
from sharewell.errors import (
    Closed,
    ConfigError,
    KeyReused,
    LedgerUnavailable,
    Overloaded,
    PrivacyError,
    RequestError,
    SharewellError,
    SqlError,
    UnknownPayer,
)
from sharewell.privacy.ledger import (
    Answered,
    AnsweredFree,
    Asked,
    Charged,
    Configured,
    Ending,
    MemoryLedger,
    Refused,
    Released,
    Turn,
)
from sharewell.query.sql import compile_sql
from sharewell.service.certificate_worker import StreamReader
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.service.ledger.codec import read_answers
from sharewell.service.state import History
from sharewell.service.submissions import Submission
from sharewell.sharing.certificate import Certificate
from sharewell.sharing.collective import Ask, Join, Leave
from sharewell_lab.noise import SeededNoise
from tests.service.services import (
    MECHANISMS,
    SCHEDULERS,
    config,
    count,
    held,
    join,
    plain,
    serve,
    status,
)


def opened(ledger=None, mechanism="cache-reconstruct", scheduler="none", **options) -> DatasetService:
    return serve(config(mechanism, scheduler), ledger, **options)


def kinds(ledger) -> list[type]:
    return [type(event) for event in ledger.events()]


def test_where_several_came_at_once_as_many_are_waited_for(monkeypatch):
    monkeypatch.setattr("sharewell.service.worker.GATHER", 4.0)
    ledger = MemoryLedger()

    def ask(service, first: int) -> list[type]:
        """What is stored for three who ask, the second and the third a little after the first."""
        before = len(ledger)
        tickets = []
        for at in range(3):
            tickets.append(service.submit("ann", count(first + at, 12)))
            time.sleep(0.02)
        assert all(ticket.wait(60).answers for ticket in tickets)
        return kinds(ledger)[before:]

    with opened(ledger) as service:
        before = len(ledger)
        for at in range(3):
            service.ask("ann", count(at, 12))
        one_by_one = kinds(ledger)[before:]
        with held(service):
            more = [service.submit("ann", count(at, 12)) for at in (3, 4, 5, 6)]
        assert all(each.wait(60).answers for each in more)
        together = ask(service, 7)
    assert one_by_one == [Asked, Charged, Released, Answered] * 3
    assert together == [Asked] * 3 + [Charged] * 3 + [Released, Answered] * 3


@pytest.mark.parametrize("scheduler", ["none", "round-robin"])
def test_no_more_numbers_are_stored_in_one_breath_than_a_store_can_take(scheduler, monkeypatch):
    monkeypatch.setattr("sharewell.service.worker.BATCH_ANSWERS", 100)
    breaths: list[int] = []

    class Counting(MemoryLedger):
        def append_many(self, events):
            ended = [event for event in events if isinstance(event, Answered | AnsweredFree)]
            breaths.append(sum(len(read_answers(event)) for event in ended))
            return super().append_many(events)

    with opened(Counting(), scheduler=scheduler) as service:
        with held(service):
            tickets = [
                service.submit(
                    name, f"SELECT age, sex, COUNT(*) FROM people WHERE age <> {at} GROUP BY 1, 2"
                )
                for at in range(9)
                for name in ("ann", "ben", "cleo")
            ]
        assert {len(ticket.wait(60).answers) for ticket in tickets} == {40}
    # As many as it takes to pass a hundred, and no more.
    assert max(breaths) == 3 * 40


def test_a_paid_question_is_stored_charged_measured_and_answered_in_that_order():
    ledger = MemoryLedger()
    with opened(ledger) as service:
        result = service.ask("ann", count(0, 4))
        assert result.answers[0].source == "measured"
        assert result.cost == Fraction(1, 8)
        assert status(service, "ann").spent == Fraction(5, 4) + Fraction(1, 8)
    assert kinds(ledger)[-4:] == [Asked, Charged, Released, Answered]


def test_the_settings_are_stored_before_the_seed_is_bought():
    ledger = MemoryLedger()
    opened(ledger).close()
    assert kinds(ledger)[4:7] == [Configured, Charged, Released]


def test_what_one_has_paid_for_is_free_for_all_and_a_zero_is_an_answer():
    with opened() as service:
        paid = service.ask("ann", count(3, 9))
        free = service.ask("ben", "SELECT COUNT(*) FROM people WHERE NOT (age < 3 OR age >= 10)")
        assert free.cost == 0
        assert free.answers[0].source == "cached"
        assert free.answers[0].payer == "ann"
        assert free.answers[0].value == paid.answers[0].value


def test_the_same_key_gives_the_same_answer_and_costs_nothing_more():
    with opened() as service:
        first = service.ask("ann", count(3, 9), key="one")
        spent = status(service, "ann").spent
        service.ask("ben", count(0, 9))
        assert service.ask("ann", count(3, 9), key="one") is first
        assert status(service, "ann").spent == spent
        with pytest.raises(KeyReused):
            service.ask("ann", count(4, 9), key="one")
        with pytest.raises(KeyReused):
            service.ask("ann", count(3, 9), key="one", pay=False)
        assert service.ask("ben", count(3, 9), key="one").number != first.number


def test_two_who_ask_the_same_new_question_at_once_pay_once():
    for _ in range(20):
        ledger = MemoryLedger()
        with opened(ledger) as service:
            start = threading.Barrier(3)

            def ask(analyst, service=service, start=start):
                start.wait()
                return service.ask(analyst, count(3, 9))

            with ThreadPoolExecutor(3) as pool:
                found = list(pool.map(ask, ["ann", "ben", "cleo"]))
        assert sum(result.cost for result in found) == Fraction(1, 8)
        assert len({result.answers[0].value for result in found}) == 1
        assert kinds(ledger).count(Charged) == 2


def test_a_quote_is_what_is_then_charged_and_given():
    with opened() as service:
        told = service.quote("ann", "SELECT sex, COUNT(*), AVG(age) FROM people GROUP BY sex")
        spent = status(service, "ann").spent
        result = service.ask("ann", told.sql)
        assert told.paid is not None
        cost = Fraction(told.paid.cost)
        assert status(service, "ann").spent - spent == cost == result.cost == Fraction(2, 8)
        errors: Any = [answer.standard_error for answer in result.answers[:2]]
        # Each block is quoted as if it were bought alone, and is estimated after the last purchase.
        assert [max(errors), min(errors)] == pytest.approx(told.paid.errors[0], rel=0.01)
        assert max(errors) <= max(told.paid.errors[0] or ())
        again = service.quote("ben", told.sql)
        assert again.paid is not None
        assert again.paid.cost == 0
        assert again.free == again.paid


def test_a_quote_says_what_the_rest_of_a_share_can_still_buy():
    with opened() as service:
        for low in range(9):
            service.ask("ann", count(low, low + 5))
        told = service.quote("ann", "SELECT COUNT(*), AVG(age) FROM people WHERE sex = 'F'")
        assert told.means == Fraction(1, 8)
        assert told.paid is not None
        assert told.paid.cost == Fraction(1, 8)
        result = service.ask("ann", told.sql)
        assert result.cost == Fraction(1, 8)
        assert status(service, "ann").left == 0


def test_what_cannot_be_asked_is_refused_before_anything_is_stored():
    ledger = MemoryLedger()
    with opened(ledger) as service:
        before = len(ledger)
        for sql, error in (
            ("SELECT * FROM people", SqlError),
            ("SELECT COUNT(*) FROM people WHERE agee = 3", SqlError),
            ("", SqlError),
        ):
            with pytest.raises(error):
                service.ask("ann", sql)
            with pytest.raises(error):
                service.quote("ann", sql)
        with pytest.raises(UnknownPayer):
            service.ask("zoe", count(0, 3))
        with pytest.raises(RequestError, match="A key"):
            service.ask("ann", count(0, 3), key="")
        with pytest.raises(RequestError, match="A key"):
            service.ask("ann", count(0, 3), key="k" * 201)
        assert len(ledger) == before


def test_noise_that_could_be_guessed_is_refused():
    with pytest.raises(PrivacyError, match="exact noise"):
        opened(noise=SeededNoise(1))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_many_threads_lose_nothing_and_spend_no_more_than_there_is(mechanism, scheduler):
    ledger = MemoryLedger()
    names = ("ann", "ben", "cleo")
    with opened(ledger, mechanism, scheduler) as service:

        def submit(at: int) -> Submission:
            return service.submit(names[at % 3], count(at % 7, 7 + at % 5), key=f"{at}")

        with ThreadPoolExecutor(12) as pool:
            tickets = list(pool.map(submit, range(48)))
        for name in names:
            service.done(name)
        for ticket in tickets:
            assert isinstance(ticket.outcome(30), tuple | PrivacyError)
        for name in names:
            assert status(service, name).spent <= status(service, name).share
            assert [t.number for t in service._submissions.of(name)] == sorted(
                t.number for t in service._submissions.of(name)
            )
    asked = [event for event in ledger.events() if isinstance(event, Asked)]
    ended = [event.asked for event in ledger.events() if isinstance(event, Ending)]
    assert len(asked) == len(ended) == len(set(ended)) == 48


def test_a_question_of_the_past_that_no_longer_compiles_is_refused_alone():
    ledger = MemoryLedger()
    with opened(ledger):
        pass
    ledger.append(Asked("old", "ann", {"sql": "SELECT COUNT(*) FROM people WHERE former = 1"}, True))
    with opened(ledger) as service:
        old = service._submissions.recall("ann", "old")
        assert old is not None
        assert isinstance(old.outcome(60), SharewellError)
        service.ask("ben", count(0, 3), timeout=60)
    assert [event.asked for event in ledger.events() if isinstance(event, Refused)] == [old.number]


def test_round_robin_holds_a_question_until_its_turn_and_done_lets_it_go():
    with opened(scheduler="round-robin") as service:
        service.ask("ann", count(0, 3))
        second = service.submit("ann", count(1, 3))
        third = service.submit("ann", count(2, 3))
        assert second.wait_until_ready(60)
        assert third.wait_until_ready(60)
        assert not second.done
        assert (service.describe(second).position, service.describe(third).position) == (0, 1)
        assert status(service, "ann").waiting == 2
        service.ask("ben", count(0, 3))
        service.done("cleo")
        second.wait(60)
        assert not third.done
        service.done("ben")
        third.wait(60)


def test_those_who_join_and_leave_are_known_to_all_parts():
    ledger = MemoryLedger()
    with opened(ledger, scheduler="round-robin", certificate=True) as service:
        service.ask("ann", count(0, 3))
        held = service.submit("ann", count(0, 4))
        join(service, "dora", Fraction(5, 2))
        assert "dora" in service.analyst_names
        with pytest.raises(SharewellError):
            join(service, "emil", "1/10")
        service.leave("ann", donate=True)
        with pytest.raises(RequestError, match="has left"):
            held.wait(60)
        with pytest.raises(UnknownPayer):
            service.ask("ann", count(0, 4))
        service.ask("ben", count(0, 4))
        report = service.report(up_to_date=True)
        assert {standing.analyst for standing in report.standings} == {"ann", "ben", "cleo", "dora"}
        assert report.of("ann").answers == 1
        assert report.holds


def test_the_certificate_is_that_of_what_has_happened():
    with opened(certificate=True) as service:
        asked = [("ann", 0, 9), ("ben", 0, 9), ("cleo", 3, 9), ("ann", 3, 9)]
        for analyst, low, high in asked:
            service.ask(analyst, count(low, high))
        certificate = Certificate(service.config.collective, error_threshold=20.0)
        for analyst, low, high in asked:
            statement = compile_sql(count(low, high), service.config.domain)
            certificate.record(Ask(analyst, statement.blocks))
        assert service.report(up_to_date=True) == certificate.report()


def test_a_closed_service_takes_nothing_and_says_so_to_those_who_wait():
    service = opened(scheduler="round-robin")
    service.ask("ann", count(0, 3))
    held = service.submit("ann", count(1, 3))
    service.close()
    service.close()
    with pytest.raises(Closed):
        held.wait(60)
    for use in (lambda: service.ask("ben", count(0, 3)), lambda: service.done("ann")):
        with pytest.raises(Closed):
            use()


# Restart


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_after_a_restart_every_key_has_its_answer_and_nobody_more_to_spend(mechanism, tmp_path):
    with open_ledger(tmp_path / "a.sqlite", create=True) as ledger, opened(ledger, mechanism) as service:
        before = {}
        for at in range(12):
            analyst = ("ann", "ben", "cleo")[at % 3]
            before[analyst, f"k{at}"] = plain(service.ask(analyst, count(at % 5, 9), key=f"k{at}"))
        left = {name: status(service, name).left for name in service.analyst_names}
    with open_ledger(tmp_path / "a.sqlite", create=True) as ledger:
        events = len(ledger)
        with opened(ledger, mechanism) as service:
            for (analyst, key), stored in before.items():
                at = int(key[1:])
                assert plain(service.ask(analyst, count(at % 5, 9), key=key)) == stored
            assert {name: status(service, name).left for name in service.analyst_names} == left
            assert len(ledger) == events, "nothing was done again"
            if mechanism != "laplace":
                assert service.ask("ann", count(0, 9), pay=False).rows


@pytest.mark.parametrize("scheduler", ["round-robin", "weighted"])
def test_a_rotation_goes_on_where_it_was(scheduler, tmp_path):
    def play(restarts: bool) -> list[str]:
        path = tmp_path / f"{scheduler}-{restarts}.sqlite"
        ledger = open_ledger(path, create=True)
        service = opened(ledger, scheduler=scheduler)
        steps = ["ann", "ann", "ben", "ann", "done ben", "cleo", "cleo", "ben", "ann", "done cleo"]
        for at, step in enumerate(steps):
            if step.startswith("done"):
                service.done(step.split()[1])
            else:
                service.submit(step, count(0, at % 9), key=f"{at}").wait_until_ready(60)
            if restarts:
                service.close()
                ledger.close()
                ledger = open_ledger(path, create=True)
                service = opened(ledger, scheduler=scheduler)
        for name in ("ann", "ben", "cleo"):
            service.done(name)
        for name in ("ann", "ben", "cleo"):
            for ticket in service._submissions.of(name):
                ticket.wait(60)
        service.close()
        asked = {n: e for n, e in enumerate(ledger.events()) if isinstance(e, Asked)}
        order = [asked[e.asked].key for e in ledger.events() if isinstance(e, Answered | AnsweredFree)]
        ledger.close()
        return order

    assert play(restarts=True) == play(restarts=False)


class Failing(MemoryLedger):
    """A ledger that fails when told to; where it is not certain, it may have stored the events."""

    def __init__(self) -> None:
        super().__init__()
        self.fails: list[tuple[type, bool, bool]] = []

    def append_many(self, events):
        if self.fails and any(isinstance(event, self.fails[0][0]) for event in events):
            _, stored, uncertain = self.fails.pop(0)
            if stored:
                super().append_many(events)
            error = LedgerUnavailable("There is no room.")
            error.uncertain = uncertain
            raise error
        return super().append_many(events)


@pytest.mark.parametrize(
    ("kind", "stored", "uncertain"),
    [
        (Charged, False, False),
        (Charged, False, True),
        (Charged, True, True),
        (Answered, False, False),
        (Answered, False, True),
        (Answered, True, True),
    ],
)
def test_whatever_the_ledger_fails_at_a_retry_is_answered_and_paid_once(kind, stored, uncertain):
    ledger = Failing()
    with opened(ledger, certificate=True) as service:
        ledger.fails = [(kind, stored, uncertain)]
        with pytest.raises(LedgerUnavailable):
            service.ask("ann", count(0, 9), key="k")
        result = service.ask("ann", count(0, 9), key="k", timeout=60)
        assert status(service, "ann").spent == Fraction(5, 4) + Fraction(1, 8)
        assert service.ask("ben", count(0, 9)).answers[0].value == result.answers[0].value
        asked = [event for event in ledger.events() if isinstance(event, Asked)]
        assert len(asked) == 2
        assert sum(kinds(ledger).count(kind) for kind in (Answered, AnsweredFree)) == 2
        assert service.report(up_to_date=True).of("ann").answers == 1


def test_questions_that_are_held_survive_a_ledger_that_fails():
    ledger = Failing()
    with opened(ledger, scheduler="round-robin") as service:
        service.ask("ann", count(0, 9))
        held = service.submit("ann", count(1, 9))
        held.wait_until_ready(60)
        ledger.fails = [(Turn, False, False)]
        with pytest.raises(LedgerUnavailable):
            service.ask("ben", count(2, 9))
        service.ask("ben", count(2, 9))
        service.done("cleo")
        assert held.wait(60).answers


def test_a_questions_number_is_its_events_number():
    ledger = MemoryLedger()
    with opened(ledger) as service:
        result = service.ask("ann", count(0, 9))
        assert isinstance(list(ledger.events())[result.number], Asked)


# What a review found


def test_somebody_can_join_where_everybody_is_independent():
    with opened(mechanism="independent") as service:
        join(service, "dora", Fraction(5, 2))
        assert service.ask("dora", count(0, 9)).answers[0].source == "measured"


def test_a_share_too_small_to_be_measured_with_is_refused_and_the_ledger_can_be_opened_again():
    ledger = MemoryLedger()
    with opened(ledger) as service:
        with pytest.raises(PrivacyError):
            join(service, "dan", "1e-20")
        assert "dan" not in service.analyst_names
    opened(ledger).close()


@pytest.mark.parametrize("mechanism", ["laplace", "multiplicative-weights"])
def test_a_quote_of_a_common_pot_is_about_the_pot(mechanism):
    with opened(mechanism=mechanism) as service:
        sql = "SELECT COUNT(*), SUM(age) FROM people" if mechanism == "laplace" else count(0, 9)
        told = service.quote("ann", sql)
        before = sum(status(service, name).left for name in service.analyst_names)
        assert Fraction(told.means) == before
        assert told.paid is not None
        cost = Fraction(told.paid.cost)
        assert cost > 0
        service.ask("ann", sql)
        after = sum(status(service, name).left for name in service.analyst_names)
        assert before - after <= cost
        if mechanism == "laplace":
            assert before - after == cost


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('query_budget = "1/80"', 'query_budget = "1/40"', "mechanism.query_budget was '1/80'"),
        ("[mechanism]", '[mechanism]\nanswers = "as-printed"', "mechanism.answers was not set"),
        ('source = "people.csv"', 'source = "a.csv"\nname = "folk"', "dataset.name was 'people'"),
        ('source = "people.csv"', 'source = "a.csv"\nprivacy_unit = "id"', "privacy_unit was not set"),
    ],
)
def test_terms_that_were_promised_cannot_be_changed_behind_a_ledger(old, new, says):
    ledger = MemoryLedger()
    opened(ledger).close()
    changed = parse_config(config().text.replace(old, new))
    with pytest.raises(ConfigError) as refused:
        serve(changed, ledger)
    assert says in refused.value.message


def test_other_settings_may_change_from_one_start_to_the_next():
    ledger = MemoryLedger()
    opened(ledger).close()
    changed = parse_config(config().text.replace("error_threshold = 20", "error_threshold = 30"))
    with serve(changed, ledger) as service:
        assert service.ask("ann", count(0, 9)).answers


def test_who_was_added_in_the_file_and_leaves_has_not_donated_for_that():
    ledger = MemoryLedger()
    opened(ledger).close()
    added = parse_config(config().text + '[analysts.dan]\nshare = "1/8"\n')
    with serve(added, ledger) as service:
        service.leave("dan")
    with serve(added, ledger) as service:
        service.leave("cleo", donate=True)
    reader = StreamReader()
    entries = [entry for event in ledger.events() for entry in reader.read(event)]
    assert entries == [Join("dan", Fraction(5, 4)), Leave("dan"), Leave("cleo", donate=True)]
    assert History.of(ledger.events()).entries == reader.entries == 3


def test_a_question_that_cannot_be_prepared_is_refused_and_the_others_are_served(monkeypatch):
    ledger = MemoryLedger()
    with opened(ledger) as service:
        answer = service._worker.state.mechanism.answer

        def broken(block, analyst, pay):
            if analyst == "ann":
                raise MemoryError
            return answer(block, analyst, pay)

        monkeypatch.setattr(service._worker.state.mechanism, "answer", broken)
        with pytest.raises(SharewellError, match="could not be computed"):
            service.ask("ann", count(0, 9), key="k")
        assert service.ask("ben", count(0, 9)).answers
    with opened(ledger) as service, pytest.raises(SharewellError, match="could not be computed"):
        service.ask("ann", count(0, 9), key="k")


def test_a_question_that_is_not_taken_up_in_time_is_refused_before_it_is_stored():
    ledger = MemoryLedger()
    begun, go_on = threading.Event(), threading.Event()

    def keep_busy(state):
        begun.set()
        go_on.wait(60)

    with opened(ledger) as service, ThreadPoolExecutor() as threads:
        service.ask("ben", count(0, 9))
        before = len(ledger)
        busy = threads.submit(service._worker.run, "cleo", keep_busy)
        assert begun.wait(60)
        late = service.submit("ann", count(0, 9), key="k", deadline=time.monotonic() + 600)
        patient = service.submit("ben", count(2, 9))
        late.deadline = -1.0
        go_on.set()
        busy.result()
        with pytest.raises(Overloaded):
            late.wait(60)
        assert patient.wait(60).answers
        assert [event.key for event in ledger.events() if isinstance(event, Asked)].count("k") == 0
        assert len(ledger) > before
        with pytest.raises(Overloaded):
            service.submit("ann", count(0, 9), key="k", deadline=time.monotonic() - 1)
        assert service.ask("ann", count(0, 9), key="k").answers


def test_a_question_that_waits_for_its_turn_is_not_refused_for_its_age():
    with opened(scheduler="round-robin") as service:
        service.ask("ann", count(0, 9))
        waiting = service.submit("ann", count(1, 9), deadline=time.monotonic() + 600)
        assert waiting.wait_until_ready(60)
        assert not waiting.done
        waiting.deadline = -1.0
        for analyst in ("ben", "cleo"):
            service.submit(analyst, count(2, 9))
        assert waiting.wait(60).answers
