"""One PostgreSQL server for the tests of verification."""

from collections.abc import Iterator

import pytest

from tests.service.ledger.postgres_server import PostgresServer


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.remove()
