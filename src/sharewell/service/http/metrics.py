"""Metrics for Prometheus: counts of requests and questions, none per analyst, none from the data."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

#: The upper bounds of the histogram's buckets, in seconds.
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)
#: Stands for all unknown paths: there are too many, and they may contain anything.
NO_ROUTE = "none"


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
