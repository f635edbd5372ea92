"""One GROUP BY turns rows into counts, and agrees with an oracle that looks at them one by one."""

import datetime as dt
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from sqlglot import exp, parse_one

from sharewell import Binned, Boolean, Category, Date, Domain, Integer
from sharewell.engine.base import Columns, SourceColumn
from sharewell.engine.vectorize import cell_counts, vectorize
from sharewell.errors import DomainTooLarge, SourceError
from tests.engine.check_engine import compare
from tests.engine.source_kinds import SOURCES
from tests.engine.strategies import Case, cases

AGE = Domain([Integer("age", 0, 3)])


@pytest.mark.parametrize("kind", SOURCES)
def test_random_rows_fall_where_the_oracle_says(kind):
    # CSV knows no types: there is no single precision, and what reads text reads numbers as written.
    def suits(case: Case) -> bool:
        types = [(a, case.rows.schema.field(a.name).type) for a in case.domain.attributes]
        return kind != "csv" or all(
            type_ == pa.string() if isinstance(a, Category | Boolean) else type_ != pa.float32()
            for a, type_ in types
        )

    @settings(max_examples=12, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
    @given(case=cases(blank_text=kind != "csv").filter(suits))
    def check(case: Case) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source = SOURCES[kind](case.rows, Path(folder))
            for unit in (None, "person"):
                compare(source, case.rows, case.domain, unit)

    check()


def test_one_person_changes_one_count_by_one():
    domain = Domain([Integer("age", 0, 9), Category("sex", ["F", "M"], other="x")])
    rows = pandas.DataFrame(
        {"id": [1, 1, 2, 3, 3], "age": [1, 7, 1, 4, 99], "sex": ["F", "M", "F", None, "F"]}
    )
    everyone = vectorize(rows, domain, "id").counts
    for person in (1, 2, 3):
        without = vectorize(rows[rows.id != person], domain, "id").counts
        assert np.abs(everyone - without).sum() == 1


def test_a_person_may_be_named_by_an_attribute_of_the_domain():
    rows = pandas.DataFrame({"age": [1, 1, 2]})
    assert vectorize(rows, AGE, "age").counts.tolist() == [0, 1, 1, 0]
    assert vectorize(rows, AGE, "AGE").counts.tolist() == [0, 1, 1, 0]


def test_rows_of_nobody_are_left_out():
    rows = pa.table({"age": [1, 2, 3], "id": [None, None, 7]})
    assert vectorize(rows, AGE, "id").counts.tolist() == [0, 0, 0, 1]


def test_ids_that_were_rounded_to_floats_are_refused():
    """One missing id makes floats of a pandas column, and large ids then merge: two people in one."""
    large = 2**53
    rows = pandas.DataFrame({"age": [1, 2, 3], "id": [large, large + 1, None]})
    with pytest.raises(SourceError, match="large ids may be equal"):
        vectorize(rows, AGE, "id")
    whole = rows.assign(id=pandas.array([large, large + 1, None], dtype="Int64"))
    assert vectorize(whole, AGE, "id").counts.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    "edges",
    [
        [i / 10 for i in range(11)],
        [i / 100 for i in range(-50, 51)],
        [i * 7.3 for i in range(30)],
        [-1 + i / 3 for i in range(20)],
        range(0, 100_001, 5000),
        range(-7, 50, 3),
        [0, 1, 10, 100, 1000, 10_000],
        [-1e-300, 0, 1e-300, 1, 1e300],
        [1e15 + i for i in range(9)],
    ],
)
def test_bins_are_exact_at_every_edge_and_on_both_sides_of_it(edges):
    attribute = Binned("x", edges)
    floats = np.array([float(edge) for edge in attribute.edges])
    numbers = np.concatenate([np.nextafter(floats, -np.inf), floats, np.nextafter(floats, np.inf)])
    rows = pa.table({"x": numbers})
    compare(rows, rows, Domain([attribute]))


