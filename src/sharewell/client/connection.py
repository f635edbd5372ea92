"""Opening sessions: where the service is, whether a token may be sent there, and as whom."""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sharewell.client.api import Api
from sharewell.client.retry import RetryPolicy
from sharewell.client.session import AsyncCuratorSession, AsyncSession, CuratorSession, Session
from sharewell.client.transport import AsyncHttpTransport, HttpTransport, LocalTransport
from sharewell.errors import RequestError, Suggestion, UnknownToken, advice

if TYPE_CHECKING:
    from sharewell.service.dataset import DatasetService

Verify = bool | str | Path | ssl.SSLContext


def connect(
    url: str | None = None,
    token: str | None = None,
    *,
    verify: Verify = True,
    allow_http: bool = False,
    timeout: float = 15.0,
    retry_for: float = 60.0,
) -> Session:
    """Connect to a server as an analyst, and check the token.

    `url` and `token` default to SHAREWELL_URL and SHAREWELL_TOKEN. `verify` may name a PEM file with the
    certificates of a private authority. A token is sent over plain http to this machine only, unless
    `allow_http` is true. Requests that fail or take longer than `timeout` seconds are retried for up to
    `retry_for` seconds.
    """
    policy, server = _read_server(url, token, verify, allow_http, timeout, retry_for)
    return Session(Api(policy, "analyst"), HttpTransport(*server)).open()


def connect_curator(
    url: str | None = None,
    token: str | None = None,
    *,
    verify: Verify = True,
    allow_http: bool = False,
    timeout: float = 15.0,
    retry_for: float = 60.0,
) -> CuratorSession:
    """Connect to a server as a curator; see `connect`."""
    policy, server = _read_server(url, token, verify, allow_http, timeout, retry_for)
    return CuratorSession(Api(policy, "curator"), HttpTransport(*server)).open()


def connect_async(
    url: str | None = None,
    token: str | None = None,
    *,
    verify: Verify = True,
    allow_http: bool = False,
    timeout: float = 15.0,
    retry_for: float = 60.0,
) -> AsyncSession:
    """Connect to a server from an event loop, with `async with`; see `connect`.

    Nothing is sent before the session is entered or first used.
    """
    policy, server = _read_server(url, token, verify, allow_http, timeout, retry_for)
    return AsyncSession(Api(policy, "analyst"), AsyncHttpTransport(*server))


def connect_curator_async(
    url: str | None = None,
    token: str | None = None,
    *,
    verify: Verify = True,
    allow_http: bool = False,
    timeout: float = 15.0,
    retry_for: float = 60.0,
) -> AsyncCuratorSession:
    """Connect to a server from an event loop as a curator; see `connect_async`."""
    policy, server = _read_server(url, token, verify, allow_http, timeout, retry_for)
    return AsyncCuratorSession(Api(policy, "curator"), AsyncHttpTransport(*server))


def _read_server(
    url: str | None,
    token: str | None,
    verify: Verify,
    allow_http: bool,
    timeout: float,
    retry_for: float,
) -> tuple[RetryPolicy, tuple[Address, str, bool | ssl.SSLContext]]:
    """Check the arguments of `connect`; return the retry policy and the arguments of a transport."""
    address = read_address(url, allow_http=allow_http)
    return RetryPolicy(retry_for, timeout), (address, read_token(token), read_verify(verify))


def begin(path: str | Path) -> None:
    """Begin the dataset of a `sharewell.toml`, once: create its ledger and its witness.

    Raises ConfigError if `sharewell check` finds errors, LedgerError if its source was begun before, and
    SourceError if it has more rows than `dataset.max_rows`.
    """
    from sharewell.config import read_config
    from sharewell.config.check import require_valid
    from sharewell.service import lifecycle

    config = read_config(path)
    require_valid(config)
    lifecycle.begin(config)


def open(path: str | Path, analyst: str | None = None, *, temporary: bool = False) -> Session:
    """Open a `sharewell.toml` in this process, without a server, as one of its analysts.

    The dataset must have been begun. The session writes to its ledger and locks it until it is closed:
    what it spends is spent, and no server can serve the dataset meanwhile. With `temporary`, it has a
    new ledger instead, which is deleted at the end; use that with made-up rows only.
    """
    service = _open_service(path, temporary)
    try:
        name = choose_analyst(analyst, service.analyst_names)
    except BaseException:
        service.close()
        raise
    return Session(Api(role="analyst"), LocalTransport(service, name)).open()


