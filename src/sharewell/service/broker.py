"""The broker: one dataset, one collective, one scheduler, one mechanism, one curator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from threading import Lock

from sharewell.config.config import Config
from sharewell.engine.data_vector import DataVector
from sharewell.errors import Closed, PrivacyError, RequestError
from sharewell.privacy.budget import Amount
from sharewell.privacy.ledger import Asked, Done, Ledger
from sharewell.privacy.noise import ExactNoise, Noise
from sharewell.query.sql import compile_sql
from sharewell.query.statement import Statement
from sharewell.service.history import EntryReader
from sharewell.service.quote import Quote, quote
from sharewell.service.result import Result
from sharewell.service.served import Served, refuse_withdrawn
from sharewell.service.state import State
from sharewell.service.ticket import Ticket, Tickets, key_reused
from sharewell.service.unguessable import unguessable
from sharewell.service.worker import Worker
from sharewell.sharing.follower import Follower
from sharewell.sharing.report import Report

#: The longest idempotency key.
LONGEST_KEY = 200


@dataclass(frozen=True)
class Status:
    """How an analyst stands."""

    analyst: str
    share: Fraction
    spent: Fraction
    left: Fraction
    asked: int
    waiting: int


class Broker:
    """Carries every request from end to end; safe from many threads.

    A question is stored before anything is done for it, a charge before the data is touched, and an
    answer before it is given. Asked again with the same key, a question has the same answer. Two who
    ask the same new question at the same moment pay for it once.

    Privacy: everything released went through the curator, and its charge was stored before.
    """

    def __init__(
        self,
        config: Config,
        ledger: Ledger,
        *,
        data: DataVector | None = None,
        noise: Noise | None = None,
        certificate: bool = True,
        tick: float = 0.05,
    ) -> None:
        noise = ExactNoise() if noise is None else noise
        if not noise.exact:
            raise PrivacyError(
                "A service draws exact noise only.", hint="Seeded noise is for studies on made-up data."
            )
        self.config = config
        self._ledger = ledger
        self._closing = False
        self._closed = Lock()
        self._tickets = Tickets()
        self._follower: Follower | None = None
        self._followed = 0
        data = config.vector() if data is None else data
        opened = partial(State.open, config, ledger, data, noise, self._tickets)
        self._worker = Worker(ledger, self._tickets, opened, self._follow, tick)
        if certificate:
            self._follower = Follower(
                self._state.collective,
                error_threshold=config.error_threshold,
                scheduler=self._state.scheduler,
                read=EntryReader(config.domain, config.name),
            )
        self._follow(self._state, ())
        self._worker.start()

    # What analysts do

    def quote(self, analyst: str, sql: str) -> Quote:
        """What a question would cost and how far off its answers may be; spends nothing."""
        statement = self._compile(sql)
        with self._worker.thinking:
            return self._quote(analyst, statement)

    def quote_at_once(self, analyst: str, sql: str) -> Quote | None:
        """The same, or None where it would have to wait for the mechanism."""
        statement = self._compile(sql)
        if not self._worker.thinking.acquire(blocking=False):
            return None
        try:
            return self._quote(analyst, statement)
        finally:
            self._worker.thinking.release()

    def _quote(self, analyst: str, statement: Statement) -> Quote:
        self._state.mechanism.require(analyst)
        return quote(self._state.mechanism, statement, analyst)

    def submit(self, analyst: str, sql: str, *, pay: bool = True, key: str | None = None) -> Ticket:
        """Hand in a question; with a key that was used before, the ticket of that time."""
        key = unguessable() if key is None else key
        _refuse_bad_texts(key, sql)
        ticket = self._tickets.find(analyst, key)
        if ticket is None:
            new = Ticket(Asked(key, analyst, {"sql": sql}, pay), self._compile)
            self._refuse_nonsense(new)
            with self._closed:
                self._refuse_when_closing()
                ticket = self._tickets.add(new)
                if ticket is new:
                    self._worker.put(new)
        if not ticket.asks(sql, pay):
            raise key_reused(key)
        return ticket

    def ask(
        self,
        analyst: str,
        sql: str,
        *,
        pay: bool = True,
        key: str | None = None,
        timeout: float | None = None,
    ) -> Result:
        """Ask, and wait for the answer."""
        return self.submit(analyst, sql, pay=pay, key=key).result(timeout)

    def done(self, analyst: str) -> None:
        """Say that an analyst has no more questions for now, so that no rotation waits for them."""

        def note(state: State) -> None:
            state.mechanism.require(analyst)
            self._ledger.append(Done(analyst))
            state.scheduler.done(analyst)

        self._run(note)

    def status(self, analyst: str) -> Status:
        """What an analyst was given, has spent and has left, and how many questions wait."""
        curator = self._state.curator
        amounts = curator.share(analyst), curator.spent(analyst), curator.left(analyst)
        return Status(analyst, *amounts, self._tickets.asked(analyst), len(self.waiting(analyst)))

    def waiting(self, analyst: str, as_of: float | None = None) -> list[Ticket]:
        """An analyst's questions that are handed in and not answered, now or a moment ago, in order."""
        return self._tickets.waiting(analyst, as_of)

    def find(self, analyst: str, key: str) -> Ticket | None:
        """An analyst's question with a key, if there is one."""
        return self._tickets.find(analyst, key)

    def ticket(self, analyst: str, number: int) -> Ticket | None:
        """An analyst's question with a number, if there is one."""
        found = self._tickets.numbered(number)
        return found if found and found.analyst == analyst else None

    def tickets(self, analyst: str) -> list[Ticket]:
        """An analyst's questions so far, in order."""
        return self._tickets.of(analyst)

    def position(self, ticket: Ticket) -> int:
        """How many of the same analyst's questions come before one that waits."""
        with self._worker.thinking:
            if ticket.place is None or ticket.done:
                return 0
            return self._state.scheduler.position(ticket.place)

    def certificate(self, *, up_to_date: bool = False) -> Report:
        """How everybody fares here, alone and without each other."""
        if self._follower is None:
            raise RequestError("The certificate is switched off.", hint="Open the broker with it.")
        return self._follower.wait() if up_to_date else self._follower.report()

    # What curators do

    @property
    def analysts(self) -> tuple[str, ...]:
        """Those who may ask."""
        return self._state.mechanism.analysts

    @property
    def unallocated(self) -> Fraction:
        """What nobody holds: those who leave give nothing back."""
        return self._state.curator.unallocated

    def join(self, analyst: str, share: Amount) -> None:
        """Take in a new analyst, with a share of what nobody holds, in the budget's currency."""

        def take_in(state: State) -> None:
            # The scheduler first: what it refuses must not be in the ledger, or nobody could open it.
            state.scheduler.join(analyst)
            try:
                state.mechanism.join(analyst, share)
            except BaseException:
                state.scheduler.leave(analyst)
                raise
            state.joined(analyst)

        self._run(take_in)

    def leave(self, analyst: str, *, donate: bool = False) -> None:
        """Let an analyst go; questions of theirs that still wait are refused."""

        def let_go(state: State) -> None:
            state.mechanism.leave(analyst, donate=donate)
            withdrawn = [place.item for place in state.scheduler.leave(analyst)]
            state.left(analyst, donate)
            refuse_withdrawn(self._ledger, withdrawn)

        self._run(let_go)

    def close(self) -> None:
        """Finish what was handed in, and stop; the ledger stays open."""
        with self._closed:
            if self._closing:
                return
            self._closing = True
        self._worker.close()
        if self._follower:
            self._follower.close()

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _state(self) -> State:
        return self._worker.state

    def _refuse_nonsense(self, ticket: Ticket) -> None:
        """Refuse what cannot be asked, before anything is stored."""
        self._state.mechanism.require(ticket.analyst)
        _ = ticket.statement

    def _refuse_when_closing(self) -> None:
        if self._closing:
            raise Closed("The service is closing.", hint="Ask again later, with the same key.")

    def _run(self, errand: Callable[[State], None]) -> None:
        with self._closed:
            self._refuse_when_closing()
            waiting = self._worker.run(errand)
        waiting.result()

    def _follow(self, state: State, served: Sequence[Served]) -> None:
        """Tell the certificate what has happened since it was last told."""
        before = state.stream[self._followed :]
        now = [each for each in served if state.served(each)]
        self._followed = len(state.stream)
        if self._follower is None:
            return
        for happened in before:
            self._follower.record(happened)
        for each in now:
            # Compiled already, which is more work than all that the certificate does with it.
            self._follower.record(each.entry)

    def _compile(self, sql: str) -> Statement:
        return compile_sql(sql, self.config.domain, table=self.config.name)


def _refuse_bad_texts(key: str, sql: str) -> None:
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY:
        raise RequestError(f"A key is a text of 1 to {LONGEST_KEY} characters.")
    try:
        (key + sql).encode()
    except (TypeError, UnicodeEncodeError):
        raise RequestError(
            "A key and a question are texts of whole Unicode characters.",
            hint="One of them holds half of a surrogate pair, or is no text.",
        ) from None
