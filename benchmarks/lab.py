"""Runs of the lab's fast players, next to the real mechanisms on the same stream and with its noise."""

import contextlib
from functools import partial

import numpy as np

from benchmarks.ratio import Ratio, best_of
from sharewell import Budget, Curator, LinearQuery, datasets
from sharewell.errors import OverBudget
from sharewell.mechanisms import seed
from sharewell.mechanisms.base import Mechanism
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.laplace import Laplace
from sharewell.mechanisms.pmw import PrivateMultiplicativeWeights
from sharewell.query import workload
from sharewell_lab.engines import PlaySettings, play
from sharewell_lab.noise import SeededNoise
from sharewell_lab.streams import Questions

ANALYSTS, ARRIVALS = 10, 700
#: How many times faster than the real mechanism: half of what was measured, or a little less.
PROMISED = {"laplace": 200, "pmw": 400, "scr": 50, "scr-as-printed": 50}


def run() -> list[Ratio]:
    movers = datasets.movers_by_age()
    counts = np.asarray(movers.counts)
    asked, who = stream()
    questions = Questions.of(asked, who, analysts=ANALYSTS)
    setting = PlaySettings(np.full(ANALYSTS, 1 / ANALYSTS), float(counts.sum()), 1 / 2, 1 / 160)
    present = np.ones(ANALYSTS, dtype=bool)
    order = questions.places(present)

    def fast(mechanism: str) -> None:
        play(mechanism, questions, order, counts, setting, present, np.random.SeedSequence(1))

    def real(mechanism: str) -> None:
        shares = {str(analyst): f"1/{ANALYSTS}" for analyst in range(ANALYSTS)}
        answering = made(mechanism, Curator(movers, Budget.pure("1"), shares, noise=SeededNoise(1)))
        for query, analyst in zip(asked, who, strict=True):
            with contextlib.suppress(OverBudget):
                answering.ask(query, str(analyst))

    ratios = []
    for mechanism, promised in PROMISED.items():
        fast(mechanism)  # compiles it
        player = min(best_of(20, partial(fast, mechanism)))
        reference = min(best_of(2, partial(real, mechanism)))
        name = f"{mechanism}, {ARRIVALS} questions: {1 / player:,.0f} runs a second"
        ratios.append(Ratio(name, player, "the real one", reference, promised, at_most=False))
    return ratios


def stream() -> tuple[list[LinearQuery], list[int]]:
    """Ten analysts: a third ask prefix sums, a third a hierarchy, and the others ranges."""
    domain, rng = datasets.movers_by_age().domain, np.random.default_rng(1)
    pools = [
        list(workload.prefixes(domain)),
        list(workload.h2(domain)),
        list(workload.random_ranges(domain, 170, rng)),
    ]
    who = rng.integers(0, ANALYSTS, ARRIVALS).tolist()
    return [pools[a % 3][rng.integers(len(pools[a % 3]))] for a in who], who


def made(mechanism: str, curator: Curator) -> Mechanism:
    if mechanism == "laplace":
        return Laplace(curator, query_budget="1/160")
    if mechanism == "pmw":
        population = float(datasets.movers_by_age().counts.sum())
        return PrivateMultiplicativeWeights(curator, population=population)
    return CacheReconstruct(
        curator,
        seed=seed.identity(curator.domain),
        seed_fraction="1/2",
        query_budget="1/160",
        answers="as-printed" if mechanism == "scr-as-printed" else "estimate",
    )
