"""Operations: what can be done at a path, described for people, OpenAPI and the gate at once."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fastapi import FastAPI
from pydantic import BaseModel

from sharewell import wire
from sharewell.service.http.call import Call
from sharewell.service.http.parameters import Parameter, path_parameter
from sharewell.service.http.replies import Reply, Stream

Run = Callable[[Call], Awaitable[Reply | Stream]]
#: What a reply holds: a message, a text of some kind, or nothing.
Content = type[BaseModel] | str | None

DATASET = "/v1/datasets/{dataset}"
SECURITY = "token"

PROBLEMS = {
    400: "The question cannot be answered, or the request cannot be taken as it is.",
    401: "There is no token, or none that is valid.",
    402: "The analyst's share, or the whole budget, does not suffice.",
    403: "The token is for another role, or nobody of that name holds a share any more.",
    404: "There is nothing of that name or number that this token opens.",
    408: "The body took too long to come.",
    409: "The key stands for another question.",
    413: "The body is too large.",
    415: "The body is no plain JSON.",
    422: "The body, or a parameter, is not as described.",
    429: "Requests come too fast, or too many wait. `Retry-After` says when to come back.",
    500: "Something went wrong that should not have.",
    503: "The service is opening, closing or paused, or its ledger cannot be written.",
}
WITH_TOKEN = (401, 403, 404, 429)
WITH_BODY = (408, 413, 415, 422)
ANYWAY = (400, 500, 503)


@dataclass(frozen=True)
class Operation:
    """One verb at one path."""

    method: Literal["GET", "POST", "DELETE"]
    path: str
    run: Run
    replies: Mapping[int, tuple[str, Content]]
    for_: Literal["everybody", "analysts", "curators", "anybody"] = "anybody"
    body: type[BaseModel] | None = None
    parameters: tuple[Parameter[Any], ...] = ()
    problems: tuple[int, ...] = field(default=())

    @property
    def needs_token(self) -> bool:
        """Whether only holders of a token may do it."""
        return self.for_ != "anybody"

    def describe_to(self, app: FastAPI) -> None:
        """Add it to the description of an application."""
        summary, _, rest = (inspect.getdoc(self.run) or "").partition("\n")
        app.router.add_api_route(
            self.path,
            self.run,
            methods=[self.method],
            response_model=None,
            status_code=min(self.replies),
            response_description=self.replies[min(self.replies)][0],
            responses=self._responses(),
            summary=summary.rstrip("."),
            description=rest.strip(),
            operation_id=self.run.__name__,
            tags=[self.for_],
            openapi_extra=self._extra(),
        )

    def _responses(self) -> dict[int | str, dict[str, Any]]:
        found: dict[int | str, dict[str, Any]] = {}
        for status, (meaning, content) in self.replies.items():
            found[status] = {"description": meaning, **_content(content)}
        known = {*ANYWAY, *self.problems}
        known.update(WITH_TOKEN if self.needs_token else ())
        known.update(WITH_BODY if self.body else ())
        known.update((422,) if self.parameters else ())
        for status in sorted(known):
            found[status] = {"description": PROBLEMS[status], "model": wire.Problem}
        found["default"] = {"description": "Whatever else may be wrong.", "model": wire.Problem}
        return found

    def _extra(self) -> dict[str, Any]:
        extra: dict[str, Any] = {}
        parameters = [path_parameter(name) for name in re.findall(r"{(\w+)}", self.path)]
        parameters += [parameter.described for parameter in self.parameters]
        if parameters:
            extra["parameters"] = parameters
        if self.body:
            schema = {"$ref": f"#/components/schemas/{self.body.__name__}"}
            extra["requestBody"] = {
                "required": True,
                "content": {"application/json": {"schema": schema}},
            }
        if self.needs_token:
            extra["security"] = [{SECURITY: []}]
        return extra


def _content(content: Content) -> dict[str, Any]:
    if content is None:
        return {}
    if isinstance(content, str):
        schema = {"type": "object" if content == "application/json" else "string"}
        return {"content": {content: {"schema": schema}}}
    return {"model": content}
