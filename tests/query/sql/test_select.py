"""Aggregates, groups, and what HAVING, ORDER BY and LIMIT leave, against DuckDB on whole tables."""

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from sharewell import Binned, Domain, Integer
from sharewell.query.diagram import MAX_WEIGHT
from sharewell.query.sql import compile_sql
from sharewell.query.sql.aggregates import on_grid
from tests.query.sql.oracle import conditions, duckdb_with, tables, value


def answers(statement, counts) -> list:
    return [query.dot(counts) for query in statement.queries]


def numeric(domain: Domain) -> list[str]:
    return [a.name for a in domain.attributes if isinstance(a, Integer | Binned)]


@st.composite
def table_and_aggregate(draw):
    """A table, and one aggregate of each kind that is answered."""
    domain, counts = draw(tables())
    condition = conditions(domain)
    columns = st.sampled_from(["*", *domain.columns])
    forms = [
        st.just("COUNT(*)"),
        st.builds("COUNT({})".format, columns),
        st.builds("COUNT(*) FILTER (WHERE {})".format, condition),
        st.builds("SUM(CASE WHEN {} THEN {} END)".format, condition, st.integers(-3, 3)),
        st.builds(
            "AVG(CASE WHEN {} THEN 1.5 WHEN {} THEN NULL ELSE -2 END)".format, condition, condition
        ),
        st.builds("COUNT(CASE WHEN {} THEN 0 END)".format, condition),
        st.just("SUM(0.5)"),
    ]
    for name in numeric(domain):
        forms += [st.just(f"SUM({name})"), st.just(f"AVG({name})")]
        forms += [st.builds("AVG({}) FILTER (WHERE {})".format, st.just(name), condition)]
    return domain, counts, draw(st.one_of(forms)), draw(st.one_of(st.just("TRUE"), condition))


def same(ours, theirs) -> bool:
    """Where no row is left, SQL has NULL for a SUM and we have 0: adding noise needs a number."""
    if theirs is None:
        return ours is None or ours == 0
    return ours is not None and math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=1e-9)


@given(table_and_aggregate())
def test_an_aggregate_is_duckdbs_on_the_exact_counts(case):
    domain, counts, aggregate, where = case
    text = f"SELECT {aggregate} FROM people WHERE {where}"
    statement = compile_sql(text, domain)
    [(ours,)] = statement.rows(answers(statement, counts))
    with duckdb_with(domain, counts) as ask:
        [(theirs,)] = ask(text)
    assert same(ours, theirs)


def shown(domain: Domain, column: str, label):
    """A group's label as DuckDB shows the group's value."""
    named = domain.columns[column]
    return label if named.bins else value(named.attribute, named.labels.index(label))


@given(table_and_aggregate(), st.data())
def test_a_group_by_gives_duckdbs_rows_and_public_empty_ones(case, data):
    domain, counts, aggregate, where = case
    columns = data.draw(
        st.lists(st.sampled_from(list(domain.columns)), min_size=1, max_size=3, unique=True)
    )
    listed = ", ".join(columns)
    text = f"SELECT {listed}, {aggregate} FROM people WHERE {where} GROUP BY {listed}"
    statement = compile_sql(text, domain)
    with duckdb_with(domain, counts) as ask:
        theirs = {tuple(row[:-1]): row[-1] for row in ask(text)}
    rows = statement.rows(answers(statement, counts))
    ours = {tuple(map(lambda c, v: shown(domain, c, v), columns, row)): row[-1] for row in rows}
    assert len(ours) == len(rows)
    assert theirs.keys() <= ours.keys()
    for key, answer in ours.items():
        assert same(answer, theirs.get(key))


ORDERS = st.sampled_from(["", " ASC", " DESC", " NULLS FIRST", " DESC NULLS FIRST", " DESC NULLS LAST"])


@st.composite
def finished(draw):
    """A grouped statement with HAVING, ORDER BY and LIMIT, on a table where every cell has rows."""
    domain, counts = draw(tables(least=1))
    column = draw(st.sampled_from(domain.names))
    columns = list(dict.fromkeys([column, draw(st.sampled_from(domain.names))]))
    listed = ", ".join(columns)
    number = st.sampled_from(
        ["COUNT(*)", "n", "sum(1)", f"count({column})", "avg(CASE WHEN TRUE THEN 2 END)", "m"]
    )
    mean = f"AVG({numeric(domain)[0]})" if numeric(domain) else "AVG(2)"
    leaf = st.one_of(
        st.builds("{} {} {}".format, number, st.sampled_from(["<", ">=", "=", "<>"]), st.integers(0, 9)),
        st.builds("{} <= {}".format, number, number),
        st.builds(
            "{} NOT IN ({}, {})".format, number, st.integers(0, 9), st.sampled_from(["3", "NULL"])
        ),
        st.builds("{} BETWEEN {} AND {}".format, number, st.integers(0, 5), number),
        st.builds("{} IS NOT NULL".format, number),
        st.builds("{} IS NULL".format, st.sampled_from(columns)),
    )
    having = st.recursive(
        leaf,
        lambda part: st.one_of(
            st.builds("({} AND {})".format, part, part),
            st.builds("({} OR {})".format, part, part),
            st.builds("NOT ({})".format, part),
        ),
        max_leaves=4,
    )
    first = draw(st.sampled_from(["n", "2", "COUNT(*)", "m", "1", column, "SUM(1)"]))
    ties = ", ".join(f"{name}{draw(ORDERS)}" for name in columns)
    text = f"SELECT {column}, COUNT(*) AS n, {mean} AS m, {listed} FROM people GROUP BY {listed}"
    if draw(st.booleans()):
        text += f" HAVING {draw(having)}"
    text += f" ORDER BY {first}{draw(ORDERS)}, {ties}"
    if draw(st.booleans()):
        text += f" LIMIT {draw(st.integers(0, 6))}"
    return domain, counts, text


@given(finished())
def test_having_order_by_and_limit_leave_what_duckdb_leaves(case):
    domain, counts, text = case
    statement = compile_sql(text, domain)
    with duckdb_with(domain, counts) as ask:
        theirs = ask(text)
    labelled = [0, *range(3, len(statement.columns))]
    ours = []
    for row in statement.rows(answers(statement, counts)):
        values = list(row)
        for at in labelled:
            values[at] = shown(domain, statement.columns[at], row[at])
        ours.append(tuple(values))
    assert len(ours) == len(theirs)
    for mine, yours in zip(ours, theirs, strict=True):
        assert [mine[i] for i in (1, *labelled)] == [yours[i] for i in (1, *labelled)]
        assert same(mine[2], yours[2])


@given(st.lists(st.fractions(-(10**12), 10**12, max_denominator=10**12), min_size=1, max_size=8))
def test_numbers_are_kept_exactly_or_rounded_to_a_power_of_ten(numbers):
    unit, whole = on_grid(numbers)
    assert max(map(abs, whole)) <= MAX_WEIGHT
    errors = [abs(unit * weight - number) for weight, number in zip(whole, numbers, strict=True)]
    if any(errors):
        assert max(errors) <= unit / 2
        assert max(map(abs, numbers)) * 10 > unit * MAX_WEIGHT
        power = unit if unit >= 1 else 1 / unit
        assert power.denominator == 1
        assert set(str(power)) <= {"1", "0"}


def test_sums_of_numbers_with_too_many_digits_are_rounded():
    domain = Domain([Binned("income", [0, Fraction(1, 3), 10**9 + Fraction(1, 7)])])
    [query] = compile_sql("SELECT SUM(income) FROM people", domain).queries
    assert query.to_vector().tolist() == [0, 500_000_000]
