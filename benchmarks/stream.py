"""The paper's whole stream through Seeded Cache and Reconstruct, with simulated noise."""

import numpy as np

from benchmarks.ratio import Ratio, best_of
from sharewell import Budget, Curator, datasets
from sharewell.mechanisms import seed
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.query import workload
from sharewell_lab.noise import SeededNoise

ANALYSTS = [f"analyst {i}" for i in range(10)]


def run() -> list[Ratio]:
    movers = datasets.movers_by_age()
    queries = list(workload.random_ranges(movers.domain, 900, np.random.default_rng(3)))
    strategy = seed.identity(movers.domain)

    def stream() -> None:
        curator = Curator(
            movers, Budget.pure("1"), dict.fromkeys(ANALYSTS, "1/10"), noise=SeededNoise(1)
        )
        mechanism = CacheReconstruct(curator, seed=strategy, seed_fraction="1/2", query_budget="1/200")
        for i, query in enumerate(queries):
            mechanism.ask(query, ANALYSTS[i % 10])

    return [Ratio("SCR, 10 analysts, 900 queries, 86 cells", best_of(5, stream)[0], "0.1 s", 0.1, 1)]
