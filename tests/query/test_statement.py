"""From answers to rows: means, HAVING, ORDER BY and LIMIT, and what each field is made of."""

from fractions import Fraction

import numpy as np
import pytest

from sharewell import Category, Domain, Integer
from sharewell.errors import QueryError
from sharewell.query.sql import compile_sql
from sharewell.query.statement import Aggregate, Average

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
