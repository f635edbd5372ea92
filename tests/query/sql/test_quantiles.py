"""Quantiles of dates and of measures' bins: DuckDB's own, and honest intervals."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from functools import reduce
from operator import add

import duckdb
import numpy as np
import pytest

from sharewell import Binned, Category, Date, Domain, Integer, compile_sql
from sharewell.errors import QueryError
from sharewell.mechanisms.base import Answer
from sharewell.query.measure import Measure
from sharewell.service.results import result

DAYS = Domain([Date("admitted", "2020-01-30", "2020-02-28"), Category("sex", ["F", "M"])])
MONTHS = Domain([Date("admitted", "2020-01-01", "2020-12-31", by="month")])


def answered(statement, counts: np.ndarray, sigma: float = 0.0):
    rng = np.random.default_rng(4)
    exact = [float(query.dot(counts)) for query in statement.queries]
    drawn = rng.normal(exact, sigma).tolist() if sigma else exact
    reach = 1.96 * sigma
    answers = [
        Answer(v, sigma, (v - reach, v + reach), "measured", Fraction(1), "ann", 1) for v in drawn
    ]
    return result(statement, answers)


@pytest.mark.parametrize("fraction", ["0.1", "0.5", "0.75"])
def test_discrete_quantiles_of_days_are_those_of_duckdb(fraction):
    counts = np.random.default_rng(2).integers(0, 5, DAYS.size)
    text = (
        f"SELECT sex, QUANTILE_DISC(admitted, {fraction}) AS day FROM people GROUP BY sex ORDER BY sex"
    )
    statement = compile_sql(text, DAYS)
    first = dt.date(2020, 1, 30)
    cells = np.ndindex(*DAYS.shape)
    rows = [
        (first + dt.timedelta(day), "FM"[sex])
        for day, sex in cells
        for _ in range(counts[day * 2 + sex])
    ]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people (admitted DATE, sex TEXT)")
        connection.executemany("INSERT INTO people VALUES (?, ?)", rows)
        theirs = connection.execute(text).fetchall()
    ours = statement.rows([query.dot(counts) for query in statement.queries])
    assert statement.columns == ("sex", "day", "day low", "day high")
    assert [row[:2] for row in ours] == theirs


def test_a_quantile_of_dates_is_shown_with_both_ends_of_its_interval():
    counts = np.full(MONTHS.size, 100)
    statement = compile_sql("SELECT MEDIAN(admitted), COUNT(*) FROM people", MONTHS)
    assert statement.columns == (
        "MEDIAN(admitted)",
        "MEDIAN(admitted) low",
        "MEDIAN(admitted) high",
        "COUNT(*)",
    )
    assert len(statement.blocks) == 2
    found = answered(statement, counts, sigma=5.0)
    value, low, high, _ = found.rows[0]
    assert low <= "2020-06-30" <= high
    assert low <= value <= high
    assert low.endswith("-01")
    assert (low, high) < ("2020-06-02", "2020-09-01")
    assert [column.kind for column in found.columns] == ["group", "group", "group", "number"]
    nothing = statement.rows([0] * statement.starts[-1])
    assert nothing[0][:3] == (None, None, None)


def test_the_interval_of_a_median_date_holds():
    counts = np.random.default_rng(8).integers(0, 30, DAYS.size)
    statement = compile_sql("SELECT QUANTILE_DISC(admitted, 0.5) FROM people", DAYS)
    [(truth, *_)] = statement.rows([query.dot(counts) for query in statement.queries])
    rng, hits = np.random.default_rng(1), 0
    sigma = 5.0
    for _ in range(200):
        drawn = rng.normal([float(query.dot(counts)) for query in statement.queries], sigma).tolist()
        answers = [
            Answer(v, sigma, (v - 1.96 * sigma, v + 1.96 * sigma), "measured", Fraction(1), "ann", 1)
            for v in drawn
        ]
        [(_, low, high)] = result(statement, answers).rows
        hits += low <= truth.isoformat() <= high
    # A true coverage of 95 % is below that in 200 runs with a probability under 1e-6.
    assert hits / 200 > 0.86


def test_dates_select_and_order_rows_and_are_not_computed_with():
    text = "SELECT sex, MEDIAN(admitted) AS day FROM people GROUP BY sex"
    text += " HAVING day > DATE '2020-02-01' ORDER BY day"
    statement = compile_sql(text, DAYS)
    counts = np.zeros(DAYS.shape, dtype=int)
    counts[20, 0] = counts[10, 1] = 3
    rows = statement.rows([query.dot(counts.ravel()) for query in statement.queries])
    assert [row[:2] for row in rows] == [("M", dt.date(2020, 2, 9)), ("F", dt.date(2020, 2, 19))]
    with pytest.raises(QueryError, match="is an expression of a quantile of dates"):
        compile_sql("SELECT YEAR(MEDIAN(admitted)) FROM people", DAYS)


def test_a_measure_has_the_quantiles_of_the_bins_of_its_column():
    bins, measure = (
        Binned("wage_per_hour", [0, 10, 20, 100]),
        Measure("wage", "wage_per_hour", 0, 100, 1),
    )
    domain = Domain([bins], [measure])
    texts = [f"SELECT MEDIAN({name}) FROM people" for name in ("wage", "wage_per_hour")]
    [by_measure, by_column] = [compile_sql(text, domain) for text in texts]
    assert by_measure.queries == by_column.queries
    both = Domain([Binned("wage", [0, 10, 100])], [Measure("wage", "wage", 0, 100, 1)])
    assert compile_sql("SELECT MEDIAN(wage), AVG(wage) FROM people", both).columns[0] == "MEDIAN(wage)"
    with pytest.raises(QueryError, match="no counts of its values"):
        compile_sql("SELECT MEDIAN(wage) FROM people", Domain([Category("sex", ["F"])], [measure]))


def test_the_forms_of_a_quantile_are_the_sums_of_their_terms():
    domain = Domain([Integer("age", 0, 6), Category("sex", ["F", "M"])])
    statement = compile_sql("SELECT sex, MEDIAN(age), COUNT(*) FROM people GROUP BY sex", domain)
    assert len(statement.form_queries) >= 14
    for at, query in statement.form_queries.items():
        terms = [statement.queries[i] * factor for i, factor in statement.forms[at]]
        assert query == reduce(add, terms)
