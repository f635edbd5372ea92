"""Tickets: a question on its way, from the moment it is taken until it is answered or refused."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from threading import Event, Lock
from typing import Any

from sharewell.errors import RequestError
from sharewell.query.statement import Statement
from sharewell.service.result import Result
from sharewell.sharing.schedulers.base import Ticket as Place


class Ticket:
    """What an analyst holds while a question waits; `result()` gives the answer when it is there.

    It has a number as soon as the question is stored for good. Waiting may be given up at any time:
    the question stays, and asking again with the same key finds it.
    """

    def __init__(self, analyst: str, key: str, statement: Statement, pay: bool) -> None:
        self.analyst = analyst
        self.key = key
        self.statement = statement
        self.pay = pay
        self.number: int | None = None
        #: Where it stands with the scheduler, while it waits there.
        self.place: Place[Any] | None = None
        self.future: Future[Result] = Future()
        self._taken = Event()

    @property
    def stored(self) -> int:
        """The number of a question that has been given one."""
        if self.number is None:
            raise RequestError("The question has no number yet.")
        return self.number

    @property
    def done(self) -> bool:
        """Whether it was answered or refused."""
        return self.future.done()

    def taken(self) -> None:
        """Take note that the question is stored for good."""
        self._taken.set()

    def follow(self, other: Ticket) -> None:
        """Have the same answer as another ticket of the same question."""
        self.number = other.number
        self._taken.set()
        other.future.add_done_callback(self._copy)

    def _copy(self, found: Future[Result]) -> None:
        error = found.exception()
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(found.result())

    def answered(self, result: Result) -> None:
        """Hand over the answer."""
        self._taken.set()
        self.future.set_result(result)

    def refused(self, error: Exception) -> None:
        """Say why there is none."""
        self._taken.set()
        self.future.set_exception(error)

    def wait_until_taken(self, timeout: float | None = None) -> bool:
        """Wait until the question is stored, answered or refused."""
        return self._taken.wait(timeout)

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the answer; raises the refusal, or TimeoutError."""
        return self.future.result(timeout)


class Tickets:
    """All tickets, by their keys and by their numbers; safe from many threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_key: dict[tuple[str, str], Ticket] = {}
        self._by_number: dict[int, Ticket] = {}
        self._of: dict[str, list[Ticket]] = {}

    def find(self, analyst: str, key: str) -> Ticket | None:
        """The ticket of a key."""
        return self._by_key.get((analyst, key))

    def add(self, ticket: Ticket) -> Ticket:
        """Add a ticket, unless its key has one already, which is then given back."""
        with self._lock:
            return self._by_key.setdefault((ticket.analyst, ticket.key), ticket)

    def numbered(self, number: int) -> Ticket | None:
        """The ticket of a number."""
        return self._by_number.get(number)

    def known(self, number: int) -> Ticket:
        """The ticket of a number that there must be one of."""
        return self._by_number[number]

    def of(self, analyst: str) -> list[Ticket]:
        """An analyst's tickets that are stored, in order."""
        return list(self._of.get(analyst, ()))

    def keep(self, stored: Sequence[Ticket]) -> None:
        """Take note that tickets are stored for good."""
        with self._lock:
            for ticket in stored:
                self._by_key[ticket.analyst, ticket.key] = ticket
                self._by_number[ticket.stored] = ticket
                self._of.setdefault(ticket.analyst, []).append(ticket)
        for ticket in stored:
            ticket.taken()

    def only_new(self, batch: Sequence[Ticket]) -> list[Ticket]:
        """Those that are not stored yet; where one was stored after all, its ticket is followed."""
        new = []
        for ticket in batch:
            known = self._by_key.get((ticket.analyst, ticket.key), ticket)
            if known is ticket:
                new.append(ticket)
            else:
                ticket.follow(known)
        return new

    def drop(self, batch: Sequence[Ticket], error: Exception) -> None:
        """Forget tickets that could not be stored, or not be finished, and say why."""
        with self._lock:
            for ticket in batch:
                if self._by_key.get((ticket.analyst, ticket.key)) is ticket:
                    del self._by_key[ticket.analyst, ticket.key]
        for ticket in batch:
            if not ticket.done:
                ticket.refused(error)

    def give_up(self, error: Exception) -> None:
        """Tell all who still wait."""
        for ticket in list(self._by_key.values()):
            if not ticket.done:
                ticket.refused(error)
