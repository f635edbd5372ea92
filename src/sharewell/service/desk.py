"""The desk: one dataset in the words of the wire, between the broker and whoever asks."""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, Literal

from sharewell import wire
from sharewell.config.config import Config
from sharewell.errors import (
    LedgerInUse,
    NotFound,
    OverBudget,
    Paused,
    QueryTooComplex,
    RequestError,
    TooMany,
    UnknownPayer,
)
from sharewell.privacy.budget import amount
from sharewell.query.sql import compile_sql, compiled_before
from sharewell.service.access import Access, Holder, check_name
from sharewell.service.broker import Broker, Status
from sharewell.service.ledger import DurableLedger, open_ledger
from sharewell.service.shown import (
    price_of,
    show_certificate,
    show_dataset,
    show_events,
    show_problem,
)
from sharewell.service.table import answer_table, quote_table
from sharewell.service.ticket import Ticket

#: Up to so many numbers a question is little work.
LIGHT = 100
#: How many entries a page has at the most.
LONGEST_PAGE = 1_000
#: How long it may take until a token or a pause is seen that another process has changed, in seconds.
SEEN_AFTER = 0.05
#: How long to wait for whoever still writes to the ledger, in seconds, where one is willing to.
PATIENCE = 5.0


class Desk:
    """Takes what came over the wire to the broker, and brings back what goes over it.

    It adds to the broker what a service needs: tokens, pausing, and limits on how many questions of one
    analyst wait and on how much one question asks for. Safe from many threads.

    Privacy: all that it shows comes from the configuration, from the broker's answers, and from the
    ledger without what is secret in it.
    """

    def __init__(self, config: Config, broker: Broker, ledger: DurableLedger, access: Access) -> None:
        self.config = config
        self.broker = broker
        self.ledger = ledger
        self.access = access
        self._price = price_of(config)
        self._dataset = show_dataset(config)
        #: Held from when it is counted what waits until one more does.
        self._counting = Lock()

    @classmethod
    def open(cls, config: Config, *, wait: bool = False) -> Desk:
        """Open ledger, data and tokens as configured; with `wait`, once the last writer has gone."""
        service = config.service
        access = Access(service.access, fresh_for=SEEN_AFTER)
        try:
            ledger = open_ledger(service.ledger, name=config.name, wait=PATIENCE if wait else 0.0)
        except LedgerInUse as error:
            ours = f"process {os.getpid()} " in f"{error.message} "
            hint = "Close what has opened it here first" if ours else "Stop that one first"
            raise LedgerInUse(
                error.message, hint=f"{hint}: a dataset is served by one process at a time, and once."
            ) from None
        try:
            broker = Broker(config, ledger, certificate=service.certificate, tick=service.tick)
            try:
                return cls(config, broker, ledger, access)
            except BaseException:
                broker.close()
                raise
        except BaseException:
            ledger.close()
            raise

    @property
    def name(self) -> str:
        """What the dataset is called."""
        return self.config.name

    def holder(self, token: str) -> Holder | None:
        """Who a token was given to; None for a curator whom the configuration no longer names."""
        found = self.access.holder(token)
        if found and found.role == "curator" and found.name not in self.config.service.curators:
            return None
        return found

    # What analysts do

    def dataset(self) -> wire.Dataset:
        """What everybody who may ask may know."""
        return self._dataset.model_copy(update={"paused": self.access.paused})

    def quote(self, analyst: str, sql: str) -> wire.Quote:
        """What a statement would cost, and how far off its answers may be; spends nothing."""
        self._refuse_large(sql)
        return quote_table(self.broker.quote(analyst, sql))

    def quote_at_once(self, analyst: str, sql: str) -> wire.Quote | None:
        """The same, or None where it would have to wait for the mechanism."""
        self._refuse_large(sql)
        found = self.broker.quote_at_once(analyst, sql)
        return None if found is None else quote_table(found)

    def is_light(self, sql: str) -> bool:
        """Whether a question is sure to take little work: its words were compiled before, to little."""
        statement = compiled_before(sql, self.config.domain, table=self.name)
        return statement is not None and len(statement.queries) <= LIGHT

    def submit(self, analyst: str, question: wire.Question) -> Ticket:
        """Hand in a question; with a key that was used before, the ticket of that time."""
        self._refuse_when_paused()
        self._refuse_large(question.sql)
        with self._counting:
            self._refuse_too_many(analyst, question.key)
            return self.broker.submit(analyst, question.sql, pay=question.pay, key=question.key)

    def ticket(self, analyst: str, number: int) -> Ticket:
        """One of an analyst's questions, by its number."""
        found = self.broker.ticket(analyst, number)
        if found is None:
            raise NotFound(
                f"{analyst} has no question with the number {number}.",
                hint="The list of questions has the numbers of all.",
            )
        return found

    def shown(self, ticket: Ticket) -> wire.Ticket:
        """A ticket as it stands; raises the refusal of one that was never stored.

        There is no coming back to such a one: its number will be another question's.
        """
        if not ticket.done:
            return _shown(ticket, "waiting", position=self._position(ticket))
        outcome = ticket.outcome()
        if not isinstance(outcome, Exception):
            return _shown(ticket, "answered", answer=answer_table(outcome, pay=ticket.pay))
        if not self._is_stored(ticket):
            raise outcome
        return _shown(ticket, "refused", problem=show_problem(outcome))

    def budget(self, analyst: str) -> wire.Budget:
        """How an analyst stands."""
        return self._budget(self.broker.status(analyst))

    def questions(self, analyst: str, after: int = -1, limit: int = 100) -> wire.Questions:
        """A page of an analyst's questions, oldest first."""
        _check_page(after, limit)
        found = self.broker.tickets(analyst)
        start = bisect_right(found, after, key=_number)
        page = self._not_too_large(found[start : start + limit])
        more = start + len(page) < len(found)
        return wire.Questions(
            tickets=tuple(self.shown(ticket) for ticket in page),
            next=page[-1].number if more else None,
        )

    def done(self, analyst: str) -> None:
        """Say that an analyst has no more questions for now."""
        self._refuse_when_paused()
        self.broker.done(analyst)

    def certificate(self, analyst: str | None) -> wire.Certificate:
        """The fairness certificate: one's own standing, or with None everybody's."""
        return show_certificate(self.broker.certificate(), analyst)

    # What curators do

    def events(self, after: int = -1, limit: int = 100) -> wire.Events:
        """A page of the ledger, without what is secret in it."""
        _check_page(after, limit)
        return show_events(self.ledger, after, limit)

    def analysts(self) -> wire.Analysts:
        """Everybody who may ask, and what nobody holds yet."""
        everybody = [self.broker.status(analyst) for analyst in self.broker.analysts]
        return wire.Analysts(
            analysts=tuple(self._budget(status) for status in everybody),
            unallocated=str(self.broker.unallocated),
            unallocated_part=str(self.broker.unallocated / self.config.budget.total),
        )

    def join(self, newcomer: wire.Newcomer) -> str:
        """Take in a new analyst, with a part of the whole budget; a token for them."""
        name = check_name(newcomer.name)
        known = {each.casefold(): each for each in self.broker.analysts if each != name}
        if name.casefold() in known:
            raise RequestError(
                f"{name} would be mistaken for {known[name.casefold()]}.", hint="Choose another name."
            )
        if name in self.config.service.curators:
            raise RequestError(
                f"{name} is a curator here.", hint="Whoever is both needs two names: choose another."
            )
        part = amount(newcomer.share, f"The share of {name}")
        # Before it has to wait for its turn; whoever comes in between is refused by the kernel.
        spare = self.broker.unallocated / self.config.budget.total
        if part > spare:
            raise OverBudget(
                f"{name} would have {part} of the budget, and {spare} of it is nobody's.",
                hint=f"Give {spare} at the most." if spare else "Nobody more can join.",
            )
        self.broker.join(name, part * self.config.budget.total)
        return self.access.issue(name, "analyst")

    def leave(self, name: str, donate: bool = False) -> None:
        """Let an analyst go; their token ends."""
        try:
            self.broker.leave(name, donate=donate)
        except UnknownPayer:
            # They may have left before, at a moment at which the token could not be ended.
            with suppress(RequestError):
                self.access.revoke(name, "analyst")
            raise
        self.access.revoke(name, "analyst")

    def token(self, name: str) -> str:
        """A new token for an analyst; the former one ends."""
        if name not in self.broker.analysts:
            raise NotFound(
                f"Nobody called {name!r} is an analyst here.",
                hint="The list of analysts has all names.",
            )
        return self.access.issue(name, "analyst")

    def pause(self) -> None:
        """Take no more questions until `resume`, also after a restart."""
        self.access.pause()

    def resume(self) -> None:
        """Take questions again."""
        self.access.resume()

    def close(self) -> None:
        """Finish what was handed in, and let go of the ledger."""
        try:
            self.broker.close()
        finally:
            self.ledger.close()

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Desk({self.name!r})"

    def _refuse_when_paused(self) -> None:
        if self.access.paused:
            raise Paused(f"{self.name} is paused.", hint="Come back when its curator has let it go on.")

    def _refuse_large(self, sql: str) -> None:
        """Refuse what asks for more numbers than one question may, before anybody works for it."""
        most = self.config.service.most_numbers
        statement = compile_sql(sql, self.config.domain, table=self.name, most=most)
        if statement.size > most:
            raise QueryTooComplex(
                f"The SQL asks for {statement.size:,} numbers, and {most:,} at most are answered at a "
                "time.",
                hint="Group by fewer columns, or ask for it in parts.",
            )

    def _not_too_large(self, tickets: Sequence[Ticket]) -> Sequence[Ticket]:
        """As many tickets as have together no more numbers than one question may have; one at least."""
        numbers = 0
        for at, ticket in enumerate(tickets):
            outcome = ticket.outcome() if ticket.done else None
            numbers += 0 if outcome is None or isinstance(outcome, Exception) else len(outcome.answers)
            if at and numbers > self.config.service.most_numbers:
                return tickets[:at]
        return tickets

    def _refuse_too_many(self, analyst: str, key: str | None) -> None:
        """Refuse somebody who has enough waiting, unless they ask again for what they have asked."""
        service = self.config.service
        most = service.most_waiting
        # As it was in the last release slot: when a question was done is not to be found out this way.
        as_of = time.monotonic() // service.release_every * service.release_every
        if len(self.broker.waiting(analyst, as_of)) < most:
            return
        if key is None or self.broker.find(analyst, key) is None:
            raise TooMany(
                f"{analyst} has {most:,} questions waiting, and that is the most.",
                hint="Wait until some of them are answered.",
            )

    def _position(self, ticket: Ticket) -> int:
        """How many of the analyst's questions come before one that waits.

        Counted here, since the broker has to wait for its mechanism before it can ask the scheduler.
        """
        waiting = self.broker.waiting(ticket.analyst)
        return sum(other.number is not None and other.number < ticket.stored for other in waiting)

    def _is_stored(self, ticket: Ticket) -> bool:
        """Whether a question with its number is there, and is this one."""
        if ticket.number is None:
            return False
        found = self.broker.ticket(ticket.analyst, ticket.number)
        return found is not None and found.key == ticket.key

    def _budget(self, status: Status) -> wire.Budget:
        return wire.Budget(
            analyst=status.analyst,
            currency=self.config.budget.currency,
            part=str(status.share / self.config.budget.total),
            share=str(status.share),
            spent=str(status.spent),
            left=str(status.left),
            asked=status.asked,
            waiting=status.waiting,
            questions_left=None if self._price is None else status.left // self._price,
        )


def _number(ticket: Ticket) -> int:
    return ticket.stored


def _shown(ticket: Ticket, state: Literal["waiting", "answered", "refused"], **more: Any) -> wire.Ticket:
    return wire.Ticket(
        number=ticket.stored, key=ticket.key, sql=ticket.sql, pay=ticket.pay, state=state, **more
    )


def _check_page(after: int, limit: int) -> None:
    if after < -1 or not 1 <= limit <= LONGEST_PAGE:
        raise RequestError(
            f"A page has 1 to {LONGEST_PAGE:,} entries, and begins after a number of -1 or more.",
            hint="Leave both out for the first page, and go on after the `next` of each.",
        )
