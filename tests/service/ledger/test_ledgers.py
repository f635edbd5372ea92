"""The common suite, over every ledger: in memory, in a SQLite file, in a real PostgreSQL server."""

import sqlite3
import time
from contextlib import closing
from itertools import count

import psycopg
import pytest

from sharewell.privacy.ledger import MemoryLedger
from sharewell.service.ledger import DurableLedger
from sharewell.service.ledger.postgres import PostgresStore
from sharewell.service.ledger.sqlite import SqliteStore
from tests.service.ledger.check_ledger import CHECKS, DURABLE, Kind
from tests.service.ledger.postgres_server import postgres_ledger

NAMES = count()


def in_memory(_request, _opened) -> Kind:
    return Kind(MemoryLedger, lambda ledger: ledger)


def in_sqlite(request, opened) -> Kind:
    path = request.getfixturevalue("tmp_path") / "ledger.sqlite"

    def rows():
        with closing(sqlite3.connect(path)) as connection:
            found = connection.execute("SELECT number, body, hash FROM events ORDER BY number")
            return [(number, body.encode(), digest) for number, body, digest in found]

    return durable(
        lambda clock=time.time, **options: DurableLedger(
            SqliteStore(path, **{"create": True} | options), clock=clock
        ),
        opened,
        str(path),
        store=SqliteStore,
        rows=rows,
    )


def in_postgres(request, opened) -> Kind:
    url = request.getfixturevalue("postgres").shared_database()
    name = f"census {next(NAMES)}"

    def rows():
        with psycopg.connect(url) as connection:
            found = connection.execute(
                "SELECT number, body, hash FROM sharewell.events WHERE ledger = %s ORDER BY number",
                (name,),
            )
            return [(number, body.encode(), digest) for number, body, digest in found]

    return durable(
        lambda **options: postgres_ledger(url, name, **options),
        opened,
        url,
        name=name,
        store=PostgresStore,
        rows=rows,
    )


def durable(opens, opened, where, **more) -> Kind:
    def open_(**options):
        opened.append(opens(**options))
        return opened[-1]

    def reopen(ledger):
        ledger.close()
        return open_()

    return Kind(open_, reopen, where, **more)


@pytest.fixture
def kind(request):
    opened: list = []
    yield request.param(request, opened)
    for ledger in opened:
        ledger.close()


@pytest.mark.parametrize("kind", [in_memory, in_sqlite, in_postgres], indirect=True)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_ledger_passes_the_common_suite(kind, check):
    check(kind)


@pytest.mark.parametrize("kind", [in_sqlite, in_postgres], indirect=True)
@pytest.mark.parametrize("check", DURABLE, ids=lambda check: check.__name__)
def test_every_ledger_that_outlives_the_process_passes_the_suite_of_those(kind, check):
    check(kind)
