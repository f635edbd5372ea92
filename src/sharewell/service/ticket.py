"""Tickets: a question on its way, from the moment it is taken until it is answered or refused."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from threading import Event, Lock
from typing import Any

from sharewell.errors import KeyReused, RequestError, SharewellError
from sharewell.privacy.ledger import Answered, Asked, Refused
from sharewell.query.statement import Statement
from sharewell.service.result import Result, from_plain
from sharewell.sharing.schedulers.base import Ticket as Place

#: Held while a ticket is settled or somebody begins to wait; a lock for each would be one too many.
_SETTLING = Lock()


#: For so many seconds it is known which questions waited.
MINUTE = 60.0


class Ticket:
    """What an analyst holds while a question waits; `result()` gives the answer when it is there.

    It has a number as soon as the question is stored for good. Waiting may be given up at any time:
    the question stays, and asking again with the same key finds it.
    """

    def __init__(
        self,
        asked: Asked,
        compile: Callable[[str], Statement],
        ended: Answered | Refused | None = None,
    ) -> None:
        self.asked = asked
        self.analyst = asked.analyst
        self.key = asked.key
        self.sql: str = asked.question["sql"]
        self.pay = asked.pay
        self.number: int | None = None
        #: Where it stands with the scheduler, while it waits there.
        self.place: Place[Any] | None = None
        #: Whether there is something to tell: an answer, a refusal, or that the question waits its turn.
        self.ready = ended is not None
        self._compile = compile
        # Of questions that ended before a restart, most are never looked at again.
        self._ended = ended
        self._outcome: Result | Exception | None = None
        # Most tickets are looked at when they are done; only those who wait need an event to wait for.
        self._until_ready: Event | None = None
        self._until_done: Event | None = None
        self._followers: tuple[Ticket, ...] = ()
        #: When it was answered or refused, on the monotonic clock.
        self.ended_at = -math.inf

    @classmethod
    def restored(
        cls,
        number: int,
        asked: Asked,
        ended: Answered | Refused | None,
        compile: Callable[[str], Statement],
    ) -> Ticket:
        """A question as the ledger has it; of one that has ended, the answer is made when it is read."""
        ticket = cls(asked, compile, ended)
        ticket.number = number
        ticket.ready = True
        return ticket

    @property
    def statement(self) -> Statement:
        """What is asked; compiled statements are kept elsewhere, and only so many of them."""
        return self._compile(self.sql)

    @property
    def stored(self) -> int:
        """The number of a question that has been given one."""
        if self.number is None:
            raise RequestError("The question has no number yet.")
        return self.number

    @property
    def done(self) -> bool:
        """Whether it was answered or refused."""
        return self._outcome is not None or self._ended is not None

    def asks(self, sql: str, pay: bool) -> bool:
        """Whether the question is this one; a key stands for one question only."""
        return self.sql == sql and self.pay == pay

    def waits(self) -> None:
        """Take note that the question is stored for good, and that its turn is to come."""
        with _SETTLING:
            self._tell()

    def follow(self, other: Ticket) -> None:
        """Have the same answer as another ticket of the same question."""
        self.number = other.number
        with _SETTLING:
            if not other.done:
                other._followers += (self,)
                if other.ready:
                    self._tell()
                return
        self._settle(other.outcome())

    def answered(self, result: Result) -> None:
        """Hand over the answer."""
        self._settle(result)

    def refused(self, error: Exception) -> None:
        """Say why there is none."""
        self._settle(error)

    def settle(self, ended: Answered | Refused) -> None:
        """Hand over what the ledger holds, to somebody who waits."""
        self._settle(self._made(ended))

    def outcome(self, timeout: float | None = None) -> Result | Exception:
        """Wait for the answer or the refusal; raises TimeoutError."""
        if not self.done and not self._done_event().wait(timeout):
            raise TimeoutError("The question is not answered yet.")
        if self._outcome is None and self._ended is not None:
            self._outcome = self._made(self._ended)
        return self._outcome or RequestError("The question is open.")

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the answer; raises the refusal, or TimeoutError."""
        outcome = self.outcome(timeout)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def wait_until_ready(self, timeout: float | None = None) -> bool:
        """Wait until the question is answered or refused, or is stored and waits its turn."""
        with _SETTLING:
            event = self._until_ready = self._until_ready or Event()
            if self.ready:
                event.set()
        return event.wait(timeout)

    def _done_event(self) -> Event:
        with _SETTLING:
            event = self._until_done = self._until_done or Event()
            if self.done:
                event.set()
        return event

    def _settle(self, outcome: Result | Exception) -> None:
        with _SETTLING:
            if self.done:
                return
            self._outcome = outcome
            self.ended_at = time.monotonic()
            followers, self._followers = self._followers, ()
            if self._until_done:
                self._until_done.set()
            self._tell()
        for follower in followers:
            follower._settle(outcome)

    def _tell(self) -> None:
        self.ready = True
        if self._until_ready:
            self._until_ready.set()

    def _made(self, ended: Answered | Refused) -> Result | Exception:
        if isinstance(ended, Refused):
            return refusal(ended.code, ended.message)
        try:
            answers = tuple(from_plain(answer) for answer in ended.answers)
            return Result(ended.asked, self.analyst, self.statement, answers)
        except SharewellError as error:
            return error


