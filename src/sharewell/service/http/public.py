"""What needs no token: whether the service is alive and ready, and its metrics."""

from __future__ import annotations

from sharewell.errors import AccessError, Closed, LedgerUnavailable
from sharewell.service.http.call import Call
from sharewell.service.http.operations import Operation
from sharewell.service.http.replies import Reply

ALIVE = Reply(200, b'{"alive":true}')
READY = Reply(200, b'{"ready":true}')


async def healthz(call: Call) -> Reply:
    """Say that the process is alive."""
    return ALIVE


async def readyz(call: Call) -> Reply:
    """Say whether questions can be taken: not while it opens or closes, or cannot store them."""
    _ = call.reception.house
    if not all(window.is_ready for window in call.reception.windows.values()):
        raise LedgerUnavailable("A ledger could not be written.", hint="Look at the service's log.")
    return READY


async def metrics(call: Call) -> Reply:
    """Show metrics for Prometheus, to this machine or with a curator's token.

    They count requests and questions. Nothing in them belongs to one analyst or depends on the data.
    """
    if not call.is_local:
        _, holder = call.holder()
        if holder.role != "curator":
            raise AccessError("Metrics are for curators.", hint="Use a curator's token.")
    try:
        _ = call.reception.house
        waiting = await call.reception.waiting()
    except Closed:
        waiting = {}
    return call.reception.metrics.shown(waiting)


OPERATIONS = (
    Operation("GET", "/healthz", healthz, {200: ("It is alive.", "application/json")}),
    Operation("GET", "/readyz", readyz, {200: ("It is ready.", "application/json")}),
    Operation(
        "GET",
        "/metrics",
        metrics,
        {200: ("The metrics.", "text/plain")},
        problems=(401, 403, 429),
    ),
)
