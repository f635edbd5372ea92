"""Durable appends against bare commits of the same store, and how fast a long ledger is read."""

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import psycopg

from benchmarks.ratio import Ratio, best_of
from sharewell.privacy.ledger import Charged, Event, Released
from sharewell.service.ledger import DurableLedger, open_ledger
from tests.service.ledger.postgres_server import PostgresServer, postgres_ledger

ALONE = 200
LONG = 100_000

#: What a paid question leaves behind: the charge for one range of ages, and the noisy count.
CHARGED = Charged(
    {"ann": Fraction(1, 200)},
    {
        "measure": {
            "kind": "parallel",
            "queries": [{"scale": "1", "nodes": [[[[[0, 20], [1, 10], [0, 56]], 0]]]}],
        },
        "scales": [[(200.0).hex(), 1]],
    },
)
PAIR: tuple[Event, ...] = (CHARGED, Released(0, (1234,)))

TABLE = "CREATE TABLE bare (number INTEGER PRIMARY KEY, body TEXT)"


def run() -> list[Ratio]:
    with tempfile.TemporaryDirectory() as folder:
        rows = in_sqlite(Path(folder))
    server = PostgresServer(on_disk=True)
    try:
        return rows + in_postgres(server.database())
    finally:
        server.remove()


def in_sqlite(folder: Path) -> list[Ratio]:
    def bare() -> None:
        for number in range(ALONE):
            connection.execute("INSERT INTO bare (body) VALUES (?)", (f"body {number}",))

    with (
        closing(sqlite3.connect(folder / "bare.sqlite", isolation_level=None)) as connection,
        open_ledger(folder / "ledger.sqlite", create=True) as ledger,
    ):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(TABLE)
        return compared("SQLite", ledger, bare)


def in_postgres(url: str) -> list[Ratio]:
    def bare() -> None:
        for number in range(ALONE):
            connection.execute("INSERT INTO bare VALUES (DEFAULT, %s)", (f"body {number}",))

    with psycopg.connect(url, autocommit=True) as connection, postgres_ledger(url) as ledger:
        connection.execute(TABLE.replace("INTEGER PRIMARY KEY", "serial PRIMARY KEY"))
        return compared("PostgreSQL", ledger, bare)


def compared(store: str, ledger: DurableLedger, bare: Callable[[], None]) -> list[Ratio]:
    """One append at a time, and reading, for one store."""

    def alone() -> None:
        for _ in range(ALONE):
            ledger.append(CHARGED)

    one, commits = best_of(3, alone, bare)
    while ledger.head.count < LONG:
        ledger.append_many(PAIR * 2500)
    read = best_of(2, lambda: sum(1 for _ in ledger.events()))[0]
    per_commit = commits / ALONE
    return [
        Ratio(f"{store}: append, one thread", one / ALONE, "its bare commit", per_commit, target=2),
        Ratio(f"{store}: read {ledger.head.count:,} events, checked", read, "3 s", 3, target=1),
    ]
