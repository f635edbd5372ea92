"""The work that a text makes grows with its length, and no faster: counted in calls, not in seconds."""

import sys
from collections.abc import Callable

import pytest

from sharewell import Category, Domain, Integer
from sharewell.errors import QueryError, QueryTooComplex
from sharewell.query import diagram, sql
from sharewell.query.predicate import IsTruth, Not, Predicate, TruthValue, evaluate
from sharewell.query.sql import compile_anew, compile_sql
from sharewell.query.sql.patterns import MAX_LIKE_STEPS
from sharewell.query.sql.text import Source

DOMAIN = Domain([Integer("age", 0, 19), Category("sex", ["F", "M"])])
COUNT = "SELECT COUNT(*) FROM people"
HAVING = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING"
FEW, MANY = 100, 400
Made = Callable[[int], str]

SELECTS: dict[str, Made] = {
    "counts": lambda n: f"SELECT {', '.join(['COUNT(*)'] * n)} FROM people",
    "aliases that ORDER BY names": lambda n: (
        f"SELECT {', '.join(f'COUNT(*) AS c{i}' for i in range(n))} FROM people "
        f"ORDER BY {', '.join(f'c{i}' for i in range(n))}"
    ),
    "aliases of one name": lambda n: (
        f"SELECT {', '.join(['COUNT(*) AS c'] * n)} FROM people ORDER BY {', '.join(['c'] * n)}"
    ),
    "aliases that GROUP BY names": lambda n: (
        f"SELECT {', '.join(f'sex AS c{i}' for i in range(n))}, COUNT(*) FROM people "
        f"GROUP BY {', '.join(f'c{i}' for i in range(n))}"
    ),
    "numbers of columns": lambda n: (
        f"SELECT {', '.join(['sex'] * n)}, COUNT(*) FROM people GROUP BY {n} ORDER BY "
        f"{', '.join([str(n)] * n)}"
    ),
    "filters": lambda n: (
        f"SELECT {', '.join(f'COUNT(*) FILTER (WHERE age < {i % 20})' for i in range(n))} FROM people"
    ),
    "branches": lambda n: (
        f"SELECT SUM(CASE {' '.join(f'WHEN age = {i % 20} THEN {i}' for i in range(n))} END) FROM people"
    ),
}
CONDITIONS: dict[str, Made] = {
    "IN": lambda n: f"age IN ({', '.join(str(i % 20) for i in range(n))})",
    "IN of constants": lambda n: f"5 IN ({', '.join(['1'] * n)})",
    "AND": lambda n: " AND ".join(f"age <> {i % 20}" for i in range(n)),
    "OR of ANDs": lambda n: " OR ".join(f"age = {i % 20} AND sex = 'F'" for i in range(n)),
    "AND of ORs": lambda n: " AND ".join(f"(age = {i % 20} OR sex = 'F')" for i in range(n)),
    "IS NULL": lambda n: "age" + " IS NULL" * n,
    "NOTNULL": lambda n: "age" + " NOTNULL" * n,
    "sums": lambda n: f"age < {' + '.join(['1'] * n)}",
    "parentheses": lambda n: f"{'(' * n}age = 1{')' * n}",
    "comparisons": lambda n: "age" + " = age" * n,
    "unknown words": lambda n: "foo " * n,
    "open quotes": lambda n: "'' ' " * n,
    "a long name": lambda n: "x" * 50 * n,
    "a long number": lambda n: f"age = {'9' * 50 * n}",
    "a long label": lambda n: f"sex = '{'x' * 50 * n}'",
    "a long pattern": lambda n: f"sex LIKE '{'%x' * 50 * n}'",
}


def where(made: Made) -> Made:
    return lambda n: f"{COUNT} WHERE {made(n)}"


TEXTS: dict[str, Made] = {
    **SELECTS,
    **{f"WHERE {name}": where(made) for name, made in CONDITIONS.items()},
    "HAVING AND": lambda n: f"{HAVING} {' AND '.join(f'n > {i}' for i in range(n))}",
    "HAVING IN": lambda n: f"{HAVING} n IN ({', '.join(map(str, range(n)))})",
    "comments": lambda n: f"{COUNT} {'/**/ ' * n}",
    "semicolons": lambda n: COUNT + ";" * n,
}


