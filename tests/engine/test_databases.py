"""Every database passes the one suite for engines, and what goes wrong there gets a sentence."""

import datetime as dt
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import clickhouse_connect
import psycopg
import pyarrow as pa
import pytest

from sharewell import Category, Domain, Integer
from sharewell.engine.clickhouse import SETTINGS
from sharewell.engine.inspection import inspect_rows
from sharewell.engine.postgres import Postgres
from sharewell.engine.sources import open_source
from sharewell.engine.vectorize import cell_counts, vectorize
from sharewell.errors import SourceError
from tests.engine.check_engine import (
    check_attributes_together,
    check_engine,
    check_in_place_equals_copied,
    check_many_labels,
)
from tests.engine.clickhouse_server import PASSWORD, clickhouse_server
from tests.service.ledger.postgres_server import PostgresServer

AGE = Domain([Integer("age", 0, 3)])
CANARY = "CANARY-4711"

#: How Arrow's types are called in PostgreSQL and in ClickHouse.
TYPES = {
    pa.int64(): ("bigint", "Int64"),
    pa.int8(): ("smallint", "Int8"),
    pa.float64(): ("double precision", "Float64"),
    pa.float32(): ("real", "Float32"),
    pa.string(): ("text", "LowCardinality(Nullable(String))"),
    pa.bool_(): ("boolean", "Bool"),
    pa.date32(): ("date", "Date32"),
    pa.timestamp("us"): ("timestamp", "DateTime64(6)"),
    pa.timestamp("us", "UTC"): ("timestamptz", "DateTime64(6, 'Asia/Tokyo')"),
}


def rows_of(table: pa.Table) -> list[list[Any]]:
    return [list(row.values()) for row in table.to_pylist()]


def fill(address: str, table: pa.Table) -> str:
    """Fill `people` of a PostgreSQL database."""
    columns = ", ".join(f'"{field.name}" {TYPES[field.type][0]}' for field in table.schema)
    with psycopg.connect(address) as connection:
        connection.execute("DROP TABLE IF EXISTS people")
        connection.execute(f"CREATE TABLE people ({columns})")
        with connection.cursor().copy("COPY people FROM STDIN") as copy:
            for row in rows_of(table):
                copy.write_row(row)
    return address


def test_postgresql_passes_the_common_suite(postgres):
    address = postgres.database()
    check_engine(lambda table: fill(address, table))


def test_sqlite_passes_the_common_suite(tmp_path):
    def make(table: pa.Table) -> Path:
        path = tmp_path / "people.sqlite"
        path.unlink(missing_ok=True)
        with sqlite3.connect(path) as connection:
            # Its types are not enforced, and so not believed.
            connection.execute("CREATE TABLE people (" + ", ".join(table.column_names) + ")")
            places = ", ".join("?" * table.num_columns)
            rows = [
                [each.isoformat() if isinstance(each, dt.date) else each for each in row]
                for row in rows_of(table)
            ]
            connection.executemany(f"INSERT INTO people VALUES ({places})", rows)
        connection.close()
        return path

    check_engine(make, typed=False)


def fill_clickhouse(client: Any, table: pa.Table) -> None:
    """Fill `people` of the database in this process."""
    kinds = {field.name: TYPES[field.type][1] for field in table.schema}
    columns = ", ".join(
        f"`{name}` {kind if 'Nullable' in kind else f'Nullable({kind})'}" for name, kind in kinds.items()
    )
    client.command("DROP TABLE IF EXISTS people")
    client.command(f"CREATE TABLE people ({columns}) ENGINE = Memory")
    if table.num_rows:
        client.insert("people", rows_of(table), column_names=table.column_names)


@pytest.fixture
def chdb() -> Iterator[Any]:
    client = clickhouse_connect.get_client(dsn="chdb://")
    yield client
    client.close()


def test_clickhouse_passes_the_common_suite(chdb):
    def make(table: pa.Table) -> str:
        fill_clickhouse(chdb, table)
        return "chdb://"

    check_engine(make)


def test_clickhouse_counts_over_http_with_all_settings(chdb, monkeypatch):
    monkeypatch.setenv("CLICKHOUSE_PASSWORD", PASSWORD)
    with clickhouse_server() as server:

        def make(table: pa.Table) -> str:
            fill_clickhouse(chdb, table)
            return server.address

        check_attributes_together(make)
        check_in_place_equals_copied(make)
        check_many_labels(make)
        assert {key: str(value) for key, value in SETTINGS.items()}.items() <= server.settings.items()