def open_curator(path: str | Path, *, temporary: bool = False) -> CuratorSession:
    """Open a `sharewell.toml` in this process as its curator; see `open`."""
    service = _open_service(path, temporary)
    transport = LocalTransport(service, service.config.service.curators[0], "curator")
    return CuratorSession(Api(role="curator"), transport).open()


def _open_service(path: str | Path, temporary: bool) -> DatasetService:
    from sharewell.config import read_config
    from sharewell.service.dataset import DatasetService

    return DatasetService.open(read_config(path), temporary=temporary)


def choose_analyst(analyst: str | None, analysts: Sequence[str]) -> str:
    """Return the analyst's name; the only analyst need not be named."""
    if analyst is not None and analyst in analysts:
        return analyst
    if not analysts:
        raise RequestError("The dataset has no analysts.", hint="A curator can add one.")
    names = ", ".join(analysts)
    if analyst is not None:
        otherwise = f"The analysts are {names}."
        raise RequestError(
            f"Unknown analyst {analyst!r}.", **advice(analyst, analysts, "analyst", otherwise)
        )
    if len(analysts) != 1:
        raise RequestError(
            f"The dataset has {len(analysts)} analysts: {names}.",
            hint="Name the analyst who asks.",
            suggestion=Suggestion("analyst", analysts[0]),
        )
    return analysts[0]


@dataclass(frozen=True)
class Address:
    """The base URL of a server, without a trailing slash."""

    scheme: str
    host: str
    url: str

    def __str__(self) -> str:
        return self.url

    @property
    def loopback(self) -> bool:
        """Whether it is certain, without a name lookup, that this is the local machine."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def read_address(url: str | None, *, allow_http: bool = False) -> Address:
    """Parse the URL, or SHAREWELL_URL, of a server that a token may be sent to.

    >>> str(read_address("https://stats.example.org/"))
    'https://stats.example.org'
    """
    url = os.environ.get("SHAREWELL_URL", "") if url is None else url
    if not url.strip():
        raise RequestError("No server address given.", hint="Give a URL, or set SHAREWELL_URL.")
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in {"http", "https"} or not host:
        # The part before an @ may be a password.
        raise RequestError(
            f"Invalid server address {url.rpartition('@')[2]!r}.",
            hint="Write an address such as https://stats.example.org or http://127.0.0.1:8080.",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise RequestError(
            "A server address may contain only a host, a port and a path.",
            hint="Remove user names, passwords, queries and fragments; give the token separately.",
        )
    address = Address(parts.scheme, host, f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/"))
    if address.scheme == "http" and not address.loopback and not allow_http:
        raise RequestError(
            f"Refusing to send a token to {host} over plain http, where it can be read in transit.",
            hint="Use https, or allow plain http explicitly on a trusted network.",
            suggestion=Suggestion("allow_http", "True"),
        )
    return address


def read_token(token: str | None) -> str:
    """Check the token, or SHAREWELL_TOKEN. No message contains it."""
    token = os.environ.get("SHAREWELL_TOKEN", "") if token is None else token
    token = token.strip()
    if not token:
        raise UnknownToken(
            "No token given.", hint="Give the token from your curator, or set SHAREWELL_TOKEN."
        )
    if not all("!" <= letter <= "~" for letter in token):
        raise UnknownToken(
            "The token is malformed.", hint="A token has only ASCII characters and no spaces."
        )
    return token


def read_verify(verify: Verify) -> bool | ssl.SSLContext:
    """Return the certificates to trust: the system's, those of a PEM file, or a context."""
    if verify is True or isinstance(verify, ssl.SSLContext):
        return verify
    if verify is False:
        raise RequestError(
            "Certificate verification cannot be switched off: the token could go to any server.",
            hint="Give a PEM file with the certificate of the server or of its authority.",
            suggestion=Suggestion("verify", "ca.pem"),
        )
    try:
        return ssl.create_default_context(cafile=str(verify))
    except OSError:
        raise RequestError(
            f"Cannot read certificates from {str(verify)!r}.", hint="Give a PEM file."
        ) from None
