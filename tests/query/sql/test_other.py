"""The cell of values outside the declared ones: what can be said of it, and what is unknown."""

from typing import Any

import numpy as np
import pytest

from sharewell import Binned, Boolean, Category, Date, Domain, Integer
from sharewell.query.sql import compile_sql

OPTIONS: dict[str, Any] = {"other": "other", "nullable": True}
DOMAIN = Domain(
    [
        Integer("age", 0, 3, bins={"age_group": [0, 2]}, **OPTIONS),
        Category("sex", ["F", "M"], **OPTIONS),
        Binned("income", [0, 10, 20], **OPTIONS),
        Boolean("employed", **OPTIONS),
        Date("seen", "2020-01-01", "2020-01-03", **OPTIONS),
    ]
)


@pytest.mark.parametrize(
    ("condition", "labels"),
    [
        ("age = 2", [2]),
        ("age <> 2", [0, 1, 3, "other"]),
        ("age IN (1, 'other')", [1, "other"]),
        ("age NOT IN (1, 'other')", [0, 2, 3]),
        ("age < 2", [0, 1]),
        ("NOT age < 2", [2, 3]),
        ("age BETWEEN 1 AND 100", [1, 2, 3]),
        ("NOT age BETWEEN 1 AND 100", [0]),
        ("age = 'other'", ["other"]),
        ("age <> 'other'", [0, 1, 2, 3]),
        # It may hold 100, and it may hold something else.
        ("age = 100", []),
        ("age <> 100", [0, 1, 2, 3]),
        ("age NOT IN (2, 100)", [0, 1, 3]),
        ("age IS NULL", [None]),
        ("age IS NOT NULL", [0, 1, 2, 3, "other"]),
        ("age_group = '0-1'", [0, 1]),
        ("age_group <> '0-1'", [2, 3, "other"]),
        ("age_group = 'other'", ["other"]),
        ("sex <> 'F'", ["M", "other"]),
        ("sex = 'other'", ["other"]),
        ("sex LIKE 'o%'", ["other"]),
        ("sex NOT LIKE 'F'", ["M", "other"]),
        ("income >= 10", ["[10, 20)"]),
        ("NOT income >= 10", ["[0, 10)"]),
        ("income = '[0, 10)'", ["[0, 10)"]),
        ("income <> '[0, 10)'", ["[10, 20)", "other"]),
        ("income = 500", []),
        ("employed", [True]),
        ("NOT employed", [False]),
        ("employed IS NOT TRUE", [False, "other", None]),
        ("employed IS FALSE", [False]),
        ("employed = TRUE", [True]),
        ("employed <> TRUE", [False, "other"]),
        ("employed = 'other'", ["other"]),
        ("employed IS NULL", [None]),
        ("seen = '2020-01-02'", ["2020-01-02"]),
        ("seen <> DATE '2020-01-02'", ["2020-01-01", "2020-01-03", "other"]),
        ("seen > '2020-01-01'", ["2020-01-02", "2020-01-03"]),
        ("seen = 'other'", ["other"]),
        ("seen <> '1999-01-01'", ["2020-01-01", "2020-01-02", "2020-01-03"]),
    ],
)
def test_the_other_cell_is_selected_only_where_that_is_certain(condition, labels):
    name = condition.replace("NOT ", "").split()[0].removesuffix("_group")
    attribute = DOMAIN[name]
    [query] = compile_sql(f"SELECT COUNT(*) FROM people WHERE {condition}", DOMAIN).queries
    cells = query.to_vector().reshape(DOMAIN.shape)
    others = tuple(i for i, a in enumerate(DOMAIN.attributes) if a is not attribute)
    selected = np.flatnonzero(cells.any(axis=others))
    assert [attribute.label(int(cell)) for cell in selected] == labels


def test_the_other_and_null_cells_add_nothing_to_a_sum_or_a_mean():
    domain = Domain([Integer("age", 1, 3, **OPTIONS)])
    statement = compile_sql("SELECT SUM(age), AVG(age), COUNT(age), COUNT(*) FROM people", domain)
    counts = [10, 20, 30, 1000, 2000]
    values = [sum(w * c for w, c in zip(q.to_vector(), counts, strict=True)) for q in statement.queries]
    assert statement.rows(values) == [(140, 140 / 60, 1060, 3060)]
