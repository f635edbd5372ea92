"""Publishing at slot boundaries: what changed during a slot is seen when the next one begins."""

from __future__ import annotations

import time
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Published(Generic[Value]):
    """A value that changes only where a release slot ends; safe from many threads.

    Slots are multiples of `every` seconds on the monotonic clock, as are those that release answers.
    So reading the value as often as one likes shows in which slot it changed, and no more. With `every`
    0 a change is seen at once: for a session in the same process, which sees the clock anyway.

    >>> budget = Published("all", every=0.1)
    >>> budget.put("half", now=7.31)
    >>> budget.get(now=7.39), budget.latest(), budget.get(now=7.41)
    ('all', 'half', 'half')
    """

    def __init__(self, value: Value, every: float) -> None:
        self._every = every
        self._lock = Lock()
        self._value = self._next = value
        #: From which slot on the next value is seen.
        self._from = 0.0

    def put(self, value: Value, now: float | None = None) -> None:
        """Publish a value at the end of this slot."""
        slot = self._slot(now)
        with self._lock:
            self._advance(slot)
            self._next, self._from = value, slot + 1 if self._every else slot

    def get(self, now: float | None = None) -> Value:
        """The value that was put last before this slot began."""
        slot = self._slot(now)
        with self._lock:
            self._advance(slot)
            return self._value

    def latest(self) -> Value:
        """The value that was put last: for curators, who may read the ledger at any time."""
        with self._lock:
            return self._next

    def _slot(self, now: float | None) -> float:
        return (time.monotonic() if now is None else now) // self._every if self._every else 0.0

    def _advance(self, slot: float) -> None:
        if slot >= self._from:
            self._value = self._next
