"""Metrics: what is counted about requests, for Prometheus; nothing per analyst, nothing of the data."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import accumulate

from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from sharewell.service.http.replies import Reply

KIND = CONTENT_TYPE_LATEST.encode()
#: The upper ends of the histogram's buckets, in seconds; a last one has no end.
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)
BUCKET_NAMES = (*map(str, map(float, BUCKETS)), "+Inf")
#: Stands for all paths that lead nowhere: a path may hold anything, and there are too many of them.
NO_ROUTE = "none"


class Metrics(Collector):
    """Counters of one application, which only its event loop changes and reads.

    They are plain numbers until somebody looks: every request is counted, and few are looked at.
    """

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[tuple[str, str], _Seconds] = {}
        self._questions: Counter[tuple[str, str]] = Counter()
        self._waiting: Mapping[str, int] = {}

    def replied(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count a request; what leads nowhere is counted under one name."""
        if route is None:
            method, route = "any", NO_ROUTE
        self._requests[method, route, status] += 1
        timed = self._seconds.get((method, route))
        if timed is None:
            timed = self._seconds[method, route] = _Seconds()
        timed.counts[bisect_left(BUCKETS, seconds)] += 1
        timed.total += seconds

    def asked(self, dataset: str, outcome: str) -> None:
        """Count a question."""
        self._questions[dataset, outcome] += 1

    def shown(self, waiting: Mapping[str, int]) -> Reply:
        """All of them, with how many tickets of each dataset wait."""
        self._waiting = waiting
        return Reply(200, generate_latest(self), KIND)

    def collect(self) -> Iterator[Metric]:
        """All of them, in the words of Prometheus."""
        requests = CounterMetricFamily(
            "sharewell_requests",
            "Requests that were replied to.",
            labels=("method", "route", "status"),
        )
        for (method, route, status), count in self._requests.items():
            requests.add_metric((method, route, str(status)), count)
        seconds = HistogramMetricFamily(
            "sharewell_request_seconds",
            "From the head of a request to the end of its reply.",
            labels=("method", "route"),
        )
        for labels, timed in self._seconds.items():
            buckets = list(zip(BUCKET_NAMES, accumulate(timed.counts), strict=True))
            seconds.add_metric(labels, buckets, timed.total)
        questions = CounterMetricFamily(
            "sharewell_questions",
            "Questions that were asked, by how they ended, or that they wait.",
            labels=("dataset", "outcome"),
        )
        for names, count in self._questions.items():
            questions.add_metric(names, count)
        waiting = GaugeMetricFamily(
            "sharewell_waiting_tickets", "Questions that wait for their turn.", labels=("dataset",)
        )
        for dataset, tickets in self._waiting.items():
            waiting.add_metric((dataset,), tickets)
        yield from (requests, seconds, questions, waiting)


class _Seconds:
    """How long requests of one route took: how many fell into each bucket, and the sum."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * len(BUCKET_NAMES)
        self.total = 0.0
