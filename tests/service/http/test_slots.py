"""Release slots: on a loop whose clock is ours, so that every moment is exact."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell.service.http.monitoring import LoopDelay
from sharewell.service.release_slots import ReleaseSlots as Slots
from tests.service.http.our_clock import OurClock


@dataclass
class Question:
    """Ready and done at moments of the loop's clock."""

    loop: OurClock
    ready_at: float = float("inf")
    done_at: float = float("inf")

    def is_ready(self) -> bool:
        return self.loop.now >= min(self.ready_at, self.done_at)

    def is_done(self) -> bool:
        return self.loop.now >= self.done_at


@pytest.fixture
def loop():
    with asyncio.Runner(loop_factory=OurClock) as runner:
        yield runner


def when(runner, wait) -> float:
    """The moment at which a wait is over."""

    async def run() -> float:
        await wait(runner.get_loop())
        return runner.get_loop().time()

    return runner.run(run())


@given(
    every=st.sampled_from([0.001, 0.01, 0.037, 0.5, 10.0]),
    begins=st.floats(0, 100),
    takes=st.floats(0, 30),
)
def test_an_answer_is_told_at_the_first_multiple_after_it_is_there(every, begins, takes):
    with asyncio.Runner(loop_factory=OurClock) as runner:
        loop: Any = runner.get_loop()
        loop.now += begins
        start = loop.now

        told = when(
            runner, lambda loop: Slots(every).wait(Question(loop, ready_at=start + takes).is_ready)
        )

        slots = told / every
        assert abs(slots - round(slots)) < 1e-6
        assert start + takes <= told + 1e-9
        assert told <= start + takes + every * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("takes", [0.0, 0.001, 0.004, 0.0099])
def test_whatever_takes_less_than_a_slot_takes_one(loop, takes):
    assert when(
        loop, lambda at: Slots(0.01).wait(Question(at, ready_at=at.now + takes).is_ready)
    ) == pytest.approx(1000.01)


def test_an_answer_that_was_there_before_waits_for_a_slot_too(loop):
    loop.get_loop().now = 1000.003
    assert when(loop, lambda at: Slots(0.01).wait(Question(at, ready_at=0).is_ready)) == pytest.approx(
        1000.01
    )
    loop.get_loop().now = 1000.013
    assert when(loop, lambda at: Slots(0.01).wait()) == pytest.approx(1000.02)


def test_who_waits_for_the_answer_is_not_told_that_the_question_waits_its_turn(loop):
    asked = Question(loop.get_loop(), ready_at=1000.0, done_at=1003.0)
    slots = Slots(0.5)
    assert when(loop, lambda at: slots.wait(asked.is_ready)) == pytest.approx(1000.5)
    assert when(loop, lambda at: slots.wait(asked.is_done, 60)) == pytest.approx(1003.0)


def test_time_that_is_up_is_told_in_a_slot(loop):
    assert when(loop, lambda at: Slots(0.5).wait(Question(at).is_done, 1.2)) == pytest.approx(1001.5)


def test_all_who_are_ready_are_told_in_the_same_slot_by_one_timer(loop):
    async def run():
        at: Any = asyncio.get_running_loop()
        slots = Slots(0.01)
        timers = []
        call_at = at.call_at

        def counted(*given, **named):
            timers.append(given)
            return call_at(*given, **named)

        at.call_at = counted
        told = []

        async def wait(takes):
            await slots.wait(Question(at, ready_at=1000 + takes).is_ready)
            told.append(round(at.time(), 6))

        await asyncio.gather(*(wait(takes) for takes in (0.001, 0.009, 0.012, 0.025, 0.004)))
        return told, len(timers), len(slots)

    assert loop.run(run()) == ([1000.01] * 3 + [1000.02, 1000.03], 3, 0)


def test_who_gives_up_is_forgotten_and_the_timer_ends_with_the_last(loop):
    async def run():
        at: Any = asyncio.get_running_loop()
        slots = Slots(0.01)
        waiting = slots.wait(Question(at).is_ready)
        waiting.cancel()
        await asyncio.sleep(0.05)
        return len(slots), slots._timer

    assert loop.run(run()) == (0, None)


def test_the_delay_of_a_busy_loop_is_known_while_it_lasts_and_after(loop):
    async def run():
        at: Any = asyncio.get_running_loop()
        delay = LoopDelay()
        delay.start()
        await asyncio.sleep(1.0)
        idle = delay.seconds()
        at.now += 3.0  # as if one piece of work had taken so long
        during = delay.seconds()
        await asyncio.sleep(0)
        after = delay.seconds()
        await asyncio.sleep(1.0)
        recovered = delay.seconds()
        delay.stop()
        return idle, during, after, recovered

    idle, during, after, recovered = loop.run(run())
    assert idle == recovered == pytest.approx(0)
    assert 5.6 < during <= after < 6.2, "once until the socket is read, once until the task runs"
