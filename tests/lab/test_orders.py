"""The orders found at once are those of the real schedulers, played step by step."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sharewell.schedulers import InOrder, Randomized, RoundRobin, Scheduler, WeightedRoundRobin
from sharewell_lab import orders
from sharewell_lab.timeline import run

STREAMS = st.lists(st.integers(0, 3), max_size=60)
PRESENT = st.lists(st.booleans(), min_size=4, max_size=4).filter(any)


class Replay(random.Random):
    """Draws numbers from a script."""

    def __init__(self, numbers):
        super().__init__()
        self._numbers = iter(numbers)

    def random(self):
        return next(self._numbers)


def stepped(scheduler, stream):
    timeline = run(scheduler, [(str(analyst), at) for at, analyst in enumerate(stream)])
    return [item for _, item in timeline.order], timeline.steps, timeline.stalls


def found(order):
    return order.places.tolist(), order.steps, order.stalls


def only(stream, present):
    return np.array([analyst for analyst in stream if present[analyst]], dtype=np.int64)


def names(present):
    return [str(analyst) for analyst, here in enumerate(present) if here]


@given(STREAMS)
def test_without_a_scheduler_questions_are_served_as_they_come(stream):
    assert found(orders.in_order(np.array(stream))) == stepped(InOrder(list("0123")), stream)


@given(STREAMS, PRESENT)
def test_the_rotation_is_round_robin(stream, present):
    there = only(stream, present)
    turns = [int(here) for here in present]
    assert found(orders.rotation(there, turns)) == stepped(RoundRobin(names(present)), there.tolist())


@given(STREAMS, PRESENT, st.lists(st.integers(1, 4), min_size=4, max_size=4))
def test_the_rotation_with_turns_is_weighted_round_robin(stream, present, turns):
    there = only(stream, present)
    mine = [count if here else 0 for count, here in zip(turns, present, strict=True)]
    scheduler: Scheduler[int] = WeightedRoundRobin({name: turns[int(name)] for name in names(present)})
    assert found(orders.rotation(there, mine)) == stepped(scheduler, there.tolist())


@given(STREAMS, PRESENT, st.integers(0, 2**32), st.booleans())
def test_the_drawn_order_is_the_randomized_schedulers(stream, present, seed, uniform):
    there = only(stream, present)
    weights = np.array([1, 1, 1, 1] if uniform else [1, 2, 4, 8]) * np.array(present)
    chances = weights / weights.sum()
    numbers = np.random.default_rng(seed).random(100_000)
    used = 0

    def draws(count):
        nonlocal used
        used += count
        return numbers[used - count : used]

    by_name = {name: float(chances[int(name)]) for name in names(present)}
    scheduler: Scheduler[int] = Randomized(names(present) if uniform else by_name, Replay(numbers))
    assert found(orders.drawn(there, chances, draws)) == stepped(scheduler, there.tolist())


@given(STREAMS, PRESENT, st.integers(0, 2**32), st.booleans())
def test_the_order_drawn_among_the_active_is_that_without_those_who_are_done(
    stream, present, seed, uniform
):
    there = only(stream, present)
    weights = np.array([1, 1, 1, 1] if uniform else [1, 2, 4, 8]) * np.array(present)
    chances = weights / weights.sum()
    numbers = np.random.default_rng(seed).random(100_000)
    used = 0

    def draws(count):
        nonlocal used
        used += count
        return numbers[used - count : used]

    assert found(orders.drawn_among_active(there, chances, draws)) == without_the_done(
        there.tolist(), names(present) if uniform else chances, numbers
    )


def without_the_done(stream, who, numbers):
    """Play a stream through the real scheduler, from which those leave whose last question is served."""
    by_name = who if isinstance(who, list) else {str(at): float(c) for at, c in enumerate(who) if c}
    scheduler: Scheduler[int] = Randomized(by_name, Replay(numbers))
    left = {name: stream.count(int(name)) for name in scheduler.analysts}
    order: list[int] = []
    step = 0
    for name in scheduler.analysts:
        if not left[name]:
            scheduler.leave(name)
    while len(order) < len(stream):
        if step < len(stream):
            scheduler.submit(str(stream[step]), step)
        step += 1
        ticket = scheduler.next(step)
        if ticket is not None:
            order.append(ticket.item)
            left[ticket.analyst] -= 1
            if not left[ticket.analyst]:
                scheduler.leave(ticket.analyst)
    return order, step, step - len(order)


def test_turns_are_in_proportion_to_the_shares_of_those_present():
    everybody = np.ones(3, dtype=np.bool_)
    assert orders.turns_of([0.5, 0.3, 0.2], everybody) == [5, 3, 2]
    assert orders.turns_of([0.5, 0.3, 0.2], np.array([True, False, True])) == [5, 0, 2]
    assert orders.turns_of([0.1 / 3] * 3, everybody) == [1, 1, 1]
