"""Quotes and free answers of 10,000 groups, of which none is cached, and their memory."""

import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from benchmarks.ratio import Ratio
from sharewell import Budget, Curator, DataVector, Domain, Integer, compile_sql
from sharewell.mechanisms import CacheReconstruct, seed

GROUPS = 10_000
#: CPU seconds of a quote or a free answer, and of a paid one, which also measures; and megabytes.
MOST_SECONDS, MOST_SECONDS_PAID, MOST_MEGABYTES = 2.0, 4.0, 500.0


def run() -> list[Ratio]:
    domain = Domain([Integer("a", 0, 99), Integer("b", 0, 99), Integer("c", 0, 3)])
    data = DataVector(domain, np.ones(domain.size, dtype=np.int64))
    curator = Curator(data, Budget.pure("1"), {"ann": "1/2", "ben": "1/2"})
    mechanism = CacheReconstruct(
        curator, seed=seed.identity(domain), seed_fraction="1/2", query_budget="1/200"
    )
    for at in range(50):
        where = f"a BETWEEN {at} AND {at + 40} AND b < {99 - at}"
        [block] = compile_sql(f"SELECT COUNT(*) FROM people WHERE {where}", domain).blocks
        mechanism.ask(block, "ann")
    [groups] = compile_sql("SELECT a, b, COUNT(*) FROM people GROUP BY a, b", domain).blocks
    if len(groups) != GROUPS:
        raise ValueError("another number of groups")
    return [
        bounded("quote", lambda: mechanism.snapshot().preview(groups, "ben")),
        bounded("free answer", lambda: mechanism.ask(groups, "ben", pay=False)),
        bounded("paid answer", lambda: mechanism.ask(groups, "ben"), MOST_SECONDS_PAID),
        bounded("cached answer", lambda: mechanism.ask(groups, "ann")),
    ]


def bounded(what: str, task: Callable[[], object], most: float = MOST_SECONDS) -> Ratio:
    """The CPU time of a task, which is then repeated to see its memory."""
    start = time.process_time()
    task()
    taken = time.process_time() - start
    tracemalloc.start()
    task()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    if peak > MOST_MEGABYTES:
        raise ValueError(f"a {what} of {GROUPS:,} groups took {peak:.0f} MB")
    return Ratio(f"{what} of {GROUPS:,} groups, {peak:.0f} MB", taken, "the bound, CPU time", most, 1)
