"""From answers to rows: means, HAVING, ORDER BY and LIMIT, and what each field is made of."""

from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell import Binned, Category, Domain, Integer
from sharewell.errors import QueryError
from sharewell.query import diagram
from sharewell.query.expression import Aggregate, Average
from sharewell.query.sql import compile_sql

DOMAIN = Domain([Integer("age", 0, 3), Category("sex", ["M", "F"], nullable=True)])


def statement(text: str):
    return compile_sql(text, DOMAIN)


def test_one_count_has_one_query_and_one_row():
    counted = statement("SELECT COUNT(*) AS n FROM people")
    assert counted.columns == ("n",)
    assert counted.group_labels == ((),)
    assert counted.rows([12.5]) == [(12.5,)]


def test_a_group_by_has_a_query_for_every_cell_even_where_nothing_can_be():
    grouped = statement("SELECT age, COUNT(*) FROM people WHERE age = 2 GROUP BY age")
    assert [query.is_zero for query in grouped.queries] == [True, True, False, True]
    assert grouped.group_labels == ((0,), (1,), (2,), (3,))
    assert grouped.rows([0, 0, 7, 0]) == [(0, 0), (1, 0), (2, 7), (3, 0)]


def test_groups_are_in_c_order_of_the_columns_as_listed():
    grouped = statement("SELECT COUNT(*) FROM people GROUP BY sex, age")
    assert grouped.group_labels[:5] == (("M", 0), ("M", 1), ("M", 2), ("M", 3), ("F", 0))
    assert grouped.group_labels[-1] == (None, 3)


def test_queries_are_aggregate_by_aggregate():
    grouped = statement("SELECT COUNT(*), sex, AVG(age), SUM(age) FROM people GROUP BY sex")
    assert grouped.queries == tuple(query for block in grouped.blocks for query in block)
    assert [len(block) for block in grouped.blocks] == [3, 3]
    sources = [output.source for output in grouped.outputs]
    assert sources[0] == Aggregate(0)
    assert sources[2:] == [Average(total=1, count=0), Aggregate(1)]


def test_a_mean_without_a_positive_count_is_none():
    mean = statement("SELECT sex, AVG(age) AS m FROM people GROUP BY sex")
    assert mean.rows([6, 5, 4, 3, 0, -1]) == [("M", 2), ("F", None), (None, None)]


def test_an_answer_that_is_undetermined_is_null():
    mean = statement("SELECT sex, AVG(age) AS m, SUM(age) FROM people GROUP BY sex ORDER BY 3, m")
    assert mean.rows([6, None, 4, 3, 1, None]) == [(None, None, 4), ("M", 2, 6), ("F", None, None)]
    assert statement("SELECT SUM(age) FROM people HAVING SUM(age) > 1").rows([None]) == []


def test_numbers_may_be_numpys_or_fractions():
    mean = statement("SELECT AVG(age) FROM people HAVING AVG(age) >= 0.5")
    [(value,)] = mean.rows(np.array([1, 2]))
    assert (value, type(value)) == (0.5, float)
    assert mean.rows([Fraction(1), Fraction(3)]) == []


def test_having_keeps_only_what_is_true():
    having = "SELECT sex, AVG(age) AS m FROM people GROUP BY sex HAVING {}"
    values = [6, 5, 4, 3, 0, 2]
    assert statement(having.format("m > 1")).rows(values) == [("M", 2.0), (None, 2.0)]
    assert statement(having.format("NOT m > 1")).rows(values) == []
    assert statement(having.format("m IS NULL")).rows(values) == [("F", None)]
    assert statement(having.format("sex = 'M' OR m IS NULL")).rows(values) == [("M", 2.0), ("F", None)]
    assert statement(having.format("(sex <> 'M') IS NULL")).rows(values) == [(None, 2.0)]
    assert statement(having.format("FALSE")).rows(values) == []


