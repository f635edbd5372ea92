"""Whoever rewrites a ledger, with new hashes up to its end, is found by what the events say."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sharewell.privacy import measurement
from sharewell.privacy.ledger import (
    Answered,
    AnsweredFree,
    Armed,
    Asked,
    Begun,
    Charged,
    Configured,
    CuratorAction,
    Done,
    Event,
    Exceeded,
    Granted,
    Left,
    Opened,
    Recovered,
    Refused,
    Released,
    RoundClosed,
    SourceChanged,
    SourceSeen,
    Turn,
)
from sharewell.service.ledger import open_ledger
from sharewell.service.verify import verify
from tests.service.services import MECHANISMS
from tests.service.verify.ledgers import told, verified, written


@cache
def good(mechanism: str = "cache-reconstruct", scheduler: str = "none") -> tuple[Any, ...]:
    return tuple(told(mechanism, scheduler, short=mechanism == "multiplicative-weights"))


def at(events, kind: type, which: int = 0) -> int:
    """The number of an event of a kind."""
    return [number for number, event in enumerate(events) if isinstance(event, kind)][which]


def changed(events, number: int, **fields) -> list[Any]:
    return [*events[:number], replace(events[number], **fields), *events[number + 1 :]]


def answer_changed(events, number: int, **fields) -> list[Any]:
    first, *rest = events[number].answers
    return changed(events, number, answers=({**first, **fields}, *rest))


def measured(events, which: int = 0) -> int:
    """The number of an answer that was paid for."""
    found = [
        number
        for number, event in enumerate(events)
        if isinstance(event, Answered) and event.answers[0]["charge"] is not None
    ]
    return found[which]


def bill(events, of: Callable[[str, Fraction], Fraction], which: int = 2) -> list[Any]:
    number = at(events, Charged, which)
    return changed(events, number, bill={p: of(p, c) for p, c in events[number].bill.items()})


def without(events, number: int) -> list[Any]:
    return [*events[:number], *events[number + 1 :]]


def swapped(events, first: int, second: int) -> list[Any]:
    swapped = list(events)
    swapped[first], swapped[second] = swapped[second], swapped[first]
    return swapped


def value_of(events, number: int) -> float:
    return events[number].answers[0]["value"]


def covariance_changed(events) -> list[Any]:
    """A larger covariance of a sum with its count narrows the interval of an average."""
    number, place = next(
        (number, place)
        for number, event in enumerate(events)
        if isinstance(event, Answered)
        for place, answer in enumerate(event.answers)
        if "covariances" in answer
    )
    answers = list(events[number].answers)
    [[block, value]] = answers[place]["covariances"]
    answers[place] = {**answers[place], "covariances": [[block, value + 0.01]]}
    return changed(events, number, answers=tuple(answers))


def scale_narrowed(events) -> list[Any]:
    number = at(events, Charged, 2)
    purpose = events[number].purpose
    narrow = [[(float.fromhex(scale) / 2).hex(), count] for scale, count in purpose["scales"]]
    return changed(events, number, purpose={**purpose, "scales": narrow})


def rows_claimed(events, count: Any) -> list[Any]:
    """A charge whose scales are for another number of rows."""
    number = at(events, Charged, 2)
    [[scale, _]] = events[number].purpose["scales"]
    return changed(events, number, purpose={**events[number].purpose, "scales": [[scale, count]]})


def share_raised(events) -> list[Any]:
    return changed(events, at(events, Granted), share=Fraction(6))


def budget_raised(events) -> list[Any]:
    return changed(events, 0, epsilon=Fraction(20), total=Fraction(20))


#: What somebody does to the events, and the code of a finding that names it.
TAMPERINGS: dict[str, tuple[Callable[[tuple[Any, ...]], list[Any]], str]] = {
    "another value": (
        lambda e: answer_changed(e, measured(e), value=value_of(e, measured(e)) + 1),
        "answers.differs",
    ),
    "a value a little off": (
        lambda e: answer_changed(e, measured(e, 3), value=value_of(e, measured(e, 3)) + 1e-4),
        "answers.differs",
    ),
    "a smaller standard error": (
        lambda e: answer_changed(e, measured(e), standard_error=0.5),
        "answers.differs",
    ),
    "a narrower interval": (
        lambda e: answer_changed(e, measured(e), interval=[0.0, 1.0]),
        "answers.differs",
    ),
    "another covariance": (covariance_changed, "answers.differs"),
    "sums of edges that are not asked for": (
        lambda e: answer_changed(e, measured(e), edges=[[0, 1.0, 1.0, 2.0, 1.0]]),
        "answers.differs",
    ),
    "another source": (
        lambda e: answer_changed(e, measured(e), source="cached"),
        "answers.differs",
    ),
    "another payer": (lambda e: answer_changed(e, measured(e), payer="cleo"), "answers.differs"),
    "another cost": (lambda e: answer_changed(e, measured(e), cost="1/100"), "questions.cost"),
    "the charge of another question": (
        lambda e: answer_changed(e, measured(e, 1), charge=e[measured(e)].answers[0]["charge"]),
        "questions.cost",
    ),
    "a charge that is none": (lambda e: answer_changed(e, measured(e), charge=2), "questions.cost"),
    "an answer too few": (
        lambda e: changed(e, measured(e), answers=()),
        "answers.",
    ),
    "a field too many": (
        lambda e: answer_changed(e, measured(e), remark="trust me"),
        "answers.differs",
    ),
    "a cheaper charge": (lambda e: bill(e, lambda _, cost: cost / 2), "accounts.noise"),
    "a charge to somebody else": (
        lambda e: changed(e, at(e, Charged, 2), bill={"cleo": Fraction(1, 8)}),
        "answers.bought",
    ),
    "a charge to a stranger": (
        lambda e: changed(e, at(e, Charged, 2), bill={"zoe": Fraction(1, 8)}),
        "accounts.no-share",
    ),
    "a refund": (lambda e: bill(e, lambda _, cost: -cost), "accounts.amount"),
    "a share overspent": (lambda e: bill(e, lambda *_: Fraction(4)), "accounts.overspent"),
    "narrower noise": (scale_narrowed, "accounts.noise"),
    "more rows than can be held": (lambda e: rows_claimed(e, 10**15), "accounts.noise"),
    "rows that are no number": (lambda e: rows_claimed(e, "1"), "accounts.purpose"),
    "less than no rows": (lambda e: rows_claimed(e, -1), "accounts.purpose"),
    "a release that is not finished": (
        lambda e: changed(e, at(e, Released, 1), rest=1, values=e[at(e, Released, 1)].values[1:]),
        "accounts.rows",
    ),
    "another released value": (
        lambda e: changed(
            e,
            at(e, Released),
            values=(e[at(e, Released)].values[0] + 5, *e[at(e, Released)].values[1:]),
        ),
        "answers.differs",
    ),
    "a released value too many": (
        lambda e: changed(e, at(e, Released, 1), values=(*e[at(e, Released, 1)].values, 3)),
        "accounts.rows",
    ),
    "a second release": (
        lambda e: changed(e, at(e, Released, 2), charge=e[at(e, Released, 1)].charge),
        "accounts.released-twice",
    ),
    "a release of nothing": (
        lambda e: changed(e, at(e, Released, 1), charge=1),
        "accounts.no-charge",
    ),
    "another question": (
        lambda e: changed(
            e, at(e, Asked), question={"sql": "SELECT COUNT(*) FROM people WHERE age BETWEEN 0 AND 5"}
        ),
        "answers.bought",
    ),
    "a question that is none": (
        lambda e: changed(e, at(e, Asked), question={"sql": "SELECT"}),
        "answers.impossible",
    ),
    "a question of a stranger": (
        lambda e: changed(e, at(e, Asked), analyst="zoe"),
        "questions.stranger",
    ),
    "a question that would not have been paid": (
        lambda e: changed(e, at(e, Asked), pay=False),
        "answers.bought",
    ),
    "a key used twice": (
        lambda e: changed(e, at(e, Asked, 2), key=e[at(e, Asked)].key),
        "questions.key-reused",
    ),
    "a seed that was released after its use": (
        lambda e: swapped(e, at(e, Released), at(e, Done)),
        "answers.early",
    ),
    "a question that was already answered": (
        lambda e: changed(e, at(e, Answered, 1), asked=e[at(e, Answered)].asked),
        "questions.ended-twice",
    ),
    "an answer to nothing": (lambda e: changed(e, at(e, Answered), asked=1), "questions.unknown"),
    "a refusal instead of an answer": (
        lambda e: [
            Refused(event.asked, "privacy.over-budget", "There is nothing left.")
            if number == at(e, Answered)
            else event
            for number, event in enumerate(e)
        ],
        "answers.refused",
    ),
    "two answers that changed places": (
        lambda e: swapped(e, at(e, Answered), at(e, Answered, 1)),
        "answers.bought",
    ),
    "a larger share": (share_raised, "accounts.over-total"),
    "a share granted twice": (
        lambda e: changed(e, at(e, Granted, 1), payer="ann"),
        "accounts.granted-twice",
    ),
    "a larger budget": (budget_raised, "accounts.settings"),
    "another domain": (lambda e: changed(e, 0, domain="0" * 32), "accounts.settings"),
    "no beginning": (lambda e: without(e, 0), "accounts.not-opened"),
    "another price": (
        lambda e: changed(
            e,
            at(e, Configured),
            settings={"config": e[at(e, Configured)].settings["config"].replace("1/80", "1/90")},
        ),
        "answers.bought",
    ),
    "settings that are none": (
        lambda e: changed(e, at(e, Configured), settings={"config": "[dataset"}),
        "accounts.settings",
    ),
    "somebody who leaves before they pay": (
        lambda e: [*e[: at(e, Asked)], Left("ann"), *e[at(e, Asked) :]],
        "accounts.has-left",
    ),
    "a charge that nothing was released for": (
        lambda e: [*e, e[at(e, Charged, 1)], Done("ann")],
        "accounts.unreleased",
    ),
    "settings that are stated again": (
        lambda e: [*e, e[at(e, Configured)]],
        "accounts.settings",
    ),
    "an opened ledger within": (lambda e: [*e, e[0]], "accounts.opened-twice"),
}


def codes(path, events, certificate: bool = False) -> list[str]:
    """What is found; by default without the certificate, which takes three quarters of the time."""
    found = verified(path, events, certificate=certificate)
    assert not found.check("chain").findings, "the chain was made anew and says nothing"
    for finding in found.findings:
        assert finding.event is None or str(finding.event) in finding.message, "the event is named"
    return [finding.code for finding in found.findings]


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_what_was_changed_with_all_hashes_made_anew_is_found_and_named(tampering, tmp_path):
    change, expected = TAMPERINGS[tampering]
    with_certificate = list(TAMPERINGS).index(tampering) % 4 == 0
    found = codes(tmp_path / "ledger.sqlite", change(good()), with_certificate)
    assert any(code.startswith(expected) for code in found), found


#: What somebody does to the events of a release that are given by their numbers.
PART_TAMPERINGS: dict[str, tuple[Callable[[tuple[Any, ...], list[int]], list[Any]], str]] = {
    "another value": (
        lambda e, n: changed(e, n[1], values=(e[n[1]].values[0] + 5, *e[n[1]].values[1:])),
        "answers.differs",
    ),
    "a value too few": (
        lambda e, n: changed(e, n[1], values=e[n[1]].values[1:]),
        "accounts.rows",
    ),
    "a value that moved": (
        lambda e, n: changed(
            changed(e, n[0], values=e[n[0]].values[:-1]),
            n[1],
            values=(e[n[0]].values[-1], *e[n[1]].values),
        ),
        "accounts.rows",
    ),
    "a part of another charge": (
        lambda e, n: changed(e, n[1], charge=e[n[1]].charge + 1),
        "accounts.rows",
    ),
    "parts that changed places": (lambda e, n: swapped(e, n[1], n[2]), "accounts.rows"),
    "an end too early": (lambda e, n: changed(e, n[-2], rest=0), "accounts.released-twice"),
    "more to come": (lambda e, n: changed(e, n[-1], rest=2), "accounts.rows"),
    "less than nothing to come": (lambda e, n: changed(e, n[-1], rest=-1), "accounts.rows"),
    "nothing after the first part": (lambda e, n: [*e[: n[0] + 1]], "accounts.rows"),
    "something else within": (lambda e, n: swapped(e, n[1], at(e, Done)), "accounts.rows"),
}


@cache
def good_in_parts() -> tuple[Any, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "MAX_VALUES", 5)
        return tuple(told("cache-reconstruct", "none"))


def test_a_ledger_whose_releases_are_in_parts_verifies_as_any_other(tmp_path):
    events = good_in_parts()
    assert sum(isinstance(event, Released) and event.rest > 0 for event in events) > 5
    found, same = (verified(tmp_path / f"{n}", e) for n, e in enumerate((events, good())))
    assert found.findings == []
    assert [check.counts | {"events": 0} for check in found.checks] == [
        check.counts | {"events": 0} for check in same.checks
    ]
    assert [note.code for note in found.notes] == [note.code for note in same.notes]


@pytest.mark.parametrize("tampering", PART_TAMPERINGS)
def test_a_changed_part_of_a_release_is_found(tampering, tmp_path):
    change, expected = PART_TAMPERINGS[tampering]
    events = good_in_parts()
    charge = next(event.charge for event in events if isinstance(event, Released) and event.rest > 5)
    numbers = [n for n, e in enumerate(events) if isinstance(e, Released) and e.charge == charge]
    found = codes(tmp_path / "ledger.sqlite", change(events, numbers))
    assert any(code.startswith(expected) for code in found), found


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_changed_answer_is_found_with_every_mechanism(mechanism, tmp_path):
    events = good(mechanism)
    for number in [at(events, Answered), at(events, Answered, -1)]:
        tampered = answer_changed(events, number, value=value_of(events, number) + 0.25)
        found = verified(tmp_path / "ledger.sqlite", tampered).findings
        assert [(f.code, f.event) for f in found] == [("answers.differs", number)]


def test_a_test_that_was_not_made_is_found(tmp_path):
    events = good("multiplicative-weights")
    number = at(events, Exceeded)
    wrong = changed(events, number, guess=events[number].guess + 2)
    assert "answers.impossible" in codes(tmp_path / "ledger.sqlite", wrong)
    tested = [e.query for e in events if isinstance(e, Exceeded)]
    query = next(query for query in tested if query != events[number].query)
    other = changed(events, number, query=query)
    assert "answers.bought" in codes(tmp_path / "ledger.sqlite", other)
    nothing = changed(events, number, charge=0)
    assert "accounts.no-charge" in codes(tmp_path / "ledger.sqlite", nothing)


def test_a_turn_out_of_order_is_found(tmp_path):
    events = good("cache-reconstruct", "round-robin")
    number = next(n for n, e in enumerate(events) if isinstance(e, Turn) and len(e.asked) > 1)
    turned = changed(events, number, asked=events[number].asked[::-1])
    assert "questions.out-of-turn" in codes(tmp_path / "ledger.sqlite", turned)
    dropped = changed(events, number, asked=events[number].asked[1:])
    assert "questions.out-of-turn" in codes(tmp_path / "ledger.sqlite", dropped)


def test_no_finding_and_no_note_shows_a_threshold(tmp_path):
    events = good("multiplicative-weights")
    number = at(events, Armed)
    secret = 918273645
    for tampered in (
        changed(events, number, noisy_threshold=secret),
        changed(events, number, noisy_threshold=secret, charge=1),
        [*events, Armed(events[number].charge, secret)],
        without(changed(events, number, noisy_threshold=secret), number - 1),
    ):
        found = verified(tmp_path / "ledger.sqlite", tampered)
        assert str(secret) not in json.dumps(found.to_json())
        assert str(secret) not in repr(found)


# Without new hashes: the chain tells, and the rest is still looked at


def damage(path, *statements):
    with closing(sqlite3.connect(path)) as connection:
        for trigger in ("events_stay", "events_stay_as_they_are"):
            connection.execute(f"DROP TRIGGER {trigger}")
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_a_broken_chain_is_named_and_what_can_be_read_is_still_checked(tmp_path):
    path = written(tmp_path / "ledger.sqlite", good())
    answered = measured(good())
    damage(
        path,
        f"UPDATE events SET body = replace(body, '\"value\":', '\"value\":1') WHERE number = {answered}",
    )
    found = verify(path)
    assert [(f.code, f.event) for f in found.check("chain").findings] == [("chain.changed", answered)]
    assert ("answers.differs", answered) in [(f.code, f.event) for f in found.findings]


@pytest.mark.parametrize(
    ("statement", "code", "event"),
    [
        ("DELETE FROM events WHERE number = 9", "chain.missing", 9),
        ("UPDATE events SET body = '{}' WHERE number = 9", "chain.changed", 9),
        ("DELETE FROM events WHERE number = 0", "chain.missing", 0),
        ("DELETE FROM events WHERE number > 30", "chain.missing", 31),
    ],
)
def test_an_event_that_is_lost_is_named_and_nobody_is_blamed_for_what_is_not_known(
    statement, code, event, tmp_path
):
    path = written(tmp_path / "ledger.sqlite", good())
    damage(path, statement)
    found = verify(path)
    assert [(f.code, f.event) for f in found.check("chain").findings] == [(code, event)]
    assert {f.code for f in found.findings} <= {code, "accounts.not-opened"}
    assert not found.ok


def test_two_events_that_changed_places_are_named(tmp_path):
    path = written(tmp_path / "ledger.sqlite", good())
    damage(
        path,
        "UPDATE events SET number = -1 WHERE number = 8",
        "UPDATE events SET number = 8 WHERE number = 12",
        "UPDATE events SET number = 12 WHERE number = -1",
    )
    moved = [f.event for f in verify(path).findings if f.code == "chain.moved"]
    assert moved == [8, 12]


def test_a_file_that_was_cut_off_is_named(tmp_path):
    path = written(tmp_path / "ledger.sqlite", good())
    content = path.read_bytes()
    for size in (0, 50, 5000, len(content) - 3):
        path.write_bytes(content[:size])
        found = verify(path)
        assert "chain.damaged" in [f.code for f in found.findings]


def test_an_older_copy_and_a_rewritten_one_are_found_by_a_noted_head(tmp_path):
    path = written(tmp_path / "ledger.sqlite", good()[:-3])
    copy = shutil.copy(path, tmp_path / "copy.sqlite")
    with open_ledger(path, create=True) as ledger:
        ledger.append_many(good()[-3:])
        head = str(ledger.head)
    assert verify(path, expected_head=head).ok
    assert [f.code for f in verify(copy, expected_head=head).findings] == ["chain.head"]


# Whatever somebody does


def outcome(events) -> object:
    """What a ledger comes to: shares, who is here, spending, releases, and the answer to each key.

    What it leaves out may be changed without anybody gaining by it: who said `done` when, how a
    scheduler stood, secret thresholds, and the words of a question that mean the same.
    """
    asked = {n: (e.analyst, e.key) for n, e in enumerate(events) if isinstance(e, Asked)}
    spent: dict[str, Fraction] = {}
    for event in events:
        if isinstance(event, Charged):
            for payer, cost in event.bill.items():
                spent[payer] = spent.get(payer, Fraction(0)) + cost
    return (
        [e for e in events if isinstance(e, Opened | Configured)],
        {e.payer: e.share for e in events if isinstance(e, Granted)},
        {e.payer for e in events if isinstance(e, Left)},
        spent,
        # What one commit releases has no order among itself.
        sorted((e.charge, e.values) for e in events if isinstance(e, Released)),
        {
            asked.get(e.asked, e.asked): [
                {key: value for key, value in answer.items() if key != "charge"} for answer in e.answers
            ]
            for e in events
            if isinstance(e, Answered)
        },
        {asked.get(e.asked): e.code for e in events if isinstance(e, Refused)},
    )


def is_harmless(before, after) -> bool:
    """Whether a change is harmless by definition.

    It comes to the same, whoever asked what was free and whatever they called it, or a free answer is
    missing, which the next start gives again; or the end was cut off, which only a noted head can tell;
    or no answer was made after it.
    """
    spoken = [[e for e in events if not isinstance(e, Done)] for events in (before, after)]
    if spoken[0][: len(spoken[1])] == spoken[1]:
        return True
    ended = {event.asked for event in after if isinstance(event, Answered)}
    given = [e for e in before if not is_free(e) or e.asked in ended]
    if outcome(anonymous(after)) in (outcome(anonymous(before)), outcome(anonymous(given))):
        return True
    last = at(before, Answered, -1)
    return list(before[: last + 1]) == list(after[: last + 1])


def is_free(event: Event) -> bool:
    return isinstance(event, Answered) and all(answer["charge"] is None for answer in event.answers)


def anonymous(events) -> list[Any]:
    """The events without the keys, and without the names of those who asked what was free."""
    ended = [event for event in events if isinstance(event, Answered)]
    free = {event.asked for event in ended if is_free(event)}
    return [
        replace(event, key=str(number), analyst="anybody" if number in free else event.analyst)
        if isinstance(event, Asked)
        else event
        for number, event in enumerate(events)
    ]


NUDGES = st.sampled_from([1, -1, 2, 7])


def nudged(event: Event, nudge: int, draw) -> Event:
    """An event with one of its fields changed."""
    match event:
        case Opened():
            return replace(event, total=event.total + nudge)
        case Granted(_, share):
            return replace(event, share=share + Fraction(nudge, 10))
        case Charged(bill) | Recovered(bill):
            payer = draw(st.sampled_from(sorted(bill)))
            return replace(event, bill={**bill, payer: bill[payer] + Fraction(nudge, 100)})
        case Released(_, values):
            place = draw(st.integers(0, len(values) - 1))
            return replace(event, values=(*values[:place], values[place] + nudge, *values[place + 1 :]))
        case Exceeded():
            return replace(event, guess=event.guess + nudge)
        case Armed():
            return replace(event, noisy_threshold=event.noisy_threshold + nudge)
        case Left() | Done() | Begun() | CuratorAction():
            name = next(iter(vars(event)))
            return replace(event, **{name: draw(st.sampled_from(["ann", "ben", "cleo", "zoe"]))})
        case SourceSeen():
            return replace(event, fingerprint=str(nudge))
        case SourceChanged():
            return Left("zoe")
        case RoundClosed(payers):
            other = draw(st.sampled_from([(), payers[1:], (*payers, "cleo")]))
            return replace(event, payers=other)
        case Configured(stored):
            price = stored["config"].replace('"1/80"', f'"1/{80 + nudge}"')
            return replace(event, settings={"config": price})
        case Asked():
            change = draw(st.sampled_from([{"analyst": "cleo"}, {"pay": not event.pay}, {"key": "new"}]))
            return replace(event, **change)
        case Answered(asked, answers):
            if draw(st.booleans()):
                return replace(event, asked=asked + nudge)
            place = draw(st.integers(0, len(answers) - 1))
            field = draw(st.sampled_from(["value", "standard_error", "cost", "charge", "payer"]))
            new = {"cost": f"{nudge}/9", "charge": place + nudge, "payer": "zoe"}.get(field, nudge / 3)
            other = {**answers[place], field: new}
            return replace(event, answers=(*answers[:place], other, *answers[place + 1 :]))
        case Refused() | AnsweredFree():
            return replace(event, asked=event.asked + nudge)
        case Turn(asked):
            return replace(event, asked=(*asked, draw(st.integers(0, 40))))


@st.composite
def tamperings(draw, events):
    """What is done, in words, and what is left."""
    how = draw(st.sampled_from(["alter", "delete", "swap", "copy"]))
    number = draw(st.integers(0, len(events) - 1))
    kind = type(events[number]).__name__
    if how == "delete":
        return f"delete {kind} {number}", Hidden(without(events, number))
    other = draw(st.integers(0, len(events) - 1))
    if how == "swap":
        return f"swap {kind} {number} and {other}", Hidden(swapped(events, number, other))
    if how == "copy":
        copied = [*events[:other], events[number], *events[other:]]
        return f"copy {kind} {number} to {other}", Hidden(copied)
    altered = nudged(events[number], draw(NUDGES), draw)
    return f"alter {number} to {altered}", Hidden([*events[:number], altered, *events[number + 1 :]])


class Hidden(list):
    """Events, too many to be shown when a test fails."""

    def __repr__(self) -> str:
        return f"{len(self)} events"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "scheduler"),
    [("cache-reconstruct", "none"), ("as-printed", "round-robin"), ("laplace", "weighted")],
)
def test_whatever_somebody_does_to_a_ledger_is_found_unless_it_is_harmless(
    mechanism, scheduler, tmp_path_factory
):
    events = good(mechanism, scheduler)
    path = tmp_path_factory.mktemp("tampered") / "ledger.sqlite"

    @settings(
        max_examples=30,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(tamperings(events))
    def check(tampering):
        done, tampered = tampering
        if verify(written(path, tampered), certificate=False).ok:
            assert is_harmless(events, tampered), done

    check()