def test_what_goes_wrong_with_a_clickhouse_server_is_a_sentence(chdb, monkeypatch):
    fill_clickhouse(chdb, pa.table({"age": [1]}))
    with clickhouse_server() as server:
        monkeypatch.setenv("CLICKHOUSE_PASSWORD", CANARY)
        assert "Cannot connect" in refusal(server.address).message
        monkeypatch.setenv("CLICKHOUSE_PASSWORD", PASSWORD)
        server.fixed = {"join_use_nulls"}
        assert "change settings" in refusal(server.address).message
        server.fixed = set()
        assert "no table 'others'" in refusal(server.address, table="others").message
        engine = open_source(server.address, ["age"], table="people", timeout=120)
        chdb.command("DROP TABLE people")
        with pytest.raises(SourceError, match="Cannot read the table people"):
            engine.fetch(cell_counts(AGE, engine))
        engine.close()
        fill_clickhouse(chdb, pa.table({"age": [1]}))
        engine = open_source(server.address, ["age"], table="people", timeout=120)
        engine.timeout = 0.5  # type: ignore[attr-defined]
        server.going.clear()
        with pytest.raises(SourceError, match="Cannot read the table people"):
            engine.fetch(cell_counts(AGE, engine))
        server.going.set()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:FutureWarning", "ignore:.*:DeprecationWarning")
def test_spark_passes_the_common_suite(spark):
    def make(table: pa.Table) -> str:
        spark.createDataFrame(table).createOrReplaceTempView("people")
        return "local[2]"

    check_engine(make)
    with pytest.raises(SourceError, match="Spark has no table 'nothing'"):
        vectorize("local[2]", AGE, table="nothing")


def test_spark_connect_counts_as_spark_does(spark, tmp_path):
    service = getattr(spark._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    address = f"sc://127.0.0.1:{getattr(service, 'MODULE$').localPort()}"
    command = [sys.executable, "-m", "tests.engine.spark_client", address, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_strict_tables_of_sqlite_keep_their_types(tmp_path):
    path = tmp_path / "people.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE people (age INTEGER, fee REAL, name TEXT COLLATE NOCASE) STRICT"
        )
        connection.executemany(
            "INSERT INTO people VALUES (?, ?, ?)", [(1, 0.5, "a"), (3, None, "A"), (None, 2.5, "b")]
        )
    connection.close()
    assert vectorize(path, AGE).counts.tolist() == [0, 1, 0, 1]
    assert vectorize(path, Domain([Category("name", ["a", "A"])])).counts.tolist() == [1, 1]
    assert vectorize(path, Domain([Category("name", ["a", "A"])]), "name").counts.tolist() == [1, 1]
    with pytest.raises(SourceError, match="large ids may be equal"):
        vectorize(path, Domain([Integer("fee", 0, 9)]), "fee")


def test_text_of_sqlite_that_is_not_utf_8_is_undeclared(tmp_path):
    path = tmp_path / "people.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (age, name)")
        connection.execute(
            "INSERT INTO people VALUES ('1', 'a'), (CAST(x'ff31' AS TEXT), x'ff'), (2, 'b')"
        )
        connection.execute("INSERT INTO people VALUES (1, CAST(x'ff' AS TEXT))")
    connection.close()
    assert vectorize(path, AGE).counts.tolist() == [0, 2, 1, 0]
    assert vectorize(path, AGE, "name").counts.tolist() == [0, 2, 1, 0]
    engine = open_source(path, ["age"])
    assert inspect_rows(AGE, engine).columns[0].undeclared == (("\ufffd1", 1),)
    engine.close()


def test_a_long_text_does_not_stall_a_conversion(tmp_path):
    """A form that matches digits in two ways took a minute for this row."""
    path = tmp_path / "people.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (age)")
        connection.execute("INSERT INTO people VALUES ('1'), (?)", ["1" * 50_000 + "x"])
    connection.close()
    began = time.process_time()
    assert vectorize(path, AGE).counts.tolist() == [0, 1, 0, 0]
    assert time.process_time() - began < 10


def test_text_of_every_type_of_postgresql_is_in_one_cell(postgres):
    address = postgres.database()
    with psycopg.connect(address) as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('MA', 'ma')")
        connection.execute(
            "CREATE TABLE people (state varchar(9), padded char(4), mood mood, n numeric)"
        )
        connection.execute(
            "INSERT INTO people VALUES ('Ma', 'MA', 'ma', 1), ('MA', 'ma', 'MA', 1e400),"
            " ('ma', 'Ma', 'MA', 1e-400), (NULL, NULL, NULL, 'NaN')"
        )
    for column, counts in (("state", [1, 1]), ("padded", [1, 1]), ("mood", [2, 1])):
        domain = Domain([Category(column, ["MA", "ma"])])
        assert vectorize(address, domain, table="people").counts.tolist() == counts, column
        once = vectorize(address, domain, column, table="people").counts.tolist()
        assert once == [1, 1], column
    whole = Domain([Integer("n", 0, 1, nullable=True, other="others")])
    assert vectorize(address, whole, table="people").counts.tolist() == [1, 1, 1, 1]


