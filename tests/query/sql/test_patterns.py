"""Regular expressions mean what they mean to Python, in time linear in the text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharewell import Category, Domain, SqlError, compile_sql

TEXTS = ["a", "ab", "aab", "b1", "A-b", "", "ba.", "aaaa"]
DOMAIN = Domain([Category("c", [text or "empty" for text in TEXTS])])
ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\.", "[a-z0-9]"])
PARTS = st.builds("{}{}".format, ATOMS, st.sampled_from(["", "", "*", "+", "?"]))
SEQUENCES = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "^"]),
    st.lists(PARTS, max_size=4).map("".join),
    st.sampled_from(["", "$"]),
)


@given(st.lists(SEQUENCES, min_size=1, max_size=2).map("|".join), st.booleans())
def test_a_regular_expression_selects_what_it_matches(pattern, whole):
    written = f"c SIMILAR TO '{pattern}'" if whole else f"c ~ '{pattern}'"
    [query] = compile_sql(f"SELECT COUNT(*) FROM people WHERE {written}", DOMAIN).queries
    match = re.fullmatch if whole else re.search
    expected = [int(match(pattern, str(label)) is not None) for label in DOMAIN.attributes[0].values]
    assert query.to_vector().tolist() == expected


def test_a_pattern_that_backtracking_is_slow_on_is_fast():
    long = Domain([Category("c", ["a" * 5_000 + "b"])])
    sql = f"SELECT COUNT(*) FROM people WHERE c ~ '^{'a*' * 50}c$'"
    assert compile_sql(sql, long).queries[0].is_zero


@pytest.mark.parametrize("pattern", ["(a)", "a{2}", r"\1", "a**", "["])
def test_groups_and_counts_are_refused(pattern):
    with pytest.raises(SqlError, match="regular expression"):
        compile_sql(f"SELECT COUNT(*) FROM people WHERE c ~ '{pattern}'", DOMAIN)
