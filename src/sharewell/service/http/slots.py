"""Release slots: answers are given out at set moments, so that what they took tells nothing."""

from __future__ import annotations

import asyncio
import math
from typing import Literal, NamedTuple, Protocol

Wanted = Literal["ready", "done"]


class Awaited(Protocol):
    """What is looked at in every slot: a question on its way."""

    @property
    def ready(self) -> bool:
        """Whether there is something to tell."""

    @property
    def done(self) -> bool:
        """Whether it was answered or refused."""


class _Waiter(NamedTuple):
    """Somebody who waits: for what, until when, and how they are told."""

    ticket: Awaited | None
    wanted: Wanted
    deadline: float
    told: asyncio.Future[None]

    def is_due(self, now: float, closing: bool) -> bool:
        if self.ticket is None or now >= self.deadline or getattr(self.ticket, self.wanted):
            return True
        # What was handed in is finished before a service closes; who only watches need not wait for it.
        return closing and self.wanted == "done"


class Slots:
    """When one dataset gives out answers: at multiples of `every` seconds of the loop's clock.

    One timer runs while anybody waits, and looks at all tickets in each slot. Nothing else wakes
    those who wait, so the moment of an answer says in which slot it was ready, and no more.
    """

    def __init__(self, every: float) -> None:
        self.every = every
        self._waiting: list[_Waiter] = []
        self._timer: asyncio.TimerHandle | None = None
        self._slot = 0
        self._closing = False

    def __len__(self) -> int:
        return len(self._waiting)

    def ready(self, ticket: Awaited) -> asyncio.Future[None]:
        """Done in the first slot in which there is something to tell of a ticket."""
        return self._wait(ticket, "ready", math.inf)

    def done(self, ticket: Awaited, seconds: float) -> asyncio.Future[None]:
        """Done in the first slot in which a ticket is done, or the time is up, or the service closes."""
        return self._wait(ticket, "done", asyncio.get_running_loop().time() + seconds)

    def next(self) -> asyncio.Future[None]:
        """Done in the next slot."""
        return self._wait(None, "done", 0.0)

    def close(self) -> None:
        """Let those go who only watch; who asked still gets an answer."""
        self._closing = True

    def _wait(self, ticket: Awaited | None, wanted: Wanted, deadline: float) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        told = loop.create_future()
        self._waiting.append(_Waiter(ticket, wanted, deadline, told))
        if self._timer is None:
            self._set_timer(loop)
        return told

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        # A timer may fire a little early: the same slot is not to come twice.
        self._slot = max(self._slot, math.floor(loop.time() / self.every)) + 1
        self._timer = loop.call_at(self._slot * self.every, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now, still = loop.time(), []
        for waiter in self._waiting:
            if waiter.told.done():
                continue
            if waiter.is_due(now, self._closing):
                waiter.told.set_result(None)
            else:
                still.append(waiter)
        self._waiting = still
        if still:
            self._set_timer(loop)
