"""Statements of the whole grammar mean what they mean to DuckDB."""

import re
from pathlib import Path

import pytest

from sharewell.query.sql.grammar import NAMED, NODES, PARSED, parse
from sharewell.query.sql.text import Source
from tests.query.sql.differential import check, run, table, written
from tests.query.sql.writer import STAYS

SQL_PAGE = Path(__file__).parents[3] / "docs" / "sql.md"


def test_what_is_accepted_means_what_it_means_to_duckdb():
    found = run(150, first=1)
    assert found["DIFFERS"] == 0
    assert found["same answer"] > 130


def words_of(text: str) -> set[str]:
    """The words and the operators of a text."""
    return set(re.findall(r"\w+|[^\w\s(),.'\";]+", text.upper()))


def test_every_documented_form_is_written():
    words = set[str]().union(*(words_of(written(seed)[0]) for seed in range(10_000)))
    assert words >= NAMED | PARSED
    rows = re.findall(r"^\| (\w[\w ]*) \| (.*) \|$", SQL_PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    forms = {code for kind, row in rows if kind != "schema" for code in re.findall("`([^`]+)`", row)}
    assert len(forms) > 100
    # Examples of names and constants stand for others.
    own = {"X", "Y", "TEXT", "QUOTED", "12", "1E6", "31", "[", "]", "CONDITION"}
    for form in forms:
        assert words_of(form) - own <= words, form


#: What the parser notes of itself, and what is only accepted to be refused with a reason.
NOT_WRITTEN = {
    "typed",
    "safe",
    "nested",
    "value_constructor",
    "distinct of Union",
    "expressions of Distinct",
}


def test_every_node_of_the_grammar_is_written_with_each_of_its_parts():
    found = set[str]()
    for seed in range(3000):
        sql, domain = written(seed)
        source = Source(sql.replace("DISTINCT person", "*"), domain, "people")
        source.tokenize()
        tree = parse(source)
        for node in tree.walk():
            kind = type(node).__name__
            found |= {kind, *(f"{part} of {kind}" for part, value in node.args.items() if value)}
    known = {node.__name__ for node in NODES}
    known |= {
        f"{part} of {node.__name__}"
        for node, (parts, _) in NODES.items()
        for part in parts
        if not {part, f"{part} of {node.__name__}"} & NOT_WRITTEN
    }
    assert known - found == {"expressions of DataTypeParam"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COALESCE(region, 'Total') AS k0, COUNT(*) FROM people GROUP BY ROLLUP (region)",
        "SELECT region IS NULL AS k0, COUNT(*) FROM people GROUP BY ROLLUP (region)",
        "SELECT COALESCE(age, -1) + 1 AS k0, COUNT(*) FROM people "
        "GROUP BY ROLLUP (age) HAVING age IS NOT NULL",
        "SELECT COALESCE(region, 'T') || CASE WHEN emp IS NULL THEN '-' ELSE '+' END AS k0, COUNT(*) "
        "FROM people GROUP BY CUBE (region, emp)",
        "SELECT UPPER(region) AS k0, COALESCE(age_group, 'all') AS k1, COUNT(*) "
        "FROM people GROUP BY GROUPING SETS ((region), (age_group), (region, age_group))",
        "SELECT CASE WHEN d IS NULL THEN 'all' ELSE 'day' END AS k0, COUNT(*) "
        "FROM people GROUP BY ROLLUP (d)",
        # Two columns of one attribute, of which a subtotal has the first only.
        "SELECT COALESCE(YEAR(d), 0) AS k0, COALESCE(MONTH(d), -1) AS k1, COUNT(*) "
        "FROM people GROUP BY ROLLUP (YEAR(d), MONTH(d))",
        "SELECT COALESCE(age_group, 'x') AS k0, COALESCE(CAST(age AS VARCHAR), 'all') AS k1, COUNT(*) "
        "FROM people GROUP BY ROLLUP (age_group, age)",
        "SELECT age_group AS k0, CASE WHEN age IS NULL THEN 'all' WHEN age < 2 THEN 'a' ELSE 'b' END "
        "AS k1, COUNT(*) FROM people GROUP BY CUBE (age_group, age)",
    ],
)
def test_the_columns_of_a_subtotal_are_null_in_what_is_computed_from_them(sql):
    with table() as on:
        assert check(sql, on) == "same answer"


