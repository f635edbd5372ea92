"""Routes for analysts: asking, tickets, and what they may look up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect

from sharewell import wire
from sharewell.errors import Closed, SharewellError
from sharewell.service.http.dependencies import (
    Analyst,
    AnyRole,
    Authenticated,
    Caller,
    describe_body,
    read_body,
)
from sharewell.service.http.errors import ProblemException, describe, describe_text, status_of
from sharewell.service.http.state import app_state
from sharewell.service.submissions import Submission, closing

#: How often a watching request checks its client and the question's position, in seconds.
WATCH_INTERVAL = 1.0
#: The longest silence of an event stream, in seconds: proxies cut silent connections.
HEARTBEAT_INTERVAL = 15.0

DATASET = "/v1/datasets/{dataset}"
router = APIRouter(prefix=DATASET, tags=["analysts"], responses=describe(401, 403, 404, 429))
#: Routes for both roles.
shared_router = APIRouter(tags=["analysts and curators"], responses=describe(401, 403, 404, 429))

After = Annotated[
    int, Query(ge=-1, le=2**53, description="List what follows this number: `next` of the last page.")
]
Limit = Annotated[int, Query(ge=1, le=1000, description="The largest number of entries.")]
Number = Annotated[int, Path(ge=0, le=2**53, description="The ticket's number.")]
Wait = Annotated[float, Query(ge=0, le=60, description="The longest time to wait, in seconds.")]


@router.post(
    "/ask",
    response_model=wire.Ticket,
    openapi_extra=describe_body(wire.Question),
    responses=describe(402, 408, 409, 413, 415, 422) | {202: {"model": wire.Ticket}},
)
async def ask(caller: Analyst, request: Request) -> Response:
    """Ask a question.

    The answer comes in the first release slot in which it is ready. If a scheduler makes the question
    wait for its turn, the status is 202 and `Location` has the ticket. Asked again with the same key, a
    question has the same answer and costs nothing more, even if the first response was lost.
    """
    question = await read_body(request, wire.Question)
    service, state = caller.service, app_state(request)
    questions = state.metrics.questions
    # A light question takes less than the change to a thread.
    light = service.find_light(question.sql, caller.principal.name)
    submit = partial(
        service.submit,
        caller.principal.name,
        question.sql,
        statement=light,
        pay=question.pay,
        key=question.key,
        # What it has waited for the event loop counts.
        deadline=time.monotonic() - state.delay.seconds() + service.config.service.max_queue_seconds,
    )
    try:
        submission = submit() if light else await caller.run(submit)
        await caller.dataset.slots.wait(lambda: submission.ready_at <= service.slot_start())
        show = partial(service.describe, submission)
        ticket = show() if light else await caller.run(show)
    except SharewellError:
        questions.labels(service.name, "refused").inc()
        raise
    questions.labels(service.name, ticket.state).inc()
    problem = ticket.problem
    has_failed = problem is not None and problem.code.startswith("ledger.")
    caller.dataset.ledger_failed_at = time.monotonic() if has_failed else None
    if problem is not None:
        raise ProblemException(status_of(problem.code), problem)
    status, headers = 200, {}
    if ticket.state == "waiting":
        status = 202
        headers["Location"] = f"/v1/datasets/{service.name}/tickets/{ticket.number}"
    # Written here: FastAPI would validate it once more.
    return Response(ticket.model_dump_json(), status, headers, media_type="application/json")


@router.post(
    "/quote", openapi_extra=describe_body(wire.Question), responses=describe(408, 413, 415, 422)
)
async def quote(caller: Analyst, request: Request) -> wire.Quote:
    """Quote a question's cost and expected standard error; spends nothing.

    `pay` and `key` are ignored. A quote is computed from what was published in the last release slot. It
    is cancelled if its client goes away.
    """
    question = await read_body(request, wire.Question)
    quote = partial(caller.service.quote, caller.principal.name, question.sql)
    return await caller.run_while_connected(request, lambda gone: quote(cancelled=gone))


@router.get("/tickets/{number}", responses=describe(422))
async def ticket(number: Number, caller: Analyst, request: Request, wait: Wait = 0.0) -> wire.Ticket:
    """Show one of your questions; with `wait`, once it is answered or the time is up.

    A refused question has the state `refused` and a problem; the status is 200.
    """
    submission = await find_submission(caller, number)
    if wait and submission.done_at > caller.service.slot_start():
        caller.dataset.limit_watchers(caller.principal)
        with caller.dataset.watching(caller.principal):
            await _wait_until_done(request, caller, submission, wait)
    found = await _describe(caller, submission)
    if _was_interrupted(found) or (wait and found.state == "waiting" and app_state(request).closing):
        raise closing()
    return found


@router.get(
    "/tickets/{number}/events", response_class=Response, responses=describe_text("text/event-stream")
)
async def ticket_events(number: Number, caller: Analyst, request: Request) -> StreamingResponse:
    """Follow one of your questions by server-sent events until it is answered or refused.

    `position` comes first, and whenever the question has moved up; `answered` or `refused` ends the
    stream. Their data is a ticket. If the service closes first, `closed` ends the stream; its data is a
    problem. Comments keep the connection alive.
    """
    submission = await find_submission(caller, number)
    caller.dataset.limit_watchers(caller.principal)
    return StreamingResponse(
        _events(request, caller, submission),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


async def _events(request: Request, caller: Caller, submission: Submission) -> AsyncIterator[str]:
    last_position: int | None = None
    silence = 0.0
    with caller.dataset.watching(caller.principal):
        await caller.dataset.slots.wait()
        while True:
            found = await _describe(caller, submission)
            if _was_interrupted(found) or (app_state(request).closing and found.state == "waiting"):
                yield _event("closed", wire.Problem.of(closing()))
                return
            if found.state != "waiting":
                yield _event(found.state, found)
                return
            if found.position != last_position:
                last_position, silence = found.position, 0.0
                yield _event("position", found)
            elif silence >= HEARTBEAT_INTERVAL:
                silence = 0.0
                yield ": still waiting\n\n"
            await _is_done(request, caller, submission, WATCH_INTERVAL)
            silence += WATCH_INTERVAL


@router.get("/me")
async def me(caller: Analyst) -> wire.BudgetStatus:
    """Show your budget as of the last release slot: share, spent, left, questions asked and waiting."""
    return caller.service.budget(caller.principal.name)


@router.get("/questions", responses=describe(422))
async def questions(caller: Analyst, after: After = -1, limit: Limit = 100) -> wire.QuestionPage:
    """List your questions, oldest first, each with its answer or state."""
    await caller.dataset.slots.wait()
    return await caller.run(lambda: caller.service.questions(caller.principal.name, after, limit))


@router.post("/done", status_code=204)
async def done(caller: Analyst) -> None:
    """Report that you have no more questions for now, so that no rotation waits for you.

    Asking again takes you back in.
    """
    await caller.run(lambda: caller.service.done(caller.principal.name))
    await caller.dataset.slots.wait()


@shared_router.get("/v1/datasets")
async def datasets(caller: Authenticated) -> wire.DatasetList:
    """List the datasets that the token opens, with its name and role."""
    principal = caller.principal
    return wire.DatasetList(datasets=(caller.service.name,), name=principal.name, role=principal.role)


@shared_router.get(DATASET)
async def dataset(caller: AnyRole) -> wire.DatasetInfo:
    """Describe a dataset: its columns, budget, mechanism and promises."""
    return await caller.run(caller.service.dataset)


@shared_router.get(f"{DATASET}/certificate")
async def certificate(caller: AnyRole) -> wire.CertificateReport:
    """Show the fairness certificate: an analyst's own standing, or all of them for curators.

    It is computed in the background and published in release slots; `behind` says how far it lags.
    """
    analyst = caller.principal.name if caller.principal.role == "analyst" else None
    return await caller.run(lambda: caller.service.certificate(analyst))


async def find_submission(caller: Caller, number: int) -> Submission:
    """One of the caller's questions; whether it exists is released in slots, too."""
    await caller.dataset.slots.wait()
    return await caller.run(lambda: caller.service.submission(caller.principal.name, number))


