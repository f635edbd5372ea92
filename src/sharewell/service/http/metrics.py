"""Metrics: what is counted about requests, for Prometheus; nothing per analyst, nothing of the data."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from sharewell.service.http.replies import Reply

KIND = CONTENT_TYPE_LATEST.encode()
#: The upper ends of the histogram's buckets, in seconds.
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)
#: Stands for all paths that lead nowhere: a path may hold anything, and there are too many of them.
NO_ROUTE = "none"


class Metrics:
    """Counters of one application, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "sharewell_requests",
            "Requests that were replied to.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "sharewell_request_seconds",
            "From the head of a request to the end of its reply.",
            ("method", "route"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._questions = Counter(
            "sharewell_questions",
            "Questions that were asked, by how they ended, or that they wait.",
            ("dataset", "outcome"),
            registry=self._registry,
        )
        self._waiting = Gauge(
            "sharewell_waiting_tickets",
            "Questions that wait for their turn.",
            ("dataset",),
            registry=self._registry,
        )
        # To look a child up by its labels takes longer than to count with it.
        self._request_children: dict[tuple[str, str, int], Counter] = {}
        self._seconds_children: dict[tuple[str, str], Histogram] = {}
        self._question_children: dict[tuple[str, str], Counter] = {}

    def replied(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count a request; what leads nowhere is counted under one name."""
        if route is None:
            method, route = "any", NO_ROUTE
        counted = self._request_children.get((method, route, status))
        if counted is None:
            counted = self._requests.labels(method, route, str(status))
            self._request_children[method, route, status] = counted
        counted.inc()
        timed = self._seconds_children.get((method, route))
        if timed is None:
            timed = self._seconds_children[method, route] = self._seconds.labels(method, route)
        timed.observe(seconds)

    def asked(self, dataset: str, outcome: str) -> None:
        """Count a question."""
        child = self._question_children.get((dataset, outcome))
        if child is None:
            child = self._questions.labels(dataset, outcome)
            self._question_children[dataset, outcome] = child
        child.inc()

    def shown(self, waiting: Mapping[str, int]) -> Reply:
        """All of them, with how many tickets of each dataset wait."""
        for dataset, count in waiting.items():
            self._waiting.labels(dataset).set(count)
        return Reply(200, generate_latest(self._registry), KIND)