def test_text_that_a_collation_takes_for_equal_is_in_one_cell(postgres):
    address = postgres.database()
    with psycopg.connect(address) as connection:
        columns = ["padded char(4)"]
        extensions = connection.execute("SELECT name FROM pg_available_extensions").fetchall()
        if ("citext",) in extensions:
            connection.execute("CREATE EXTENSION citext")
            columns.append("folded citext")
        # Not every build has ICU.
        with suppress(psycopg.errors.FeatureNotSupported), connection.transaction():
            connection.execute(
                "CREATE COLLATION loose"
                " (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
            )
            columns.append("loose text COLLATE loose")
        connection.execute(f"CREATE TABLE people ({', '.join(columns)})")
        places = ", ".join(["%s"] * len(columns))
        for text in ("MA", "ma", "Ma", "má"):
            connection.execute(f"INSERT INTO people VALUES ({places})", [text] * len(columns))
    for column in columns:
        name = column.split()[0]
        domain = Domain([Category(name, ["MA", "ma", "má"], other="others")])
        for unit in (None, name):
            found = vectorize(address, domain, unit, table="people").counts.tolist()
            assert found == [1, 1, 1, 1], column


def test_the_result_has_no_more_rows_than_cells(postgres):
    address = fill(postgres.database(), pa.table({"age": [0, 1, 1, 3, 3, 3, 9]}))
    engine = open_source(address, ["age"], table="people")
    found = engine.fetch(cell_counts(AGE, engine))
    assert sorted(zip(found["code_0"].tolist(), found["count"].tolist(), strict=True)) == [
        (0, 1),
        (1, 2),
        (3, 3),
    ]
    engine.close()


def refusal(source: str, domain: Domain = AGE, **options: Any) -> SourceError:
    with pytest.raises(SourceError) as caught:
        vectorize(source, domain, **{"table": "people"} | options)
    assert CANARY not in f"{caught.value} {caught.value.hint}"
    assert caught.value.__context__ is None
    return caught.value


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://ann:{CANARY}@host/db",
        f"postgresql://ann@host/db?password={CANARY}",
        f"clickhouse://ann:{CANARY}@host/db",
    ],
)
def test_a_password_in_an_address_is_refused(address):
    error = refusal(address)
    assert error.message == "The source's address has a password."
    assert "Remove it" in error.hint


def test_what_is_wrong_with_a_database_gets_a_sentence(postgres):
    address = fill(postgres.database(), pa.table({"age": [1], "name": [CANARY]}))
    assert "requires `table`" in refusal(address, table=None).message
    assert "no table 'others'" in refusal(address, table="others").message
    assert "no table 'a b; c'" in refusal(address, table="a b; c").message
    assert "Unknown column 'aged'" in refusal(address, Domain([Integer("aged", 0, 3)])).message
    missing = address.replace("/ledgers_", "/nothing_")
    assert "the database does not exist" in refusal(missing).message
    assert "no server answers" in refusal("postgresql://ann@127.0.0.1:9/db").message
    with psycopg.connect(address) as connection:
        connection.execute("CREATE ROLE visitor LOGIN")
    visitor = address.replace("postgres@", "visitor@")
    assert "may not read 'people'" in refusal(visitor).message


def test_a_table_that_vanishes_is_a_sentence(postgres):
    address = fill(postgres.database(), pa.table({"age": [1]}))
    engine = open_source(address, ["age"], table="people")
    with psycopg.connect(address) as connection:
        connection.execute("DROP TABLE people")
    with pytest.raises(SourceError, match="Cannot read the table people") as caught:
        engine.fetch(cell_counts(AGE, engine))
    assert caught.value.__context__ is None
    engine.close()


def test_a_row_that_fails_is_not_quoted(postgres):
    address = fill(postgres.database(), pa.table({"age": [1], "name": [CANARY]}))
    with psycopg.connect(address) as connection:
        connection.execute("CREATE VIEW failing AS SELECT CAST(name AS int) AS age FROM people")
    assert "may quote rows" in refusal(address, table="failing").hint


def test_a_database_that_stalls_is_given_up():
    server = PostgresServer()
    try:
        address = fill(server.database(), pa.table({"age": [1]}))
        engine = open_source(address, ["age"], table="people", timeout=0.5)
        with server.hanging():
            began = time.monotonic()
            with pytest.raises(SourceError, match="Cannot read the table"):
                engine.fetch(cell_counts(AGE, engine))
            assert time.monotonic() - began < 60
            assert "does not answer" in refusal(address, timeout=0.5).message
        engine.close()
    finally:
        server.remove()


def test_the_session_of_postgresql_can_only_read(postgres):
    address = fill(postgres.database(), pa.table({"age": [1]}))
    engine = open_source(address, ["age"], table="people")
    assert isinstance(engine, Postgres)
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        engine.run("DELETE FROM people")
    assert engine.run("SELECT current_setting('TimeZone')") == [("UTC",)]
    engine.close()