@pytest.mark.parametrize("edges", [[0, 0.3, 0.7, 1.1], [0, 0.1, 0.2, 0.3, 0.4]])
def test_a_single_on_an_edge_is_on_it_although_the_edge_is_no_single(edges):
    singles = np.array(edges, dtype=np.float32)
    numbers = np.concatenate([np.nextafter(singles, np.float32(-1)), singles])
    rows = pa.table({"x": numbers})
    compare(rows, rows, Domain([Binned("x", edges)]))


def test_a_narrow_integer_far_from_the_lower_bound_does_not_overflow():
    rows = pa.table({"x": pa.array([-100, 100, 127], pa.int8())})
    counts = vectorize(rows, Domain([Integer("x", -100, 100)])).counts
    assert (counts[0], counts[200], counts.sum()) == (1, 1, 2)


def test_equally_wide_bins_are_found_by_arithmetic_and_others_by_halving():
    even, uneven = (
        statement(Domain([Binned("x", edges)]), x="DOUBLE").sql()
        for edges in (range(0, 101, 10), [0, 1, 10, 100])
    )
    assert "FLOOR(source.c0 / 10.0e0)" in even
    assert "CASE" not in even
    assert "CASE" in uneven


def test_an_edge_beyond_single_precision_takes_in_all_that_is_finite():
    numbers = [3e38, float("inf"), -3e38, -float("inf"), 0.0]
    rows = pa.table({"x": pa.array(numbers, pa.float32())})
    domain = Domain([Binned("x", [-1e300, 0, 1e300])])
    assert vectorize(rows, domain).counts.tolist() == [1, 2]


def test_a_thousand_uneven_bins_and_a_thousand_categories_are_no_trouble():
    edges = [i * i for i in range(1000)]
    labels = [f"label {i}" for i in range(1000)]
    domain = Domain([Binned("x", edges, other="x"), Category("y", labels, other="y")])
    rows = pa.table({"x": [float(e) for e in edges], "y": labels})
    counts = vectorize(rows, domain).counts.reshape(domain.shape)
    assert counts.diagonal().tolist() == [1] * 1000
    assert counts.sum() == 1000


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo", "Pacific/Kiritimati"])
def test_days_are_days_in_utc_wherever_the_session_is(zone, tmp_path):
    path = tmp_path / "moments.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT TIMESTAMPTZ '2020-01-01 23:30:00+00' AS moment,"
            " TIMESTAMP '2020-01-02 00:30:00' AS local, '2020-01-03T23:30:00-05:00' AS written,"
            f" DATE '2020-01-04' AS day) TO '{path}' (FORMAT parquet)"
        ).fetchall()
    program = (
        "from sharewell import Date, Domain; from sharewell.engine.vectorize import vectorize\n"
        "for name in ('moment', 'local', 'written', 'day'):\n"
        f"    vector = vectorize({str(path)!r}, Domain([Date(name, '2020-01-01', '2020-01-06')]))\n"
        "    print(vector.counts.tolist().index(1) + 1, end=' ')"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TZ": zone},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["1", "2", "4", "4"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_timestamps_of_every_precision_are_read(unit, zone, tmp_path):
    last = dt.datetime(2020, 1, 1, 23, 59, 59, tzinfo=dt.UTC if zone else None)
    rows = pa.table({"x": pa.array([last, None], pa.timestamp(unit, zone))})
    for source in (rows, SOURCES["parquet"](rows, tmp_path), SOURCES["polars"](rows, tmp_path)):
        vector = vectorize(source, Domain([Date("x", "2020-01-01", "2020-01-02", nullable=True)]))
        assert vector.counts.tolist() == [1, 0, 1]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_time_too_far_off_to_be_a_date_is_outside(unit):
    rows = pa.table({"x": pa.array([2**62, -(2**62), 0], pa.timestamp(unit))})
    domain = Domain([Date("x", "1970-01-01", "1970-01-01", other="other")])
    assert vectorize(rows, domain).counts.tolist() == [1, 2]


def test_infinite_dates_are_outside(tmp_path):
    path = tmp_path / "days.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(
            "CREATE TABLE days AS FROM"
            " (VALUES (DATE 'infinity'), (DATE '-infinity'), (DATE '2020-01-01')) AS days (day)"
        ).fetchall()
    for by in ("day", "week", "month", "quarter", "year"):
        domain = Domain([Date("day", "2020-01-01", "2020-01-01", by=by, other="other")])
        assert vectorize(path, domain).counts.tolist() == [1, 2]


