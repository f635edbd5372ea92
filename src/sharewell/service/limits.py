"""Limits: how fast somebody may ask."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from sharewell.errors import ConfigError

#: How many names a pace remembers at the most.
MOST_NAMES = 10_000


class Pace:
    """A token bucket for each name: `burst` at once, and `rate` a second in the long run.

    A bucket is known by the moment at which it will be full again, so that it costs one number, and
    nothing at all once it is full. Where more names than `most_names` are busy at a time, the one that
    was heard of least recently begins anew with a full bucket.

    >>> pace = Pace(rate=2, burst=1, clock=lambda: 0.0)
    >>> pace.take("ann"), pace.take("ann"), pace.take("ben")
    (0.0, 0.5, 0.0)
    """

    def __init__(
        self,
        rate: float,
        burst: float,
        *,
        most_names: int = MOST_NAMES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not (0 < rate < math.inf and 1 <= burst < math.inf and most_names >= 1):
            raise ConfigError(
                "A pace needs a positive rate and a burst of at least 1.",
                hint="With 50 a second and a burst of 100, say.",
            )
        self._step = 1 / rate
        self._depth = burst / rate
        self._most_names = most_names
        self._clock = clock
        self._full_at: OrderedDict[str, float] = OrderedDict()
        self._lock = Lock()

    def take(self, who: str) -> float:
        """Take one: 0.0 where it may go on, else the seconds to wait; nothing is taken then."""
        with self._lock:
            now = self._clock()
            known = self._full_at.get(who)
            full_at = (now if known is None or known < now else known) + self._step
            # Every step is rounded: a whole burst must not fail by the last bits.
            missing = full_at - now - self._depth
            if missing > 1e-12 * (abs(now) + self._depth):
                return missing
            self._full_at[who] = full_at
            if known is None:
                self._forget(now)
            else:
                self._full_at.move_to_end(who)
            return 0.0

    def __len__(self) -> int:
        return len(self._full_at)

    def _forget(self, now: float) -> None:
        """Let go of buckets that are full again, a few at a time, and of those that are too many."""
        for _ in range(2):
            oldest, full_at = next(iter(self._full_at.items()))
            if full_at > now and len(self._full_at) <= self._most_names:
                return
            del self._full_at[oldest]
