"""Prices: post-processing is free, repeated parts are bought once, and a charge is at most the quote."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sharewell import Boolean, Budget, Category, Curator, DataVector, Domain, Integer, compile_sql
from sharewell.mechanisms import seed as seeds
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.service import quotes, results
from sharewell_lab.noise import SeededNoise
from tests.service.services import answered

DOMAIN = Domain([Category("town", ["a", "b", "c"]), Integer("age", 0, 5), Boolean("employed")])
DATA = DataVector(DOMAIN, np.random.default_rng(3).integers(0, 50, DOMAIN.size))

AGGREGATES = ["COUNT(*)", "SUM(age)", "AVG(age)", "COUNT(*) FILTER (WHERE employed)", "MEDIAN(age)"]
KEYS = ["town", "age < 3", "UPPER(town)", "CASE WHEN employed THEN 'yes' ELSE 'no' END"]
ROWS = ["TRUE", "age > 2", "NOT age <= 2", "employed", "town IN ('a', 'b')"]
#: What is computed from a number, or shown beside it, without touching data.
COMPUTED = [
    "ROUND(100.0 * {x} / NULLIF(COUNT(*), 0), 1)",
    "{x} + {x}",
    "ABS({x} - 3)",
    "CASE WHEN {x} > 10 THEN {x} ELSE 0 END",
    "COALESCE({x}, 0)",
]

grouped = st.builds(
    "SELECT {} AS g, {} FROM people WHERE {} GROUP BY {}".format,
    st.sampled_from(KEYS),
    st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=3).map(", ".join),
    st.sampled_from(ROWS),
    st.sampled_from(["g", "ROLLUP (g)"]),
)
unions = st.lists(
    st.builds("SELECT 1, COUNT(*) FROM people WHERE {}".format, st.sampled_from(ROWS)),
    min_size=2,
    max_size=4,
).map(" UNION ALL ".join)
statements = grouped | unions


def fresh() -> CacheReconstruct:
    """A mechanism with two analysts, and nothing bought yet."""
    shares = {"ann": Fraction(50), "ben": Fraction(50)}
    curator = Curator(DATA, Budget.pure(100), shares, noise=SeededNoise(1))
    return CacheReconstruct(
        curator, seed=seeds.identity(DOMAIN), seed_fraction="1/10", query_budget=Fraction(1)
    )


def quoted(mechanism: CacheReconstruct, sql: str, analyst: str) -> Fraction:
    cost = quotes.quote(mechanism, compile_sql(sql, DOMAIN), analyst).cost
    assert cost is not None
    return cost


def charged(mechanism: CacheReconstruct, sql: str, analyst: str) -> Fraction:
    """Ask and pay; what the result says it cost is what the analyst's share lost."""
    statement, before = compile_sql(sql, DOMAIN), mechanism.curator.left(analyst)
    answers = answered(mechanism, statement, analyst)
    cost = results.result(statement, answers, pay=True).cost
    assert cost == before - mechanism.curator.left(analyst)
    return cost


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.tuples(statements, st.lists(statements, max_size=2)), min_size=1, max_size=3))
def test_a_charge_is_the_quote_less_what_others_bought_in_between(questions):
    mechanism = fresh()
    for sql, in_between in questions:
        offer = quoted(mechanism, sql, "ann")
        spent = sum(charged(mechanism, other, "ben") for other in in_between)
        cost = charged(mechanism, sql, "ann")
        assert cost <= offer
        assert cost == offer or spent > 0
        assert charged(mechanism, sql, "ann") == 0, "it was bought before"
        assert charged(mechanism, sql, "ben") == 0, "ann has paid for it"


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.sampled_from(KEYS),
    st.sampled_from(AGGREGATES[:4]),
    st.sampled_from(ROWS),
    st.lists(st.sampled_from(COMPUTED), max_size=3),
    st.sampled_from(["", " HAVING COUNT(*) > 9", " ORDER BY 2 DESC LIMIT 1", " ORDER BY COUNT(*)"]),
)
def test_post_processing_and_repeated_parts_are_free(key, aggregate, rows, computed, end):
    plain = f"SELECT {key} AS g, {aggregate}, COUNT(*) FROM people WHERE {rows} GROUP BY g"
    more = ", ".join(["COUNT(*)", aggregate, *(each.format(x=f"({aggregate})") for each in computed)])
    richer = f"SELECT {key} AS g, {aggregate}, {more} FROM people WHERE {rows} GROUP BY g{end}"
    mechanism = fresh()
    assert quoted(mechanism, richer, "ann") == quoted(mechanism, plain, "ann")
    assert charged(mechanism, richer, "ann") > 0
    assert charged(mechanism, plain, "ann") == 0
    if "HAVING" not in end and "LIMIT" not in end:
        twice = f"{plain} UNION ALL {plain}"
        assert quoted(mechanism, twice, "ben") == 0


def test_a_half_bought_average_is_charged_by_half_and_not_called_cached():
    mechanism = fresh()
    charged(mechanism, "SELECT SUM(age) FROM people WHERE employed", "ben")
    statement = compile_sql("SELECT AVG(age) FROM people WHERE employed", DOMAIN)
    found = results.result(statement, answered(mechanism, statement, "ann"), pay=True)
    assert found.cost == 1
    assert found.rows[0][0].source == "measured"
    again = results.result(statement, answered(mechanism, statement, "ann"), pay=True)
    assert again.cost == 0
    assert again.rows[0][0].source == "cached"
