"""One PostgreSQL server for all tests of the ledger, started when the first of them asks for it."""

from collections.abc import Iterator

import pytest

from tests.service.ledger.postgres_server import PostgresServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.remove()