def refusal(code: str, message: str) -> RequestError:
    """A refusal that was stored, with the code that it had."""
    error = RequestError(message)
    error.code = code
    return error


class Tickets:
    """All tickets, by their keys and by their numbers; safe from many threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_key: dict[tuple[str, str], Ticket] = {}
        self._by_number: dict[int, Ticket] = {}
        self._of: dict[str, list[Ticket]] = {}
        #: Those that were open when somebody last counted them.
        self._open: dict[str, list[Ticket]] = {}

    def find(self, analyst: str, key: str) -> Ticket | None:
        """The ticket of a key."""
        return self._by_key.get((analyst, key))

    def add(self, ticket: Ticket) -> Ticket:
        """Add a ticket, unless its key has one already, which is then given back."""
        with self._lock:
            found = self._by_key.setdefault((ticket.analyst, ticket.key), ticket)
            if found is ticket:
                self._open.setdefault(ticket.analyst, []).append(ticket)
            return found

    def numbered(self, number: int) -> Ticket | None:
        """The ticket of a number."""
        return self._by_number.get(number)

    def known(self, number: int) -> Ticket:
        """The ticket of a number that there must be one of."""
        return self._by_number[number]

    def of(self, analyst: str) -> list[Ticket]:
        """An analyst's tickets that are stored, in order."""
        return list(self._of.get(analyst, ()))

    def asked(self, analyst: str) -> int:
        """How many questions of an analyst are stored."""
        return len(self._of.get(analyst, ()))

    def waiting(self, analyst: str, as_of: float | None = None) -> list[Ticket]:
        """Those that are handed in and not done, in order: now, or at a moment that never goes back."""
        forgotten = time.monotonic() - MINUTE if as_of is None else as_of
        with self._lock:
            kept = [t for t in self._open.get(analyst, ()) if not t.done or t.ended_at > forgotten]
            self._open[analyst] = kept
        return kept if as_of is not None else [ticket for ticket in kept if not ticket.done]

    def keep(self, stored: Sequence[Ticket]) -> None:
        """Take note that tickets are stored for good."""
        with self._lock:
            for ticket in stored:
                if (ticket.analyst, ticket.key) not in self._by_key and not ticket.done:
                    self._open.setdefault(ticket.analyst, []).append(ticket)
                self._by_key[ticket.analyst, ticket.key] = ticket
                self._by_number[ticket.stored] = ticket
                self._of.setdefault(ticket.analyst, []).append(ticket)

    def only_new(self, batch: Sequence[Ticket]) -> list[Ticket]:
        """Those that are not stored yet; where one was stored after all, its ticket is followed."""
        new = []
        for ticket in batch:
            known = self._by_key.get((ticket.analyst, ticket.key), ticket)
            if known is ticket:
                new.append(ticket)
            elif known.asks(ticket.sql, ticket.pay):
                ticket.follow(known)
            else:
                ticket.refused(key_reused(ticket.key))
        return new

    def drop(self, batch: Sequence[Ticket], error: Exception) -> None:
        """Forget tickets that could not be stored, or not be finished, and say why.

        Those that are known by their number stay: they are stored, and their keys are used.
        """
        with self._lock:
            for ticket in batch:
                known = ticket.number is not None and self._by_number.get(ticket.number) is ticket
                if not known and self._by_key.get((ticket.analyst, ticket.key)) is ticket:
                    del self._by_key[ticket.analyst, ticket.key]
        for ticket in batch:
            if not ticket.done:
                ticket.refused(error)

    def give_up(self, error: Exception) -> None:
        """Tell all who still wait."""
        for ticket in list(self._by_key.values()):
            if not ticket.done:
                ticket.refused(error)


def key_reused(key: str) -> KeyReused:
    """Says that a key stands for something else."""
    return KeyReused(
        f"The key {key!r} belongs to another question.", hint="Use a new key for a new one."
    )
