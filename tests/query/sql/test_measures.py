"""SUM, AVG and COUNT of measures: DuckDB's own answers on the values as they are rounded and clamped."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest

from sharewell import Binned, Boolean, Category, Domain, Integer, compile_sql, vectorize
from sharewell.errors import QueryError, SqlError, UnknownName
from sharewell.query.expression import Aggregate, Average
from sharewell.query.linear import LinearQuery
from sharewell.query.measure import Measure

DOMAIN = Domain(
    [
        Integer("age", 0, 9, bins={"generation": [0, 3, 7]}, nullable=True),
        Category("state", ["AL", "NY", "WA"]),
        Boolean("employed"),
        Binned("hours", [0, 10, 20, 40]),
    ],
    [
        Measure("wage", "wage_per_hour", 0, 100, 0.01),
        Measure("hours", "hours", 0, 40, 0.5, nullable=False),
        Measure("balance", "balance", -5, 5, 1),
    ],
)


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(15)
    size = 400
    wage = np.round(rng.lognormal(3, 1, size), 2) + 0.002  # not between two grid points
    wage[rng.random(size) < 0.2] = np.nan
    return pd.DataFrame(
        {
            "age": pd.array(rng.integers(0, 11, size), dtype="Int64").astype("object"),
            "state": rng.choice(["AL", "NY", "WA"], size, p=[0.7, 0.29, 0.01]),
            "employed": rng.random(size) < 0.5,
            "hours": np.round(rng.uniform(0, 39.9, size), 1),
            "wage_per_hour": wage,
            "balance": np.round(rng.normal(0, 5, size), 1) + 0.01,
        }
    ).assign(age=lambda frame: frame["age"].where(frame["age"] != 10, None).astype("Int64"))


@pytest.fixture(scope="module")
def ask(people):
    """Both answers to an SQL text: from the compiled queries on exact sums, and DuckDB's."""
    data = vectorize(people, DOMAIN)
    # The grid is public: a value counts as the nearest grid point within the bounds.
    table = people.assign(
        wage=np.clip(np.floor(people["wage_per_hour"] * 100 + 0.5) / 100, 0, 100),
        hours=np.clip(np.floor(people["hours"] * 2 + 0.5) / 2, 0, 40),
        balance=np.clip(np.floor(people["balance"] + 0.5), -5, 5),
        hours_bin=pd.cut(people["hours"], [0, 10, 20, 40], right=False, labels=False),
        generation=pd.cut(people["age"], [0, 3, 7, 10], right=False, labels=["0-2", "3-6", "7-9"]),
    ).replace({np.nan: None})

    def both(text: str) -> tuple[list[tuple], list[tuple]]:
        statement = compile_sql(text, DOMAIN)
        answers = [data.answer(q.primitive) * q.scale if q.root else 0 for q in statement.queries]
        with duckdb.connect() as connection:
            connection.register("people", table)
            found = connection.execute(text).fetchall()
        return statement.rows(answers), found

    return both


CONDITIONS = [
    "",
    "WHERE age < 5",
    "WHERE NOT (age < 5 AND employed) OR state = 'NY'",
    "WHERE age IS NULL",
]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("name", ["wage", "balance"])
def test_sums_and_averages_are_those_of_the_clamped_values(ask, name, condition):
    ours, theirs = ask(
        f"SELECT SUM({name}), AVG({name}), COUNT({name}), COUNT(*) FROM people {condition}"
    )
    assert [float(each) for each in ours[0]] == pytest.approx(theirs[0])


@pytest.mark.parametrize("condition", CONDITIONS)
def test_groups_and_filters_restrict_measures_as_they_restrict_counts(ask, condition):
    ours, theirs = ask(
        "SELECT state, employed, SUM(wage) FILTER (WHERE age >= 3), AVG(wage), COUNT(wage), "
        "SUM(hours), AVG(hours), COUNT(*) FILTER (WHERE NOT employed) "
        f"FROM people {condition} GROUP BY state, employed ORDER BY state, employed"
    )
    by_labels = {row[:2]: row[2:] for row in theirs}
    for row in ours:
        expected = by_labels.get(row[:2], (0,) * 6)
        found = [0 if each is None else float(each) for each in row[2:]]
        assert found == pytest.approx([float(each or 0) for each in expected])


def test_having_and_order_use_measures(ask):
    ours, theirs = ask(
        "SELECT state, AVG(wage) AS pay FROM people WHERE state <> 'WA' GROUP BY state "
        "HAVING SUM(wage) > 100 AND AVG(wage) IS NOT NULL ORDER BY SUM(wage) DESC"
    )
    assert [row[0] for row in ours] == [row[0] for row in theirs]
    assert [float(row[1]) for row in ours] == pytest.approx([row[1] for row in theirs])


def test_a_name_that_is_both_is_summed_as_a_measure_and_compared_as_an_attribute(ask):
    statement = compile_sql("SELECT hours, SUM(hours) FROM people GROUP BY hours", DOMAIN)
    assert statement.edge_sums == ()
    assert len(statement.group_labels) == 3
    data_sums, _ = ask("SELECT SUM(hours), AVG(hours) FROM people WHERE hours < 10")
    _, theirs = ask("SELECT SUM(hours), AVG(hours) FROM people WHERE employed OR NOT employed")
    assert data_sums[0][0] < theirs[0][0]
    # Conditions compare the column as it is, before it is rounded.
    assert statement.queries[0].where(LinearQuery.all(DOMAIN)) == statement.queries[0]


