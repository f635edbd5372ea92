"""Measures: what a domain with them is made of, and what one row of the table changes."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharewell import Block, Boolean, Domain, Integer, LinearQuery, vectorize
from sharewell.errors import DomainError, QueryError, QueryTooComplex
from sharewell.query.block import GroupedBlock, ParallelBlock
from sharewell.query.measure import Measure

UNTYPED: Any = "wage"


@st.composite
def measures(draw, name: str) -> Measure:
    low, steps = draw(st.integers(-3, 3)), draw(st.integers(1, 4))
    step = draw(st.sampled_from([1, Fraction(1, 2), 3]))
    return Measure(name, "y", low, low + steps * step, step, nullable=draw(st.booleans()))


@st.composite
def measured_domains(draw) -> Domain:
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
    other = draw(st.sampled_from([None, "other"]))
    attributes = [Integer(f"a{i}", 1, size, other=other) for i, size in enumerate(sizes)]
    return Domain(attributes, [draw(measures(f"m{i}")) for i in range(draw(st.integers(1, 2)))])


@st.composite
def measured_queries(draw, count: int) -> tuple[Domain, np.ndarray]:
    domain = draw(measured_domains())
    weights = st.lists(st.sampled_from([0, 0, 1, -1, 2]), min_size=domain.size, max_size=domain.size)
    return domain, np.array([draw(weights) for _ in range(count)])


def all_rows(domain: Domain) -> list[np.ndarray]:
    """What every possible row of the table adds to the data; the last is a row that is dropped."""
    options = []
    for measure in domain.measures:
        values = range(measure.lowest, measure.highest + 1)
        options.append(
            [(1, z) for z in values] + [(0, 0)] if measure.nullable else [(z,) for z in values]
        )
    rows = []
    for cell in range(domain.cells):
        for added in product(*options):
            row = np.zeros((domain.cells, domain.vectors), dtype=int)
            row[cell] = [1, *(number for each in added for number in each)]
            rows.append(row.ravel())
    return [*rows, np.zeros(domain.size, dtype=int)] if domain.may_drop else rows


def changes(matrix: np.ndarray, domain: Domain, neighbours: str) -> list[np.ndarray]:
    """How the answers of neighbouring tables can differ."""
    answers = [matrix @ row for row in all_rows(domain)]
    return answers if neighbours == "add-remove" else [u - v for u in answers for v in answers]


@given(measured_queries(1), st.sampled_from(["add-remove", "replace-one"]))
def test_the_unit_of_a_row_covers_what_one_row_of_the_table_changes(case, neighbours):
    domain, matrix = case
    query = LinearQuery.from_vector(domain, matrix[0])
    block = ParallelBlock(domain, [query])
    exact = max(abs(change[0]) for change in changes(matrix, domain, neighbours))
    [unit] = block.units(neighbours)
    if neighbours == "add-remove":
        assert unit == exact
    else:
        # 0 counts as one of the weights, even where no row can be dropped.
        assert exact <= unit <= max(exact, 2 * query.max_abs)
        if domain.may_drop or not matrix.all():
            assert unit == exact or not domain.may_drop


@given(measured_queries(2), st.sampled_from(["add-remove", "replace-one"]), st.sampled_from([1, 2]))
@settings(deadline=None)
def test_the_sensitivity_of_a_block_is_that_over_all_rows_of_the_table(case, neighbours, power):
    domain, matrix = case
    block = Block(domain, [LinearQuery.from_vector(domain, weights) for weights in matrix])
    exact = max((np.abs(change) ** power).sum() for change in changes(matrix, domain, neighbours))
    claim = block.l1_sensitivity if power == 1 else block.l2_sensitivity_squared
    assert claim(neighbours) == exact


@given(measured_queries(1), st.sampled_from(["add-remove", "replace-one"]), st.data())
def test_the_rows_of_a_group_by_change_by_their_units_in_all(case, neighbours, data):
    domain, matrix = case
    base = LinearQuery.from_vector(domain, matrix[0])
    groups = {
        0: data.draw(st.lists(st.integers(0, 1), min_size=domain.shape[0], max_size=domain.shape[0]))
    }
    block = GroupedBlock(base, groups)
    assert list(ParallelBlock.of(ParallelBlock(domain, block.queries))) == list(block)
    rows = block.primitive
    if not len(rows):
        return
    dense = np.array([row.to_vector() for row in rows])
    units = rows.units(neighbours)
    assert units.tolist() == ParallelBlock(domain, rows.queries).units(neighbours).tolist()
    limit = rows.l1_sensitivity(neighbours)
    for change in changes(dense, domain, neighbours):
        assert (np.abs(change) / units).sum() <= limit + 1e-9


@given(measured_queries(2))
def test_rows_are_disjoint_only_if_no_cell_is_in_both_in_any_vector(case):
    domain, matrix = case
    cells = (matrix.reshape(2, -1, domain.vectors) != 0).any(axis=2)
    block = Block(domain, [LinearQuery.from_vector(domain, weights) for weights in matrix])
    if (cells[0] & cells[1]).any():
        with pytest.raises(QueryError, match="overlap in a cell"):
            ParallelBlock.of(block)
    else:
        ParallelBlock.of(block)


def test_count_and_sum_of_one_cell_are_not_disjoint():
    domain = Domain([Boolean("a")], [Measure("wage", "wage", 0, 10, 1)])
    count, _, total = (LinearQuery.of_vectors(domain, {1: np.eye(3, dtype=int)[at]}) for at in range(3))
    with pytest.raises(QueryError, match="overlap in a cell"):
        ParallelBlock.of(Block(domain, [count, total]))
    assert total.max_abs == 5
    assert total.spread == 10
    assert Block(domain, [count, total]).l1_sensitivity("add-remove") == 6


def test_the_vectors_are_a_last_axis():
    attributes = [Integer("age", 0, 9), Boolean("employed")]
    wage = Measure("wage", "wage_per_hour", 0, 100, 0.01)
    hours = Measure("hours", "age", 0, 7, 1, nullable=False)
    domain = Domain(attributes, [wage, hours])
    assert domain.shape == (10, 2, 4)
    assert domain.size == 80
    assert domain.vectors_of("Wage") == (1, 2)
    assert domain.vectors_of("hours") == (0, 3)
    assert (hours.lowest, hours.highest, hours.middle) == (-3, 4, Fraction(3))
    with pytest.raises(DomainError, match="The measures are wage, hours"):
        domain.vectors_of("age")
    assert domain.names == ("age", "employed")


def test_a_domain_without_measures_is_as_it_was():
    domain = Domain([Integer("age", 0, 9), Boolean("employed")])
    assert domain.fingerprint == "3fe888dde48a66339aa434b25efa092a"
    assert domain == Domain(domain.attributes, [])
    assert domain.vectors == 1
    wage = Measure("wage", "wage", 0, 10, 1)
    others = [Domain(domain.attributes, [Measure("wage", "wage", 0, high, 1)]) for high in (10, 11)]
    assert len({domain.fingerprint, *(each.fingerprint for each in others)}) == 3
    assert Domain(domain.attributes, [wage]) == others[0]


def test_a_column_may_be_attribute_and_measure_at_once():
    domain = Domain([Integer("age", 0, 9), Boolean("employed")], [Measure("Age", "age", 0, 9, 1)])
    assert domain.names == ("age", "employed")
    assert domain.vectors_of("age") == (1, 2)
    rows = pa.table({"age": [3, 9, 9], "employed": [True, True, False]})
    data = vectorize(rows, domain)
    total = LinearQuery.of_vectors(domain, {1: np.array([0, 1]), 2: np.array([0, 0, 1])})
    # The middle is 4, and true the second cell.
    assert data.answer(total) == (3 - 4) + (9 - 4)


def test_a_row_without_a_value_is_dropped_only_where_the_measure_is_not_nullable():
    closed = [Boolean("employed", other="other")]
    assert not Domain(closed, [Measure("wage", "wage", 0, 10, 1)]).may_drop
    assert Domain(closed, [Measure("wage", "wage", 0, 10, 1, nullable=False)]).may_drop


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Measure("", "w", 0, 1, 1), "name of a measure"),
        (lambda: Measure("w", "  ", 0, 1, 1), "column of a measure"),
        (lambda: Measure("w", "w", 0, float("inf"), 1), "`high` of 'w' must be a finite number"),
        (lambda: Measure("w", "w", True, 2, 1), "`low` of 'w' must be a finite number"),
        (lambda: Measure("w", "w", 1, 1, 1), "low < high"),
        (lambda: Measure("w", "w", 0, 1, 0), "positive step"),
        (lambda: Measure("w", "w", 0, 1, 0.3), "3.33.* steps apart"),
        (lambda: Measure("w", "w", 0, 2**32, 1), "4,294,967,296 steps apart"),
        (lambda: Measure("w", "w", 0, 1, 1, nullable=UNTYPED), "True or False"),
        (lambda: Domain([Boolean("a")], [Measure("A", "w", 0, 1, 1)]), "Duplicate name 'A'"),
        (lambda: Domain([Boolean("a")], [Measure("w", "w", 0, 1, 1)] * 2), "Duplicate name 'w'"),
        (lambda: Domain([Boolean("a")], [Measure("a", "a", 0, 1, 1)] * 2), "Duplicate name 'a'"),
        (
            lambda: Domain([Integer("a", 0, 9, bins={"g": [0]})], [Measure("g", "g", 0, 1, 1)]),
            "Duplicate name 'g'",
        ),
        (lambda: Domain([Boolean("a")], [UNTYPED]), "cannot be 'wage'"),
    ],
)
def test_a_measure_that_cannot_be_is_refused_in_a_sentence(make, says):
    with pytest.raises(DomainError, match=says):
        make()


def test_weights_are_bounded_by_what_a_row_changes():
    domain = Domain([Boolean("a")], [Measure("w", "w", -(2**30), 2**30, 1)])
    total = LinearQuery.of_vectors(domain, {1: np.array([0, 0, 1])})
    assert ParallelBlock(domain, [total * 2]).units("add-remove").tolist() == [2**31]
    with pytest.raises(QueryError, match="not exceed 2,147,483,648"):
        ParallelBlock(domain, [total * 3]).units("add-remove")


def test_a_block_over_too_many_measures_at_once_is_refused():
    domain = Domain([Boolean("a")], [Measure(f"m{i}", "w", 0, 2, 1) for i in range(12)])
    everything = LinearQuery.of_vectors(domain, {1: np.ones(domain.vectors, dtype=int)})
    with pytest.raises(QueryTooComplex, match="too many measures"):
        Block(domain, [everything]).l1_sensitivity("add-remove")
    assert ParallelBlock(domain, [everything]).units("add-remove").tolist() == [25]


# Products


@st.composite
def domains_with_products(draw) -> Domain:
    other = draw(st.sampled_from([None, "other"]))
    both = [draw(measures(f"m{i}")) for i in range(2)]
    pairs = draw(st.lists(st.sampled_from([("m0", "m0"), ("m1", "m0"), ("m1", "m1")]), min_size=1))
    return Domain([Integer("a", 1, 2, other=other)], both, pairs)


def rows_with_products(domain: Domain) -> list[np.ndarray]:
    """What every possible row adds to the vectors of one cell, by the definition of a product."""
    rows = []
    options = [
        [*range(each.lowest, each.highest + 1), *([None] if each.nullable else [])]
        for each in domain.measures
    ]
    for values in product(*options):
        by_name = {each.name: z for each, z in zip(domain.measures, values, strict=True)}
        row = [1]
        for each, z in zip(domain.measures, values, strict=True):
            row += [int(z is not None), z or 0] if each.nullable else [z]
        for vector in domain.product_vectors:
            factors = [by_name[each.name] for each in vector.factors]
            if any(by_name[each.name] is None for each in (*vector.factors, *vector.given)):
                row.append(0)
            else:
                row.append((int(np.prod(factors)) - vector.middle) // vector.scale)
        rows.append(np.array(row))
    return rows


@given(domains_with_products(), st.sampled_from(["add-remove", "replace-one"]), st.data())
@settings(max_examples=40)
def test_the_unit_of_products_covers_what_one_row_of_the_table_changes(domain, neighbours, data):
    """Each vector alone, for which the unit is exact, and any weights of all vectors."""
    rows = rows_with_products(domain)
    weights = st.lists(st.integers(-2, 2), min_size=domain.vectors, max_size=domain.vectors)
    for row in [*np.eye(domain.vectors, dtype=int), np.array(data.draw(weights))]:
        query = LinearQuery.of_vectors(domain, {1: row})
        changes = [int(row @ added) for added in rows]
        low, high = min(0, *changes), max(0, *changes)
        exact = max(-low, high) if neighbours == "add-remove" else high - low
        block = ParallelBlock(domain, [query.primitive]) if query.root else None
        unit = 0 if block is None else int(block.units(neighbours)[0] * abs(query.scale))
        assert unit >= exact
        if np.count_nonzero(row) == 1:
            assert unit == exact


def test_large_products_are_counted_in_coarser_steps():
    income = Measure("income", "income", 0, 500_000, 1)
    [square] = Domain([Boolean("a")], [income], [("income", "income")]).product_vectors
    assert square.scale == 1024
    assert square.highest - square.lowest <= 2**26
    assert square.zero + square.unit * square.lowest == 0
    assert abs(square.zero + square.unit * square.highest - 250_000**2) <= square.scale


def test_products_add_only_the_vectors_that_are_new():
    x, y = Measure("x", "x", 0, 4, 1, nullable=False), Measure("y", "y", 0, 4, 1)
    attributes = [Boolean("a")]
    # Of x, whose rows all have a value: its square. Beside y: x, and its square, where y has a value.
    assert len(Domain(attributes, [x, y], [("x", "x")]).product_vectors) == 1
    domain = Domain(attributes, [x, y], [("y", "x"), ("y", "y"), ("x", "y")])
    assert domain.products == (("x", "y"), ("y", "y"))
    names = [[each.name for each in one.factors] for one in domain.product_vectors]
    assert names == [["x"], ["x", "x"], ["y", "y"], ["x", "y"]]
    assert domain.multiplied_with("y") == ("x", "y")
