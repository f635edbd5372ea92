"""How much work a text makes: counted by calls, which are the same however busy the machine is."""

import sys

import pytest

from sharewell import Category, Domain, Integer
from sharewell.errors import QueryError, QueryTooComplex
from sharewell.query.diagram import limited
from sharewell.query.sql import MAX_STEPS, Statement, compile_anew
from sharewell.query.sql.text import Source

LEVELS = ["none", "primary", "secondary", "college", "master", "doctorate"]
DOMAIN = Domain([Integer("age", 0, 85), Category("school", LEVELS), Category("sex", ["F", "M"])])
COUNT = "SELECT COUNT(*) FROM people"
MOST = 10_000
#: More calls than any question may take: some seconds, and about as many as 100 kB of conditions take.
MAX_CALLS = 1_500_000
#: About how many calls are made in the longest time that one step stands for.
MAX_CALLS_OF_STEP = 200


class TooManyCalls(BaseException):
    """A text that takes too long; no error of the compiler, which might handle it."""


def calls(text: str, domain: Domain = DOMAIN, steps: int = MAX_STEPS) -> int:
    """Compile a text as a new question, and count the calls."""
    count = 0

    def counted(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")
        if count > MAX_CALLS:
            raise TooManyCalls

    sys.setprofile(counted)
    try:
        with limited(steps):
            compile_anew(Source(text, domain, "people"), MOST)
    except QueryError:
        pass
    finally:
        sys.setprofile(None)
    return count


def repeated(part, count: int, between: str) -> str:
    return between.join(part(i) for i in range(count))


def fits(i: int) -> str:
    return f"age = {i * 37 % 86} AND school = '{LEVELS[i * i % 6]}'"


TEXTS = {
    "case": lambda n: f"SELECT SUM(CASE {repeated(lambda i: f'WHEN {fits(i)} THEN {i}', n, ' ')} END)",
    "case of columns": lambda n: (
        f"SELECT AVG(CASE {repeated(lambda i: f'WHEN {fits(i)} THEN age', n, ' ')} END)"
    ),
    "nots": lambda n: f"{COUNT} WHERE {repeated(lambda i: f'NOT (age = {i % 80})', n, ' OR ')}",
    "ilike": lambda n: f"{COUNT} WHERE {repeated(lambda i: f'''school ILIKE '%{i}%' ''', n, ' OR ')}",
    "quantiles": lambda n: f"SELECT MEDIAN(age), QUANTILE_CONT(age, [{repeated(str, n, ', ')}])",
    "groups": lambda n: f"{COUNT} GROUP BY {repeated(lambda i: 'sex', n, ', ')}",
    "rolled up": lambda n: f"{COUNT} GROUP BY ROLLUP ({repeated(lambda i: f'age + {i}', n, ', ')})",
    "unknown": lambda n: f"SELECT {repeated(lambda i: f'COUNT(foo{i})', n, ', ')}",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_work_is_linear_in_the_text(text):
    def of(n: int) -> int:
        made = text(n)
        return calls(made if "FROM" in made else f"{made} FROM people")

    once, twice = of(200), of(400)
    assert twice < 2.2 * once


ATTACKS = {
    "alias": "SELECT COUNT(*) AS a0, "
    + repeated(lambda i: f"GREATEST(a{i}, a{i}) AS a{i + 1}", 60, ", ")
    + " FROM people",
    "subquery": "WITH t0 AS (SELECT age AS a FROM people)"
    + repeated(lambda i: f", t{i + 1} AS (SELECT a + a AS a FROM t{i})", 60, "")
    + " SELECT COUNT(*) FROM t60 WHERE a > 3",
    "chain of subqueries": "WITH t0 AS (SELECT age AS a FROM people)"
    + repeated(lambda i: f", t{i + 1} AS (SELECT a + 1 AS a FROM t{i})", 300, "")
    + " SELECT COUNT(*) FROM t300 WHERE a > 3",
    "replace": f"{COUNT} WHERE {'REPLACE(' * 90}school" + ", 'a', 'aaaaaaaaaa')" * 90 + " = 'b'",
    "cubes": f"SELECT COUNT(*) FROM people GROUP BY {', '.join(['CUBE (sex, school, age)'] * 4)}",
}


@pytest.mark.parametrize("text", ATTACKS.values(), ids=ATTACKS)
def test_a_short_text_cannot_make_much_work(text):
    with pytest.raises(QueryTooComplex), limited(MAX_STEPS):
        compile_anew(Source(text, DOMAIN, "people"), MOST)
    assert calls(text) < MAX_CALLS


@pytest.mark.parametrize(
    "pattern",
    ["a?" * 2_000 + "b", "[a-z]*" * 900 + "b", "[a-z]*x|" * 900 + "b", "abcdef|" * 14_000 + "b"],
)
def test_a_regular_expression_cannot_make_the_match_slow(pattern):
    assert calls(f"{COUNT} WHERE regexp_matches(school, '{pattern}')") < MAX_CALLS


def test_a_range_of_many_categories_is_compared_once():
    codes = Domain([Category("code", [f"I{number:05}" for number in range(100_000)])])
    text = f"{COUNT} WHERE code BETWEEN 'I10' AND 'I15'"
    assert calls(text, codes) < 8 * len(codes.attributes[0].labels)
    assert compile_anew(Source(text, codes, "people"), MOST).queries[0].l1_norm == 5_000


def test_every_word_counts_as_work():
    text = f"{COUNT} WHERE age IN ({', '.join(['1'] * 2_000)})"
    with pytest.raises(QueryTooComplex), limited(1_000):
        compile_anew(Source(text, DOMAIN, "people"))


def test_conditions_on_columns_of_many_values_count_as_work():
    codes = Domain([Category("code", [f"I{number:05}" for number in range(100_000)])])
    conditions = repeated(lambda i: f"code = 'I{i:05}'", 3_000, " OR ")
    text = f"{COUNT} WHERE {conditions}"
    with pytest.raises(QueryTooComplex), limited(MAX_STEPS):
        compile_anew(Source(text, codes, "people"))


def test_nodes_between_two_distant_columns_count_as_work():
    wide = Domain([Category(f"c{i}", ["a", "b"]) for i in range(200)])
    text = f"{COUNT} WHERE {repeated(lambda i: f'c{i} = c199', 150, ' AND ')}"
    with pytest.raises(QueryTooComplex), limited(MAX_STEPS // 2):
        compile_anew(Source(text, wide, "people"))


def test_a_cube_of_too_many_columns_is_refused():
    columns = repeated(lambda i: f"age + {i}", 13, ", ")
    with pytest.raises(QueryError, match="too many grouping sets"):
        compile_anew(Source(f"{COUNT} GROUP BY CUBE ({columns})", DOMAIN, "people"))


def test_as_many_columns_are_compiled_as_postgresql_has():
    def compiled(columns: int) -> Statement:
        text = f"SELECT {', '.join(['COUNT(*)'] * columns)} FROM people"
        with limited(2 * MAX_STEPS):
            return compile_anew(Source(text, DOMAIN, "people"), MOST)

    with pytest.raises(QueryTooComplex, match=r"SELECT lists 1,665 columns; the limit is 1,664\."):
        compiled(1665)
    assert len(compiled(1664).outputs) == 1664


def test_a_count_of_nothing_is_refused():
    with pytest.raises(QueryError, match="The aggregate has no argument"):
        compile_anew(Source("SELECT COUNT(DISTINCT ) FROM people", DOMAIN, "people"))


def test_a_longer_list_of_columns_that_was_accepted_once_is_still_read():
    text = f"SELECT {', '.join(['COUNT(*)'] * 1665)} FROM people"
    assert len(compile_anew(Source(text, DOMAIN, "people")).outputs) == 1665


#: Aggregates that take long to compile, of one condition each.
AGGREGATES = {
    "filters": lambda i: f"COUNT(*) FILTER (WHERE age <= {i % 80} AND school < '{'bdgntx'[i % 6]}')",
    "cases": lambda i: f"SUM(CASE WHEN age < {i % 86} THEN age ELSE {i} END)",
    "averages": lambda i: f"AVG(CASE WHEN age > {i % 86} THEN age END)",
    "quantiles": lambda i: f"MEDIAN(age) FILTER (WHERE school > '{i}')",
    "spreads": lambda i: f"STDDEV(age) FILTER (WHERE school > '{i}')",
    "products": lambda i: f"CORR(age, age + {i})",
    "likes": lambda i: f"COUNT(*) FILTER (WHERE school LIKE '%{i}%')",
}


@pytest.mark.parametrize("aggregate", AGGREGATES.values(), ids=AGGREGATES)
def test_many_aggregates_cannot_make_much_work(aggregate):
    conditions = repeated(lambda i: f"{aggregate(i)} > {i}", 120, " OR ")
    text = f"SELECT COUNT(*) FROM people HAVING {conditions}"
    assert calls(text, steps=MAX_STEPS // 10) < MAX_CALLS_OF_STEP * MAX_STEPS // 10


#: Clauses over all groups of a result: of 16 kB, which is what the service accepts.
OVER_GROUPS = {
    "sorted by labels": lambda i: f"age + {i}",
    "sorted by numbers": lambda i: f"n + {i}",
    "sorted by functions": lambda i: f"ABS(n - {i})",
}


@pytest.mark.parametrize("key", OVER_GROUPS.values(), ids=OVER_GROUPS)
def test_clauses_over_many_groups_cannot_make_much_work(key):
    groups = Domain([Integer("age", 0, 85), Integer("code", 0, 9)])
    text = "SELECT age, code, COUNT(*) AS n FROM people GROUP BY age, code ORDER BY "
    text += repeated(key, 130, ", ")
    assert calls(text, groups, MAX_STEPS // 10) < MAX_CALLS_OF_STEP * MAX_STEPS // 10
