"""From files to a running process and to its end: addresses, certificates, signals, and what is said."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from sharewell.errors import ConfigError, LedgerInUse
from sharewell.service.http import serve
from sharewell.service.http.server import bind
from sharewell.service.registry import DatasetRegistry
from sharewell.service.tokens import TokenStore
from tests.service.http.servers import COUNT, problem, running, write_dataset
from tests.service.services import held
from tests.service.waiting import comes_true, greeted

HERE = Path(__file__).parent
#: Made for these tests, and worth nothing elsewhere.
CERT, KEY = HERE / "localhost.crt", HERE / "localhost.key"

SERVE = """
import json, sys
from sharewell.errors import SharewellError
from sharewell.service.http import serve
try:
    serve(json.loads(sys.argv[1]), **json.loads(sys.argv[2]))
except SharewellError as refused:
    print(refused, file=sys.stderr)
    sys.exit(2)
"""


@contextmanager
def process(*paths, code=SERVE, **options):
    """A server in a process of its own, once it has said where it is."""
    given = [json.dumps([str(path) for path in paths]), json.dumps({"port": 0, **options})]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", code, *given]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=environment, **pipes) as child:
        assert child.stdout is not None
        try:
            yield child, greeted(child.stdout)
        finally:
            if child.poll() is None:
                child.kill()


def address_of(greeting: str) -> str:
    assert " at " in greeting, greeting
    return greeting.partition(" at ")[2].partition(";")[0]


def test_a_process_says_where_it_is_and_who_has_no_token_and_ends_in_good_order(tmp_path):
    path = write_dataset(tmp_path, scheduler="round-robin")
    access = TokenStore(tmp_path / "people.access.json")
    token = access.issue("ann", "analyst")
    with process(path) as (child, greeting):
        url = address_of(greeting)
        assert (
            greeting
            == f"Serving people at {url}; open it in a browser, or see {url}/docs for the API.\n"
        )
        said = [child.stdout.readline() for _ in range(2)]
        assert said == [
            f"{name} has no token for people yet. Run: sharewell token {name} --config {path}\n"
            for name in ("ben", "curator")
        ]
        headers = {"authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False) as client:
            ask = "/v1/datasets/people/ask"
            client.post(ask, json={"sql": "SELECT COUNT(*) FROM people"})
            waits = client.post(ask, json={"sql": "SELECT COUNT(*) FROM people", "key": "kept"})
            assert waits.status_code == 202
            ticket = waits.headers["location"]

            with client.stream("GET", f"{ticket}/events") as stream:
                lines = stream.iter_lines()
                assert next(lines) == "event: position"
                child.send_signal(signal.SIGTERM)
                rest = [line for line in lines if line and not line.startswith(":")]
                assert rest[-2] == "event: closed"
                assert json.loads(rest[-1].removeprefix("data: "))["code"] == "service.closed"
        logged = child.stderr.read()
        assert child.wait(60) == 0
    assert all(json.loads(line) for line in logged.splitlines())
    assert "SELECT" not in logged
    with DatasetRegistry.open([path]) as registry:
        assert [each.key for each in registry.datasets["people"]._submissions.of("ann")][-1] == "kept"


STUCK = f"""
import threading
import time
from sharewell.service.registry import DatasetRegistry
def close(registry):
    print("closing", flush=True)
    threading.Event().wait()
