# mypy: disable-error-code="arg-type, list-item"
"""Attributes and domains: the public description of a table."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import pytest

from sharewell import Binned, Boolean, Category, Date, Domain, Integer
from sharewell.errors import DomainError, DomainTooLarge
from sharewell.query.attribute import BoundInsideCell
from sharewell.query.domain import MAX_ATTRIBUTES
from sharewell.query.sql import compile_sql
from sharewell.query.statement import Statement


def test_the_size_of_a_domain_is_the_product_of_its_attributes():
    domain = Domain([Integer("age", 0, 85), Category("sex", ["F", "M"]), Binned("income", [0, 10, 20])])
    assert domain.shape == (86, 2, 2)
    assert domain.size == 344


def test_the_other_cell_comes_after_the_values_and_the_null_cell_last():
    sex = Category("sex", ["F", "M"], nullable=True, other="unlisted")
    assert sex.labels == ("F", "M", "unlisted", None)
    assert (sex.size, sex.other_cell, sex.null_cell) == (4, 2, 3)
    assert [sex.label(i) for i in range(4)] == list(sex.labels)
    age = Integer("age", 3, 5)
    assert (age.labels, age.other_cell, age.null_cell) == ((3, 4, 5), None, None)


def test_a_domain_that_catches_every_row_says_so():
    assert Domain([Boolean("a")]).may_drop
    assert Domain([Boolean("a", nullable=True)]).may_drop
    assert not Domain([Boolean("a", other="other")]).may_drop


@pytest.mark.parametrize(
    ("unit", "labels"),
    [
        (
            "day",
            ("2020-12-30", "2020-12-31", "2021-01-01", "2021-01-02", "2021-01-03", "2021-01-04"),
        ),
        ("week", ("2020-W53", "2021-W01")),
        ("month", ("2020-12", "2021-01")),
        ("quarter", ("2020-Q4", "2021-Q1")),
        ("year", ("2020", "2021")),
    ],
)
def test_dates_are_cut_at_the_ends_of_their_periods(unit, labels):
    date = Date("d", "2020-12-30", dt.date(2021, 1, 4), by=unit)
    assert date.values == labels
    assert date.edges[0] == dt.date(2020, 12, 30).toordinal()
    assert date.edges[-1] == dt.date(2021, 1, 5).toordinal()


def test_a_bound_at_an_edge_splits_bins_and_a_bound_inside_one_names_its_edges():
    income = Binned("income", [0, 10000, 20000])
    assert income.cells_below(10000, inclusive=False) == 1
    assert income.cells_below(20000, inclusive=True) == 2
    assert income.cells_below(-1, inclusive=True) == 0
    for bound, inclusive, cell in [
        (12500, False, 1),
        (12500, True, 1),
        (10000, True, 1),
        (0, True, 0),
        (Fraction("9999.5"), False, 0),
    ]:
        with pytest.raises(BoundInsideCell) as cut:
            income.cells_below(bound, inclusive=inclusive)
        assert cut.value.cell == cell


def test_the_last_day_of_a_month_does_not_cut_it():
    date = Date("d", "2020-01-01", "2020-03-31", by="month")
    end_of_january = dt.date(2020, 1, 31).toordinal()
    assert date.cells_below(end_of_january, inclusive=True) == 1
    with pytest.raises(BoundInsideCell):
        date.cells_below(end_of_january, inclusive=False)


def test_a_decimal_edge_is_what_was_written_and_not_its_nearest_double():
    tenth = Binned("x", [0, 0.1, 1])
    assert tenth.edges[1] == Fraction(1, 10)
    assert tenth.values == ("[0, 0.1)", "[0.1, 1)")
    assert tenth.measures == (Fraction(1, 20), Fraction(11, 20))


def test_declared_bins_group_the_cells():
    age = Integer("age", 0, 5, bins={"group": [0, 2, 5]}, nullable=True)
    group = age.bins_by_name["group"]
    assert group.labels == ("0-1", "2-4", "5", None)
    assert group.groups == (0, 0, 1, 1, 1, 2, 3)
    state = Category("state", ["MA", "NY", "CA"], bins={"coast": {"east": ["MA", "NY"], "west": ["CA"]}})
    assert state.bins_by_name["coast"].groups == (0, 0, 1)
    day = Date("d", "2020-01-30", "2020-02-02", bins={"month": "month"})
    assert day.bins_by_name["month"].labels == ("2020-01", "2020-02")
    income = Binned("income", [0, 10, 20, 30], bins={"half": [0, 20]})
    assert income.bins_by_name["half"].labels == ("[0, 20)", "[20, 30)")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Domain([]), "at least one attribute"),
        (lambda: Domain(["age"]), "not 'age'"),
        (lambda: Domain(Boolean("a")), "list of attributes"),
        (lambda: Domain([Integer("a", 0, 10**9)]), "1,000,000,001 cells"),
        (lambda: Domain([Boolean("a"), Boolean("A")]), "Duplicate name 'A'"),
        (
            lambda: Domain([Boolean("g"), Integer("age", 0, 1, bins={"g": [0]})]),
            "Duplicate name 'g'",
        ),
        (lambda: Boolean(""), "non-empty string"),
        (lambda: Boolean("a", nullable="yes"), "True or False"),
        (lambda: Boolean("a", other=""), "non-empty label"),
        (lambda: Category("a", ["x", "y"], other="x"), "both a value"),
        (lambda: Category("a", "xy"), "list of strings"),
        (lambda: Category("a", [1, 2]), "list of strings"),
        (lambda: Category("a", []), "no categories"),
        (lambda: Category("a", ["x", "x"]), "Duplicate category 'x'"),
        (lambda: Category("a", ["x"], bins={"b": {"g": []}}), "exactly one group"),
        (lambda: Integer("a", 2, 1), "above its upper bound"),
        (lambda: Integer("a", 0, 1.5), "integers"),
        (lambda: Integer("a", 0, True), "integers"),
        (lambda: Integer("a", 0, 5, bins={"b": [1, 2]}), "increasing first values"),
        (lambda: Integer("a", 0, 5, bins={"b": [0, 9]}), "not an edge"),
        (lambda: Binned("a", [1]), "two edges"),
        (lambda: Binned("a", [1, 1]), "must increase"),
        (lambda: Binned("a", [0, float("inf")]), "finite"),
        (lambda: Binned("a", [0, float("nan")]), "finite"),
        (lambda: Binned("a", [0, Decimal("inf")]), "finite"),
        (lambda: Binned("a", [0, 10**400]), "range of a double"),
        (lambda: Date("a", "2020-02-30", "2021-01-01"), "must be dates"),
        (lambda: Date("a", "2021-01-01", "2020-01-01"), "after its end"),
        (lambda: Date("a", "2020-01-01", "2021-01-01", by="hour"), "Unknown unit of time 'hour'"),
        (
            lambda: Date("a", "2020-01-01", "2021-01-01", by="week", bins={"m": "month"}),
            "overlap two",
        ),
        (lambda: Domain([Boolean("a")]).index("b"), "Unknown attribute 'b'"),
    ],
)
def test_a_contradiction_is_refused_in_a_sentence(make, says):
    with pytest.raises(DomainError, match=says):
        make()


def test_the_widest_domain_answers_from_a_deep_stack_and_a_wider_one_is_refused():
    widest = [Category(f"c{n}", ["a", "b", "c"]) for n in range(MAX_ATTRIBUTES)]
    where = "c0 = 'a' AND c399 = 'b' OR NOT (c1 = 'c' AND c398 = 'c') OR c5 = c397"

    def compile_at(depth: int) -> Statement:
        if depth:
            return compile_at(depth - 1)
        sql = f"SELECT c9, COUNT(*) FROM t WHERE {where} GROUP BY c9"
        return compile_sql(sql, domain=Domain(widest), table="t")

    assert compile_at(100).size == 3
    with pytest.raises(DomainTooLarge, match="A domain can have 400 attributes, not 401") as refused:
        Domain([*widest, Category("more", ["a", "b"])])
    assert refused.value.hint == "Describe only the columns that will be asked for."


def test_a_domain_too_large_to_write_out_is_refused_with_its_size_and_attributes():
    domain = Domain(
        [
            Integer("zip", 0, 99_999),
            Integer("age", 0, 99),
            Category("sex", ["F", "M"]),
            Integer("w", 0, 99),
        ]
    )
    with pytest.raises(DomainTooLarge) as refused:
        domain.require_dense()
    assert "2,000,000,000 cells" in str(refused.value)
    assert "zip (100,000), age (100), w (100), sex (2)" in str(refused.value)
    Domain([Integer("a", 0, 2**27 - 1)]).require_dense()


def test_domains_are_values():
    def make():
        return Domain([Integer("age", 0, 85, bins={"g": [0, 9]}), Category("sex", ["F", "M"])])

    assert make() == make()
    assert hash(make()) == hash(make())
    assert make() != Domain([Integer("age", 0, 85), Category("sex", ["F", "M"])])
