"""Middleware for every request: its id, its host and size, safe headers, log line and metrics."""

from __future__ import annotations

import re
import secrets
import time

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sharewell import wire
from sharewell.errors import RequestError
from sharewell.service.http.dependencies import MAX_BODY_BYTES
from sharewell.service.http.errors import body_too_large, problem_response, unexpected_error
from sharewell.service.http.state import AppState
from sharewell.service.submissions import overloaded

#: A response is data, not a page: it must not run, be framed, be sniffed or be cached.
SAFE_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
OVERLOADED = wire.Problem.of(overloaded())
#: Recorded for a request whose client has gone; nothing is sent.
CLIENT_CLOSED = 499
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
#: The port of a Host header.
_PORT = re.compile(r":[0-9]+$", re.ASCII)


class RequestMiddleware:
    """Gives a request an id, its response safe headers; logs and counts it; hides unexpected errors.

    It refuses a foreign Host header, which prevents DNS rebinding, and a body that is too large by its
    declared length, for mounted applications, too; and questions that have waited for too long, before
    anything else is done for them: under overload, a refusal must cost little.
    """

    def __init__(self, app: ASGIApp, state: AppState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        headers = Headers(scope=scope)
        request_id = headers.get("x-request-id", "")
        if not _REQUEST_ID.fullmatch(request_id):
            request_id = secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message["headers"])
                present = {name for name, _ in headers}
                headers += [header for header in SAFE_HEADERS if header[0] not in present]
                headers.append((b"x-request-id", request_id.encode()))
                message["headers"] = headers
            await send(message)

        try:
            problem = self._problem(scope, headers)
            app = problem_response(problem, request_id) if problem else self._app
            await app(scope, receive, send_with_headers)
        except ClientDisconnect:
            status = CLIENT_CLOSED
        except Exception as error:
            self._state.log.write_error(error, request_id)
            if not status:
                await unexpected_error(request_id)(scope, receive, send_with_headers)
        finally:
            self._record(scope, status, time.perf_counter() - begun)

    def _problem(self, scope: Scope, headers: Headers) -> wire.Problem | None:
        """Why a request is refused by its head alone."""
        allowed, hosts = self._state.allowed_hosts, headers.getlist("host")
        if allowed is not None and (len(hosts) != 1 or _PORT.sub("", hosts[0].lower()) not in allowed):
            return wire.Problem(
                code=RequestError.code,
                message="The Host header names a host that this service does not serve.",
                hint="Use the service's own address, or start it with --allowed-host.",
            )
        length = headers.get("content-length", "")
        if length.isdigit() and int(length[:20]) > MAX_BODY_BYTES:
            return body_too_large(MAX_BODY_BYTES).problem
        if scope["method"] == "POST":
            # Questions and quotes that have waited for the event loop for too long.
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            limit = self._state.max_queue_seconds.get(path)
            return OVERLOADED if limit is not None and self._state.delay.seconds() > limit else None
        return None

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) if status not in (404, 405) else None
        caller = scope["state"].get("caller")
        self._state.metrics.count_request(scope["method"], route, status, seconds)
        if scope["state"].get("unlogged"):
            return
        self._state.log.write(
            "request",
            request_id=scope["state"]["request_id"],
            method=scope["method"],
            route=route,
            status=status,
            milliseconds=round(1000 * seconds, 3),
            dataset=caller and caller.service.name,
            holder=caller and caller.principal.name,
        )
