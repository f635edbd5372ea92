"""Release slots: answers leave the server at fixed moments, so that their timing reveals nothing."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import NamedTuple

from sharewell.service.published import ROUNDING


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
