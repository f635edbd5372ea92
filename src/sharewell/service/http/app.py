"""The application: every operation behind the gate, and its description."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import cached_property
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.types import Receive, Scope, Send

import sharewell
from sharewell.service.house import House
from sharewell.service.http import analysts, asking, curators, docs_page, public, tickets
from sharewell.service.http.gate import Gate
from sharewell.service.http.logs import Log
from sharewell.service.http.operations import SECURITY, Operation
from sharewell.service.http.reception import Reception
from sharewell.service.http.routes import Routes

OPERATIONS: tuple[Operation, ...] = (
    *asking.OPERATIONS,
    *tickets.OPERATIONS,
    *analysts.OPERATIONS,
    *curators.OPERATIONS,
    *public.OPERATIONS,
    *docs_page.OPERATIONS,
)

DESCRIPTION = """\
Several analysts, one sensitive table, one privacy budget, and nobody worse off for sharing.

Send your token with every request: `Authorization: Bearer sw_...`. Amounts of budget are exact
fractions, as texts. Whatever is refused comes with a problem: a stable `code`, a sentence, and what to
do instead.
"""


class App(FastAPI):
    """The application: FastAPI describes the operations, and the gate runs them."""

    def __init__(self, reception: Reception) -> None:
        self.reception = reception
        super().__init__(
            title="Sharewell",
            version=sharewell.__version__,
            openapi_url=None,
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
        )
        for operation in OPERATIONS:
            operation.describe_to(self)
        self._gate = Gate(Routes(OPERATIONS), self.router, reception)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request: nothing stands before the gate, which turns errors into problems itself."""
        scope["app"] = self
        await self._gate(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """The description of all operations."""
        return self._description

    @cached_property
    def description_bytes(self) -> bytes:
        """The description as JSON."""
        return json.dumps(self._description).encode()

    @cached_property
    def _description(self) -> dict[str, Any]:
        found = get_openapi(
            title=self.title, version=self.version, description=DESCRIPTION, routes=self.routes
        )
        components = found.setdefault("components", {})
        schemas = components.setdefault("schemas", {})
        for body in {operation.body for operation in OPERATIONS if operation.body}:
            schema = body.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas.update(schema.pop("$defs", {}))
            schemas[body.__name__] = schema
        components["securitySchemes"] = {SECURITY: {"type": "http", "scheme": "bearer"}}
        return found


def create_app(
    house: House | None,
    *,
    log: Log | None = None,
    allowed_hosts: Collection[str] | None = None,
    behind_proxy: bool = False,
) -> App:
    """The application of a house; with None, of one that is still to be opened.

    `allowed_hosts` are the names that requests may call us by; None: any. `behind_proxy` says that all
    requests come through a proxy, which notes in X-Forwarded-For where they came from.
    """
    reception = Reception(log or Log(None), allowed_hosts=allowed_hosts, behind_proxy=behind_proxy)
    if house is not None:
        reception.open(house)
    return App(reception)
