"""Lines: what is said to a service, and heard as the wire has it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import typer
from pydantic import ValidationError

from sharewell import wire
from sharewell.client import call, told
from sharewell.client.address import read_address, read_token, read_verify
from sharewell.client.call import Call, M
from sharewell.client.core import Core
from sharewell.client.local import AtDesk
from sharewell.client.retry import Patience, Talk
from sharewell.client.session import Session, Transport
from sharewell.errors import RequestError, StillWaiting

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sharewell.service.desk import Desk

T = TypeVar("T")


class Line:
    """An open line; it gives the messages of the wire, which `--json` prints as they are."""

    def __init__(self, transport: Transport) -> None:
        self.core = Core(Patience())
        self._session = Session(self.core, transport)

    @classmethod
    def to_server(cls, url: str, token: str | None, ca: str | None, allow_http: bool) -> Line:
        """A line to a server."""
        from sharewell.client.http import Http

        address = read_address(url, allow_http=allow_http)
        return cls(Http(address, read_token(token), read_verify(True if ca is None else ca)))

    @classmethod
    def to_desk(cls, desk: Desk, who: str) -> Line:
        """A line to a desk in this process."""
        return cls(AtDesk(desk, who))

    def run(self, talk: Talk[T]) -> T:
        """Carry on a talk to its end."""
        return self._session._run(talk)

    def say(self, what: Call[M]) -> M:
        """Make a call about the dataset."""
        return self.run(self.core.say(what))

    def quote(self, sql: str) -> wire.Quote:
        """What a question would cost."""
        try:
            question = wire.Question(sql=sql)
        except ValidationError:
            raise RequestError("The SQL is too long.", hint="100,000 characters are read.") from None
        return self.say(call.quote(question))

    def wait_for(self, ticket: wire.Ticket, wait: float | None) -> wire.Ticket:
        """A question as it stands once it has ended, or after some seconds."""
        try:
            return self.run(self.core.wait_for(ticket, wait, None))
        except StillWaiting:
            return self.run(self.core.look(ticket.number)) if wait else ticket

    def events(self, after: int | None, limit: int) -> wire.Events:
        """So many events of the ledger after a number, or the last ones."""
        if after is None:
            count, _, _ = self.run(self.core.ledger(-1, 1)).head.partition(":")
            after = max(-1, int(count) - limit - 1)
        return self.run(self.core.ledger(after, limit))

    def certificate(self, analyst: str | None) -> told.Certificate:
        """The certificate: over a server the token's own; at a desk an analyst's or, with None, all."""

        def at_desk(at: AtDesk) -> BaseModel:
            from sharewell.service.shown import show_certificate

            # A desk that has just been opened has not followed its ledger yet.
            return show_certificate(at.desk.broker.certificate(up_to_date=True), analyst)

        return self.say(replace(call.certificate(), at_desk=at_desk))

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()


def print_json(message: BaseModel) -> None:
    """Print a message as one JSON document."""
    typer.echo(json.dumps(message.model_dump(mode="json"), indent=2))


def tell(message: M, as_json: bool, show: Callable[[M], None]) -> None:
    """Print a message for programs, or show it to people."""
    if as_json:
        print_json(message)
    else:
        show(message)
