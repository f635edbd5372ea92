"""Person views: what one person can change, and what is refused."""

import datetime as dt
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sharewell import Binned, Category, Domain, Integer, PersonView, ViewTable, vectorize
from sharewell.engine.base import SourceColumn
from sharewell.engine.person_view import BaseTable, Compiler, compile_view
from sharewell.engine.view_text import ViewText
from sharewell.errors import SourceError

GOLDEN = Path(__file__).parent.parent / "golden" / "refused_views.sql"

VISITS = pa.schema(
    [("person", pa.string()), ("fee", pa.float64()), ("code", pa.string()), ("day", pa.date32())]
)
PATIENTS = pa.schema([("person", pa.string()), ("sex", pa.string()), ("district", pa.int64())])
DISTRICTS = pa.table({"id": [1, 1, 2], "region": ["n", "s", "s"]})

#: Accepted views of several shapes. Each outputs person, a and b.
VIEWS = [
    "SELECT v.person, p.sex AS a, COUNT(*) AS b FROM visits v JOIN patients p USING (person)"
    " GROUP BY v.person, p.sex",
    "SELECT p.person, SUM(v.fee) AS a, COUNT(v.day) AS b FROM patients p"
    " LEFT JOIN visits v ON v.person = p.person GROUP BY p.person",
    "SELECT person, ROUND(fee) AS a, RANK() OVER (PARTITION BY person ORDER BY day) AS b FROM"
    " (SELECT person, day, AVG(fee) AS fee FROM visits GROUP BY person, day) AS x",
    "WITH n AS (SELECT person, code, fee, ROW_NUMBER() OVER (PARTITION BY person ORDER BY day) AS place,"
    " LAG(fee) OVER (PARTITION BY person ORDER BY day) AS before FROM visits)"
    " SELECT person, code AS a, COALESCE(before, fee) AS b FROM n WHERE place <= 2",
    "SELECT DISTINCT p.person, d.region AS a, EXTRACT(MONTH FROM v.day) AS b FROM patients p"
    " JOIN visits v ON v.person = p.person LEFT JOIN districts d ON d.id = p.district",
    "SELECT one.person, one.code AS a, SUM(other.fee) OVER (PARTITION BY one.person) AS b"
    " FROM visits one JOIN visits other ON one.person = other.person AND one.day < other.day",
]
DOMAIN = Domain(
    [
        Category("a", ["m", "f", "x", "X", "0", "1", "2", "3"], nullable=True, other="another"),
        Binned("b", [-100, 0, 1, 2, 3, 5, 100], nullable=True, other="beyond"),
    ]
)

people = st.sampled_from(["a", "A", "a ", "b", "c", None])
visits = st.tuples(
    people,
    st.sampled_from([0.1, 0.2, 0.3, 1.0, 3.0, float("nan"), float("inf"), 1e300, None]),
    st.sampled_from(["x", "X", "x ", None]),
    st.sampled_from([dt.date(2020, 1, 1), dt.date(2020, 2, 29), dt.date(1, 1, 1), None]),
)
patients = st.tuples(people, st.sampled_from(["m", "f", None]), st.sampled_from([1, 2, 9, None]))


def table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)], schema)


def counts(view: str, visits: list[Any], patients: list[Any], most: int) -> np.ndarray:
    found = {
        "visits": ViewTable(table(visits, VISITS), unit="person"),
        "patients": ViewTable(table(patients, PATIENTS), unit="person"),
        "districts": ViewTable(DISTRICTS, public=True),
    }
    tables = {name: each for name, each in found.items() if re.search(rf"\b{name}\b", view)}
    made = vectorize(PersonView(view, tables), DOMAIN, "person", max_rows_per_person=most)
    return made.counts


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(VIEWS),
    st.lists(visits, max_size=12),
    st.lists(patients, max_size=7),
    st.sampled_from(["a", "A", "a ", "b"]),
    st.sampled_from([1, 3]),
)
def test_one_person_changes_one_cell_by_one(view, visits, patients, person, most):
    """Or, where several rows of a person are counted, cells by so many together."""
    before = counts(view, visits, patients, most)
    after = counts(
        view, [v for v in visits if v[0] != person], [p for p in patients if p[0] != person], most
    )
    assert (before >= after).all()
    assert (before - after).sum() <= most


