"""Regular expressions mean what they mean to DuckDB, in time linear in the text."""

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell import Category, Domain, QueryError, compile_sql

TEXTS = [
    "a",
    "ab",
    "aab",
    "b1",
    "A-b",
    "ba.",
    "aaaa",
    "É",
    "é2",
    "x y",
    "a\nb",
    "]",
    "abab",
    "A10.1",
    "_",
]
DOMAIN = Domain([Category("c", TEXTS)])
CLASSES = ["[ab]", "[^a]", "[a-z0-9]", "[]a]", "[^]]", "[[:alpha:]]", r"[a\d-]", r"[\W_]"]
ESCAPES = [r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", r"\.", r"\-"]
ATOMS = st.sampled_from(["a", "b", ".", "é", *CLASSES, *ESCAPES])
COUNTS = st.sampled_from(["", "", "", "*", "+", "?", "*?", "+?", "{2}", "{0,1}", "{1,}", "{0}", "{2,3}"])


def sequences(parts):
    repeated = st.builds("{}{}".format, parts, COUNTS)
    return st.builds(
        "{}{}{}".format,
        st.sampled_from(["", "", "^"]),
        st.lists(repeated, max_size=3).map("".join),
        st.sampled_from(["", "", "$"]),
    )


def alternatives(parts):
    return st.lists(sequences(parts), min_size=1, max_size=2).map("|".join)


GROUPS = st.builds("({}{})".format, st.sampled_from(["", "?:"]), alternatives(ATOMS))
PATTERNS = st.builds("{}{}".format, st.sampled_from(["", "", "(?i)"]), alternatives(ATOMS | GROUPS))


@pytest.fixture(scope="module")
def texts():
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE texts AS SELECT unnest(?) AS c", [TEXTS])
        yield connection


def selected(condition: str) -> list[int]:
    [query] = compile_sql(f"SELECT COUNT(*) FROM people WHERE {condition}", DOMAIN).queries
    return query.to_vector().tolist()


@given(pattern=PATTERNS, written=st.sampled_from(["c ~ '{}'", "c SIMILAR TO '{}'"]))
def test_a_regular_expression_selects_what_it_selects_in_duckdb(texts, pattern, written):
    condition = written.format(pattern)
    rows = texts.execute(f"SELECT CAST({condition} AS INTEGER) FROM texts").fetchall()
    assert selected(condition) == [truth for (truth,) in rows]


def test_codes_of_diseases_are_chosen_by_their_form():
    domain = Domain([Category("icd", ["I10", "I10.9", "J99", "K01", "other"])])
    sql = "SELECT COUNT(*) FROM people WHERE icd ~ '^(I|J)[0-9]{2}(\\.[0-9])?$'"
    assert compile_sql(sql, domain).queries[0].to_vector().tolist() == [1, 1, 1, 0, 0]


def test_a_pattern_that_backtracking_is_slow_on_is_fast():
    long = Domain([Category("c", ["a" * 5_000 + "b"])])
    for pattern in ("a*" * 50 + "c", "(a|aa)*c", "((a*)*)*c", "(a?){50}a{50}c"):
        sql = f"SELECT COUNT(*) FROM people WHERE c ~ '^{pattern}$'"
        assert compile_sql(sql, long).queries[0].is_zero


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"(a)\1", r"\\1 is not supported"),
        (r"\bNorth", r"\\b is not supported"),
        ("a**", "a repetition is repeated"),
        ("a{2}{3}", "a repetition is repeated"),
        ("*a", "there is nothing that \\* repeats"),
        ("[ab", "a bracket is not closed"),
        ("[z-a]", "the range z-a is empty"),
        ("(a", "a parenthesis is not closed"),
        ("a)", "a parenthesis was never opened"),
        ("a(?=b)", r"\(\?= is not supported"),
        ("a{3,2}", r"\{3,2\} is no number of repetitions"),
        ("(a{1000}){1000}", "is too long"),
        ("(" * 60 + "a" + ")" * 60, "is too long"),
    ],
)
def test_a_pattern_that_is_not_supported_is_refused_with_the_reason(pattern, reason):
    with pytest.raises(QueryError, match=f"regular expression .*{reason}"):
        selected(f"c ~ '{pattern}'")
