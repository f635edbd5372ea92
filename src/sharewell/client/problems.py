"""Problems that came over the wire, as the errors that they were."""

from __future__ import annotations

from sharewell import errors, wire
from sharewell.errors import Place, SharewellError, StillWaiting


def as_error(problem: wire.Problem) -> SharewellError:
    """The error of a problem's code; one whose code is not known here keeps it, and is of the root."""
    at = problem.where
    where = Place(at.line, at.column, at.text) if at else None
    kind = _BY_CODE.get(problem.code, SharewellError)
    error = kind(problem.message, hint=problem.hint, where=where)
    error.code = problem.code
    error.request_id = problem.request_id
    return error


def still_waiting(ticket: wire.Ticket, waited: float) -> StillWaiting:
    """The error of somebody who waits no longer."""
    before = f", {ticket.position} of yours before it" if ticket.position else ""
    error = StillWaiting(f"The question still waits after {waited:.0f} s{before}.", hint=again(ticket))
    error.key, error.number = ticket.key, ticket.number
    return error


def again(ticket: wire.Ticket) -> str:
    """How to find a question again."""
    return (
        f"It stays with the service: ask again with key={ticket.key!r}, or take "
        f"ticket({ticket.number}), to have its answer; it is paid for once."
    )


_BY_CODE = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, SharewellError)
}