def test_having_may_ask_for_what_is_not_shown():
    hidden = statement("SELECT sex FROM people GROUP BY sex HAVING COUNT(*) > 1")
    assert hidden.columns == ("sex",)
    assert hidden.rows([1, 2, 3]) == [("F",), (None,)]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("n", ["F", None, "M"]),
        ("n DESC", ["M", "F", None]),
        ("sex", ["F", "M", None]),
        ("sex DESC", ["M", "F", None]),
        ("sex NULLS FIRST", [None, "F", "M"]),
        ("sex DESC NULLS FIRST", [None, "M", "F"]),
        ("1 DESC NULLS LAST", ["M", "F", None]),
        ("COUNT(*) DESC, sex NULLS FIRST", ["M", None, "F"]),
    ],
)
def test_ties_keep_the_order_of_the_domain_and_nulls_go_where_they_are_sent(order, expected):
    ordered = statement(f"SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY {order}")
    assert [sex for sex, _ in ordered.rows([2, 1, 1])] == expected


def test_numbers_are_ordered_as_numbers_and_bins_as_their_cells():
    domain = Domain([Integer("age", 0, 120, bins={"group": [0, 5, 18, 100]})])
    ages = compile_sql("SELECT age, COUNT(*) FROM people GROUP BY age ORDER BY age DESC LIMIT 2", domain)
    assert [row[0] for row in ages.rows([0] * 121)] == [120, 119]
    groups = compile_sql('SELECT "group", COUNT(*) FROM people GROUP BY 1 ORDER BY 1', domain)
    assert [row[0] for row in groups.rows([0] * 4)] == ["0-4", "5-17", "18-99", "100-120"]


@pytest.mark.parametrize(("limit", "rows"), [(0, 0), (2, 2), (100, 4)])
def test_limit_keeps_the_first_rows(limit, rows):
    limited = statement(f"SELECT age, COUNT(*) FROM people GROUP BY age LIMIT {limit}")
    assert [row[0] for row in limited.rows([1, 2, 3, 4])] == list(range(rows))


def test_columns_of_one_attribute_are_shown_only_where_they_meet():
    domain = Domain([Integer("age", 0, 3, bins={"half": [0, 2]})])
    both = compile_sql("SELECT half, age, COUNT(*) FROM people GROUP BY half, age", domain)
    assert both.rows([1, 2, 3, 4]) == [("0-1", 0, 1), ("0-1", 1, 2), ("2-3", 2, 3), ("2-3", 3, 4)]


def test_the_wrong_number_of_answers_is_refused():
    with pytest.raises(QueryError, match="Expected 4 answers, got 3"):
        statement("SELECT COUNT(*) FROM people GROUP BY age").rows([1, 2, 3])


def test_groups_that_where_leaves_empty_share_one_query_of_zero():
    domain = Domain([Integer("a", 0, 9), Integer("b", 0, 9)])
    for where, filled in (("b < 1", 10), ("a < 1", 10), ("a = 3 AND b = 4", 1), ("a = 1 OR b = 1", 19)):
        grouped = compile_sql(f"SELECT a, b, COUNT(*) FROM people WHERE {where} GROUP BY b, a", domain)
        assert len(grouped.group_labels) == len(grouped.queries) == 100
        assert len({id(query) for query in grouped.queries}) == filled + 1
        for (b, a), query in zip(grouped.group_labels, grouped.queries, strict=True):
            expected = compile_sql(
                f"SELECT COUNT(*) FROM people WHERE ({where}) AND a={a} AND b={b}", domain
            )
            assert query == expected.queries[0]


