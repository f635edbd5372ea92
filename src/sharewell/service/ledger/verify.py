"""Verification of a chain: offline, from what is stored alone, and every damage by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from sharewell.errors import LedgerCorrupt, LedgerError
from sharewell.service.ledger.chain import BEGINNING, Head, Row, link
from sharewell.service.ledger.codec import decode
from sharewell.service.ledger.opening import open_store
from sharewell.service.ledger.store import Store

#: What can be wrong: an event was changed, is missing, stands in another's place, or is of a kind that
#: is not known; the ledger does not end where it says or where it did; the file is damaged.
What = Literal["changed", "missing", "moved", "unknown", "head", "damaged"]

#: How many events that do not match are looked into. Where there are more, the ledger was rewritten.
MOST = 20


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a ledger: in a sentence, and the number of the event."""

    what: What
    message: str
    event: int | None = None

    def __str__(self) -> str:
        return self.message


def verify_chain(
    where: str | Path, *, name: str = "default", expected_head: Head | str | None = None
) -> list[Finding]:
    """Everything that is wrong with the chain of a ledger: nothing, where the list is empty.

    `where` is the path of a SQLite file, or the address of a PostgreSQL database in which the ledger has
    that `name`. `expected_head` is a head that was noted earlier: only with it can a ledger be told from
    an older copy of itself, or from one that was rewritten from one event to the end.

    A ledger that is not there, or cannot be reached, is an error and not a finding.
    """
    expected = Head.parse(expected_head) if isinstance(expected_head, str) else expected_head
    try:
        store = open_store(where, name=name, read_only=True)
    except LedgerCorrupt as error:
        return [Finding("damaged", error.message)]
    try:
        return list(_findings(store, expected))
    finally:
        store.close()


def _findings(store: Store, expected: Head | None) -> Iterator[Finding]:
    try:
        yield from (Finding("damaged", f"The file is damaged: {text}.") for text in store.check())
        walk = _Walk(store.head(), expected)
    except LedgerCorrupt as error:
        yield Finding("damaged", error.message)
        return
    try:
        for row in store.read(-(2**62), 2**62):
            walk.visit(row)
    except LedgerCorrupt as error:
        walk.say("damaged", f"From event {walk.next} on nothing can be read. {error.message}", walk.next)
    else:
        walk.finish()
    yield from walk.findings()


class _Broken(NamedTuple):
    """A row whose hash does not follow, and the hash stored before it."""

    previous: bytes
    row: Row


class _Walk:
    """One pass over the stored rows.

    Each is checked against the hash *stored* before it, so that one change is found in one place and
    does not condemn all that comes after.
    """

    def __init__(self, head: Head, expected: Head | None) -> None:
        self.next = 0
        self._head = head
        self._expected = expected
        self._last = BEGINNING
        self._found: list[Finding] = []
        self._broken: dict[int, _Broken] = {}
        self._gaps: list[int] = []
        self._more = 0

    def say(self, what: What, message: str, event: int | None = None) -> None:
        """Note a finding."""
        self._found.append(Finding(what, message, event))

    def visit(self, row: Row) -> None:
        """Look at the next stored row."""
        number = row.number
        if number < 0:
            self.say("moved", f"There is an event with the number {number}.", number)
            return
        if number >= self._head.count >= self.next:
            self.say("head", f"Event {number} lies behind the end that the ledger states.", number)
        if number > self.next:
            self._missing(number)
        elif link(self._last, number, row.body) != row.hash:
            if len(self._broken) < MOST:
                self._broken[number] = _Broken(self._last, row)
            else:
                self._more += 1
        else:
            self._try_to_read(row)
        if self._expected and number == self._expected.count - 1 and row.hash != self._expected.hash:
            self.say(
                "head",
                f"Event {number} is not the one whose hash was noted: it or one before was rewritten.",
                number,
            )
        self._last, self.next = row.hash, number + 1

    def finish(self) -> None:
        """Compare the end with where it should be."""
        if self.next < self._head.count:
            self._missing(self._head.count)
        elif self.next == self._head.count and self._last != self._head.hash:
            self.say("head", "The last event does not have the hash that the ledger states for it.")
        if self._expected and self.next < self._expected.count:
            self.say(
                "head",
                f"The ledger has {self.next} events, and had {self._expected.count} when its head was "
                "noted: the rest was cut off, or this is an older copy.",
                self.next,
            )

    def findings(self) -> list[Finding]:
        """All that was found, in the order of events."""
        if self._broken:
            before = {BEGINNING}
            for number, (previous, row) in self._broken.items():
                before |= {previous, row.hash, link(previous, number, row.body)}
            named = len(self._found)
            for number, (previous, row) in self._broken.items():
                self._look_into(number, previous, row, before)
            if len(self._found) == named:
                self._changed(min(self._broken))
        if self._more:
            self.say("changed", f"{self._more} more events do not match: the ledger was rewritten.")
        return sorted(self._found, key=lambda finding: (finding.event is None, finding.event))

    def _look_into(self, number: int, previous: bytes, row: Row, before: set[bytes]) -> None:
        """Say what is wrong with an event that does not follow from the one before it.

        `before` are the hashes that may have stood before it, as far as they can still be known.
        """
        if any(_fits(hashed, number, row) for hashed in before):
            return  # It is as it was. What is wrong lies before it, and is named there.
        places = [place for place in (*self._broken, *self._gaps) if place != number]
        origin = next((at for at in places if any(_fits(hashed, at, row) for hashed in before)), None)
        after = self._broken.get(number + 1)
        if origin is not None:
            self.say("moved", f"In the place of event {number} stands event {origin}.", number)
        elif after and _fits(link(previous, number, row.body), number + 1, after.row):
            self.say("changed", f"The hash of event {number} was changed.", number)
        else:
            self._changed(number)

    def _changed(self, number: int) -> None:
        rewritten = f", or event {number - 1} was rewritten with its hash" if number else ""
        self.say("changed", f"Event {number} was changed{rewritten}.", number)

    def _missing(self, until: int) -> None:
        self._gaps += range(self.next, min(until, self.next + MOST))
        several = f"Events {self.next} to {until - 1} are" if until - self.next > 1 else None
        self.say("missing", f"{several or f'Event {self.next} is'} missing.", self.next)

    def _try_to_read(self, row: Row) -> None:
        try:
            decode(row.body)
        except LedgerError as error:
            self.say("unknown", f"Event {row.number} cannot be read. {error.message}", row.number)


def _fits(previous: bytes, number: int, row: Row) -> bool:
    """Whether a row may be the event of that number, after that hash."""
    return link(previous, number, row.body) == row.hash
