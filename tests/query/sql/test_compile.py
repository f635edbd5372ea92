"""compile_sql as a whole: what it takes, what it remembers, and where it stops."""

import inspect
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sharewell import Boolean, Category, Domain, Integer
from sharewell.errors import Location, QueryTooComplex, SqlError, SqlSyntaxError, UnknownName
from sharewell.query import contraction
from sharewell.query.sql import Statement, StatementCache, compile_anew, compile_sql, normalize_sql
from sharewell.query.sql.grammar import MAX_NESTING
from sharewell.query.sql.text import MAX_TEXT, Source

DOMAIN = Domain([Integer("age", 0, 85), Category("sex", ["F", "M"]), Boolean("employed", nullable=True)])
COUNT = "SELECT COUNT(*) FROM people"


@pytest.mark.parametrize("text", [None, 5, b"SELECT COUNT(*) FROM people", ["SELECT"]])
def test_what_is_not_text_is_refused(text):
    with pytest.raises(SqlError, match="SQL must be a string"):
        compile_sql(text, DOMAIN)


@pytest.mark.parametrize("text", ["", "  \n\t", ";", "-- nothing but a comment"])
def test_a_text_without_sql_is_refused(text):
    with pytest.raises(SqlSyntaxError, match="is empty"):
        compile_sql(text, DOMAIN)


@pytest.mark.parametrize("character", ["\x00", "\ud800"])
def test_characters_that_no_text_holds_are_refused_at_their_place(character):
    with pytest.raises(SqlSyntaxError) as error:
        compile_sql(f"{COUNT}\nWHERE sex = '{character}'", DOMAIN)
    assert error.value.where == Location(2, 14)
    str(error.value).encode()


def test_a_place_counts_characters_and_not_bytes():
    with pytest.raises(UnknownName) as error:
        compile_sql(f"{COUNT} WHERE sex = 'é😀' AND\r\n\tagee = 3", Domain([Category("sex", ["é😀"])]))
    assert error.value.where == Location(2, 2, "agee")


def test_long_words_are_cut_in_an_error():
    with pytest.raises(UnknownName) as error:
        compile_sql(f"{COUNT} WHERE {'x' * 10_000} = 1", DOMAIN)
    assert len(str(error.value)) < 500


def test_equal_text_for_one_domain_and_table_is_compiled_once():
    text = f"{COUNT} WHERE age < 18"
    statement = compile_sql(text, DOMAIN)
    assert compile_sql(text, Domain(DOMAIN.attributes)) is statement
    assert compile_sql(f"{text} ", DOMAIN) is statement
    assert compile_sql(text, Domain(DOMAIN.attributes[:1])) is not statement
    with pytest.raises(UnknownName):
        compile_sql(text, DOMAIN, table="visits")


def test_the_cache_forgets_what_was_used_longest_ago():
    def statement(name: str) -> Statement:
        """A statement of its own for each name: a small one, or for a capital letter a large one."""
        groups = " GROUP BY age" if name.isupper() else ""
        return compile_anew(Source(f"SELECT COUNT(*) AS {name} FROM people{groups}", DOMAIN, "people"))

    def kept(cache: StatementCache, names: str) -> str:
        """Which of several names are still cached, after each was looked up and put in turn."""
        texts = {name: statement(name).text for name in names}
        for name in names:
            if cache.get(texts[name], DOMAIN, "people") is None:
                cache.put(statement(name))
        return "".join(name for name in sorted(texts) if cache.get(texts[name], DOMAIN, "people"))

    small, large = statement("a").nbytes, statement("A").nbytes
    assert small * 10 < large
    assert kept(StatementCache(2 * small), "abac") == "ac"
    assert kept(StatementCache(2 * small), "abA") == "ab", "it is too large"
    assert kept(StatementCache(large + small), "abAcdB") == "Bd"
    cache = StatementCache(large + small)
    assert kept(cache, "aA") == "Aa"
    assert cache.nbytes == large + small
    assert cache.get("SELECT COUNT(*) AS a FROM people", Domain(DOMAIN.attributes[:1]), "people") is None


