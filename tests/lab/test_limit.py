"""The numbers of the query limit: the same as by the real mechanisms, and reproducible."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sharewell.datasets import movers_by_age
from sharewell.mechanisms import seed
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.laplace import Laplace
from sharewell_lab.limit import MECHANISMS, measure_limit
from sharewell_lab.noise import SeededNoise
from sharewell_lab.theory.conditions import answered_by
from sharewell_lab.theory.query_limit import hard_queries

DATA = movers_by_age()
POPULATION = float(DATA.counts.sum())


@pytest.mark.parametrize("epsilon", ["2/25", "1/20"])
def test_counts_by_expected_errors_are_those_of_the_real_mechanisms(epsilon):
    found = measure_limit(DATA, POPULATION, epsilon=epsilon, analysts=2, runs=1, hard=60, seed=4)
    alpha, share = POPULATION / 100, Fraction(epsilon) / 2
    stream = hard_queries(DATA.domain, 60, np.random.default_rng([4, 0]))

    def count(make, budget):
        return answered_by(make, DATA, stream, alpha, noise=lambda: SeededNoise(1))(budget)

    def laplace(curator):
        return Laplace(curator, query_budget=Fraction(1, math.floor(alpha / math.sqrt(2))))

    for counts, budget in ((found.alone, share), (found.together, 2 * share)):

        def scr(curator, answers="estimate", price=budget / 16):
            return CacheReconstruct(
                curator,
                seed=seed.identity(DATA.domain),
                seed_fraction="1/2",
                query_budget=price,
                answers=answers,
            )

        assert counts["Laplace"] == [count(laplace, budget)]
        assert counts["SCR"] == [count(scr, budget)]
        assert counts["SCR printed"] == [count(lambda c, make=scr: make(c, "as-printed"), budget)]


def test_some_budget_answers_some_and_not_all():
    found = measure_limit(DATA, POPULATION, epsilon="2/25", analysts=2, runs=1, hard=60, seed=4)
    assert 0 < found.alone["SCR"][0] < 60
    assert 0 < found.alone["Laplace"][0] < found.together["Laplace"][0] < 60


def test_counts_grow_with_the_budget_and_the_guess_does_not(limit):
    assert set(limit.alone) == set(MECHANISMS)
    assert (limit.alone["Uniform"] == limit.together["Uniform"]).all()
    assert (limit.alone["Laplace"] < limit.together["Laplace"]).all()
    assert limit.alone["PMW"].mean() < limit.together["PMW"].mean()


def test_the_same_seed_gives_the_same_numbers_and_another_gives_others():
    one, again, other = (
        measure_limit(DATA, POPULATION, runs=3, hard=50, seed=number) for number in (1, 1, 2)
    )
    for name in MECHANISMS:
        np.testing.assert_array_equal(one.together[name], again.together[name])
    assert any((one.together[name] != other.together[name]).any() for name in MECHANISMS)
