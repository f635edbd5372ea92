"""A real HTTP server on this machine that misbehaves on purpose, and remembers what it was asked."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

from sharewell import wire
from tests.client.twins import Clock

SQL = "SELECT COUNT(*) FROM people"
NUMBER = wire.Number(value=6231.0, standard_error=14.0, interval=(6203.0, 6259.0), source="measured")
ANSWER = wire.Result(
    columns=(wire.ResultColumn(name="COUNT(*)", kind="number"),),
    rows=((NUMBER,),),
    cost=Fraction(1, 100),
    paid_by="ann",
)
GREETING = wire.DatasetList(datasets=("people",), name="ann", role="analyst")

#: A certificate for this machine, and its key, which opens nothing.
SELF_SIGNED = Path(__file__).parent / "self_signed.pem"

#: What the server does with one request.
Deed = Callable[["Handler"], None]


def ticket(state: Any = "answered", position: int | None = None, **more: Any) -> wire.Ticket:
    answer = ANSWER if state == "answered" else None
    return wire.Ticket(
        number=7, key="k", sql=SQL, pay=True, state=state, position=position, answer=answer, **more
    )


def say(message: wire.Message, status: int = 200) -> Deed:
    """Reply in good order."""
    return lambda handler: handler.write(status, message.model_dump_json().encode())


def problem(status: int, code: str, retry_after: str | None = None, **more: Any) -> Deed:
    """Reply with a problem."""
    told = wire.Problem(code=code, message="It is wrong.", **more).model_dump_json().encode()
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return lambda handler: handler.write(status, told, **headers)


def page(status: int, **headers: str) -> Deed:
    """Reply as a web site would."""
    headers = {"Content-Type": "text/html", **headers}
    return lambda handler: handler.write(status, b"<p>Hello.</p>", **headers)


def plain(content: bytes) -> Deed:
    """Reply with JSON, or what claims to be some."""
    return lambda handler: handler.write(200, content)


def drop(handler: Handler) -> None:
    """Hang up in the middle of a reply, after the request was read."""
    handler.connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
    handler.hang_up()


def hang_up(handler: Handler) -> None:
    """Hang up without a word."""
    handler.hang_up()


def babble(handler: Handler) -> None:
    """Speak something that is not HTTP."""
    handler.connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
    handler.hang_up()


def stall(handler: Handler) -> None:
    """Say nothing for as long as the test lasts."""
    handler.server.over.wait(120)
    handler.hang_up()


@dataclass
class Asked:
    """A request as it came."""

    method: str
    path: str
    body: dict[str, Any]
    token: str | None = field(repr=False)


class Server(ThreadingHTTPServer):
    """Greets as it should, then does one deed for each request; the last one again and again."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.scheme = "http"
        self.clock = Clock()
        self.over = Event()
        self.greeting: Deed = say(GREETING)
        self.deeds: list[Deed] = [say(ticket())]
        #: All that was asked, but for the greeting.
        self.asked: list[Asked] = []
        self.greeted: list[Asked] = []

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is nothing to write about."""


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        asked = Asked(self.command, self.path, body, self.headers.get("Authorization"))
        if self.path == "/v1/datasets":
            self.server.greeted.append(asked)
            self.server.greeting(self)
            return
        self.server.asked.append(asked)
        deeds = self.server.deeds
        (deeds.pop(0) if len(deeds) > 1 else deeds[0])(self)

    do_POST = do_DELETE = do_GET

    def write(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in {"Content-Type": "application/json", **named}.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if status != 204:
            self.wfile.write(content)

    def hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: object) -> None:
        """Keep still."""


@contextmanager
def misbehaving(*, tls: bool = False) -> Iterator[Server]:
    """A server for a while; with `tls`, with a certificate that it signed itself."""
    server = Server()
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(SELF_SIGNED)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.scheme = "https"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
