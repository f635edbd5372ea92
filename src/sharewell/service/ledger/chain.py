"""What is wrong with a damaged hash chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from sharewell.errors import LedgerCorrupt, LedgerError
from sharewell.privacy.ledger import AnsweredFree, Asked, Ending, Event
from sharewell.service.ledger.codec import decode, text_damage
from sharewell.service.ledger.store import BEGINNING, Head, Row, SideRows, Store, link

#: The kinds of damage: an event was changed, is missing, is in the place of another, or cannot be
#: decoded; the ledger does not end at its head or at the expected head; the file itself is damaged;
#: answers beside the chain are missing, changed or not its own; the index of questions is wrong.
DamageKind = Literal["changed", "missing", "moved", "unknown", "head", "damaged", "answers", "index"]

#: The most mismatching events that are examined. If there are more, the ledger was rewritten.
MAX_EXAMINED = 20


@dataclass(frozen=True)
class ChainDamage:
    """One defect of a stored chain, and the number of the event it concerns."""

    kind: DamageKind
    message: str
    event: int | None = None

    def __str__(self) -> str:
        return self.message


def find_damage(store: Store, expected: Head | None) -> list[ChainDamage]:
    """Read a whole store and list its defects; an intact chain has none."""
    found: list[ChainDamage] = []
    try:
        found += [ChainDamage("damaged", f"The file is damaged: {text}.") for text in store.check()]
        scan = _ChainScan(store.head(), expected)
    except LedgerCorrupt as error:
        return [*found, ChainDamage("damaged", error.message)]
    try:
        for row in store.read(-(2**62), 2**62):
            scan.visit(row)
    except LedgerCorrupt as error:
        message = f"Events from {scan.next} on cannot be read. {error.message}"
        scan.add("damaged", message, scan.next)
    else:
        scan.finish()
        try:
            scan.compare_side(store.side_rows(), store.head())
        except LedgerCorrupt as error:
            scan.add("damaged", f"The tables beside the chain cannot be read. {error.message}")
    return found + scan.findings()


class _Mismatch(NamedTuple):
    """A row whose hash does not follow, and the hash stored before it."""

    previous: bytes
    row: Row


class _ChainScan:
    """One pass over the stored rows.

    Each row is checked against the hash *stored* before it, so one change is reported in one place and
    not again for every event after it.
    """

    def __init__(self, head: Head, expected: Head | None) -> None:
        self.next = 0
        self._head = head
        self._expected = expected
        self._last = BEGINNING
        self._found: list[ChainDamage] = []
        self._mismatches: dict[int, _Mismatch] = {}
        self._gaps: list[int] = []
        self._unexamined = 0
        #: Questions and the events that end them.
        self._events: dict[int, Event] = {}

    def add(self, kind: DamageKind, message: str, event: int | None = None) -> None:
        self._found.append(ChainDamage(kind, message, event))

    def visit(self, row: Row) -> None:
        """Check the next stored row."""
        number = row.number
        if number < 0:
            self.add("moved", f"An event has the number {number}.", number)
            return
        if number >= self._head.count >= self.next:
            self.add("head", f"Event {number} lies beyond the head of the ledger.", number)
        if number > self.next:
            self._add_gap(number)
        elif not _follows(self._last, number, row):
            if len(self._mismatches) < MAX_EXAMINED:
                self._mismatches[number] = _Mismatch(self._last, row)
            else:
                self._unexamined += 1
        else:
            try:
                event = decode(row.body)
                if isinstance(event, Asked | Ending):
                    self._events[number] = event
            except LedgerError as error:
                hint = "" if isinstance(error, LedgerCorrupt) else f" {error.hint}"
                self.add("unknown", f"Event {number} cannot be read. {error.message}{hint}", number)
        expected = self._expected
        if expected and number == expected.count - 1 and row.hash != expected.hash:
            message = (
                f"Event {number} does not have the expected hash: it or an earlier one was rewritten."
            )
            self.add("head", message, number)
        self._last, self.next = row.hash, number + 1

    def finish(self) -> None:
        """Compare the end of the rows with the head and the expected head."""
        if self.next < self._head.count:
            self._add_gap(self._head.count)
        elif self.next == self._head.count and self._last != self._head.hash:
            self.add("head", "The last event does not have the hash of the head.")
        if self._expected and self.next < self._expected.count:
            self.add(
                "head",
                f"The ledger has {self.next} events, and {self._expected.count} were expected: it was "
                "truncated, or this is an older copy.",
                self.next,
            )

    def compare_side(self, stored: SideRows | None, head: Head) -> None:
        """Compare what is stored beside the chain with the events; a writer may have added more."""
        unread = self._mismatches or self._gaps or any(each.kind == "unknown" for each in self._found)
        if stored is None or unread:
            return
        expected = SideRows.of(self._events.items())
        for number, event in self._events.items():
            if isinstance(event, AnsweredFree) and (
                damage := text_damage(event, stored.answers.pop(number, None))
            ):
                self.add("answers", f"The answers of event {number} {damage}.", number)
        for number in stored.answers:
            if number < self.next or number >= head.count:
                self.add("answers", f"Answers are stored for event {number}, which has none.", number)
        for number in expected.misindexed(stored):
            if number < self.next or number >= head.count:
                self.add("index", f"The index of questions is wrong about event {number}.", number)

    def findings(self) -> list[ChainDamage]:
        """Everything found, in the order of events."""
        if self._mismatches:
            before = {BEGINNING}
            for number, (previous, row) in self._mismatches.items():
                before |= {previous, row.hash, link(previous, number, row.body)}
            explained = len(self._found)
            for number, mismatch in self._mismatches.items():
                self._examine(number, *mismatch, before)
            if len(self._found) == explained:
                self._add_change(min(self._mismatches))
        if self._unexamined:
            self.add(
                "changed", f"{self._unexamined} more events do not match: the ledger was rewritten."
            )
        return sorted(self._found, key=lambda damage: (damage.event is None, damage.event))

    def _examine(self, number: int, previous: bytes, row: Row, before: set[bytes]) -> None:
        """Explain an event that does not follow from the one before it.

        `before` holds the hashes that may have preceded it, as far as they are still known.
        """
        if any(_follows(each, number, row) for each in before):
            return  # Intact. The defect lies before it and is reported there.
        places = [place for place in (*self._mismatches, *self._gaps) if place != number]
        origin = next((at for at in places if any(_follows(each, at, row) for each in before)), None)
        after = self._mismatches.get(number + 1)
        if origin is not None:
            self.add("moved", f"Event {origin} is stored in the place of event {number}.", number)
        elif after and _follows(link(previous, number, row.body), number + 1, after.row):
            self.add("changed", f"The hash of event {number} was changed.", number)
        else:
            self._add_change(number)

    def _add_change(self, number: int) -> None:
        rewritten = f", or event {number - 1} was rewritten together with its hash" if number else ""
        self.add("changed", f"Event {number} was changed{rewritten}.", number)

    def _add_gap(self, until: int) -> None:
        self._gaps += range(self.next, min(until, self.next + MAX_EXAMINED))
        several = f"Events {self.next} to {until - 1} are" if until - self.next > 1 else None
        self.add("missing", f"{several or f'Event {self.next} is'} missing.", self.next)


def _follows(previous: bytes, number: int, row: Row) -> bool:
    """Whether a row can be the event of that number after that hash."""
    return link(previous, number, row.body) == row.hash
