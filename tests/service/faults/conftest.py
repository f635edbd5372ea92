"""A PostgreSQL server that these tests may stop and start as they like."""

from collections.abc import Iterator

import pytest

from tests.service.ledger.postgres_server import PostgresServer


@pytest.fixture(scope="package")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.remove()
