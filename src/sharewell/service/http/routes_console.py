"""Routes of the console: sessions, drafts, downloads, activity, verification, settings and plans."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from sharewell import wire
from sharewell.errors import QueryError, RequestError, UnknownToken
from sharewell.service.downloads import to_csv, to_parquet
from sharewell.service.http.browser import (
    require_csrf_header,
    require_same_origin,
    session_cookie,
    set_session_cookie,
)
from sharewell.service.http.dependencies import (
    Analyst,
    Curator,
    Drafter,
    Planned,
    check_url,
    read_body,
)
from sharewell.service.http.errors import http_error
from sharewell.service.http.routes_analyst import DATASET, Number, find_submission
from sharewell.service.http.state import app_state
from sharewell.service.sessions import csrf_token

router = APIRouter(include_in_schema=False)
#: The writer and the media type of each format of a download.
FORMATS = {
    "csv": (to_csv, "text/csv"),
    "parquet": (to_parquet, "application/vnd.apache.parquet"),
}


@router.post("/v1/session", dependencies=[Depends(check_url)])
async def sign_in(request: Request, response: Response) -> wire.SessionInfo:
    """Exchange a token, or a single-use code, for a session in a cookie."""
    require_same_origin(request)
    body = await read_body(request, wire.SignIn)
    secret = app_state(request).registry.sign_in(token=body.token.strip(), code=body.code)
    set_session_cookie(request, response, secret)
    return _describe_session(request, secret)


@router.get("/v1/session", dependencies=[Depends(check_url)])
async def session(request: Request) -> wire.SessionInfo:
    """Say whose session the cookie is, and what to send as the CSRF header."""
    require_same_origin(request)
    return _describe_session(request, session_cookie(request))


@router.delete("/v1/session", status_code=204, dependencies=[Depends(check_url)])
async def sign_out(request: Request, response: Response) -> None:
    """End the session."""
    require_same_origin(request)
    if secret := session_cookie(request):
        require_csrf_header(request, secret)
        app_state(request).registry.sign_out(secret)
    set_session_cookie(request, response, None)


def _describe_session(request: Request, secret: str | None) -> wire.SessionInfo:
    if secret is None:
        # Not an `UnknownToken`, which counts as a guess.
        raise http_error(401, UnknownToken.code, "Not signed in.", "Sign in with your token.")
    registry, csrf = app_state(request).registry, csrf_token(secret)
    if planner := registry.authenticate_planner(session=secret):
        planned, curator = planner
        return wire.SessionInfo(
            dataset=planned.name, name=curator.name, role=curator.role, csrf=csrf, begun=False
        )
    service, principal = registry.authenticate(session=secret)
    return wire.SessionInfo(dataset=service.name, name=principal.name, role=principal.role, csrf=csrf)


@router.post(f"{DATASET}/draft")
async def draft(caller: Drafter, request: Request) -> wire.DraftQuote:
    """Quote a statement while it is typed; a mistake in it is part of the response, not an error.

    Nothing of it is logged or stored.
    """
    request.state.unlogged = True
    question = await read_body(request, wire.Question)
    quote = partial(caller.service.quote, caller.principal.name, question.sql)
    try:
        return wire.DraftQuote(
            quote=await caller.run_while_connected(request, lambda gone: quote(cancelled=gone))
        )
    except QueryError as error:
        return wire.DraftQuote(problem=wire.Problem.of(error))


@router.get(f"{DATASET}/tickets/{{number}}/file")
async def download(
    number: Number, caller: Analyst, format: Annotated[Literal["csv", "parquet"], Query()] = "csv"
) -> Response:
    """Download the answer of one of your questions."""
    submission = await find_submission(caller, number)
    write, media_type = FORMATS[format]

    def answer() -> bytes:
        found = caller.service.describe(submission).answer
        if found is None:
            raise RequestError(f"Question {number} has no answer.", hint="Wait until it is answered.")
        return write(found)

    name = f'attachment; filename="{caller.service.name}-{number}.{format}"'
    content = await caller.run(answer)
    return Response(content, media_type=media_type, headers={"Content-Disposition": name})


@router.post(f"{DATASET}/verification", status_code=202)
async def start_verification(caller: Curator, request: Request) -> wire.VerificationStatus:
    """Begin to verify the ledger in a process of low priority, one at a time."""
    verification, config = app_state(request).verification, caller.service.config
    return await caller.run(lambda: verification.start(config))


@router.get(f"{DATASET}/verification")
async def verification(caller: Curator, request: Request) -> wire.VerificationStatus:
    """Show how far the verification has come, or what it found."""
    return app_state(request).verification.status(caller.service.name)


@router.get(f"{DATASET}/activity")
async def activity(caller: Curator) -> wire.Activity:
    """List the sources of the newest questions' answers."""
    return await caller.run(caller.service.activity)


@router.get(f"{DATASET}/settings")
async def settings(caller: Curator) -> wire.SettingsComparison:
    """Compare the configuration file with the settings in the ledger."""
    return await caller.run(caller.service.settings)


@router.get("/v1/plan")
async def plan(planned: Planned) -> wire.PlanForecast:
    """Show what the settings of a dataset that was never begun would mean; reads no rows."""
    return await asyncio.to_thread(planned.plan)


@router.post("/v1/plan")
async def propose(planned: Planned, request: Request) -> wire.PlanForecast:
    """Show what other settings would mean."""
    proposal = await read_body(request, wire.PlanProposal)
    return await asyncio.to_thread(planned.plan, proposal)
