"""Hostile connections: slow bodies, clients that leave, many connections, bytes that are not HTTP."""

import json
import socket
import struct
import threading
from contextlib import suppress
from uuid import uuid4

import pytest

from sharewell.errors import RequestError
from sharewell.service.dataset import DatasetService
from sharewell.service.http import dependencies
from sharewell.service.http.monitoring import LoopDelay
from tests.service.http.servers import COUNT, running, write_dataset
from tests.service.robustness.guarding import all_gone, nothing_happens, standing, still_answers
from tests.service.robustness.sockets import connected, get, post, replies, send, told
from tests.service.waiting import comes_true

ASK = "/v1/datasets/people/ask"


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """A server that waits one second for a body."""
    path = write_dataset(tmp_path_factory.mktemp("hasty"), price="1/4000", scheduler="round-robin")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dependencies, "BODY_SECONDS", 1.0)
        with running(path) as found:
            yield found


@pytest.fixture(scope="module")
def bearer(hasty) -> str:
    return f"Bearer {hasty.token('ann')}"


def vanish(connection: socket.socket) -> None:
    """End a connection as if its other end had lost power: with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def asking(sql: str, **also) -> bytes:
    return json.dumps({"sql": sql, **also}).encode()


def test_a_client_that_vanishes_at_any_byte_of_a_request_leaves_nothing_behind(hasty, bearer):
    raw = post(ASK, bearer, asking("SELECT nothing"))
    with nothing_happens(hasty):
        for sent in range(0, len(raw), 7):
            with connected(hasty) as connection:
                send(connection, raw[:sent])
                vanish(connection)
        all_gone(hasty)


@pytest.mark.parametrize("path", [ASK, "/v1/datasets/people/quote"])
def test_a_body_that_does_not_arrive_is_408(hasty, bearer, path):
    raw = post(path, bearer, asking("SELECT nothing"), last=False)
    with nothing_happens(hasty):
        for sent in (1, 10, len(raw.partition(b"\r\n\r\n")[2]) - 1):
            head, _, body = raw.partition(b"\r\n\r\n")
            with connected(hasty) as connection:
                send(connection, head + b"\r\n\r\n" + body[:sent])
                [reply] = replies(connection)
            assert (reply.status, reply.problem["code"]) == (408, "request.too-large")
            assert reply.headers["connection"] == "close"
        all_gone(hasty)


def test_a_body_that_trickles_gets_no_more_time(hasty, bearer):
    head = post(ASK, bearer, b"", length=100_000, last=False)
    with nothing_happens(hasty), connected(hasty) as connection:
        send(connection, head)
        connection.settimeout(0.05)
        raw = b""
        while not raw:
            send(connection, b" ")
            with suppress(TimeoutError):
                raw = connection.recv(65536)
        assert raw.startswith(b"HTTP/1.1 408 ")


def test_a_body_in_chunks_that_does_not_end_is_408(hasty, bearer):
    raw = post(ASK, bearer, b"5\r\n     \r\n", "transfer-encoding: chunked", length=None, last=False)
    with nothing_happens(hasty):
        [reply] = told(hasty, raw)
        assert reply.status == 408


@pytest.mark.parametrize(
    ("holder", "delay", "status"), [("nobody", 0, 401), ("ann", 0, 429), ("ben", 700, 503)]
)
def test_a_request_that_is_refused_is_answered_before_its_body(
    tmp_path, monkeypatch, holder, delay, status
):
    path = write_dataset(tmp_path)
    path.write_text(path.read_text().replace("100000", "0.01"))
    monkeypatch.setattr(LoopDelay, "seconds", lambda self: delay)
    with running(path) as server:
        token = "sw_none" if holder == "nobody" else server.token(holder)
        if status == 429:
            told(server, get("/v1/datasets", f"authorization: Bearer {token}"))
        before = standing(server)
        [reply] = told(server, post(ASK, f"Bearer {token}", b"", length=100))
        assert reply.status == status
        assert standing(server) == before
        assert ("retry-after" in reply.headers) == (status != 401)


def test_one_byte_at_a_time_is_a_request_like_any_other(server, token):
    raw = post(ASK, token, asking("x"))[:-1]
    with nothing_happens(server), connected(server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(raw)):
            connection.sendall(raw[at : at + 1])
        connection.sendall(b"}")
        [reply] = replies(connection)
        assert (reply.status, reply.problem["code"]) == (400, "sql.unsupported")


def test_a_question_whose_client_has_gone_is_answered_once_and_found_by_its_key(server, ann, token):
    before = standing(server)
    question = {"sql": "SELECT COUNT(*) FROM people WHERE age = 11", "key": f"gone-{uuid4().hex}"}
    with connected(server) as connection:
        send(connection, post(ASK, token, json.dumps(question).encode()))
        vanish(connection)
    first = ann.post("/ask", question)
    stored = standing(server).events
    assert first.status_code == 200
    assert stored > before.events
    for _ in range(3):
        assert ann.post("/ask", question).content == first.content
    assert standing(server).events == stored


def test_a_quote_whose_client_has_gone_is_cancelled(tmp_path, monkeypatch):
    begun, ended = threading.Event(), threading.Event()

    def endless(self, analyst, sql, *, cancelled):
        begun.set()
        comes_true(cancelled)
        ended.set()
        raise RequestError("The quote was cancelled.")

    monkeypatch.setattr(DatasetService, "quote", endless)
    monkeypatch.setattr(dependencies, "CHECK_INTERVAL", 0.01)
    with running(write_dataset(tmp_path)) as server:
        token = f"Bearer {server.token('ann')}"
        with connected(server) as connection:
            send(connection, post("/v1/datasets/people/quote", token, asking(COUNT)))
            assert begun.wait(60)
            vanish(connection)
        assert ended.wait(120)
        comes_true(lambda: any(line.get("status") == 499 for line in server.log_lines))
        all_gone(server)


def test_a_client_that_watches_a_ticket_and_vanishes_watches_no_more(hasty, bearer):
    with hasty.client(bearer.removeprefix("Bearer ")) as ann:
        for _ in range(3):
            waits = ann.post(ASK, json={"sql": COUNT})
    assert waits.status_code == 202
    path = waits.headers["location"]
    watchers = hasty.state.datasets["people"].watchers
    before = standing(hasty)
    held = [socket.create_connection(("127.0.0.1", hasty.port), timeout=120) for _ in range(20)]
    for at, connection in enumerate(held):
        send(
            connection,
            get(f"{path}?wait=60" if at % 2 else f"{path}/events", f"authorization: {bearer}"),
        )
    comes_true(lambda: sum(watchers.values()) == len(held))
    for connection in held:
        vanish(connection)
    comes_true(lambda: not watchers)
    all_gone(hasty)
    assert standing(hasty) == before


def test_many_silent_connections_delay_no_other_client(hasty):
    with nothing_happens(hasty):
        held = [socket.create_connection(("127.0.0.1", hasty.port), timeout=120) for _ in range(200)]
        still_answers(hasty)
        for connection in held:
            connection.close()
        all_gone(hasty)


def test_a_client_that_reads_none_of_a_thousand_responses_delays_no_other_client(hasty):
    before = standing(hasty)
    with connected(hasty) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(0.5)
        with suppress(TimeoutError, OSError):
            connection.sendall(get("/openapi.json", last=False) * 1000)
        still_answers(hasty)
        vanish(connection)
    all_gone(hasty)
    assert standing(hasty) == before


def test_requests_on_one_connection_are_answered_in_order(server):
    found = told(server, get("/healthz", last=False) + get("/nowhere"))
    assert [reply.status for reply in found] == [200, 404]


def test_an_upgrade_is_not_accepted(server):
    with connected(server) as connection:
        head = get("/healthz", "connection: upgrade", "upgrade: websocket", last=False)
        send(connection, head)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00" * 1000,
        b"\xff" * 70_000,
        b"\x16\x03\x01" + b"\x00" * 500,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET http://example.org/ HTTP/1.1\r\nconnection: close\r\nhost: example.org\r\n\r\n",
        b"GET ://// HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET * HTTP/1.1\r\nconnection: close\r\nhost: localhost\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nconnection: close\r\nhost: localhost\r\n\r\n",
        b"GET  HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET healthz HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"CONNECT localhost:22 HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        b"GET /healthz\r\n\r\n",
        b"GET /healthz HTTP/1.1 extra\r\nhost: localhost\r\n\r\n",
        b"*1\r\n$4\r\nPING\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n\x00\xff",
    ],
    ids=lambda raw: ascii(raw)[:50],
)
def test_bytes_that_are_not_http_are_refused(server, raw):
    with nothing_happens(server):
        found = told(server, raw)
        assert found
        assert {reply.status for reply in found} <= {200, 400, 404, 405}
