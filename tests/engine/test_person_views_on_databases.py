"""One person view has the same cells on every database."""

import datetime as dt
import sqlite3
from pathlib import Path
from typing import Any

import clickhouse_connect
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sharewell import Binned, Category, Domain, Integer, PersonView, ViewTable, vectorize
from sharewell.errors import SourceError

VISITS = {
    "person": ["ann", "ann", "ann", "bob", "bob", "Bob", "cem", None, "dee", "eve ", "eve"],
    "fee": [1.25, 2.5, 2.5, 9.75, None, 0.1, 7.0, 3.0, 1e300, -4.5, 0.0],
    "code": ["E11.9", "E11", "J45", "e11", None, "E1", "J45", "E11", "K52", "E110", "K52"],
    "day": [
        *(dt.date(2020, 3, 1), dt.date(2021, 3, 1), dt.date(2021, 3, 1), dt.date(2019, 12, 31)),
        *(dt.date(2020, 1, 1), None, dt.date(2022, 7, 4), dt.date(2020, 3, 1), dt.date(2021, 5, 5)),
        *(dt.date(2020, 2, 29), dt.date(2020, 2, 29)),
    ],
}
PATIENTS = {
    "person": ["ann", "bob", "Bob", "cem", "dee", "eve ", "eve", "fay"],
    "sex": ["f", "m", "m", "m", "f", "f", "f", "f"],
    "district": [1, 2, 1, 9, None, 2, 1, 1],
}
DISTRICTS = {"id": [1, 2, 3], "region": ["north", "south", "south"]}
TYPES = {
    "visits": pa.schema(
        [("person", pa.string()), ("fee", pa.float64()), ("code", pa.string()), ("day", pa.date32())]
    ),
    "patients": pa.schema([("person", pa.string()), ("sex", pa.string()), ("district", pa.int64())]),
    "districts": pa.schema([("id", pa.int64()), ("region", pa.string())]),
}
TABLES = {
    name: pa.table(data, schema=TYPES[name])
    for name, data in (("visits", VISITS), ("patients", PATIENTS), ("districts", DISTRICTS))
}

VIEW = """
WITH ordered AS (
    SELECT person, day, fee, code,
        ROW_NUMBER() OVER (PARTITION BY person ORDER BY day DESC) AS place,
        LAG(day) OVER (PARTITION BY person ORDER BY day) AS before,
        SUM(fee) OVER (PARTITION BY person) AS all_fees
    FROM visits
), latest AS (
    SELECT person, day - before AS gap, COALESCE(EXTRACT(YEAR FROM day), 0) AS year, all_fees
    FROM ordered WHERE place = 1
), counts AS (
    SELECT person, COUNT(*) AS visits, COUNT(DISTINCT code) AS codes, AVG(fee) AS mean_fee,
        COUNT(*) FILTER (WHERE code LIKE 'E11%') AS diabetic, MIN(LOWER(code)) AS first_code
    FROM visits GROUP BY person
)
SELECT p.person, p.sex, COALESCE(d.region, 'elsewhere') AS region, c.visits, c.diabetic,
    CASE WHEN l.gap IS NULL THEN 0 WHEN l.gap > 300 THEN 2 ELSE 1 END AS gap,
    l.year - 2000 AS year, ROUND(c.mean_fee * 2 / c.codes) AS half_fees,
    SUBSTRING(c.first_code, 1, 3) AS first_code
FROM patients p JOIN latest l ON p.person = l.person JOIN counts c ON c.person = p.person
LEFT JOIN districts d ON d.id = p.district
WHERE NOT (l.all_fees IS NULL AND p.sex = 'm')
"""
DOMAIN = Domain(
    [
        Category("sex", ["m", "f"]),
        Category("region", ["north", "south", "elsewhere"]),
        Integer("visits", 0, 4),
        Integer("diabetic", 0, 2),
        Integer("gap", 0, 2),
        Integer("year", 18, 22, other="unknown"),
        Binned("half_fees", [-9, 0, 1, 3, 9, 99], nullable=True),
        Category("first_code", ["e11", "j45", "k52"], other="another"),
    ]
)


def cells(source: Any, view: str = VIEW, **tables: str) -> list[tuple[int, ...]]:
    """The cells of all people."""
    declared = {
        name: ViewTable(
            source if not isinstance(source, dict) else source[name],
            unit=None if name == "districts" else "person",
            public=name == "districts",
            table=tables.get(name),
        )
        for name in TABLES
    }
    counts = vectorize(PersonView(view, declared), DOMAIN, "person").counts.reshape(DOMAIN.shape)
    return sorted(tuple(map(int, cell)) for cell in zip(*counts.nonzero(), strict=True))


@pytest.fixture(scope="module")
def expected() -> list[tuple[int, ...]]:
    found = cells(TABLES)
    assert len(found) == 7
    return found


def test_files_of_different_formats_are_joined(tmp_path, expected):
    import pyarrow.csv

    pq.write_table(TABLES["visits"], tmp_path / "visits.parquet")
    pq.write_table(TABLES["patients"], tmp_path / "patients.parquet")
    places = {name: tmp_path / f"{name}.parquet" for name in ("visits", "patients")}
    pyarrow.csv.write_csv(TABLES["districts"], tmp_path / "districts.csv")
    with pytest.raises(SourceError, match="different types: integers and text"):
        cells(places | {"districts": tmp_path / "districts.csv"})
    pq.write_table(TABLES["districts"], tmp_path / "districts.parquet")
    assert cells(places | {"districts": tmp_path / "districts.parquet"}) == expected


