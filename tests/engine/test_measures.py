"""Sums of real values: rounded to a public grid, clamped to public bounds, and exact."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharewell import Binned, Boolean, Domain, Integer, LinearQuery
from sharewell.engine import data_vector as data_vector_module
from sharewell.engine.data_vector import DataVector
from sharewell.engine.vectorize import vectorize
from sharewell.errors import SourceError
from sharewell.query.block import GroupedBlock, Marginal, Neighbours, ParallelBlock
from sharewell.query.measure import Measure
from tests.query.test_measure import measured_queries

KINDS = {
    "doubles": (pa.float64(), st.floats(allow_nan=True) | st.floats(-5, 15)),
    "singles": (pa.float32(), st.floats(width=32) | st.floats(-4, 12, width=32)),
    "integers": (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 13)),
    "texts": (
        pa.string(),
        st.sampled_from(["", "x", "nan", "inf", "-inf", "1e999", "7", " 2.5 ", "--1"]),
    ),
    "decimals": (pa.decimal128(38, 4), st.decimals(-9, 19, places=4) | st.just(10**30)),
}


def oracle(value: object, measure: Measure) -> list[int] | None:
    """What a value adds to the measure's vectors; None where its row is dropped."""
    try:
        number = float(value) if value is not None else math.nan  # type: ignore[arg-type]
    except ValueError:
        number = math.nan
    if math.isnan(number):
        return [0, 0] if measure.nullable else None
    clamped = min(max(number, float(measure.low)), float(measure.high))
    exact = (clamped - float(measure.low)) / float(measure.step)
    steps = math.floor(exact) + (exact - math.floor(exact) >= 0.5)
    return [1, steps + measure.lowest] if measure.nullable else [steps + measure.lowest]


def vectorized(rows: pa.Table, domain: Domain, unit: str | None, sparse: bool) -> np.ndarray:
    """The dense numbers, from either form."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_vector_module, "MAX_DENSE", 0 if sparse else 2**22)
        data = vectorize(rows, domain, unit, max_rows=30)
    if data.codes is None:
        return data.counts.reshape(-1, domain.vectors)
    assert data.counts.shape == (30 * domain.vectors,)
    dense = np.zeros((*domain.shape[:-1], domain.vectors), dtype=np.int64)
    for vector, sums in enumerate(data.counts.reshape(domain.vectors, -1)):
        np.add.at(dense[..., vector], data.codes, sums)
    return dense.reshape(-1, domain.vectors)


@given(
    st.sampled_from(sorted(KINDS)),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 0.25, 0.1]),
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_sums_are_those_of_the_oracle(kind, nullable, sparse, step, data):
    type_, values = KINDS[kind]
    rows = data.draw(st.lists(st.tuples(st.integers(-1, 3), st.none() | values), max_size=12))
    columns = [pa.array([a for a, _ in rows], pa.int64()), pa.array([y for _, y in rows], type_)]
    table = pa.table(columns, ["a", "y"])
    domain = Domain([Integer("a", 0, 2)], [Measure("m", "y", -1, 10, step, nullable=nullable)])
    expected = np.zeros((3, domain.vectors), dtype=int)
    for a, y in zip(*(column.to_pylist() for column in table.columns), strict=True):
        added = oracle(y, domain.measures[0])
        if 0 <= a <= 2 and added is not None:
            expected[a] += [1, *added]
    assert vectorized(table, domain, None, sparse).tolist() == expected.tolist()


@given(st.lists(st.tuples(*[st.none() | st.integers(-40, 40)] * 2), max_size=12), st.booleans())
@settings(max_examples=25, deadline=None)
def test_products_are_those_of_the_oracle(rows, sparse):
    """Of small measures, and of one that is so fine that its square is rounded."""
    fine = Measure("fine", "y", 0, 10, Fraction(1, 10**6))
    domain = Domain(
        [Boolean("a", nullable=True)],
        [Measure("x", "x", -3, 8, Fraction(1, 2)), Measure("y", "y", 0, 5, 1), fine],
        [("x", "x"), ("x", "y"), ("fine", "fine")],
    )
    columns = [pa.array([None] * len(rows), pa.bool_())]
    columns += [pa.array([row[at] for row in rows], pa.float64()) for at in range(2)]
    expected = np.zeros((3, domain.vectors), dtype=int)
    for x, y in rows:
        pairs = [oracle(each, m) for each, m in zip((x, y, y), domain.measures, strict=True)]
        values = {m: pair for m, pair in zip(domain.measures, pairs, strict=True) if pair is not None}
        added = [1, *(number for pair in pairs if pair for number in pair)]
        for vector in domain.product_vectors:
            exact = math.prod(values[each][1] for each in vector.factors)
            known = all(values[each][0] for each in (*vector.factors, *vector.given))
            nearest = math.floor(Fraction(exact - vector.bounds[0], vector.scale) + Fraction(1, 2))
            steps = nearest + vector.lowest if len(vector.factors) == 2 else exact
            added.append(steps if known else 0)
        expected[2] += added
    found = vectorized(pa.table(columns, ["a", "x", "y"]), domain, None, sparse)
    assert found.tolist() == expected.tolist()
    assert domain.product_vectors[-1].scale > 1


ROW = st.tuples(st.integers(0, 3), st.integers(-1, 3), st.none() | st.integers(-2, 8))


@given(
    st.lists(ROW, max_size=10),
    st.integers(0, 3),
    st.lists(ROW, max_size=2),
    st.booleans(),
    st.booleans(),
    st.data(),
)
@settings(max_examples=25, deadline=None)  # One takes 150 ms: four tables are read.
def test_one_person_changes_every_row_by_at_most_its_unit(rows, person, instead, nullable, sparse, data):
    """Both notions: the person's rows are removed, or replaced by others."""
    measures = [Measure("m", "y", 0, 5, 1, nullable=nullable), Measure("signed", "y", -1, 3, 1)]
    pairs = data.draw(st.sampled_from([[], [("m", "m")], [("m", "signed")]]))
    domain = Domain([Integer("a", 0, 2)], measures, pairs)
    weights = st.lists(st.integers(-3, 3), min_size=domain.size, max_size=domain.size)
    queries = [LinearQuery.from_vector(domain, np.array(data.draw(weights))) for _ in range(2)]
    queries += [LinearQuery.vector(domain, at) for at in range(domain.vectors)]

    def answers(rows) -> list[int]:
        columns = [pa.array([row[at] for row in rows], pa.int64()) for at in range(3)]
        found = vectorized(pa.table(columns, ["id", "a", "y"]), domain, "id", sparse)
        return [int(query.dot(found)) for query in queries]

    others = [row for row in rows if row[0] != person]
    replaced = [*others, *((person, *rest) for _, *rest in instead)]
    notions: dict[Neighbours, list] = {"add-remove": others, "replace-one": replaced}
    for notion, neighbour in notions.items():
        for query, one, two in zip(queries, answers(rows), answers(neighbour), strict=True):
            [unit] = ParallelBlock(domain, [query]).units(notion)
            assert abs(one - two) <= unit


