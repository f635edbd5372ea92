"""Publishing at slot boundaries: what changed during a slot is seen when the next one begins."""

from __future__ import annotations

import math
import time
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")

#: Which part of a slot before its end counts as its end: boundaries are rounded.
ROUNDING = 1e-6


def slot_start(every: float, now: float | None = None) -> float:
    """When the current slot began; with `every` 0 there are no slots, and it is now.

    Slots are multiples of `every` seconds on the monotonic clock, as are those that release answers.

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
        self._lock = Lock()
        self._value = value
        #: The value that was put last, for curators, who may read the ledger at any time; and when.
        self.latest = value
        self._put_at = -math.inf

    def put(self, value: Value, now: float | None = None) -> None:
        """Publish a value at the end of this slot."""
        now = time.monotonic() if now is None else now
        with self._lock:
            self._advance(now)
            self.latest, self._put_at = value, now

    def get(self, now: float | None = None) -> Value:
        """The value that was put last before this slot began."""
        with self._lock:
            self._advance(now)
            return self._value

    def wait(self) -> None:
        """Wait until what was put so far is published."""
        time.sleep(self._every)

    def _advance(self, now: float | None) -> None:
        if self._put_at <= slot_start(self._every, now):
            self._value = self.latest
