"""Transports: HTTP from threads, HTTP from an event loop, and a service in this process."""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Literal

import httpx
from pydantic import ValidationError

from sharewell import __version__, wire
from sharewell.client.retry import ApiCall, M, TransientFailure
from sharewell.errors import Paused, SharewellError, Suggestion, TooMany, Unreachable

if TYPE_CHECKING:
    from sharewell.client.connection import Address
    from sharewell.service.dataset import DatasetService

#: Seconds to establish a connection.
CONNECT_TIMEOUT = 5.0

#: Status codes of failures that a retry may fix. An unexpected error is retried for a question with a
#: key only: it may have been charged, and then its answer is stored.
RETRYABLE = frozenset({429, 502, 503, 504})
UNEXPECTED = 500


class _HttpCodec:
    """Converts calls to HTTP requests, and HTTP responses to messages and errors."""

    def __init__(self, address: Address) -> None:
        self.address = address

    def __repr__(self) -> str:
        return f"at {self.address}"

    def client_options(self, token: str, verify: ssl.SSLContext | bool) -> dict[str, Any]:
        """Return the options of the httpx client; its repr does not show the token."""
        return {
            "headers": {
                "Authorization": f"Bearer {token}",
                "Accept": "application/json",
                "User-Agent": f"sharewell/{__version__}",
            },
            # Loading the system's certificates is slow; over plain http none are needed.
            "verify": verify
            if self.address.scheme == "https"
            else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            # A redirect would send the SQL, and perhaps the token, to an address that was not given.
            "follow_redirects": False,
            # A proxy of the environment must not see requests to this machine.
            "trust_env": not self.address.loopback,
        }

    def encode(self, call: ApiCall[M]) -> dict[str, Any]:
        """Return the arguments of `httpx.Client.request`."""
        request: dict[str, Any] = {
            "method": call.method,
            "url": f"{self.address.url}{call.path}",
            "params": dict(call.params),
            "timeout": httpx.Timeout(call.timeout, connect=min(CONNECT_TIMEOUT, call.timeout)),
        }
        if call.body is not None:
            request["content"] = call.body.model_dump_json()
            request["headers"] = {"Content-Type": "application/json"}
        return request

    def decode(self, call: ApiCall[M], response: httpx.Response) -> M:
        """Return the message of a response, or raise its error."""
        if not response.is_success:
            raise self._refusal(call, response)
        try:
            return call.parse(response.content)
        except ValidationError:
            raise self._unknown_server(response) from None

    def failure(self, error: httpx.HTTPError) -> Exception:
        """Return the error of a request without a response."""
        if _is_unverified(error):
            return Unreachable(
                f"Cannot verify the certificate of {self.address}.",
                hint="For a private certificate authority, give a PEM file with its certificates.",
                suggestion=Suggestion("verify", "ca.pem"),
            )
        if isinstance(error, httpx.ReadTimeout):
            slow = Unreachable(
                f"The server at {self.address} has not replied in time.",
                hint="It may still execute the request: check before you repeat it. "
                "A question can be asked again with its key.",
            )
            return TransientFailure(slow)
        reason = re.sub(r"^\[Errno -?\d+\] ", "", str(error)).rstrip(".") or type(error).__name__
        reason = reason[0].lower() + reason[1:]
        unreachable = Unreachable(
            f"Cannot reach a server at {self.address}: {reason}.",
            hint="Check the address, and that the server is running.",
        )
        if not isinstance(error, httpx.TransportError):
            return unreachable
        not_connected = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
        return TransientFailure(unreachable, not_executed=not_connected)

    def _refusal(self, call: ApiCall[M], response: httpx.Response) -> Exception:
        error, status = self._error(response), response.status_code
        retryable = status in RETRYABLE or (status == UNEXPECTED and call.keyed)
        # A curator's pause does not end within a minute.
        if not retryable or isinstance(error, Paused):
            return error
        # A failing ledger may still have stored the event, and a proxy's error page does not say whether
        # the server executed the request. An error of the service itself does.
        of_service = error.code.startswith("service.") and not isinstance(error, Unreachable)
        not_executed = isinstance(error, TooMany) or of_service
        return TransientFailure(error, after=retry_after(response.headers), not_executed=not_executed)

    def _error(self, response: httpx.Response) -> SharewellError:
        try:
            error = wire.Problem.model_validate_json(response.content).to_error()
        except ValidationError:
            return self._unknown_server(response)
        error.request_id = error.request_id or response.headers.get("x-request-id")
        return error

    def _unknown_server(self, response: httpx.Response) -> Unreachable:
        kind = response.headers.get("content-type", "").partition(";")[0] or "no content type"
        location = response.headers.get("location", "")
        return Unreachable(
            f"The server at {self.address} is not a Sharewell server: "
            f"status {response.status_code}, {kind}.",
            hint=f"It redirects to {location}." if location else "Check the address.",
        )


