"""Desiderata: ratios and their awkward cases, and utilities of any kind."""

import math

import pytest

from sharewell import Domain, Integer, LinearQuery
from sharewell.errors import SharingError
from sharewell.sharing.desiderata import (
    Outcome,
    interference,
    max_ratio_error,
    outcomes,
    ratio,
    within,
)

LINE = Domain([Integer("age", 0, 3)])
CELLS = [LinearQuery.cell(LINE, at) for at in range(4)]


@pytest.mark.parametrize(
    ("elsewhere", "here", "expected"),
    [(61, 143, 61 / 143), (3, 2, 1.5), (5, 0, math.inf), (0, 0, 1.0), (0, 4, 0.0)],
)
def test_a_ratio_is_elsewhere_over_here_and_nothing_over_nothing_is_one(elsewhere, here, expected):
    assert ratio(elsewhere, here) == expected


def test_the_max_ratio_error_is_that_of_the_analyst_with_the_best_reason_to_go():
    assert max_ratio_error({"ann": 6, "bob": 2}, {"ann": 4, "bob": 8}) == 1.5
    assert max_ratio_error({"ann": 1}, {"ann": 0}) == math.inf
    assert max_ratio_error({}, {}) == 1


def test_interference_is_over_all_pairs_and_never_of_an_analyst_with_themselves():
    joint = {"ann": 4.0, "bob": 8.0}
    assert interference({"ann": {"bob": 10.0}, "bob": {"ann": 3.0}}, joint) == 1.25
    assert interference({"ann": {"ann": 99.0, "bob": 4.0}}, joint) == 0.5


def test_the_default_utility_counts_the_answers_within_the_threshold():
    found = [Outcome(cell, error) for cell, error in zip(CELLS, [1, 10, 10.1, math.inf], strict=True)]
    assert within(10)(found) == 2


def test_a_sum_may_be_off_by_that_many_rows_of_its_largest_weight():
    ages = LinearQuery.product(LINE, {"age": [0, 1, 2, 3]})
    assert within(10)([Outcome(ages, 30.0), Outcome(ages, 30.1)]) == 1


def test_a_utility_may_weigh_answers_by_what_was_asked():
    def only_the_first_cell(found):
        return sum(1 / outcome.error for outcome in found if outcome.query == CELLS[0])

    assert only_the_first_cell(outcomes(CELLS, [2.0, 1.0, 1.0, 1.0])) == 0.5


@pytest.mark.parametrize("threshold", [0, -1, math.nan, math.inf])
def test_a_threshold_that_is_no_positive_number_is_refused(threshold):
    with pytest.raises(SharingError, match="positive number of rows"):
        within(threshold)
