"""Straight to a desk: the transport of a session in the service's own process."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sharewell import wire
from sharewell.client.call import Call, M

if TYPE_CHECKING:
    from sharewell.service.desk import Desk
    from sharewell.service.ticket import Ticket


class AtDesk:
    """An analyst at a desk; who can open the dataset's file may do all that its curator may."""

    def __init__(self, desk: Desk, analyst: str) -> None:
        self.desk = desk
        self.analyst = analyst

    def send(self, call: Call[M]) -> M:
        """Do what a call asks, and reply as it would come over the wire."""
        reply = call.at_desk(self)
        # Through the text and back: labels and numbers are then the same over every transport.
        return call.read(b"" if reply is None else reply.model_dump_json().encode())

    def close(self) -> None:
        """Close the desk, and with it the dataset's ledger."""
        self.desk.close()

    def __repr__(self) -> str:
        return "in this process"

    def datasets(self) -> wire.Datasets:
        """The one dataset that is here."""
        return wire.Datasets(datasets=(self.desk.name,), name=self.analyst, role="analyst")

    def ask(self, question: wire.Question) -> wire.Ticket:
        """Hand in a question, and see whether it was answered or waits its turn."""
        ticket = self.desk.submit(self.analyst, question)
        ticket.wait_until_ready()
        return self.desk.shown(ticket)

    def ticket(self, number: int, wait: float) -> wire.Ticket:
        """How a question is doing, as soon as it has ended or some seconds have passed."""
        ticket: Ticket = self.desk.ticket(self.analyst, number)
        with suppress(TimeoutError):
            ticket.outcome(wait)
        return self.desk.shown(ticket)
