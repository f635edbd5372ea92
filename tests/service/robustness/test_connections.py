"""Hostile connections: slow, half-closed, gone in the middle, many, and such as take no reply."""

import contextlib
import json
import socket
import struct
import time

import pytest

from sharewell.service.http.protocol import CarefulProtocol
from tests.service.http.servers import COUNT, running, write_dataset
from tests.service.robustness.guarding import all_gone, nothing_happens, standing, still_answers
from tests.service.robustness.sockets import connected, get, post, replies, send, told
from tests.service.waiting import comes_true

ASK = "/v1/datasets/people/ask"


class Hasty(CarefulProtocol):
    head_seconds = 1.0
    body_seconds = 1.0
    stuck_seconds = 0.5


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    path = write_dataset(tmp_path_factory.mktemp("hasty"), price="1/4000", scheduler="round-robin")
    with running(path, protocol=Hasty) as found:
        yield found


@pytest.fixture(scope="module")
def bearer(hasty) -> str:
    return f"Bearer {hasty.token('ann')}"


def vanish(connection: socket.socket) -> None:
    """End a connection as if the machine at its other end had been switched off: with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def asking(sql: str, **also) -> bytes:
    return json.dumps({"sql": sql, **also}).encode()


def test_whoever_vanishes_at_any_byte_of_a_request_leaves_nothing_behind(hasty, bearer):
    raw = post(ASK, bearer, asking("SELECT nothing"))
    with nothing_happens(hasty):
        for sent in range(0, len(raw), 7):
            with connected(hasty) as connection:
                send(connection, raw[:sent])
                vanish(connection)
        all_gone(hasty)


def test_whoever_stops_at_any_part_of_a_request_is_let_go(hasty, bearer):
    raw = post(ASK, bearer, asking("SELECT nothing"))
    with nothing_happens(hasty):
        held = []
        for sent in range(0, len(raw), 23):
            held.append(socket.create_connection(("127.0.0.1", hasty.port), timeout=30))
            send(held[-1], raw[:sent])
        for sent, connection in zip(range(0, len(raw), 23), held, strict=True):
            with connection:
                statuses = [reply.status for reply in replies(connection)]
                assert statuses == ([] if sent == 0 else [408])
        all_gone(hasty)


def test_one_byte_at_a_time_is_a_request_like_any_other(server, token):
    raw = post(ASK, token, asking("x"))[:-1]
    with nothing_happens(server), connected(server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(raw)):
            connection.sendall(raw[at : at + 1])
        connection.sendall(b"}")
        [reply] = replies(connection)
        assert (reply.status, reply.problem["code"]) == (400, "sql.unsupported")


def test_a_question_whose_asker_has_gone_is_answered_once_and_found_by_its_key(server, ann, token):
    before = standing(server)
    question = {"sql": "SELECT COUNT(*) FROM people WHERE age = 11", "key": "whoever-asked-has-gone"}
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


def test_who_watches_a_ticket_and_vanishes_watches_no_more(hasty, bearer):
    with hasty.client(bearer.removeprefix("Bearer ")) as ann:
        for _ in range(3):
            waits = ann.post(ASK, json={"sql": COUNT})
    assert waits.status_code == 202
    path = waits.headers["location"]
    window = hasty.reception.windows["people"]
    before = standing(hasty)
    held = [socket.create_connection(("127.0.0.1", hasty.port), timeout=30) for _ in range(20)]
    for at, connection in enumerate(held):
        send(
            connection,
            get(f"{path}?wait=60" if at % 2 else f"{path}/events", f"authorization: {bearer}"),
        )
    comes_true(lambda: sum(window._watchers.values()) == len(held))
    for connection in held:
        vanish(connection)
    comes_true(lambda: not window._watchers)
    all_gone(hasty)
    assert standing(hasty) == before


def test_who_takes_none_of_a_thousand_replies_holds_up_nobody(alone):
    before = standing(alone)
    take_nothing(alone)
    assert standing(alone) == before


@pytest.fixture
def alone(tmp_path):
    """A server of one's own: what goes wrong in it shows up in no other test."""
    with running(write_dataset(tmp_path, scheduler="round-robin"), protocol=Hasty) as found:
        yield found


def test_who_takes_none_of_a_thousand_replies_is_no_error(alone):
    with nothing_happens(alone):
        take_nothing(alone)


def take_nothing(server) -> None:
    with connected(server) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(0.5)
        with contextlib.suppress(TimeoutError, OSError):
            connection.sendall(get("/openapi.json", last=False) * 1000)
        still_answers(server)
        all_gone(server)


def test_who_watches_and_has_asked_for_more_and_vanishes_watches_no_more(alone):
    token = alone.token("ann")
    with alone.client(token) as ann:
        for _ in range(2):
            waits = ann.post(ASK, json={"sql": COUNT})
    watch = get(f"{waits.headers['location']}?wait=5", f"authorization: Bearer {token}", last=False)
    watchers = alone.reception.windows["people"]._watchers
    with connected(alone) as connection:
        send(connection, watch + get("/healthz"))
        comes_true(lambda: bool(watchers))
        vanish(connection)
    comes_true(lambda: not alone.server.server_state.connections)
    # Whoever is told is gone at once; whoever is not waits for five seconds, however slow a machine is.
    for _ in range(75):
        if not watchers:
            break
        time.sleep(0.02)
    assert not watchers


def test_many_connections_that_say_nothing_hold_up_nobody(hasty):
    with nothing_happens(hasty):
        held = [socket.create_connection(("127.0.0.1", hasty.port), timeout=30) for _ in range(200)]
        still_answers(hasty)
        for connection in held:
            connection.close()
        all_gone(hasty)


@pytest.mark.parametrize(
    "raw",
    [
        b"\r\n" * 1000,
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
        b"GET /healthz HTTP/1.1\nhost: localhost\n\n\n",
        b"GET /healthz HTTP/1.1 extra\r\nhost: localhost\r\n\r\n",
        b"*1\r\n$4\r\nPING\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n\x00\xff",
    ],
    ids=lambda raw: ascii(raw)[:50],
)
def test_bytes_that_are_no_request_are_told_so_or_let_go(hasty, raw):
    with nothing_happens(hasty):
        for reply in told(hasty, raw):
            assert reply.status in (200, 400, 404, 405, 408, 431)
            if reply.status != 200:
                assert reply.problem["code"].startswith("request.")
        all_gone(hasty)
