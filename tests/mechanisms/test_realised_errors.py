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


def check_scale(answers: list, truth: float) -> None:
    """Accept the reported scale, and reject one that is 30 % larger or smaller."""
    reported = answers[0].standard_error
    misses = np.array([answer.value for answer in answers]) - truth
    scale = np.sqrt((misses**2).mean()) / reported
    assert 0.87 < scale < 1.13
    assert not any(0.87 < scale * wrong < 1.13 for wrong in (1 / 1.3, 1 / 0.7))
    assert abs(misses.mean()) < 4.5 * reported / np.sqrt(len(answers))


@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "zcdp"])
def test_the_errors_of_planned_seeds_and_signed_rows_are_those_reported(budget):
    found = planned_answers(budget)
    cell = float(PEOPLE[8])
    for which, truth in (("seed", cell), ("bought", float(PEOPLE[6:].sum())), ("both", cell)):
        check_scale(found[which], truth)
    assert found["bought"][0].source == "measured"
    assert found["both"][0].standard_error < found["seed"][0].standard_error


# A table of 10^10 cells

WIDE = Domain([Integer(f"x{at}", 0, size - 1) for at, size in enumerate([2, 3] + [7] * 11)])
OPEN = LinearQuery.of(WIDE, x0=[1], x1=[0, 2], x2=[3])
CODES = np.random.default_rng(41).integers(0, 2, (13, 60))


def wide_answers(budget: Budget) -> dict[str, list]:
    """From tables that leave what three columns have in common open until one count of it is bought."""
    chosen = seed.marginals_of(WIDE, [["x0", "x1"], ["x1", "x2"], ["x0", "x2"]])
    counts = np.arange(60) % 7
    noise, data = SeededNoise(31), DataVector.of_cells(WIDE, list(CODES), counts, 200)
    found: dict[str, list] = {"seed": [], "bought": [], "both": []}
    for _ in range(FEW // 3):
        mechanism = CacheReconstruct(
            Curator(data, budget, {"ann": budget.total}, noise=noise),
            seed=chosen,
            seed_fraction=Fraction(3, 4),
            query_budget=budget.total / 4,
            signed_rows=True,
        )
        found["seed"].append(mechanism.ask(LinearQuery.of(WIDE, x0=[1], x1=[1]), "ann", pay=False))
        found["bought"].append(mechanism.ask(OPEN, "ann"))
        rest = LinearQuery.of(WIDE, x0=[1], x1=[0, 2]) - OPEN
        found["both"].append(mechanism.ask(rest, "ann", pay=False))
    return found


def test_the_errors_of_a_wide_table_are_those_reported():
    found = wide_answers(Budget.zcdp("1", "1e-6"))
    counts, (x0, x1, x2) = np.arange(60) % 7, CODES[:3]
    pair = (x0 == 1) & (x1 != 1)
    truths = {
        "seed": counts[(x0 == 1) & (x1 == 1)].sum(),
        "bought": counts[pair & (x2 == 3)].sum(),
        "both": counts[pair & (x2 != 3)].sum(),
    }
    for which, truth in truths.items():
        check_scale(found[which], float(truth))
    assert found["bought"][0].source == "measured"
