"""Rate limiting: a token bucket for each name."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from sharewell.errors import ConfigError

#: The number of names that a limiter remembers.
MAX_NAMES = 10_000


class RateLimiter:
    """A token bucket for each name: `burst` requests at once, `rate` a second in the long run.

    A bucket is stored as the time at which it is full again: one number while it refills, nothing once
    it is full. With more than `max_names` busy names, the least recently seen starts over with a full
    bucket.

    >>> limiter = RateLimiter(rate=2, burst=1, clock=lambda: 0.0)
    >>> limiter.take("ann"), limiter.take("ann"), limiter.take("ben")
    (0.0, 0.5, 0.0)
    """

    def __init__(
        self,
        rate: float,
        burst: float,
        *,
        max_names: int = MAX_NAMES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not (0 < rate < math.inf and 1 <= burst < math.inf and max_names >= 1):
            raise ConfigError(
                "A rate limiter needs a positive rate and a burst of at least 1.",
                hint="For example: a rate of 50 a second and a burst of 100.",
            )
        self._step = 1 / rate
        self._depth = burst / rate
        self._max_names = max_names
        self._clock = clock
        self._full_at: OrderedDict[str, float] = OrderedDict()
        self._lock = Lock()

    def take(self, name: str) -> float:
        """Take one request: 0.0 if it may proceed, else the seconds to wait; nothing is taken then."""
        with self._lock:
            now = self._clock()
            known = self._full_at.get(name)
            full_at = (now if known is None or known < now else known) + self._step
            # Every step is rounded: a whole burst must not fail by the last bits.
            missing = full_at - now - self._depth
            if missing > 1e-12 * (abs(now) + self._depth):
                return missing
            self._full_at[name] = full_at
            if known is None:
                self._forget(now)
            else:
                self._full_at.move_to_end(name)
            return 0.0

    def __len__(self) -> int:
        return len(self._full_at)

    def _forget(self, now: float) -> None:
        """Drop buckets that are full again, two at a time, and those above the limit."""
        for _ in range(2):
            oldest, full_at = next(iter(self._full_at.items()))
            if full_at > now and len(self._full_at) <= self._max_names:
                return
            del self._full_at[oldest]