def cells(count: int) -> list[tuple[int, int]]:
    """Different cells of a grid, scattered."""
    return [(i * 37 % 100, i * i % 89) for i in range(count)]


#: Conditions on two attributes, whose diagrams grow with the text.
GRID = Domain([Integer("a", 0, 99), Integer("b", 0, 99), Category("sex", ["F", "M"])])
GRID_TEXTS: dict[str, Made] = {
    "cells": lambda n: f"{COUNT} WHERE {' OR '.join(f'a = {a} AND b = {b}' for a, b in cells(n))}",
    "all but cells": lambda n: (
        f"{COUNT} WHERE {' AND '.join(f'(a <> {a} OR b <> {b})' for a, b in cells(n))}"
    ),
    "branches by cell": lambda n: (
        "SELECT SUM(CASE "
        + " ".join(f"WHEN a = {a} AND b = {b} THEN {a * b}" for a, b in cells(n))
        + " END) FROM people"
    ),
    "filters by cell": lambda n: (
        "SELECT "
        + ", ".join(f"COUNT(*) FILTER (WHERE a = {a} AND b > {b})" for a, b in cells(n))
        + " FROM people"
    ),
}


def calls(text: str, domain: Domain = DOMAIN, most: int = 10_000) -> int:
    """How many calls it takes to compile a text, or to refuse it."""
    made = 0

    def count(frame, event, argument):
        nonlocal made
        made += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        compile_anew(Source(text, domain, "people"), most)
    except QueryError:
        pass
    finally:
        sys.setprofile(before)
    return made


@pytest.mark.parametrize("made", TEXTS.values(), ids=TEXTS)
def test_twice_the_text_is_about_twice_the_work(made):
    calls(made(FEW))  # What is computed once and kept is not counted.
    few, many = calls(made(FEW)), calls(made(MANY))
    assert many <= 1.5 * (MANY / FEW) * few + 1000


@pytest.mark.parametrize("made", GRID_TEXTS.values(), ids=GRID_TEXTS)
def test_twice_the_conditions_on_two_attributes_are_about_twice_the_work(made, monkeypatch):
    sizes: list[int] = []
    make = diagram._node

    def counted(size, starts, *parts, **more):
        sizes.append(len(starts))
        return make(size, starts, *parts, **more)

    monkeypatch.setattr(diagram, "_node", counted)

    def runs(n: int) -> int:
        """How many runs of cells have the nodes that are made for a text."""
        sizes.clear()
        compile_anew(Source(made(n), GRID, "people"))
        return sum(sizes)

    calls(made(FEW), GRID)
    assert calls(made(MANY), GRID) <= 1.5 * (MANY / FEW) * calls(made(FEW), GRID)
    assert runs(MANY) <= 2 * (MANY / FEW) * runs(FEW), "n log n: a balanced tree has log n levels"


@pytest.mark.parametrize("negated", [False, True])
def test_a_condition_about_a_condition_about_a_condition_looks_at_its_leaf_twice(negated):
    looks: list[bool] = []
    condition: Predicate = TruthValue(None)
    for _ in range(15):
        condition = Not(IsTruth(condition, None)) if negated else IsTruth(condition, None)

    def leaf(condition: Predicate, unknown: bool) -> _Everything:
        looks.append(unknown)
        return _Everything()

    evaluate(condition, False, leaf)
    assert len(looks) == 2


class _Everything:
    """A set that is made of nothing, since it is not looked at."""

    def __and__(self, other):
        return self

    def __or__(self, other):
        return self

    def __invert__(self):
        return self


#: Pairs of attributes that must be equal: a diagram has a node for every combination of the first three.
LETTERS = "abcdef"
CUBE = Domain([Integer(name, 0, 19) for name in LETTERS])
EQUAL = " AND ".join(
    f"({' OR '.join(f'{one} = {i} AND {other} = {i}' for i in range(20))})"
    for one, other in zip(LETTERS[:3], LETTERS[3:], strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        f"{COUNT} WHERE {EQUAL}",
        f"SELECT {', '.join(f'COUNT(*) FILTER (WHERE a = {i} OR f = {i})' for i in range(20))} "
        f"FROM people WHERE {EQUAL}",
        f"SELECT COUNT(*) FROM people WHERE {EQUAL} GROUP BY d, e, f",
        f"SELECT SUM(CASE WHEN f = 1 THEN 2 WHEN {EQUAL} THEN 1 END) FROM people",
    ],
    ids=["WHERE", "FILTER", "GROUP BY", "CASE"],
)
def test_a_new_question_that_would_be_compiled_for_long_is_refused(text, monkeypatch):
    made: list[int] = []
    make = diagram.make

    def counted(*parts):
        made.append(1)
        return make(*parts)

    monkeypatch.setattr(diagram, "make", counted)
    monkeypatch.setattr(sql, "MAX_STEPS", 2**11)
    with pytest.raises(QueryTooComplex, match="too much work"):
        compile_sql(text, CUBE, most=100)
    assert len(made) < 2 * (2**11 + 2 * 100 * 6)


