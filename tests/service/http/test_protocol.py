"""Connections: slow, large, many, and such as do not speak HTTP."""

import gc
import json
import socket
import time

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from sharewell.service.http.call import Call
from sharewell.service.http.protocol import MOST_HEAD, CarefulProtocol
from tests.service.http.servers import running, write_dataset
from tests.service.waiting import comes_true


class Hasty(CarefulProtocol):
    """With limits that a test need not wait long for."""

    head_seconds = 1.0
    body_seconds = 1.0
    idle_seconds = 1.5
    stuck_seconds = 0.5
    most_connections = 8


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    with running(write_dataset(tmp_path_factory.mktemp("hasty")), protocol=Hasty) as found:
        yield found


@pytest.fixture
def connect(hasty):
    opened = []

    def connect() -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", hasty.port), timeout=30)
        opened.append(connection)
        return connection

    yield connect
    for connection in opened:
        connection.close()
    comes_true(lambda: not hasty.server.server_state.connections)


def all_of(connection) -> bytes:
    """What comes until the server closes the connection."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def problem_of(raw: bytes, status: int, code: str) -> None:
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert lines[0].startswith(f"http/1.1 {status} ")
    assert "content-type: application/json" in lines
    assert "x-content-type-options: nosniff" in lines
    assert "connection: close" in lines
    assert json.loads(body)["code"] == code


GET = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n"


def test_a_connection_that_says_nothing_is_closed(connect):
    assert all_of(connect()) == b""


def test_a_head_that_does_not_end_is_408(connect):
    connection = connect()
    connection.sendall(GET)
    problem_of(all_of(connection), 408, "request.too-large")


def test_a_head_that_trickles_gets_no_more_time(connect):
    connection = connect()
    connection.settimeout(0.05)
    raw = b""
    try:
        for letter in GET * 10_000:
            connection.sendall(bytes([letter]))
            try:
                raw += connection.recv(65536)
                break
            except TimeoutError:
                continue
    except OSError:
        return
    problem_of(raw, 408, "request.too-large")


def test_a_second_head_gets_no_more_time_than_the_first(connect):
    connection = connect()
    connection.sendall(GET + b"\r\n")
    assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
    connection.sendall(GET)
    problem_of(all_of(connection), 408, "request.too-large")


def test_a_body_that_does_not_come_is_408(hasty, connect):
    connection = connect()
    token = hasty.token("ann").encode()
    connection.sendall(
        b"POST /v1/datasets/people/ask HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        b"authorization: Bearer " + token + b"\r\ncontent-length: 50\r\n\r\n{"
    )
    problem_of(all_of(connection), 408, "request.too-large")
    comes_true(lambda: hasty.log_lines and hasty.log_lines[-1]["status"] == 499)


def test_a_body_that_nobody_reads_is_not_waited_for_either(connect):
    connection = connect()
    connection.sendall(b"POST /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: 900000\r\n\r\nx")
    assert all_of(connection).startswith(b"HTTP/1.1 405 ")


def test_a_connection_in_use_is_kept_for_longer_than_a_head_may_take(connect):
    connection = connect()
    begun = time.monotonic()
    while time.monotonic() - begun < 2 * Hasty.head_seconds:
        connection.sendall(GET + b"\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_a_head_that_is_too_large_is_431(connect):
    connection = connect()
    begun = GET + b"x-long: "
    # Not a byte more than it takes: what the server does not read any more resets the connection.
    connection.sendall(begun + b"y" * (MOST_HEAD + 1 - len(begun)))
    problem_of(all_of(connection), 431, "request.too-large")


def test_a_head_that_is_large_is_read(connect):
    connection = connect()
    connection.sendall(GET + b"x-long: " + b"y" * 30_000 + b"\r\n\r\n")
    assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"HELO\r\n\r\n",
        b"GET\r\n\r\n",
        b"CONNECT example.org:443 HTTP/1.1\r\nhost: example.org\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n",
    ],
)
def test_what_is_not_http_is_told_so(connect, raw):
    connection = connect()
    connection.sendall(raw)
    problem_of(all_of(connection), 400, "request.invalid")


def test_a_client_that_takes_nothing_is_let_go(hasty, connect):
    connection = connect()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    head = b"GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: localhost\r\n\r\n"
    connection.sendall(head * 8)
    comes_true(lambda: hasty.server.server_state.connections)
    comes_true(lambda: not hasty.server.server_state.connections)


def test_requests_in_a_row_are_replied_to_in_order(connect):
    connection = connect()
    connection.sendall(
        GET + b"\r\n" + GET.replace(b"healthz", b"nowhere") + b"connection: close\r\n\r\n"
    )
    raw = all_of(connection)
    assert raw.index(b"HTTP/1.1 200 ") < raw.index(b"HTTP/1.1 404 ")


def test_too_many_connections_are_told_so(hasty, connect):
    held = [connect() for _ in range(Hasty.most_connections)]
    comes_true(lambda: len(hasty.server.server_state.connections) == len(held))
    one_more = connect()
    one_more.sendall(GET + b"\r\n")
    problem_of(all_of(one_more), 503, "service.closed")


def test_an_upgrade_is_not_taken(connect):
    connection = connect()
    connection.sendall(GET + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n")
    assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_a_connection_on_which_nothing_more_comes_is_closed_without_a_word(connect):
    line = connect()
    for _ in range(2):
        time.sleep(0.4)
        line.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        assert line.recv(65536).startswith(b"HTTP/1.1 200")
    begun = time.monotonic()
    assert all_of(line) == b""
    assert 1.0 < time.monotonic() - begun < 10


def test_the_next_head_must_come_in_time_also_where_it_began_with_the_last_request(connect):
    line = connect()
    line.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /healthz HTT")
    replies = all_of(line)
    assert replies.startswith(b"HTTP/1.1 200")
    problem_of(replies[replies.index(b"HTTP/1.1 408") :], 408, "request.too-large")


def test_a_refused_request_that_comes_to_its_end_later_does_not_keep_its_connection(connect):
    line = connect()
    line.sendall(b"POST /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nx")
    assert line.recv(65536).startswith(b"HTTP/1.1 405")
    line.sendall(b"y" * 9)
    assert all_of(line) == b""


@pytest.mark.parametrize("last", [b"", b"connection: close\r\n"], ids=["shutdown", "close"])
def test_a_client_that_takes_nothing_more_cannot_hold_its_connection(tmp_path, last):
    with running(write_dataset(tmp_path), protocol=Hasty) as server, socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(("127.0.0.1", server.port))
        connections = server.server.server_state.connections
        comes_true(lambda: len(connections) == 1)
        [held] = connections
        # Until some of the replies lie with the server, and not so many that it would stop to reply.
        while held.transport.get_write_buffer_size() < 5000:
            line.sendall(b"GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n" * 5)
            time.sleep(0.005)
        if last:
            line.sendall(b"GET /nowhere HTTP/1.1\r\nhost: x\r\n" + last + b"\r\n")
        else:
            server.server.should_exit = True
        comes_true(lambda: not connections)


def test_a_connection_that_is_lost_leaves_nothing_either(hasty):
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", hasty.port), timeout=30) as line:
                line.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
                assert line.recv(65536).startswith(b"HTTP/1.1 200")
        comes_true(lambda: not hasty.server.server_state.connections)
        comes_true(lambda: not any(isinstance(each, CarefulProtocol) for each in gc.get_objects()))
    finally:
        gc.enable()


def test_a_request_leaves_nothing_for_the_garbage_collector(hasty):
    ann = hasty.analyst()
    ann.ask()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(5):
            assert ann.ask().status_code == 200
        gc.collect()
        left = [type(each) for each in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not {Call, RequestResponseCycle} & set(left)
