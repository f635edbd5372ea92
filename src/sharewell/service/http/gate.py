"""The gate: what every request passes on its way in, and every refusal on its way out."""

from __future__ import annotations

import time

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sharewell.errors import LedgerError, NotFound, SharewellError
from sharewell.service.http.call import Call, Gone
from sharewell.service.http.operations import Operation
from sharewell.service.http.parameters import refuse_strangers
from sharewell.service.http.problems import Refused, reply_to, unexpected
from sharewell.service.http.reception import Reception
from sharewell.service.http.replies import Reply
from sharewell.service.http.routes import Routes

#: Stands in the log for a request whose client had gone; nothing was sent.
CLIENT_GONE = 499


class Gate:
    """Checks a request's head, runs its operation, turns errors into problems, and counts and logs it.

    What is at none of our paths goes on to `others`.
    """

    def __init__(self, routes: Routes, others: ASGIApp, reception: Reception) -> None:
        self._routes = routes
        self._others = others
        self._reception = reception

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through."""
        if scope["type"] != "http":
            await self._others(scope, receive, send)
            return
        begun = time.perf_counter()
        call = Call(scope, receive, send, self._reception)
        try:
            refusal = await self._pass(call, send)
            if refusal is not None and call.status == 0:
                call.status = refusal.status
                await refusal.send_with(call.request_id, send, scope)
        finally:
            self._note(call, time.perf_counter() - begun)

    async def _pass(self, call: Call, send: Send) -> Reply | None:
        """Have a request handled; what it is refused with, if it is."""
        try:
            call.refuse_bad_head()
            await self._run(call, send)
        except Gone:
            call.status = CLIENT_GONE
        except SharewellError as error:
            self._look_at(error, call)
            return reply_to(error, call.request_id)
        except Exception as error:
            self._reception.log.failed(error, call.request_id.decode())
            return unexpected(call.request_id)
        return None

    async def _run(self, call: Call, send: Send) -> None:
        scope = call.scope
        if not scope["path"].isprintable():
            raise NotFound("There is nothing at this path.", hint="/docs shows all paths.")
        found, given = self._routes.find(scope["path"])
        operation = found.get(scope["method"])
        if operation is None:
            await self._elsewhere(call, found, send)
            return
        call.route = operation.path
        scope["path_params"] = given
        if scope["query_string"]:
            refuse_strangers(call, operation.parameters)
        reply = await operation.run(call)
        call.status = reply.status
        await reply.send_with(call.request_id, send, scope)

    async def _elsewhere(self, call: Call, found: dict[str, Operation], send: Send) -> None:
        """Try what others have added to the application."""
        if found:
            raise _wrong_method(call.scope["method"], sorted(found))

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                call.status = message["status"]
            await send(message)

        try:
            await self._others(call.scope, call.receive, noted)
        except HTTPException:
            raise NotFound("There is nothing at this path.", hint="/docs shows all paths.") from None

    def _look_at(self, error: SharewellError, call: Call) -> None:
        window = self._reception.windows.get(call.dataset or "")
        if isinstance(error, LedgerError):
            self._reception.log.write(
                "ledger", request_id=call.request_id.decode(), code=error.code, message=error.message
            )
            if window is not None:
                window.note_ledger(works=False)

    def _note(self, call: Call, seconds: float) -> None:
        method = call.scope["method"]
        self._reception.metrics.replied(method, call.route, call.status, seconds)
        self._reception.log.write(
            "request",
            request_id=call.request_id.decode(),
            method=method,
            route=call.route,
            status=call.status,
            milliseconds=round(1000 * seconds, 3),
            dataset=call.dataset,
            holder=call.holder_name,
        )


def _wrong_method(method: str, allowed: list[str]) -> Refused:
    return Refused(
        405,
        "request.invalid",
        f"This path is not for {method}.",
        hint=f"It is for {' and '.join(allowed)}.",
        headers=((b"allow", ", ".join(allowed).encode()),),
    )
