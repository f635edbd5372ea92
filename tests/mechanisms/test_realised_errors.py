"""What is reported is what happens: variances, biases and intervals over thousands of seeded runs."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sharewell import Budget, Curator, DataVector, Domain, Integer, LinearQuery
from sharewell.mechanisms import seed
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.laplace import Laplace
from sharewell.mechanisms.planned_seed import PlannedSeed
from sharewell.query.block import GroupedBlock
from sharewell_lab.noise import SeededNoise

pytestmark = pytest.mark.statistical

LINE = Domain([Integer("age", 0, 7)])
COUNTS = np.array([40, 7, 0, 12, 90, 3, 25, 61])
RUNS = 2000
BUDGETS = [Budget.pure("1"), Budget.zcdp("1", "1e-6")]
BOUGHT = LinearQuery.of(LINE, age=range(2, 7))
SEED_ROW = LinearQuery.of(LINE, age=[4])
RECONSTRUCTED = LinearQuery.product(LINE, {"age": [1, 2, 0, 0, 3, 1, -1, 0]})


def scr_answers(budget: Budget, answers: Any) -> dict[str, list]:
    """A bought, a cached and a reconstructed answer, run after run, from one source of noise."""
    noise, data, strategy = SeededNoise(17), DataVector(LINE, COUNTS), seed.h2(LINE)
    found: dict[str, list] = {"measured": [], "cached": [], "reconstructed": []}
    for _ in range(RUNS):
        curator = Curator(data, budget, {"ann": budget.total}, noise=noise)
        mechanism = CacheReconstruct(
            curator,
            seed=strategy,
            seed_fraction=Fraction(1, 2),
            query_budget=budget.total / 4,
            answers=answers,
        )
        for query in (BOUGHT, SEED_ROW):
            answer = mechanism.ask(query, "ann")
            found[answer.source].append(answer)
        found["reconstructed"].append(mechanism.ask(RECONSTRUCTED, "ann", pay=False))
    return found


def judge(answers: list, truth: float) -> None:
    reported = answers[0].standard_error
    misses = np.array([answer.value for answer in answers]) - truth
    assert len(answers) == RUNS
    ratio = (misses**2).mean() / reported**2
    assert 0.9 < ratio < 1.1
    assert not 0.9 < ratio / 0.8 < 1.1, "a report that is a fifth too small would be caught"
    assert abs(misses.mean()) < 4 * reported / np.sqrt(RUNS)
    covered = np.mean([answer.interval[0] <= truth <= answer.interval[1] for answer in answers])
    assert 0.94 <= covered <= 0.975


@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "zcdp"])
@pytest.mark.parametrize("answers", ["estimate", "as-printed"])
def test_the_errors_of_cache_and_reconstruct_are_those_reported(budget, answers):
    found = scr_answers(budget, answers)
    judge(found["measured"], BOUGHT.dot(COUNTS))
    judge(found["cached"], SEED_ROW.dot(COUNTS))
    judge(found["reconstructed"], RECONSTRUCTED.dot(COUNTS))


@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "zcdp"])
def test_the_errors_of_single_measurements_are_those_reported(budget):
    total = budget.total * RUNS
    many = Budget(budget.currency, total, budget.epsilon, budget.delta)
    curator = Curator(DataVector(LINE, COUNTS), many, {"ann": total}, noise=SeededNoise(23))
    mechanism = Laplace(curator, query_budget=budget.total / 10)
    judge([mechanism.ask(BOUGHT, "ann") for _ in range(RUNS)], BOUGHT.dot(COUNTS))


TABLE = Domain([Integer("age", 0, 4), Integer("sex", 0, 1)])
PEOPLE = np.array([40, 7, 0, 12, 90, 3, 25, 61, 18, 5])
#: A single count to buy, the total, and a cell: from the seed alone, and from seed and purchase.
OLD = LinearQuery.of(TABLE, age=[3, 4])
FEW = 400


def planned_answers(budget: Budget) -> dict[str, list]:
    """Answers from two donors' plans, before and after one of them buys a count as a signed row."""
    by_age = GroupedBlock(LinearQuery.all(TABLE), {0: range(5)})
    asked: dict[str, list] = {"ann": [by_age, OLD], "ben": [LinearQuery.of(TABLE, sex=[1])]}
    planned = PlannedSeed(TABLE, budget.currency, expected=asked)
    noise, data = SeededNoise(29), DataVector(TABLE, PEOPLE)
    found: dict[str, list] = {"seed": [], "bought": [], "both": []}
    cell = LinearQuery.of(TABLE, age=[4], sex=[0])
    for _ in range(FEW):
        shares = dict.fromkeys(asked, budget.total / 2)
        mechanism = CacheReconstruct(
            Curator(data, budget, shares, noise=noise),
            seed=planned,
            seed_fraction=Fraction(3, 4),
            query_budget=budget.total / 8,
            signed_rows=True,
        )
        found["seed"].append(mechanism.ask(cell, "ben", pay=False))
        found["bought"].append(mechanism.ask(OLD, "ann"))
        found["both"].append(mechanism.ask(cell, "ben", pay=False))
    return found


@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "zcdp"])
def test_the_errors_of_planned_seeds_and_signed_rows_are_those_reported(budget):
    """Accepts the reported scale, and rejects one that is 30 % larger or smaller."""
    found = planned_answers(budget)
    cell = float(PEOPLE[8])
    for which, truth in (("seed", cell), ("bought", float(PEOPLE[6:].sum())), ("both", cell)):
        reported = found[which][0].standard_error
        misses = np.array([answer.value for answer in found[which]]) - truth
        scale = np.sqrt((misses**2).mean()) / reported
        assert 0.87 < scale < 1.13
        assert not any(0.87 < scale * wrong < 1.13 for wrong in (1 / 1.3, 1 / 0.7))
        assert abs(misses.mean()) < 4.5 * reported / np.sqrt(FEW)
    assert found["bought"][0].source == "measured"
    assert found["both"][0].standard_error < found["seed"][0].standard_error