@given(measured_queries(1), st.data())
def test_sparse_and_dense_sums_give_the_same_answers(case, data):
    domain, [weights] = case
    cells = domain.cells
    counts = np.zeros((cells, domain.vectors), dtype=np.int64)
    for cell, number in enumerate(
        data.draw(st.lists(st.integers(0, 3), min_size=cells, max_size=cells))
    ):
        for _ in range(number):
            added = [data.draw(st.sampled_from(measure.extremes)) for measure in domain.measures]
            counts[cell] += [1, *(each for pair in added for each in pair)]
    dense = DataVector(domain, counts)
    used = np.flatnonzero(counts[:, 0])
    codes = np.unravel_index(used, domain.shape[:-1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_vector_module, "MAX_DENSE", 0)
        sparse = DataVector.of_cells(domain, codes, counts[used].T, int(counts[:, 0].sum()) + 2)
    query = LinearQuery.from_vector(domain, weights)
    assert dense.answer(query) == sparse.answer(query) == weights @ counts.ravel()
    block = GroupedBlock(query, {0: np.arange(domain.shape[0]) % 2})
    assert block.answers(dense).tolist() == block.answers(sparse).tolist()
    vectors = list(range(domain.vectors))[::-1]
    wanted = [Marginal((0,), tuple(vectors))]
    [table] = dense.marginals(wanted)
    assert np.array_equal(table, sparse.marginals(wanted)[0])
    assert table.sum() == counts.sum()


def test_a_column_can_be_attribute_and_measure_at_once():
    domain = Domain([Binned("wage", [0, 10, 100])], [Measure("pay", "wage", 0, 100, Fraction(1, 100))])
    found = vectorize(pa.table({"wage": [1.004, 99.99, 50.0, 100.0]}), domain).counts.reshape(2, 3)
    assert found.tolist() == [[1, 1, -4900], [2, 2, 4999]]


@pytest.mark.parametrize(
    ("low", "high", "step"),
    [(10**18 + 63, 10**18 + 65, 1), (10**16, 10**16 + 3, 1), (-(10**308), 10**308, 10**300)],
)
@pytest.mark.parametrize("value", [-math.inf, -1.5e308, 0.0, 1e16, 1e17, 1.5e308, math.inf])
def test_one_row_stays_within_bounds_that_doubles_cannot_tell_apart(low, high, step, value):
    """Among rows at the lower bound, whose sum would make up for one beyond the upper."""
    measure = Measure("m", "y", low, high, step)
    domain = Domain([Integer("a", 0, 0)], [measure])
    others = [-math.inf] * 200
    _, _, without = vectorize(pa.table({"a": [0] * 200, "y": others}), domain).counts.tolist()
    _, _, found = vectorize(pa.table({"a": [0] * 201, "y": [*others, value]}), domain).counts.tolist()
    assert measure.lowest <= found - without <= measure.highest


def test_a_column_without_numbers_is_no_measure():
    domain = Domain([Integer("a", 0, 1)], [Measure("m", "y", 0, 1, 1)])
    with pytest.raises(
        SourceError, match=r"'y' of type BOOLEAN as Measure\. Cast it to integers, numbers"
    ):
        vectorize(pa.table({"a": [1], "y": [True]}), domain)


@pytest.mark.parametrize("sums", [[1, 2, 0], [1, 1, 4], [1, 0, 1], [1, -1, 0]])
def test_sums_outside_their_bounds_are_refused(sums):
    domain = Domain([Integer("a", 0, 0)], [Measure("m", "y", 0, 6, 1)])
    DataVector(domain, np.array([1, 1, 3]))
    with pytest.raises(SourceError, match="outside its bounds"):
        DataVector(domain, np.array(sums))
