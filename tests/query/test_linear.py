"""Linear queries against dense vectors, the naive oracle."""

import json
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell import Boolean, Category, Domain, Integer, LinearQuery
from sharewell.errors import QueryError, QueryTooComplex
from sharewell.query import diagram
from tests.query.domains import domain_and_vectors, queries


@given(domain_and_vectors(1))
def test_a_query_written_out_is_the_vector_it_was_made_from(case):
    domain, [vector] = case
    assert np.array_equal(LinearQuery.from_vector(domain, vector).to_vector(), vector)


@given(domain_and_vectors(2), st.integers(-3, 3), st.fractions(-2, 2, max_denominator=6))
def test_sums_and_multiples_are_those_of_the_vectors(case, a, b):
    domain, dense = case
    p, q = queries(domain, dense)
    combined = a * p + b * q
    expected = [a * Fraction(int(x)) + b * int(y) for x, y in zip(*dense, strict=True)]
    assert combined.to_vector() == pytest.approx([float(x) for x in expected], abs=1e-12)
    assert (p - q) + q == p
    assert -p == p * -1


@given(domain_and_vectors(2, low=0, high=1))
def test_and_or_not_are_those_of_the_masks(case):
    domain, (x, y) = case
    p, q = queries(domain, [x, y])
    assert np.array_equal((p & q).to_vector(), x & y)
    assert np.array_equal((p | q).to_vector(), x | y)
    assert np.array_equal((~p).to_vector(), 1 - x)
    assert (p & q).is_predicate
    assert (p & q == p) == bool(np.all(x <= y))


@given(domain_and_vectors(2))
def test_numbers_about_a_query_are_those_of_the_vector(case):
    domain, (x, y) = case
    p, q = queries(domain, [x, y])
    assert p.l1_norm == np.abs(x).sum()
    assert p.max_abs == np.abs(x).max()
    assert p.spread == max(x.max(), 0) - min(x.min(), 0)
    assert p.is_zero == (not x.any())
    assert p.is_predicate == bool(np.isin(x, [0, 1]).all())
    assert np.array_equal(p.where(q).to_vector(), x * y)


@given(domain_and_vectors(2))
def test_an_answer_is_the_inner_product_with_the_counts(case):
    domain, (x, counts) = case
    query = LinearQuery.from_vector(domain, x)
    assert query.dot(np.abs(counts)) == x @ np.abs(counts)


@given(domain_and_vectors(2))
def test_queries_are_equal_exactly_when_their_vectors_are(case):
    domain, (x, y) = case
    p, q = queries(domain, [x, y])
    assert (p == q) == np.array_equal(x, y)
    detour = ((p + q) - q) * 3 * Fraction(1, 3)
    assert detour == p
    assert hash(detour) == hash(p)
    assert detour.key == p.key


@given(domain_and_vectors(1))
def test_a_query_is_the_sum_of_its_products(case):
    domain, [x] = case
    total = np.zeros(domain.size)
    for factor, vectors in LinearQuery.from_vector(domain, x).products():
        term = np.ones(1)
        for vector in vectors:
            term = np.multiply.outer(term, vector).ravel()
        total += float(factor) * term
    assert np.array_equal(total, x)


@given(domain_and_vectors(1))
def test_a_query_survives_being_written_as_json(case):
    domain, [x] = case
    query = LinearQuery.from_vector(domain, x) * Fraction(5, 7)
    assert LinearQuery.from_json(domain, json.loads(json.dumps(query.to_json()))) == query


def test_a_key_is_the_same_in_another_process():
    code = (
        "from sharewell import *; d = Domain([Integer('age', 0, 85), Boolean('employed')]);"
        "print(LinearQuery.of(d, age=range(20, 30), employed=[1]).key)"
    )
    keys = {subprocess.check_output([sys.executable, "-c", code], text=True) for _ in range(2)}
    domain = Domain([Integer("age", 0, 85), Boolean("employed")])
    assert keys == {LinearQuery.of(domain, age=range(20, 30), employed=[1]).key + "\n"}


def test_a_domain_of_astronomical_size_is_never_written_out():
    domain = Domain([Integer(f"a{i}", 0, 99) for i in range(20)])
    low = LinearQuery.of(domain, a0=range(50), a19=range(10))
    high = LinearQuery.of(domain, a0=range(40, 100), a10=[3])
    assert domain.size == 100**20
    assert (low & high).l1_norm == 10 * 10 * 100**17
    assert (low | high).l1_norm == low.l1_norm + high.l1_norm - (low & high).l1_norm
    assert (low | high) & low == low
    assert ~~(low | high) == low | high
    with pytest.raises(QueryError, match="cells"):
        low.dot(np.zeros(3))


def test_an_and_over_attributes_is_a_single_product():
    domain = Domain([Integer("age", 0, 85), Category("sex", ["F", "M"]), Boolean("employed")])
    query = LinearQuery.of(domain, age=range(20, 30)) & LinearQuery.of(domain, employed=[1])
    assert len(list(query.products())) == 1
    total_age = LinearQuery.product(domain, {"age": np.arange(86), "sex": [0, 1]})
    assert len(list(total_age.products())) == 1


