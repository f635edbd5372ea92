"""Plans for tables of any width: errors in closed form against the mechanism's own."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sharewell import Budget, Domain, Integer, LinearQuery
from sharewell.errors import PrivacyError
from sharewell.mechanisms import seed
from sharewell.mechanisms.base import Question
from sharewell.mechanisms.planned_seed import PlannedSeed
from sharewell.query.block import GroupedBlock, ParallelBlock
from sharewell.query.measure import Measure
from sharewell.sharing.closed_form import (
    MOST_NUMBERS,
    MOST_QUESTIONS,
    dry_curator,
    errors_of,
    part_scales,
    sampled,
)
from sharewell.sharing.collective import expected_errors
from sharewell.sharing.plan import not_compared, plan, wide_seeds

SHARES = {"ann": Fraction(1, 2), "ben": Fraction(1, 2)}


def wide(columns: int, size: int = 10, measures: tuple[Measure, ...] = ()) -> Domain:
    return Domain([Integer(f"x{at}", 0, size - 1) for at in range(columns)], measures)


def numbers(errors: float | tuple[float, ...] | None) -> np.ndarray:
    return np.array([errors], dtype=np.float64).ravel()


def by(domain: Domain, *levels: int) -> ParallelBlock:
    groups = {level: range(domain.shape[level]) for level in levels}
    return ParallelBlock.group_by(LinearQuery.all(domain), groups)


@pytest.mark.parametrize("privacy", ["pure", "zcdp"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_errors_in_closed_form_are_those_of_the_mechanism_or_larger(privacy, neighbours):
    domain = wide(3, 4)
    rng = np.random.default_rng(7)
    names = list(SHARES)
    stream = []
    for at in range(12):
        levels = rng.choice(3, 2, replace=False)
        query = LinearQuery.of(domain, **{f"x{level}": range(rng.integers(1, 4)) for level in levels})
        stream.append((names[at % 2], query * 2 if at % 3 else by(domain, int(levels[0]))))
    settings = {
        "seed_fraction": Fraction(1, 2),
        "query_budget": Fraction(1, 16),
        "privacy": privacy,
        "neighbours": neighbours,
    }
    expected: Any = {"ann": [by(domain, 0, 1)], "ben": [question for _, question in stream]}
    planned = PlannedSeed(domain, privacy, neighbours, expected)
    for strategy in (seed.identity(domain), seed.hb(domain), seed.tables(domain), planned):
        exact = expected_errors(domain, stream, SHARES, seed=strategy, **settings)
        found = errors_of(domain, stream, SHARES, seed=strategy.bought_by(SHARES), **settings)
        # Scaled from another donation: the same but for noise being discrete.
        assert found[0] == pytest.approx(numbers(exact[0]), rel=0.05)
        for upper, error in zip(found, exact, strict=True):
            assert (np.array(upper) >= numbers(error) * 0.99).all()


def test_an_open_question_is_determined_once_it_is_paid_for():
    domain = wide(40, measures=(Measure("wage", "wage", 0, 100, 1),))
    [chosen] = [each for each in wide_seeds(domain) if each.name == "marginals(2)"]
    three = LinearQuery.of(domain, x0=[1], x1=[1], x2=[1])
    three = three.where(LinearQuery.of_vectors(domain, {40: np.array([1, 0, 0])}))
    other = LinearQuery.of(domain, x3=[1], x4=[1], x2=[1])
    stream = [("ann", three), ("ben", three), ("ann", other)]
    settings: Any = {"seed_fraction": Fraction(3, 4), "query_budget": Fraction(1, 8)}
    [(paid,), (same,), (unpaid,)] = errors_of(domain, stream, SHARES, seed=chosen, **settings)
    assert math.isfinite(paid)
    assert same == paid
    assert unpaid == math.inf  # The share of ann pays for one question.


def test_many_questions_and_large_ones_are_sampled_at_even_distances():
    domain = wide(2, 30)
    questions = [by(domain, 0, 1)] + [LinearQuery.all(domain)] * (3 * MOST_QUESTIONS)
    found = sampled(questions)
    assert len(found) == MOST_QUESTIONS
    assert len(found[0]) == MOST_NUMBERS  # type: ignore[arg-type]
    assert sampled(questions[1:3]) == questions[1:3]


def test_a_table_of_forty_columns_is_planned_and_says_what_is_not_compared():
    domain = wide(40)
    workloads: dict[str, list[Question]] = {name: [by(domain, at) for at in range(5)] for name in SHARES}
    workloads["ann"] = [*workloads["ann"], LinearQuery.of(domain, x0=[1], x1=[1], x2=[1])]
    found = plan(domain, workloads, Budget.pure("1"), SHARES, 50.0, seed_fractions=["1/2"])
    assert {candidate.seed for candidate in found} >= {"marginals(1)", "marginals(2)", "planned"}
    assert all(0 <= each.worst <= each.average <= 1 for each in found)
    assert all(math.isfinite(each.typical_error) for each in found)
    assert "h2 and hb are not compared" in not_compared(domain, workloads)
    assert "uses a sample" in not_compared(domain, {"ann": [by(domain, 0, 1)]})
    few: dict[str, list[Question]] = {"ann": [LinearQuery.all(domain)]}
    assert "uses a sample" not in not_compared(domain, few)
    assert not_compared(wide(2), few) == ""


def test_the_identity_is_compared_while_it_has_few_enough_rows():
    few, many = ({each.name for each in wide_seeds(wide(columns, 25))} for columns in (3, 7))
    assert few >= {"marginals(1)", "marginals(2)", "identity"}
    assert many == {"marginals(1)", "marginals(2)"}


def test_some_numbers_of_a_large_table_are_made_without_the_others():
    domain = Domain([Integer("a", 0, 99), Integer("b", 0, 99)])
    table = GroupedBlock(LinearQuery.all(domain), {0: np.arange(100), 1: np.arange(100)})
    [some], [again] = sampled([table]), sampled([table])
    assert "queries" not in vars(table)
    assert again is some
    assert isinstance(some, GroupedBlock)
    assert list(some) == [table[at] for at in range(0, 10_000, 1_250)]


@pytest.mark.parametrize("privacy", ["pure", "zcdp"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_the_noise_of_every_part_is_what_the_kernel_says(privacy, neighbours):
    """Though the kernel is asked once for each kind of part."""
    wage, debt = Measure("wage", "wage", -10, 100, 5), Measure("debt", "debt", 0, 7, 1)
    sizes = (3, 5, 3, 3, 4)
    attributes = [Integer(f"a{at}", 0, size - 1) for at, size in enumerate(sizes)]
    for measures in ((), (wage, debt)):
        domain = Domain(attributes, measures)
        ranges = [LinearQuery.of(domain, a1=range(end)) for end in range(1, 6)]
        donors = PlannedSeed(domain, privacy, neighbours, {"bob": ranges})
        bought = donors.bought_by({"ann": Fraction(1), "bob": Fraction(2)})
        curator = dry_curator(domain, privacy, neighbours, 2)
        scales = part_scales(bought, Fraction(3, 7), curator)
        assert len({bought.kind_of(part) for part in bought.parts}) < len(bought.parts)
        assert np.repeat(scales, bought.sizes) == pytest.approx(curator.scales(bought, Fraction(3, 7)))


def test_a_donation_too_small_for_one_part_is_refused_in_parts_too():
    domain = Domain([Integer("a", 0, 2), Integer("b", 0, 2)])
    bought = PlannedSeed(domain, "pure").bought_by({"ann": Fraction(1)})
    curator = dry_curator(domain, "pure", "add-remove")
    tiny = Fraction(1, 10**18)
    for noise_of in (curator.scales, lambda seed, cost: part_scales(seed, cost, curator)):
        with pytest.raises(PrivacyError):
            noise_of(bought, tiny)
