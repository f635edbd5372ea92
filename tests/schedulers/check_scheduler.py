"""What every scheduler must do: `CHECKS` puts the same awkward moments to any of them.

A scheduler's own test gives a function that makes one; see `test_schedulers.py`.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sharewell.errors import SharingError
from sharewell.schedulers import InOrder, QueueEntry, RoundRobin, Scheduler

#: Makes a scheduler for analysts; where it draws, it draws from this source.
Make = Callable[[Sequence[str], random.Random], Scheduler[Any]]

NAMES = ("ann", "bob", "cat")
MANY = 100_000


def made(make: Make, analysts: Sequence[str] = NAMES) -> Scheduler[Any]:
    return make(analysts, random.Random(7))


def filled(make: Make, count: int = 60) -> tuple[Scheduler[Any], list[QueueEntry[Any]]]:
    """A scheduler with so many questions of everybody, in no order."""
    scheduler = made(make)
    source = random.Random(11)
    return scheduler, [scheduler.submit(source.choice(NAMES), item) for item in range(count)]


def drain(scheduler: Scheduler[Any], now: float = 1) -> list[QueueEntry[Any]]:
    """Decide until nothing is waiting; whoever has nothing more to ask has said so."""
    for analyst in scheduler.analysts:
        scheduler.done(analyst)
    served: list[QueueEntry[Any]] = []
    for step in range(MANY):
        if scheduler.finished:
            return served
        ticket = scheduler.next(now + step)
        if ticket is not None:
            served.append(ticket)
    raise AssertionError(f"{scheduler.waiting} questions were never served")


def of(analyst: str, tickets: Sequence[QueueEntry[Any]]) -> list[Any]:
    return [ticket.item for ticket in tickets if ticket.analyst == analyst]


# Serving


def check_every_question_is_served_once_and_in_its_analysts_order(make: Make) -> None:
    scheduler, submitted = filled(make)
    served = drain(scheduler)
    assert sorted(ticket.number for ticket in served) == list(range(60))
    for analyst in NAMES:
        assert of(analyst, served) == of(analyst, submitted) != []
    assert scheduler.waiting == 0


def check_a_ticket_says_whose_it_is_and_what_was_submitted(make: Make) -> None:
    scheduler = made(make)
    items: list[Any] = [None, [], {"not": "hashable"}, 0]
    tickets = [scheduler.submit("ann", item) for item in items]
    assert [(ticket.number, ticket.analyst) for ticket in tickets] == [(n, "ann") for n in range(4)]
    assert [ticket.item for ticket in drain(scheduler)] == items
    assert len(set(tickets)) == 4


def check_every_decision_serves_stalls_or_is_idle(make: Make) -> None:
    scheduler, _ = filled(make)
    served = 0
    for step in range(500):
        waiting, stalls, idle = scheduler.waiting, scheduler.stalls, scheduler.idle
        ticket = scheduler.next(step)
        served += ticket is not None
        assert scheduler.waiting == 60 - served
        assert scheduler.stalls - stalls == (ticket is None and waiting > 0)
        assert scheduler.idle - idle == (ticket is None and waiting == 0)
        assert scheduler.steps == step + 1 == served + scheduler.stalls + scheduler.idle


def check_nothing_waiting_is_idle_and_no_stall(make: Make) -> None:
    scheduler = made(make)
    assert [scheduler.next(step) for step in range(5)] == [None] * 5
    assert (scheduler.steps, scheduler.idle, scheduler.stalls) == (5, 5, 0)


# Done


def check_who_is_done_is_still_served(make: Make) -> None:
    scheduler, submitted = filled(make)
    for analyst in NAMES * 2:
        scheduler.done(analyst)
    assert not scheduler.finished
    assert len(drain(scheduler)) == len(submitted)
    assert scheduler.finished


def check_all_must_be_done_before_it_is_finished(make: Make) -> None:
    scheduler = made(make)
    for analyst in NAMES:
        assert not scheduler.finished
        scheduler.done(analyst)
    assert scheduler.finished


def check_who_asks_again_is_back(make: Make) -> None:
    scheduler, _ = filled(make)
    drain(scheduler)
    ticket = scheduler.submit("bob", "again")
    assert not scheduler.finished
    assert "bob" not in scheduler.state()["done"]
    assert drain(scheduler) == [ticket]


# Coming and going


def check_a_newcomer_is_last_and_served(make: Make) -> None:
    scheduler, submitted = filled(make)
    scheduler.join("dan")
    assert scheduler.analysts == (*NAMES, "dan")
    submitted.append(scheduler.submit("dan", "new"))
    served = drain(scheduler)
    assert sorted(t.number for t in served) == [t.number for t in submitted]


def check_a_scheduler_may_begin_with_nobody(make: Make) -> None:
    scheduler = made(make, ())
    assert scheduler.next() is None
    assert scheduler.analysts == ()
    scheduler.join("ann")
    ticket = scheduler.submit("ann", 1)
    assert drain(scheduler) == [ticket]


def check_who_leaves_gets_back_what_was_not_served(make: Make) -> None:
    scheduler, submitted = filled(make)
    before = [ticket for step in range(10) if (ticket := scheduler.next(step)) is not None]
    withdrawn = scheduler.leave("bob")
    assert of("bob", before) + of("bob", withdrawn) == of("bob", submitted)
    assert withdrawn != ()
    assert scheduler.waiting == 60 - len(before) - len(withdrawn)
    assert scheduler.analysts == ("ann", "cat")
    after = drain(scheduler, now=20)
    for analyst in ("ann", "cat"):
        assert of(analyst, before) + of(analyst, after) == of(analyst, submitted)
    assert len(before) + len(withdrawn) + len(after) == 60


def check_who_has_left_may_join_again(make: Make) -> None:
    scheduler, _ = filled(make)
    scheduler.done("ann")
    scheduler.leave("ann")
    scheduler.join("ann")
    assert scheduler.analysts == ("bob", "cat", "ann")
    assert "ann" not in scheduler.state()["done"]
    scheduler.submit("ann", "back")
    assert of("ann", drain(scheduler)) == ["back"]


def check_all_may_leave(make: Make) -> None:
    scheduler, _ = filled(make)
    assert sum(len(scheduler.leave(analyst)) for analyst in NAMES) == 60
    assert scheduler.next() is None
    assert scheduler.finished
    scheduler.join("dan")
    ticket = scheduler.submit("dan", 1)
    assert drain(scheduler) == [ticket]


# Mistakes


def check_a_mistake_is_refused_and_changes_nothing(make: Make) -> None:
    scheduler, _ = filled(make)
    scheduler.leave("cat")
    before = scheduler.state()
    nobody: list[Any] = ["zoe", "cat", "", None, ["ann"]]
    for name in nobody:
        for verb in (lambda name: scheduler.submit(name, 1), scheduler.done, scheduler.leave):
            with pytest.raises(SharingError, match=r"Unknown analyst.*The analysts are ann, bob"):
                verb(name)
    for name, words in [("ann", "'ann' is named twice"), ("", "Invalid name"), (" ", "Invalid name")]:
        with pytest.raises(SharingError, match=words):
            scheduler.join(name)
    assert scheduler.state() == before
    assert len(drain(scheduler)) == sum(before["waiting"].values())


def check_wrong_names_at_the_start_are_refused(make: Make) -> None:
    for names, words in [
        (("ann", ""), "Invalid name"),
        (("ann", 3), "Invalid name of an analyst: 3"),
    ]:
        with pytest.raises(SharingError, match=words):
            made(make, names)  # type: ignore[arg-type]


def check_no_clock_loses_a_question(make: Make) -> None:
    scheduler, submitted = filled(make)
    clock = [5, 5, 3, -1e300, 1e300, 0, math.nan, math.inf, -math.inf, 2]
    served = []
    watches_the_clock = getattr(scheduler, "idle_after", None) is not None
    for now in clock * 3:
        if watches_the_clock and not math.isfinite(now):
            before = scheduler.state()
            with pytest.raises(SharingError, match="is not a time"):
                scheduler.next(now)
            assert scheduler.state() == before
        elif (ticket := scheduler.next(now)) is not None:
            served.append(ticket)
    served += drain(scheduler)
    assert sorted(t.number for t in served) == [t.number for t in submitted]


# Restarts


def check_a_restart_changes_no_decision(make: Make) -> None:
    for moment in range(0, 40, 3):
        _restart_at(make, moment)


def _restart_at(make: Make, moment: int) -> None:
    """Two that were made alike; one of them is stored and made anew after so many moves."""
    draws = random.Random(3), random.Random(3)
    plain, other = (make(NAMES, draw) for draw in draws)
    script = random.Random(5)
    waiting: list[QueueEntry[Any]] = []
    for at in range(60):
        if at == moment:
            stored = json.loads(json.dumps(other.state()))
            other = make(("somebody", "else"), draws[1])
            other.restore(stored)
            waiting = [other.submit(ticket.analyst, ticket.item) for ticket in waiting]
            numbers = [ticket.number for ticket in waiting]
            assert all(number >= stored["tickets"] for number in numbers)
            assert other.analysts == plain.analysts
        if at == 20:
            plain.join("dan")
            other.join("dan")
        if at == 30:
            gone = other.leave("ann")
            assert [t.item for t in plain.leave("ann")] == [t.item for t in gone]
            waiting = [ticket for ticket in waiting if ticket.analyst != "ann"]
        kind = script.choice(["submit", "submit", "next", "next", "done"])
        analyst = script.choice(plain.analysts)
        if kind == "submit":
            plain.submit(analyst, at)
            waiting.append(other.submit(analyst, at))
        elif kind == "done":
            plain.done(analyst)
            other.done(analyst)
        else:
            decided = plain.next(at), other.next(at)
            assert _seen(decided[0]) == _seen(decided[1])
            waiting = [ticket for ticket in waiting if ticket != decided[1]]
        unlike = {"tickets"} if at >= moment else set()
        assert {k: v for k, v in plain.state().items() if k not in unlike} == {
            k: v for k, v in other.state().items() if k not in unlike
        }
    assert [_seen(t) for t in drain(plain, 60)] == [_seen(t) for t in drain(other, 60)]
    assert (plain.steps, plain.stalls, plain.idle) == (other.steps, other.stalls, other.idle)


def _seen(ticket: QueueEntry[Any] | None) -> tuple[str, Any] | None:
    return None if ticket is None else (ticket.analyst, ticket.item)


def check_what_is_submitted_again_brings_nobody_back(make: Make) -> None:
    scheduler = made(make)
    for item in range(3):
        scheduler.submit("ann", item)
    scheduler.done("ann")
    anew = made(make)
    anew.restore(scheduler.state())
    for item in range(3):
        anew.submit("ann", item)
        assert anew.state()["done"] == ["ann"]
    anew.submit("ann", "a new one")
    assert anew.state()["done"] == []


def check_who_leaves_after_a_restart_owes_nothing(make: Make) -> None:
    scheduler = made(make)
    scheduler.submit("ann", 1)
    anew = made(make)
    anew.restore(scheduler.state())
    assert anew.leave("ann") == ()
    anew.join("ann")
    anew.done("ann")
    anew.submit("ann", "a new one")
    assert anew.state()["done"] == []


def check_only_its_own_state_can_be_restored_and_only_at_the_start(make: Make) -> None:
    scheduler, _ = filled(make)
    state = scheduler.state()
    with pytest.raises(SharingError, match="Only a new scheduler"):
        scheduler.restore(state)
    other: Scheduler[Any] = RoundRobin(NAMES) if isinstance(scheduler, InOrder) else InOrder(NAMES)
    wrong: list[Any] = [other.state(), {}, [], None]
    for bad in wrong:
        with pytest.raises(SharingError, match="not the state of a"):
            made(make).restore(bad)
    for key in set(state) - {"scheduler"}:
        with pytest.raises(SharingError, match="damaged"):
            made(make).restore({k: v for k, v in state.items() if k != key})
    with pytest.raises(SharingError, match="'zoe'"):
        made(make).restore({**state, "done": ["zoe"]})


CHECKS: dict[str, Callable[[Make], None]] = {
    name.removeprefix("check_"): check
    for name, check in list(globals().items())
    if name.startswith("check_")
}
