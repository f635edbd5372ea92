"""One PostgreSQL server for the tests of the service, started when the first of them needs it."""

from collections.abc import Iterator

import pytest

from tests.service.ledger.postgres_server import PostgresServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.remove()
