"""Blocks and their sensitivity, against dense matrices."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell import Block, Boolean, Domain, Integer, LinearQuery
from sharewell.errors import QueryError, QueryTooComplex
from sharewell.query import block as block_module
from sharewell.query import workload
from tests.query.domains import domain_and_vectors, queries


def naive_sensitivity(matrix: np.ndarray, neighbours: str, power: int, may_drop: bool) -> int:
    columns = [*matrix.T] + ([np.zeros(len(matrix), dtype=int)] if may_drop else [])
    if neighbours == "add-remove":
        return max((np.abs(c) ** power).sum() for c in columns)
    return max((np.abs(c - d) ** power).sum() for c in columns for d in columns)


@given(domain_and_vectors(3), st.sampled_from(["add-remove", "replace-one"]))
def test_sensitivity_is_that_of_the_dense_matrix(case, neighbours):
    domain, dense = case
    block = Block(domain, queries(domain, dense))
    matrix = np.array(dense)
    assert block.l1_sensitivity(neighbours) == naive_sensitivity(matrix, neighbours, 1, domain.may_drop)
    assert block.l2_sensitivity_squared(neighbours) == naive_sensitivity(
        matrix, neighbours, 2, domain.may_drop
    )


@given(domain_and_vectors(3))
def test_the_bound_used_for_many_columns_is_never_below_the_exact_one(case):
    domain, dense = case
    block = Block(domain, queries(domain, dense))
    exact = block.l1_sensitivity("replace-one"), block.l2_sensitivity_squared("replace-one")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_module, "MAX_PAIRED_COLUMNS", 1)
        bound = block.l1_sensitivity("replace-one"), block.l2_sensitivity_squared("replace-one")
    assert bound[0] >= exact[0]
    assert bound[1] >= exact[1]


@given(domain_and_vectors(3))
def test_answers_are_those_of_the_dense_matrix(case):
    domain, dense = case
    counts = np.arange(domain.size)
    block = Block(domain, queries(domain, dense))
    assert np.array_equal(block.answers(counts), np.array(dense) @ counts)


def test_a_histogram_has_sensitivity_one_or_two_whatever_its_size():
    domain = Domain([Integer("a", 0, 39), Integer("b", 0, 29)])
    histogram = workload.identity(domain)
    assert histogram.l1_sensitivity("add-remove") == 1
    assert histogram.l1_sensitivity("replace-one") == 2


def test_the_total_is_no_secret_under_replace_one_only_where_no_row_can_be_dropped():
    leaky = Domain([Boolean("employed", nullable=True)])
    closed = Domain([Boolean("employed", nullable=True, other="other")])
    assert workload.total(leaky).l1_sensitivity("replace-one") == 1
    assert workload.total(closed).l1_sensitivity("replace-one") == 0
    assert workload.total(closed).l1_sensitivity("add-remove") == 1


def test_fractional_weights_have_no_sensitivity_here():
    domain = Domain([Integer("age", 0, 3)])
    with pytest.raises(QueryError, match="primitive"):
        Block(domain, [LinearQuery.all(domain) * Fraction(1, 2)]).l1_sensitivity("add-remove")


def test_a_block_over_two_domains_is_refused():
    one, two = (Domain([Integer("age", 0, high)]) for high in (1, 2))
    with pytest.raises(QueryError, match="its domain"):
        Block(one, [LinearQuery.all(two)])


def test_a_block_with_too_many_kinds_of_cells_is_refused(monkeypatch):
    monkeypatch.setattr(block_module, "MAX_COLUMNS", 20)
    with pytest.raises(QueryTooComplex, match="too many groups"):
        workload.identity(Domain([Integer("age", 0, 85)])).l1_sensitivity("add-remove")


def test_a_slice_of_a_block_is_a_block():
    block = workload.identity(Domain([Integer("age", 0, 9)]))
    assert list(block[2:4]) == [block[2], block[3]]
    assert len(block[2:4]) == 2
