"""The exact privacy loss of whole mechanisms on small tables, and of broken ones."""

import math
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
import pytest

from sharewell import Budget, Curator, DataVector, Domain, Integer, LinearQuery
from sharewell.mechanisms import (
    CacheReconstruct,
    Independent,
    Laplace,
    PrivateMultiplicativeWeights,
    seed,
)
from sharewell.privacy import curator as kernel
from sharewell.privacy.noise import laplace_scale
from sharewell.privacy.sparse_vector import SparseVectorPlan
from sharewell.query.block import ParallelBlock
from sharewell.query.measure import Measure
from sharewell_lab.exact_audit import (
    enumerate_outcomes,
    hockey_stick,
    pure_loss,
    renyi_divergence,
)

PAIR = Domain([Integer("age", 0, 1)])
#: A table, and its neighbours under the two notions.
TABLE, NEIGHBOURS = (10, 5), {"add-remove": (11, 5), "replace-one": (11, 4)}
CELL = LinearQuery.cell(PAIR, 0)
OTHER_CELL = LinearQuery.cell(PAIR, 1)
TOTAL = LinearQuery.all(PAIR)
#: Epsilon, large enough for little noise: replacing a row changes a histogram by 2.
EPSILON = {"add-remove": 12, "replace-one": 24}
#: The probability of noise that is left out of a draw.
BEYOND = 1e-2


def asked(counts, make, questions, budget, neighbours, noise):
    """All that analysts see: values and sources, in order."""
    shares = {"ann": budget.total / 2, "ben": budget.total / 2}
    data = DataVector(PAIR, np.array(counts))
    mechanism = make(Curator(data, budget, shares, neighbours=neighbours, noise=noise))
    answers = [mechanism.ask(question, analyst) for analyst, question in questions]
    return tuple((round(answer.value, 6), answer.source) for answer in answers)


def distributions(make, questions, budget, neighbours):
    return [
        enumerate_outcomes(partial(asked, counts, make, questions, budget, neighbours), beyond=BEYOND)
        for counts in (TABLE, NEIGHBOURS[neighbours])
    ]


def seeded(curator):
    return CacheReconstruct(
        curator, seed=seed.total(PAIR), seed_fraction="1/2", query_budget=curator.budget.total / 4
    )


def independent(curator):
    return Independent(curator, lambda view: laplace(view))


def laplace(curator):
    return Laplace(curator, query_budget=curator.budget.total / 2)


#: Each spends its whole budget on these questions.
WHOLE = {
    "cache-reconstruct": (seeded, [("ann", CELL), ("ben", OTHER_CELL), ("ann", TOTAL)]),
    "laplace": (laplace, [("ann", CELL), ("ben", TOTAL)]),
    "independent": (independent, [("ann", CELL), ("ben", CELL)]),
}


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("name", WHOLE)
def test_a_mechanism_loses_its_epsilon_and_no_more(name, neighbours):
    epsilon = EPSILON[neighbours]
    loss, unmatched = pure_loss(*distributions(*WHOLE[name], Budget.pure(epsilon), neighbours))
    assert unmatched < 0.05
    assert 0.1 * epsilon < loss <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("name", WHOLE)
def test_a_mechanism_loses_its_rho_and_no_more(name, neighbours):
    budget = Budget("zcdp", Fraction(EPSILON[neighbours]), Fraction(EPSILON[neighbours]))
    left, right = distributions(*WHOLE[name], budget, neighbours)
    for order in (1.5, 2, 4):
        for one, other in ((left, right), (right, left)):
            assert renyi_divergence(one, other, order) <= order * float(budget.total) * (1 + 1e-6)
    assert renyi_divergence(left, right, 2) > 0.1


def noisy(count, law, scale, noise):
    return count + int(getattr(noise, law)(scale, 1)[0])


def test_the_audit_is_exact_where_the_loss_is_known():
    left, right = (
        enumerate_outcomes(partial(noisy, count, "laplace", 1.0), beyond=1e-9) for count in (3, 4)
    )
    loss, unmatched = pure_loss(left, right)
    assert loss == pytest.approx(1, rel=1e-12)
    assert unmatched < 1e-8
    # The total variation distance between discrete Laplace distributions one apart.
    assert hockey_stick(left, right, 0.0) == pytest.approx(math.tanh(0.5), rel=1e-6)
    assert hockey_stick(left, right, 1.0) < 1e-8
    left, right = (
        enumerate_outcomes(partial(noisy, count, "gaussian", 1.5), beyond=1e-12) for count in (3, 4)
    )
    assert renyi_divergence(left, right, 3) == pytest.approx(3 / (2 * 1.5**2), rel=1e-6)


