"""compile_sql as a whole: what it takes, what it remembers, and where it stops."""

import inspect
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sharewell import Boolean, Category, Domain, Integer
from sharewell.errors import Place, QueryTooComplex, SqlError, SqlSyntaxError, UnknownName
from sharewell.query.sql import compile_sql
from sharewell.query.sql.cache import StatementCache
from sharewell.query.sql.text import MAX_NESTING, MAX_TEXT

DOMAIN = Domain([Integer("age", 0, 85), Category("sex", ["F", "M"]), Boolean("employed", nullable=True)])
COUNT = "SELECT COUNT(*) FROM people"


@pytest.mark.parametrize("text", [None, 5, b"SELECT COUNT(*) FROM people", ["SELECT"]])
def test_what_is_not_text_is_refused(text):
    with pytest.raises(SqlError, match="SQL is text"):
        compile_sql(text, DOMAIN)


@pytest.mark.parametrize("text", ["", "  \n\t", ";", "-- nothing but a comment"])
def test_a_text_without_sql_is_refused(text):
    with pytest.raises(SqlSyntaxError, match="no SQL"):
        compile_sql(text, DOMAIN)


@pytest.mark.parametrize("character", ["\x00", "\ud800"])
def test_characters_that_no_text_holds_are_refused_at_their_place(character):
    with pytest.raises(SqlSyntaxError) as error:
        compile_sql(f"{COUNT}\nWHERE sex = '{character}'", DOMAIN)
    assert error.value.where == Place(2, 14)
    str(error.value).encode()


def test_a_place_counts_characters_and_not_bytes():
    with pytest.raises(UnknownName) as error:
        compile_sql(f"{COUNT} WHERE sex = 'é😀' AND\r\n\tagee = 3", Domain([Category("sex", ["é😀"])]))
    assert error.value.where == Place(2, 2, "agee")


def test_long_words_are_cut_in_an_error():
    with pytest.raises(UnknownName) as error:
        compile_sql(f"{COUNT} WHERE {'x' * 10_000} = 1", DOMAIN)
    assert len(str(error.value)) < 500


def test_equal_text_for_one_domain_and_table_is_compiled_once():
    text = f"{COUNT} WHERE age < 18"
    statement = compile_sql(text, DOMAIN)
    assert compile_sql(text, Domain(DOMAIN.attributes)) is statement
    assert compile_sql(f"{text} ", DOMAIN) is not statement
    assert compile_sql(text, Domain(DOMAIN.attributes[:1])) is not statement
    with pytest.raises(UnknownName):
        compile_sql(text, DOMAIN, table="visits")


def test_the_cache_forgets_what_was_used_longest_ago():
    made = []

    def compiled(name: str, groups: str = ""):
        def make():
            made.append(name)
            return compile_sql(COUNT + groups, DOMAIN)

        return cache.get(name, make)

    cache = StatementCache(max_statements=2, max_queries=100)
    for name in ["a", "b", "a", "c", "a", "b"]:
        compiled(name)
    assert made == ["a", "b", "c", "b"]

    made.clear()
    cache = StatementCache(max_statements=9, max_queries=100)
    for name in ["a", "b", "a", "c", "a"]:
        compiled(name, " GROUP BY age")
    assert made == ["a", "b", "a", "c", "a"]

    made.clear()
    cache = StatementCache(max_statements=9, max_queries=100)
    for name, groups in [("a", ""), ("b", " GROUP BY age, sex"), ("a", ""), ("b", " GROUP BY age, sex")]:
        compiled(name, groups)
    assert made == ["a", "b", "b"]


def test_threads_share_the_cache():
    texts = [f"{COUNT} WHERE age < {i % 20}" for i in range(400)]
    with ThreadPoolExecutor(8) as pool:
        statements = list(pool.map(lambda text: compile_sql(text, DOMAIN), texts))
    assert [s.text for s in statements] == texts
    assert len({s.queries[0].key for s in statements}) == 20


def test_a_text_that_is_too_long_is_refused():
    compile_sql(COUNT + " " * (MAX_TEXT - len(COUNT)), DOMAIN)
    with pytest.raises(QueryTooComplex, match="100,001 characters"):
        compile_sql(COUNT + " " * (MAX_TEXT + 1 - len(COUNT)), DOMAIN)


@pytest.mark.parametrize("condition", ["({}age = 1{})", "NOT ({}age = 1{})"])
def test_nesting_that_is_too_deep_is_refused(condition):
    def nested(depth: int) -> str:
        opening, closing = condition.split("{}age = 1{}")
        return f"{COUNT} WHERE {opening * depth}age = 1{closing * depth}"

    compile_sql(nested(MAX_NESTING), DOMAIN)
    with pytest.raises(QueryTooComplex, match="nested"):
        compile_sql(nested(MAX_NESTING + 1), DOMAIN)


