"""Conditions, cell by cell, against DuckDB's own WHERE on a table with one row per cell."""

import numpy as np
from hypothesis import given, settings

from sharewell.query.sql import compile_sql
from tests.query.sql.oracle import domain_and_conditions, duckdb_with


@given(domain_and_conditions())
def test_a_where_selects_the_cells_that_duckdb_selects(case):
    domain, [condition] = case
    expected = np.zeros(domain.size, dtype=int)
    with duckdb_with(domain, np.ones(domain.size)) as ask:
        expected[[cell for (cell,) in ask(f"SELECT cell FROM people WHERE {condition}")]] = 1
    [query] = compile_sql(f"SELECT COUNT(*) FROM people WHERE {condition}", domain).queries
    assert query.to_vector().tolist() == expected.tolist()


@settings(max_examples=40)  # One takes 80 ms: four conditions, put together in two ways.
@given(domain_and_conditions(4))
def test_ands_of_ors_and_ors_of_ands_select_the_cells_that_duckdb_selects(case):
    domain, (p, q, r, s) = case
    both = f"(({p}) OR ({q})) AND (({r}) OR ({s}))"
    either = f"(({p}) AND ({q})) OR (({r}) AND ({s}))"
    with duckdb_with(domain, np.ones(domain.size)) as ask:
        for condition in (both, either):
            cells = [cell for (cell,) in ask(f"SELECT cell FROM people WHERE {condition} ORDER BY cell")]
            [query] = compile_sql(f"SELECT COUNT(*) FROM people WHERE {condition}", domain).queries
            assert np.flatnonzero(query.to_vector()).tolist() == cells