@pytest.mark.parametrize("name", WHOLE)
def test_the_audit_catches_a_scale_that_is_a_third_too_small(name, monkeypatch):
    def too_small(sensitivity, epsilon):
        return laplace_scale(sensitivity, epsilon) * 0.7

    monkeypatch.setattr(kernel, "laplace_scale", too_small)
    loss, _ = pure_loss(*distributions(*WHOLE[name], Budget.pure(12), "add-remove"))
    assert loss > 12


#: A wage of 0 to 4 counts as -2 to 2, so that replacing a row can change a sum by 4.
PAID = Domain([Integer("age", 0, 0)], [Measure("wage", "wage", 0, 4, 1)])
PAY = LinearQuery.of_vectors(PAID, {1: np.array([0, 0, 1])})
#: The sums of a table, and of its neighbour: someone with the highest wage comes, or the lowest leaves.
SUMS = {"add-remove": ((1, 1, 0), (2, 2, 2)), "replace-one": ((2, 2, -2), (2, 2, 2))}


def paid(sums, budget, neighbours, noise):
    data = DataVector(PAID, np.array(sums))
    curator = Curator(data, budget, {"ann": budget.total}, neighbours=neighbours, noise=noise)
    block = ParallelBlock(PAID, [PAY])
    return tuple(curator.measure(block, budget.total, "ann").values.tolist())


def loss_of_sum(neighbours) -> float:
    left, right = (
        enumerate_outcomes(partial(paid, sums, Budget.pure(4), neighbours), beyond=1e-6)
        for sums in SUMS[neighbours]
    )
    return pure_loss(left, right)[0]


@pytest.mark.parametrize("neighbours", SUMS)
def test_a_sum_of_a_measure_loses_its_epsilon_and_no_more(neighbours):
    loss = loss_of_sum(neighbours)
    # Under replace-one a unit counts twice, as if two rows of a block changed.
    assert loss == pytest.approx(4 if neighbours == "add-remove" else 2, rel=1e-6)
    assert loss <= 4 * (1 + 1e-9)


@pytest.mark.parametrize("neighbours", SUMS)
def test_the_audit_catches_a_unit_that_is_that_of_the_counts(neighbours, monkeypatch):
    monkeypatch.setattr(Domain, "row_range", lambda self, weights: (0, int(max(weights))))
    assert loss_of_sum(neighbours) > 4 * 1.5


THRESHOLD = 2
#: A row more takes guesses of the total further off, and brings that of the first cell nearer.
POPULATION, COUNTS = 20, ((8, 13), (9, 13))
GUESSED = [TOTAL, TOTAL, CELL]


def until_measured(counts, noise):
    """Which questions were measured, and as what, until the first one was."""
    mechanism = PrivateMultiplicativeWeights(
        Curator(DataVector(PAIR, np.array(counts)), Budget.pure("12"), {"ann": "12"}, noise=noise),
        population=POPULATION,
        updates=1,
        threshold=THRESHOLD,
    )
    seen = []
    for question in GUESSED:
        answer = mechanism.ask(question, "ann")
        seen.append((round(answer.value, 6), answer.source))
        if answer.source == "measured":
            break
    return tuple(seen)


def update_distributions():
    plan = SparseVectorPlan(Fraction(6), THRESHOLD, 1)
    return [
        enumerate_outcomes(
            partial(until_measured, counts),
            beyond=1e-4,
            test_scales={plan.query_scale},
        )
        for counts in COUNTS
    ]


def test_multiplicative_weights_loses_its_epsilon_and_no_more():
    loss, unmatched = pure_loss(*update_distributions())
    assert unmatched < 1e-2
    assert 6 < loss <= 12 * (1 + 1e-9)


def test_the_audit_catches_tests_without_the_factor_two(monkeypatch):
    def too_little(plan: SparseVectorPlan) -> float:
        return laplace_scale(plan.positives * plan.sensitivity, plan.parts[1])

    broken = cached_property(too_little)
    broken.__set_name__(SparseVectorPlan, "query_scale")
    monkeypatch.setattr(SparseVectorPlan, "query_scale", broken)
    loss, _ = pure_loss(*update_distributions())
    assert loss > 12
