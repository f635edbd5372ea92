"""Every operation of the service, as its own description lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from sharewell import wire
from sharewell.service.http.app import create_app
from sharewell.service.registry import DatasetRegistry

DATASET = "/v1/datasets/{dataset}"


@dataclass(frozen=True)
class Operation:
    """One method at one path: for whom, with which body, and with which query parameters."""

    method: str
    path: str
    audience: str = "public"
    body: type[BaseModel] | None = None
    parameters: tuple[str, ...] = ()

    @property
    def needs_token(self) -> bool:
        return self.audience != "public"

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def describe() -> dict[str, Any]:
    """The OpenAPI description of an application that has opened nothing."""
    return create_app(lambda: DatasetRegistry({})).openapi()


def _read(method: str, path: str, described: dict[str, Any]) -> Operation:
    content = described.get("requestBody", {}).get("content", {})
    name = content["application/json"]["schema"]["title"] if content else None
    return Operation(
        method.upper(),
        path,
        described["tags"][0],
        getattr(wire, name) if name else None,
        tuple(each["name"] for each in described.get("parameters", ()) if each["in"] == "query"),
    )


#: Those that the description lists.
DESCRIBED = [
    _read(method, path, described)
    for path, methods in describe()["paths"].items()
    for method, described in methods.items()
]
OPERATIONS = [
    *DESCRIBED,
    # Those of the console, which has a cookie in place of a token.
    Operation("POST", "/v1/session", body=wire.SignIn),
    Operation("GET", "/v1/session"),
    Operation("DELETE", "/v1/session"),
    Operation("POST", f"{DATASET}/draft", "analysts", wire.Question),
    Operation("GET", f"{DATASET}/tickets/{{number}}/file", "analysts", parameters=("format",)),
    Operation("POST", f"{DATASET}/verification", "curators"),
    Operation("GET", f"{DATASET}/verification", "curators"),
    Operation("GET", f"{DATASET}/activity", "curators"),
    Operation("GET", f"{DATASET}/settings", "curators"),
    Operation("GET", "/v1/plan"),
    Operation("POST", "/v1/plan", body=wire.PlanProposal),
    Operation("GET", "/"),
    Operation("GET", "/console/{version}/{file}"),
    Operation("GET", "/docs"),
    Operation("GET", "/docs/{file}"),
    Operation("GET", "/openapi.json"),
]