@pytest.mark.parametrize(
    "key",
    [
        *(f"SPLIT_PART(region, '{by}', {at})" for by in (" ", "o", "") for at in (-3, -1, 0, 1, 2, 9)),
        "STRPOS(region, 'th')",
        "INSTR(region, 'w')",
        "STRPOS(region, '')",
        "region ~ '^(N|S)(o|e)[a-z]{2,3}'",
        "region SIMILAR TO '(North|New [A-Z]\\w+)'",
    ],
)
def test_functions_of_text_mean_what_they_mean_to_duckdb(key):
    with table() as on:
        assert check(f"SELECT {key} AS k0, COUNT(*) FROM people GROUP BY k0", on) == "same answer"


def test_a_sum_of_a_measure_on_some_rows_may_be_a_case():
    with table() as on:
        for default in ("ELSE 0 ", "ELSE NULL ", ""):
            sql = f"SELECT SUM(CASE WHEN emp THEN wage {default}END) FROM people"
            assert check(sql, on) == "same answer"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT n AS v0, r AS k0 FROM (SELECT region AS r, COUNT(*) AS n FROM people GROUP BY r) AS t",
        "SELECT n AS k0 FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY 1) AS t",
        "SELECT n AS k0 FROM (SELECT region, COUNT(*) AS n FROM people GROUP BY ALL) AS t",
        "SELECT a AS k0 FROM (SELECT DISTINCT region AS r, age AS a FROM people) AS t",
        "SELECT more AS v0 FROM (SELECT age // 2 AS half, COUNT(*) AS n, n + 1 AS more FROM people "
        "GROUP BY half HAVING n > 9 ORDER BY 2 DESC, half LIMIT 1) AS t",
        "SELECT n AS v0 FROM (SELECT emp AS e, code AS c, COUNT(*) AS n FROM people "
        "GROUP BY GROUPING SETS ((1), (1, 2))) AS t",
    ],
)
def test_a_subquery_keeps_its_aliases_and_positions(sql):
    with table() as on:
        assert check(sql, on) == "same answer"


def test_comparisons_of_columns_of_many_values_are_groups():
    with table(domain=STAYS) as on:
        for where in ("", " WHERE admitted < discharged"):
            sql = f"SELECT discharged - admitted > 30 AS k0, COUNT(*) FROM people{where} GROUP BY k0"
            assert check(sql, on) == "same answer"


@pytest.mark.parametrize("start", [-9, -2, 0, 2])
@pytest.mark.parametrize("length", ["", ", -2", ", 0", ", 8"])
def test_parts_of_text_may_begin_and_end_outside_of_it(start, length):
    with table() as on:
        sql = f"SELECT SUBSTRING(region, {start}{length}) AS k0, COUNT(*) FROM people GROUP BY k0"
        assert check(sql, on) == "same answer"


@pytest.mark.parametrize("type_", ["DECIMAL", "DECIMAL(9, 1)", "NUMERIC(12, 2)", "DECIMAL(4)"])
def test_numbers_are_cast_to_decimals(type_):
    with table() as on:
        sql = f"SELECT CAST(AVG(age) AS {type_}) AS v0, (SUM(age) / 7)::{type_} AS decimal FROM people"
        assert check(sql, on) == "same answer"


def test_whole_numbers_are_what_is_divided_without_remainder():
    with table() as on:
        for written_ in ("age / 2 // 2", "SUM(age) // AVG(age)", "FLOOR(age) // 2", "SUM(pay / 3 // 1)"):
            assert check(f"SELECT {written_}, COUNT(*) FROM people GROUP BY ALL", on).startswith(
                "refused: // divides whole numbers"
            )


@pytest.mark.parametrize(
    "results", ["'yes'", "NULL ELSE code", "'yes' ELSE code", "d ELSE gone", "bonus"]
)
def test_a_count_of_a_case_needs_no_numbers(results):
    with table() as on:
        assert (
            check(f"SELECT COUNT(CASE WHEN emp THEN {results} END) AS v0 FROM people", on)
            == "same answer"
        )
