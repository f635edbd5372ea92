"""Whatever the interleaving: every scheduler against a naive model that is too slow to be wrong."""

import json
import random
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sharewell.schedulers import InOrder, Randomized, RoundRobin, WeightedRoundRobin

NAMES = ["ann", "bob", "cat", "dan", "eve"]
START = NAMES[:3]


class Model:
    """The buffers as one list of everything that waits, and who is done."""

    def __init__(self):
        self.analysts = []
        self.waiting = []
        self.done = set()
        self.silent = set()
        self.counts = {"steps": 0, "stalls": 0, "idle": 0}

    def first_of(self, analyst):
        return next((pair for pair in self.waiting if pair[0] == analyst), None)

    def submit(self, analyst, item):
        self.waiting.append((analyst, item))
        self.done.discard(analyst)
        self.silent.discard(analyst)

    def say_done(self, analyst):
        self.done.add(analyst)
        self.silent.discard(analyst)

    def join(self, analyst, weight):
        self.analysts.append(analyst)

    def leave(self, analyst):
        self.analysts.remove(analyst)
        gone = [pair for pair in self.waiting if pair[0] == analyst]
        self.waiting = [pair for pair in self.waiting if pair[0] != analyst]
        self.done.discard(analyst)
        self.silent.discard(analyst)
        return gone

    def decide(self, now, drawn):
        """The pair that must be served, or None."""
        self.counts["steps"] += 1
        if not self.waiting:
            self.counts["idle"] += 1
        analyst = self.choose(now, drawn)
        if analyst is None:
            self.counts["stalls"] += bool(self.waiting)
            return None
        served = self.first_of(analyst)
        self.waiting.remove(served)
        return served

    def choose(self, now, drawn):
        return self.waiting[0][0] if self.waiting else None


class Rotation(Model):
    """The slots as a queue: whoever was served or passed over goes to its end."""

    def __init__(self, idle_after):
        super().__init__()
        self.idle_after = idle_after
        self.queue = []
        self.seats = 0
        self.passed = self.reached = Fraction(0)
        self.clock = None

    def join(self, analyst, weight):
        super().join(analyst, weight)
        front = self.queue[0] if self.queue else None
        self.seats += 1
        own = [(Fraction(2 * j + 1, 2 * weight), self.seats, analyst) for j in range(weight)]
        self.queue = sorted(self.queue + own)
        while front and self.queue[0] != front:
            self.queue.append(self.queue.pop(0))

    def leave(self, analyst):
        if self.queue[0][2] == analyst:
            self.reached = self.passed
        self.queue = [slot for slot in self.queue if slot[2] != analyst]
        return super().leave(analyst)

    def choose(self, now, drawn):
        if self.clock is not None:
            self.passed += max(0, Fraction(now) - self.clock)
        self.clock = Fraction(now)
        for *_, analyst in list(self.queue):
            if self.first_of(analyst) is None and analyst not in self.done | self.silent:
                if self.idle_after is None or self.passed - self.reached < self.idle_after:
                    return None
                self.silent.add(analyst)
            self.queue.append(self.queue.pop(0))
            self.reached = self.passed
            if self.first_of(analyst):
                return analyst
        return None


class Lottery(Model):
    """The probabilities laid end to end; the number that was drawn falls into one of them."""

    def __init__(self):
        super().__init__()
        self.parts = {}

    def join(self, analyst, weight):
        super().join(analyst, weight)
        part = Fraction(weight, 10) if self.parts else Fraction(1)
        self.parts = {name: old * (1 - part) for name, old in self.parts.items()}
        self.parts[analyst] = part

    def leave(self, analyst):
        del self.parts[analyst]
        total = sum(self.parts.values())
        self.parts = {name: part / total for name, part in self.parts.items()}
        return super().leave(analyst)

    def choose(self, now, drawn):
        up_to = Fraction(0)
        for analyst, part in self.parts.items():
            up_to += part
            if Fraction(drawn) < up_to:
                return analyst if self.first_of(analyst) else None
        return None


class Chosen(random.Random):
    """A source that draws what the test has chosen."""

    value = 0.0

    def random(self):
        return self.value


class Kind:
    """How a scheduler and its model are made, and how somebody joins with a weight."""

    def __init__(self, make, model, join):
        self.make, self.model, self.join = make, model, join


def with_turns(scheduler, analyst, weight):
    scheduler.join(analyst, turns=weight)


def with_probability(scheduler, analyst, weight):
    scheduler.join(analyst, probability=Fraction(weight, 10))


def simply(scheduler, analyst, weight):
    scheduler.join(analyst)


class OneEach(Rotation):
    def join(self, analyst, weight):
        super().join(analyst, 1)


KINDS = {
    "none": Kind(lambda draw: InOrder(), Model, simply),
    "round robin": Kind(lambda draw: RoundRobin(), lambda: OneEach(None), simply),
    "round robin, not strict": Kind(lambda draw: RoundRobin((), 3), lambda: OneEach(3), simply),
    "weighted": Kind(lambda draw: WeightedRoundRobin({}), lambda: Rotation(None), with_turns),
    "weighted, not strict": Kind(
        lambda draw: WeightedRoundRobin({}, 2), lambda: Rotation(2), with_turns
    ),
    "randomized": Kind(lambda draw: Randomized((), draw), Lottery, with_probability),
}

