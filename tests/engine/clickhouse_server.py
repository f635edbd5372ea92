"""ClickHouse's HTTP interface in front of chDB, which has its engine and no server."""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import chdb

PASSWORD = "right"
#: Parameters of a request that are not settings.
OF_HTTP = {"client_protocol_version", "database", "query", "query_id", "session_id", "wait_end_of_query"}


class Server(ThreadingHTTPServer):
    """Runs statements, each in a session of its own with the settings of its request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        #: The settings of the last statement, those that the user may not change, and who waits.
        self.settings: dict[str, str] = {}
        self.fixed: set[str] = set()
        self.going = threading.Event()
        self.going.set()

    @property
    def address(self) -> str:
        return f"clickhouse://reader@127.0.0.1:{self.server_port}/default"

    def run(self, sql: str, given: dict[str, str]) -> bytes:
        self.going.wait(120)
        if fixed := self.fixed & given.keys():
            raise PermissionError(f"Code: 164. DB::Exception: Cannot modify {fixed} in readonly mode.")
        self.settings = given
        connection = chdb.connect(":memory:")
        try:
            if given:
                listed = ", ".join(f"{key} = '{value}'" for key, value in given.items())
                connection.query(f"SET {listed}")
            return bytes(connection.query(sql, "TabSeparated").bytes())
        finally:
            connection.close()


class Handler(BaseHTTPRequestHandler):
    """Answers one request of a client."""

    server: Server

    def do_GET(self) -> None:
        self.reply(200, b"Ok.\n")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        given = dict(parse_qsl(urlsplit(self.path).query))
        who = b64encode(f"reader:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {who}":
            self.reply(403, b"Code: 516. DB::Exception: reader: Authentication failed.", failed=516)
            return
        settings = {key: value for key, value in given.items() if key not in OF_HTTP}
        try:
            found = self.server.run(given.get("query", "") + body, settings)
        except Exception as error:
            self.reply(500, str(error).encode(), failed=1)
            return
        self.reply(200, found)

    def reply(self, status: int, content: bytes, failed: int = 0) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if failed:
            self.send_header("X-ClickHouse-Exception-Code", str(failed))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def clickhouse_server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
