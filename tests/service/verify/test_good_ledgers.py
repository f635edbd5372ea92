"""A ledger that a service has written is found to be well, whatever happened to the service."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sharewell import DataVector
from sharewell.config import parse_config
from sharewell.errors import SharewellError
from sharewell.privacy.ledger import (
    Answered,
    Asked,
    Charged,
    Configured,
    Exceeded,
    Granted,
    Left,
    MemoryLedger,
    Released,
    Turn,
)
from sharewell.query.sql import compile_sql
from sharewell.service.ledger import open_ledger
from sharewell.service.verify import verify
from sharewell.sharing.certificate import Certificate
from sharewell.sharing.collective import Ask
from tests.service.faults.bookkeeping import whole_events
from tests.service.services import MECHANISMS, SCHEDULERS, config, count, join, serve
from tests.service.verify.ledgers import Crashing, ask_all, service_on, story, told, verified

BY_SEX = "SELECT sex, COUNT(*), AVG(age) FROM people GROUP BY sex"


#: Every mechanism with one scheduler, and every scheduler with one mechanism.
PAIRS = [
    *((mechanism, "round-robin") for mechanism in MECHANISMS),
    *(("cache-reconstruct", scheduler) for scheduler in SCHEDULERS if scheduler != "round-robin"),
]


@pytest.mark.parametrize(("mechanism", "scheduler"), PAIRS)
def test_a_ledger_of_joins_leaves_restarts_and_retries_is_well(mechanism, scheduler, tmp_path):
    path = tmp_path / "ledger.sqlite"
    with open_ledger(path, create=True) as ledger:
        story(ledger, mechanism, scheduler)
        events = list(whole_events(ledger))
        head = ledger.head
    found = verify(path, expected_head=head)
    assert found.findings == []
    assert found.notes == []
    assert found.ok
    assert found.events == len(events)
    answered = [event for event in events if isinstance(event, Answered)]
    assert found.check("answers").counts["answers"] == sum(len(event.answers) for event in answered)
    assert found.check("questions").counts["asked"] == sum(isinstance(e, Asked) for e in events)
    assert found.check("accounts").counts["charges"] == sum(isinstance(e, Charged) for e in events)


KINDS = (Charged, Released, Answered, Exceeded, Turn, Asked, Granted, Left)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("scheduler", ["none", "round-robin"])
def test_what_a_crash_leaves_behind_is_a_note_and_no_fault(mechanism, scheduler, tmp_path):
    noted = set()
    slow = mechanism == "multiplicative-weights"
    few = (Charged, Exceeded) if slow else (Charged, Released, Turn)
    for kind in few if slow or scheduler != "none" else KINDS:
        for stored in (False, True):
            events = crashed(mechanism, scheduler, kind, stored)
            # What was stored before the crash is in both; the certificate of one of them will do.
            found = verified(tmp_path / "ledger.sqlite", events, certificate=stored)
            assert found.findings == [], (kind, stored)
            noted |= {note.code for note in found.notes}
    assert noted <= {"answers.completed", "answers.not-computed"}
    assert noted or mechanism == "laplace", "a charge that no answer names is worth a note"


def crashed(mechanism, scheduler, kind, stored):
    """The events of a service whose ledger fails once, at the first event of a kind."""
    ledger = Crashing()
    asked = [
        ("ann", count(2, 9), True),
        ("ben", count(0, 4), True),
        ("ann", BY_SEX, True),
        ("cleo", count(2, 9), True),
    ]
    with service_on(ledger, mechanism, scheduler) as service:
        ask_all(service, [("ann", count(0, 4), True), ("ben", count(1, 5), True)], "a")
        ledger.fails = [(kind, stored)]
        ask_all(service, asked, "b")
        ask_all(service, asked, "b")
        if kind in (Granted, Left):
            for act in (
                lambda: join(service, "dora", Fraction(3, 2)),
                lambda: service.leave("cleo", donate=mechanism in ("cache-reconstruct", "as-printed")),
            ):
                try:
                    act()
                except SharewellError:
                    continue
        ask_all(service, [("ann", count(1, 9), True), ("ben", count(2, 9), True)], "c")
    return list(ledger.events())


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["cache-reconstruct", "multiplicative-weights", "laplace"])
def test_a_ledger_that_was_cut_off_at_any_event_has_no_fault(mechanism, tmp_path):
    """A ledger is whole after every commit; what was open then is noted."""
    events = told(mechanism, short=True)
    notes = set()
    for length in range(5, len(events)):
        found = verified(tmp_path / "ledger.sqlite", events[:length])
        assert found.findings == [], length
        notes |= {note.code for note in found.notes}
    assert {"questions.open", "accounts.not-released"} <= notes


def test_settings_may_change_and_analysts_be_added_with_them(tmp_path):
    ledger = MemoryLedger()
    story(ledger, short=True)
    text = config().text
    for change in (
        ("error_threshold = 20", "error_threshold = 25"),
        ("[mechanism]", '[analysts.dora]\nshare = "1/8"\n[analysts.emil]\nshare = "1/8"\n[mechanism]'),
        ('name = "none"', 'name = "round-robin"'),
    ):
        text = text.replace(*change)
        settings = parse_config(text)
        with serve(settings, ledger) as service:
            questions = [(name, count(1, at + 9), True) for at, name in enumerate(service.analyst_names)]
            ask_all(service, questions, f"{change[0]} ")
    found = verified(tmp_path / "ledger.sqlite", list(ledger.events()))
    assert found.findings == []
    assert found.check("accounts").counts["settings"] == 4


ZCDP = """
[dataset]
source = "people.csv"
neighbours = "replace-one"
[budget]
epsilon = 10
delta = "1e-6"
error_threshold = 20
[attributes.age]
type = "integer"
low = 0
high = 299
[analysts.ann]
share = "1/2"
[analysts.ben]
share = "1/2"
[mechanism]
{}
"""


@pytest.mark.parametrize(
    "mechanism",
    [
        'seed = "h2"\nquery_budget = "1/40"',
        'seed = "total"\nquery_budget = "1/40"\nbuy_seed_rows = true',
        'name = "laplace"\nquery_budget = "1/40"\nindependent = true',
        'name = "multiplicative-weights"\nupdates = 6\nthreshold = 3',
        'name = "multiplicative-weights"\nupdates = 6\nthreshold = 3\nindependent = true',
    ],
)
def test_other_budgets_seeds_and_neighbours_are_well_too(mechanism, tmp_path):
    settings = parse_config(ZCDP.format(mechanism))
    data = DataVector(settings.domain, np.arange(settings.domain.size))
    ledger = MemoryLedger()
    for part in range(2):
        with serve(settings, ledger, data=data) as service:
            questions = [
                (("ann", "ben")[at % 2], count(7 * at, 40 + 11 * at), at % 5 != 4) for at in range(8)
            ]
            ask_all(service, [*questions, ("ann", "SELECT SUM(age) FROM people", True)], f"{part}")
    found = verified(tmp_path / "ledger.sqlite", list(ledger.events()))
    assert found.findings == []
    assert found.check("answers").counts["answers"] >= 8


def test_the_certificate_is_the_one_that_the_service_shows(tmp_path):
    with open_ledger(tmp_path / "ledger.sqlite", create=True) as ledger:
        settings = config("as-printed", "round-robin")
        with serve(settings, ledger, certificate=True) as service:
            ask_all(service, [(n, count(at, 9), True) for at in range(7) for n in ("ann", "ben")], "a")
            join(service, "dora", 1)
            service.leave("ben", donate=True)
            service.done("dora")
            service.ask("ann", count(2, 9))
            shown = service.report(up_to_date=True)
    found = verify(tmp_path / "ledger.sqlite")
    assert found.certificate == shown
    assert found.to_json()["certificate"]["worst_ratio"] == shown.worst_ratio


def test_the_certificate_follows_from_what_was_asked(tmp_path):
    """A naive way beside it: the questions themselves, without any ledger."""
    asked = [("ann", 0, 9), ("ben", 0, 9), ("cleo", 3, 9), ("ann", 3, 9)]
    with open_ledger(tmp_path / "ledger.sqlite", create=True) as ledger, service_on(ledger) as service:
        certificate = Certificate(service.config.collective, error_threshold=20.0)
        for analyst, low, high in asked:
            service.ask(analyst, count(low, high))
            statement = compile_sql(count(low, high), service.config.domain)
            certificate.record(Ask(analyst, statement.blocks))
    again = verify(tmp_path / "ledger.sqlite").certificate
    assert again is not None
    assert again.standings == certificate.report().standings


def test_where_errors_depend_on_the_data_no_figures_are_given(tmp_path):
    found = verified(tmp_path / "ledger.sqlite", told("multiplicative-weights", short=True))
    assert found.ok
    assert found.certificate is not None
    assert not found.certificate.exact
    assert "depends on the data" in found.check("certificate").skipped


def test_an_empty_ledger_and_one_that_was_just_opened(tmp_path):
    found = verified(tmp_path / "ledger.sqlite", [])
    assert [finding.code for finding in found.findings] == ["accounts.not-opened"]
    events = told(short=True)
    before = next(at for at, event in enumerate(events) if isinstance(event, Configured))
    assert verified(tmp_path / "ledger.sqlite", events[: before + 1]).ok
