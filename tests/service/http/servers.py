"""Real servers on loopback sockets: datasets, tokens, and an httpx client for each holder."""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from sharewell.service.http.app import create_app
from sharewell.service.http.log import Log
from sharewell.service.http.server import Server, bind, make_server
from sharewell.service.http.state import AppState
from sharewell.service.registry import DatasetRegistry
from tests.service.beginning import begun

DATASET = """
[dataset]
name = "{name}"
source = "{name}.csv"
population = 1000
[budget]
epsilon = 10
error_threshold = 20
[attributes.age]
type = "integer"
low = 0
high = 19
[attributes.sex]
type = "category"
categories = ["F", "M"]
[analysts.ann]
share = "1/4"
[analysts.ben]
share = "1/4"
[mechanism]
query_budget = "{price}"
[scheduler]
name = "{scheduler}"
[service]
requests_per_second = 100000
max_queue_seconds = 600
release_every = {every}
certificate = {certificate}
{service}
"""

COUNT = "SELECT COUNT(*) FROM people WHERE age BETWEEN 3 AND 9"


def write_dataset(
    folder: Path,
    name: str = "people",
    *,
    scheduler: str = "none",
    service: str = "",
    price: str = "1/80",
    every: float = 0.002,
    certificate: bool = False,
    rows: str = "3,F\n4,M\n5,M\n",
) -> Path:
    """A configuration with its rows, in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.csv").write_text(f"age,sex\n{rows}")
    path = folder / f"{name}.toml"
    path.write_text(
        DATASET.format(
            name=name,
            scheduler=scheduler,
            service=service,
            price=price,
            every=every,
            # It is kept in a process of its own, which takes a while to start.
            certificate=str(certificate).lower(),
        )
    )
    return begun(path)


class Running:
    """A server in a thread: where it is, and what it logs."""

    def __init__(self, server: Server, registry: DatasetRegistry, url: str, log: io.BytesIO) -> None:
        self.server = server
        self.registry = registry
        self.url = url
        self.state: AppState = server.config.app.state.sharewell  # type: ignore[union-attr]
        self._log = log
        self._clients: list[httpx.Client] = []

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def log(self) -> str:
        """All that was logged so far."""
        return self._log.getvalue().decode()

    @property
    def log_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.splitlines()]

    def token(self, name: str, role: Any = "analyst", dataset: str = "people") -> str:
        return self.registry.datasets[dataset].tokens.issue(name, role)

    def client(self, token: str | None = None, **options: Any) -> httpx.Client:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        # Nothing here speaks TLS, and reading all certificates of the system takes a while.
        options = {"timeout": 120, "trust_env": False, "verify": False, **options}
        client = httpx.Client(base_url=self.url, headers=headers, **options)
        self._clients.append(client)
        return client

    def analyst(self, name: str = "ann", dataset: str = "people") -> Principal:
        return Principal(self.client(self.token(name, dataset=dataset)), dataset)

    def curator(self, dataset: str = "people") -> Principal:
        return Principal(self.client(self.token("curator", "curator", dataset)), dataset)

    def close_clients(self) -> None:
        for client in self._clients:
            client.close()


class Principal:
    """Somebody with a token, at one dataset."""

    def __init__(self, client: httpx.Client, dataset: str) -> None:
        self.client = client
        self.path = f"/v1/datasets/{dataset}"

    def get(self, path: str = "", **options: Any) -> httpx.Response:
        return self.client.get(f"{self.path}{path}", **options)

    def post(self, path: str, json: Any = None, **options: Any) -> httpx.Response:
        return self.client.post(f"{self.path}{path}", json=json, **options)

    def delete(self, path: str, **options: Any) -> httpx.Response:
        return self.client.delete(f"{self.path}{path}", **options)

    def ask(self, sql: str = COUNT, **also: Any) -> httpx.Response:
        return self.post("/ask", {"sql": sql, **also})


@contextmanager
def running(
    *paths: Path,
    open_registry: Callable[[], DatasetRegistry] | None = None,
    bound: Callable[[socket.socket], object] = lambda listener: None,
    port: int = 0,
    **options: Any,
) -> Iterator[Running]:
    """Serve files for a while."""
    opened: list[DatasetRegistry] = []
    is_open = threading.Event()

    def note(registry: DatasetRegistry) -> None:
        opened.append(registry)
        is_open.set()

    log = io.BytesIO()
    app = create_app(
        open_registry or (lambda: DatasetRegistry.open(paths)),
        on_open=note,
        **{"log": Log(log), **options},
    )
    server = make_server(app)
    listener = bind("127.0.0.1", port)

    def run() -> None:
        try:
            server.run(sockets=[listener])
        finally:
            is_open.set()

    thread = threading.Thread(target=run)
    thread.start()
    bound(listener)
    try:
        assert is_open.wait(120)
        if not opened:
            raise app.state.sharewell.failure or RuntimeError("the server ended before it was open")
        found = Running(server, opened[0], f"http://127.0.0.1:{listener.getsockname()[1]}", log)
        try:
            yield found
        finally:
            found.close_clients()
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def problem(reply: httpx.Response, status: int, code: str) -> Mapping[str, Any]:
    """The problem of a reply, which must have the one shape."""
    assert (reply.status_code, reply.headers["content-type"]) == (status, "application/json"), reply.text
    found = reply.json()
    assert set(found) == {"code", "message", "hint", "where", "suggestion", "request_id"}
    assert found["code"] == code, found
    assert found["message"].endswith((".", "?"))
    assert found["request_id"] == reply.headers["x-request-id"]
    return found
