"""Intervals of variances, correlations and lines hold with 95 %, also where that is hard."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sharewell import Binned, Budget, DataVector, Domain, Integer, Measure, compile_sql, vectorize
from sharewell.mechanisms.base import Answer
from sharewell.query.expression import Spread
from sharewell.query.statement import Statement
from sharewell.query.statistics import limits_of
from sharewell.service import quotes, results
from sharewell_lab.noise import SeededNoise
from tests.service.test_sums import ask, mechanism_on

DOMAIN = Domain(
    [Integer("age", 0, 9), Binned("pay", [0, 2, 6, 10])],
    [Measure("x", "x", 0, 10, 1, nullable=False), Measure("y", "y", -4, 10, 1)],
    [("x", "x"), ("x", "y")],
)
RUNS = 100
#: A true coverage of 95 % is below that in 100 runs with a probability under 1e-6.
LEAST = 0.81


def people(kind: str, size: int) -> pd.DataFrame:
    """Rows whose x and y are independent, all the same, or on a line."""
    rng = np.random.default_rng(18)
    x, y = rng.integers(0, 11, size), rng.integers(-4, 11, size)
    x, y = {"same": (x * 0 + 7, y * 0 + 2), "rising": (x, x - 1), "falling": (x, 9 - x)}.get(
        kind, (x, y)
    )
    return pd.DataFrame(
        {"age": rng.integers(0, 10, size), "pay": rng.uniform(0, 10, size), "x": x, "y": y.astype(float)}
    )


def noisy(
    statement: Statement, exact: list[float], rng: np.random.Generator, **more: Any
) -> list[Answer]:
    """Answers with noise in proportion to what a row changes, and the moments of their combinations."""
    errors = [2 * float(query.max_abs) for query in statement.queries]
    drawn = [rng.normal(value, error) for value, error in zip(exact, errors, strict=True)]
    answers = [
        Answer(v, e, (v - 1.96 * e, v + 1.96 * e), "measured", Fraction(1), "ann", 1)
        for v, e in zip(drawn, errors, strict=True)
    ]
    for place, (a, b) in enumerate(statement.moments if more.get("moments", True) else ()):
        factors = dict(statement.forms[b])
        both = sum(float(f * factors.get(at, 0)) * errors[at] ** 2 for at, f in statement.forms[a])
        first = statement.forms[a][0][0]
        answers[first] = replace(answers[first], moments=(*answers[first].moments, (place, both)))
    return answers


def exact_answers(statement: Statement, data: DataVector) -> list[Any]:
    return [data.answer(query.primitive) * query.scale for query in statement.queries]


SPREADS = [
    "VARIANCE(x)",
    "STDDEV_POP(age)",
    "CORR(x, y)",
    "COVAR_SAMP(y, x)",
    "REGR_SLOPE(y, x)",
    "REGR_INTERCEPT(y, x)",
    "REGR_R2(x, y)",
]


@pytest.mark.parametrize(
    ("kind", "size"),
    [("apart", 3), ("apart", 40), ("apart", 2000), ("same", 2000), ("rising", 1000), ("falling", 1000)],
)
def test_intervals_hold_at_hard_spots(kind, size):
    """Tiny counts, a variance of 0, and correlations of 1 and -1."""
    data = vectorize(people(kind, size), DOMAIN)
    statement = compile_sql(f"SELECT {', '.join(SPREADS)} FROM people", DOMAIN)
    exact = exact_answers(statement, data)
    [truths] = statement.rows(exact)
    rng, hits = np.random.default_rng(7), np.zeros(len(SPREADS))
    for _ in range(RUNS):
        [row] = results.result(statement, noisy(statement, exact, rng)).rows
        for at, (number, truth, output) in enumerate(zip(row, truths, statement.outputs, strict=True)):
            assert isinstance(output.source, Spread)
            limits = limits_of(output.source.kind, output.source.spans)
            if number.interval is None:
                assert limits is None  # a slope, where x may be the same in all rows
                hits[at] += 1
                continue
            low, high = number.interval
            assert number.value is None or low <= number.value <= high
            assert limits is None or limits[0] <= low <= high <= limits[1]
            hits[at] += truth is None or low - 1e-9 <= truth <= high + 1e-9
    assert hits.min() / RUNS > LEAST


def test_intervals_are_tight_and_cover_without_covariances():
    data = vectorize(people("apart", 2000), DOMAIN)
    statement = compile_sql("SELECT VARIANCE(x), STDDEV(pay), CORR(x, y) FROM people", DOMAIN)
    exact = exact_answers(statement, data)
    widths = []
    for moments in (True, False):
        answers = noisy(statement, exact, np.random.default_rng(3), moments=moments)
        [row] = results.result(statement, answers).rows
        widths.append([number.interval[1] - number.interval[0] for number in row])
    # The noise of the sum of squares alone: 2 * 13 steps of 1, over 2,000 rows.
    assert widths[0][0] < 3 * 2 * 1.96 * 26 / 2000
    # Half a bin of 4 at both ends.
    assert 4 < widths[0][1] < 4.5
    assert widths[0][2] < 0.05
    assert all(narrow <= wide < 4 * narrow for narrow, wide in zip(*widths, strict=True))


def test_the_spread_of_bins_has_that_of_the_values_in_its_interval():
    rows = people("apart", 2000)
    data = vectorize(rows, DOMAIN)
    statement = compile_sql("SELECT STDDEV(pay), VAR_POP(pay) FROM people", DOMAIN)
    [row] = results.result(statement, noisy(statement, exact_answers(statement, data), RNG)).rows
    for number, truth in zip(row, (rows["pay"].std(), rows["pay"].var(ddof=0)), strict=True):
        assert number.interval[0] <= truth <= number.interval[1]
    assert "half of the widest bin" in statement.notes[0]


def test_subtotals_over_bins_have_the_sum_of_the_values_in_their_intervals():
    """The groups are bought, and subtotals are free sums of them."""
    rows = people("apart", 2000)
    mechanism = mechanism_on(vectorize(rows, DOMAIN), SeededNoise(2), Budget.pure(40))
    sql = "SELECT age, SUM(pay), AVG(pay), AVG(x) FROM people GROUP BY ROLLUP (age)"
    statement = compile_sql(sql, DOMAIN)
    assert [len(block) for block in statement.blocks] == [10, 10, 10]
    truths: list[Any] = [*rows.groupby("age"), (None, rows)]
    result = ask(mechanism, statement)
    for (age, total, mean, of_x), (group, own) in zip(result.rows, truths, strict=True):
        assert age == group
        assert total.interval[0] <= own["pay"].sum() <= total.interval[1]
        assert mean.interval[0] <= own["pay"].mean() <= mean.interval[1]
        assert of_x.value == pytest.approx(own["x"].mean(), abs=0.3)
        assert 0 <= of_x.interval[0] <= of_x.value <= of_x.interval[1] <= 10
    assert "from its lower to its upper edge" in result.notes[0]
    empty = sql.replace("people", "people WHERE FALSE")
    assert ask(mechanism, compile_sql(empty, DOMAIN)).rows[-1][2].value is None


RNG = np.random.default_rng(11)


def test_a_mechanism_sells_the_parts_once_and_quotes_what_they_become():
    data = vectorize(people("rising", 3000), DOMAIN)
    mechanism = mechanism_on(data, SeededNoise(2), Budget.pure(40))
    statement = compile_sql("SELECT STDDEV(x), CORR(x, y) FROM people", DOMAIN)
    price = mechanism.query_budget
    quote = quotes.quote(mechanism, statement, "ann")
    assert quote.paid is not None
    # The count, the sums and squares of x and y, and their product; and x, its square and rows by y's.
    assert quote.paid.cost == len(statement.blocks) * price == 9 * price
    before = mechanism.curator.left("ann")
    [row] = ask(mechanism, statement).rows
    assert before - mechanism.curator.left("ann") == quote.paid.cost
    for number, truth in zip(row, (data_spread(data), 1.0), strict=True):
        assert number.interval[0] <= truth <= number.interval[1]
    again = quotes.quote(mechanism, compile_sql("SELECT VARIANCE(x), AVG(x) FROM people", DOMAIN), "ann")
    assert again.paid is None or again.paid.cost == 0


def data_spread(data: DataVector) -> float:
    statement = compile_sql("SELECT STDDEV(x) FROM people", DOMAIN)
    return float(statement.rows(exact_answers(statement, data))[0][0])


def test_without_rows_there_is_no_spread():
    data = vectorize(people("apart", 0), DOMAIN)
    mechanism = mechanism_on(data, SeededNoise(2), Budget.pure(40))
    statement = compile_sql("SELECT VARIANCE(x) FROM people WHERE FALSE", DOMAIN)
    result = ask(mechanism, statement)
    assert (result.rows[0][0].value, result.rows[0][0].interval) == (None, None)
    assert any("too few rows" in note for note in result.notes)
