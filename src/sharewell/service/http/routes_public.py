"""Routes without a token: health, readiness and metrics."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from sharewell.errors import LedgerUnavailable, NotBegun
from sharewell.service.http.dependencies import check_url, require_local_or_curator
from sharewell.service.http.errors import describe, describe_text
from sharewell.service.http.state import app_state

router = APIRouter(tags=["public"], dependencies=[Depends(check_url)])


@router.get("/healthz")
async def healthz() -> dict[str, bool]:
    """Report that the process is alive."""
    return {"alive": True}


@router.get("/readyz")
async def readyz(request: Request) -> dict[str, bool]:
    """Report whether the service takes questions: not while it opens, closes or cannot store them."""
    state = app_state(request)
    if planned := state.registry.planned:
        raise NotBegun(f"Not begun yet: {', '.join(planned)}.", hint="Begin it: `sharewell begin`.")
    state.monitor.require_ready()
    if not all(dataset.is_ready for dataset in state.datasets.values()):
        raise LedgerUnavailable("A ledger cannot be written.", hint="See the service's log.")
    return {"ready": True}


@router.get(
    "/metrics",
    response_class=Response,
    responses=describe(401, 403, 429) | describe_text("text/plain"),
    dependencies=[Depends(require_local_or_curator)],
)
async def metrics(request: Request) -> Response:
    """Show metrics for Prometheus, to this machine or to curators.

    They count requests and questions. None belongs to one analyst or depends on the data.
    """
    state = app_state(request)
    waiting = {name: dataset.service.waiting() for name, dataset in state.datasets.items()}
    return Response(state.metrics.render(waiting), media_type=CONTENT_TYPE_LATEST)
