"""What routes depend on: a checked URL, an authenticated caller, and a JSON body."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import ValidationError
from starlette.requests import ClientDisconnect

from sharewell import wire
from sharewell.errors import AccessError, NotFound, RequestError, TooLarge, UnknownToken
from sharewell.service.dataset import DatasetService
from sharewell.service.http.browser import require_csrf_header, require_same_origin, session_cookie
from sharewell.service.http.errors import body_too_large, http_error, too_many_requests
from sharewell.service.http.state import HostedDataset, app_state
from sharewell.service.planning import PlannedDataset
from sharewell.service.rate_limit import RateLimiter
from sharewell.service.tokens import Principal, Role

#: The largest body, in bytes, and the longest time until it has been received, in seconds.
MAX_BODY_BYTES, BODY_SECONDS = 1_000_000, 30.0

#: How often a request that takes long looks whether its client is still there, in seconds.
CHECK_INTERVAL = 1.0

_JSON_TYPE = re.compile(r"application/(?:[\w.+-]+\+)?json *(?:; *charset=\"?utf-8\"?)? *", re.IGNORECASE)

Body = TypeVar("Body", bound=wire.Request)
Result = TypeVar("Result")


async def check_url(request: Request) -> None:
    """Reject unknown and repeated query parameters, which may be typos, and control characters.

    A dependency of routes without a token; the others call it, since FastAPI takes longer to solve a
    dependency than this takes.
    """
    if not request.scope["path"].isprintable():
        raise NotFound("No such path.", hint="/docs lists all paths.")
    if not request.scope["query_string"]:
        return
    route: APIRoute = request.scope["route"]
    known = sorted(parameter.alias for parameter in route.dependant.query_params)
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in known:
            hint = f"Known parameters: {', '.join(known)}." if known else "Leave it out."
            raise http_error(422, RequestError.code, f"Unknown parameter {name[:40]!r}.", hint)
        if count > 1:
            raise http_error(422, RequestError.code, f"Repeated parameter {name!r}.", "Send it once.")


# Callers


@dataclass(frozen=True)
class Caller:
    """The principal of a request, and the dataset that the token opens."""

    principal: Principal
    service: DatasetService
    dataset: HostedDataset

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run work in one of the dataset's threads.

        A turn lasts until the thread has ended, even if the caller is cancelled before: work that was
        given up occupies its thread still.
        """
        turn = self.dataset.turns[self.principal]
        await turn.acquire()
        threads = self.dataset.threads[self.principal.role]
        running = asyncio.get_running_loop().run_in_executor(threads, work)

        def end_turn(ended: asyncio.Future[Result]) -> None:
            turn.release()
            # Read, since asyncio would log the error of work that was given up.
            if not ended.cancelled():
                ended.exception()

        running.add_done_callback(end_turn)
        return await asyncio.shield(running)

    async def run_while_connected(
        self, request: Request, work: Callable[[Callable[[], bool]], Result]
    ) -> Result:
        """Run work in a thread; it is passed a function that says whether the client has gone."""
        gone = Event()
        running = asyncio.ensure_future(self.run(lambda: work(gone.is_set)))
        try:
            while not (await asyncio.wait((running,), timeout=CHECK_INTERVAL))[0]:
                if await request.is_disconnected():
                    raise ClientDisconnect
            return running.result()
        finally:
            gone.set()
            running.cancel()


class AnyToken(HTTPBearer):
    """A dependency: the caller that a bearer token, or the session of a browser, belongs to."""

    def __init__(self) -> None:
        super().__init__(scheme_name="token", auto_error=False)
        self._rate: Callable[[HostedDataset], RateLimiter] = lambda dataset: dataset.rate

    async def __call__(self, request: Request) -> Caller:  # type: ignore[override]
        """Authenticate the caller of a request, and count the request against their rate."""
        await check_url(request)
        state = app_state(request)
        registry = state.registry
        token, session = read_credentials(request)
        if not token and not session:
            raise UnknownToken(
                "Missing token.", hint="Send the Authorization header with every request; see /docs."
            )
        service, principal = registry.authenticate(token, session=session)
        if session:
            require_csrf_header(request, session)
        caller = Caller(principal, service, state.datasets[service.name])
        request.state.caller = caller
        if wait := self._rate(caller.dataset).take(f"{principal.role} {principal.name}"):
            raise too_many_requests(wait, "This token sends too many requests.")
        return caller


