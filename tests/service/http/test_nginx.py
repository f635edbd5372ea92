"""A real nginx in front, with the configuration that docs/http.md shows."""

import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.service.http.servers import Principal, Running, problem, running, write_dataset
from tests.service.waiting import comes_true

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CERT, KEY = HERE / "localhost.crt", HERE / "localhost.key"
PATHS = f"{ROOT / '.nginx/usr/sbin'}:/usr/sbin:/usr/local/sbin:/opt/homebrew/bin"
NGINX = shutil.which("nginx") or shutil.which("nginx", path=PATHS)
#: Collected only where nginx is installed or could be fetched: no test may depend on a package mirror.
__test__ = NGINX is not None

MAIN = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {server}
}}
"""


def documented() -> str:
    """The nginx configuration of the page."""
    page = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
    [found] = re.findall(r"```nginx\n(.*?)```", page, re.DOTALL)
    return found


def replaced(text: str, changes: dict[str, str]) -> str:
    for before, after in changes.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


class Proxied:
    """A service with nginx in front of it."""

    def __init__(self, service: Running, port: int) -> None:
        self.service = service
        self.port = port
        self.trust = ssl.create_default_context(cafile=str(CERT))

    def analyst(self, name: str, token: str | None = None) -> Principal:
        token = token or self.service.token(name)
        client = httpx.Client(
            base_url=f"https://localhost:{self.port}",
            headers={"authorization": f"Bearer {token}"},
            verify=self.trust,
            timeout=60,
            trust_env=False,
        )
        return Principal(client, "people")

    def connect(self) -> ssl.SSLSocket:
        raw = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        return self.trust.wrap_socket(raw, server_hostname="localhost")


def start(folder: Path, service: Running) -> tuple[subprocess.Popen[bytes], int]:
    """An nginx that listens at a port of its own, once it does."""
    assert NGINX is not None
    config, pid = folder / "nginx.conf", folder / "pid"
    for _ in range(20):
        # Something else may take the port before nginx does; then nginx ends, and another is tried.
        port = free_port()
        server = replaced(
            documented(),
            {
                "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
                "sharewell.example.org": "localhost",
                "/etc/ssl/sharewell.crt": str(CERT),
                "/etc/ssl/sharewell.key": str(KEY),
                "http://127.0.0.1:8080": f"http://127.0.0.1:{service.port}",
                # On a busy machine a handshake, too, has to fit in.
                "client_header_timeout 10s": "client_header_timeout 3s",
                "client_body_timeout 30s": "client_body_timeout 3s",
                "keepalive_timeout 30s": "keepalive_timeout 3s",
            },
        )
        config.write_text(MAIN.format(folder=folder, server=server))
        process = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(config)])
        # The file is written when nginx listens.
        comes_true(lambda: process.poll() is not None or pid.exists())  # noqa: B023
        if process.poll() is None:
            return process, port
    raise AssertionError((folder / "error.log").read_text())


@pytest.fixture(scope="module")
def proxied(tmp_path_factory) -> Iterator[Proxied]:
    path = write_dataset(tmp_path_factory.mktemp("served"), scheduler="round-robin", price="1/4000")
    with running(path, behind_proxy=True) as service:
        process, port = start(tmp_path_factory.mktemp("nginx"), service)
        with process:
            yield Proxied(service, port)
            process.terminate()


#: By this id the service's log would show a request that nginx has passed on.
MARK = b"x-request-id: cut-off\r\n"


def reached(proxied: Proxied) -> bool:
    return any(line.get("request_id") == "cut-off" for line in proxied.service.log_lines)


def all_of(connection: socket.socket) -> bytes:
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except (ssl.SSLError, ConnectionResetError):
        pass
    return b"".join(parts)


def test_questions_are_answered_and_errors_keep_their_shape(proxied):
    ann = proxied.analyst("ann")
    assert ann.ask().json()["state"] == "answered"
    reply = ann.client.get("/v1/datasets/people/me", headers={"x-request-id": "through-nginx"})
    assert reply.headers["x-request-id"] == "through-nginx"
    problem(ann.get("/tickets/999999"), 404, "request.not-found")
    problem(ann.client.get("/metrics"), 403, "access.denied")
    ann.client.close()


def test_events_pass_at_once(proxied):
    ann, ben = proxied.analyst("ann"), proxied.analyst("ben")
    while (waits := ann.ask()).status_code != 202:
        assert waits.status_code == 200
    with ann.client.stream("GET", f"{waits.headers['location']}/events") as stream:
        lines = (line for line in stream.iter_lines() if line)
        assert next(lines) == "event: position"
        assert json.loads(next(lines).removeprefix("data: "))["state"] == "waiting"
        # Had nginx kept the first event back, this question would never be asked.
        ben.ask()
        assert next(lines) == "event: answered"
    ann.client.close()
    ben.client.close()


def test_a_marked_request_that_nginx_passes_on_is_found(proxied):
    with proxied.connect() as connection:
        passed = MARK.replace(b"cut-off", b"passed")
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n" + passed + b"\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
    comes_true(lambda: any(line.get("request_id") == "passed" for line in proxied.service.log_lines))


def test_a_head_that_trickles_is_cut_off_and_never_reaches_the_service(proxied):
    with proxied.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n" + MARK)
        stop = threading.Event()

        def trickle() -> None:
            try:
                while not stop.wait(0.05):
                    connection.sendall(b"x-a: b\r\n")
            except OSError:
                pass

        thread = threading.Thread(target=trickle)
        thread.start()
        try:
            assert b" 200 " not in all_of(connection)
        finally:
            stop.set()
            thread.join()
    assert not reached(proxied)


def test_a_head_that_is_too_large_never_reaches_the_service(proxied):
    with proxied.connect() as connection:
        head = MARK + b"x: " + b"y" * 17_000
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n" + head + b"\r\n\r\n")
        assert all_of(connection).startswith(b"HTTP/1.1 400 ")
    assert not reached(proxied)


def test_an_idle_connection_is_closed(proxied):
    with proxied.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert b"HTTP" not in all_of(connection)


def test_a_body_that_does_not_arrive_never_reaches_the_service(proxied):
    with proxied.connect() as connection:
        connection.sendall(
            b"POST /v1/datasets/people/ask HTTP/1.1\r\nhost: localhost\r\ncontent-length: 50\r\n"
            + MARK
            + b"\r\n{"
        )
        assert b" 200 " not in all_of(connection)
    assert not reached(proxied)


def test_a_client_cannot_hide_its_address_from_the_limit_on_failed_tokens(proxied):
    guesser = proxied.analyst("nobody", "sw_wrong")
    found = {
        guesser.client.get("/v1/datasets", headers={"x-forwarded-for": f"10.1.1.{at}"}).status_code
        for at in range(60)
    }
    assert found == {401, 429}
    guesser.client.close()
