"""Desiderata: ratios and their awkward cases, and utilities of any kind."""

import math
from dataclasses import replace

import pytest

from sharewell import Domain, Integer, LinearQuery
from sharewell.errors import SharingError
from sharewell.sharing.certificate import Outcome, Report, Standing, ratio, within

LINE = Domain([Integer("age", 0, 3)])
CELLS = [LinearQuery.cell(LINE, at) for at in range(4)]


@pytest.mark.parametrize(
    ("elsewhere", "here", "expected"),
    [(61, 143, 61 / 143), (3, 2, 1.5), (5, 0, math.inf), (0, 0, 1.0), (0, 4, 0.0)],
)
def test_a_ratio_is_elsewhere_over_here_and_nothing_over_nothing_is_one(elsewhere, here, expected):
    assert ratio(elsewhere, here) == expected


def report(*standings: Standing) -> Report:
    return Report("Laplace", "none", 10.0, (), standings, 9)


def test_the_max_ratio_error_is_that_of_the_analyst_with_the_best_reason_to_go():
    ann, bob = Standing("ann", 9, 4, 6, {}, 0), Standing("bob", 9, 8, 2, {}, 0)
    assert report(ann, bob).worst_ratio == 1.5
    assert report(Standing("ann", 9, 0, 1, {}, 0)).worst_ratio == math.inf
    assert report().worst_ratio == 1


def test_interference_is_over_all_pairs_of_analysts():
    ann, bob = Standing("ann", 9, 4, 1, {"bob": 3}, 0), Standing("bob", 9, 8, 1, {"ann": 10}, 0)
    assert report(ann, bob).worst_interference == 1.25
    assert report(ann).worst_interference == 0.75


def test_nothing_is_said_to_hold_before_an_answer_was_judged():
    nothing = Standing("ann", 0, 0, 0, {"bob": 0}, 0)
    assert report(nothing).holds is None
    assert report(nothing, Standing("bob", 1, 1, 1, {"ann": 1}, 0)).holds is True
    assert report(nothing, Standing("bob", 1, 1, 1, {"ann": 1}, 1)).holds is False


def test_a_figure_that_is_contradicted_never_holds():
    fair = report(Standing("ann", 9, 4, 4, {}, 0))
    assert fair.holds is True
    assert replace(fair, contradicted=1).holds is False


def test_the_default_utility_counts_the_answers_within_the_threshold():
    found = [Outcome(cell, error) for cell, error in zip(CELLS, [1, 10, 10.1, math.inf], strict=True)]
    assert sum(map(within(10), found)) == 2


def test_a_sum_may_be_off_by_that_many_rows_of_its_largest_weight():
    ages = LinearQuery.product(LINE, {"age": [0, 1, 2, 3]})
    assert within(10)(Outcome(ages, 30.0))
    assert not within(10)(Outcome(ages, 30.1))


@pytest.mark.parametrize("threshold", [0, -1, math.nan, math.inf])
def test_a_threshold_that_is_no_positive_number_is_refused(threshold):
    with pytest.raises(SharingError, match="positive number of rows"):
        within(threshold)
