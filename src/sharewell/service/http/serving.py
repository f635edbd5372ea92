"""Serving: from files to a running server, and to its end."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import ssl
import time
from collections.abc import Callable, Collection, Sequence
from ipaddress import ip_address
from pathlib import Path
from types import FrameType

import typer
import uvicorn

from sharewell.collector import stay_calm
from sharewell.errors import ConfigError
from sharewell.service.desk import Desk
from sharewell.service.house import House
from sharewell.service.http.app import App, create_app
from sharewell.service.http.logs import open_log
from sharewell.service.http.protocol import CarefulProtocol

#: How often the log is written, in seconds.
LOG_EVERY = 0.1
#: What takes longer to open than this, in seconds, is told in the log.
SLOW = 1.0
LOGGERS = ("uvicorn.error", "sharewell", "asyncio")


def serve(
    paths: Sequence[str | Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
    behind_proxy: bool = False,
    allowed_hosts: Collection[str] = (),
    log: str | None = None,
) -> None:
    """Serve every dataset that has a file here, until the process is told to end.

    `log` names a file that gets a line of JSON for every request; stderr if left out. Loopback
    addresses only, unless there is a certificate, or a proxy in front that has one.
    """
    tls = _tls(tls_cert, tls_key)
    if not _is_loopback(host) and tls is None and not behind_proxy:
        raise ConfigError(
            f"Tokens and answers would go over the network in the clear, from {host}.",
            hint="Give a certificate with --tls-cert and --tls-key; or say --behind-proxy where a proxy "
            "in front does it; or serve 127.0.0.1 only.",
        )
    stay_calm()
    written = open_log(log)
    handler = written.collect(*LOGGERS)
    listening = bind(host, port)
    try:
        app = create_app(
            None,
            log=written,
            allowed_hosts=_hosts(host, allowed_hosts, behind_proxy),
            behind_proxy=behind_proxy,
        )
        address = _address(listening, host, tls is not None)
        server = Server(app, lambda: House.open(paths, wait=True), lambda house: _greet(address, house))
        server.config.ssl = tls
        server.run(sockets=[listening])
        if server.failure is not None:
            raise server.failure
        typer.echo("Closed. All that was asked is in the ledger.")
    finally:
        listening.close()
        handler.leave(*LOGGERS)
        written.flush()


class Server(uvicorn.Server):
    """Uvicorn's server, which opens a house when it has begun to listen, and closes it in the end."""

    def __init__(
        self,
        app: App,
        open_house: Callable[[], House],
        opened: Callable[[House], None] = lambda house: None,
        *,
        protocol: type[CarefulProtocol] = CarefulProtocol,
    ) -> None:
        config = uvicorn.Config(
            app,
            http=protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
        )
        config.load()
        super().__init__(config)
        #: Why the house could not be opened, or not be closed.
        self.failure: BaseException | None = None
        self._reception = app.reception
        self._open_house = open_house
        self._opened = opened
        self._house: House | None = None
        self._opening: asyncio.Task[None] | None = None
        self._writing: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and open the house meanwhile."""
        await super().startup(sockets)
        self._writing = asyncio.create_task(self._write_log())
        self._opening = asyncio.create_task(self._open())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take nothing new, finish what was handed in, reply to everybody, and end."""
        if self._house is not None:
            self._note("closing")
        self._reception.close()
        closing = asyncio.create_task(self._close())
        await super().shutdown(sockets)
        await closing
        if self._house is not None:
            self._note("closed")
        if self._writing is not None:
            self._writing.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End in good order at the first signal; at once at a second Ctrl-C.

        What was charged is in the ledger before anything is done for it, so that nothing is lost.
        """
        if self.should_exit and sig == signal.SIGINT:
            os._exit(130)
        self.should_exit = True

    async def _open(self) -> None:
        # With many rows, or a long ledger, this takes a while.
        begun = time.perf_counter()
        slow = asyncio.get_running_loop().call_later(SLOW, self._opens_slowly)
        try:
            self._house = await asyncio.to_thread(self._open_house)
            self._reception.open(self._house)
            self._note("open", seconds=round(time.perf_counter() - begun, 3))
            self._opened(self._house)
        except Exception as error:
            self.failure = error
            self.should_exit = True
        finally:
            slow.cancel()

    def _opens_slowly(self) -> None:
        typer.echo("Opening: the rows are read, and the first time the seed is measured ...")
        self._note("opening")

    async def _close(self) -> None:
        if self._opening is not None:
            await self._opening
        try:
            if self._house is not None:
                await asyncio.to_thread(self._house.close)
        except Exception as error:
            self.failure = self.failure or error

    async def _write_log(self) -> None:
        while True:
            await asyncio.sleep(LOG_EVERY)
            self._reception.log.flush()

    def _note(self, event: str, **fields: float) -> None:
        self._reception.log.write(event, **fields)
        self._reception.log.flush()


def bind(host: str, port: int) -> socket.socket:
    """A socket at an address; refused in words where it cannot be had."""
    try:
        if not 0 <= port <= 65_535 or "\0" in host:
            raise OSError
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.socket(found[0], socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ConfigError(
            f"{host!r}, port {port}, is no address.", hint="Use 127.0.0.1 and a port from 1 to 65535."
        ) from None
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(found[4])
        return listening
    except OSError as error:
        listening.close()
        raise _no_port(host, port, error) from None


def _no_port(host: str, port: int, error: OSError) -> ConfigError:
    if error.errno == errno.EADDRINUSE:
        return ConfigError(
            f"Port {port} of {host} is in use.",
            hint="Choose another with --port, or stop what runs there.",
        )
    if error.errno == errno.EACCES:
        return ConfigError(
            f"Port {port} of {host} is not for this user.", hint="Choose one above 1023 with --port."
        )
    return ConfigError(
        f"There is no listening at {host}, port {port}.",
        hint="Use an address of this machine, and a port from 1 to 65535.",
    )


def _tls(cert: str | Path | None, key: str | Path | None) -> ssl.SSLContext | None:
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise ConfigError(
            "TLS needs a certificate and its key.", hint="Give both --tls-cert and --tls-key."
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        # Whoever runs a service is not there to type a password when it starts again.
        context.load_cert_chain(cert, key, password=lambda: "")
    except ssl.SSLError:
        raise ConfigError(
            f"{cert} and {key} are not a certificate and its key.",
            hint="Both are PEM files: the certificate first in its file, the key without a password.",
        ) from None
    except OSError as error:
        raise ConfigError(
            f"The certificate or its key cannot be read: {error.strerror}.",
            hint=f"Look whether {cert} and {key} are there, and whose they are.",
        ) from None
    return context


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _hosts(host: str, allowed: Collection[str], behind_proxy: bool) -> set[str] | None:
    """The names that requests may call us by; None: any.

    A page from anywhere can make a browser on this machine talk to a loopback address under a name of
    its own (DNS rebinding). Nobody can do that with a certificate that is not ours, and a proxy knows
    which names it serves.
    """
    if not allowed and (behind_proxy or not _is_loopback(host)):
        return None
    own = f"[{host}]" if ":" in host else host
    return {"localhost", "127.0.0.1", "[::1]", own, *allowed}


def _address(listening: socket.socket, host: str, tls: bool) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if tls else 'http'}://{shown}:{listening.getsockname()[1]}"


def _greet(address: str, house: House) -> None:
    """Say where the service is, what it serves, and who cannot come in yet."""
    typer.echo(f"Sharewell serves {', '.join(house.names)} at {address}; {address}/docs shows how.")
    for name in house.names:
        desk = house.desk(name)
        for person in _without_token(desk):
            make = f"sharewell token {person} --config {desk.config.path}"
            typer.echo(f"{person} has no token for {name} yet: {make}")


def _without_token(desk: Desk) -> list[str]:
    known = {(holder.name, holder.role) for holder in desk.access.holders}
    people = [(name, "analyst") for name in desk.broker.analysts]
    people += [(name, "curator") for name in desk.config.service.curators]
    return [name for name, role in people if (name, role) not in known]
