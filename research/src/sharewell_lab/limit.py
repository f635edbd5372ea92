"""The numbers behind the picture of the query limit: how many hard queries mechanisms answer well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sharewell.engine.data_vector import DataVector
from sharewell.privacy.budget import Amount
from sharewell_lab.engines import PlaySettings, play
from sharewell_lab.streams import Questions
from sharewell_lab.theory.query_limit import LimitStreams, QueryLimit, hard_queries

#: Alpha as a part of the population, and how many hard queries are put to every mechanism.
ALPHA = 0.01
HARD = 500
#: How many streams, each with noise of its own, are tried.
RUNS = 20
#: The part of a share that seeds SCR, and for how many paid questions the rest is enough.
SEED_FRACTION = 1 / 2
PAID = 8
#: Labels, and what the players call them.
MECHANISMS = {
    "Uniform": "uniform",
    "Laplace": "laplace",
    "PMW": "pmw",
    "SCR printed": "scr-as-printed",
    "SCR": "scr",
}
#: Those that do not know their own standard errors.
REALISED = ("Uniform", "PMW")


@dataclass(frozen=True)
class LimitNumbers:
    """The limit, its streams, and what was measured at a share and at the whole budget.

    `alone` and `together` have, for every mechanism, one count a run: how many of `hard` queries were
    answered within alpha with one share, and with the whole budget.
    """

    limit: QueryLimit
    streams: LimitStreams
    hard: int
    alone: Mapping[str, NDArray[np.int64]]
    together: Mapping[str, NDArray[np.int64]]


def measure_limit(
    data: DataVector,
    population: float,
    *,
    epsilon: Amount = "1",
    analysts: int = 10,
    seed: int = 1,
    runs: int = RUNS,
    hard: int = HARD,
) -> LimitNumbers:
    """Count useful answers to hard queries. For public data only: every run spends a budget anew.

    Laplace and SCR know their standard errors, and these count. PMW and the uniform guess do not, so
    there the realised error counts. Laplace pays for an answer just what makes its standard
    error alpha.
    """
    limit = QueryLimit(ALPHA * population, epsilon, analysts)
    budgets = {"alone": float(limit.epsilon) / analysts, "together": float(limit.epsilon)}
    counts = {case: {name: np.zeros(runs, dtype=np.int64) for name in MECHANISMS} for case in budgets}
    for run in range(runs):
        stream = hard_queries(data.domain, hard, np.random.default_rng([seed, run]))
        questions = Questions.of(stream, np.zeros(hard, dtype=np.int64), analysts=1)
        for world, (case, budget) in enumerate(budgets.items()):
            for number, name in enumerate(MECHANISMS):
                keys = np.random.SeedSequence([seed, run, world, number])
                counts[case][name][run] = _useful(
                    name, questions, data, population, limit.alpha, budget, keys
                )
    streams = limit.streams(data.domain, np.random.default_rng(seed))
    return LimitNumbers(limit, streams, hard, counts["alone"], counts["together"])


def _useful(
    name: str,
    questions: Questions,
    data: DataVector,
    population: float,
    alpha: float,
    budget: float,
    seed: np.random.SeedSequence,
) -> int:
    # The standard error of Laplace noise is sqrt(2) times its scale, which is 1 / price.
    price = 1 / int(alpha / np.sqrt(2)) if name == "Laplace" else budget * (1 - SEED_FRACTION) / PAID
    setting = PlaySettings(np.array([budget]), population, SEED_FRACTION, price)
    present = np.array([True])
    run = play(
        MECHANISMS[name], questions, questions.places(present), data.counts, setting, present, seed
    )
    return int(np.sum((run.error if name in REALISED else run.expected) <= alpha))
