"""Statements of the whole grammar mean what they mean to DuckDB."""

import pytest

from tests.query.sql.differential import check, run, table


def test_what_is_accepted_means_what_it_means_to_duckdb():
    found = run(150, first=1)
    assert not [outcome for outcome in found if outcome.startswith("DIFFERS")]
    assert found["same answer"] > 130


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
    with table() as (ask, counts):
        assert check(sql, ask, counts) == ""


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
    with table() as (ask, counts):
        assert check(f"SELECT {key} AS k0, COUNT(*) FROM people GROUP BY k0", ask, counts) == ""


def test_a_sum_of_a_measure_on_some_rows_may_be_a_case():
    with table() as (ask, counts):
        for default in ("ELSE 0 ", "ELSE NULL ", ""):
            sql = f"SELECT SUM(CASE WHEN emp THEN wage {default}END) FROM people"
            assert check(sql, ask, counts) == ""