@pytest.mark.parametrize(
    "word",
    [
        *("( ", "NOT ", "- ", "CASE ", "CASE WHEN age THEN ", "NOT age BETWEEN ", "age IN ( ", "CAST( "),
        *(
            "COUNT( ",
            "1 + ",
            "age = ",
            "age AND ",
            "DATE ",
            "age IS ",
            "1, ",
            "age::",
            "x.",
            "FILTER ( ",
        ),
    ],
)
def test_a_text_of_one_word_over_and_over_is_refused_and_not_recursed_into(word):
    with pytest.raises((QueryTooComplex, SqlError)):
        compile_sql(f"{COUNT} WHERE {word * (90_000 // len(word))}", DOMAIN)


def test_deep_recursion_elsewhere_is_no_traceback():
    text = f"{COUNT} WHERE {'NOT (' * 90}age = 1{')' * 90}"

    def deeper(levels: int):
        return deeper(levels - 1) if levels else compile_sql(text, DOMAIN)

    here = len(inspect.stack())
    with pytest.raises(QueryTooComplex, match="nested"):
        deeper(sys.getrecursionlimit() - here - 150)


@pytest.mark.parametrize(
    "condition",
    [
        f"age IN ({', '.join(str(i % 80) for i in range(10_000))})",
        " OR ".join(f"age = {i % 80}" for i in range(7_000)),
        " AND ".join(f"age <> {i % 80}" for i in range(7_000)),
        " OR ".join(f"(age = {i % 86} AND sex = 'F')" for i in range(500)),
    ],
    ids=["in", "or", "and", "or of ands"],
)
def test_thousands_of_terms_are_compiled_in_seconds(condition):
    start = time.perf_counter()
    [query] = compile_sql(f"{COUNT} WHERE {condition}", DOMAIN).queries
    assert time.perf_counter() - start < 10
    assert 0 < query.l1_norm < DOMAIN.size


def test_a_pattern_cannot_make_the_match_slow():
    domain = Domain([Category("name", ["a" * 30, "b"])])
    pattern = "%a" * 12 + "%c"
    start = time.perf_counter()
    [query] = compile_sql(f"{COUNT} WHERE name LIKE '{pattern}'", domain).queries
    assert time.perf_counter() - start < 1
    assert query.is_zero


def test_a_result_with_too_many_numbers_is_refused():
    domain = Domain([Integer("a", 1, 256), Integer("b", 1, 256), Boolean("c")])
    with pytest.raises(QueryTooComplex, match="131,072 numbers") as error:
        compile_sql(f"{COUNT} GROUP BY a, b, c", domain)
    assert error.value.where == Place(1, 38, "a, b, c")
    many = ", ".join(f"COUNT(*) FILTER (WHERE a = {i})" for i in range(1, 130))
    with pytest.raises(QueryTooComplex, match="numbers"):
        compile_sql(f"SELECT {many} FROM people GROUP BY a, c", domain)


def test_names_match_whatever_their_case_and_exactly_in_quotes():
    domain = Domain([Integer("Age", 0, 9)])
    for name in ["age", "AGE", '"Age"', "people.aGe", 'People."Age"']:
        assert compile_sql(f"{COUNT} WHERE {name} < 5", domain).queries[0].l1_norm == 5
    for name in ['"age"', '"people".age2', '"People".Age']:
        with pytest.raises(UnknownName):
            compile_sql(f"{COUNT} WHERE {name} < 5", domain)


@pytest.mark.parametrize(
    "name", ["left", "date", "first", "comment", "index", "rows", "état", '"range"']
)
def test_a_column_may_be_called_what_sql_calls_something_else(name):
    domain = Domain([Integer(name.strip('"'), 0, 9)])
    text = f"SELECT {name}, COUNT(*) AS rank FROM people WHERE {name} < 5 GROUP BY {name} ORDER BY rank"
    assert sum(query.l1_norm for query in compile_sql(text, domain).queries) == 5


def test_the_table_has_the_name_it_is_given():
    statement = compile_sql('SELECT COUNT(*) FROM "the visits"', DOMAIN, table="the visits")
    assert statement.queries[0].l1_norm == DOMAIN.size


@pytest.mark.parametrize("text", ["", ";", "DROP TABLE visits"])
def test_what_is_no_question_is_shown_one_of_the_table_that_there_is(text):
    with pytest.raises(SqlError) as refused:
        compile_sql(text, Domain([Integer("age", 0, 85)]), table="visits")
    assert refused.value.hint == "Write, for example, SELECT COUNT(*) FROM visits."
