"""The application: routes, middleware, exception handlers and lifespan."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.routing import APIRoute

import sharewell
from sharewell import wire
from sharewell.service.http import routes_analyst, routes_console, routes_curator, routes_public
from sharewell.service.http.errors import add_exception_handlers, describe
from sharewell.service.http.log import Log
from sharewell.service.http.middleware import RequestMiddleware
from sharewell.service.http.state import AppState
from sharewell.service.registry import DatasetRegistry

DESCRIPTION = """\
Several analysts ask SQL of one sensitive table under one differential-privacy budget.

Send your token with every request: `Authorization: Bearer sw_...`. Amounts of budget are exact
fractions, sent as strings. Every error has the same shape: a stable `code`, a message and a hint.
"""


def create_app(
    open_registry: Callable[[], DatasetRegistry],
    *,
    log: Log | None = None,
    allowed_hosts: Collection[str] | None = None,
    behind_proxy: bool = False,
    on_open: Callable[[DatasetRegistry], object] = lambda registry: None,
) -> FastAPI:
    """An application that opens a registry when it starts, and closes it when it stops.

    It serves health checks while the registry opens, which takes long for many rows or a long ledger.
    `allowed_hosts` are the host names that requests may use; None allows any. With `behind_proxy`, the
    last entry of X-Forwarded-For is taken as a client's address.
    """
    state = AppState(log or Log(None), allowed_hosts=allowed_hosts, behind_proxy=behind_proxy)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        opening = asyncio.create_task(state.open(open_registry, on_open))
        yield
        await opening
        await state.close()

    app = FastAPI(
        title="Sharewell",
        version=sharewell.__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
        responses=describe(400, 500, 503)
        | {"default": {"description": "Any other error.", "model": wire.Problem}},
        lifespan=lifespan,
    )
    app.state.sharewell = state
    for router in (
        routes_analyst.router,
        routes_analyst.shared_router,
        routes_curator.router,
        routes_public.router,
        routes_console.router,
        routes_public.pages,
    ):
        app.include_router(router)
    add_exception_handlers(app)
    app.add_middleware(RequestMiddleware, state=state)
    return app


def _operation_id(route: APIRoute) -> str:
    return route.name
