"""The real mechanisms in a player's world: the oracle of every player."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sharewell import Budget, Curator, DataVector, Domain, LinearQuery
from sharewell.errors import OverBudget
from sharewell.mechanisms import seed
from sharewell.mechanisms.base import Mechanism
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.laplace import Laplace
from sharewell.mechanisms.pmw import PrivateMultiplicativeWeights
from sharewell.privacy.noise import Noise
from sharewell_lab.engines import PlaySettings
from sharewell_lab.engines.world import NO_PAYER, Run, World
from sharewell_lab.streams import Questions


@dataclass(frozen=True)
class Case:
    """A world in exact amounts, which the real mechanisms take and the players get as floats."""

    domain: Domain
    questions: Questions
    order: np.ndarray
    counts: np.ndarray
    shares: list[Fraction]
    seed_fraction: Fraction
    query_budget: Fraction
    population: float
    present: np.ndarray
    updates: int | None = None
    threshold: int | None = None

    @property
    def world(self) -> World:
        setting = PlaySettings(
            np.array([float(share) for share in self.shares]),
            self.population,
            float(self.seed_fraction),
            float(self.query_budget),
            self.updates,
            self.threshold,
        )
        return World(self.questions, self.order, self.counts, setting, self.present)


MECHANISMS: dict[str, Callable[[Curator, Case], Mechanism]] = {
    "laplace": lambda curator, case: Laplace(curator, query_budget=case.query_budget),
    "pmw": lambda curator, case: PrivateMultiplicativeWeights(
        curator, population=case.population, updates=case.updates, threshold=case.threshold
    ),
    "scr": lambda curator, case: CacheReconstruct(
        curator,
        seed=seed.identity(case.domain),
        seed_fraction=case.seed_fraction,
        query_budget=case.query_budget,
    ),
    "scr-as-printed": lambda curator, case: CacheReconstruct(
        curator,
        seed=seed.identity(case.domain),
        seed_fraction=case.seed_fraction,
        query_budget=case.query_budget,
        answers="as-printed",
    ),
}


def play_real(mechanism: str, case: Case, noise: Noise) -> Run:
    """A run of the real mechanism, answer by answer."""
    shares = {str(i): share for i, share in enumerate(case.shares) if case.present[i]}
    budget = Budget.pure(sum(shares.values(), Fraction(0)))
    curator = Curator(DataVector(case.domain, case.counts), budget, shares, noise=noise)
    real = MECHANISMS[mechanism](curator, case)
    value, error, expected = np.full((3, len(case.questions)), np.nan)
    payer = np.full(len(case.questions), NO_PAYER)
    for place in case.order.tolist():
        query = LinearQuery.from_vector(case.domain, case.questions.weights[place].astype(np.int64))
        try:
            answer = real.ask(query, str(case.questions.analyst[place]))
        except OverBudget:
            error[place] = expected[place] = math.inf
            continue
        value[place] = answer.value
        error[place] = abs(answer.value - query.dot(case.counts))
        if answer.standard_error is not None:
            expected[place] = answer.standard_error
        if answer.payer is not None:
            payer[place] = int(answer.payer)
    return Run(value, error, expected, payer)


def check_equal(player: Run, real: Run) -> None:
    """Every answer is the same: its value, how far off it is and may be, and who paid."""
    np.testing.assert_array_equal(player.payer, real.payer)
    # An error is a small difference of large numbers, and as precise as those.
    largest = np.nanmax(np.abs(real.value), initial=1.0)
    for name, absolute in (("value", 1e-9), ("expected", 1e-9), ("error", 1e-9 * largest)):
        np.testing.assert_allclose(
            getattr(player, name), getattr(real, name), rtol=1e-9, atol=absolute, err_msg=name
        )