def read_credentials(request: Request) -> tuple[str, str]:
    """The bearer token of a request or, without an Authorization header, its browser's session."""
    authorization = request.headers.get("authorization")
    if authorization is None:
        if session := session_cookie(request):
            require_same_origin(request)
        return "", session or ""
    scheme, _, token = authorization.partition(" ")
    return token if scheme.lower() == "bearer" else "", ""


async def authenticate_planner(request: Request) -> PlannedDataset:
    """A dependency: the dataset, not yet begun, that a curator's token or session opens."""
    await check_url(request)
    registry = app_state(request).registry
    token, session = read_credentials(request)
    found = registry.authenticate_planner(token, session=session)
    if found is None:
        raise UnknownToken("Unknown token.", hint="Plans are for curators of datasets not yet begun.")
    if session:
        require_csrf_header(request, session)
    return found[0]


class TokenOf(AnyToken):
    """A dependency: a caller in one of these roles, whose token opens the dataset in the path.

    Drafts have a rate of their own: typing must not use up the rate of questions.
    """

    def __init__(self, *roles: Role, drafts: bool = False) -> None:
        super().__init__()
        self._roles = roles
        if drafts:
            self._rate = lambda dataset: dataset.draft_rate

    async def __call__(  # type: ignore[override]
        self, request: Request, dataset: Annotated[str, Path(description="The dataset's name.")]
    ) -> Caller:
        """Authenticate and authorize the caller of a request."""
        caller = await super().__call__(request)
        if dataset != caller.service.name:
            raise NotFound(
                f"No dataset {dataset[:100]!r} is open to this token.",
                hint="GET /v1/datasets lists the datasets that it opens.",
            )
        role, needed = caller.principal.role, self._roles[0]
        if role not in self._roles:
            raise AccessError(
                f"This operation requires the role {needed}; the token has the role {role}.",
                hint=f"Use a token with the role {needed}.",
            )
        return caller


authenticate = AnyToken()
Authenticated = Annotated[Caller, Depends(authenticate)]
AnyRole = Annotated[Caller, Depends(TokenOf("analyst", "curator"))]
Analyst = Annotated[Caller, Depends(TokenOf("analyst"))]
Drafter = Annotated[Caller, Depends(TokenOf("analyst", drafts=True))]
Curator = Annotated[Caller, Depends(TokenOf("curator"))]
Planned = Annotated[PlannedDataset, Depends(authenticate_planner)]


async def require_local_or_curator(request: Request) -> None:
    """Admit direct requests from this machine, and curators."""
    state = app_state(request)
    forwarded = state.behind_proxy or "x-forwarded-for" in request.headers
    if not forwarded and state.client_address(request) in ("127.0.0.1", "::1"):
        return
    caller = await authenticate(request)
    if caller.principal.role != "curator":
        raise AccessError("Metrics require the role curator.", hint="Use a curator's token.")


# Bodies. Routes read them: FastAPI would parse a body parameter before any dependency runs. So a request
# without a valid token, or above its rate, is refused before its body is read.


def describe_body(model: type[wire.Request]) -> dict[str, Any]:
    """The body of an operation, for its OpenAPI description."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


async def read_body(request: Request, model: type[Body]) -> Body:
    """A body of JSON in UTF-8, of limited size, received within a limited time."""
    content_type = request.headers.get("content-type", "")
    if "content-encoding" in request.headers or not _JSON_TYPE.fullmatch(content_type):
        raise http_error(
            415,
            RequestError.code,
            "The body is not JSON in UTF-8.",
            "Send it uncompressed, with the header Content-Type: application/json.",
        )
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                content += chunk
                if len(content) > MAX_BODY_BYTES:
                    raise body_too_large(MAX_BODY_BYTES)
    except TimeoutError:
        headers = {"Connection": "close"}
        message, hint = "The body was not received in time.", "Send it at once."
        raise http_error(408, TooLarge.code, message, hint, headers) from None
    try:
        return model.model_validate_json(bytes(content))
    except ValidationError as error:
        found = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        raise RequestValidationError(found) from None
