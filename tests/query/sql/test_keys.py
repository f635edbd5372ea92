"""Conditions that mean the same are one query, however they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell import Boolean, Category, Domain, Integer
from sharewell.query.sql import compile_sql
from tests.query.sql.oracle import conditions, domains

TWENTIES = [
    "age >= 20 AND age < 30",
    "age BETWEEN 20 AND 29",
    "NOT (age < 20 OR age > 29)",
    f"age IN ({', '.join(map(str, range(20, 30)))})",
    "age > 19 AND NOT age >= 30",
    "19.5 < age AND 30 > age",
    "age BETWEEN 4 * 5 AND 60 / 2 - 1",
    "age_group = '20-29'",
    "(age >= 20) IS TRUE AND age <= 29",
]
#: Conditions that change nothing, with a place for the one that they are hidden in.
DISGUISES = [
    "{}",
    "({}) AND 1 = 1",
    "({}) OR 2 < 1",
    "({}) AND (sex = 'F' OR sex = 'M')",
    "({}) OR (sex = 'F' AND sex = 'M')",
    "({}) AND NOT (age > 5 AND age < 5)",
    "({}) OR age IN (NULL)",
    "({}) AND (employed OR NOT employed OR employed IS NULL)",
    "NOT NOT ({})",
    "({}) AND age > -1000 AND age < 1000",
]


@pytest.mark.parametrize("nullable", [False, True])
def test_equal_conditions_have_one_key(nullable):
    domain = Domain(
        [
            Boolean("employed", nullable=True),
            Integer("age", 0, 85, nullable=nullable, bins={"age_group": [0, 20, 30]}),
            Category("sex", ["F", "M"]),
        ]
    )
    where = [disguise.format(condition) for condition in TWENTIES for disguise in DISGUISES]
    statements = [compile_sql(f"SELECT COUNT(*) FROM people WHERE {text}", domain) for text in where]
    keys = {query.key for statement in statements for query in statement.queries}
    assert len(keys) == 1
    assert statements[0].queries[0].l1_norm == 10 * 3 * 2


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("COUNT(*)", "SUM(1)"),
        ("COUNT(age)", "COUNT(*) FILTER (WHERE age IS NOT NULL)"),
        ("COUNT(CASE WHEN sex = 'F' THEN 0 END)", "SUM(CASE WHEN sex = 'F' THEN 1 ELSE 0 END)"),
        ("SUM(age) FILTER (WHERE sex = 'F')", "SUM(age) FILTER (WHERE NOT sex <> 'F')"),
    ],
)
def test_aggregates_that_mean_the_same_are_asked_for_once(one, two):
    domain = Domain([Integer("age", 0, 9, nullable=True), Category("sex", ["F", "M"])])
    statement = compile_sql(f"SELECT {one}, {two} FROM people GROUP BY sex", domain)
    assert len(statement.blocks) == 1
    assert statement.outputs[0].source == statement.outputs[1].source


@given(domains(), st.data())
def test_de_morgans_laws_and_double_negation_keep_the_key(domain, data):
    p, q = data.draw(conditions(domain)), data.draw(conditions(domain))

    def key(where: str) -> str:
        return compile_sql(f"SELECT COUNT(*) FROM people WHERE {where}", domain).queries[0].key

    assert key(f"({p}) AND ({q})") == key(f"NOT (NOT ({p}) OR NOT ({q}))")
    assert key(f"({p}) OR ({q})") == key(f"NOT (NOT ({q}) AND NOT ({p}))")
    assert key(f"NOT NOT ({p})") == key(p)
    assert key(f"({p}) AND TRUE OR FALSE") == key(p)
