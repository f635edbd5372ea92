"""Errors over HTTP: one status for each code, one JSON shape (`wire.Problem`) for all."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, HTTPException
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.requests import Request
from starlette.responses import Response

from sharewell import wire
from sharewell.errors import (
    LedgerError,
    NotBegun,
    NotFound,
    RequestError,
    SharewellError,
    TooLarge,
    TooMany,
    UnknownToken,
)

#: The status of a code; a code that is not listed takes the status of its family.
STATUS_BY_CODE = {
    "access.unknown-token": 401,
    "privacy.over-budget": 402,
    "privacy.unknown-payer": 403,
    "request.not-found": 404,
    "request.key-reused": 409,
    "request.too-large": 413,
    "request.too-many": 429,
}
STATUS_BY_FAMILY = {
    "sql": 400,
    "query": 400,
    "request": 400,
    "privacy": 400,
    "sharing": 400,
    "access": 403,
    "service": 503,
    "ledger": 503,
    # The configuration was valid at the start: a later failure is the machine's.
    "config": 503,
    "source": 503,
}
#: Seconds to wait where nothing better is known.
RETRY_AFTER = {429: 1, 503: 5}


def describe(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of an operation, for its OpenAPI description."""
    return {status: {"model": wire.Problem} for status in statuses}


def describe_text(media_type: str) -> dict[int | str, dict[str, Any]]:
    """The response of an operation that returns text, for its OpenAPI description."""
    return {200: {"content": {media_type: {"schema": {"type": "string"}}}}}


def status_of(code: str) -> int:
    """The HTTP status of an error code."""
    return STATUS_BY_CODE.get(code) or STATUS_BY_FAMILY.get(code.partition(".")[0], 500)


class ProblemException(HTTPException):
    """An HTTP error that carries its problem."""

    def __init__(
        self, status: int, problem: wire.Problem, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, headers=headers)
        self.problem = problem


def http_error(
    status: int, code: str, message: str, hint: str = "", headers: Mapping[str, str] | None = None
) -> ProblemException:
    """An error that only HTTP has a status for."""
    return ProblemException(status, wire.Problem(code=code, message=message, hint=hint), headers)


def too_many_requests(seconds: float, message: str) -> ProblemException:
    """The refusal of a client that has to slow down."""
    wait = max(1, math.ceil(seconds))
    hint = f"Try again in {wait} {'second' if wait == 1 else 'seconds'}."
    return http_error(429, TooMany.code, message, hint, {"Retry-After": str(wait)})


def body_too_large(limit: int) -> ProblemException:
    """The refusal of a body above the size limit."""
    return http_error(
        413, TooLarge.code, f"The body exceeds {limit:,} bytes.", "Split the question into several."
    )


def problem_response(
    problem: wire.Problem,
    request_id: str,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The response for a problem."""
    status = status or status_of(problem.code)
    headers = dict(headers or {})
    if problem.code.startswith("ledger.") and problem.code != NotBegun.code:
        # Where the ledger is kept concerns curators only; the log has it.
        problem = problem.model_copy(
            update={
                "message": "The ledger cannot be written, so no question is answered.",
                "hint": "Ask again with the same key; you do not pay twice.",
            }
        )
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="sharewell"'
    if status in RETRY_AFTER:
        headers.setdefault("Retry-After", str(RETRY_AFTER[status]))
    content = problem.model_copy(update={"request_id": request_id}).model_dump_json()
    return Response(content, status, headers, media_type="application/json")


def unexpected_error(request_id: str) -> Response:
    """The response for an unexpected error: its own text may quote data, so none of it is shown."""
    problem = wire.Problem(
        code=SharewellError.code,
        message="Unexpected error.",
        hint="Report the request id to the operator. You can ask again with the same key.",
    )
    return problem_response(problem, request_id, 500)


def add_exception_handlers(app: FastAPI) -> None:
    """Have every error of an application answered by a problem.

    Unexpected errors are the middleware's: Starlette raises them again after their handler has run, and
    the server would log them with their values.
    """
    app.exception_handler(SharewellError)(_handle_sharewell_error)
    app.exception_handler(RequestValidationError)(_handle_validation_error)
    app.exception_handler(StarletteHTTPException)(_handle_http_exception)


async def _handle_sharewell_error(request: Request, error: SharewellError) -> Response:
    state = request.app.state.sharewell
    if isinstance(error, UnknownToken) and (wait := state.count_failure(request)):
        refusal = too_many_requests(wait, "Too many requests without a valid token.")
        return await _handle_http_exception(request, refusal)
    if isinstance(error, LedgerError):
        state.log.write(
            "ledger", request_id=request.state.request_id, code=error.code, message=error.message
        )
        if hasattr(request.state, "caller"):
            request.state.caller.dataset.ledger_failed_at = time.monotonic()
    return problem_response(wire.Problem.of(error), request.state.request_id)


async def _handle_http_exception(request: Request, error: StarletteHTTPException) -> Response:
    request_id = request.state.request_id
    if isinstance(error, ProblemException):
        return problem_response(error.problem, request_id, error.status_code, error.headers)
    if error.status_code == 404:
        return problem_response(_unknown_path(), request_id)
    if error.status_code == 405:
        allowed = _allowed_methods(request) or dict(error.headers or {}).get("Allow", "")
        problem = wire.Problem(
            code=RequestError.code,
            message=f"{request.method} is not allowed for this path.",
            hint=f"Allowed: {allowed}.",
        )
        return problem_response(problem, request_id, 405, {"Allow": allowed})
    problem = wire.Problem(code=RequestError.code, message="The request cannot be processed.")
    return problem_response(problem, request_id, error.status_code, error.headers)


def _allowed_methods(request: Request) -> str:
    """The methods of a path. Starlette names those of the first route only."""
    path = getattr(request.scope.get("route"), "path", "")
    return ", ".join(sorted(method.upper() for method in request.app.openapi()["paths"].get(path, ())))


async def _handle_validation_error(request: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    source, *path = first["loc"]
    if source == "path":
        return problem_response(_unknown_path(), request.state.request_id)
    message, hint = (_explain_parameter if source == "query" else _explain_body)(first, path)
    problem = wire.Problem(code=RequestError.code, message=message, hint=hint)
    return problem_response(problem, request.state.request_id, 422)


def _unknown_path() -> wire.Problem:
    return wire.Problem(code=NotFound.code, message="No such path.", hint="/docs lists all paths.")


def _explain_parameter(error: Mapping[str, Any], path: Sequence[Any]) -> tuple[str, str]:
    return f"Invalid parameter {'.'.join(map(str, path))!r}: {_lower(error['msg'])}.", ""


#: What to send instead, by pydantic's name of the error.
HINTS = {
    "string_type": "Send a string in quotes.",
    "bool_type": "Send true or false without quotes.",
}


def _explain_body(error: Mapping[str, Any], path: Sequence[Any]) -> tuple[str, str]:
    """What is wrong with a body, without quoting any of it."""
    example = 'Send an object, for example {"sql": "SELECT ..."}.'
    field = ".".join(map(str, path))[:100]
    if error["type"] == "json_invalid":
        return "The body is not JSON in UTF-8.", example
    if not field:
        return "The body is not a JSON object.", example
    if error["type"] == "missing":
        return f"Missing field {field!r}.", "Add it to the body."
    if error["type"] == "extra_forbidden":
        return f"Unknown field {field!r}.", "Check its spelling, or leave it out."
    return f"Invalid field {field!r}: {_lower(error['msg'])}.", HINTS.get(error["type"], "")


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]
