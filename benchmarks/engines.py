"""Counting where the rows are: PostgreSQL and Spark, against their own GROUP BY of the same bins.

SHAREWELL_BENCH_ROWS scales the tables: by default 5 million rows in PostgreSQL and 20 million in Spark.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.ratio import Ratio, best_of
from sharewell import Binned, Category, Domain, Integer, vectorize
from tests.service.ledger.postgres_server import PostgresServer

SCALE = float(os.environ.get("SHAREWELL_BENCH_ROWS", "1"))
STATES = [f"S{at:02}" for at in range(50)]
DOMAIN = Domain(
    [Integer("age", 0, 99), Category("state", STATES), Binned("income", range(0, 100_001, 10_000))]
)
#: What an analyst of the engine would write for the same bins.
THEIRS = """
SELECT age, state, CAST(FLOOR(income / 10000) AS INT) AS bin, COUNT(*) FROM people
WHERE age BETWEEN 0 AND 99 AND income >= 0 AND income < 100000 GROUP BY age, state, bin
"""


def run() -> list[Ratio]:
    return [_postgres(int(5_000_000 * SCALE)), _spark(int(20_000_000 * SCALE))]


def _postgres(rows: int) -> Ratio:
    server = PostgresServer(on_disk=True)
    try:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(
                "CREATE UNLOGGED TABLE people AS SELECT (random() * 99)::int AS age,"
                " 'S' || lpad((random() * 49)::int::text, 2, '0') AS state, random() * 100000 AS income"
                f" FROM generate_series(1, {rows})"
            )
            connection.execute("VACUUM ANALYZE people")
            connection.execute("SET timezone = 'UTC'")
            ours, theirs = best_of(
                2,
                lambda: vectorize(server.url, DOMAIN, table="people"),
                lambda: connection.execute(THEIRS).fetchall(),
            )
    finally:
        server.remove()
    return Ratio(f"PostgreSQL, {rows:,} rows", ours, "its GROUP BY", theirs, target=1.3)


def _spark(rows: int) -> Ratio:
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.master("local[2]")
    for key, value in {"ui.enabled": "false", "driver.memory": "3g", "log.level": "ERROR"}.items():
        builder = builder.config(f"spark.{key}", value)
    session = builder.getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people"
        session.sql(
            "SELECT CAST(rand(1) * 99 AS INT) AS age,"
            " concat('S', lpad(CAST(CAST(rand(2) * 49 AS INT) AS STRING), 2, '0')) AS state,"
            f" rand(3) * 100000 AS income FROM range({rows})"
        ).write.parquet(str(path))
        session.read.parquet(str(path)).createOrReplaceTempView("people")
        ours, theirs = best_of(
            2,
            lambda: vectorize("local[2]", DOMAIN, table="people"),
            lambda: session.sql(THEIRS).toArrow(),
        )
    session.stop()
    return Ratio(f"Spark, {rows:,} rows", ours, "its GROUP BY", theirs, target=1.3)
