"""Retries: what may be tried again is, for a while, with growing pauses."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from random import SystemRandom
from typing import Any, TypeVar

from sharewell.client.call import Call, M
from sharewell.errors import SharewellError, Unreachable

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Nap:
    """A step of a talk: let some seconds pass."""

    seconds: float


T = TypeVar("T")

#: A talk makes calls and takes naps, and does neither itself: whoever drives it sends in the replies, or
#: throws in what went wrong. So the same talk runs in threads and in event loops.
Talk = Generator[Call[Any] | Nap, Any, T]


class Setback(Exception):
    """A try that failed in a way that another may mend."""

    def __init__(self, error: SharewellError, *, after: float = 0.0, untouched: bool = False) -> None:
        super().__init__(str(error))
        #: What to say when there is no other try.
        self.error = error
        #: How many seconds the service asks to be left alone.
        self.after = after
        #: Whether it is certain that nothing was done.
        self.untouched = untouched


@dataclass(frozen=True)
class Patience:
    """How long to go on trying, and how long to pause in between."""

    seconds: float = 60.0
    #: How long one try may take, beside what the service is asked to wait.
    each: float = 15.0
    first: float = 0.1
    longest: float = 5.0
    #: After how long it is told that something is tried again.
    silent: float = 3.0
    clock: Callable[[], float] = time.monotonic
    #: Between 0 and 1: clients that failed together should not come back together.
    jitter: Callable[[], float] = SystemRandom().random

    def pauses(self) -> Iterator[float]:
        """Pauses that double up to the longest, each shortened by up to a half."""
        pause = self.first
        while True:
            yield pause * (1 + self.jitter()) / 2
            pause = min(2 * pause, self.longest)


def persist(call: Call[M], patience: Patience, *, reach: float = math.inf) -> Talk[M]:
    """Make a call, and make it again after a setback, until patience is over.

    Where nothing answers at all, that is after `reach` seconds already. What cannot be done twice is
    made again only where it is certain that nothing was done.
    """
    begun, told = patience.clock(), False
    for pause in patience.pauses():
        left = max(begun + patience.seconds - patience.clock(), patience.first)
        try:
            reply: M = yield replace(call, timeout=min(patience.each, left) + call.wait + call.takes)
            return reply
        except Setback as setback:
            pause = max(pause, setback.after)
            unreached = isinstance(setback.error, Unreachable)
            most = min(reach, patience.seconds) if unreached else patience.seconds
            over = patience.clock() + pause - begun >= most
            if over or not (call.repeatable or setback.untouched):
                raise setback.error from setback.__cause__
            if not told and patience.clock() + pause - begun >= patience.silent:
                told = True
                _log.warning("%s Trying again, for up to %.0f s.", setback.error.message, most)
        yield Nap(pause)
    raise RuntimeError("Pauses never end.")