def test_postgresql_has_the_same_cells(postgres, expected):
    address = postgres.database()
    types = {pa.string(): "text", pa.float64(): "float8", pa.date32(): "date", pa.int64(): "bigint"}
    with psycopg.connect(address) as connection:
        for name, table in TABLES.items():
            columns = ", ".join(f"{field.name} {types[field.type]}" for field in table.schema)
            connection.execute(f"CREATE TABLE {name} ({columns})")
            with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                for row in table.to_pylist():
                    copy.write_row(list(row.values()))
        connection.execute("INSERT INTO visits VALUES ('gus', 'NaN', '', 'infinity')")
        connection.execute("CREATE VIEW seen AS SELECT * FROM visits")
    assert cells(address) == expected
    with pytest.raises(SourceError, match="'visits' is a view of the database"):
        cells(address, visits="seen")
    with pytest.raises(SourceError, match="no table 'nothing'"):
        cells(address, visits="nothing")


def test_ids_too_large_for_doubles_do_not_fail(postgres):
    """No id may make a statement fail, so decimals that are units are only compared."""
    address = postgres.database()
    with psycopg.connect(address) as connection:
        connection.execute("CREATE TABLE visits (person numeric)")
        connection.execute("INSERT INTO visits VALUES (1), (1.0), (1e400), ('NaN'), (NULL)")

    def counts(view: str, column: str = "n") -> list[int]:
        people = PersonView(view, {"visits": ViewTable(address, unit="person")})
        found: list[int] = vectorize(people, Domain([Integer(column, 0, 4)]), "person").counts.tolist()
        return found

    assert counts("SELECT person, COUNT(*) AS n FROM visits GROUP BY person") == [0, 2, 1, 0, 0]
    joined = (
        "SELECT a.person, COUNT(b.person) AS n FROM visits a LEFT JOIN visits b ON a.person = b.person"
        " GROUP BY a.person"
    )
    assert counts(joined) == [0, 2, 0, 0, 1]
    with pytest.raises(SourceError, match="This is not a number"):
        counts("SELECT person, person + 1 AS n FROM visits")
    with pytest.raises(SourceError, match="Cannot read column 'person'"):
        counts("SELECT person, 1 AS n FROM visits", "person")


def test_clickhouse_has_the_same_cells(expected):
    client = clickhouse_connect.get_client(dsn="chdb://")
    types = {pa.string(): "String", pa.float64(): "Float64", pa.date32(): "Date32", pa.int64(): "Int64"}
    for name, table in TABLES.items():
        columns = ", ".join(f"{field.name} Nullable({types[field.type]})" for field in table.schema)
        client.command(f"DROP TABLE IF EXISTS {name}")
        client.command(f"CREATE TABLE {name} ({columns}) ENGINE = Memory")
        rows = [list(row.values()) for row in table.to_pylist()]
        client.insert(name, rows, column_names=table.column_names)
    client.command("CREATE VIEW IF NOT EXISTS seen AS SELECT * FROM visits")
    # A division by NULL is infinite beneath its NULL.
    view = "SELECT person, SUM(1 / fee) AS fees FROM visits GROUP BY person"
    people = PersonView(view, {"visits": ViewTable("chdb://", unit="person")})
    known = vectorize(people, Domain([Binned("fees", [-1, 0, 1, 99], nullable=True)]), "person")
    assert known.counts.tolist() == [1, 2, 2, 2]
    assert cells("chdb://") == expected
    with pytest.raises(SourceError, match="'visits' is a view of the database"):
        cells("chdb://", visits="seen")
    client.close()


@pytest.mark.filterwarnings("ignore:.*:FutureWarning", "ignore:.*:DeprecationWarning")
def test_spark_has_the_same_cells(spark, tmp_path, expected):
    for name, table in TABLES.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    places = {name: f"parquet.`{tmp_path / name}.parquet`" for name in TABLES}
    assert cells("local[2]", **places) == expected
    spark.createDataFrame(TABLES["visits"]).createOrReplaceTempView("seen")
    # A database may have the name of a format.
    spark.sql("CREATE DATABASE json")
    spark.sql(f"CREATE VIEW json.seen AS SELECT * FROM {places['visits']}")
    for name in ("seen", "json.seen"):
        with pytest.raises(SourceError, match="'visits' is a view of the database"):
            cells("local[2]", **places | {"visits": name})
    spark.sql("DROP DATABASE json CASCADE")


def test_sqlite_has_the_same_cells(tmp_path: Path, expected):
    path = tmp_path / "clinic.sqlite"
    types = {pa.string(): "TEXT", pa.float64(): "REAL", pa.date32(): "TEXT", pa.int64(): "INTEGER"}
    with sqlite3.connect(path) as connection:
        for name, table in TABLES.items():
            columns = ", ".join(f"{field.name} {types[field.type]}" for field in table.schema)
            connection.execute(f"CREATE TABLE {name} ({columns}) STRICT")
            rows = [
                [each.isoformat() if isinstance(each, dt.date) else each for each in row.values()]
                for row in table.to_pylist()
            ]
            places = ", ".join("?" * table.num_columns)
            connection.executemany(f"INSERT INTO {name} VALUES ({places})", rows)
        connection.execute("CREATE VIEW seen AS SELECT * FROM visits")
    connection.close()
    with pytest.raises(SourceError, match="This is not a number"):
        cells(path)
    dated = "WITH dated AS (SELECT person, TRY_CAST(day AS DATE) AS day, fee, code FROM visits), "
    view = VIEW.replace("FROM visits\n)", "FROM dated\n)").replace("\nWITH ", dated)
    assert cells(path, view) == expected
    with pytest.raises(SourceError, match="'visits' is a view of the database"):
        cells(path, visits="seen")
