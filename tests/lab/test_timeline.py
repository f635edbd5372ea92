"""The simulator's discrete time, against a step-by-step account of what should happen."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell.errors import SharingError
from sharewell.schedulers import InOrder, Randomized, RoundRobin, Scheduler, WeightedRoundRobin
from sharewell_lab.timeline import run

NAMES = ["ann", "bob", "cat"]
STREAMS = st.lists(st.sampled_from(NAMES), max_size=40).map(
    lambda names: [(name, at) for at, name in enumerate(names)]
)
KINDS: dict[str, Callable[[], Scheduler[Any]]] = {
    "none": lambda: InOrder[Any](NAMES),
    "round robin": lambda: RoundRobin[Any](NAMES),
    "round robin, not strict": lambda: RoundRobin[Any](NAMES, idle_after=3),
    "weighted": lambda: WeightedRoundRobin[Any]({"ann": 3, "bob": 1, "cat": 2}),
    "randomized": lambda: Randomized[Any](NAMES, random.Random(1)),
    "randomized, as given": lambda: Randomized[Any](
        {"ann": 0.1, "bob": 0.2, "cat": 0.7}, random.Random(1)
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@given(stream=STREAMS)
def test_every_question_is_served_once_after_it_came_and_in_its_analysts_order(kind, stream):
    scheduler = KINDS[kind]()
    timeline = run(scheduler, iter(stream))
    assert scheduler.finished
    assert Counter(timeline.order) == Counter(stream)
    for name in NAMES:
        served = [pair for pair in timeline.order if pair[0] == name]
        assert served == [pair for pair in stream if pair[0] == name]
    assert list(timeline.arrived_at) == [stream.index(pair) + 1 for pair in timeline.order]
    assert all(wait >= 0 for wait in timeline.waits)
    assert sorted(set(timeline.served_at)) == list(timeline.served_at)
    assert timeline.steps == max([len(stream), *timeline.served_at])
    assert timeline.steps == scheduler.steps
    assert timeline.stalls == scheduler.stalls


@given(STREAMS)
def test_in_order_of_arrival_everything_is_served_at_once(stream):
    timeline = run(InOrder[Any](NAMES), stream)
    assert timeline.order == tuple(stream)
    assert timeline.steps == len(stream)
    assert timeline.stalls == 0
    assert set(timeline.waits) <= {0}


def by_hand(stream):
    """Round robin, step by step: the served pairs and their steps, and the number of stalls."""
    buffers: dict[str, list[Any]] = {name: [] for name in NAMES}
    rotation = list(NAMES)
    found: list[tuple[Any, int]] = []
    step = stalls = 0
    while len(found) < len(stream) or step < len(stream):
        if step < len(stream):
            buffers[stream[step][0]].append(stream[step])
        step += 1
        to_come = {name for name, _ in stream[step:]}
        while rotation and not buffers[rotation[0]] and rotation[0] not in to_come:
            rotation.pop(0)
        if rotation and buffers[rotation[0]]:
            found.append((buffers[rotation[0]].pop(0), step))
            rotation.append(rotation.pop(0))
        else:
            stalls += any(buffers.values())
    return found, stalls


@given(STREAMS)
def test_round_robin_is_as_by_hand(stream):
    timeline = run(RoundRobin[Any](NAMES), stream)
    found, stalls = by_hand(stream)
    assert list(zip(timeline.order, timeline.served_at, strict=True)) == found
    assert timeline.stalls == stalls


def test_analysts_are_done_with_their_last_question():
    """Nobody waits for bob, who asks nothing, nor for ann after her last."""
    stream = [("ann", 0), ("cat", 1), ("cat", 2)]
    timeline = run(RoundRobin[Any](NAMES), stream)
    assert timeline.order == tuple(stream)
    assert (timeline.steps, timeline.stalls) == (3, 0)


def test_a_flood_waits_for_the_others():
    stream = [("ann", at) for at in range(4)] + [("bob", 4), ("bob", 5)]
    timeline = run(RoundRobin[Any](NAMES[:2]), stream)
    assert [item for _, item in timeline.order] == [0, 4, 1, 5, 2, 3]
    assert timeline.served_at == (1, 5, 6, 7, 8, 9)
    assert timeline.waits == (0, 0, 4, 1, 5, 5)
    assert (timeline.steps, timeline.stalls) == (9, 3)


def test_time_is_the_number_of_the_step():
    stream = [("ann", at) for at in range(6)] + [("bob", 6)]
    timeline = run(RoundRobin[Any](NAMES[:2], idle_after=3), stream)
    assert timeline.served_at[:4] == (1, 4, 5, 6)
    assert timeline.stalls == 2


def test_a_scheduler_may_be_used_again():
    scheduler = RoundRobin[int](NAMES)
    stream = [("ann", 0), ("ann", 1), ("bob", 2), ("ann", 3), ("cat", 4)]
    first = run(scheduler, stream)
    assert first.stalls > 0
    assert scheduler.turn is None
    second = run(scheduler, [("bob", 5), ("cat", 6)])
    assert second.order == (("bob", 5), ("cat", 6))
    assert second.arrived_at == second.served_at == (1, 2)
    assert (second.steps, second.stalls) == (2, 0)


def test_a_timeline_is_frozen():
    timeline = run(InOrder[Any](NAMES), [("ann", [])])
    with pytest.raises(FrozenInstanceError):
        timeline.steps = 3  # type: ignore[misc]


def test_an_empty_stream_takes_no_time():
    timeline = run(RoundRobin[Any](NAMES), [])
    assert (timeline.order, timeline.steps, timeline.stalls) == ((), 0, 0)


def test_strangers_are_refused_before_anything_happens():
    scheduler = InOrder[int](NAMES)
    with pytest.raises(SharingError, match=r"questions of zoe.*There are ann, bob, cat"):
        run(scheduler, [("ann", 1), ("zoe", 2)])
    assert scheduler.steps == scheduler.waiting == 0


def test_questions_of_before_are_refused():
    scheduler = InOrder[int](NAMES)
    scheduler.submit("ann", 1)
    with pytest.raises(SharingError, match="not of the stream"):
        run(scheduler, [("ann", 2)])


class Lazy(Scheduler[int]):
    """Serves nobody."""

    name = "lazy"

    def _choose(self, now):
        return None


class Unlucky(Lazy):
    """Serves nobody, for want of luck."""

    name = "unlucky"
    paced = True


def test_a_scheduler_that_serves_nobody_is_given_up():
    lazy, unlucky = Lazy(NAMES), Unlucky(NAMES)
    for scheduler, patience, steps in [(lazy, 1000, 3), (unlucky, 1000, 1002)]:
        with pytest.raises(SharingError, match=f"The {scheduler.name} scheduler serves no question"):
            run(scheduler, [("ann", 1), ("ann", 2)], patience)
        assert scheduler.steps == steps
        assert scheduler.waiting == 2


def test_luck_is_waited_for():
    scheduler = Randomized[Any]({"ann": "0.999", "bob": "0.001"}, random.Random(3))
    timeline = run(scheduler, [("bob", 1), ("bob", 2)])
    assert timeline.order == (("bob", 1), ("bob", 2))
    assert timeline.stalls == timeline.steps - 2 > 100
