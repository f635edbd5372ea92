"""The broker: every request from end to end, from many threads, and again after a restart."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

from sharewell.config import parse_config
from sharewell.errors import (
    Closed,
    ConfigError,
    KeyReused,
    LedgerUnavailable,
    PrivacyError,
    RequestError,
    SharewellError,
    SqlError,
    UnknownPayer,
)
from sharewell.lab.noise import SeededNoise
from sharewell.privacy.ledger import (
    Answered,
    Asked,
    Charged,
    Configured,
    Granted,
    Left,
    MemoryLedger,
    Refused,
    Released,
    Turn,
)
from sharewell.service.broker import Broker
from sharewell.service.history import History
from sharewell.service.ledger import SqliteLedger
from sharewell.service.result import Result
from sharewell.service.ticket import Ticket
from sharewell.sharing.certificate import Certificate
from sharewell.sharing.stream import Ask
from tests.service.brokers import MECHANISMS, SCHEDULERS, config, count, table
from tests.service.waiting import comes_true


def broker(ledger=None, mechanism="cache-reconstruct", scheduler="none", **options) -> Broker:
    settings = config(mechanism, scheduler)
    options = {"certificate": False, "tick": 0.001, **options}
    ledger = MemoryLedger() if ledger is None else ledger
    return Broker(settings, ledger, data=table(settings), **options)


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
        assert all(isinstance(ticket.result(30), Result) for ticket in tickets)
        return kinds(ledger)[before:]

    with broker(ledger) as service:
        before = len(ledger)
        for at in range(3):
            service.ask("ann", count(at, 12))
        one_by_one = kinds(ledger)[before:]
        with service._worker.thinking:
            ticket = service.submit("ann", count(3, 12))
            comes_true(service._worker._queue.empty)
            more = [service.submit("ann", count(at, 12)) for at in (4, 5, 6)]
        assert all(isinstance(each.result(30), Result) for each in (ticket, *more))
        together = ask(service, 7)
    assert one_by_one == [Asked, Charged, Released, Answered] * 3
    assert together == [Asked] * 3 + [Charged] * 3 + [Released, Answered] * 3


@pytest.mark.parametrize("scheduler", ["none", "round-robin"])
def test_no_more_numbers_are_stored_in_one_breath_than_a_store_can_take(scheduler, monkeypatch):
    monkeypatch.setattr("sharewell.service.worker.MOST_NUMBERS", 100)
    breaths: list[int] = []

    class Counting(MemoryLedger):
        def append_many(self, events):
            breaths.append(sum(len(e.answers) for e in events if isinstance(e, Answered)))
            return super().append_many(events)

    with broker(Counting(), scheduler=scheduler) as service:
        with service._worker.thinking:  # so that all of them come at once
            tickets = [
                service.submit(
                    name, f"SELECT age, sex, COUNT(*) FROM people WHERE age <> {at} GROUP BY 1, 2"
                )
                for at in range(9)
                for name in ("ann", "ben", "cleo")
            ]
        assert {len(ticket.result(30).answers) for ticket in tickets} == {40}
    # As many as it takes to pass a hundred, and no more.
    assert max(breaths) == 3 * 40


def test_a_paid_question_is_stored_charged_measured_and_answered_in_that_order():
    ledger = MemoryLedger()
    with broker(ledger) as service:
        result = service.ask("ann", count(0, 4))
        assert result.answers[0].source == "measured"
        assert result.cost == Fraction(1, 8)
        assert service.status("ann").spent == Fraction(5, 4) + Fraction(1, 8)
    assert kinds(ledger)[-4:] == [Asked, Charged, Released, Answered]


def test_the_settings_are_stored_before_the_seed_is_bought():
    ledger = MemoryLedger()
    broker(ledger).close()
    assert kinds(ledger)[4:7] == [Configured, Charged, Released]


def test_what_one_has_paid_for_is_free_for_all_and_a_zero_is_an_answer():
    with broker() as service:
        paid = service.ask("ann", count(3, 9))
        free = service.ask("ben", "SELECT COUNT(*) FROM people WHERE NOT (age < 3 OR age >= 10)")
        assert free.cost == 0
        assert free.answers[0].source == "cached"
        assert free.answers[0].payer == "ann"
        assert free.answers[0].value == paid.answers[0].value


def test_the_same_key_gives_the_same_answer_and_costs_nothing_more():
    with broker() as service:
        first = service.ask("ann", count(3, 9), key="one")
        spent = service.status("ann").spent
        service.ask("ben", count(0, 9))
        assert service.ask("ann", count(3, 9), key="one") is first
        assert service.status("ann").spent == spent
        with pytest.raises(KeyReused):
            service.ask("ann", count(4, 9), key="one")
        with pytest.raises(KeyReused):
            service.ask("ann", count(3, 9), key="one", pay=False)
        assert service.ask("ben", count(3, 9), key="one").number != first.number


def test_two_who_ask_the_same_new_question_at_once_pay_once():
    for _ in range(20):
        ledger = MemoryLedger()
        with broker(ledger) as service:
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
    with broker() as service:
        told = service.quote("ann", "SELECT sex, COUNT(*), AVG(age) FROM people GROUP BY sex")
        spent = service.status("ann").spent
        result = service.ask("ann", told.statement.text)
        assert service.status("ann").spent - spent == told.cost == result.cost == Fraction(2, 8)
        assert told.paid is not None
        assert [a.standard_error for a in result.answers][:2] == pytest.approx(told.paid[:2])
        again = service.quote("ben", told.statement.text)
        assert again.is_free
        assert again.free == again.paid


def test_a_quote_says_what_the_rest_of_a_share_can_still_buy():
    with broker() as service:
        for low in range(9):
            service.ask("ann", count(low, low + 5))
        told = service.quote("ann", "SELECT COUNT(*), AVG(age) FROM people WHERE sex = 'F'")
        assert told.means == Fraction(1, 8)
        assert told.cost == Fraction(1, 8)
        result = service.ask("ann", told.statement.text)
        assert result.cost == told.cost
        assert service.status("ann").left == 0


def test_what_cannot_be_asked_is_refused_before_anything_is_stored():
    ledger = MemoryLedger()
    with broker(ledger) as service:
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
        broker(noise=SeededNoise(1))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_many_threads_lose_nothing_and_spend_no_more_than_there_is(mechanism, scheduler):
    ledger = MemoryLedger()
    names = ("ann", "ben", "cleo")
    with broker(ledger, mechanism, scheduler) as service:

        def submit(at: int) -> Ticket:
            return service.submit(names[at % 3], count(at % 7, 7 + at % 5), key=f"{at}")

        with ThreadPoolExecutor(12) as pool:
            tickets = list(pool.map(submit, range(48)))
        for name in names:
            service.done(name)
        for ticket in tickets:
            assert isinstance(ticket.outcome(30), Result | PrivacyError)
        for name in names:
            assert service.status(name).spent <= service.status(name).share
            assert [t.number for t in service.tickets(name)] == sorted(
                t.stored for t in service.tickets(name)
            )
    asked = [event for event in ledger.events() if isinstance(event, Asked)]
    ended = [event.asked for event in ledger.events() if isinstance(event, Answered | Refused)]
    assert len(asked) == len(ended) == len(set(ended)) == 48


def test_round_robin_holds_a_question_until_its_turn_and_done_lets_it_go():
    with broker(scheduler="round-robin") as service:
        service.ask("ann", count(0, 3))
        second = service.submit("ann", count(1, 3))
        third = service.submit("ann", count(2, 3))
        assert second.wait_until_ready(5)
        assert third.wait_until_ready(5)
        assert not second.done
        assert (service.position(second), service.position(third)) == (0, 1)
        assert service.status("ann").waiting == 2
        service.ask("ben", count(0, 3))
        service.done("cleo")
        second.result(5)
        assert not third.done
        service.done("ben")
        third.result(5)


def test_those_who_join_and_leave_are_known_to_all_parts():
    ledger = MemoryLedger()
    with broker(ledger, scheduler="round-robin", certificate=True) as service:
        service.ask("ann", count(0, 3))
        held = service.submit("ann", count(0, 4))
        service.join("dora", Fraction(5, 2))
        assert "dora" in service.analysts
        with pytest.raises(SharewellError):
            service.join("emil", "1/10")
        service.leave("ann", donate=True)
        with pytest.raises(RequestError, match="has left"):
            held.result(5)
        with pytest.raises(UnknownPayer):
            service.ask("ann", count(0, 4))
        service.ask("ben", count(0, 4))
        report = service.certificate(up_to_date=True)
        assert {standing.analyst for standing in report.standings} == {"ann", "ben", "cleo", "dora"}
        assert report.of("ann").answers == 1
        assert report.holds


def test_the_certificate_is_that_of_what_has_happened():
    with broker(certificate=True) as service:
        asked = [("ann", 0, 9), ("ben", 0, 9), ("cleo", 3, 9), ("ann", 3, 9)]
        for analyst, low, high in asked:
            service.ask(analyst, count(low, high))
        certificate = Certificate(service.config.collective, error_threshold=20.0)
        for analyst, low, high in asked:
            [block] = service.quote(analyst, count(low, high)).statement.blocks
            certificate.record(Ask(analyst, block))
        assert service.certificate(up_to_date=True) == certificate.report()


def test_a_closed_broker_takes_nothing_and_says_so_to_those_who_wait():
    service = broker(scheduler="round-robin")
    service.ask("ann", count(0, 3))
    held = service.submit("ann", count(1, 3))
    service.close()
    service.close()
    with pytest.raises(Closed):
        held.result(1)
    for use in (lambda: service.ask("ben", count(0, 3)), lambda: service.done("ann")):
        with pytest.raises(Closed):
            use()


# Restart


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_after_a_restart_every_key_has_its_answer_and_nobody_more_to_spend(mechanism, tmp_path):
    with SqliteLedger(tmp_path / "a.sqlite") as ledger, broker(ledger, mechanism) as service:
        before = {}
        for at in range(12):
            analyst = ("ann", "ben", "cleo")[at % 3]
            before[analyst, f"k{at}"] = service.ask(analyst, count(at % 5, 9), key=f"k{at}").plain
        left = {name: service.status(name).left for name in service.analysts}
    with SqliteLedger(tmp_path / "a.sqlite") as ledger:
        events = len(ledger)
        with broker(ledger, mechanism) as service:
            for (analyst, key), plain in before.items():
                at = int(key[1:])
                assert service.ask(analyst, count(at % 5, 9), key=key).plain == plain
            assert {name: service.status(name).left for name in service.analysts} == left
            assert len(ledger) == events, "nothing was done again"
            if mechanism != "laplace":
                assert service.ask("ann", count(0, 9), pay=False).rows


@pytest.mark.parametrize("scheduler", ["round-robin", "weighted"])
def test_a_rotation_goes_on_where_it_was(scheduler, tmp_path):
    def play(restarts: bool) -> list[str]:
        path = tmp_path / f"{scheduler}-{restarts}.sqlite"
        ledger = SqliteLedger(path)
        service = broker(ledger, scheduler=scheduler)
        steps = ["ann", "ann", "ben", "ann", "done ben", "cleo", "cleo", "ben", "ann", "done cleo"]
        for at, step in enumerate(steps):
            if step.startswith("done"):
                service.done(step.split()[1])
            else:
                service.submit(step, count(0, at % 9), key=f"{at}").wait_until_ready(5)
            if restarts:
                service.close()
                ledger.close()
                ledger = SqliteLedger(path)
                service = broker(ledger, scheduler=scheduler)
        for name in ("ann", "ben", "cleo"):
            service.done(name)
        for name in ("ann", "ben", "cleo"):
            for ticket in service.tickets(name):
                ticket.result(5)
        service.close()
        asked = {n: e for n, e in enumerate(ledger.events()) if isinstance(e, Asked)}
        order = [asked[e.asked].key for e in ledger.events() if isinstance(e, Answered)]
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
    with broker(ledger, certificate=True) as service:
        ledger.fails = [(kind, stored, uncertain)]
        with pytest.raises(LedgerUnavailable):
            service.ask("ann", count(0, 9), key="k")
        result = service.ask("ann", count(0, 9), key="k", timeout=10)
        assert service.status("ann").spent == Fraction(5, 4) + Fraction(1, 8)
        assert service.ask("ben", count(0, 9)).answers[0].value == result.answers[0].value
        asked = [event for event in ledger.events() if isinstance(event, Asked)]
        assert len(asked) == 2
        assert kinds(ledger).count(Answered) == 2
        assert service.certificate(up_to_date=True).of("ann").answers == 1


def test_questions_that_are_held_survive_a_ledger_that_fails():
    ledger = Failing()
    with broker(ledger, scheduler="round-robin") as service:
        service.ask("ann", count(0, 9))
        held = service.submit("ann", count(1, 9))
        held.wait_until_ready(5)
        ledger.fails = [(Turn, False, False)]
        with pytest.raises(LedgerUnavailable):
            service.ask("ben", count(2, 9))
        service.ask("ben", count(2, 9))
        service.done("cleo")
        assert held.result(5).answers


def test_a_questions_number_is_its_events_number():
    ledger = MemoryLedger()
    with broker(ledger) as service:
        result = service.ask("ann", count(0, 9))
        assert isinstance(list(ledger.events())[result.number], Asked)


# What a review found


def test_somebody_can_join_where_everybody_is_independent():
    with broker(mechanism="independent") as service:
        service.join("dora", Fraction(5, 2))
        assert service.ask("dora", count(0, 9)).answers[0].source == "measured"


def test_a_share_too_small_to_be_measured_with_is_refused_and_the_ledger_can_be_opened_again():
    ledger = MemoryLedger()
    with broker(ledger) as service:
        with pytest.raises(PrivacyError):
            service.join("dan", "1e-20")
        assert "dan" not in service.analysts
    broker(ledger).close()


@pytest.mark.parametrize("mechanism", ["laplace", "multiplicative-weights"])
def test_a_quote_of_a_common_pot_is_about_the_pot(mechanism):
    with broker(mechanism=mechanism) as service:
        sql = "SELECT COUNT(*), SUM(age) FROM people" if mechanism == "laplace" else count(0, 9)
        told = service.quote("ann", sql)
        assert told.means == sum(service.status(name).left for name in service.analysts)
        assert told.cost > 0
        assert not told.is_free
        before = told.means
        service.ask("ann", sql)
        after = sum(service.status(name).left for name in service.analysts)
        assert before - after <= told.cost
        if mechanism == "laplace":
            assert before - after == told.cost


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
    broker(ledger).close()
    changed = parse_config(config().text.replace(old, new))
    with pytest.raises(ConfigError) as refused:
        Broker(changed, ledger, data=table(changed), certificate=False)
    assert says in refused.value.message


def test_other_settings_may_change_from_one_start_to_the_next():
    ledger = MemoryLedger()
    broker(ledger).close()
    changed = parse_config(config().text.replace("error_threshold = 20", "error_threshold = 30"))
    with Broker(changed, ledger, data=table(changed), certificate=False) as service:
        assert service.ask("ann", count(0, 9)).answers


def test_who_was_added_in_the_file_and_leaves_has_not_donated_for_that():
    ledger = MemoryLedger()
    broker(ledger).close()
    added = parse_config(config().text + '[analysts.dan]\nshare = "1/8"\n')
    with Broker(added, ledger, data=table(added), certificate=False) as service:
        service.leave("dan")
    history = History.of(ledger.events())
    assert [type(entry) for entry in history.stream[:1]] == [Granted]
    assert history.stream[1] == (Left("dan"), False)
    with Broker(added, ledger, data=table(added), certificate=False) as service:
        service.leave("cleo", donate=True)
    assert History.of(ledger.events()).stream[2] == (Left("cleo"), True)


def test_a_question_that_cannot_be_prepared_is_refused_and_the_others_are_served(monkeypatch):
    ledger = MemoryLedger()
    with broker(ledger) as service:
        order = service._worker.state.mechanism._order

        def broken(block, analyst, pay):
            if analyst == "ann":
                raise MemoryError
            return order(block, analyst, pay)

        monkeypatch.setattr(service._worker.state.mechanism, "_order", broken)
        with pytest.raises(SharewellError, match="could not be computed"):
            service.ask("ann", count(0, 9), key="k")
        assert service.ask("ben", count(0, 9)).answers
    with broker(ledger) as service, pytest.raises(SharewellError, match="could not be computed"):
        service.ask("ann", count(0, 9), key="k")
