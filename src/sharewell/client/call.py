"""Calls: everything that a client can ask of a service, each said once for both ways of saying it.

A call goes over HTTP, by its method and path, or straight to a desk in the same process, by `at_desk`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import quote as quoted

from sharewell import wire
from sharewell.client import told

if TYPE_CHECKING:
    from pydantic import BaseModel

    from sharewell.client.local import AtDesk

M = TypeVar("M", bound="BaseModel")

#: How long it may take until somebody has joined or left, in seconds.
AN_ERRAND = 600.0


class Nothing(wire.Message):
    """The reply of what has none."""


@dataclass(frozen=True)
class Call(Generic[M]):
    """One request: how it is made, and as what its reply is read."""

    method: str
    #: Below the dataset's own address.
    path: str
    reads: type[M]
    at_desk: Callable[[AtDesk], BaseModel | None] = field(repr=False)
    #: May hold a question's text, so it is not shown.
    body: wire.Request | None = field(default=None, repr=False)
    params: Mapping[str, str] = field(default_factory=dict)
    #: Seconds that the service is asked to wait before it replies.
    wait: float = 0.0
    #: Seconds that it may take, where that is long: somebody who joins pays for a seed at once.
    takes: float = 0.0
    #: Seconds until a try is given up.
    timeout: float = 15.0
    #: Whether doing it twice is the same as doing it once.
    repeatable: bool = True

    def read(self, content: bytes) -> M:
        """The reply that came as JSON; raises a `ValidationError` where it is none."""
        return self.reads.model_validate_json(b"{}" if self.reads is Nothing else content)


def dataset() -> Call[told.Dataset]:
    """What is public about the dataset."""
    return Call("GET", "", told.Dataset, lambda at: at.desk.dataset())


def quote(question: wire.Question) -> Call[wire.Quote]:
    """What a question would cost."""
    return Call(
        "POST", "/quote", wire.Quote, lambda at: at.desk.quote(at.analyst, question.sql), body=question
    )


def ask(question: wire.Question) -> Call[wire.Ticket]:
    """Hand in a question, whose key makes it safe to hand in again."""
    return Call("POST", "/ask", wire.Ticket, lambda at: at.ask(question), body=question)


def ticket(number: int, wait: float) -> Call[wire.Ticket]:
    """How a question is doing, as soon as it has ended or some seconds have passed."""
    return Call(
        "GET",
        f"/tickets/{number}",
        wire.Ticket,
        lambda at: at.ticket(number, wait),
        params={"wait": f"{wait:g}"},
        wait=wait,
    )


def budget() -> Call[wire.Budget]:
    """How the analyst stands."""
    return Call("GET", "/me", wire.Budget, lambda at: at.desk.budget(at.analyst))


def questions(after: int, limit: int) -> Call[wire.Questions]:
    """A page of the analyst's questions."""
    return Call(
        "GET",
        "/questions",
        wire.Questions,
        lambda at: at.desk.questions(at.analyst, after, limit),
        params=_page(after, limit),
    )


def done() -> Call[Nothing]:
    """Say that there are no more questions for now."""
    return Call("POST", "/done", Nothing, lambda at: at.desk.done(at.analyst))


def certificate() -> Call[told.Certificate]:
    """The fairness certificate."""
    return Call("GET", "/certificate", told.Certificate, lambda at: at.desk.certificate(at.analyst))


def events(after: int, limit: int) -> Call[wire.Events]:
    """A page of the ledger."""
    return Call(
        "GET",
        "/ledger",
        wire.Events,
        lambda at: at.desk.events(after, limit),
        params=_page(after, limit),
    )


def analysts() -> Call[wire.Analysts]:
    """Everybody who may ask."""
    return Call("GET", "/analysts", wire.Analysts, lambda at: at.desk.analysts())


def join(newcomer: wire.Newcomer) -> Call[wire.Token]:
    """Take somebody in."""
    return Call(
        "POST",
        "/analysts",
        wire.Token,
        lambda at: _token(newcomer.name, at.desk.join(newcomer)),
        body=newcomer,
        takes=AN_ERRAND,
        repeatable=False,
    )


def leave(name: str, donate: bool) -> Call[Nothing]:
    """Let somebody go."""
    return Call(
        "DELETE",
        f"/analysts/{quoted(name, safe='')}",
        Nothing,
        lambda at: at.desk.leave(name, donate),
        params={"donate": str(donate).lower()},
        takes=AN_ERRAND,
        repeatable=False,
    )


def new_token(name: str) -> Call[wire.Token]:
    """Another token for somebody; of two tries only the last one's token counts, and that comes back."""
    return Call(
        "POST",
        f"/analysts/{quoted(name, safe='')}/token",
        wire.Token,
        lambda at: _token(name, at.desk.token(name)),
    )


def pause() -> Call[Nothing]:
    """Answer nothing for the time being."""
    return Call("POST", "/pause", Nothing, lambda at: at.desk.pause())


def resume() -> Call[Nothing]:
    """Go on."""
    return Call("POST", "/resume", Nothing, lambda at: at.desk.resume())


def datasets() -> Call[wire.Datasets]:
    """What the token opens, and whose it is: the only call that is below no dataset."""
    return Call("GET", "/v1/datasets", wire.Datasets, lambda at: at.datasets())


def _page(after: int, limit: int) -> dict[str, str]:
    return {"after": str(after), "limit": str(limit)}


def _token(name: str, token: str) -> wire.Token:
    return wire.Token(name=name, role="analyst", token=token)
