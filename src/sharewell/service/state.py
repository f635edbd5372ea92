"""State: the curator, the mechanism, the scheduler and the questions, as a ledger leaves them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sharewell.config.config import Config
from sharewell.engine.data_vector import DataVector
from sharewell.errors import LedgerError, OverBudget, RequestError
from sharewell.mechanism.base import Mechanism
from sharewell.privacy.curator import Curator
from sharewell.privacy.ledger import (
    Answered,
    Asked,
    Configured,
    Done,
    Event,
    Granted,
    Ledger,
    Left,
    Refused,
)
from sharewell.privacy.noise import Noise
from sharewell.query.sql import compile_sql
from sharewell.query.statement import Statement
from sharewell.service.history import History
from sharewell.service.result import Result, from_plain
from sharewell.service.served import Served
from sharewell.service.ticket import Ticket, Tickets
from sharewell.sharing.collective import Collective
from sharewell.sharing.scheduler import Scheduler
from sharewell.sharing.stream import Ask, Entry, Join, Leave


@dataclass
class State:
    """Everything that a broker works with; opening the same ledger again gives the same."""

    config: Config
    curator: Curator
    mechanism: Mechanism
    scheduler: Scheduler[Ticket]
    #: The shares that the collective began with.
    initial: Mapping[str, Fraction]
    #: What has happened in it: questions as they were served, and who came and went.
    _stream: list[Asked | Granted | tuple[Left, bool]]
    #: Questions that had their turn before a crash, to be answered first.
    due: list[Ticket] = field(default_factory=list)

    @classmethod
    def open(
        cls, config: Config, ledger: Ledger, data: DataVector, noise: Noise, tickets: Tickets
    ) -> State:
        """Take up what a ledger holds, or begin it; what was charged and not released is measured.

        Analysts who wait keep the tickets that they hold.
        """
        remembering = _Remembering(ledger)
        curator = Curator(
            data,
            config.budget,
            config.shares,
            neighbours=config.neighbours,
            noise=noise,
            ledger=remembering,
        )
        settings = Configured({"config": config.text})
        last = [event for event in remembering.events() if isinstance(event, Configured)][-1:]
        if last != [settings]:
            remembering.append(settings)
        mechanism = config.make(curator)
        history = History.of(remembering.events())
        remembering.forget()
        state = cls(config, curator, mechanism, config.scheduler(), history.initial, history.stream)
        state._take_up_questions(history, tickets)
        state._take_up_scheduler(history, tickets)
        return state

    @property
    def collective(self) -> Collective:
        """The collective as it began."""
        return replace(self.config.collective, shares=self.initial)

    @property
    def happened(self) -> int:
        """How many entries the stream has."""
        return len(self._stream)

    def stream_from(self, start: int) -> Iterator[Entry]:
        """What has happened in the collective from an entry on."""
        for entry in self._stream[start:]:
            match entry:
                case Granted(payer, share):
                    yield Join(payer, share)
                case (Left(payer), donate):
                    yield Leave(payer, donate)
                case Asked():
                    for block in self._compile(entry).blocks:
                        yield Ask(entry.analyst, block, entry.pay)

    def served(self, served: Served) -> None:
        """Add a question to the stream, as `History` will find it in the ledger."""
        if served.error is None or served.error.code == OverBudget.code:
            ticket = served.ticket
            question = {"sql": ticket.statement.text}
            self._stream.append(Asked(ticket.key, ticket.analyst, question, ticket.pay))

    def joined(self, analyst: str) -> None:
        """Add somebody who came to the stream."""
        self._stream.append(Granted(analyst, self.curator.share(analyst)))

    def left(self, analyst: str, donate: bool) -> None:
        """Add somebody who went to the stream."""
        self._stream.append((Left(analyst), donate))

    def take_due(self) -> list[Ticket]:
        """What is to be answered first."""
        due, self.due = self.due, []
        return due

    def _take_up_questions(self, history: History, tickets: Tickets) -> None:
        """Know all questions again, and tell those who waited without knowing how theirs had ended."""
        for number, asked in history.asked.items():
            ticket = tickets.numbered(number)
            if ticket is None:
                ticket = Ticket(asked.analyst, asked.key, self._compile(asked), asked.pay)
                ticket.number = number
                tickets.keep([ticket])
            if not ticket.done and number in history.ended:
                _settle(ticket, history.ended[number])
        self.due = [tickets.known(number) for number in history.due]

    def _take_up_scheduler(self, history: History, tickets: Tickets) -> None:
        if history.turn:
            self.scheduler.restore(history.turn.scheduler, time.monotonic())
        for number, told in history.still_waiting():
            match told:
                case Asked(_, analyst):
                    ticket = tickets.known(number)
                    ticket.place = self.scheduler.submit(analyst, ticket)
                case Done(analyst):
                    self.scheduler.done(analyst)
                case Granted(payer) if payer not in self.scheduler.analysts:
                    self.scheduler.join(payer)
                case Left(payer) if payer in self.scheduler.analysts:
                    self.scheduler.leave(payer)

    def _compile(self, asked: Asked) -> Statement:
        return compile_sql(asked.question["sql"], self.config.domain, table=self.config.name)


def _settle(ticket: Ticket, ended: Answered | Refused) -> None:
    match ended:
        case Answered(number, answers):
            found = tuple(from_plain(answer) for answer in answers)
            ticket.answered(Result(number, ticket.analyst, ticket.statement, found))
        case Refused(_, code, message):
            ticket.refused(refusal(code, message))


def refusal(code: str, message: str) -> RequestError:
    """A refusal that was stored, with the code that it had."""
    error = RequestError(message)
    error.code = code
    return error


class _Remembering:
    """A ledger that is read once while it is opened: the kernel, the mechanism and we all want it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._events: list[Event] | None = list(ledger.events())

    def append(self, event: Event) -> int:
        return self.append_many((event,))

    def append_many(self, events: Sequence[Event]) -> int:
        first = self._ledger.append_many(events)
        if self._events is not None:
            self._events += events
        return first

    def events(self) -> Iterator[Event]:
        if self._events is None:
            raise LedgerError("The ledger has been read.", hint="Open it again to read it again.")
        return iter(tuple(self._events))

    def __len__(self) -> int:
        return len(self._ledger)

    def forget(self) -> None:
        """Let the events go: from now on there are only new ones."""
        self._events = None
