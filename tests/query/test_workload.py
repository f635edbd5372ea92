"""The named workloads, against their textbook matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell import Boolean, Category, Domain, Integer, LinearQuery
from sharewell.errors import QueryError
from sharewell.query import workload

LINE = Domain([Integer("age", 0, 12)])
PLANE = Domain([Integer("age", 0, 4), Category("sex", ["F", "M"]), Boolean("moved")])


def dense(block) -> np.ndarray:
    return np.array([query.to_vector() for query in block])


def test_identity_is_the_unit_matrix_in_c_order():
    assert np.array_equal(dense(workload.identity(PLANE)), np.eye(20))


def test_prefixes_are_the_lower_triangle():
    assert np.array_equal(dense(workload.prefixes(LINE)), np.tril(np.ones((13, 13))))


def test_prefixes_along_one_attribute_count_over_the_others():
    expected = np.kron(np.tril(np.ones((5, 5))), np.ones((1, 4)))
    assert np.array_equal(dense(workload.prefixes(PLANE, "age")), expected)


def test_ranges_are_all_intervals():
    block = workload.ranges(LINE)
    assert len(set(block)) == len(block) == 13 * 14 // 2
    assert all(np.abs(np.diff(row, prepend=0, append=0)).sum() == 2 for row in dense(block))


@given(st.integers(1, 40), st.integers(2, 7))
def test_a_hierarchy_is_a_tree_over_every_cell(size, branching):
    domain = Domain([Integer("age", 0, size - 1)])
    block = workload.hierarchy(domain, branching=branching)
    rows = dense(block)
    assert rows[0].sum() == size
    assert {tuple(row) for row in rows} >= {tuple(row) for row in np.eye(size, dtype=int)}
    assert len(set(block)) == len(block)
    for a in rows:  # any two intervals of a tree are nested or apart
        for b in rows:
            overlap = a & b
            assert not overlap.any() or np.array_equal(overlap, a) or np.array_equal(overlap, b)
    depth = rows.sum(axis=0).max()
    assert depth <= np.ceil(np.log(size) / np.log(branching) - 1e-9) + 1


def test_h2_on_a_power_of_two_is_the_full_binary_tree():
    block = workload.h2(Domain([Integer("age", 0, 7)]))
    assert len(block) == 15
    assert block.l1_sensitivity("add-remove") == 4


def test_marginals_are_the_sums_over_the_other_attributes():
    assert np.array_equal(dense(workload.marginals(PLANE, 0)), np.ones((1, 20)))
    assert np.array_equal(dense(workload.marginals(PLANE, 3)), np.eye(20))
    one, two = np.eye, np.ones
    age_by_moved = np.kron(np.kron(one(5), two((1, 2))), one(2))
    assert np.array_equal(dense(workload.marginal(PLANE, ["age", "moved"])), age_by_moved)
    assert len(workload.marginals(PLANE, 2)) == 5 * 2 + 5 * 2 + 2 * 2


def test_a_data_cube_holds_every_marginal_once():
    assert len(workload.data_cube(PLANE)) == 6 * 3 * 3
    assert len(set(workload.data_cube(PLANE))) == 6 * 3 * 3


def test_a_restricted_workload_has_no_empty_and_no_equal_queries():
    middle = LinearQuery.of(LINE, age=range(4, 8))
    assert dense(workload.identity(LINE).where(middle)).sum(axis=1).tolist() == [1] * 4
    prefixes = dense(workload.prefixes(LINE).where(middle))
    assert prefixes.sum(axis=1).tolist() == [1, 2, 3, 4]
    assert not prefixes[:, :4].any()
    assert not prefixes[:, 8:].any()


def test_random_points_and_ranges_are_points_and_boxes_and_follow_the_generator():
    points = workload.random_points(PLANE, 30, np.random.default_rng(1))
    boxes = workload.random_ranges(PLANE, 30, np.random.default_rng(1))
    assert all(q.l1_norm == 1 for q in points)
    assert all(len(list(q.products())) == 1 and q.is_predicate and not q.is_zero for q in boxes)
    again = workload.random_ranges(PLANE, 30, np.random.default_rng(1))
    assert list(boxes) == list(again)
    assert len(set(boxes)) > 10


def test_random_ranges_are_uniform_over_intervals():
    line = Domain([Integer("age", 0, 2)])
    drawn = workload.random_ranges(line, 6000, np.random.default_rng(7))
    counts = [list(drawn).count(q) for q in workload.ranges(line)]
    assert sum(counts) == 6000
    assert all(abs(count - 1000) < 150 for count in counts)


def test_impossible_workloads_are_refused_with_what_to_do():
    with pytest.raises(QueryError, match="age, sex, moved"):
        workload.prefixes(PLANE)
    with pytest.raises(QueryError, match="4-way"):
        workload.marginals(PLANE, 4)
    with pytest.raises(QueryError, match="at least 2"):
        workload.hierarchy(LINE, branching=1)
