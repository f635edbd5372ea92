"""A curator closes a round, on a service that measures single counts as signed rows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from sharewell.config import Config, parse_config
from sharewell.errors import QueryError, SharingError
from sharewell.privacy.ledger import Charged, Configured, Done, MemoryLedger, Released, RoundClosed
from sharewell.service.certificate_worker import StreamReader
from sharewell.sharing.collective import CloseRound
from tests.service.faults.bookkeeping import whole_events
from tests.service.services import CONFIG, MECHANISMS, SCHEDULERS, SCR, count, join, serve, status
from tests.service.verify.ledgers import Crashing, verified

SIGNED = f'{SCR}\nseed = [["age"], ["sex"], []]'
ENTRIES = 8
BY_SEX = "SELECT sex, COUNT(*) FROM people GROUP BY sex"


def settings(mechanism: str = SIGNED) -> Config:
    return parse_config(CONFIG.format(mechanism=mechanism, scheduler=SCHEDULERS["none"]))


def signing(ledger) -> list[bool]:
    return [event.signed_rows for event in ledger.events() if isinstance(event, Configured)]


def play(ledger, **options) -> None:
    """Questions, a closed round, and questions after it."""
    with serve(settings(), ledger, **options) as service:
        service.ask("ann", count(2, 8, "F"))
        service.ask("ben", BY_SEX)
        service.done("ann")
        service.done("cleo")
        service.ask("cleo", count(0, 4))  # She is not done after all.
        service.done("ben")
        service.close_round("dana")
        service.ask("ann", count(3, 9, "M"))
        service.ask("cleo", count(3, 9, "M"))
        join(service, "dora", 1)
        service.ask("dora", count(2, 8, "F"))


@pytest.fixture(scope="module")
def events():
    ledger = MemoryLedger()
    play(ledger)
    return list(whole_events(ledger))


def test_whether_counts_are_signed_is_decided_when_the_ledger_begins_and_never_again():
    ledger = MemoryLedger()
    with serve(settings(), ledger) as service:
        paid = service.ask("ann", count(2, 8, "F")).answers[0]
        others = "SELECT COUNT(*) FROM people WHERE NOT (age BETWEEN 2 AND 8 AND sex = 'F')"
        again = service.ask("ben", others)
        assert again.answers[0].source == "cached", "a count and its complement are one row"
        assert again.answers[0].payer == "ann"
    assert signing(ledger) == [True]
    other = replace(settings(), text=settings().text.replace("population = 1000", "population = 900"))
    with serve(other, ledger) as service:
        assert service.ask("cleo", count(2, 8, "F"), pay=False).answers[0].value == paid.value
    assert signing(ledger) == [True, True]


@pytest.mark.parametrize(
    "mechanism", [SCR, f'{SIGNED}\nanswers = "as-printed"', f'{SCR}\nseed = "total"\nseed_fraction = 0']
)
def test_counts_are_not_signed_where_the_total_is_known_badly(mechanism):
    ledger = MemoryLedger()
    with serve(settings(mechanism), ledger):
        pass
    assert signing(ledger) == [False]


def test_a_ledger_from_before_signed_rows_has_none_for_ever():
    ledger = MemoryLedger()
    old = Configured({"config": settings().text})
    with serve(settings(), ledger) as service:
        pass
    before = [old if isinstance(event, Configured) else event for event in ledger.events()]
    ledger = MemoryLedger()
    ledger.append_many(before)
    with serve(settings(), ledger) as service:
        service.ask("ann", count(2, 8, "F"))
    charged = [event for event in ledger.events() if isinstance(event, Charged)][-1]
    [query] = charged.purpose["measure"]["queries"]
    assert query == service._compile(count(2, 8, "F")).queries[0].to_json()


def test_a_count_that_is_free_is_offered_free_and_the_quote_says_what_paying_adds():
    with serve(settings()) as service:
        free_of_seed = service.quote("ann", count(3, 3))
        assert free_of_seed.free is not None
        assert free_of_seed.paid is not None
        assert free_of_seed.free.cost == 0
        assert free_of_seed.paid.cost == Fraction(1, 8)
        assert free_of_seed.paid.standard_errors < free_of_seed.free.standard_errors
        assert service.ask("ann", count(3, 3), pay=False).answers[0].source == "cached"
        total = service.quote("ann", "SELECT COUNT(*) FROM people")
        assert total.paid is not None
        assert total.paid.cost == 0, "the seed has measured it as it is"


def test_a_closed_round_spends_what_those_who_are_done_have_left_once():
    ledger = MemoryLedger()
    with serve(settings(), ledger) as service:
        for name in ("ann", "ben"):
            service.done(name)
        assert [each.done for each in service.analysts()] == [True, True, False]
        before = service.quote("cleo", count(3, 9)).free
        closed = service.close_round("dana")
        assert closed.analysts == ("ann", "ben")
        assert (closed.spent, closed.part) == (Fraction(5, 2), Fraction(1, 4))
        assert [status(service, name).left for name in ("ann", "ben", "cleo")] == [0, 0, Fraction(5, 4)]
        after = service.quote("cleo", count(3, 9)).free
        assert before is not None
        assert after is not None
        assert after.standard_errors < before.standard_errors
        assert service.ask("ann", count(3, 9)).answers[0].cost == 0, "they can ask, and pay no more"
        with pytest.raises(SharingError, match=r"\(ben\) have too little left"):
            service.close_round()
        service.ask("ben", count(3, 9))
        with pytest.raises(SharingError, match="No analyst is done"):
            service.close_round()
    [at] = [at for at, event in enumerate(ledger.events()) if isinstance(event, RoundClosed)]
    charged, released = list(ledger.events())[at + 1 : at + 3]
    assert isinstance(charged, Charged)
    assert dict(charged.bill) == {"ann": Fraction(5, 4), "ben": Fraction(5, 4)}
    assert isinstance(released, Released)


def test_an_analyst_whose_question_waits_is_not_done():
    config = parse_config(CONFIG.format(mechanism=SIGNED, scheduler=SCHEDULERS["round-robin"]))
    with serve(config) as service:
        service.submit("ben", count(0, 3))
        service.done("ben")
        with pytest.raises(SharingError, match="No analyst is done"):
            service.close_round()


@pytest.mark.parametrize("mechanism", ["laplace", "independent"])
def test_other_mechanisms_have_no_closing_round(mechanism):
    with serve(settings(MECHANISMS[mechanism])) as service:
        service.done("ann")
        with pytest.raises(QueryError, match="cannot spend what analysts have left"):
            service.close_round()
        assert status(service, "ann").left > 0


def test_a_restart_knows_who_was_done_and_what_was_closed():
    ledger = MemoryLedger()
    play(ledger)
    questions = [(name, count(1, 7)) for name in ("ann", "cleo", "dora")]
    with serve(settings(), ledger) as service:
        left = {name: status(service, name).left for name, _ in questions}
        quotes = [service.quote(*each) for each in questions]
        assert left["ann"] == 0 < left["cleo"]
    with serve(settings(), ledger) as service:
        assert {name: status(service, name).left for name in left} == left
        assert [service.quote(*each) for each in questions] == quotes


@pytest.mark.parametrize(
    ("kind", "stored"), [(RoundClosed, False), (RoundClosed, True), (Released, False)]
)
def test_a_crash_while_a_round_is_closed_charges_once_and_loses_nothing(kind, stored, tmp_path):
    ledger = Crashing()
    with serve(settings(), ledger) as service:
        for name in ("ann", "ben"):
            service.done(name)
        ledger.fails = [(kind, stored)]
        with pytest.raises(Exception, match="no room"):
            service.close_round()
        service.ask("cleo", count(3, 9), pay=False)  # The state is rebuilt from the ledger.
        was_closed = kind is Released or stored
        assert status(service, "ann").left == (0 if was_closed else Fraction(5, 4))
    rounds = [event for event in ledger.events() if isinstance(event, RoundClosed)]
    assert len(rounds) == was_closed
    assert not verified(tmp_path / "ledger.sqlite", list(whole_events(ledger))).findings


def test_verify_and_the_certificate_follow_signed_rows_and_a_closed_round(events, tmp_path):
    verification = verified(tmp_path / "ledger.sqlite", events)
    assert not verification.findings
    report = verification.certificate
    assert report is not None
    assert report.entries == ENTRIES
    assert all(standing.worse_answers == 0 for standing in report.standings)
    assert report.checked
    reader = StreamReader()
    sent = [entry for event in events for entry in reader.read(event)]
    assert len(sent) == ENTRIES, "the certificate's process is sent the same"
    assert CloseRound(("ann", "ben")) in sent


def changed(events, kind, **fields):
    return [replace(event, **fields) if isinstance(event, kind) else event for event in events]


@pytest.mark.parametrize(
    ("tamper", "code"),
    [
        (lambda events: changed(events, RoundClosed, payers=("ann",)), "questions.not-done"),
        (lambda events: changed(events, RoundClosed, payers=("ann", "ben", "cleo")), "accounts.round"),
        (lambda events: [e for e in events if not isinstance(e, Done)], "questions.not-done"),
        (lambda events: changed(events, Configured, signed_rows=False), "answers.bought"),
    ],
)
def test_verify_finds_rounds_and_rows_that_do_not_follow(events, tamper, code, tmp_path):
    found = verified(tmp_path / "ledger.sqlite", tamper(events)).findings
    assert code in {finding.code for finding in found}
