"""Served: a question whose turn has come, on its way from being prepared to being answered."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from sharewell.errors import QueryError, RequestError, SharewellError
from sharewell.mechanism.base import Answer, Prepared
from sharewell.privacy.ledger import Answered, Ledger, Refused
from sharewell.query.statement import Statement
from sharewell.service.result import Result
from sharewell.service.ticket import Ticket
from sharewell.sharing.stream import Ask


def not_computed() -> QueryError:
    """Says nothing about why: an error of a library may quote what must not be told."""
    return QueryError("The answer could not be computed.", hint="Ask for it in another way.")


class Served:
    """A ticket, what is bought for each of its blocks, and in the end its answers or its refusal."""

    def __init__(self, ticket: Ticket) -> None:
        self.ticket = ticket
        self.prepared: list[Prepared] = []
        self.error: SharewellError | None = None
        self.answers: tuple[Answer, ...] = ()

    @property
    def numbers(self) -> int:
        """How many numbers are asked for, where it is not refused."""
        return sum([prepared.size for prepared in self.prepared])

    @property
    def event(self) -> Answered | Refused:
        """What the ledger is told."""
        if self.error is not None:
            return refused(self.ticket, self.error)
        return Answered(self.ticket.stored, self._result.plain)

    @property
    def entry(self) -> Ask:
        """What the certificate is told."""
        return Ask(self.ticket.analyst, self.statement.blocks, self.ticket.pay)

    def hand_over(self) -> None:
        """Give the answer, or say why there is none."""
        if self.error is not None:
            self.ticket.refused(self.error)
        else:
            self.ticket.answered(self._result)

    @cached_property
    def statement(self) -> Statement:
        """What is asked."""
        return self.ticket.statement

    @cached_property
    def _result(self) -> Result:
        return Result(self.ticket.stored, self.ticket.analyst, self.statement, self.answers)


def refused(ticket: Ticket, error: SharewellError) -> Refused:
    """The event that a question was refused."""
    return Refused(ticket.stored, error.code, error.message)


def refuse_withdrawn(ledger: Ledger, withdrawn: Sequence[Ticket]) -> None:
    """Refuse questions that waited when their analyst left."""
    reasons = [
        RequestError(f"{t.analyst} has left.", hint="Questions that waited are not answered.")
        for t in withdrawn
    ]
    if withdrawn:
        ledger.append_many([refused(*each) for each in zip(withdrawn, reasons, strict=True)])
    for ticket, reason in zip(withdrawn, reasons, strict=True):
        ticket.refused(reason)
