"""Search random streams for an answer that is worse because others are there: the theorem at length.

    python -m tests.sharing.search 5000

plays so many streams (joins, departures, closing rounds, statements of two blocks, signed rows, both
currencies, both notions of neighbours), each with all analysts and with some of them, and prints how
many have such an answer. The tests play fewer.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from tests.mechanisms.oracle import Ask
from tests.sharing.streams import Stream, play, streams_and_subsets

SLACK = 1e-9


def worse(
    stream: Stream, some: Any, answers: str = "estimate", kind: Any = CacheReconstruct
) -> list[tuple[int, int, float, float]]:
    """The answers that some of the analysts get with a larger error because the others are there."""
    with_all, with_some = (play(stream, who, answers, kind).errors for who in (stream.analysts, some))
    assert with_all.keys() >= with_some.keys()
    return [
        (at, place, joint, without)
        for at, errors in with_some.items()
        for place, (joint, without) in enumerate(zip(with_all[at], errors, strict=True))
        if not joint <= without * (1 + SLACK)
    ]


def search(
    streams: int, kind: Any = CacheReconstruct, number: int = 0
) -> tuple[Counter[str], list[Any]]:
    """How many streams of what there were, and those with a worse answer."""
    counts: Counter[str] = Counter()
    found: list[Any] = []

    @seed(number)
    @settings(
        max_examples=streams,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(streams_and_subsets())
    def look(case: tuple[Stream, frozenset[str]]) -> None:
        stream, some = case
        counts["streams"] += 1
        counts[stream.currency] += 1
        counts["signed"] += stream.signed_rows
        for what in {type(event).__name__ for event in stream.events}:
            counts[what] += 1
        counts["two blocks"] += any(isinstance(each, Ask) and bool(each.then) for each in stream.events)
        if worse(stream, some, kind=kind):
            found.append(case)

    look()
    return counts, found


if __name__ == "__main__":
    counts, found = search(int(sys.argv[1]), number=int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print(", ".join(f"{name} {count:,}" for name, count in counts.items()))
    print(f"{len(found)} with an answer that is worse")
    sys.exit(bool(found))
