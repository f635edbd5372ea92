"""Variances, correlations and sums of products: DuckDB's own answers on the clamped values."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest

from sharewell import Binned, Boolean, Category, Domain, Integer, Measure, compile_sql, vectorize
from sharewell.errors import DomainError, SqlError
from sharewell.query.expression import Linear, Ratio, Spread
from sharewell.query.sql import compile_anew
from sharewell.query.sql.text import Source
from sharewell.query.statistics import limits_of

MEASURES = [
    Measure("wage", "wage", 0, 100, 0.5),
    Measure("hours", "hours", -10, 40, 1),
    Measure("fee", "fee", -3, 7, 1, nullable=False),
    Measure("plain", "wage", 0, 100, 1),
]
DOMAIN = Domain(
    [
        Integer("age", 0, 9, nullable=True),
        Category("state", ["AL", "NY"]),
        Boolean("employed"),
        Binned("pay", [0, 2, 6]),
    ],
    MEASURES,
    [("wage", "wage"), ("hours", "wage"), ("fee", "fee"), ("fee", "wage"), ("hours", "hours")],
)


@pytest.fixture(scope="module")
def ask():
    """Both answers to an SQL text: from the compiled queries on exact sums, and DuckDB's."""
    rng = np.random.default_rng(18)
    size = 300
    people = pd.DataFrame(
        {
            "age": pd.array(rng.integers(0, 10, size), dtype="Int64"),
            "state": rng.choice(["AL", "NY"], size),
            "employed": rng.random(size) < 0.5,
            "pay": rng.choice([1.0, 4.0], size),  # midpoints
            "wage": rng.integers(0, 201, size) / 2,
            "hours": rng.integers(-10, 41, size).astype(float),
            "fee": rng.integers(-3, 8, size).astype(float),
        }
    )
    for name in ("age", "wage", "hours"):
        people.loc[rng.random(size) < 0.15, name] = None
    data = vectorize(people, DOMAIN)
    shown = people.astype({"age": object}).replace({np.nan: None, pd.NA: None})

    def both(text: str) -> tuple[list[tuple], list[tuple]]:
        statement = compile_anew(Source(text, DOMAIN, "people"))
        answers = [data.answer(q.primitive) * q.scale if q.root else 0 for q in statement.queries]
        with duckdb.connect() as connection:
            connection.register("people", shown)
            casts = ", ".join(f"CAST({c} AS DOUBLE) AS {c}" for c in ("wage", "hours", "fee", "pay"))
            labels = "CAST(age AS INT) AS age, state, employed"
            connection.execute(f"CREATE VIEW typed AS SELECT {labels}, {casts} FROM people")
            found = connection.execute(text.replace("FROM people", "FROM typed")).fetchall()
        return statement.rows(answers), found

    return both


