"""Search random streams for an answer that is worse because others are there: the theorem at length.

    python -m tests.sharing.search 5000
    python -m tests.sharing.search 1000 --kind wide --number 7
    python -m tests.sharing.search 500 --kind wide --broken plans-for-all

plays so many streams (joins, departures, closing rounds, statements of two blocks, signed rows, both
currencies, both notions of neighbours), each with all analysts and with some of them. It prints how many
have such an answer, and how many an answer whose error is not that of a naive simulation. The tests play
fewer.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from tests.mechanisms.oracle import Ask
from tests.sharing.broken import BROKEN
from tests.sharing.streams import Stream, play, streams, streams_and_subsets
from tests.sharing.wide_streams import planned_streams, wide_streams

SLACK = 1e-9
#: By how much an error may differ from that of the naive simulation, which has few digits.
ROUNDING = 1e-6
#: Streams over few cells, the same with planned seeds, and streams over wide tables.
KINDS = {"few-cells": streams(), "planned": planned_streams(), "wide": wide_streams()}


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


def differs(stream: Stream, present: Any) -> list[tuple[int, float, float]]:
    """The answers whose errors are not those of the naive simulation, with both."""
    played, expected = play(stream, present), stream.simulate(present)
    assert played.errors.keys() == expected.variances.keys()
    assert played.left == expected.left
    return [
        (at, error, math.sqrt(variance))
        for at, variances in expected.variances.items()
        for error, variance in zip(played.errors[at], variances, strict=True)
        if not math.isclose(error, math.sqrt(variance), rel_tol=ROUNDING)
    ]


def search(
    count: int, kind: Any = CacheReconstruct, number: int = 0, of: str = "few-cells"
) -> tuple[Counter[str], list[Any]]:
    """How many streams of what there were, and those with a worse answer."""
    counts: Counter[str] = Counter()
    found: list[Any] = []

    @seed(number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(streams_and_subsets(KINDS[of]))
    def look(case: tuple[Stream, frozenset[str]]) -> None:
        stream, some = case
        counts["streams"] += 1
        counts[stream.currency] += 1
        counts["signed"] += stream.signed_rows
        counts["seed planned"] += of == "planned" or stream.seed_name == "planned"
        for what in {type(event).__name__ for event in stream.events}:
            counts[what] += 1
        counts["two blocks"] += any(isinstance(each, Ask) and bool(each.then) for each in stream.events)
        if worse(stream, some, kind=kind):
            found.append(case)
        elif kind is CacheReconstruct:
            counts["differ from the simulation"] += bool(differs(stream, some))

    look()
    return counts, found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("streams", type=int)
    parser.add_argument("--kind", choices=KINDS, default="few-cells")
    parser.add_argument("--number", type=int, default=0, help="of the random streams")
    parser.add_argument("--broken", choices=BROKEN)
    chosen = parser.parse_args()
    kind = BROKEN.get(chosen.broken, CacheReconstruct)
    counts, found = search(chosen.streams, kind, chosen.number, chosen.kind)
    print(", ".join(f"{name} {count:,}" for name, count in counts.items()))
    print(f"{len(found)} with an answer that is worse")
    sys.exit(bool(found))