def columns_of(**types: str) -> dict[str, SourceColumn]:
    return {
        column: SourceColumn(column, exp.DataType.build(kind), exp.column(column))
        for column, kind in types.items()
    }


def base_tables() -> dict[str, BaseTable]:
    columns = {
        "visits": columns_of(
            person="text", fee="double", code="text", day="date", seen="timestamp", paid="boolean"
        ),
        "patients": columns_of(person="text", sex="text", district="bigint", number="bigint"),
        "districts": columns_of(id="bigint", region="text", person="text"),
        "numbers": columns_of(person="bigint", fee="double"),
    }
    return {
        name: BaseTable(exp.to_table(name), each, None if name == "districts" else "person")
        for name, each in columns.items()
    }


def compile_text(view: str, unit: str = "person") -> str:
    return compile_view(ViewText.parse(view), base_tables(), unit, "duckdb").tree.sql("duckdb")


def test_the_views_of_the_property_test_are_accepted():
    for view in VIEWS:
        assert compile_text(view).startswith("(SELECT")


def golden_cases() -> list[tuple[str, str]]:
    blocks = re.split(r"\n\n+", GOLDEN.read_text(encoding="utf-8").strip())
    cases = []
    for block in blocks:
        lines = block.split("\n")
        view = "\n".join(line for line in lines if not line.startswith("--"))
        if view:
            reason = "\n".join(line[4:] for line in lines if line.startswith("--> "))
            cases.append((view, reason))
    return cases


@pytest.mark.parametrize(("view", "reason"), golden_cases())
def test_adversarial_views_are_refused_with_place_and_reason(view, reason):
    with pytest.raises(SourceError) as caught:
        compile_text(view)
    assert f"{caught.value.message} ({caught.value.where})\n{caught.value.hint}" == reason


def test_at_least_forty_views_are_refused():
    assert len(golden_cases()) >= 40


def test_without_the_unit_in_a_join_one_person_changes_several_cells(monkeypatch):
    """The property test would fail: this is the view that it would find."""
    view = (
        "SELECT p.person, p.sex AS a, COUNT(*) AS b FROM patients p"
        " JOIN visits v ON v.code = p.sex GROUP BY p.person, p.sex"
    )
    visits = [("a", 1.0, "m", None), ("b", 1.0, "m", None)]
    patients = [(person, "m", 1) for person in "abcdef"]
    with pytest.raises(SourceError, match="not joined on the unit"):
        counts(view, visits, patients, 1)
    monkeypatch.setattr(Compiler, "_joins_units", lambda *_: True)
    before = counts(view, visits, patients, 1)
    after = counts(view, visits[1:], patients[1:], 1)
    assert abs(before - after).sum() > 5


def test_sums_do_not_depend_on_the_order_of_rows():
    """In floating point, 0.1 + 0.2 + 0.3 is on the other side of an edge than 0.3 + 0.2 + 0.1."""
    view = "SELECT person, SUM(fee) AS a FROM visits GROUP BY person"
    domain = Domain([Binned("a", [0, 0.6, 1])])
    for order in ([0.1, 0.2, 0.3], [0.3, 0.2, 0.1]):
        frame = pandas.DataFrame({"person": ["ann"] * 3, "fee": order})
        found = vectorize(
            PersonView(view, {"visits": ViewTable(frame, unit="person")}), domain, "person"
        )
        assert found.counts.tolist() == [0, 1]


