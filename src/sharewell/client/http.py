"""Over HTTP: the transports of sessions with a service elsewhere, in threads and in event loops."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
from pydantic import ValidationError

from sharewell import __version__, wire
from sharewell.client.address import Address
from sharewell.client.call import Call, M
from sharewell.client.problems import as_error
from sharewell.client.retry import Setback
from sharewell.errors import Paused, SharewellError, TooMany, Unreachable

#: Seconds until it is given up that anything answers at an address.
TO_CONNECT = 5.0

#: Statuses of what may go well later.
LATER = frozenset({429, 502, 503, 504})


class Http:
    """Sends calls, one at a time or from many threads."""

    def __init__(self, address: Address, token: str, verify: ssl.SSLContext | bool) -> None:
        self._exchange = Exchange(address)
        self._client = httpx.Client(**_options(address, token, verify))

    def send(self, call: Call[M]) -> M:
        """Send a call, and read its reply."""
        try:
            response = self._client.request(**self._exchange.request(call))
        except httpx.HTTPError as error:
            raise self._exchange.failure(error) from error
        return self._exchange.reply(call, response)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __repr__(self) -> str:
        return f"at {self._exchange.address}"


class AsyncHttp:
    """Sends calls from an event loop."""

    def __init__(self, address: Address, token: str, verify: ssl.SSLContext | bool) -> None:
        self._exchange = Exchange(address)
        self._client = httpx.AsyncClient(**_options(address, token, verify))

    async def send(self, call: Call[M]) -> M:
        """Send a call, and read its reply."""
        try:
            response = await self._client.request(**self._exchange.request(call))
        except httpx.HTTPError as error:
            raise self._exchange.failure(error) from error
        return self._exchange.reply(call, response)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def __repr__(self) -> str:
        return f"at {self._exchange.address}"


def _options(address: Address, token: str, verify: ssl.SSLContext | bool) -> dict[str, Any]:
    """How both clients are set up. The token is kept in their headers only, which do not show it."""
    return {
        "headers": {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json",
            "User-Agent": f"sharewell/{__version__}",
        },
        # Reading the system's certificates takes a while; where none are needed, nobody is trusted.
        "verify": verify if address.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        # A redirection would carry the question, and perhaps the token, to an address nobody has named.
        "follow_redirects": False,
        # Nor may a proxy of the environment see what is meant for this machine.
        "trust_env": not address.loopback,
    }


@dataclass(frozen=True)
class Exchange:
    """How a call becomes a request, and a response a reply or an error."""

    address: Address

    def request(self, call: Call[M]) -> dict[str, Any]:
        """The request of a call."""
        request: dict[str, Any] = {
            "method": call.method,
            "url": f"{self.address}{call.path}",
            "params": dict(call.params),
            "timeout": httpx.Timeout(call.timeout, connect=min(TO_CONNECT, call.timeout)),
        }
        if call.body is not None:
            request["content"] = call.body.model_dump_json()
            request["headers"] = {"Content-Type": "application/json"}
        return request

    def reply(self, call: Call[M], response: httpx.Response) -> M:
        """What a response says; an error is raised."""
        if not response.is_success:
            raise self._refusal(response)
        try:
            return call.read(response.content)
        except ValidationError:
            raise self._stranger(response) from None

    def failure(self, error: httpx.HTTPError) -> Exception:
        """What to raise where there is no response."""
        if _unverified(error):
            return Unreachable(
                f"The certificate of {self.address} cannot be verified.",
                hint="Give the certificates of your own authority as verify='ca.pem'.",
            )
        if isinstance(error, httpx.ReadTimeout):
            slow = Unreachable(
                f"The service at {self.address} has not replied in time.",
                hint="It may still be at work, and do what it was asked: look before you try again. "
                "A question can be asked again with its key.",
            )
            return Setback(slow, untouched=False)
        told = Unreachable(
            f"No service answers at {self.address}: {str(error).rstrip('.') or type(error).__name__}.",
            hint="Check the address, and that the server runs.",
        )
        if not isinstance(error, httpx.TransportError):
            return told
        return Setback(told, untouched=isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)))

    def _refusal(self, response: httpx.Response) -> Exception:
        error = self._told(response)
        # Somebody has paused the dataset, and will not let it go on in a minute.
        if response.status_code not in LATER or isinstance(error, Paused):
            return error
        # A ledger that fails may yet have stored what it was given; the service itself would say so.
        # A proxy's own page says nothing of what became of the request behind it.
        ours = error.code.startswith("service.") and not isinstance(error, Unreachable)
        untouched = isinstance(error, TooMany) or ours
        return Setback(error, after=retry_after(response.headers), untouched=untouched)

    def _told(self, response: httpx.Response) -> SharewellError:
        try:
            problem = wire.Problem.model_validate_json(response.content)
        except ValidationError:
            return self._stranger(response)
        error = as_error(problem)
        if problem.request_id is None:
            error.request_id = response.headers.get("x-request-id")
        return error

    def _stranger(self, response: httpx.Response) -> Unreachable:
        kind = response.headers.get("content-type", "").partition(";")[0] or "no type"
        elsewhere = response.headers.get("location", "")
        return Unreachable(
            f"What answers at {self.address} is no Sharewell service: "
            f"status {response.status_code}, {kind}.",
            hint=f"It points to {elsewhere}." if elsewhere else "Check the address.",
        )


def retry_after(headers: Mapping[str, str]) -> float:
    """How many seconds the service asks to be left alone; it may also name a date."""
    told = headers.get("retry-after", "").strip()
    if told.replace(".", "", 1).isdecimal():
        return float(told)
    try:
        return max(0.0, parsedate_to_datetime(told).timestamp() - time.time())
    except ValueError:
        return 0.0


def _unverified(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
