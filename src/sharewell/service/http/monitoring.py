"""Monitoring: metrics for Prometheus, the delay of the event loop, and probes of the ledgers.

No metric is per analyst, and none comes from the data.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Collection, Mapping
from threading import Event, Thread

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from sharewell.errors import LedgerError, LedgerInUse, LedgerUnavailable
from sharewell.service.dataset import DatasetService

#: The upper bounds of the histogram's buckets, in seconds.
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)
#: Stands for all unknown paths: there are too many, and they may contain anything.
NO_ROUTE = "none"
#: How often the delay of the event loop is measured, in seconds.
DELAY_INTERVAL = 0.1
#: How often the ledgers are probed, and how long a probe or a commit may take, in seconds.
PROBE_INTERVAL, PROBE_SECONDS = 2.0, 5.0


class Metrics:
    """The counters of one application, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "sharewell_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "sharewell_request_seconds",
            "Seconds from the head of a request to the end of its response.",
            ("method", "route"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self.questions = Counter(
            "sharewell_questions",
            "Questions asked, by outcome: answered, refused or waiting.",
            ("dataset", "outcome"),
            registry=self._registry,
        )
        self._waiting = Gauge(
            "sharewell_waiting_tickets",
            "Questions waiting for their turn.",
            ("dataset",),
            registry=self._registry,
        )

    def count_request(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count a request; all unknown paths share one label."""
        if route is None:
            method, route = "any", NO_ROUTE
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def render(self, waiting: Mapping[str, int]) -> bytes:
        """All metrics in Prometheus' text format, with the waiting questions of each dataset."""
        for dataset, count in waiting.items():
            self._waiting.labels(dataset).set(count)
        return generate_latest(self._registry)


class LoopDelay:
    """How late the event loop handles what arrives, measured by a timer that should fire every interval.

    Under more load than the loop can handle, requests wait unseen in the buffers of their sockets.
    """

    def __init__(self) -> None:
        self._last = 0.0
        self._due = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to measure the running event loop."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._last, self._due = max(0.0, now - self._due), now + DELAY_INTERVAL
        self._timer = loop.call_at(self._due, self.start)

    def seconds(self) -> float:
        """About how long the request that is handled now has waited for the loop.

        It waits twice: until its socket is read, and until its task runs.
        """
        return 2 * (self._last + max(0.0, asyncio.get_running_loop().time() - self._due))

    def stop(self) -> None:
        """End measuring."""
        if self._timer is not None:
            self._timer.cancel()


class LedgerMonitor:
    """Probes the ledgers of all datasets, in a thread of its own: a store that hangs stops nothing else.

    `lost` is called when another process has taken a ledger over.
    """

    def __init__(
        self, services: Collection[DatasetService], lost: Callable[[LedgerInUse], object]
    ) -> None:
        self._services = services
        self._lost = lost
        self._failure: LedgerError | None = None
        self._probed_at = time.monotonic()
        self._stopped = Event()
        # A daemon: a probe that hangs must not keep the process from ending.
        self._thread = Thread(target=self._run, name="ledger-monitor", daemon=True)

    def start(self) -> None:
        """Begin to probe."""
        self._thread.start()

    def stop(self) -> None:
        """End after the probe in progress."""
        self._stopped.set()

    def require_ready(self) -> None:
        """Raise the error of the last probe, or that the next one is overdue."""
        if self._failure is not None:
            raise self._failure
        if time.monotonic() - self._probed_at > PROBE_INTERVAL + PROBE_SECONDS:
            raise LedgerUnavailable("The ledger does not respond.", hint="See the service's log.")

    def _run(self) -> None:
        while not self._stopped.wait(PROBE_INTERVAL):
            self._failure = self._probe()
            self._probed_at = time.monotonic()
            if isinstance(self._failure, LedgerInUse):
                self._lost(self._failure)

    def _probe(self) -> LedgerError | None:
        try:
            for service in self._services:
                service.probe(PROBE_SECONDS)
        except LedgerError as error:
            return error
        return None
