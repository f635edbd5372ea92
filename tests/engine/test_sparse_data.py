"""Sparse data vectors give the answers of dense ones, and hold nothing else."""

import pickle
import pprint
from contextlib import closing
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sharewell import Category, Domain, Integer, LinearQuery
from sharewell.engine import data_vector as data_vector_module
from sharewell.engine.data_vector import DataVector
from sharewell.engine.vectorize import cell_counts, vectorize
from sharewell.engine.view_tables import open_rows
from sharewell.errors import SourceError
from sharewell.query import contraction, workload
from sharewell.query.block import Marginal
from tests.engine.strategies import cases
from tests.query.domains import domain_and_vectors


@pytest.fixture
def always_sparse(monkeypatch):
    monkeypatch.setattr(data_vector_module, "MAX_DENSE", 0)


def sparse(domain: Domain, counts: np.ndarray, padding: int = 3) -> DataVector:
    """The same counts, listed by cell."""
    cells = np.flatnonzero(counts)
    codes = np.unravel_index(cells, domain.shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_vector_module, "MAX_DENSE", 0)
        return DataVector.of_cells(domain, codes, counts[cells], max(int(counts.sum()), 1) + padding)


def dense(data: DataVector) -> np.ndarray:
    """The count of every cell of a small domain."""
    assert data.codes is not None
    counts = np.zeros(data.domain.shape, dtype=np.int64)
    np.add.at(counts, data.codes, data.counts)
    return counts.ravel()


def query_rows(rows: pa.Table, sql: str) -> list[tuple[int, ...]]:
    """What DuckDB's own SQL says of the rows."""
    return duckdb.connect().register("rows", rows).execute(sql).fetchall()


@given(domain_and_vectors(2), st.data())
def test_sparse_and_dense_data_give_the_same_answers(case, data):
    domain, [weights, other] = case
    drawn = st.lists(st.integers(0, 4), min_size=domain.size, max_size=domain.size)
    counts = np.array(data.draw(drawn))
    both = [DataVector(domain, counts), sparse(domain, counts)]
    query = LinearQuery.from_vector(domain, weights) + LinearQuery.from_vector(domain, other) * 7
    expected = int((weights + 7 * other) @ counts)
    assert [each.answer(query) for each in both] == [expected] * 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contraction, "MAX_TABLE", 2)
        assert both[1].answer(query) == expected
    block = workload.identity(domain)
    assert block.answers(both[1]).tolist() == block.answers(both[0]).tolist()
    levels = data.draw(st.permutations(range(len(domain.shape))))[: data.draw(st.integers(0, 3))]
    wanted = [Marginal(tuple(levels)), Marginal(tuple(levels[:1])), Marginal(())]
    for one, other_one in zip(*(each.marginals(wanted) for each in both), strict=True):
        assert np.array_equal(one, other_one)
    groups = {at: np.array([cell % 2 for cell in range(domain.shape[at])]) for at in levels}
    one, other_one = (each.by_group(query, groups) for each in both)
    assert np.array_equal(one, other_one)
    assert one.sum() == expected


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_marginals_that_share_passes_equal_those_counted_alone(data):
    sizes = data.draw(st.lists(st.sampled_from([1, 2, 3, 5, 40, 300]), min_size=1, max_size=9))
    domain = Domain([Integer(f"a{at}", 0, size - 1) for at, size in enumerate(sizes)])
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    codes = np.unique([rng.integers(0, size, 50) for size in sizes], axis=1)
    counts = rng.integers(0, 9, size=(codes.shape[1],))
    own = tuple(code.astype(np.int64) for code in codes)
    sparse_data = DataVector(domain, counts, own)
    levels = st.lists(st.integers(0, len(sizes) - 1), max_size=3, unique=True)
    wanted = [Marginal(tuple(each)) for each in data.draw(st.lists(levels, max_size=12))]
    for (chosen, _), found in zip(wanted, sparse_data.marginals(wanted), strict=True):
        expected = np.zeros([sizes[at] for at in chosen], dtype=np.int64)
        for *cell, count in zip(*(own[at] for at in chosen), counts, strict=True):
            expected[tuple(cell)] += count
        assert np.array_equal(found[0], expected)


