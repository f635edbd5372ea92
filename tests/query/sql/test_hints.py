"""What comes nearest to a refused question is in its hint, and is answered."""

import pytest

from sharewell import Category, Date, Domain, Integer, Measure, compile_sql
from sharewell.errors import QueryError

CLAIMS = Domain(
    [
        Category("status", ["open", "settled"]),
        Date("opened", "2022-01-01", "2023-12-31"),
        Date("closed", "2022-01-01", "2024-12-31", nullable=True),
        Integer("age", 18, 90),
    ],
    [Measure("paid", "paid", 0, 10_000, 1), Measure("premium", "premium", 50, 2000, 1)],
)
GROUPED = "SELECT status, {} FROM claims GROUP BY status"
FIRST = "DATE '2022-01-01'"
MEANS = f"AVG(closed - {FIRST}) - AVG(opened - {FIRST}) FILTER (WHERE closed IS NOT NULL)"


@pytest.mark.parametrize(
    ("refused", "nearest"),
    [
        ("AVG(closed - opened)", MEANS),
        ("SUM(CASE WHEN age > 50 THEN DATE_DIFF('day', opened, closed) END)", MEANS),
        (
            "COUNT(CASE WHEN closed - opened > 9 THEN 'long' ELSE 'short' END)",
            "COUNT_IF(closed - opened > 9)",
        ),
        ("MEDIAN(closed - opened)", "COUNT_IF(closed - opened <= 10) / COUNT(*)"),
        ("QUANTILE_CONT(age * 12, 0.9)", "MEDIAN(age)"),
        ("SUM(paid * (status = 'settled'))", "SUM(paid) FILTER (WHERE status = 'settled')"),
        ("AVG(paid / premium)", "SUM(paid) / SUM(premium)"),
    ],
)
def test_a_hint_has_the_nearest_question(refused, nearest):
    with pytest.raises(QueryError) as caught:
        compile_sql(GROUPED.format(refused), CLAIMS, "claims")
    assert nearest in caught.value.hint
    compile_sql(GROUPED.format(nearest), CLAIMS, "claims")


def test_an_average_of_groups_is_a_window_over_them():
    counts = "SELECT status, COUNT(*) AS n FROM claims GROUP BY status"
    with pytest.raises(QueryError) as caught:
        compile_sql(f"WITH q AS ({counts}) SELECT AVG(n) FROM q", CLAIMS, "claims")
    assert "AVG(COUNT(*)) OVER ()" in caught.value.hint
    compile_sql(GROUPED.format("AVG(COUNT(*)) OVER ()"), CLAIMS, "claims")


@pytest.mark.parametrize("refused", ["MAX(paid)", "MEDIAN(paid)", "MEDIAN(paid / premium)"])
def test_quantiles_of_measures_need_bins(refused):
    with pytest.raises(QueryError) as caught:
        compile_sql(GROUPED.format(refused), CLAIMS, "claims")
    assert "curator" in caught.value.hint
    assert "bins" in caught.value.hint


def test_what_takes_too_long_is_named_with_the_other_mistakes():
    with pytest.raises(QueryError) as caught:
        compile_sql(GROUPED.format("MAX(age), agee, AVG(closed - opened)"), CLAIMS, "claims")
    told = f"{caught.value.message} {caught.value.hint}"
    assert [part in told for part in ('"MAX"', '"agee"', "closed - opened takes too long")] == [True] * 3
