"""A PostgreSQL server that hangs, or that another process takes over, under a running server process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psycopg

from sharewell.service.ledger import open_ledger
from sharewell.service.tokens import TokenStore
from tests.service.http.servers import COUNT, write_dataset
from tests.service.http.test_serving import SERVE, address_of, process
from tests.service.waiting import comes_true

ASK = "/v1/datasets/people/ask"
#: The same server, in less of a test's time.
HASTY = f"""
from sharewell.service.http import monitoring, server
from sharewell.service.ledger import postgres
monitoring.PROBE_INTERVAL, monitoring.PROBE_SECONDS = 0.1, 0.5
server.RESPONSE_SECONDS, server.CLOSING_SECONDS = 1, 3
# The ledger's own bound would come first.
postgres.CLOSING_SECONDS = 60.0
{SERVE}"""


@contextmanager
def serving(folder: Path, url: str) -> Iterator[tuple[Any, httpx.Client]]:
    """A server process with its ledger in a database, and a client with ann's token."""
    path = write_dataset(folder, service=f'ledger = "{url}"')
    token = TokenStore(folder / "people.access.json").issue("ann", "analyst")
    headers = {"authorization": f"Bearer {token}"}
    with (
        process(path, code=HASTY) as (child, greeting),
        httpx.Client(
            base_url=address_of(greeting), headers=headers, timeout=60, trust_env=False
        ) as client,
    ):
        yield child, client


def is_ready(client: httpx.Client) -> bool:
    return client.get("/readyz").status_code == 200


def test_a_server_whose_store_hangs_is_not_ready_and_ends_when_told(tmp_path, postgres):
    with serving(tmp_path, postgres.database()) as (child, client):
        assert client.post(ASK, json={"sql": COUNT}).status_code == 200
        with postgres.hanging():
            comes_true(lambda: not is_ready(client))
            assert client.get("/readyz").json()["code"] == "ledger.unavailable"
            assert client.get("/healthz").status_code == 200
        comes_true(lambda: is_ready(client))
        with postgres.hanging():
            child.send_signal(signal.SIGTERM)
            assert child.wait(60) == 1
            assert "Closing took more than 3 seconds" in child.stderr.read()


def test_a_server_that_has_lost_its_ledger_to_another_exits_and_says_so(tmp_path, postgres):
    url = postgres.database()
    with serving(tmp_path, url) as (child, client):
        assert client.post(ASK, json={"sql": COUNT}).status_code == 200
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
            )
        with open_ledger(url, name="people", wait=120) as usurper:
            with suppress(httpx.HTTPError):
                while True:
                    assert client.post(ASK, json={"sql": COUNT}).status_code == 503
            assert child.wait(60) == 2
            assert len(usurper) > 0
        assert "in use by sharewell, process" in child.stderr.read()
