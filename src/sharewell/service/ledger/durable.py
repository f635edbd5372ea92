"""The durable ledger: hash-chained events in a store, where concurrent appends share commits."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from threading import Lock
from types import TracebackType

from sharewell.errors import LedgerCorrupt, LedgerError, LedgerInUse, LedgerUnavailable
from sharewell.privacy.ledger import Event, Ledger
from sharewell.service.ledger.chain import BEGINNING, Head, Row, link
from sharewell.service.ledger.codec import decode, encode
from sharewell.service.ledger.store import Store


class DurableLedger(Ledger):
    """A ledger whose `append` returns when the event is stored for good.

    Group commit: whoever finds nobody committing leads. The leader stores everything that waits as one
    transaction, wakes those who wait, and passes the lead on to the first who came meanwhile. So a
    commit is shared by all who came during the one before, and nobody leads for longer than one.

    After a commit that may or may not have happened, the ledger looks at the store's head before it
    does anything else, for up to `patience` seconds. The clock's time is noted beside each event and
    nothing depends on it.
    """

    def __init__(
        self, store: Store, *, patience: float = 5.0, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._patience = patience
        self._clock = clock
        self._process = os.getpid()
        self._mutex = Lock()
        self._committing = Lock()
        self._waiting: list[_Ticket] = []
        self._led = False
        self._closed = False
        #: The head that a commit of unknown outcome would have left behind.
        self._doubt: Head | None = None
        self._usurped = False
        try:
            self._head = store.head()
            self._check_end()
        except BaseException:
            store.close()
            raise

    @property
    def head(self) -> Head:
        """How many events there are, and the hash of the last: worth noting somewhere else."""
        return self._store.head() if self._store.read_only else self._head

    def append(self, event: Event) -> int:
        """Store an event for good and give its number, counted from 0; safe from many threads."""
        return self.append_many((event,))

    def append_many(self, events: Sequence[Event]) -> int:
        """Store several events in a row, all or none of them, and give the first one's number."""
        self._refuse_unless_writer()
        bodies = [encode(event) for event in events]
        if not bodies:
            return self._head.count
        ticket = _Ticket(bodies)
        with self._mutex:
            self._waiting.append(ticket)
            ticket.leads = not self._led
            self._led = True
        if not ticket.leads:
            self._await(ticket)
        if ticket.leads:
            self._lead()
        if ticket.error is not None:
            # Each thread raises its own: a traceback belongs to one of them.
            raise copy(ticket.error)
        return ticket.first

    def events(self, start: int = 0) -> Iterator[Event]:
        """Every event so far from a number on, in order, each checked against the chain.

        After a commit of unknown outcome the store is asked first: what it holds has happened.
        """
        return self._replay(start, len(self))

    def __len__(self) -> int:
        if self._doubt is not None:
            with self._committing:
                self._settle()
        return self.head.count

    def close(self) -> None:
        """Wait for the commit under way, and give the store up to the next writer."""
        with self._committing:
            self._closed = True
            self._store.close()

    def __enter__(self) -> DurableLedger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store}, {self._head.count:,} events)"

    def _refuse_unless_writer(self) -> None:
        if self._store.read_only:
            raise LedgerError(
                "The ledger was opened for reading.", hint="Open it without read_only to write."
            )
        if os.getpid() != self._process:
            raise LedgerInUse(
                f"Process {self._process} opened this ledger, and this is a copy of that process.",
                hint="Open the ledger after the process was started, not before.",
            )

    def _await(self, ticket: _Ticket) -> None:
        """Wait until a leader has stored the ticket or has passed the lead on to it."""
        try:
            ticket.gate.acquire()
        except BaseException:
            # Interrupted: whoever was to lead must not go without having passed it on.
            with self._mutex:
                if ticket in self._waiting:
                    self._waiting.remove(ticket)
                if ticket.leads:
                    self._pass_on()
            raise

    def _lead(self) -> None:
        """Store everything that waits, tell everybody, and pass the lead on."""
        with self._mutex:
            batch, self._waiting = self._waiting, []
        error: LedgerError | None = None
        try:
            with self._committing:
                self._commit(batch)
        except LedgerError as failure:
            error = failure
        except BaseException:
            # An interrupt, which is the leader's own. Those who wait are told what it means for them.
            error = _uncertain("The commit was interrupted.")
            raise
        finally:
            for ticket in batch:
                ticket.error = error
                ticket.gate.release()
            with self._mutex:
                self._pass_on()

    def _pass_on(self) -> None:
        """Wake the first who waits as the next leader; to be called with the mutex held."""
        self._led = bool(self._waiting)
        if self._waiting:
            self._waiting[0].leads = True
            self._waiting[0].gate.release()

    def _commit(self, batch: Sequence[_Ticket]) -> None:
        """Store a batch, and try once more where the first try is known to have stored nothing."""
        if self._closed:
            raise LedgerUnavailable("The ledger is closed.", hint="Open it again.")
        self._settle()
        first = self._head.count
        rows = self._head.after([body for ticket in batch for body in ticket.bodies])
        new = Head(first + len(rows), rows[-1].hash)
        for last_try in (False, True):
            try:
                self._write(rows, new)
                break
            except LedgerUnavailable:
                self._settle()
                if self._head == new:
                    break
                if last_try:
                    raise
        for ticket in batch:
            ticket.first = first
            first += len(ticket.bodies)

    def _write(self, rows: Sequence[Row], new: Head) -> None:
        self._doubt = new
        if not self._store.write(rows, self._head, new, self._clock()):
            self._usurped = True
            self._settle()
        self._head, self._doubt = new, None

    def _settle(self) -> None:
        """Find out whether a batch of unknown outcome is stored, and that nobody else has written."""
        if self._doubt is not None and not self._usurped:
            found = self._find_head()
            self._usurped = found not in (self._head, self._doubt)
            if not self._usurped:
                self._head, self._doubt = found, None
        if self._usurped:
            raise LedgerInUse(
                "Somebody else has written to the ledger since this process last did.",
                hint="Find the other writer and stop one of the two; then open the ledger again.",
            )

    def _find_head(self) -> Head:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return self._store.head()
            except LedgerUnavailable as failure:
                if time.monotonic() >= deadline:
                    raise _uncertain(failure.message, failure.hint) from None
                time.sleep(0.05)

    def _replay(self, start: int, stop: int) -> Iterator[Event]:
        previous, expected = BEGINNING, max(start - 1, 0)
        for row in self._store.read(expected, stop):
            if row.number != expected:
                break
            if row.number < start:
                previous, expected = row.hash, start
                continue
            if link(previous, row.number, row.body) != row.hash:
                raise _corrupt(f"Event {row.number} does not match its hash.")
            try:
                event = decode(row.body)
            except LedgerError as failure:
                raise type(failure)(
                    f"Event {row.number}: {failure.message}", hint=failure.hint
                ) from None
            yield event
            previous = row.hash
            expected += 1
        if expected < stop:
            raise _corrupt(f"Event {expected} is missing.")

    def _check_end(self) -> None:
        """Refuse a store whose last event is not the one that its head names."""
        count = self._head.count
        end = [(row.number, row.hash) for row in self._store.read(max(count - 1, 0), count + 1)]
        if end != ([(count - 1, self._head.hash)] if count else []) or (
            not count and self._head.hash != BEGINNING
        ):
            raise _corrupt("The last event is not the one that the ledger's head names.")


class _Ticket:
    """What one caller wants stored, and how it went."""

    __slots__ = ("bodies", "error", "first", "gate", "leads")

    def __init__(self, bodies: list[bytes]) -> None:
        self.bodies = bodies
        self.first = -1
        self.error: LedgerError | None = None
        self.leads = False
        self.gate = Lock()
        self.gate.acquire()


def _uncertain(message: str, hint: str = "") -> LedgerUnavailable:
    error = LedgerUnavailable(f"{message} Whether the event is stored is not known yet.", hint=hint)
    error.uncertain = True
    return error


def _corrupt(message: str) -> LedgerCorrupt:
    return LedgerCorrupt(
        message, hint="Do not go on with it: verify_chain names the damage, a backup mends it."
    )