def test_wide_integers_and_decimals_never_fail_on_a_row(tmp_path):
    path = tmp_path / "wide.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(
            "CREATE TABLE wide"
            " (a HUGEINT, b UHUGEINT, c UBIGINT, d DECIMAL(38, 37), e DECIMAL(38, 0), f DECIMAL(4, 2))"
        ).fetchall()
        connection.execute(
            "INSERT INTO wide VALUES"
            " (-170141183460469231731687303715884105728, 340282366920938463463374607431768211455,"
            f" 18446744073709551615, 9.5, {'9' * 38}, 99.99),"
            " (3, 3, 3, 3, 3, 3), (3, 3, 3, 2.5, 3, 2.5)"
        ).fetchall()
    for column, whole in zip("abcdef", [2, 2, 2, 1, 2, 1], strict=True):
        domain = Domain([Integer(column, -5, 300)])
        assert vectorize(path, domain).counts.tolist() == [
            whole if x == 3 else 0 for x in domain.attributes[0].values
        ]
        for edges in ([-(10**60), 2.75, 10**60], [0, 2.75, 3.5]):
            assert vectorize(path, Domain([Binned(column, edges)])).counts[1] >= whole
        assert vectorize(path, Domain([Category(column, ["3", "03"])])).counts.tolist() == [whole, 0]


def test_text_is_compared_byte_by_byte_whatever_the_collation(tmp_path):
    path = tmp_path / "collated.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(
            "CREATE TABLE people (id VARCHAR COLLATE NOCASE, name VARCHAR COLLATE NOCASE)"
        ).fetchall()
        connection.execute("INSERT INTO people VALUES ('x', 'a'), ('X', 'A'), ('y', 'a')").fetchall()
    domain = Domain([Category("name", ["a", "A", "b"])])
    assert vectorize(path, domain).counts.tolist() == [2, 1, 0]
    assert vectorize(path, domain, "id").counts.tolist() == [2, 1, 0]


def test_nan_in_a_parquet_file_whose_statistics_hide_it_is_missing(tmp_path):
    rows = pa.table({"x": [1.0, 2.0, float("nan"), None]})
    source = SOURCES["parquet"](rows, tmp_path)
    for attribute in (Binned("x", [0, 1, 2, 3]), Binned("x", [0, 5], nullable=True), Integer("x", 0, 5)):
        compare(source, rows, Domain([attribute]))


def test_a_domain_too_large_is_refused_before_the_source_is_opened():
    domain = Domain([Integer("a", 0, 99_999), Integer("b", 0, 99_999)])
    with pytest.raises(DomainTooLarge):
        vectorize("nowhere.csv", domain)


@pytest.mark.parametrize(
    ("type_", "attribute", "hint"),
    [
        ("DATE", Integer("x", 0, 9), "declare it as Category or Date"),
        ("INTEGER[]", Integer("x", 0, 9), "Cast it to integers, numbers or text."),
        ("BOOLEAN", Binned("x", [0, 9]), "declare it as Boolean or Category"),
        ("TIMESTAMP", Category("x", ["a"]), "declare it as Date"),
        ("BLOB", Category("x", ["a"]), "Cast it to text"),
        ("DATE", Boolean("x"), "declare it as Category or Date"),
        (
            "BIGINT",
            Date("x", "2020-01-01", "2020-01-02"),
            "declare it as Integer, Binned, Boolean or Category",
        ),
        (
            "TIME",
            Date("x", "2020-01-01", "2020-01-02"),
            "Cast it to dates, timestamps or text.",
        ),
    ],
)
def test_a_type_that_can_hold_no_value_is_refused_from_the_schema_alone(
    type_, attribute, hint, tmp_path
):
    path = tmp_path / "typed.duckdb"
    with duckdb.connect(path) as connection:
        # Reading a row of this view fails.
        connection.execute(
            f"CREATE VIEW rows AS SELECT CAST(error('a row was read') AS {type_}) AS x"
        ).fetchall()
    with pytest.raises(SourceError, match="Cannot read column 'x' of type") as refusal:
        vectorize(path, Domain([attribute]))
    assert hint in str(refusal.value)


