"""Blocks and their sensitivity, against dense matrices."""

import json
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell import Block, Boolean, Domain, Integer, LinearQuery
from sharewell.engine.data_vector import DataVector
from sharewell.errors import QueryError, QueryTooComplex
from sharewell.query import block as block_module
from sharewell.query import workload
from sharewell.query.block import GroupedBlock, ParallelBlock
from sharewell.query.diagram import are_disjoint
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
    assert np.array_equal(block.answers(DataVector(domain, counts)), np.array(dense) @ counts)


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
    with pytest.raises(QueryTooComplex, match="too many distinct columns"):
        workload.identity(Domain([Integer("age", 0, 85)])).l1_sensitivity("add-remove")


def test_a_slice_of_a_block_is_a_block():
    block = workload.identity(Domain([Integer("age", 0, 9)]))
    assert list(block[2:4]) == [block[2], block[3]]
    assert len(block[2:4]) == 2


@given(domain_and_vectors(1), st.data())
def test_a_grouped_query_is_divided_among_its_groups(case, data):
    domain, [vector] = case
    query = LinearQuery.from_vector(domain, vector)
    levels = data.draw(st.permutations(range(len(domain.shape))))[: data.draw(st.integers(0, 2))]
    groups = {at: data.draw(groupings(domain.shape[at])) for at in levels}
    block = ParallelBlock.group_by(query, groups)
    assert len(block) == np.prod([max(of_cell) + 1 for of_cell in groups.values()], initial=1)
    dense = np.array([row.to_vector() for row in block])
    assert np.array_equal(dense.sum(axis=0), vector)
    assert ((dense != 0).sum(axis=0) <= 1).all()
    ParallelBlock.of(block)
    for row, expected in enumerate(np.ndindex(*[max(of_cell) + 1 for of_cell in groups.values()])):
        cells = np.indices(domain.shape).reshape(len(domain.shape), -1)
        inside = [np.array(groups[at])[cells[at]] == g for at, g in zip(groups, expected, strict=True)]
        assert np.array_equal(dense[row], np.where(np.all(inside, axis=0), vector, 0))


@given(domain_and_vectors(1), st.data())
def test_a_grouped_block_has_the_rows_of_its_groups(case, data):
    domain, [vector] = case
    base = LinearQuery.from_vector(domain, vector) * data.draw(st.sampled_from([1, Fraction(3, 2), -2]))
    levels = data.draw(st.permutations(range(len(domain.shape))))[: data.draw(st.integers(0, 2))]
    groups = {at: data.draw(groupings(domain.shape[at])) for at in levels}
    block = GroupedBlock(base, groups)
    split = ParallelBlock.group_by(base, groups)
    assert block.places.tolist() == [row for row, query in enumerate(split) if not query.is_zero]
    rows = split.take(block.places.tolist())
    assert list(block) == list(rows)
    assert list(block.primitive) == list(rows.primitive)
    assert block.filled == (block, tuple(range(len(block))))
    chosen = data.draw(st.permutations(range(len(block))))[:2]
    for _ in range(2):  # before and after its queries are made
        assert list(block.take(chosen)) == [rows[at] for at in chosen]
    for same in (pickle.loads(pickle.dumps(block)), Block.from_json(domain, block.to_json())):
        assert type(same) is GroupedBlock
        assert list(same) == list(block)
    measured, expected = block.primitive, rows.primitive
    for neighbours in ("add-remove", "replace-one"):
        assert measured.units(neighbours).tolist() == expected.units(neighbours).tolist()
        assert measured.l1_sensitivity(neighbours) == expected.l1_sensitivity(neighbours)
    counts = DataVector(domain, np.arange(domain.size))
    assert measured.answers(counts).tolist() == expected.answers(counts).tolist()


def test_a_grouped_block_keeps_its_form_where_its_rows_are_alike():
    domain = Domain([Integer("age", 0, 9), Boolean("moved"), Boolean("employed")])
    ages = LinearQuery.product(domain, {"age": range(0, 20, 2), "moved": [0, 1]})
    assert type(GroupedBlock(ages, {2: [0, 1]}).primitive) is GroupedBlock
    assert type(GroupedBlock(ages, {0: range(10)}).primitive) is ParallelBlock
    either = LinearQuery.of(domain, age=[3]) | LinearQuery.of(domain, moved=[1])
    assert type(GroupedBlock(either * Fraction(1, 3), {0: range(10)}).primitive) is GroupedBlock


