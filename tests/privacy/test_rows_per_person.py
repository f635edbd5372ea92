"""Several rows per person: what one person changes, and the noise that hides it."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharewell import Budget, Category, Domain, Integer, LinearQuery, vectorize
from sharewell.engine.data_vector import DataVector
from sharewell.errors import PrivacyError, SourceError
from sharewell.privacy.curator import Curator
from sharewell.privacy.dry_run import CuratorSnapshot
from sharewell.privacy.ledger import MemoryLedger
from sharewell.privacy.sparse_vector import SparseVectorPlan
from sharewell.query.block import Block, Neighbours
from sharewell.query.measure import Measure

DOMAIN = Domain(
    [Integer("age", 0, 2), Category("sex", ["f", "m"], nullable=True)], [Measure("fee", "fee", -2, 3, 1)]
)
ROWS = st.tuples(
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from(["f", "m", None]),
    st.none() | st.integers(-9, 9),
)


def count(rows: Sequence[tuple[Any, ...]], most: int) -> DataVector:
    person, age, sex, fee = zip(*rows, strict=True) if rows else ((), (), (), ())
    table = pa.table(
        {
            "person": pa.array(person, pa.int64()),
            "age": pa.array(age, pa.int64()),
            "sex": pa.array(sex, pa.string()),
            "fee": pa.array(fee, pa.int64()),
        }
    )
    return vectorize(table, DOMAIN, "person", max_rows_per_person=most, key="key")


@settings(max_examples=20)
@given(st.lists(ROWS, max_size=14), st.lists(ROWS, max_size=5), st.integers(1, 4), st.data())
def test_one_person_changes_answers_within_the_sensitivity(rows, others, most, data):
    queries = [
        LinearQuery.of(DOMAIN, age=data.draw(st.sets(st.integers(0, 2), min_size=1))),
        LinearQuery.vector(DOMAIN, data.draw(st.integers(0, DOMAIN.vectors - 1))),
        LinearQuery.of(DOMAIN, sex=[1]) * data.draw(st.integers(-3, 3).filter(bool)),
    ]
    block = Block(DOMAIN, queries)
    without = [row for row in rows if row[0] != 0]
    replaced = without + [(0, *row[1:]) for row in others]
    whole, removed, changed = (
        np.array([data.answer(query) for query in queries])
        for data in (count(each, most) for each in (rows, without, replaced))
    )
    differences: dict[Neighbours, Any] = {
        "add-remove": whole - removed,
        "replace-one": whole - changed,
    }
    for neighbours, difference in differences.items():
        assert np.abs(difference).sum() <= most * block.l1_sensitivity(neighbours)
        assert (difference**2).sum() <= most**2 * block.l2_sensitivity_squared(neighbours)


def test_all_rows_of_a_person_may_be_in_one_cell():
    rows = [(0, 1, "f", 1)] * 9 + [(1, 2, "m", None)]
    assert int(count(rows, 4).answer(LinearQuery.all(DOMAIN))) == 5
    assert int(count(rows[9:], 4).answer(LinearQuery.all(DOMAIN))) == 1


def test_no_row_of_a_person_is_likelier_to_be_kept():
    # 3,000 people with rows 0, 0, 0 and 1: each keeps one, which is 1 for about a quarter.
    people = [(person, age, "f", 0) for person in range(3000) for age in (0, 0, 0, 1)]
    ones = int(count(people, 1).answer(LinearQuery.of(DOMAIN, age=[1])))
    assert 650 < ones < 850
    twos = int(count(people, 2).answer(LinearQuery.of(DOMAIN, age=[1])))
    assert 1370 < twos < 1630


def curator(most: int, budget: Budget, **options: object) -> Curator:
    return Curator(DataVector.empty(DOMAIN, most), budget, {"ann": budget.total}, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("budget", [Budget.pure(1), Budget.zcdp(1, "1e-6")])
def test_noise_is_in_proportion_to_the_rows_of_a_person(budget, neighbours):
    block = Block(DOMAIN, [LinearQuery.all(DOMAIN), LinearQuery.vector(DOMAIN, 2)])
    one, three = (curator(most, budget, neighbours=neighbours) for most in (1, 3))
    cost = budget.total / 2
    np.testing.assert_allclose(three.scales(block, cost), 3 * one.scales(block, cost), rtol=1e-15)
    np.testing.assert_allclose(CuratorSnapshot(three).scales(block, cost), three.scales(block, cost))


@pytest.mark.statistical
def test_the_noise_that_is_drawn_is_that_of_the_stated_number_and_of_no_other():
    # The variance of 600 draws has a relative standard deviation of 9 %: the bounds are six away.
    budget = Budget.pure(10_000)
    own = curator(3, budget)
    queries = [LinearQuery.all(DOMAIN)]
    values = [own.measure(Block(DOMAIN, queries), 1, "ann").values[0] for _ in range(600)]
    expected = own.variances(Block(DOMAIN, queries), 1)[0]
    assert 0.4 * expected < np.var(values) < 2 * expected
    wrong = curator(1, budget).variances(Block(DOMAIN, queries), 1)[0]
    assert np.var(values) > 3 * wrong


def test_a_sparse_vector_hides_all_rows_of_a_person():
    one, three = (SparseVectorPlan(Fraction(1), 5, 2, 1, "add-remove", most) for most in (1, 3))
    assert three.threshold_scale == pytest.approx(3 * one.threshold_scale)
    assert three.query_scale == pytest.approx(3 * one.query_scale)
    assert "max_rows_per_person" not in one.to_json()
    assert SparseVectorPlan.from_json(three.to_json()) == three
    opened = curator(3, Budget.pure(1)).sparse_vector(
        epsilon="1/2", threshold=5, positives=2, payer="ann"
    )
    assert opened.plan.max_rows_per_person == 3


def test_a_ledger_keeps_the_number_of_rows_that_it_was_begun_with():
    ledger = MemoryLedger()
    curator(3, Budget.pure(1), ledger=ledger)
    with pytest.raises(PrivacyError, match="max_rows_per_person"):
        curator(2, Budget.pure(1), ledger=ledger)
    curator(3, Budget.pure(1), ledger=ledger)


@pytest.mark.parametrize("most", [0, -1, 1001, True, "2"])
def test_a_number_of_rows_that_makes_no_sense_is_refused(most):
    with pytest.raises(SourceError, match="max_rows_per_person"):
        DataVector.empty(DOMAIN, most)


def test_several_rows_need_a_person():
    with pytest.raises(SourceError, match="requires `privacy_unit`"):
        vectorize(pa.table({"age": [1]}), Domain([Integer("age", 0, 3)]), max_rows_per_person=2)
