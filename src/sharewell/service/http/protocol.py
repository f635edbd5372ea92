"""The protocol: how long and how much a connection may take, and what it is told when it takes more."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from sharewell import wire
from sharewell.service.http.problems import told
from sharewell.service.http.replies import WHOLE, Reply, lines

#: How long the head of a request may take to come, and then its body, in seconds.
HEAD_SECONDS, BODY_SECONDS = 10.0, 30.0
#: How long a connection is kept on which nothing comes, in seconds.
IDLE_SECONDS = 30.0
#: How long a client may take nothing of a reply, in seconds.
STUCK_SECONDS = 30.0
#: The largest head, in bytes.
MOST_HEAD = 65_536
#: How many connections there may be at a time.
MOST_CONNECTIONS = 1_000
#: How many more may be open only to be told that there are too many.
MOST_TURNED_AWAY = 200

NO_ID = b"none"


class CarefulProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, with limits on the time and the size of heads and bodies, and on connections.

    A slow client holds a connection and nothing else, but there are only so many of them.
    """

    head_seconds = HEAD_SECONDS
    body_seconds = BODY_SECONDS
    idle_seconds = IDLE_SECONDS
    stuck_seconds = STUCK_SECONDS
    most_connections = MOST_CONNECTIONS

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._served = self.app
        #: Until when what is waited for must have come, and the timer that looks after it.
        self._until = math.inf
        self._late: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None
        self._in_head = True
        #: How many bytes have come of the request that comes just now.
        self._fed = 0
        #: The request that runs; `cycle` is the one that has come last, which may have to wait for it.
        self._running: RequestResponseCycle | None = None
        #: One for all requests: what a request's scope holds must not lead back to that request, or only
        #: the garbage collector could end it. It leads back to the connection, until that is lost.
        self._extensions = {WHOLE: self._send_whole}

    # Time

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a head."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections + MOST_TURNED_AWAY:
            transport.abort()
            return
        self._wait_at_most(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._wait_no_more()
        if self._late is not None:
            self._late.cancel()
        self._unstick()
        self._leave()
        super().connection_lost(exc)
        self._extensions.clear()

    def on_message_begin(self) -> None:
        """Begin to wait for the rest of a head."""
        self._in_head = True
        # Its first bytes may have come with the last ones of the request before.
        self._fed = self._fed or 1
        self._wait_at_most(self.head_seconds)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Begin to wait for a body; where there are too many connections, say so."""
        self._in_head = False
        self._wait_at_most(self.body_seconds)
        too_many = len(self.connections) > self.most_connections
        self.app = _turn_away if too_many else self._served
        before = self.cycle
        super().on_headers_complete()
        if before is None or before.response_complete:
            self._running = self.cycle
        self.scope["extensions"] = self._extensions  # type: ignore[typeddict-item]

    def on_message_complete(self) -> None:
        """Wait for nothing: it is our turn."""
        self._wait_no_more()
        self._fed = 0
        super().on_message_complete()
        if self.cycle is not None and self.cycle.response_complete:
            # It was refused before it had come as a whole.
            self._wait_at_most(self.idle_seconds)

    def on_response_complete(self) -> None:
        """Go on with the next request, if it has come already; or begin to wait for one.

        In place of uvicorn's, which sets a timer for every reply.
        """
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            self._wait_until_taken()
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._running, app = self.pipeline.pop()
            self._start_asgi_task(self._running, app)
        elif math.isinf(self._until):
            self._wait_at_most(self.idle_seconds)

    def _leave(self) -> None:
        """Tell the request that runs that its client is gone; uvicorn tells the one that came last."""
        if self._running is not None:
            self._running.disconnected = True
            self._running.message_event.set()

    def _wait_at_most(self, seconds: float) -> None:
        # A timer for each part of each request would cost more than all else that is done here: one for
        # the connection looks, when it goes off, for how long there is still to wait.
        self._until = self.loop.time() + seconds
        if self._late is None or self._late.when() > self._until:
            if self._late is not None:
                self._late.cancel()
            self._late = self.loop.call_later(seconds, self._look, seconds)

    def _wait_no_more(self) -> None:
        self._until = math.inf

    def _look(self, seconds: float) -> None:
        self._late = None
        left = self._until - self.loop.time()
        if math.isinf(left):
            return
        if left > 0:
            self._late = self.loop.call_later(left, self._look, seconds)
        else:
            self._is_late(seconds)

    def _is_late(self, seconds: float) -> None:
        """End a connection whose request does not come; unless it is us who do not read."""
        if self.flow.read_paused:
            self._wait_at_most(seconds)
        elif self.cycle is not None and not self.cycle.response_complete:
            self._end_with(None if self.cycle.response_started else TOO_SLOW)
        else:
            self._end_with(TOO_SLOW if self._fed else None)

    def pause_writing(self) -> None:
        """Begin to wait for the client to take what was sent."""
        super().pause_writing()
        self._wait_until_taken()

    def resume_writing(self) -> None:
        """Go on."""
        self._unstick()
        if self.transport.is_closing():
            self._wait_until_taken()
        super().resume_writing()

    def shutdown(self) -> None:
        """End the connection when its request is replied to."""
        super().shutdown()
        if self.transport.is_closing():
            self._wait_until_taken()

    def _wait_until_taken(self) -> None:
        """Let go of a client that does not take what was sent: nothing else would end its connection."""
        if self._stuck is None:
            self._stuck = self.loop.call_later(self.stuck_seconds, self.transport.abort)

    def _unstick(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    # Size

    def data_received(self, data: bytes) -> None:
        """Take what came; a head may not go on for ever."""
        self._fed += len(data)
        super().data_received(data)
        if self._in_head and self._fed > MOST_HEAD and not self.transport.is_closing():
            self._end_with(HEAD_TOO_LARGE)

    # Words

    def _send_whole(self, scope: Scope, status: int, head: bytes, body: bytes) -> bool:
        """Send a reply of known length in one piece, as uvicorn would in two; whether it could.

        Only for headers that we have made ourselves: nothing looks for what must not be in them.
        """
        cycle = self._running
        if cycle is None or cycle.scope is not scope or scope["method"] == "HEAD":
            return False
        if cycle.response_started or cycle.disconnected or self.flow.write_paused:
            return False
        cycle.response_started = True
        cycle.waiting_for_100_continue = False
        cycle.chunked_encoding, cycle.expected_content_length = False, 0
        close = b"" if cycle.keep_alive else b"connection: close\r\n"
        parts = (STATUS_LINE[status], lines(cycle.default_headers), head, close, b"\r\n", body)
        self.transport.write(b"".join(parts))
        cycle.response_complete = True
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()
        return True

    def send_400_response(self, msg: str) -> None:
        """Say that this was not HTTP."""
        self._end_with(NOT_HTTP)

    def _end_with(self, reply: Reply | None) -> None:
        """Say something, if there is anything to say, and end the connection."""
        self._wait_no_more()
        if self.transport.is_closing():
            return
        if reply is not None:
            self.transport.write(_raw(reply))
        # Whatever the application still has to say comes too late.
        self._leave()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()
        self._wait_until_taken()


def _refusal(status: int, code: str, message: str, hint: str) -> Reply:
    return told(wire.Problem(code=code, message=message, hint=hint), NO_ID, status)


TOO_SLOW = _refusal(408, "request.too-large", "The request took too long to come.", "Send it at once.")
HEAD_TOO_LARGE = _refusal(
    431,
    "request.too-large",
    f"The head of the request has more than {MOST_HEAD:,} bytes.",
    "Send what is long in the body.",
)
NOT_HTTP = _refusal(
    400, "request.invalid", "This is not HTTP/1.1.", "Where the service speaks TLS, use https://."
)
TOO_MANY = _refusal(
    503, "service.closed", "There are too many connections just now.", "Try again in a few seconds."
)


def _raw(reply: Reply) -> bytes:
    """A reply as it goes over the wire, for where there is no application to send it."""
    headers = (
        *reply.safety,
        *reply.headers,
        (b"content-type", reply.kind),
        (b"content-length", b"%d" % len(reply.body)),
        (b"connection", b"close"),
    )
    return b"".join([STATUS_LINE[reply.status], lines(headers), b"\r\n", reply.body])


async def _turn_away(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands in for the application where there are too many connections."""
    reply = TOO_MANY._replace(headers=(*TOO_MANY.headers, (b"connection", b"close")))
    await reply.send_with(NO_ID, send)
