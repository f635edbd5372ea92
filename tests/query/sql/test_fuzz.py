"""Whatever is written: a statement or an error of ours, nothing else, and nothing is printed."""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import duckdb
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import tokenize

from sharewell import Boolean, Category, Date, Domain, Integer
from sharewell.errors import QueryError
from sharewell.query.sql import compile_anew, compile_sql
from sharewell.query.sql.text import Source
from sharewell.query.statement import Statement
from tests.query.sql.oracle import duckdb_with

DOMAIN = Domain(
    [
        Integer("a", -1, 3, nullable=True, bins={"a_bins": [-1, 1, 2]}),
        Category("s", ["A", "AB", "b_"], nullable=True),
        Boolean("t", nullable=True),
        Date("d", "2020-02-28", "2020-03-02"),
    ]
)
VALID = """\
SELECT COUNT(*) FROM people WHERE a >= 1 AND a < 3 OR NOT s = 'A'
SELECT COUNT(*) AS n FROM people WHERE a BETWEEN 0 AND 2 AND s IN ('A', NULL) AND d > DATE '2020-02-29'
SELECT a_bins, COUNT(*) FROM people WHERE t GROUP BY a_bins HAVING COUNT(*) > 3 ORDER BY 2 DESC LIMIT 2
SELECT COUNT(a) FILTER (WHERE t IS NOT TRUE), COUNT(s) FROM people WHERE s LIKE 'A%' ESCAPE '!'
SELECT COUNT(CASE WHEN a > 1 THEN 1 WHEN t THEN NULL ELSE 0.5 END) FROM people p WHERE (1 + 2) * -1 < p.a
SELECT s, t, COUNT(*) n FROM people GROUP BY s, t ORDER BY n, s NULLS FIRST, t
SELECT COUNT(*) FROM people WHERE d <= CAST('2020-03-01' AS DATE) AND t = TRUE AND NOT (a = 1 OR a <> 2);
""".splitlines()
KEYWORDS = """
    AND OR NOT IN IS NULL TRUE FALSE BETWEEN LIKE ESCAPE CASE WHEN THEN ELSE END FILTER WHERE FROM SELECT
    GROUP BY HAVING ORDER LIMIT AS DATE ASC DESC NULLS FIRST LAST ISNULL NOTNULL ALL UNION JOIN ON USING
    WITH OVER DISTINCT OFFSET INTERVAL VALUES LATERAL EXISTS ROW ANY CURRENT_DATE json_extract lower
    COUNT(*) SUM(a) AVG a s t d p n people a_bins
"""
SIGNS = """
    ( ) , . * + - / = <> < <= > >= :: ; ? $1 :x -- /* */ || [ ] { } " ' \\ ! @ # ~ ^ & | 1 2 0 -1
    1e0 0x1F 1_000 .5 5. 'A' 'AB' '2020-02-29' "a" "A" $$x$$ E'x' '' é ﬀ \x00 \ud800 \ufeff
"""
WORDS = [*KEYWORDS.split(), *SIGNS.split()]


@contextmanager
def silence() -> Iterator[None]:
    """Nothing may be printed or logged; warnings are errors in all tests."""
    printed, root = io.StringIO(), logging.getLogger()
    handler = logging.StreamHandler(printed)
    root.addHandler(handler)
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            yield
    finally:
        root.removeHandler(handler)
    assert printed.getvalue() == ""


def compiled(text: str) -> Statement | None:
    """The statement, or None where the text is refused as it should be."""
    with silence():
        try:
            statement = compile_sql(text, DOMAIN)
        except QueryError as error:
            refused = error
        else:
            assert len(statement.rows([0] * len(statement.queries))) <= len(statement.group_labels)
            return statement
    assert refused.message.endswith(".")
    assert refused.hint.endswith((".", "?"))
    return None


@given(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join))
def test_word_soup_is_refused_politely(soup):
    compiled(soup)
    compiled(f"SELECT COUNT(*) FROM people WHERE {soup}")
    compiled(f"SELECT {soup} FROM people")


@given(st.text(max_size=60))
def test_any_characters_are_refused_politely(text):
    compiled(text)
    compiled(f"SELECT COUNT(*) FROM people WHERE s = '{text}'")
    compiled(f'SELECT COUNT(*) AS "{text}" FROM people')


@st.composite
def mutated(draw) -> str:
    """A valid text with some of its words dropped, doubled, swapped or replaced."""
    text = draw(st.sampled_from(VALID))
    words = [text[token.start : token.end + 1] for token in tokenize(text, read="duckdb")]
    for _ in range(draw(st.integers(1, 3))):
        at, other = (draw(st.integers(0, len(words) - 1)) for _ in range(2))
        match draw(st.sampled_from(["drop", "double", "swap", "insert", "replace"])):
            case "drop" if len(words) > 1:
                del words[at]
            case "double":
                words.insert(at, words[at])
            case "swap":
                words[at], words[other] = words[other], words[at]
            case "insert":
                words.insert(at, draw(st.sampled_from(WORDS)))
            case "replace":
                words[at] = draw(st.sampled_from(WORDS))
    return " ".join(words)


@given(st.lists(mutated(), min_size=20, max_size=20))
def test_what_is_accepted_of_broken_sql_means_what_it_means_to_duckdb(texts):
    counts = np.ones(DOMAIN.size, dtype=int)
    accepted = {text: statement for text in texts if (statement := compiled(text))}
    with duckdb_with(DOMAIN, counts) as ask:
        for text, statement in accepted.items():
            try:
                theirs = ask(text)
            except duckdb.Error:
                continue  # AVG of a boolean, and the few slips that leave no doubt: `t NOT IS TRUE`
            ours = statement.rows([query.dot(counts) for query in statement.queries])
            shown = [row for row in ours if any(isinstance(v, int | float) and v for v in row)]
            assert len(theirs) in (len(ours), len(shown))


def test_a_broken_text_that_the_parser_forgives_is_refused():
    for text in [
        "SELECT COUNT(*) FROM people WHERE a BETWEEN 0 2",
        "SELECT SUM(CASE WHEN t 1 END) FROM people",
        "SELECT COUNT(*) FROM people ORDER BY 1, , 1",
        "SELECT , COUNT(*) FROM people",
        "SELECT COUNT(*) FROM people IS",
        "SELECT COUNT(*) FILTER FROM people",
        "SELECT COUNT(*) FROM people * WHERE t",
        "SELECT COUNT(*) FROM people ORDER BY 1 ASC DESC",
    ]:
        assert compiled(text) is None


@given(st.sampled_from(VALID), st.data())
def test_white_space_does_not_change_a_statement(text, data):
    spaces = st.text(" \t\r\n\x0b\u3000", min_size=1, max_size=3)
    first, *rest = text.split(" ")
    spaced = first + "".join(data.draw(spaces) + word for word in rest)
    plain = compile_sql(text, DOMAIN)
    assert compile_sql(spaced, DOMAIN) is plain, "it is the same text in the cache"
    statement = compile_anew(Source(spaced, DOMAIN, "people"))
    assert (statement.text, statement.columns) == (plain.text, plain.columns)
    assert statement.queries == plain.queries
    assert statement.order == plain.order
