"""The certificate: what it costs those who are being answered, and how far it falls behind.

Ten analysts ask 1,000 questions as fast as they are answered, which is faster than any service that
must reach a disk. The promises: with the certificate on, the latency of an answer changes by less
than 10 %, and it is never more than 2 seconds behind.
"""

from __future__ import annotations

import time
from fractions import Fraction
from functools import partial

import numpy as np

from benchmarks.ratio import Ratio
from sharewell import Budget, DataVector, Domain, LinearQuery, datasets
from sharewell.mechanism import seed
from sharewell.mechanism.cache_reconstruct import CacheReconstruct
from sharewell.sharing.collective import Collective
from sharewell.sharing.follower import Follower
from sharewell.sharing.stream import Ask

NAMES = [f"analyst {number}" for number in range(10)]
QUESTIONS = 1000
ROUNDS = 5


def run() -> list[Ratio]:
    return [
        *_measure("86 cells", datasets.movers_by_age()),
        *_measure("120,400 cells", datasets.massachusetts().vector()),
    ]


def _measure(what: str, data: DataVector) -> list[Ratio]:
    make = partial(
        CacheReconstruct, seed=seed.identity(data.domain), seed_fraction="1/2", query_budget="1/600"
    )
    collective = Collective(data.domain, Budget.pure("1"), dict.fromkeys(NAMES, Fraction(1, 10)), make)
    stream = _stream(data.domain)
    without, with_it, behind = [], [], []
    for _ in range(ROUNDS):
        without.append(_latency(collective, data, stream, None))
        with Follower(collective, error_threshold=100.0) as follower:
            follower.wait()
            with_it.append(_latency(collective, data, stream, follower))
            start = time.perf_counter()
            follower.wait()
            behind.append(time.perf_counter() - start)
    return [
        Ratio(f"answer, certificate on, {what}", min(with_it), "certificate off", min(without), 1.1),
        Ratio(f"certificate behind by, {what}", min(behind), "a second", 1.0, 2.0),
    ]


def _latency(
    collective: Collective, data: DataVector, stream: list[Ask], follower: Follower | None
) -> float:
    mechanism = collective.open(data)
    start = time.perf_counter()
    for ask in stream:
        mechanism.answer(ask.question, ask.analyst)
        if follower:
            follower.record(ask)
    return (time.perf_counter() - start) / len(stream)


def _stream(domain: Domain) -> list[Ask]:
    rng = np.random.default_rng(1)
    asks = []
    for _ in range(QUESTIONS):
        low = int(rng.integers(0, 80))
        cells: dict[str, range] = {"age": range(low, int(rng.integers(low + 1, 87)))}
        if "race" in domain.names:
            race = int(rng.integers(0, 7))
            cells["race"] = range(race, race + 1)
        asks.append(Ask(str(rng.choice(NAMES)), LinearQuery.of(domain, **cells)))
    return asks