async def _describe(caller: Caller, submission: Submission) -> wire.Ticket:
    if caller.service.find_light(submission.sql, submission.analyst):
        return caller.service.describe(submission)
    return await caller.run(partial(caller.service.describe, submission))


async def _wait_until_done(
    request: Request, caller: Caller, submission: Submission, seconds: float
) -> None:
    """Wait until a question is done, time is up, the service closes or the client leaves."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while (left := deadline - loop.time()) > 0:
        if await _is_done(request, caller, submission, min(left, WATCH_INTERVAL)):
            return
        if await request.is_disconnected():
            raise ClientDisconnect


async def _is_done(request: Request, caller: Caller, submission: Submission, seconds: float) -> bool:
    """Whether a question is done, or the service closes, in a slot before the time is up."""
    state, service = app_state(request), caller.service

    def is_done() -> bool:
        return submission.done_at <= service.slot_start() or state.closing

    await caller.dataset.slots.wait(is_done, seconds)
    return is_done()


def _was_interrupted(ticket: wire.Ticket) -> bool:
    """Whether a question was refused only because the service closes; the ledger keeps it."""
    return ticket.problem is not None and ticket.problem.code == Closed.code


def _event(name: str, message: wire.Message) -> str:
    return f"event: {name}\ndata: {message.model_dump_json()}\n\n"
