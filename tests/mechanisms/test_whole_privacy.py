"""The privacy audit on whole mechanisms, and on ones broken on purpose to show that it sees."""

from functools import cached_property

import numpy as np
import pytest

from sharewell import Budget, Curator, DataVector, Domain, Integer, LinearQuery
from sharewell.mechanisms import seed
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.pmw import PrivateMultiplicativeWeights
from sharewell.privacy.noise import laplace_scale
from sharewell.privacy.sparse_vector import SparseVectorPlan
from sharewell_lab.audit import observed_loss
from sharewell_lab.noise import SeededNoise

pytestmark = pytest.mark.statistical

PAIR = Domain([Integer("age", 0, 1)])
RUNS = 1000


class Quartered(SeededNoise):
    """Noise of a quarter of the scale that was paid for."""

    def laplace(self, scale, size):
        return super().laplace(scale / 4, size)


def estimates(counts: tuple[int, int], noise) -> list[float]:
    """What one learns of a cell that is seeded, bought and estimated, for epsilon 2 in all."""
    told = []
    for _ in range(RUNS):
        curator = Curator(
            DataVector(PAIR, np.array(counts)), Budget.pure("2"), {"ann": "2"}, noise=noise
        )
        mechanism = CacheReconstruct(
            curator, seed=seed.identity(PAIR), seed_fraction="1/2", query_budget="1", buy_seed_rows=True
        )
        told.append(mechanism.ask(LinearQuery.cell(PAIR, 0), "ann").value)
    return told


def test_cache_and_reconstruct_loses_no_more_than_its_budget():
    assert observed_loss(estimates((10, 5), SeededNoise(1)), estimates((11, 5), SeededNoise(2))) <= 2


def test_the_audit_catches_cache_and_reconstruct_with_too_little_noise():
    assert observed_loss(estimates((10, 5), Quartered(1)), estimates((11, 5), Quartered(2))) > 2


THRESHOLD = 20
POPULATION = 181
#: The total is one less than the threshold away from the guess; the first cell is just at it.
COUNTS = (POPULATION // 2 - THRESHOLD, POPULATION + THRESHOLD - 1 - (POPULATION // 2 - THRESHOLD))
#: A row more takes the first five guesses further from the truth, and brings the last one nearer.
QUESTIONS = [LinearQuery.all(PAIR)] * 5 + [LinearQuery.cell(PAIR, 0)]


def transcripts(more: int, seed_: int, runs: int) -> list[tuple[str, ...]]:
    """Which questions were measured, until the first one was: the tests of epsilon 3 out of 6."""
    noise = SeededNoise(seed_)
    vector = DataVector(PAIR, np.array([COUNTS[0] + more, COUNTS[1]]))
    told: list[tuple[str, ...]] = []
    for _ in range(runs):
        mechanism = PrivateMultiplicativeWeights(
            Curator(vector, Budget.pure("6"), {"ann": "6"}, noise=noise),
            population=POPULATION,
            updates=1,
            threshold=THRESHOLD,
            update="sign",
        )
        sources = []
        for question in QUESTIONS:
            sources.append(mechanism.ask(question, "ann").source)
            if sources[-1] == "measured":
                break
        told.append(tuple(sources))
    return told


def test_the_tests_of_multiplicative_weights_lose_no_more_than_their_part():
    assert observed_loss(transcripts(0, 3, 2000), transcripts(1, 4, 2000)) <= 3


def test_the_audit_catches_multiplicative_weights_without_the_factor_two(monkeypatch):
    def too_little(plan: SparseVectorPlan) -> float:
        return laplace_scale(plan.positives * plan.sensitivity, plan.parts[1])

    broken = cached_property(too_little)
    broken.__set_name__(SparseVectorPlan, "query_scale")
    monkeypatch.setattr(SparseVectorPlan, "query_scale", broken)
    assert observed_loss(transcripts(0, 3, 5000), transcripts(1, 4, 5000)) > 3
