"""Routes for curators: the ledger, analysts, their tokens, closing a round, and pausing."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from sharewell import wire
from sharewell.service.http.dependencies import Curator, describe_body, read_body
from sharewell.service.http.errors import describe
from sharewell.service.http.routes_analyst import After, Limit

router = APIRouter(
    prefix="/v1/datasets/{dataset}", tags=["curators"], responses=describe(401, 403, 404, 429)
)
AnalystName = Annotated[str, Path(description="The analyst's name.")]


@router.get("/ledger", responses=describe(422))
async def ledger(caller: Curator, after: After = -1, limit: Limit = 100) -> wire.EventPage:
    """Read the ledger page by page, without its secret fields."""
    return await caller.run(lambda: caller.service.events(after, limit))


@router.get("/analysts")
async def analysts(caller: Curator) -> wire.AnalystList:
    """List the analysts with their budgets, and the unallocated budget."""
    return await caller.run(caller.service.analysts)


@router.post(
    "/analysts",
    status_code=201,
    openapi_extra=describe_body(wire.Newcomer),
    responses=describe(402, 408, 413, 415, 422),
)
async def join(caller: Curator, request: Request) -> wire.Token:
    """Add an analyst with a part of the unallocated budget; the response has the token."""
    newcomer = await read_body(request, wire.Newcomer)
    token = await caller.run(lambda: caller.service.join(newcomer, caller.principal.name))
    return wire.Token(name=newcomer.name, role="analyst", token=token)


@router.delete("/analysts/{name}", status_code=204, responses=describe(422))
async def leave(
    name: AnalystName,
    caller: Curator,
    donate: Annotated[
        bool, Query(description="Whether the rest of the share goes to the remaining analysts.")
    ] = False,
) -> None:
    """Remove an analyst: the token expires, and waiting questions are refused."""
    await caller.run(lambda: caller.service.leave(name, donate, caller.principal.name))


@router.post("/analysts/{name}/token")
async def token(name: AnalystName, caller: Curator) -> wire.Token:
    """Issue a new token for an analyst; the former one expires."""
    issued = await caller.run(lambda: caller.service.token(name, caller.principal.name))
    return wire.Token(name=name, role="analyst", token=issued)


@router.post("/close-round", responses=describe(422))
async def close_round(caller: Curator) -> wire.ClosedRound:
    """Spend what the analysts who are done have left on one more measurement of the seed."""
    return await caller.run(lambda: caller.service.close_round(caller.principal.name))


@router.post("/pause", status_code=204)
async def pause(caller: Curator) -> None:
    """Stop taking questions until `resume`, even after a restart."""
    await caller.run(lambda: caller.service.pause(caller.principal.name))


@router.post("/resume", status_code=204)
async def resume(caller: Curator) -> None:
    """Take questions again."""
    await caller.run(lambda: caller.service.resume(caller.principal.name))