@settings(max_examples=40, deadline=None)
@given(cases(), st.sampled_from([None, "person"]))
def test_random_rows_have_the_same_counts_in_both_forms(case, unit):
    expected = vectorize(case.rows, case.domain, unit).counts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_vector_module, "MAX_DENSE", 0)
        patch.setattr("sharewell.engine.vectorize.MAX_DENSE", 0)
        data = vectorize(case.rows, case.domain, unit, max_rows=20)
    assert data.codes is not None
    assert len(data.counts) == 20
    assert dense(data).tolist() == expected.tolist()


def test_texts_of_a_wide_table_are_looked_up_once_and_others_left_out():
    rng = np.random.default_rng(7)
    labels = [str(code) for code in range(10)]
    drawn = [*labels, "ten", None]
    domain = Domain([Category(f"c{at}", labels) for at in range(8)])
    columns = {
        name: pa.array([drawn[code] for code in rng.integers(0, 12 if name == "c3" else 10, 500)])
        for name in domain.names
    }
    rows = pa.table(columns)
    [(count,)] = query_rows(rows, "SELECT COUNT(*) FROM rows WHERE c3 <> 'ten'")
    assert 300 < count < 500
    assert vectorize(rows, domain, max_rows=600).answer(LinearQuery.all(domain)) == count
    with closing(open_rows(rows, domain.names)) as engine:
        sql = cell_counts(domain, engine).sql("duckdb")
    assert sql.count("TRY_CAST") == 8


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 4), st.integers(0, 2)), max_size=12),
    st.integers(0, 3),
    st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 2)), max_size=3),
)
@settings(max_examples=25, deadline=None)  # One takes 140 ms: three tables are read.
def test_one_person_changes_one_sparse_count_by_one(rows, person, instead):
    """Removing them changes one cell by one; replacing their rows moves one count at most."""
    domain = Domain([Integer("a", 0, 3), Integer("b", 0, 1, other="other")])

    def counts(rows) -> np.ndarray:
        columns = list(zip(*rows, strict=True)) or [(), (), ()]
        kinds = [pa.array(column, pa.int64()) for column in columns]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(data_vector_module, "MAX_DENSE", 0)
            return dense(vectorize(pa.table(kinds, ["id", "a", "b"]), domain, "id", max_rows=15))

    others = [row for row in rows if row[0] != person]
    change = counts(rows) - counts(others)
    assert change.min(initial=0) == 0
    assert change.sum() <= 1
    moved = counts(rows) - counts([*others, *((person, *row) for row in instead)])
    assert np.abs(moved).sum() <= 2
    assert abs(moved.sum()) <= 1


def test_a_wide_table_is_answered_as_duckdb_answers_it():
    rng = np.random.default_rng(15)
    sizes = [2, 90, 300, 7, 70_000, 12, 24, 5] * 5
    columns = {f"c{i}": rng.integers(0, size, 3_000) for i, size in enumerate(sizes)}
    rows = pa.table(columns)
    domain = Domain([Integer(name, 0, size - 1) for name, size in zip(columns, sizes, strict=True)])
    assert domain.size > 10**60
    data = vectorize(rows, domain, max_rows=4_000)
    assert data.codes is not None
    assert [each.dtype for each in data.codes[:5]] == ["uint8", "uint8", "uint16", "uint8", "uint32"]
    questions = {
        "c1 BETWEEN 10 AND 50 AND c2 <> 7 AND c7 IN (0, 2, 4)": LinearQuery.of(
            domain, c1=range(10, 51), c2=[c for c in range(300) if c != 7], c7=[0, 2, 4]
        ),
        "c4 < 40000 OR (c39 = 3 AND c0 = 1)": LinearQuery.of(domain, c4=range(40_000))
        | LinearQuery.of(domain, c39=[3], c0=[1]),
        "TRUE": LinearQuery.all(domain),
    }
    for where, query in questions.items():
        [(count,)] = query_rows(rows, f"SELECT COUNT(*) FROM rows WHERE {where}")
        assert data.answer(query) == count
    groups = {1: np.arange(90), 15: np.arange(5)}
    found = data.by_group(LinearQuery.of(domain, c0=[1]), groups)
    expected = np.zeros((90, 5), dtype=int)
    for a, b, count in query_rows(rows, "SELECT c1, c15, COUNT(*) FROM rows WHERE c0 = 1 GROUP BY ALL"):
        expected[a, b] = count
    assert np.array_equal(found, expected)