def test_groups_that_where_leaves_empty_take_no_work(monkeypatch):
    made, make = [0], diagram.make

    def counted(*arguments):
        made[0] += 1
        return make(*arguments)

    monkeypatch.setattr(diagram, "make", counted)
    work = []
    for size in (10, 100):
        domain = Domain([Integer("a", 1, size), Integer("b", 1, size)])
        made[0] = 0
        text = "SELECT a, b, COUNT(*) FROM people WHERE a < 4 AND b < 4 GROUP BY a, b"
        assert sum(not query.is_zero for query in compile_sql(text, domain).queries) == 9
        work.append(made[0])
    assert work[0] == work[1]


INCOME = Binned("income", [-10, 0, 0.5, 1000], nullable=True, other="other")
BINNED = Domain([INCOME, Category("sex", ["M", "F"])])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["M", "F"]), st.one_of(st.none(), st.floats(-10, 1000, exclude_max=True))
        )
    )
)
def test_a_sum_over_bins_lies_between_the_sums_of_their_edges(people):
    text = "SELECT sex, SUM(income), AVG(income) FROM people WHERE income < 0.5 GROUP BY sex"
    grouped = compile_sql(text, BINNED)
    [sums] = grouped.edge_sums
    assert grouped.outputs[1].source == Aggregate(0, edges=0)
    assert grouped.outputs[2].source == Average(0, 1, edges=0)
    assert (sums.block, sums.column, int(sums.low), int(sums.high)) == (0, "income", -10, 1000)
    edges = INCOME.edges
    counts = np.zeros(BINNED.shape, dtype=np.int64)
    for sex, income in people:
        cell = len(edges) if income is None else bisect_right(edges, income) - 1
        counts[cell, ["M", "F"].index(sex)] += 1
    for at, sex in enumerate(["M", "F"]):
        chosen = [
            Fraction(income) for s, income in people if s == sex and income is not None and income < 0.5
        ]
        low, high = sums.lower[at].dot(counts.ravel()), sums.upper[at].dot(counts.ravel())
        assert low <= sum(chosen) <= high
        assert (low + high) / 2 == grouped.queries[at].dot(counts.ravel())
        assert len(chosen) == grouped.queries[2 + at].dot(counts.ravel())


def test_edges_that_need_too_many_digits_are_rounded_outwards():
    edges = [Fraction(-1, 3), Fraction(1, 3), 10**9 + Fraction(1, 7), 10**9 + Fraction(2, 7)]
    [sums] = compile_sql("SELECT SUM(x) FROM people", Domain([Binned("x", edges)])).edge_sums
    lower, upper = (block[0].to_vector() for block in (sums.lower, sums.upper))
    for low, high, start, end in zip(lower, upper, edges, edges[1:], strict=False):
        assert start - 1 <= low <= start
        assert end <= high <= end + 1


def test_a_sum_over_bins_and_an_equal_sum_of_constants_share_a_block_but_no_limits():
    domain = Domain([Binned("x", [0, 10, 20])])
    both = compile_sql("SELECT SUM(x), SUM(CASE WHEN x < 10 THEN 5 ELSE 15 END) FROM people", domain)
    assert [output.source for output in both.outputs] == [Aggregate(0, edges=0), Aggregate(0)]
    assert [sums.column for sums in both.edge_sums] == ["x"]


def test_columns_whose_midpoints_are_all_zero_share_a_block_but_no_limits():
    domain = Domain([Binned("x", [-5, 5]), Binned("y", [-100, 100])])
    both = compile_sql("SELECT SUM(x), AVG(y), COUNT(*) FROM people", domain)
    assert [output.source for output in both.outputs] == [
        Aggregate(0, 0),
        Average(0, 1, 1),
        Aggregate(1),
    ]
    assert both.queries[0].is_zero
    assert [(sums.block, int(sums.upper[0].max_abs)) for sums in both.edge_sums] == [(0, 5), (0, 100)]


def test_a_statement_without_sums_over_bins_has_no_limits():
    domain = Domain([Binned("x", [0, 10, 20]), Integer("n", 0, 9)])
    assert compile_sql("SELECT COUNT(x), SUM(n), SUM(2) FROM people", domain).edge_sums == ()
