"""State: the curator, the mechanism, the scheduler and the questions, as a ledger leaves them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sharewell.collector import without_collections
from sharewell.config.config import Config
from sharewell.engine.data_vector import DataVector
from sharewell.errors import OverBudget
from sharewell.mechanism.base import Mechanism
from sharewell.privacy.curator import Curator
from sharewell.privacy.ledger import Asked, Configured, Done, Event, Granted, Ledger, Left
from sharewell.privacy.noise import Noise
from sharewell.query.sql import compile_sql
from sharewell.query.statement import Statement
from sharewell.service.history import Happened, History
from sharewell.service.served import Served, refuse_withdrawn
from sharewell.service.terms import refuse_other_terms
from sharewell.service.ticket import Ticket, Tickets
from sharewell.sharing.collective import Collective
from sharewell.sharing.scheduler import Scheduler


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
    stream: list[Happened]
    #: Questions that had their turn before a crash, to be answered first.
    due: list[Ticket] = field(default_factory=list)

    @classmethod
    def open(
        cls, config: Config, ledger: Ledger, data: DataVector, noise: Noise, tickets: Tickets
    ) -> State:
        """Take up what a ledger holds, or begin it; what was charged and not released is measured.

        Analysts who wait keep the tickets that they hold.
        """
        with without_collections():
            return cls._open(config, _Remembering(ledger), data, noise, tickets)

    @classmethod
    def _open(
        cls,
        config: Config,
        remembering: _Remembering,
        data: DataVector,
        noise: Noise,
        tickets: Tickets,
    ) -> State:
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
        if last:
            refuse_other_terms(last[0], config)
        if last != [settings]:
            remembering.append(settings)
        mechanism = config.make(curator)
        history = History.of(remembering.events())
        remembering.forget()
        state = cls(config, curator, mechanism, config.scheduler(), history.initial, history.stream)
        state._take_up_questions(history, tickets)
        refuse_withdrawn(remembering, state._take_up_scheduler(history, tickets))
        return state

    @property
    def collective(self) -> Collective:
        """The collective as it began."""
        return replace(self.config.collective, shares=self.initial)

    def served(self, served: Served) -> bool:
        """Add a question to the stream, as `History` will find it in the ledger; whether it counts."""
        counts = served.error is None or served.error.code == OverBudget.code
        if counts:
            self.stream.append(served.ticket.asked)
        return counts

    def joined(self, analyst: str) -> None:
        """Add somebody who came to the stream."""
        self.stream.append(Granted(analyst, self.curator.share(analyst)))

    def left(self, analyst: str, donate: bool) -> None:
        """Add somebody who went to the stream."""
        self.stream.append((Left(analyst), donate))

    def take_due(self) -> list[Ticket]:
        """What is to be answered first."""
        due, self.due = self.due, []
        return due

    def _take_up_questions(self, history: History, tickets: Tickets) -> None:
        """Know all questions again, and tell those who waited without knowing how theirs had ended."""
        missing = []
        for number, asked in history.asked.items():
            ticket, ended = tickets.numbered(number), history.ended.get(number)
            if ticket is None:
                missing.append(Ticket.restored(number, asked, ended, self._compile))
            elif ended and not ticket.done:
                ticket.settle(ended)
        tickets.keep(missing)
        self.due = [tickets.known(number) for number in history.due]
        for ticket in self.due:
            ticket.place = None

    def _take_up_scheduler(self, history: History, tickets: Tickets) -> list[Ticket]:
        """Tell the scheduler what it was told; questions that nobody is here for are given back."""
        withdrawn = []
        if history.turn and history.turn.scheduler.get("scheduler") == self.scheduler.name:
            self.scheduler.restore(history.turn.scheduler, time.monotonic())
        elif history.turn:
            # The settings name another one by now: it begins with those who are here.
            for analyst in self.mechanism.analysts:
                if analyst not in self.scheduler.analysts:
                    self.scheduler.join(analyst)
            for analyst in self.scheduler.analysts:
                if analyst not in self.mechanism.analysts:
                    self.scheduler.leave(analyst)
        for number, told in history.still_waiting():
            match told:
                case Asked(_, analyst):
                    ticket = tickets.known(number)
                    if analyst in self.scheduler.analysts:
                        ticket.place = self.scheduler.submit(analyst, ticket)
                    else:
                        withdrawn.append(ticket)
                case Done(analyst) if analyst in self.scheduler.analysts:
                    self.scheduler.done(analyst)
                case Granted(payer) if payer not in self.scheduler.analysts:
                    self.scheduler.join(payer)
                case Left(payer) if payer in self.scheduler.analysts:
                    withdrawn += [place.item for place in self.scheduler.leave(payer)]
        return withdrawn

    def _compile(self, sql: str) -> Statement:
        return compile_sql(sql, self.config.domain, table=self.config.name)


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
        return self._ledger.events() if self._events is None else iter(tuple(self._events))

    def __len__(self) -> int:
        return len(self._ledger)

    def forget(self) -> None:
        """Let the events go: from now on there are only new ones."""
        self._events = None
