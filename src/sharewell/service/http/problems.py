"""Problems: the one shape of every refusal, and the status that it is sent with."""

from __future__ import annotations

import math

from pydantic import ValidationError

from sharewell import wire
from sharewell.errors import SharewellError
from sharewell.service.http.replies import Headers, Reply, said
from sharewell.service.shown import show_problem

#: The status of a code; for those that are not here, of the first word of a code.
STATUS_OF_CODE = {
    "access.unknown-token": 401,
    "privacy.over-budget": 402,
    "privacy.unknown-payer": 403,
    "request.not-found": 404,
    "request.key-reused": 409,
    "request.too-large": 413,
    "request.too-many": 429,
}
STATUS_OF_FAMILY = {
    "sql": 400,
    "query": 400,
    "request": 400,
    "privacy": 400,
    "sharing": 400,
    "access": 403,
    "service": 503,
    "ledger": 503,
    # What the curator's files say was read at the start; where it fails later, the machine is to blame.
    "config": 503,
    "source": 503,
}

NO_LEDGER = "Nothing can be stored just now, so nothing is answered."
ASK_AGAIN = "Ask again with the same key; nothing is paid twice."

#: In how many seconds to come back, at the least, where nothing else is known.
COME_BACK = {429: 1, 503: 5}


class Refused(SharewellError):
    """A refusal that HTTP itself has a status for."""

    def __init__(
        self, status: int, code: str, message: str, *, hint: str = "", headers: Headers = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code
        self.headers = headers


def too_fast(seconds: float, message: str) -> Refused:
    """Says that somebody has to slow down."""
    wait = max(1, math.ceil(seconds))
    return Refused(
        429,
        "request.too-many",
        message,
        hint=f"Try again in {wait} {'second' if wait == 1 else 'seconds'}.",
        headers=((b"retry-after", b"%d" % wait),),
    )


#: What to write instead, by what the reader of bodies calls the mistake.
HINTS_OF_TYPE = {
    "string_type": "Write it as a text, in quotes.",
    "bool_type": "Write true or false, without quotes.",
}


def unreadable(error: ValidationError) -> Refused:
    """Says what is wrong with a body, without quoting any of it."""
    wrong = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in wrong["loc"])[:100]
    if wrong["type"] == "json_invalid":
        message, hint = (
            "The body is not JSON in UTF-8.",
            'Send an object, such as {"sql": "SELECT ..."}.',
        )
    elif not where:
        message, hint = (
            "The body is not a JSON object.",
            'Send an object, such as {"sql": "SELECT ..."}.',
        )
    elif wrong["type"] == "missing":
        message, hint = f"The field {where!r} is missing.", "Add it to the body."
    elif wrong["type"] == "extra_forbidden":
        message, hint = f"The field {where!r} means nothing here.", "Look for a slip, or leave it out."
    else:
        message = f"The field {where!r} cannot be read: {wrong['msg']}."
        hint = HINTS_OF_TYPE.get(wrong["type"], "")
    return Refused(422, "request.invalid", message, hint=hint)


def status_of(code: str) -> int:
    """The status that a problem of this code is sent with."""
    return STATUS_OF_CODE.get(code) or STATUS_OF_FAMILY.get(code.partition(".")[0], 500)


def reply_to(error: SharewellError, request_id: bytes) -> Reply:
    """The reply that an error makes."""
    if isinstance(error, Refused):
        return told(show_problem(error), request_id, error.status, error.headers)
    return told(show_problem(error), request_id)


def told(
    problem: wire.Problem, request_id: bytes, status: int | None = None, headers: Headers = ()
) -> Reply:
    """The reply that a problem makes."""
    status = status or status_of(problem.code)
    if problem.code.startswith("ledger."):
        # Where the ledger is kept is nobody's business but the curator's, who finds it in the log.
        problem = problem.model_copy(update={"message": NO_LEDGER, "hint": ASK_AGAIN})
    if status == 401:
        headers = (*headers, (b"www-authenticate", b'Bearer realm="sharewell"'))
    if status in COME_BACK and not any(name == b"retry-after" for name, _ in headers):
        headers = (*headers, (b"retry-after", b"%d" % COME_BACK[status]))
    return said(problem.model_copy(update={"request_id": request_id.decode()}), status, headers)


def unexpected(request_id: bytes) -> Reply:
    """Says nothing of what happened: an error of a library may quote what must not be told."""
    problem = wire.Problem(
        code="error",
        message="Something went wrong that should not have.",
        hint="Tell whoever runs the service the request's id; the question's key can be used again.",
    )
    return told(problem, request_id, 500)
