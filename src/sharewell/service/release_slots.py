"""Release slots: answers are released, and changes published, at fixed moments: timing reveals nothing.

Slots are multiples of `service.release_every` seconds on the monotonic clock, which is the event loop's.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from threading import RLock
from typing import Generic, NamedTuple, TypeVar

Value = TypeVar("Value")

#: Which part of a slot before its end counts as its end: boundaries are rounded.
ROUNDING = 1e-6


def slot_start(every: float, now: float | None = None) -> float:
    """When the current slot began; with `every` 0 there are no slots, and it is now.

    >>> slot_start(0.5, now=7.31)
    7.0
    """
    now = time.monotonic() if now is None else now
    return math.floor(now / every + ROUNDING) * every if every else now


class Published(Generic[Value]):
    """A value that changes only where a release slot ends; safe from many threads.

    Reading the value as often as one likes shows in which slot it changed, and no more. With `every` 0 a
    change is seen at once: for a session in the same process, which sees the clock anyway.

    >>> budget = Published("all", every=0.1)
    >>> budget.put("half", now=7.31)
    >>> budget.get(now=7.39), budget.latest, budget.get(now=7.41)
    ('all', 'half', 'half')
    """

    def __init__(self, value: Value, every: float) -> None:
        self._every = every
        self._lock = RLock()
        #: The value that was put last, for curators, who may read the ledger at any time; when; and
        #: what is seen until that slot has ended.
        self.latest = self._before = value
        self._put_at = -math.inf

    def put(self, value: Value, now: float | None = None) -> None:
        """Publish a value at the end of this slot."""
        now = time.monotonic() if now is None else now
        with self._lock:
            self._before, self.latest, self._put_at = self.get(now), value, now

    def get(self, now: float | None = None) -> Value:
        """The value that was put last before this slot began."""
        with self._lock:
            return self.latest if self._put_at <= slot_start(self._every, now) else self._before

    def wait(self) -> None:
        """Wait until what was put so far is published."""
        time.sleep(self._every)


class _Waiter(NamedTuple):
    until: Callable[[], bool] | None
    deadline: float
    released: asyncio.Future[None]


class ReleaseSlots:
    """The release slots of one dataset: multiples of `every` seconds on the event loop's clock.

    One timer runs while any request waits, and checks all waiting requests in each slot. Nothing else
    wakes them, so the time of a response shows in which slot its answer was ready, and no more.
    """

    def __init__(self, every: float) -> None:
        self.every = every
        self._waiting: list[_Waiter] = []
        self._timer: asyncio.TimerHandle | None = None
        self._slot = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def wait(
        self, until: Callable[[], bool] | None = None, seconds: float = math.inf
    ) -> asyncio.Future[None]:
        """Complete in the first slot in which `until` is true or time is up; without it, in the next."""
        loop = asyncio.get_running_loop()
        released = loop.create_future()
        self._waiting.append(_Waiter(until, loop.time() + seconds, released))
        if self._timer is None:
            self._start_timer(loop)
        return released

    def _start_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        self._slot = max(self._slot, math.floor(loop.time() / self.every + ROUNDING)) + 1
        self._timer = loop.call_at(self._slot * self.every, self._release, loop)

    def _release(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        if now < self._slot * self.every - ROUNDING * self.every:
            # uvloop rounds to milliseconds. What is released must be published.
            self._timer = loop.call_at(self._slot * self.every, self._release, loop)
            return
        remaining = []
        for waiter in self._waiting:
            if waiter.released.done():
                continue
            if waiter.until is None or now >= waiter.deadline or waiter.until():
                waiter.released.set_result(None)
            else:
                remaining.append(waiter)
        self._waiting = remaining
        if remaining:
            self._start_timer(loop)