ONE = ["STDDEV", "STDDEV_SAMP", "STDDEV_POP", "VARIANCE", "VAR_SAMP", "VAR_POP"]
TWO = ["COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "REGR_COUNT"]
SUMS = [
    "SUM(wage * wage), AVG(wage * wage), SUM(POWER(wage, 2)), AVG(POW(hours, 2)), SUM(fee ** 2)",
    "SUM(wage * hours), AVG(hours * wage), SUM((wage - 3) * (2 * hours + 1)), AVG(wage + hours)",
    "SUM(wage + 1), AVG(-(wage - 2) / 4), SUM(wage * 3 + fee), SUM(1 - fee * fee), AVG(wage * 2)",
]
SELECTS = [
    *[
        ", ".join(f"{name}({column})" for name in ONE)
        for column in ("wage", "hours", "fee", "age", "pay")
    ],
    *[
        ", ".join(f"{name}({pair})" for name in TWO)
        for pair in ("wage, hours", "hours, wage", "fee, wage", "age * 2, age")
    ],
    "REGR_SLOPE(wage, age), COVAR_SAMP(age, hours), CORR(wage, age), CORR(age, fee)",
    "VARIANCE(age * 2 + 1), STDDEV(CASE WHEN employed THEN age ELSE 0 END)",
    *SUMS,
]


@pytest.mark.parametrize("items", SELECTS)
def test_spreads_are_those_of_duckdb(ask, items):
    ours, theirs = ask(f"SELECT {items} FROM people WHERE state = 'AL'")
    assert [float(each) for each in ours[0]] == pytest.approx([float(each) for each in theirs[0]])


def test_groups_filters_and_subtotals(ask):
    values = (
        "STDDEV(wage), CORR(wage, hours) FILTER (WHERE age > 2), SUM(wage * hours), AVG(fee * fee), "
        "AVG(wage), SUM(hours), VAR_POP(age), SUM(pay), AVG(pay)"
    )
    ours, theirs = ask(
        f"SELECT state, employed, {values} FROM people GROUP BY CUBE (state, employed) "
        "ORDER BY state NULLS LAST, employed NULLS LAST"
    )
    assert len(ours) == len(theirs) == 9
    for own, other in zip(ours, theirs, strict=True):
        assert own[:2] == other[:2]
        assert [float(each) for each in own[2:]] == pytest.approx([float(each) for each in other[2:]])


def test_parts_of_a_union_and_computed_numbers(ask):
    ours, theirs = ask(
        "SELECT 'a' AS part, STDDEV(wage) AS sd, 2 * AVG(wage) AS twice FROM people "
        "UNION ALL SELECT 'b', STDDEV(wage), 2 * AVG(wage) FROM people WHERE employed ORDER BY part"
    )
    for own, other in zip(ours, theirs, strict=True):
        assert [float(each) for each in own[1:]] == pytest.approx([float(each) for each in other[1:]])
    ours, theirs = ask("SELECT ROUND(STDDEV(wage) / AVG(wage), 3) FROM people")
    assert float(ours[0][0]) == pytest.approx(theirs[0][0], abs=0.001)


@pytest.mark.parametrize("kind", ["CORR(wage, fee)", "REGR_SLOPE(fee, wage)", "VARIANCE(wage)"])
def test_too_few_rows_have_no_spread(kind):
    statement = compile_sql(f"SELECT {kind} FROM people", DOMAIN)
    assert statement.rows([0] * len(statement.queries)) == [(None,)]


def test_repeated_parts_are_bought_once():
    def blocks(items: str) -> int:
        return len(compile_sql(f"SELECT {items} FROM people", DOMAIN).blocks)

    assert blocks("VARIANCE(wage)") == blocks("STDDEV_POP(wage), AVG(wage), SUM(wage * wage)") == 3
    assert blocks("CORR(wage, hours)") == 6
    assert blocks("CORR(wage, hours), COVAR_POP(hours, wage), REGR_SLOPE(wage, hours)") == 6
    assert blocks("REGR_COUNT(wage, hours)") == 1
    # A product with a measure that is never NULL shares its count and its sums.
    assert blocks("CORR(fee, wage), VARIANCE(wage)") == 6


def test_what_a_spread_is_made_of():
    statement = compile_sql("SELECT VAR_POP(fee), SUM(fee * fee), AVG(fee * fee) FROM people", DOMAIN)
    spread, total, average = (output.source for output in statement.outputs)
    assert isinstance(spread, Spread)
    assert spread.spans == ((Fraction(-5), Fraction(5)),)
    assert spread.centres == (Fraction(2),)
    assert isinstance(total, Linear)
    assert average == Ratio(
        total.forms, dict(spread.sums)["count"], positive=True, low=Fraction(0), high=Fraction(49)
    )
    # Squares of distances from 2 are from 0 to 25, and counted from 12.
    assert [block.primitive.units("add-remove").tolist() for block in statement.blocks] == [
        [1],
        [5],
        [13],
    ]


def test_bounds_of_spreads():
    spans = [(0, 10), (-2, 2)]
    assert limits_of("VAR_POP", spans[:1]) == (0, 25)
    assert limits_of("STDDEV_SAMP", spans[:1]) == pytest.approx((0, 50**0.5))
    assert limits_of("COVAR_POP", spans) == (-10, 10)
    assert limits_of("CORR", spans) == (-1, 1)
    assert limits_of("REGR_SLOPE", spans) is None


@pytest.mark.parametrize(
    ("sql", "message", "hint"),
    [
        (
            "VARIANCE(plain)",
            'needs the square of the measure "plain"',
            "square = true in [measures.plain]",
        ),
        (
            "SUM(plain * plain)",
            'needs the square of the measure "plain"',
            "square = true in [measures.plain]",
        ),
        (
            "CORR(plain, fee)",
            'the product of "plain" and "fee"',
            'products = ["fee"] in [measures.plain]',
        ),
        (
            "SUM(wage + plain)",
            'the product of "wage" and "plain"',
            'products = ["plain"] in [measures.wage]',
        ),
        ("SUM(wage + hours + fee)", "combines more than two measures", "two measures at a time"),
        ("SUM(wage * wage * wage)", "Sums of computed measures", "Sum the measure itself"),
        ("CORR(wage)", "CORR takes 2 arguments, not 1", "Name two columns"),
        ("STDDEV(wage, fee)", "STDDEV takes 1 argument, not 2", "Name a column"),
        ("CORR(pay, wage)", '"pay" is only known by its bins', "[measures.pay]"),
        ("STDDEV(wage * 2)", "wage * 2 is an expression of a measure", "Name the measure itself"),
        ("STDDEV(state)", "", ""),
        ("CORR(state, wage)", "", ""),
    ],
)
def test_a_refusal_names_the_line_to_add(sql, message, hint):
    with pytest.raises(SqlError) as refused:
        compile_sql(f"SELECT {sql} FROM people", DOMAIN)
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_describe_tells_what_a_measure_is_for():
    rows = compile_sql("DESCRIBE people", DOMAIN).rows([])
    uses = {row[0]: row[2].split(", for ", 1)[1] for row in rows if row[0] in ("wage", "plain", "fee")}
    assert uses == {
        "wage": "SUM, AVG, COUNT and VARIANCE, and for CORR with hours and fee",
        "fee": "SUM, AVG, COUNT and VARIANCE, and for CORR with wage",
        "plain": "SUM, AVG and COUNT",
    }


def test_a_domain_without_products_is_as_it_was():
    plain = Domain(DOMAIN.attributes, MEASURES)
    assert plain.vectors == 8
    assert plain.fingerprint != DOMAIN.fingerprint
    assert plain == Domain(DOMAIN.attributes, MEASURES, [])


@pytest.mark.parametrize("product", [("wage", "wages"), ("wage",), "ab", ("wage", 3)])
def test_a_product_is_of_two_measures(product):
    with pytest.raises(DomainError):
        Domain(DOMAIN.attributes, MEASURES, [product])