@pytest.mark.parametrize(
    ("columns", "condition"),
    [
        ("age, height", ""),
        ("zip", " WHERE age = 3 AND zip < 4"),
        ("age, height", " WHERE age < height OR zip = 3"),
        ("height, member", " WHERE member"),
        ("age", " WHERE FALSE"),
    ],
)
def test_the_memory_of_a_statement_is_estimated_without_its_rows(columns, condition):
    attributes = [
        Integer("age", 0, 29),
        Boolean("member"),
        Integer("height", 0, 29),
        Integer("zip", 0, 999),
    ]
    text = f"SELECT {columns}, COUNT(*), SUM(age) FROM people{condition} GROUP BY {columns}"
    statement = compile_anew(Source(text, Domain(attributes), "people"))
    estimate = statement.nbytes
    assert all("queries" not in vars(block) for block in statement.blocks)
    labels = 512 * (len(statement.group_labels) + 1) * len(statement.outputs)
    diagrams = sum(
        contraction.nbytes(query.root for query in block if query.root) for block in statement.blocks
    )
    exact = len(text) + labels + 512 * len(statement.queries) + diagrams
    assert exact * 0.9 < estimate < exact * 5


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("  SELECT\t1\r\n ; ", "SELECT 1 ;"),
        ("SELECT 'two  spaces', \"a \t b\",''", "SELECT 'two  spaces', \"a \t b\",''"),
        ("SELECT 'it''s  here'  ,  1", "SELECT 'it''s  here' , 1"),
        ("a  -- it's\n  b  /* '\n */  d", "a -- it's\n b /* '\n */ d"),
        ("", ""),
    ],
)
def test_white_space_outside_of_quotes_is_normalized(text, normalized):
    assert normalize_sql(text) == normalized
    assert normalize_sql(normalized) == normalized


def test_comments_are_ignored():
    plain = compile_sql(COUNT, DOMAIN)
    for comment in (" -- all", "/* all */", " -- all\n", "\n--\n ", " -- it's; DROP"):
        assert compile_sql(COUNT + comment, DOMAIN).queries == plain.queries


def test_errors_point_into_the_text_as_it_was_written():
    with pytest.raises(UnknownName) as error:
        compile_sql("  SELECT   COUNT(*)\n\n   FROM people\n  WHERE   agee = 3", DOMAIN)
    assert error.value.where == Location(4, 11, "agee")


def test_threads_share_the_cache():
    texts = [f"{COUNT} WHERE age < {i % 20}" for i in range(400)]
    with ThreadPoolExecutor(8) as pool:
        statements = list(pool.map(lambda text: compile_sql(text, DOMAIN), texts))
    assert [s.text for s in statements] == texts
    assert len({s.queries[0].key for s in statements}) == 20


def test_a_text_that_is_too_long_is_refused():
    compile_anew(Source(COUNT + " " * (MAX_TEXT - len(COUNT)), DOMAIN, "people"))
    with pytest.raises(QueryTooComplex, match="100,001 characters"):
        compile_anew(Source(COUNT + " " * (MAX_TEXT + 1 - len(COUNT)), DOMAIN, "people"))


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
    start = time.process_time()
    [query] = compile_sql(f"{COUNT} WHERE {condition}", DOMAIN).queries
    assert time.process_time() - start < 10
    assert 0 < query.l1_norm < DOMAIN.size


def test_a_pattern_cannot_make_the_match_slow():
    domain = Domain([Category("name", ["a" * 30, "b"])])
    pattern = "%a" * 12 + "%c"
    start = time.process_time()
    [query] = compile_sql(f"{COUNT} WHERE name LIKE '{pattern}'", domain).queries
    assert time.process_time() - start < 10
    assert query.is_zero


def test_a_result_with_too_many_numbers_is_refused():
    domain = Domain([Integer("a", 1, 256), Integer("b", 1, 256), Boolean("c")])
    with pytest.raises(QueryTooComplex, match="131,072 numbers") as error:
        compile_sql(f"{COUNT} GROUP BY a, b, c", domain)
    assert error.value.where == Location(1, 38, "a, b, c")
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
    assert refused.value.hint == "Example: SELECT COUNT(*) FROM visits."


def test_a_size_limit_applies_to_cached_statements_and_to_fields():
    grouped = f"{COUNT} GROUP BY sex"
    assert compile_sql(grouped, DOMAIN, most=2).size == 2
    with pytest.raises(QueryTooComplex, match="asks for 2 numbers; the limit is 1"):
        compile_sql(grouped, DOMAIN, most=1)
    repeated = "SELECT sex, COUNT(*), COUNT(*), COUNT(*) FROM people GROUP BY sex"
    assert len(compile_sql(repeated, DOMAIN).queries) == 2
    with pytest.raises(QueryTooComplex, match="asks for 6 numbers"):
        compile_sql(repeated, DOMAIN, most=5)


def test_a_statement_knows_its_text_and_its_table():
    statement = compile_sql("SELECT COUNT(*) FROM visits", DOMAIN, table="visits")
    assert (statement.text, statement.table, statement.size) == (
        "SELECT COUNT(*) FROM visits",
        "visits",
        1,
    )
