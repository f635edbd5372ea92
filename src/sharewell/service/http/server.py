"""The server: from configuration files to a running process, and to its end."""

from __future__ import annotations

import errno
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import closing, suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from threading import Timer
from types import FrameType

import uvicorn
from fastapi import FastAPI
from threadpoolctl import threadpool_limits

from sharewell.errors import ConfigError, LedgerInUse
from sharewell.gc_tuning import tune_gc
from sharewell.service.http.app import create_app
from sharewell.service.http.log import open_log
from sharewell.service.registry import DatasetRegistry

#: How long an idle connection is kept, in seconds; longer than clients and proxies reuse theirs.
KEEP_ALIVE_SECONDS = 75
#: How long last responses may take when the server closes, and how long closing may take in all, in
#: seconds.
RESPONSE_SECONDS, CLOSING_SECONDS = 10, 20
#: How long to wait until another process has closed the ledger, and for how long at a time while
#: standing by, in seconds.
LEDGER_WAIT, STANDBY_WAIT = 30.0, 1.0
UNFINISHED = (
    "Closing took more than {seconds} seconds: a ledger does not respond, or questions take long. They "
    "are stored, and answered after the next start.\n"
)
NO_PROXY = (
    "{host} is reachable from the network without a proxy in front. The service does not limit slow or "
    "idle connections. Put nginx or Caddy in front and pass --behind-proxy."
)


def serve(
    paths: Sequence[str | Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
    behind_proxy: bool = False,
    allowed_hosts: Collection[str] = (),
    standby: bool = False,
    log: str | None = None,
    echo: Callable[[str], object] = print,
) -> None:
    """Serve one dataset for each configuration file until SIGTERM or Ctrl-C.

    With `standby`, it waits until the server that has the ledgers is gone, and then takes its place.
    `log` names a file for the log; stderr if omitted. `echo` prints messages for the operator. An
    address that other machines can reach needs a certificate, or a proxy that has one.
    """
    tls = _tls_context(tls_cert, tls_key)
    if not _is_loopback(host) and tls is None and not behind_proxy:
        raise ConfigError(
            f"Tokens and answers would leave {host} unencrypted.",
            hint="Pass --tls-cert and --tls-key; or --behind-proxy if a proxy in front speaks TLS; or "
            "listen on 127.0.0.1.",
        )
    tune_gc()
    raise_descriptor_limit()
    with (
        # Matrices here are small, and requests many: threads of the linear algebra would only compete.
        threadpool_limits(1),
        closing(open_log(log)) as request_log,
        request_log.capture_warnings(),
        bind(host, port) as listener,
    ):
        if not _is_loopback(host) and not behind_proxy:
            warning = NO_PROXY.format(host=host)
            echo(f"Warning: {warning}")
            request_log.write("warning", message=warning)

        def open_registry() -> DatasetRegistry:
            while True:
                try:
                    wait = STANDBY_WAIT if standby else LEDGER_WAIT
                    return DatasetRegistry.open(paths, wait=wait, plan=True)
                except LedgerInUse:
                    if not standby or app.state.sharewell.closing:
                        raise

        if standby:
            echo("Standing by: questions are answered once the other server is gone.")
        app = create_app(
            open_registry,
            log=request_log,
            allowed_hosts=_host_names(host, allowed_hosts, behind_proxy),
            behind_proxy=behind_proxy,
            on_open=partial(_announce, _url(listener, host, tls is not None), echo),
        )
        make_server(app, tls).run(sockets=[listener])
        failure = app.state.sharewell.failure
        if standby and isinstance(failure, LedgerInUse):
            echo("Closed. The other server has the ledger.")
            return
        if failure is not None:
            raise failure
        echo("Closed. All questions are in the ledger.")


class Server(uvicorn.Server):
    """uvicorn's server: the first signal closes it in order, a second Ctrl-C ends it at once.

    It ends in any case `CLOSING_SECONDS` after the first signal. Charges are in the ledger before data
    is touched, so nothing paid is lost.
    """

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Close, or end."""
        if self.should_exit and sig == signal.SIGINT:
            os._exit(130)
        if not self.should_exit:
            end = Timer(CLOSING_SECONDS, _end)
            end.daemon = True
            end.start()
        self.should_exit = True


def _end() -> None:
    """End the process, whatever its threads wait for."""
    sys.stderr.write(UNFINISHED.format(seconds=CLOSING_SECONDS))
    sys.stderr.flush()
    os._exit(1)


def make_server(app: FastAPI, tls: ssl.SSLContext | None = None) -> Server:
    """The server of an application."""
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=RESPONSE_SECONDS,
        ssl_context_factory=None if tls is None else lambda config, default: tls,
    )
    server = Server(config)
    app.state.sharewell.server = server
    return server


def raise_descriptor_limit() -> None:
    """Allow this process as many open files as the system permits: each connection needs one."""
    if sys.platform != "win32":
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to an address."""
    try:
        if not 0 <= port <= 65_535 or "\0" in host:
            raise OSError
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(found[0], socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ConfigError(
            f"Invalid address {host!r}, port {port}.", hint="Use 127.0.0.1 and a port from 1 to 65535."
        ) from None
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(found[4])
        return listener
    except OSError as error:
        listener.close()
        hints = {
            errno.EADDRINUSE: "Choose another port with --port, or stop the process that uses it.",
            errno.EACCES: "Choose a port above 1023 with --port.",
        }
        raise ConfigError(
            f"Cannot listen on {host}:{port}: {(error.strerror or 'unknown error').lower()}.",
            hint=hints.get(error.errno or 0, "Use an address of this machine."),
        ) from None


def _tls_context(cert: str | Path | None, key: str | Path | None) -> ssl.SSLContext | None:
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise ConfigError("TLS needs a certificate and its key.", hint="Pass --tls-cert and --tls-key.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        # A service that restarts has no one to type a password.
        context.load_cert_chain(cert, key, password=lambda: "")
    except ssl.SSLError:
        raise ConfigError(
            f"{cert} and {key} are not a certificate and its key.",
            hint="Both must be PEM files; the key must have no password.",
        ) from None
    except OSError as error:
        raise ConfigError(
            f"Cannot read the certificate or its key: {error.strerror}.",
            hint=f"Check that {cert} and {key} exist and are readable.",
        ) from None
    return context


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _host_names(host: str, allowed: Collection[str], behind_proxy: bool) -> set[str] | None:
    """The host names that requests may use; None allows any.

    On a loopback address, a web page could reach the service through the user's browser under a host
    name of its own (DNS rebinding). Elsewhere the certificate or the proxy rules that out.
    """
    if not allowed and (behind_proxy or not _is_loopback(host)):
        return None
    return {"localhost", "127.0.0.1", "[::1]", _bracketed(host), *allowed}


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _url(listener: socket.socket, host: str, tls: bool) -> str:
    return f"{'https' if tls else 'http'}://{_bracketed(host)}:{listener.getsockname()[1]}"


def _announce(url: str, echo: Callable[[str], object], registry: DatasetRegistry) -> None:
    """Print where the service is, its datasets, and who has no token yet."""
    names = ", ".join((*registry.datasets, *registry.planned))
    echo(f"Serving {names} at {url}; open it in a browser, or see {url}/docs for the API.")
    for name, planned in registry.planned.items():
        echo(
            f"{name} was never begun: curators can plan its settings there, and nothing else. "
            f"Then run: sharewell begin {planned.config.path}"
        )
    for name, service in registry.datasets.items():
        for principal in service.without_token():
            command = f"sharewell token {principal} --config {service.config.path}"
            echo(f"{principal} has no token for {name} yet. Run: {command}")
