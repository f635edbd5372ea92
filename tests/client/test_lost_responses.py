"""A real server behind a proxy that loses responses: a question is charged once, its key is named."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from fractions import Fraction

import pytest

from sharewell.client import connect
from sharewell.errors import SharewellError
from tests.client.twins import KINDS, twin
from tests.service.http.servers import COUNT, running, write_dataset

FAILED = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class FaultyProxy:
    """Forwards each connection's request; for the first questions, it loses the server's response."""

    def __init__(self, port: int, fault: str, times: int) -> None:
        self.lost = 0
        self._server = ("127.0.0.1", port)
        self._fault = fault
        self._times = times
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def serve(self) -> None:
        """Handle one connection after another, until the listener is shut down."""
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with client, suppress(OSError):
                    self._forward(client)

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _forward(self, client: socket.socket) -> None:
        client.settimeout(120)
        while request := _read_message(client):
            with closing(socket.create_connection(self._server, timeout=120)) as server:
                server.sendall(request)
                if b"/ask " in request.partition(b"\r\n")[0] and self.lost < self._times:
                    self.lost += 1
                    if self._fault == "half-closed":
                        server.shutdown(socket.SHUT_WR)
                    # What the server says, or that it has closed the connection: it has the question.
                    server.recv(1 << 16)
                    client.sendall(FAILED if self._fault == "failed" else b"")
                    return
                client.sendall(_read_message(server))


def _read_message(connection: socket.socket) -> bytes:
    """A request or a response; empty at the end of the connection."""
    raw = b""
    while b"\r\n\r\n" not in raw:
        part = connection.recv(1 << 16)
        if not part:
            return b""
        raw += part
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    missing = int(lines.get(b"content-length", 0)) - len(body)
    while missing > 0:
        part = connection.recv(missing)
        raw, missing = raw + part, missing - len(part)
    return raw


@contextmanager
def proxied(server, fault: str, times: int) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(server.port, fault, times)
    thread = threading.Thread(target=proxy.serve)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.stop()
        thread.join()


@pytest.fixture
def server(tmp_path):
    with running(write_dataset(tmp_path)) as found:
        yield found


def charged(server) -> tuple[int, Fraction]:
    """How many of ann's questions are stored, and what they cost."""
    state = server.registry.datasets["people"]._worker.state
    return state.history.asked["ann"], state.curator.spent("ann")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", ["half-closed", "lost", "failed"])
def test_a_question_whose_response_is_lost_is_answered_and_charged_once(server, fault, kind):
    spent = charged(server)[1]
    token = server.token("ann")
    with proxied(server, fault, 2) as proxy, twin(kind, proxy.url, token) as client:
        cost = client.do(lambda s: s.ask(COUNT)).cost
        assert proxy.lost == 2
    assert cost > 0
    assert charged(server) == (1, spent + cost)


@pytest.mark.parametrize("fault", ["half-closed", "lost", "failed"])
def test_an_error_names_the_key_that_finds_the_answer_without_paying_again(server, fault):
    spent = charged(server)[1]
    token = server.token("ann")
    with (
        proxied(server, fault, 1) as proxy,
        connect(proxy.url, token, retry_for=0) as session,
        pytest.raises(SharewellError) as lost,
    ):
        session.ask(COUNT)
    key = lost.value.idempotency_key
    assert key is not None
    assert f"Ask again with the key {key!r}" in str(lost.value)
    with connect(server.url, token) as session:
        cost = session.ask(COUNT, key=key).cost
    assert cost > 0
    assert charged(server) == (1, spent + cost)