def test_ties_of_a_window_do_not_depend_on_the_order_of_rows():
    view = (
        "SELECT person, code FROM (SELECT person, code, ROW_NUMBER() OVER (PARTITION BY person"
        " ORDER BY fee) AS place FROM visits) AS x WHERE place = 1"
    )
    domain = Domain([Category("code", ["x", "y"])])
    for codes in (["x", "y"], ["y", "x"]):
        frame = pandas.DataFrame({"person": ["ann"] * 2, "fee": [1.0, 1.0], "code": codes})
        found = vectorize(
            PersonView(view, {"visits": ViewTable(frame, unit="person")}), domain, "person"
        )
        assert found.counts.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({}, "The view has no tables"),
        ({"visits": ViewTable(pandas.DataFrame({"person": ["a"]}))}, "needs either `unit` or `public"),
        (
            {"visits": ViewTable(pandas.DataFrame({"id": ["a"]}), unit="person")},
            "Unknown column 'person'",
        ),
        (
            {"others": ViewTable(pandas.DataFrame({"id": ["a"]}), unit="id")},
            "Unknown table 'visits'",
        ),
        ({"visits": ViewTable(pandas.DataFrame({"person": [0.5]}), unit="person")}, "large ids may be"),
        ({"visits": ViewTable("nothing.csv", unit="person")}, "'nothing.csv' does not exist"),
        (
            {
                "visits": ViewTable("clinic.duckdb", unit="person"),
                "open": ViewTable(Path("./clinic.duckdb"), public=True, table="main.Visits"),
            },
            "'visits' and 'open' are one table, with different units",
        ),
        (
            {
                "visits": ViewTable("visits.csv", unit="person"),
                "doctors": ViewTable("./visits.csv", unit="doctor"),
            },
            "'visits' and 'doctors' are one table, with different units",
        ),
    ],
)
def test_bad_tables_get_a_sentence(tables, message):
    view = PersonView("SELECT person, COUNT(*) AS n FROM visits GROUP BY person", tables)
    with pytest.raises(SourceError, match=re.escape(message)):
        vectorize(view, Domain([Integer("n", 0, 3)]), "person")


def test_tables_of_duckdb_databases_and_files_are_joined(tmp_path):
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 'ann' AS person, 3 AS fee")
        connection.execute("CREATE VIEW seen AS SELECT * FROM visits")
    (tmp_path / "patients.csv").write_text("Person,sex\nann,f\nbob,m\n")
    text = (
        "SELECT p.PERSON, p.sex, COUNT(v.fee) AS n FROM patients p LEFT JOIN visits v"
        " ON v.person = p.Person GROUP BY p.person, p.sex"
    )
    domain = Domain([Category("sex", ["f", "m"]), Integer("n", 0, 1)])
    patients = ViewTable(tmp_path / "patients.csv", unit="person")
    for table, message in ((None, ""), ("seen", "is a view of the database"), ("no", "no table 'no'")):
        tables = {"patients": patients, "visits": ViewTable(path, unit="person", table=table)}
        if message:
            with pytest.raises(SourceError, match=message):
                vectorize(PersonView(text, tables), domain, "person")
        else:
            counted = vectorize(PersonView(text, tables), domain, "person").counts
            assert counted.tolist() == [0, 1, 1, 0]


def test_a_view_has_the_declared_columns_and_unit():
    frame = ViewTable(pandas.DataFrame({"person": ["a", "a", "b"]}), unit="person")
    view = PersonView("SELECT person, COUNT(*) AS n FROM visits GROUP BY person", {"visits": frame})
    assert vectorize(view, Domain([Integer("n", 0, 3)]), "person").counts.tolist() == [0, 1, 1, 0]
    with pytest.raises(SourceError, match="The view has no column 'm'"):
        vectorize(view, Domain([Integer("m", 0, 3)]), "person")
    with pytest.raises(SourceError, match="does not output the privacy unit 'id'"):
        vectorize(view, Domain([Integer("n", 0, 3)]), "id")
    with pytest.raises(SourceError, match="requires `privacy_unit`"):
        vectorize(view, Domain([Integer("n", 0, 3)]))
