"""Expressions of several columns: the cells of each result, and how much work they may take."""

import itertools
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell import Boolean, Category, Date, Domain, Integer, compile_sql
from sharewell.errors import CutsThroughBin, QueryTooComplex
from sharewell.query.diagram import limited
from sharewell.query.expression import Call, Constant, Expression, Field, call, evaluate
from sharewell.query.linear import LinearQuery
from sharewell.query.measure import Measure
from sharewell.query.sql import cells, compile_anew
from sharewell.query.sql.cells import field_of
from sharewell.query.sql.encoding import EncodedColumn, evaluate_encoded
from sharewell.query.sql.text import Source

DOMAIN = Domain(
    [
        Integer("a", 0, 4, nullable=True),
        Category("s", ["x", "y", "z"], other="other"),
        Integer("b", 0, 3),
        Boolean("t", nullable=True),
        Date("d", "2020-01-30", "2020-03-02", by="month"),
    ]
)
WIDE = Domain([Integer("a", 0, 99), Integer("b", 0, 99), Integer("c", 0, 9)])


def numbers() -> st.SearchStrategy[Expression]:
    leaves: st.SearchStrategy[Expression] = st.sampled_from(
        [*(field_of(DOMAIN.columns[name]) for name in "ab"), Constant(Fraction(2), "number")]
    )

    def larger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        computed = st.builds(call, st.sampled_from(["+", "-", "*", "/", "%"]), inner, inner)
        truth = st.builds(
            lambda f, x, y: call(f, x, y, type="boolean"), st.sampled_from("<="), inner, inner
        )
        logic = st.builds(
            lambda f, x, y: call(f, x, y, type="boolean"), st.sampled_from(["AND", "OR"]), truth, truth
        )
        cases = st.builds(lambda when, x, y: call("CASE", when, x, y), truth | logic, inner, inner)
        return computed | cases

    return st.recursive(leaves, larger, max_leaves=6)


@given(numbers())
def test_an_encoded_expression_has_the_values_that_it_has_row_by_row(expression):
    cells = list(itertools.product([*map(Fraction, range(5)), None], map(Fraction, range(4))))
    columns: dict[str, list[Fraction | None]] = {"a": [a for a, _ in cells], "b": [b for _, b in cells]}
    expected = evaluate(expression, lambda field: columns[field.column.name], range(len(cells)))
    if isinstance(expression, Call | Field):
        encoded = {name: EncodedColumn.of(values) for name, values in columns.items()}
        found = evaluate_encoded(
            expression, lambda field: encoded[field.column.name], np.arange(len(cells))
        )
        assert [found.values[code] for code in found.codes.tolist()] == expected


def test_equal_values_of_different_types_have_different_codes():
    assert EncodedColumn.of([True, Fraction(1), 1.0, True]).codes.tolist() == [0, 1, 2, 0]


GROUPS = {
    "a + b": lambda a, s, b, t, d: None if a == 5 else a + b,
    "a * b": lambda a, s, b, t, d: None if a == 5 else a * b,
    "CASE WHEN t AND b > 1 THEN 'p' WHEN MONTH(d) = 2 THEN 'q' END": lambda a, s, b, t, d: (
        "p" if t == 1 and b > 1 else "q" if d == 1 else None
    ),
    "b = 2 OR s = 'y'": lambda a, s, b, t, d: b == 2 or s == 1,
}


@pytest.mark.parametrize("measures", [(), (Measure("wage", "wage", 0, 100, 1),)])
@pytest.mark.parametrize("text", GROUPS)
def test_the_groups_of_several_columns_are_sets_of_cells(text, measures):
    domain = Domain(DOMAIN.attributes, measures)
    statement = compile_sql(f"SELECT {text} AS g, COUNT(*) FROM people GROUP BY g", domain)
    shape = tuple(attribute.size for attribute in domain.attributes)
    cells: dict[object, np.ndarray] = {}
    for cell in itertools.product(*map(range, shape)):
        cells.setdefault(GROUPS[text](*cell), np.zeros(shape, dtype=int))[cell] = 1
    rows = np.zeros(domain.vectors, dtype=int)
    rows[0] = 1
    expected = {
        label: LinearQuery.from_vector(domain, np.multiply.outer(chosen, rows).ravel())
        for label, chosen in cells.items()
    }
    assert (
        dict(zip([label for (label,) in statement.group_labels], statement.queries, strict=True))
        == expected
    )


def test_a_sum_over_several_columns_weights_each_cell_by_its_result():
    [total] = compile_sql("SELECT SUM(a * b + 1) FROM people WHERE s = 'x'", DOMAIN).queries
    numbers = np.add.outer(np.zeros(1, int), np.outer(np.arange(5), np.arange(4)) + 1)[0]
    weights = np.zeros((6, 4, 4, 3, 3), dtype=int)
    weights[:5, 0] = numbers[:, :, np.newaxis, np.newaxis]
    assert total == LinearQuery.from_vector(DOMAIN, weights.ravel())