@pytest.mark.parametrize(
    ("groups", "places", "says"),
    [
        ({0: [0, 1]}, None, "the group of every cell"),
        ({2: [0, 1]}, None, "the group of every cell"),
        ({1: [0, -1]}, None, "the group of every cell"),
        ({1: [0, 1]}, [0, 0], "taken twice"),
        ({1: [0, 1]}, [2], "outside its groups"),
        ({1: [0, 1]}, [-1], "outside its groups"),
        ({1: [0, 2**40]}, None, "too large"),
    ],
)
def test_a_grouping_that_cannot_be_is_refused(groups, places, says):
    domain = Domain([Integer("age", 0, 9), Boolean("moved")])
    with pytest.raises((QueryError, QueryTooComplex), match=says):
        GroupedBlock(LinearQuery.all(domain), groups, places)


def groupings(size: int):
    return st.lists(st.integers(0, 2), min_size=size, max_size=size).map(
        lambda raw: [sorted(set(raw)).index(group) for group in raw]
    )


@given(st.integers(1, 5).flatmap(lambda rows: domain_and_vectors(rows, low=-1, high=1)))
def test_rows_are_disjoint_if_no_cell_has_a_weight_in_two_of_them(case):
    domain, vectors = case
    nodes = [query.root for query in queries(domain, vectors) if query.root]
    assert are_disjoint(nodes) == bool((np.count_nonzero(vectors, axis=0) <= 1).all())


def test_a_parallel_block_refuses_rows_that_share_a_cell():
    domain = Domain([Integer("age", 0, 9)])
    with pytest.raises(QueryError, match="overlap in a cell"):
        ParallelBlock.of(workload.prefixes(domain))


@given(domain_and_vectors(1))
def test_a_parallel_blocks_claim_covers_its_exact_sensitivity(case):
    """Rows divided by their units change by at most 1 in all, or 2 under replace-one."""
    domain, [vector] = case
    block = ParallelBlock.group_by(LinearQuery.from_vector(domain, vector), {0: range(domain.shape[0])})
    block = block.take(row for row, query in enumerate(block) if not query.is_zero)
    if not len(block):
        return
    for neighbours in ("add-remove", "replace-one"):
        matrix = np.array([row.to_vector() for row in block]) / block.units(neighbours)[:, None]
        for power, claim in ((1, block.l1_sensitivity), (2, block.l2_sensitivity_squared)):
            exact = naive_sensitivity(matrix, neighbours, power, domain.may_drop)
            assert exact <= claim(neighbours) + 1e-9


def test_a_row_cannot_be_taken_twice():
    block = ParallelBlock.of(workload.identity(Domain([Integer("age", 0, 9)])))
    assert list(block.take([3, 1])) == [block[3], block[1]]
    with pytest.raises(QueryError, match="taken twice"):
        block.take([3, 3])


def test_blocks_survive_being_written_as_json():
    domain = Domain([Integer("age", 0, 9), Boolean("moved")])
    for block in (
        workload.prefixes(domain, "age"),
        ParallelBlock.group_by(LinearQuery.all(domain), {1: range(2)}),
    ):
        again = Block.from_json(domain, json.loads(json.dumps(block.to_json())))
        assert list(again) == list(block)
        assert type(again) is type(block)


def test_weights_too_large_for_64_bits_are_refused_and_just_fitting_ones_are_exact():
    domain = Domain([Integer("age", 0, 1)])
    for weights in ([2**31, -(2**31)], [2**31, 0]):
        query = LinearQuery.product(domain, {"age": [w // 2**31 for w in weights]}) * 2**31
        block = Block(domain, [query] * 4)
        spread = max(weights) - min(weights)
        assert block.l2_sensitivity_squared("replace-one") == 4 * spread**2
        assert block.l1_sensitivity("replace-one") == 4 * spread
    square = Domain([Integer("a", 0, 1), Integer("b", 0, 1)])
    for too_large in (
        LinearQuery.all(domain) * (2**31 + 1),
        LinearQuery.product(square, {"a": [1, 2**20], "b": [1, 2**20]}),
    ):
        with pytest.raises(QueryError, match="not exceed 2,147,483,648"):
            Block(too_large.domain, [too_large]).l1_sensitivity("add-remove")
        with pytest.raises(QueryError, match="not exceed 2,147,483,648"):
            ParallelBlock(too_large.domain, [too_large]).units("replace-one")


def test_a_block_can_be_sent_to_another_process():
    block = workload.prefixes(Domain([Integer("age", 0, 9)]))
    again = pickle.loads(pickle.dumps(block))
    assert list(again) == list(block)
    assert again.l1_sensitivity("add-remove") == 10