#: Who does something: the place among those who are there, counted round and round.
PLACE = st.integers(0, 11)
#: Numbers to draw, all over the unit interval and where float and exact boundaries agree.
DRAWN = st.integers(0, 15).map(lambda part: (2 * (65_536 * part + 12_345) + 1) / 2**21)


class Machine(RuleBasedStateMachine):
    """One scheduler, its model, and a clock; items are numbers that are never used twice."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.draw = Chosen()
        self.scheduler = kind.make(self.draw)
        self.model = kind.model()
        self.tickets = {}
        self.items = 0
        self.now = 0
        self.served = []
        self.withdrawn = []
        for weight, analyst in enumerate(START, start=1):
            self.admit(analyst, weight)

    def admit(self, analyst, weight):
        self.kind.join(self.scheduler, analyst, weight)
        self.model.join(analyst, weight)

    def at(self, place):
        return self.model.analysts[place % len(self.model.analysts)]

    @precondition(lambda self: self.model.analysts)
    @rule(place=PLACE, count=st.integers(1, 3))
    def submit(self, place, count):
        analyst = self.at(place)
        for _ in range(count):
            self.tickets[self.items] = self.scheduler.submit(analyst, self.items)
            self.model.submit(analyst, self.items)
            self.items += 1

    @rule(drawn=st.lists(DRAWN, min_size=1, max_size=4))
    def decide(self, drawn):
        for self.draw.value in drawn:
            expected = self.model.decide(self.now, self.draw.value)
            ticket = self.scheduler.next(self.now)
            assert (ticket and (ticket.analyst, ticket.item)) == expected
            if ticket is not None:
                assert ticket == self.tickets.pop(ticket.item)
                self.served.append(ticket.item)

    @rule(seconds=st.sampled_from([1, 1, 2, 4, 0.5, -3, -100]))
    def let_time_pass(self, seconds):
        self.now += seconds

    @precondition(lambda self: self.model.analysts)
    @rule(place=PLACE)
    def say_done(self, place):
        analyst = self.at(place)
        self.scheduler.done(analyst)
        self.model.say_done(analyst)

    @precondition(lambda self: len(self.model.analysts) < len(NAMES))
    @rule(weight=st.integers(1, 4), place=PLACE)
    def join(self, weight, place):
        absent = [name for name in NAMES if name not in self.model.analysts]
        self.admit(absent[place % len(absent)], weight)

    @precondition(lambda self: self.model.analysts)
    @rule(place=PLACE, really=st.sampled_from([False, False, True]))
    def leave(self, place, really):
        if not really:
            return
        analyst = self.at(place)
        gone = self.scheduler.leave(analyst)
        assert [(ticket.analyst, ticket.item) for ticket in gone] == self.model.leave(analyst)
        assert [self.tickets.pop(ticket.item) for ticket in gone] == list(gone)
        self.withdrawn += [ticket.item for ticket in gone]

    @rule()
    def restart(self):
        state = json.loads(json.dumps(self.scheduler.state()))
        self.scheduler = self.kind.make(self.draw)
        self.scheduler.restore(state)
        for analyst, item in self.model.waiting:
            self.tickets[item] = self.scheduler.submit(analyst, item)

    @invariant()
    def the_scheduler_looks_like_the_model(self):
        model, scheduler = self.model, self.scheduler
        assert list(scheduler.analysts) == model.analysts
        assert scheduler.waiting == len(model.waiting)
        assert set(scheduler.state()["done"]) == model.done
        assert set(getattr(scheduler, "silent", ())) == model.silent
        everybody_done = model.done == set(model.analysts)
        assert scheduler.finished == (everybody_done and not model.waiting)
        counts = {name: getattr(scheduler, name) for name in model.counts}
        assert counts == model.counts

    @invariant()
    def nothing_is_lost_or_twice(self):
        waiting = [item for _, item in self.model.waiting]
        assert sorted([*self.served, *self.withdrawn, *waiting]) == list(range(self.items))

    @invariant()
    def whose_turn_it_is_is_who_is_served(self):
        if not isinstance(self.model, Rotation):
            return
        out = self.model.done | self.model.silent
        there = [name for *_, name in self.model.queue if self.model.first_of(name) or name not in out]
        assert self.scheduler.turn == (there[0] if there else None)


@pytest.mark.parametrize("kind", KINDS)
def test_no_interleaving_loses_repeats_or_reorders_a_question(kind):
    """And every decision is the naive model's: in rotation exactly, or whoever was drawn."""
    limits = settings(max_examples=60, stateful_step_count=40, deadline=None)
    machine = partial(Machine, KINDS[kind])
    run_state_machine_as_test(machine, settings=limits)  # type: ignore[arg-type]
