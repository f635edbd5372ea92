"""A call: one request, with what its head says, who sends it, and its body."""

from __future__ import annotations

import re
from typing import Literal, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from sharewell.errors import AccessError, NotFound, UnknownToken
from sharewell.service.access import Holder, Role
from sharewell.service.http.problems import Refused, unreadable
from sharewell.service.http.reception import Reception, Window
from sharewell.service.unguessable import unguessable

Body = TypeVar("Body", bound=BaseModel)

#: The largest body, in bytes.
MOST_BYTES = 1_000_000
_SANE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_JSON = re.compile(rb"application/(?:[\w.+-]+\+)?json *(?:; *charset=\"?utf-8\"?)? *", re.IGNORECASE)


class Gone(Exception):
    """The client has closed the connection, so there is nobody to reply to."""


class Call(Request):
    """One request on its way through the application.

    The head is read once. What the log and the metrics say of a request is kept here: its id, its
    route, who sent it to which dataset, and the status of the reply.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, reception: Reception) -> None:
        super().__init__(scope, receive, send)
        self.reception = reception
        self.request_id = b""
        self.route: str | None = None
        self.dataset: str | None = None
        self.holder_name: str | None = None
        self.status = 0
        self.hosts: list[bytes] = []
        self._length = b""
        self._kind: bytes | None = None
        self._encoding = b""
        self._authorization: bytes | None = None
        self._forwarded: bytes | None = None
        self._read_head()

    def _read_head(self) -> None:
        for name, value in self.scope["headers"]:
            if name == b"host":
                self.hosts.append(value)
            elif name == b"authorization":
                self._authorization = value
            elif name == b"content-length":
                self._length = value
            elif name == b"content-type":
                self._kind = value
            elif name == b"content-encoding":
                self._encoding = value
            elif name == b"x-request-id":
                self.request_id = value
            elif name == b"x-forwarded-for":
                self._forwarded = value
        if not _SANE_ID.fullmatch(self.request_id):
            self.request_id = unguessable()[:16].encode()

    def refuse_bad_head(self) -> None:
        """Refuse what is not meant for us, or too large, before anything is read or looked up."""
        if len(self.hosts) > 1 or not self.reception.is_for_us(self.hosts[0] if self.hosts else None):
            raise Refused(
                400,
                "request.invalid",
                "The request names a host that this service does not answer for.",
                hint="Use the address that the service was started with, or allow the host there.",
            )
        if self._length and (not self._length.isdigit() or int(self._length[:20]) > MOST_BYTES):
            raise _too_large()

    # Who sends it

    @property
    def address(self) -> str:
        """Where it comes from: behind a proxy, what the proxy itself has noted last."""
        if self.reception.behind_proxy and self._forwarded is not None:
            return self._forwarded.rpartition(b",")[2].strip().decode("latin-1")
        return self.client.host if self.client else "?"

    @property
    def is_local(self) -> bool:
        """Whether it comes from this machine, and from no proxy."""
        proxied = self.reception.behind_proxy or self._forwarded is not None
        return not proxied and self.address in ("127.0.0.1", "::1")

    def holder(self) -> tuple[Window, Holder]:
        """Whoever holds the token, and the window of the desk that it opens."""
        try:
            window, holder = self.reception.holder(self._token())
        except UnknownToken:
            self.reception.note_failure(self.address)
            raise
        self.dataset, self.holder_name = window.desk.name, holder.name
        window.admit(holder)
        return window, holder

    def visitor(self, role: Role | None = None) -> tuple[Window, Holder]:
        """Whoever holds the token, at the dataset that the path names; refused in another role."""
        window, holder = self.holder()
        name = self.path_params["dataset"]
        if name != window.desk.name:
            raise NotFound(
                f"There is no dataset {name[:100]!r}, or this token does not open it.",
                hint="GET /v1/datasets says what it opens.",
            )
        if role is not None and holder.role != role:
            raise AccessError(
                f"This is for {role}s, and the token is {_A[holder.role]}'s.",
                hint=f"Use {_A[role]}'s token.",
            )
        return window, holder

    def _token(self) -> str | None:
        if self._authorization is None:
            return None
        scheme, _, token = self._authorization.partition(b" ")
        return token.strip().decode("latin-1") if scheme.lower() == b"bearer" else None

    # What it holds

    async def read(self, model: type[Body]) -> Body:
        """The body, as a message."""
        if self._kind is None or self._encoding or not _JSON.fullmatch(self._kind):
            raise Refused(
                415,
                "request.invalid",
                "The body is of another kind than JSON in UTF-8.",
                hint="Send it plain, with the header Content-Type: application/json.",
            )
        body = await self._whole_body()
        try:
            return model.model_validate_json(body, strict=True)
        except ValidationError as error:
            raise unreadable(error) from None

    async def _whole_body(self) -> bytes:
        body, more = bytearray(), True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise Gone
            body += message.get("body", b"")
            if len(body) > MOST_BYTES:
                raise _too_large()
            more = message.get("more_body", False)
        return bytes(body)

    async def until_gone(self) -> None:
        """Wait until the client has closed the connection."""
        while (await self.receive())["type"] != "http.disconnect":
            pass


_A: dict[Literal["analyst", "curator"], str] = {"analyst": "an analyst", "curator": "a curator"}


def _too_large() -> Refused:
    return Refused(
        413,
        "request.too-large",
        f"The body has more than {MOST_BYTES:,} bytes.",
        hint="Ask in several questions.",
    )