def test_a_case_is_the_same_however_it_is_computed(monkeypatch):
    texts = [
        "SELECT SUM(CASE WHEN a < 2 THEN 3 WHEN a < 4 THEN NULL WHEN a = 1 THEN 7 END) FROM people",
        "SELECT AVG(CASE WHEN a IS NULL THEN 1 WHEN a <> 2 THEN -2.5 END) FROM people WHERE b > 0",
        "SELECT COUNT(CASE s WHEN 'x' THEN 1 WHEN 'y' THEN NULL ELSE 2 END) FROM people",
        "SELECT SUM(CASE WHEN a < 2 AND s = 'x' THEN 3 WHEN NOT (a = 3 OR b > 1) THEN -2 ELSE 4 END) "
        "FROM people WHERE t",
        "SELECT AVG(CASE WHEN a > 1 AND b > 1 AND t THEN 5 WHEN (a < 1 OR t) IS NULL THEN 2 END) "
        "FROM people GROUP BY s",
        "SELECT SUM(CASE WHEN 1 > 2 THEN 3 WHEN NULL THEN 4 ELSE 5 END) FROM people",
    ]
    quick = [compile_anew(Source(text, DOMAIN, "people")).queries for text in texts]
    monkeypatch.setattr("sharewell.query.sql.aggregates.MAX_CASE_CELLS", 0)
    assert [compile_anew(Source(text, DOMAIN, "people")).queries for text in texts] == quick


def test_an_expression_of_many_cells_takes_work_by_its_distinct_results():
    with limited(25_000):
        statement = compile_anew(
            Source("SELECT a + b AS g, COUNT(*) FROM people GROUP BY g", WIDE, "people")
        )
    assert len(statement.group_labels) == 199


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a * b + c AS g, COUNT(*) FROM people GROUP BY g",
        "SELECT COUNT(*) FROM people WHERE "
        + " OR ".join(f"a * {i} + b * {i + 1} + c = 7" for i in range(300)),
    ],
)
def test_too_much_work_on_joint_cells_is_refused_before_it_is_done(text):
    with pytest.raises(QueryTooComplex), limited(15_000):
        compile_anew(Source(text, WIDE, "people"))


LATE = Domain(
    [
        Date("b", "2020-01-03", "2020-01-09", nullable=True),
        Category("c", ["x", "y"]),
        Date("a", "2020-01-01", "2020-01-07"),
        Integer("n", 0, 5, other="more"),
        Integer("m", 2, 7, nullable=True),
    ]
)
LEFT, RIGHT = ["a", "a + 2", "date_trunc('week', a)"], ["b", "b - INTERVAL 1 DAY", "last_day(b)"]


@pytest.mark.parametrize("symbol", ["=", "<>", "<", "<=", ">", ">="])
def test_two_columns_of_many_values_are_compared_as_those_of_few(symbol, monkeypatch):
    pairs = [(left, right) for left in LEFT for right in RIGHT] + [
        ("b", "a"),
        ("n", "m"),
        ("m * 2", "n"),
    ]
    pairs += [("a - b", "2"), ("3", "b - a"), ("DATE_DIFF('day', a, b)", "1")]
    texts = [f"SELECT COUNT(*) FROM people WHERE {a} {symbol} {b}" for a, b in pairs]
    texts += [f"SELECT COUNT(*) FROM people WHERE NOT {a} {symbol} {b}" for a, b in pairs]
    few = [compile_anew(Source(text, LATE, "people")).queries for text in texts]
    monkeypatch.setattr(cells, "MAX_VALUES", 30)
    assert [compile_anew(Source(text, LATE, "people")).queries for text in texts] == few


def compared(condition: str, by: Literal["day", "month"]) -> LinearQuery:
    names = ("admitted", "discharged")
    domain = Domain([Date(name, "2020-01-01", "2022-12-31", by=by) for name in names])
    [query] = compile_anew(
        Source(f"SELECT COUNT(*) FROM people WHERE {condition}", domain, "people")
    ).queries
    return query


def test_days_of_several_years_are_compared():
    assert compared("admitted < discharged", "day").l1_norm == 1096 * 1095 // 2
    assert compared("discharged - admitted > 30", "day").l1_norm == 1065 * 1066 // 2


def test_months_are_compared_as_whole_months_and_days_in_them_are_not():
    with pytest.raises(CutsThroughBin, match=r"date_trunc\('month', admitted\)"):
        compared("admitted < discharged", "month")
    whole = compared("date_trunc('month', admitted) < date_trunc('month', discharged)", "month")
    assert whole.l1_norm == 36 * 35 // 2