def test_a_pattern_and_a_text_that_would_be_compared_for_long_are_refused():
    def liked(length: int) -> str:
        return f"{COUNT} WHERE '{'a' * length}' LIKE '%{'a' * (length // 2)}b%'"

    compile_anew(Source(liked(1000), DOMAIN, "people"))
    assert MAX_LIKE_STEPS < 20_000 * 10_000
    with pytest.raises(QueryTooComplex, match="LIKE"):
        compile_anew(Source(liked(20_000), DOMAIN, "people"))


def test_having_is_refused_where_it_would_be_looked_at_for_long_after_it_was_paid_for():
    domain = Domain([Integer("a", 1, 50), Integer("b", 1, 50)])

    def having(terms: int) -> str:
        every = " AND ".join(f"COUNT(*) > {i}" for i in range(terms))
        return f"SELECT COUNT(*) FROM people GROUP BY a, b HAVING {every}"

    compile_anew(Source(having(2), domain, "people"))
    with pytest.raises(QueryTooComplex, match="too long for a result of 2,500 rows"):
        compile_anew(Source(having(1000), domain, "people"))


def test_rows_are_sorted_once_by_what_they_are_ordered_by_often():
    order = ", ".join(["n DESC", "n", "sex", "1"] * 500)
    text = f"SELECT sex, COUNT(*) n FROM people GROUP BY sex ORDER BY {order}"
    statement = compile_anew(Source(text, DOMAIN, "people"))
    assert len(statement.order) == 2
    assert statement.rows([1, 2]) == [("M", 2), ("F", 1)]


def test_more_numbers_than_are_wanted_are_refused_before_they_are_made():
    domain = Domain([Integer("a", 1, 100), Integer("b", 1, 100, bins={"tens": [1, 11, 51]})])
    text = f"{COUNT} GROUP BY a, b"
    assert calls(text, domain, most=9_999) < calls(text, domain, most=10_000)
    # Some combinations of a column with its own bins are impossible, and are not counted.
    assert len(compile_anew(Source(f"{COUNT} GROUP BY b, tens", domain, "people"), 100).queries) == 100


GRID = Domain([Integer("a", 0, 99), Integer("b", 0, 99)])
CELLS = "FROM people GROUP BY a, b"


@pytest.mark.parametrize(
    "number",
    [
        "COUNT(*) / SUM(COUNT(*)) OVER ()",
        "100.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY a)",
        "SUM(COUNT(*)) OVER () * 100 - SUM(COUNT(*)) OVER (PARTITION BY b)",
        "AVG(COUNT(*)) OVER (PARTITION BY a, b)",
        "SUM(COUNT(*)) OVER (PARTITION BY a, b ORDER BY b)",
    ],
)
def test_a_total_that_ten_thousand_rows_share_is_computed_once(number, monkeypatch):
    monkeypatch.setattr("sharewell.query.sql.forms.MAX_COMPUTED", 1_100_000 if "-" in number else 80_000)
    assert compile_anew(Source(f"SELECT a, b, {number} {CELLS}", GRID, "people")).size == 10_000


@pytest.mark.parametrize(
    "number", ["SUM(COUNT(*)) OVER (ORDER BY a, b)", "COUNT(*) - SUM(COUNT(*)) OVER ()"]
)
def test_totals_of_too_many_numbers_are_refused_before_they_are_computed(number):
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        with pytest.raises(QueryTooComplex, match="adds up too many numbers"):
            compile_anew(Source(f"SELECT a, b, {number} {CELLS}", GRID, "people"))
    finally:
        sys.setprofile(None)
    assert calls < 2_000_000
