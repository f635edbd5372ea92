"""Tickets: a question on its way, from the moment it is taken until it is answered or refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import cached_property
from threading import Event, Lock
from typing import Any

from sharewell.errors import KeyReused, RequestError, SharewellError
from sharewell.privacy.ledger import Answered, Asked, Refused
from sharewell.query.statement import Statement
from sharewell.service.result import Result, from_plain
from sharewell.sharing.schedulers.base import Ticket as Place

#: Held while an answer of an earlier time is made; a lock for each ticket would be one too many.
_MAKING = Lock()


class Ticket:
    """What an analyst holds while a question waits; `result()` gives the answer when it is there.

    It has a number as soon as the question is stored for good. Waiting may be given up at any time:
    the question stays, and asking again with the same key finds it.
    """

    def __init__(
        self,
        analyst: str,
        key: str,
        sql: str,
        pay: bool,
        compile: Callable[[str], Statement],
        ended: Answered | Refused | None = None,
    ) -> None:
        self.analyst = analyst
        self.key = key
        self.sql = sql
        self.pay = pay
        self.number: int | None = None
        #: Where it stands with the scheduler, while it waits there.
        self.place: Place[Any] | None = None
        self._compile = compile
        # Of questions that ended before a restart, most are never looked at again.
        self._ended = ended
        self._future = None if ended else _uncancelled()
        self._taken = None if ended else Event()

    @classmethod
    def restored(
        cls,
        number: int,
        asked: Asked,
        ended: Answered | Refused | None,
        compile: Callable[[str], Statement],
    ) -> Ticket:
        """A question as the ledger has it; of one that has ended, the answer is made when it is read."""
        ticket = cls(asked.analyst, asked.key, asked.question["sql"], asked.pay, compile, ended)
        ticket.number = number
        return ticket

    @cached_property
    def statement(self) -> Statement:
        """What is asked."""
        return self._compile(self.sql)

    @property
    def future(self) -> Future[Result]:
        """What will hold the answer, or the refusal."""
        if self._future is None:
            with _MAKING:
                if self._future is None:
                    future = _uncancelled()
                    self._settle(future, self._ended)
                    self._future, self._ended = future, None
        return self._future

    @property
    def stored(self) -> int:
        """The number of a question that has been given one."""
        if self.number is None:
            raise RequestError("The question has no number yet.")
        return self.number

    @property
    def done(self) -> bool:
        """Whether it was answered or refused."""
        return self._future is None or self._future.done()

    def asks(self, sql: str, pay: bool) -> bool:
        """Whether the question is this one; a key stands for one question only."""
        return self.sql == sql and self.pay == pay

    def taken(self) -> None:
        """Take note that the question is stored for good."""
        if self._taken:
            self._taken.set()

    def follow(self, other: Ticket) -> None:
        """Have the same answer as another ticket of the same question."""
        self.number = other.number
        self.taken()
        other.future.add_done_callback(self._copy)

    def _copy(self, found: Future[Result]) -> None:
        error = found.exception()
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(found.result())

    def answered(self, result: Result) -> None:
        """Hand over the answer."""
        self.taken()
        self.future.set_result(result)

    def refused(self, error: Exception) -> None:
        """Say why there is none."""
        self.taken()
        self.future.set_exception(error)

    def settle(self, ended: Answered | Refused) -> None:
        """Hand over what the ledger holds, to somebody who waits."""
        self.taken()
        self._settle(self.future, ended)

    def _settle(self, future: Future[Result], ended: Answered | Refused | None) -> None:
        try:
            if not isinstance(ended, Answered):
                raise refusal(ended.code, ended.message) if ended else RequestError("It is open.")
            answers = tuple(from_plain(answer) for answer in ended.answers)
            future.set_result(Result(ended.asked, self.analyst, self.statement, answers))
        except SharewellError as error:
            future.set_exception(error)

    def wait_until_taken(self, timeout: float | None = None) -> bool:
        """Wait until the question is stored, answered or refused."""
        return self._taken is None or self._taken.wait(timeout)

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the answer; raises the refusal, or TimeoutError."""
        return self.future.result(timeout)


def _uncancelled() -> Future[Result]:
    """A future that those who wait cannot cancel: the question may have been paid for."""
    future: Future[Result] = Future()
    future.set_running_or_notify_cancel()
    return future


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
