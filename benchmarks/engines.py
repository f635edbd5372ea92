"""Counting where the rows are: PostgreSQL and Spark, against their own GROUP BY of the same bins.

What reaches us of a table is counted too: bytes on PostgreSQL's socket, and those of Spark's result.

SHAREWELL_BENCH_ROWS scales the tables: by default 5 million rows in PostgreSQL and 20 million in Spark.
"""

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import psycopg

from benchmarks.ratio import Ratio, best_of
from sharewell import Binned, Category, Domain, Integer, vectorize
from sharewell.engine.vectorize import cell_counts
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
    return [*_postgres(int(5_000_000 * SCALE)), *_spark(int(20_000_000 * SCALE))]


def _received(engine: str, rows: int, received: int, cells: int) -> Ratio:
    """What reaches us of a cell is a line of small integers, whatever the number of rows."""
    name = f"{engine}, {rows:,} rows: bytes received"
    return Ratio(name, received, "non-empty cells", cells, target=64, times=False)


@contextmanager
def _counted(server: PostgresServer) -> Iterator[tuple[str, list[int]]]:
    """Yield an address that forwards to a server, and how many bytes came from there."""
    received: list[int] = []
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(Path(folder) / server.socket.name))
        listener.listen()

        def forward(source: socket.socket, target: socket.socket, numbers: list[int]) -> None:
            with suppress(OSError):
                while part := source.recv(1 << 16):
                    numbers.append(len(part))
                    target.sendall(part)
                target.shutdown(socket.SHUT_WR)

        def serve() -> None:
            with suppress(OSError):
                while True:
                    ours, theirs = listener.accept()[0], socket.socket(socket.AF_UNIX)
                    theirs.connect(str(server.socket))
                    Thread(target=forward, args=(ours, theirs, []), daemon=True).start()
                    Thread(target=forward, args=(theirs, ours, received), daemon=True).start()

        Thread(target=serve, daemon=True).start()
        yield f"postgresql://postgres@/postgres?host={folder}", received


def _postgres(rows: int) -> Iterator[Ratio]:
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
            with _counted(server) as (address, received):
                cells = int(np.count_nonzero(vectorize(address, DOMAIN, table="people").counts))
    finally:
        server.remove()
    yield Ratio(f"PostgreSQL, {rows:,} rows", ours, "its GROUP BY", theirs, target=1.3)
    yield _received("PostgreSQL", rows, sum(received), cells)


def _spark(rows: int) -> Iterator[Ratio]:
    from pyspark.sql import SparkSession

    from sharewell.engine.spark import Spark

    builder: Any = SparkSession.builder.master("local[2]")
    for key, value in {"ui.enabled": "false", "driver.memory": "3g", "log.level": "ERROR"}.items():
        builder = builder.config(f"spark.{key}", value)
    with tempfile.TemporaryDirectory() as folder:
        session = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse").getOrCreate()
        path = Path(folder) / "people"
        session.sql(
            "SELECT CAST(rand(1) * 99 AS INT) AS age,"
            " concat('S', lpad(CAST(CAST(rand(2) * 49 AS INT) AS STRING), 2, '0')) AS state,"
            f" rand(3) * 100000 AS income FROM range({rows})"
        ).write.parquet(str(path))
        session.read.parquet(str(path)).createOrReplaceTempView("people")
        # The first rounds are slow on both sides, while Java compiles.
        ours, theirs = best_of(
            5,
            lambda: vectorize("local[2]", DOMAIN, table="people"),
            lambda: session.sql(THEIRS).toArrow(),
        )
        engine = Spark("local[2]", "people", DOMAIN.names, 600)
        found = session.sql(engine.render(cell_counts(DOMAIN, engine))).toArrow()
        engine.close()
        session.stop()
    yield Ratio(f"Spark, {rows:,} rows", ours, "its GROUP BY", theirs, target=1.3)
    yield _received("Spark", rows, found.nbytes, found.num_rows)