class HttpTransport(_HttpCodec):
    """Sends calls over HTTP; safe for use by many threads."""

    def __init__(self, address: Address, token: str, verify: ssl.SSLContext | bool) -> None:
        super().__init__(address)
        self._client = httpx.Client(**self.client_options(token, verify))

    def send(self, call: ApiCall[M]) -> M:
        """Send a call and return its response."""
        try:
            response = self._client.request(**self.encode(call))
        except httpx.HTTPError as error:
            raise self.failure(error) from error
        return self.decode(call, response)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class AsyncHttpTransport(_HttpCodec):
    """Sends calls over HTTP from an event loop."""

    def __init__(self, address: Address, token: str, verify: ssl.SSLContext | bool) -> None:
        super().__init__(address)
        self._client = httpx.AsyncClient(**self.client_options(token, verify))

    async def send(self, call: ApiCall[M]) -> M:
        """Send a call and return its response."""
        try:
            response = await self._client.request(**self.encode(call))
        except httpx.HTTPError as error:
            raise self.failure(error) from error
        return self.decode(call, response)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class LocalTransport:
    """Makes calls to a `DatasetService` in this process, as an analyst or as a curator."""

    def __init__(
        self, service: DatasetService, name: str, role: Literal["analyst", "curator"] = "analyst"
    ) -> None:
        self.service = service
        self.name = name
        self.role = role

    def send(self, call: ApiCall[M]) -> M:
        """Make a call and return its response."""
        response = call.local(self)
        # Through JSON and back, so that labels and numbers are the same over every transport.
        return call.parse(b"" if response is None else response.model_dump_json().encode())

    def close(self) -> None:
        """Close the service and its ledger."""
        self.service.close()

    def __repr__(self) -> str:
        return "in this process"

    def datasets(self) -> wire.DatasetList:
        """Return the one dataset."""
        return wire.DatasetList(datasets=(self.service.name,), name=self.name, role=self.role)

    def ask(self, question: wire.Question) -> wire.Ticket:
        """Submit a question; return its ticket once it is answered or queued."""
        submission = self.service.submit(self.name, question.sql, pay=question.pay, key=question.key)
        submission.wait_until_ready()
        return self.service.describe(submission)

    def ticket(self, number: int, wait: float) -> wire.Ticket:
        """Return a ticket as soon as its question has ended or `wait` seconds have passed."""
        submission = self.service.submission(self.name, number)
        with suppress(TimeoutError):
            submission.outcome(wait)
        return self.service.describe(submission)

    def certificate(self) -> wire.CertificateReport:
        """Return the certificate, up to the last entry of the ledger."""
        analyst = self.name if self.role == "analyst" else None
        return self.service.certificate(analyst, up_to_date=True)


#: The transports of sessions without an event loop.
Transport = HttpTransport | LocalTransport


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds of a Retry-After header, which may also hold a date."""
    text = headers.get("retry-after", "").strip()
    if text.replace(".", "", 1).isdecimal():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return 0.0


def _is_unverified(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
