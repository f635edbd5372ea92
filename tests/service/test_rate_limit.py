"""Limits: how fast somebody may ask, and how many questions may wait."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell.errors import ConfigError
from sharewell.service.rate_limit import RateLimiter

NAN, INFINITY = float("nan"), float("inf")


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Bucket:
    """The slow and obvious way: a level that rises with time and falls with every take."""

    def __init__(self, rate: Fraction, burst: Fraction) -> None:
        self.rate, self.burst = rate, burst
        self.level, self.at = burst, Fraction(0)

    def take(self, now: Fraction) -> Fraction:
        self.level = min(self.burst, self.level + (now - self.at) * self.rate)
        self.at = now
        if self.level < 1:
            return (1 - self.level) / self.rate
        self.level -= 1
        return Fraction(0)


#: Steps of time that floats hold exactly, so that the two ways must agree to the last bit.
STEPS = st.integers(0, 40).map(lambda sixteenths: sixteenths / 16)


@given(
    st.sampled_from([0.5, 1.0, 2.0, 4.0]),
    st.integers(2, 12).map(lambda halves: halves / 2),
    st.lists(st.tuples(STEPS, st.sampled_from("ab")), max_size=60),
)
def test_a_pace_is_a_bucket_for_each_name(rate, burst, takes):
    clock = Clock()
    pace = RateLimiter(rate, burst, clock=clock)
    buckets = {name: Bucket(Fraction(rate), Fraction(burst)) for name in "ab"}
    for step, name in takes:
        clock.now += step
        assert pace.take(name) == buckets[name].take(Fraction(clock.now))


@given(
    st.floats(0.01, 1e6),
    st.floats(1, 1e3),
    st.floats(0, 1e9),
    st.integers(1, 200),
)
def test_a_whole_burst_goes_through_and_waiting_as_told_is_enough(rate, burst, now, more):
    clock = Clock(now)
    pace = RateLimiter(rate, burst, clock=clock)
    for _ in range(min(int(burst), 50)):
        assert pace.take("ann") == 0.0
    for _ in range(more):
        while wait := pace.take("ann"):
            assert 0 < wait <= 1 / rate * (1 + 1e-9) + 1e-12 * now
            clock.now += wait


def test_one_who_is_too_fast_holds_nobody_else_up():
    pace = RateLimiter(1, 2, clock=Clock())
    assert [pace.take("ann") for _ in range(3)] == [0.0, 0.0, 1.0]
    assert [pace.take("ben") for _ in range(3)] == [0.0, 0.0, 1.0]


def test_asking_too_fast_costs_nothing():
    clock = Clock()
    pace = RateLimiter(1, 1, clock=clock)
    pace.take("ann")
    for _ in range(100):
        assert pace.take("ann") == 1.0
    clock.now = 1.0
    assert pace.take("ann") == 0.0


def test_full_buckets_are_forgotten():
    clock = Clock()
    pace = RateLimiter(10, 1, clock=clock)
    for name in range(1_000):
        clock.now += 0.05
        assert pace.take(str(name)) == 0.0
    assert len(pace) <= 4


def test_however_many_names_there_are_the_memory_is_bounded():
    pace = RateLimiter(1, 1, max_names=100, clock=Clock())
    for name in range(1_000):
        pace.take(str(name))
    assert len(pace) == 100
    assert pace.take("999") == 1.0


def test_many_threads_get_no_more_than_the_burst_one_at_a_time():
    inside, crowds = [0], []

    def slow_clock() -> float:
        inside[0] += 1
        time.sleep(0.0005)
        crowds.append(inside[0])
        inside[0] -= 1
        return 0.0

    pace = RateLimiter(1, 50, clock=slow_clock)
    with ThreadPoolExecutor(8) as pool:
        waits = list(pool.map(lambda _: pace.take("ann"), range(200)))
    assert waits.count(0.0) == 50
    assert set(crowds) == {1}


@pytest.mark.parametrize(
    ("rate", "burst"),
    [(0, 1), (-1, 1), (NAN, 1), (INFINITY, 1), (1, 0.5), (1, NAN), (1, INFINITY)],
)
def test_a_pace_that_makes_no_sense_is_refused(rate, burst):
    with pytest.raises(ConfigError, match="positive rate"):
        RateLimiter(rate, burst)