@pytest.mark.slow
def test_a_hundred_thousand_rows_of_forty_columns_are_answered():
    rng = np.random.default_rng(0)
    sizes = [2, 5, 7, 90, 300, 12, 2, 9, 24, 52] * 4
    rows = pa.table({f"c{i}": rng.integers(0, size, 100_000) for i, size in enumerate(sizes)})
    domain = Domain([Integer(f"c{i}", 0, size - 1) for i, size in enumerate(sizes)])
    data = vectorize(rows, domain, max_rows=120_000)
    assert data.answer(LinearQuery.all(domain)) == 100_000
    query = LinearQuery.of(domain, c1=[3], c3=range(40), c4=range(5, 200))
    assert data.by_group(query, {5: np.arange(12)}).sum() == data.answer(query)


def test_more_rows_than_the_public_limit_are_refused_without_their_number(always_sparse):
    rows = pa.table({"a": list(range(4)) * 5})
    domain = Domain([Integer("a", 0, 9)])
    assert vectorize(rows, domain, max_rows=20).answer(LinearQuery.all(domain)) == 20
    with pytest.raises(SourceError, match=r"more than 19 rows") as refused:
        vectorize(rows, domain, max_rows=19)
    assert "20" not in str(refused.value)
    wrong: Any
    for wrong in (0, -1, True, 2**31 + 1, "9", 1.0):
        with pytest.raises(SourceError, match="max_rows"):
            vectorize(rows, domain, max_rows=wrong)


def test_the_limit_holds_for_dense_data_too():
    with pytest.raises(SourceError, match="more than 2 rows"):
        vectorize(pa.table({"a": [1, 2, 3]}), Domain([Integer("a", 0, 9)]), max_rows=2)


def test_sparse_counts_are_padded_to_the_public_limit_and_cannot_be_changed():
    domain = Domain([Integer("a", 0, 999), Category("b", ["x", "y"])])
    counts = np.zeros(domain.size, dtype=np.int64)
    counts[[31, 337]] = [5, 271_828]
    data = sparse(domain, counts, padding=7)
    for same in (data, pickle.loads(pickle.dumps(data))):
        assert same.codes is not None
        assert len(same.counts) == 271_840
        assert all(len(each) == 271_840 for each in same.codes)
        for array in (same.counts, *same.codes):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
    shown = f"{data} {data!r} {pprint.pformat(data)}"
    assert "2,000 cells" in shown
    assert not any(digits in shown for digits in ("271", "828", "840"))


@pytest.mark.parametrize(
    ("codes", "counts"),
    [
        ([[0, 1]], [1, 1]),
        ([[0, 1], [0]], [1, 1]),
        ([[0, 10], [0, 1]], [1, 1]),
        ([[0, -1], [0, 1]], [1, 1]),
        ([[0.0, 1.0], [0, 1]], [1, 1]),
        ([[0, 1], [0, 1]], [1, -1]),
    ],
)
def test_cells_that_cannot_be_are_refused(codes, counts):
    domain = Domain([Integer("a", 0, 9), Integer("b", 0, 9)])
    with pytest.raises(SourceError):
        DataVector(domain, np.array(counts), tuple(map(np.array, codes)))


def test_an_empty_vector_exists_over_every_domain():
    for size in (3, 10**6):
        domain = Domain([Integer(f"c{i}", 1, size) for i in range(4)])
        assert DataVector.empty(domain).answer(LinearQuery.all(domain)) == 0
