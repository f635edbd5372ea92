"""HTTP by hand: raw bytes to a server, and the replies that come back."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from tests.service.http.servers import Running
from tests.service.robustness.guarding import is_problem


class Told(NamedTuple):
    """One reply."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def is_not_http(self) -> bool:
        """Whether the server itself has refused it, before there was a request."""
        return self.status == 400 and self.body == b"Invalid HTTP request received."

    @property
    def problem(self) -> Any:
        found = json.loads(self.body)
        assert is_problem(found), found
        return found


@contextmanager
def connected(server: Running) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as connection:
        yield connection


def send(connection: socket.socket, raw: bytes) -> None:
    """Send what the server takes; it may have heard enough before the end."""
    with suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(raw)


def replies(connection: socket.socket) -> list[Told]:
    """All that comes until the server closes the connection."""
    parts = []
    try:
        while part := connection.recv(1 << 20):
            parts.append(part)
    except ConnectionResetError:
        # What the server had not read when it closed resets the connection, at times before we read.
        pass
    return list(_parsed(b"".join(parts)))


def _parsed(raw: bytes) -> Iterator[Told]:
    while raw:
        head, found, raw = raw.partition(b"\r\n\r\n")
        assert found, head
        first, *lines = head.decode("ascii").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
        }
        status = int(first.split()[1])
        assert "transfer-encoding" not in headers
        length = int(headers.get("content-length", 0)) if status not in (100, 204) else 0
        assert len(raw) >= length
        body, raw = raw[:length], raw[length:]
        if status != 100:
            yield Told(status, headers, body)


def told(server: Running, raw: bytes) -> list[Told]:
    """What a server replies to some bytes on a connection of their own, until it closes that.

    It does so after what is no request, and after one that says `connection: close`.
    """
    with connected(server) as connection:
        send(connection, raw)
        return replies(connection)


def post(
    path: str, token: str, body: bytes, *also: str, length: int | None = -1, last: bool = True
) -> bytes:
    """A request with a body of JSON; `length` None: without saying how long it is."""
    lines = [f"POST {path} HTTP/1.1", "host: localhost", f"authorization: {token}"]
    lines += ["content-type: application/json", *["connection: close"] * last, *also]
    if length is not None:
        lines.append(f"content-length: {len(body) if length < 0 else length}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def get(path: str, *also: str, version: str = "1.1", last: bool = True) -> bytes:
    lines = [f"GET {path} HTTP/{version}", "host: localhost", *["connection: close"] * last, *also]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
