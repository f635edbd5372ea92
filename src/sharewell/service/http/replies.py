"""Replies: what is sent back, with the headers that every reply has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from functools import lru_cache
from typing import NamedTuple

from pydantic import BaseModel
from starlette.types import Scope, Send

Headers = tuple[tuple[bytes, bytes], ...]

JSON = b"application/json"
EVENTS = b"text/event-stream; charset=utf-8"

#: A reply is data, never a page: nothing in it may be run, framed, guessed at or kept.
FOR_DATA: Headers = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


#: Where a scope offers to send a whole reply in one piece, which is quicker than the two of ASGI.
WHOLE = "sharewell.whole-reply"


def lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Headers as they go over the wire."""
    return b"".join([b"%s: %s\r\n" % header for header in headers])


#: Those that do not change from one reply to the next are written once.
_lines_of_safety = lru_cache(maxsize=8)(lines)


class Reply(NamedTuple):
    """A reply whose body is known when it begins."""

    status: int
    body: bytes = b""
    kind: bytes = JSON
    headers: Headers = ()
    safety: Headers = FOR_DATA

    async def send_with(self, request_id: bytes, send: Send, scope: Scope | None = None) -> None:
        """Send it, in one piece where that is offered."""
        own = [(b"x-request-id", request_id), *self.headers]
        if self.status != 204:
            own += (b"content-type", self.kind), (b"content-length", b"%d" % len(self.body))
        offered = scope and scope.get("extensions", {}).get(WHOLE)
        head = _lines_of_safety(self.safety) + lines(own)
        if not (offered and offered(scope, self.status, head, self.body)):
            headers = [*self.safety, *own]
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            await send({"type": "http.response.body", "body": self.body})


class Stream(NamedTuple):
    """A reply that goes on for a while."""

    parts: AsyncIterator[bytes]
    kind: bytes = EVENTS
    status: int = 200

    async def send_with(self, request_id: bytes, send: Send, scope: Scope | None = None) -> None:
        """Send it, part by part."""
        # Proxies that gather a reply before they pass it on would keep events back.
        headers = [(b"x-request-id", request_id), (b"x-accel-buffering", b"no"), *FOR_DATA]
        headers.append((b"content-type", self.kind))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        async for part in self.parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def said(message: BaseModel, status: int = 200, headers: Headers = ()) -> Reply:
    """A message as a reply."""
    return Reply(status, message.model_dump_json().encode(), headers=headers)


#: It was done, and there is nothing to say about it.
NOTHING = Reply(204)
