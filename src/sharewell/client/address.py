"""Addresses: where a service is, and whether a token may be sent there."""

from __future__ import annotations

import ipaddress
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sharewell.errors import RequestError, UnknownToken


@dataclass(frozen=True)
class Address:
    """Where a service is, without a slash at its end."""

    scheme: str
    host: str
    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def loopback(self) -> bool:
        """Whether it is this machine, as can be told without asking anybody for a name."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def read_address(url: str | None, *, allow_http: bool = False) -> Address:
    """An address that a token may be sent to; without one, that of SHAREWELL_URL.

    >>> str(read_address("https://stats.example.org/"))
    'https://stats.example.org'
    """
    url = os.environ.get("SHAREWELL_URL", "") if url is None else url
    if not url.strip():
        raise RequestError(
            "There is no address to connect to.", hint="Give a url, or set SHAREWELL_URL to one."
        )
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in {"http", "https"} or not host:
        raise RequestError(
            f"{_without_password(url)!r} is no address of a service.",
            hint="Write one such as https://stats.example.org or http://127.0.0.1:8000.",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise RequestError(
            "The address has more than a host and a path.",
            hint="Leave out names, passwords, ? and #; the token is given by itself.",
        )
    address = Address(parts.scheme, host, f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/"))
    if address.scheme == "http" and not address.loopback and not allow_http:
        raise RequestError(
            f"A token would go to {host} where anybody on the way can read it.",
            hint="Use https, or say allow_http=True where the way is safe.",
        )
    return address


def read_token(token: str | None) -> str:
    """A token that can be sent; without one, that of SHAREWELL_TOKEN. No message shows it."""
    token = os.environ.get("SHAREWELL_TOKEN", "") if token is None else token
    token = token.strip()
    if not token:
        raise UnknownToken(
            "There is no token.",
            hint="Give the one that the curator has given you, or set SHAREWELL_TOKEN to it.",
        )
    if not all("!" <= letter <= "~" for letter in token):
        raise UnknownToken(
            "What was given as a token is none.", hint="A token has no blanks and only ASCII letters."
        )
    return token


def read_verify(verify: bool | str | Path | ssl.SSLContext) -> bool | ssl.SSLContext:
    """Whose certificates to trust: those of the system, of a file, or of a context."""
    if verify is True or isinstance(verify, ssl.SSLContext):
        return verify
    if verify is False:
        raise RequestError(
            "A token is not sent to a server that may be anybody.",
            hint="Give the server's certificate, or that of its authority: verify='ca.pem'.",
        )
    try:
        return ssl.create_default_context(cafile=str(verify))
    except OSError:
        raise RequestError(
            f"{str(verify)!r} holds no certificates that can be read.", hint="Give a PEM file."
        ) from None


def _without_password(url: str) -> str:
    """A url as it may be shown: what stands before an @ may be secret."""
    return url.rpartition("@")[2]