def test_a_sum_buys_the_centred_block_and_the_count_of_values():
    statement = compile_sql("SELECT SUM(wage), AVG(wage), COUNT(wage) FROM people", DOMAIN)
    total, count, values = (output.source for output in statement.outputs)
    assert total == Aggregate(0, None, 1, DOMAIN.measures[0].middle)
    assert count == Average(0, 1, None, Fraction(0), Fraction(100), Fraction(50))
    assert values == Aggregate(1)
    assert len(statement.blocks) == 2
    assert statement.blocks[0].primitive.units("add-remove").tolist() == [5000]
    assert statement.pairs == ((0, 1),)


def test_a_measure_around_zero_needs_no_count():
    statement = compile_sql("SELECT SUM(balance) FROM people", DOMAIN)
    assert [output.source for output in statement.outputs] == [Aggregate(0)]


def test_a_measure_that_is_never_null_shares_the_count_of_rows():
    statement = compile_sql("SELECT AVG(hours), COUNT(*) FROM people", DOMAIN)
    assert len(statement.blocks) == 2
    assert statement.blocks[1].queries == (LinearQuery.all(DOMAIN),)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM people WHERE wage > 3",
        "SELECT wage, COUNT(*) FROM people GROUP BY wage",
        "SELECT COUNT(*) FROM people WHERE wage IS NULL",
        'SELECT SUM(balance) FROM people WHERE "balance" = 1',
    ],
)
def test_a_condition_on_a_measure_says_to_declare_an_attribute(text):
    with pytest.raises(SqlError, match="is a measure") as refused:
        compile_sql(text, DOMAIN)
    assert "declare it as an attribute too" in refused.value.hint


def test_a_misspelt_measure_is_suggested():
    with pytest.raises(UnknownName) as refused:
        compile_sql("SELECT SUM(wages) FROM people", DOMAIN)
    assert "wage" in refused.value.hint


# Predicates where a domain has measures


def test_predicates_count_rows_and_restrict_every_vector():
    young = LinearQuery.of(DOMAIN, age=[0, 1])
    everyone = LinearQuery.all(DOMAIN)
    assert young.counts_rows
    assert ~~young == young
    assert young | ~young == everyone
    assert (young & ~young).is_zero
    for at in range(DOMAIN.vectors):
        whole = LinearQuery.vector(DOMAIN, at)
        assert whole.where(young) + whole.where(~young) == whole
        dense = whole.where(young).to_vector().reshape(DOMAIN.shape)
        assert dense[:2, ..., at].all()
        assert dense.sum() == 2 * 3 * 2 * 3


@pytest.mark.parametrize(
    "combine", [lambda q: ~q, lambda q: q & q, lambda q: LinearQuery.all(DOMAIN).where(q)]
)
def test_a_sum_of_a_measure_is_no_predicate(combine):
    with pytest.raises(QueryError):
        combine(LinearQuery.vector(DOMAIN, 1))


FORMS = [
    "",
    "WHERE employed",
    "WHERE NOT employed AND age IS NOT NULL",
    "WHERE age BETWEEN 2 AND 7 AND state IN ('AL', 'WA')",
    "WHERE generation = '3-6' OR state <> 'AL'",
    "WHERE NOT (age < 5 AND employed) AND NOT state = 'NY'",
    "WHERE age IS NULL OR state = 'WA'",
    "WHERE age > 20",
    "WHERE state LIKE 'N%' AND age < 4",
]
GROUPS = ["", "state", "employed, state", "age", "generation, employed"]


@pytest.mark.parametrize("groups", GROUPS)
def test_every_combination_of_measures_conditions_and_groups_is_duckdbs(ask, groups):
    """Counts, sums and averages of columns with and without NULL, filtered and not, side by side."""
    numbers = [
        f"{aggregate}({name}){condition}"
        for name in ("wage", "hours", "balance")
        for aggregate in ("COUNT", "SUM", "AVG")
        for condition in ("", " FILTER (WHERE employed)", " FILTER (WHERE age > 3)")
    ]
    keys = groups.split(", ") if groups else []
    compared = 0
    for condition in FORMS:
        by = f" GROUP BY {groups}" if groups else ""
        wanted = ", ".join([*keys, "COUNT(*)", *numbers])
        ours, theirs = ask(f"SELECT {wanted} FROM people {condition}{by}")
        found = {tuple(map(str, row[: len(keys)])): row[len(keys) :] for row in theirs}
        for row in ours:
            # Groups without rows are shown: counts and sums are 0, averages NULL.
            expected = found.get(tuple(map(str, row[: len(keys)])), (0,) + (None,) * len(numbers))
            for name, own, other in zip(["COUNT(*)", *numbers], row[len(keys) :], expected, strict=True):
                compared += other is not None
                if name.startswith("AVG"):
                    assert (own is None) == (other is None), (name, condition, row)
                assert float(own or 0) == pytest.approx(float(other or 0)), (name, condition, row)
    assert compared > 100
