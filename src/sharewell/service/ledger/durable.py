"""The durable ledger: hash-chained events in a store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from threading import Lock

from sharewell.errors import LedgerCorrupt, LedgerError, LedgerInUse, LedgerUnavailable
from sharewell.privacy.ledger import AnsweredFree, Asked, Ending, Event, QuestionLedger, StoredQuestion
from sharewell.service.ledger.codec import decode, encode
from sharewell.service.ledger.files import FileLock
from sharewell.service.ledger.store import BEGINNING, Head, QuestionRow, SideRows, Store, digest, link
from sharewell.service.ledger.witness import Witness


class DurableLedger(QuestionLedger):
    """A ledger whose `append` returns when the event is committed to durable storage.

    Each call is one transaction: `Batch` and the worker collect what belongs into one.

    After a commit of unknown outcome the ledger reads the store's head before it does anything else,
    retrying for up to `patience` seconds. The clock's time is stored with each event for information
    only.

    With a witness, a commit returns when the witness is synced, too. One that cannot be written makes
    the commit uncertain, and is brought up to date before anything else is read or written.
    """

    def __init__(
        self, store: Store, *, patience: float = 5.0, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._patience = patience
        self._clock = clock
        self._process = os.getpid()
        #: Held during a commit, which began at this time of the monotonic clock.
        self._committing = Lock()
        self._committing_since: float | None = None
        self._closed = False
        #: The head that a commit makes, until it is known to be stored, and the witness has it.
        self._uncertain_head: Head | None = None
        #: Why this process may not write any more, once another one has.
        self._usurped: LedgerInUse | None = None
        self._witness: Witness | None = None
        self._witness_lock: FileLock | None = None
        try:
            self._head = store.head()
            self._check_end()
        except BaseException:
            store.close()
            raise

    @property
    def head(self) -> Head:
        """The number of events and the hash of the last one; keep a copy elsewhere."""
        return self._store.head() if self._store.read_only else self._head

    def append(self, event: Event) -> int:
        """Commit an event and return its number, counted from 0; safe from many threads."""
        return self.append_many((event,))

    def append_many(self, events: Sequence[Event]) -> int:
        """Commit several events in a row, all or none, and return the number of the first.

        Retries once if the first attempt is known to have stored nothing.
        """
        if self._store.read_only:
            raise LedgerError(
                "The ledger is open read-only.", hint="Open it without read_only to write."
            )
        if os.getpid() != self._process:
            raise LedgerInUse(
                f"Process {self._process} opened this ledger; this process is a fork of it.",
                hint="Open the ledger after forking.",
            )
        bodies = [encode(event) for event in events]
        with self._exclusive():
            if self._closed:
                raise LedgerUnavailable("The ledger is closed.", hint="Open it again.")
            old = self._head
            if not events:
                return old.count
            rows = old.after(bodies)
            new = Head(old.count + len(rows), rows[-1].hash)
            side = SideRows.of(enumerate(events, old.count))
            for last_try in (False, True):
                try:
                    self._uncertain_head = new
                    if not self._store.write(rows, side, old, new, self._clock()):
                        raise _taken_over()
                    self._head = new
                    break
                except LedgerUnavailable:
                    self._resolve_uncertainty()
                    if self._head == new:
                        break
                    if last_try:
                        raise
            self._sync_witness(events)
            self._uncertain_head = None
            return old.count

    def contains(self, head: Head) -> bool:
        """Whether the chain had this head at some time."""
        rows = self._store.read(head.count - 1, head.count) if head.count else ()
        return [row.hash for row in rows] == ([head.hash] if head.count else [])

    def attach(self, witness: Witness, lock: FileLock | None = None) -> None:
        """Keep a witness from now on, after bringing it up to date; the chain must contain its head.

        `close` frees the lock.
        """
        with self._exclusive():
            self._witness, self._witness_lock = witness, lock
            self._uncertain_head = self._head
            self._resolve_uncertainty()

    def events(self, start: int = 0) -> Iterator[Event]:
        """Every event so far from a number on, in order, each checked against the chain.

        After a commit of unknown outcome the store is read first: what it holds has happened. A writer
        that reads them all has the index of questions checked, too, after the last event.
        """
        stop = len(self)
        events = self._replay(start, stop)
        return events if start or self._store.read_only else self._checking_index(events, stop)

    def find(self, keys: Collection[tuple[str, str]]) -> list[StoredQuestion]:
        """The questions with these pairs of an analyst and a key, as far as there are any."""
        digests = [digest(analyst, key) for analyst, key in keys]
        found = [_question(row) for row in self._store.questions("keys", digests)] if keys else []
        wanted = set(digests)
        first: dict[tuple[str, str], StoredQuestion] = {}
        for question in found:
            asked = question.asked
            if digest(asked.analyst, asked.key) not in wanted:
                raise _misindexed(question.number)
            first.setdefault((asked.analyst, asked.key), question)
        return [first[key] for key in keys if key in first]

    def question(self, number: int) -> StoredQuestion | None:
        """The question with that number."""
        found = self._store.questions("number", number)
        return _question(found[0]) if found else None

    def questions(self, analyst: str, after: int = -1) -> Iterator[StoredQuestion]:
        """An analyst's questions with numbers above `after`, in order."""
        while found := self._store.questions("analyst", digest(analyst), after):
            for question in map(_question, found):
                if question.asked.analyst != analyst:
                    raise _misindexed(question.number)
                yield question
            after = found[-1].number

    def times(self, numbers: Collection[int]) -> dict[int, float]:
        """When the events with these numbers were written, in seconds since 1970; not in the chain."""
        return self._store.times(numbers)

    def __len__(self) -> int:
        with self._exclusive():
            return self.head.count

    def probe(self, timeout: float) -> None:
        """Check that the store responds, and that this process is still its only writer.

        Raises LedgerInUse where another process has taken the ledger over, and LedgerUnavailable where a
        commit has been in progress for more than `timeout` seconds or the store cannot be read. Takes as
        long as the store takes to respond.
        """
        if self._usurped is not None:
            raise copy(self._usurped)
        head, since = self._head, self._committing_since
        if since is not None and time.monotonic() - since > timeout:
            raise LedgerUnavailable(f"A commit has taken more than {timeout:g} seconds.")
        beyond = any(True for _ in self._store.read(head.count, head.count + 1))
        is_still = (since, self._committing_since, self._uncertain_head) == (None, None, None)
        if beyond and is_still and head == self._head:
            raise _taken_over()

    def close(self) -> None:
        """Wait for the commit in progress, then close the store and free the locks."""
        with self._committing:
            self._closed = True
            lock, self._witness_lock = self._witness_lock, None
            # First, so that a process that waits for the ledger finds the witness free.
            if lock is not None:
                lock.release()
            self._store.close()

    def __enter__(self) -> DurableLedger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store}, {self._head.count:,} events)"

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Hold the ledger with a certain head; once another process has written, refuse for good."""
        with self._committing:
            self._committing_since = time.monotonic()
            try:
                if self._usurped is not None:
                    raise copy(self._usurped)  # A traceback belongs to one thread.
                if self._uncertain_head is not None:
                    self._resolve_uncertainty()
                yield
            except LedgerInUse as failure:
                self._usurped = failure
                raise copy(failure) from None
            finally:
                self._committing_since = None

    def _resolve_uncertainty(self) -> None:
        """Find out whether a commit is stored, and sync the witness; no other process may write."""
        found = self._find_head()
        if found not in (self._head, self._uncertain_head):
            raise _taken_over()
        self._head = found
        self._sync_witness()
        self._uncertain_head = None

    def _sync_witness(self, events: Iterable[Event] | None = None) -> None:
        """Sync the witness with the head, given the events since; what it has not seen is uncertain."""
        witness = self._witness
        if witness is None or witness.record.head == self._head:
            return
        since = self._replay(witness.record.head.count, self._head.count) if events is None else events
        try:
            witness.write(witness.record.after(since, self._head))
        except LedgerUnavailable as failure:
            raise _uncertain(failure.message, failure.hint) from None

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
                message = f"Event {row.number}: {failure.message}"
                raise type(failure)(message, hint=failure.hint) from None
            yield event
            previous = row.hash
            expected += 1
        if expected < stop:
            raise _corrupt(f"Event {expected} is missing.")

    def _checking_index(self, events: Iterable[Event], stop: int) -> Iterator[Event]:
        """Pass on all events up to a number, then reject an index of questions that differs from them.

        A question that is not found by its key would be charged again.
        """
        expected = SideRows({}, {}, {})
        for number, event in enumerate(events):
            expected.add(number, event)
            yield event
        stored = self._store.side_rows(answers=False)
        wrong = [] if stored is None else expected.misindexed(stored)
        # Above, commits since the beginning of the read may have added more.
        if wrong and wrong[0] < stop:
            raise _misindexed(wrong[0])

    def _check_end(self) -> None:
        """Reject a store whose last event is not the one that its head names."""
        count = self._head.count
        end = [(row.number, row.hash) for row in self._store.read(max(count - 1, 0), count + 1)]
        if end != ([(count - 1, self._head.hash)] if count else []) or (
            not count and self._head.hash != BEGINNING
        ):
            raise _corrupt("The last event does not match the head of the ledger.")


def _question(row: QuestionRow) -> StoredQuestion:
    asked = decode(row.asked)
    ending = None if row.ending is None else decode(row.ending)
    if isinstance(ending, AnsweredFree) and row.text is not None:
        ending = replace(ending, text=row.text.decode(errors="replace"))
    if not isinstance(asked, Asked) or not isinstance(ending, Ending | None):
        raise _misindexed(row.number)
    if ending is not None and ending.asked != row.number:
        raise _misindexed(row.number)
    return StoredQuestion(row.number, asked, ending)


def _uncertain(message: str, hint: str = "") -> LedgerUnavailable:
    error = LedgerUnavailable(f"{message} It is not known yet whether the event is stored.", hint=hint)
    error.uncertain = True
    return error


def _taken_over() -> LedgerInUse:
    return LedgerInUse(
        "Another process has written to the ledger since this one last did.",
        hint="Find the other writer and stop one of the two; then open the ledger again.",
    )


def _misindexed(number: int) -> LedgerCorrupt:
    return _corrupt(f"The index of questions is wrong about event {number}.")


def _corrupt(message: str) -> LedgerCorrupt:
    return LedgerCorrupt(
        message, hint="Do not continue this ledger: run `sharewell verify` and restore a backup."
    )