def test_and_refuses_what_is_not_a_predicate():
    domain = Domain([Integer("age", 0, 3)])
    with pytest.raises(QueryError, match="weights other than 0 and 1"):
        LinearQuery.product(domain, {"age": [0, 1, 2, 3]}) & LinearQuery.all(domain)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "x", None, 1j])
def test_a_weight_that_is_not_a_finite_number_is_refused(bad):
    domain = Domain([Integer("age", 0, 1)])
    with pytest.raises(QueryError, match="finite number"):
        LinearQuery.product(domain, {"age": np.array([1, bad], dtype=object)})
    with pytest.raises(QueryError, match="finite number"):
        LinearQuery.all(domain) * bad


def test_weights_of_the_wrong_length_or_size_are_refused():
    domain = Domain([Integer("age", 0, 1)])
    with pytest.raises(QueryError, match="Expected 2 weights"):
        LinearQuery.product(domain, {"age": [1, 2, 3]})
    with pytest.raises(QueryError, match="precision"):
        LinearQuery.product(domain, {"age": [0.1234567890123, 1.0]})
    with pytest.raises(QueryError, match="not exceed"):
        LinearQuery.product(domain, {"age": [2**40, 1]})
    with pytest.raises(QueryError, match="out of range"):
        LinearQuery.of(domain, age=[2])
    with pytest.raises(QueryError, match="Cell 2 is out of range"):
        LinearQuery.cell(domain, 2)


def test_queries_over_different_domains_do_not_mix():
    one, two = (Domain([Integer("age", 0, high)]) for high in (1, 2))
    with pytest.raises(QueryError, match="different domains"):
        LinearQuery.all(one) + LinearQuery.all(two)
    assert LinearQuery.all(one) != LinearQuery.all(two)


def test_a_query_that_ties_too_many_cells_together_is_refused(monkeypatch):
    monkeypatch.setattr(diagram, "MAX_PAIRS", 20)
    domain = Domain([Integer("a", 0, 99), Integer("b", 0, 99), Integer("c", 0, 99)])

    def diagonals() -> LinearQuery:
        query = LinearQuery.zero(domain)
        for i in range(100):
            query = query | LinearQuery.of(domain, a=[i], b=[i, (7 * i) % 100], c=[(3 * i) % 100])
        return query

    with pytest.raises(QueryTooComplex, match="too much work"):
        ~diagonals()


def test_a_repr_says_what_is_counted():
    domain = Domain([Integer("age", 0, 85), Category("sex", ["F", "M"])])
    assert (
        repr(LinearQuery.of(domain, age=range(20, 30), sex=[0])) == "LinearQuery(age[20..29] x sex['F'])"
    )
    assert repr(LinearQuery.of(domain, age=[1, 5, 6, 9])) == "LinearQuery(age[1, 5..6, 9])"
    assert repr(~LinearQuery.of(domain, age=[3])) == "LinearQuery(age[0..2, 4..85])"
    assert repr(LinearQuery.of(domain, age=range(0, 85, 2))) == "LinearQuery(age[0, 2, 4, ...])"
    assert repr(LinearQuery.all(domain)) == "LinearQuery(1)"
    assert repr(LinearQuery.zero(domain)) == "LinearQuery(0)"


def test_a_query_keeps_nothing_of_the_array_it_was_made_from():
    domain = Domain([Integer("age", 0, 3)])
    weights = np.array([0, 1, 1, 0])
    query = LinearQuery.of_vectors(domain, {0: weights})
    weights[:] = 1000
    assert query.to_vector().tolist() == [0, 1, 1, 0]
    assert weights.flags.writeable


@pytest.mark.parametrize(
    "stored",
    [
        {"scale": "1", "nodes": [[[[[1, 4]], 0], [[[999, 4]], 0]]]},
        {"scale": "1", "nodes": [[[[[1, 5]], 0]]]},
        {"scale": "1", "nodes": [[[[[1, 4]], 0]], [[[[1, 4]], 1]]]},
        {"scale": "1", "nodes": [[[[[1, 6], [0, -2]], 0]]]},
        {"scale": "1", "nodes": [[[[[0, 4], [1, 0]], 0]]]},
    ],
)
def test_a_stored_query_that_contradicts_itself_is_refused(stored):
    with pytest.raises(QueryError, match="stored query"):
        LinearQuery.from_json(Domain([Integer("age", 0, 3)]), stored)


def test_a_cell_of_a_large_domain_is_one_product():
    domain = Domain([Integer(f"a{i}", 0, 99) for i in range(8)])
    [(scale, vectors)] = LinearQuery.cell(domain, 123_456_789).products()
    assert scale == 1
    assert [vector.nonzero()[0].tolist() for vector in vectors] == [
        [0],
        [0],
        [0],
        [1],
        [23],
        [45],
        [67],
        [89],
    ]
    assert all(vector.max() == 1 for vector in vectors)