def statement(domain: Domain, privacy_unit: str | None = None, **types: str) -> exp.Select:
    columns = {
        name: SourceColumn(name, exp.DataType.build(type_), exp.column(f"c{i}", table="source"))
        for i, (name, type_) in enumerate(types.items())
    }
    return cell_counts(domain, StatedEngine(columns), privacy_unit)


@dataclass
class StatedEngine:
    """A catalogue without an engine."""

    columns: Mapping[str, SourceColumn]
    relation: exp.Table = field(default_factory=lambda: exp.to_table("source"))
    has_enumerations: bool = False
    has_maps: bool = False
    slow_to_open: bool = False

    def fetch(self, statement: exp.Select) -> Columns:
        raise NotImplementedError

    def rows(self, statement: exp.Select) -> Sequence[Sequence[Any]]:
        raise NotImplementedError

    def version(self) -> str | None:
        raise NotImplementedError

    def cancel(self) -> None: ...

    def close(self) -> None: ...


PORTABLE = Domain(
    [
        Integer("age", 0, 85, nullable=True),
        Binned("income", [0, 1.5, 10], other="other"),
        Binned("score", range(11)),
        Category("name", ["it's", "back\\slash", 'say "hi"']),
        Boolean("member"),
        *(
            Date(f"by_{by}", "2020-01-15", "2021-03-02", by=by)
            for by in ("day", "week", "month", "quarter", "year")
        ),
    ]
)
TYPES = {
    "age": "INT",
    "income": "DOUBLE",
    "score": "DECIMAL(10, 2)",
    "name": "TEXT",
    "member": "BOOLEAN",
    "by_day": "DATE",
    "by_week": "DATE",
    "by_month": "TIMESTAMP",
    "by_quarter": "TIMESTAMPTZ",
    "by_year": "DATE",
    "person": "BIGINT",
}


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark"])
@pytest.mark.parametrize("unit", [None, "person"])
def test_the_same_statement_is_good_sql_in_every_dialect(dialect, unit):
    sql = statement(PORTABLE, unit, **TYPES).sql(dialect)
    assert "TRY_CAST" not in sql
    again = parse_one(sql, dialect=dialect).sql(dialect)
    assert again.casefold() == sql.casefold()
    labels = {
        literal.this
        for literal in parse_one(sql, dialect=dialect).find_all(exp.Literal)
        if literal.is_string
    }
    assert labels >= {"it's", "back\\slash", 'say "hi"'}


def test_text_is_converted_by_a_cast_that_cannot_fail():
    tried = statement(Domain([Integer("age", 0, 85)]), age="TEXT")
    assert "TRY_CAST(source.c0 AS DOUBLE)" in tried.sql("duckdb")
    column = SourceColumn("name", exp.DataType.build("TEXT"), exp.column("c0", table="source"))
    engine = StatedEngine({"name": column}, has_enumerations=True)
    named = cell_counts(Domain([Category("name", ["a", "b"])]), engine)
    assert "ENUM_CODE(TRY_CAST(source.c0 AS ENUM('a', 'b')))" in named.sql("duckdb")


def test_the_statement_gives_cells_and_counts_and_nothing_else():
    shown = statement(Domain([Integer("age", 0, 85), Boolean("member")]), age="INT", member="BOOLEAN")
    assert shown.named_selects == ["code_0", "code_1", "count"]
    assert shown.sql() == (
        "SELECT code_0, code_1, COUNT(*) AS count FROM ("
        "SELECT CAST(CAST(source.c0 AS INT) - 0 AS TINYINT) AS code_0, "
        "CAST(CASE WHEN source.c1 THEN 1 ELSE 0 END AS TINYINT) AS code_1 "
        "FROM source WHERE source.c0 BETWEEN 0 AND 85 AND NOT source.c1 IS NULL) AS people "
        "GROUP BY code_0, code_1"
    )