DatasetRegistry.close = close
{SERVE}"""


def test_a_second_ctrl_c_ends_at_once(tmp_path):
    with process(write_dataset(tmp_path), code=STUCK) as (child, greeting):
        assert address_of(greeting)
        child.send_signal(signal.SIGINT)
        while child.stdout.readline() != "closing\n":
            pass
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130


FEW_FILES = f"""
import resource
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, most), most))
{SERVE}"""


@pytest.fixture
def many_files():
    """How many connections this process may open."""
    resource = pytest.importorskip("resource")
    before = soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2000 if most == resource.RLIM_INFINITY else min(most, 2000)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), most))
    yield wanted - 300
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_idle_connections_without_a_token_shut_no_one_out(tmp_path, many_files):
    path = write_dataset(tmp_path)
    token = TokenStore(tmp_path / "people.access.json").issue("ann", "analyst")
    options: dict[str, Any] = {
        "headers": {"authorization": f"Bearer {token}"},
        "timeout": 60,
        "trust_env": False,
    }
    ask: dict[str, Any] = {"url": "/v1/datasets/people/ask", "json": {"sql": COUNT}}
    with process(path, code=FEW_FILES) as (_, greeting), ExitStack() as idle:
        url = address_of(greeting)
        with httpx.Client(base_url=url, **options) as client:
            paid = client.post(**ask).json()["answer"]
        for _ in range(many_files):
            at = ("127.0.0.1", int(url.rpartition(":")[2]))
            idle.enter_context(socket.create_connection(at, timeout=60))
        with httpx.Client(base_url=url, **options) as client:
            assert client.get("/healthz").status_code == 200
            cached = client.post(**ask).json()["answer"]
        assert cached["rows"][0][0]["value"] == paid["rows"][0][0]["value"]


def test_it_speaks_tls_and_nothing_older_than_1_2(tmp_path):
    path = write_dataset(tmp_path)
    with process(path, tls_cert=str(CERT), tls_key=str(KEY)) as (child, greeting):
        url = address_of(greeting)
        assert url.startswith("https://127.0.0.1:")
        trusting = ssl.create_default_context(cafile=str(CERT))
        with httpx.Client(verify=trusting, timeout=60, trust_env=False) as client:
            assert client.get(f"{url}/healthz").json() == {"alive": True}
        port = int(url.rpartition(":")[2])
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.load_verify_locations(CERT)
        # So that it is the server that refuses, and not this library's own caution.
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with (
            socket.create_connection(("127.0.0.1", port)) as connection,
            pytest.raises((ssl.SSLError, OSError)),
        ):
            old.wrap_socket(connection, server_hostname="localhost")
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_an_address_that_others_reach_needs_tls_or_a_proxy(tmp_path, host):
    with pytest.raises(ConfigError, match="unencrypted"):
        serve([write_dataset(tmp_path)], host=host, port=0)


def test_a_network_address_without_a_proxy_is_served_with_a_warning(tmp_path):
    path, log = write_dataset(tmp_path), tmp_path / "log"
    options = {"host": "0.0.0.0", "tls_cert": str(CERT), "tls_key": str(KEY), "log": str(log)}
    with process(path, **options) as (child, warning):
        assert warning.startswith("Warning: 0.0.0.0 is reachable from the network without a proxy")
        assert greeted(child.stdout).startswith("Serving people at https://0.0.0.0:")
    assert json.loads(log.read_text().splitlines()[0])["message"] == warning[len("Warning: ") : -1]


@pytest.mark.parametrize("options", [{}, {"host": "0.0.0.0", "behind_proxy": True}])
def test_a_loopback_address_or_a_proxy_is_served_without_a_warning(tmp_path, options):
    with process(write_dataset(tmp_path), **options) as (_, greeting):
        assert greeting.startswith("Serving people at http://")


def test_a_port_in_use_is_told(tmp_path):
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            ConfigError, match=rf"Cannot listen on 127\.0\.0\.1:{port}: address already in use\."
        ):
            serve([write_dataset(tmp_path)], port=port)


@pytest.mark.parametrize(
    ("host", "port"),
    [("127.0.0.1", 70_000), ("127.0.0.1", -1), ("no such host", 80), ("127.0.0.1\0", 80)],
)
def test_what_is_no_address_is_told(host, port):
    with pytest.raises(ConfigError, match="Invalid address"):
        bind(host, port)


@pytest.mark.parametrize(
    ("cert", "key", "says"),
    [
        (CERT, None, "needs a certificate and its key"),
        (None, KEY, "needs a certificate and its key"),
        (KEY, CERT, "are not a certificate and its key"),
        (CERT, CERT, "are not a certificate and its key"),
        (CERT, HERE / "no-such.key", "Cannot read the certificate or its key: No such file"),
    ],
)
def test_a_bad_certificate_is_told(tmp_path, cert, key, says):
    with pytest.raises(ConfigError, match=says):
        serve([write_dataset(tmp_path)], port=0, tls_cert=cert, tls_key=key)


def test_a_log_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(ConfigError, match="Cannot write the log"):
        serve([write_dataset(tmp_path)], port=0, log=str(tmp_path / "none" / "log"))


def test_a_file_that_means_nothing_ends_with_a_sentence_and_nothing_listens(tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text("[dataset]\n")
    with process(bad) as (child, greeting):
        assert greeting == ""
        assert "Traceback" not in (said := child.stderr.read())
        assert "bad.toml: " in said
        assert child.wait(60) == 2


def test_while_it_opens_it_is_alive_and_not_ready(tmp_path):
    path, go_on = write_dataset(tmp_path), threading.Event()
    asked: list[httpx.Response] = []
    listening: list[socket.socket] = []

    def slowly():
        go_on.wait(60)
        return DatasetRegistry.open([path])

    def look():
        try:
            url = f"http://127.0.0.1:{listening[0].getsockname()[1]}"
            with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
                asked.extend(client.get(path) for path in ("/healthz", "/readyz", "/v1/datasets"))
        finally:
            go_on.set()

    def bound(at):
        listening.append(at)
        looking.start()

    looking = threading.Thread(target=look)
    with running(open_registry=slowly, bound=bound) as server:
        looking.join()
        assert asked[0].status_code == 200
        problem(asked[1], 503, "service.closed")
        problem(asked[2], 503, "service.closed")
        assert server.client().get("/readyz").status_code == 200


def test_long_polls_and_streams_end_with_a_message_before_the_registry_is_closed(tmp_path, monkeypatch):
    close, all_told = DatasetRegistry.close, threading.Event()

    def last(registry):
        assert all_told.wait(60)
        close(registry)

    monkeypatch.setattr(DatasetRegistry, "close", last)
    with running(write_dataset(tmp_path, scheduler="round-robin")) as server:
        ann = server.analyst("ann")
        ann.ask()
        ticket = ann.ask().headers["location"]
        found = {}

        def watch(rest, params):
            found[rest] = ann.client.get(f"{ticket}{rest}", params=params)

        watching = [
            threading.Thread(target=watch, args=given) for given in (("", {"wait": 60}), ("/events", {}))
        ]
        for thread in watching:
            thread.start()
        window = server.state.datasets["people"]
        comes_true(lambda: sum(window.watchers.values()) == 2)
        server.server.should_exit = True
        for thread in watching:
            thread.join(60)
        all_told.set()
        problem(found[""], 503, "service.closed")
        *_, event, data = found["/events"].text.split("\n")[:-2]
        assert (event, json.loads(data.removeprefix("data: "))["code"]) == (
            "event: closed",
            "service.closed",
        )


def test_what_was_handed_in_is_answered_before_the_end(tmp_path):
    with running(write_dataset(tmp_path)) as server:
        ann = server.analyst("ann")
        replies = []
        asking = threading.Thread(target=lambda: replies.append(ann.ask()))
        slots = server.state.datasets["people"].slots
        with held(server.registry.datasets["people"]):
            asking.start()
            comes_true(lambda: len(slots) == 1)
            server.server.should_exit = True
            comes_true(lambda: not any(each.is_serving() for each in server.server.servers))
        asking.join()
    assert replies[0].json()["state"] == "answered"


def test_a_ledger_in_use_is_told(tmp_path):
    path = write_dataset(tmp_path)
    with DatasetRegistry.open([path]), pytest.raises(LedgerInUse), running(path):
        pass


def test_a_server_computes_with_one_thread_of_linear_algebra(monkeypatch):
    """And leaves the process as it was."""
    seen: list[list[int]] = []

    class Recorded:
        def run(self, sockets):
            seen.append(threads())

    def threads() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    monkeypatch.setattr("sharewell.service.http.server.make_server", lambda app, tls: Recorded())
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        serve([], port=0, echo=lambda message: None)
        assert threads() == before
    assert seen
    assert set(seen[0]) == {1}
