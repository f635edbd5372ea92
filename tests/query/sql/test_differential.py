"""Statements of the whole grammar mean what they mean to DuckDB."""

from tests.query.sql.differential import run


def test_what_is_accepted_means_what_it_means_to_duckdb():
    found = run(150, first=1)
    assert not [outcome for outcome in found if outcome.startswith("DIFFERS")]
    assert found["same answer"] > 130
