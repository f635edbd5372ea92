"""What a ledger stores: rows of a hash chain, rows beside it, and the contract of a store.

The hash of an event covers its number, its bytes and the hash before it. So a hash stands for the whole
ledger up to that event: keep a copy of the head (a count and a hash), and any later change below it can
be detected.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import ClassVar, Literal, NamedTuple

import orjson

from sharewell.errors import LedgerError
from sharewell.privacy.ledger import AnsweredFree, Asked, Ending, Event
from sharewell.service.ledger.codec import decode

#: The hash before the first event.
BEGINNING = bytes(32)

#: Rows read per statement, so that a long read never blocks a writer.
CHUNK = 5_000

#: Bytes of events and answers sent per statement, unless one event alone has more. A database accepts a
#: billion in one text, and must store them in the time that a statement may take.
STATEMENT_BYTES = 16_000_000

#: Questions read per statement; each may have megabytes of answers.
QUESTION_CHUNK = 16


def link(previous: bytes, number: int, body: bytes) -> bytes:
    """Hash an event: SHA-256 over the previous hash, the number in 8 bytes, and the body."""
    return sha256(previous + number.to_bytes(8, "big") + body).digest()


class Row(NamedTuple):
    """One event as it is stored."""

    number: int
    body: bytes
    hash: bytes


class SideRows(NamedTuple):
    """What is stored beside the chain for some events, by their numbers.

    `questions` has digests of the analyst and of the key of a question, since not every database stores
    every text; `endings` the question that an event ends; `answers` the text of free answers.
    """

    questions: dict[int, str]
    endings: dict[int, int]
    answers: dict[int, str]

    @classmethod
    def of(cls, events: Iterable[tuple[int, Event]]) -> SideRows:
        """The rows for numbered events."""
        rows = cls({}, {}, {})
        for number, event in events:
            rows.add(number, event)
        return rows

    @classmethod
    def of_bodies(cls, rows: Iterable[tuple[int, bytes]]) -> SideRows:
        """The rows for events as they are stored, without answers; skips what cannot be decoded."""
        events: list[tuple[int, Event]] = []
        for number, body in rows:
            with suppress(LedgerError):
                events.append((number, decode(body)))
        return cls.of(events)

    def add(self, number: int, event: Event) -> None:
        """Add the rows for one event, if it has any."""
        if isinstance(event, Asked):
            self.questions[number] = digest(event.analyst) + digest(event.analyst, event.key)
        elif isinstance(event, Ending):
            self.endings[number] = event.asked
            if isinstance(event, AnsweredFree) and event.text is not None:
                self.answers[number] = event.text

    def among(self, numbers: range) -> SideRows:
        """The rows for the events with these numbers."""
        return SideRows(
            {number: both for number, both in self.questions.items() if number in numbers},
            {number: asked for number, asked in self.endings.items() if number in numbers},
            {number: text for number, text in self.answers.items() if number in numbers},
        )

    def to_json(self) -> dict[str, str]:
        """Each table as the text of a JSON object."""
        tables = self._asdict().items()
        return {
            name: orjson.dumps(rows, option=orjson.OPT_NON_STR_KEYS).decode() for name, rows in tables
        }

    def misindexed(self, stored: SideRows) -> list[int]:
        """The events about which a stored index differs from these rows; a question ends once."""
        ends_first = {asked: number for number, asked in reversed(self.endings.items())}
        endings = {number: asked for asked, number in ends_first.items()}
        wrong = dict(self.questions.items() ^ stored.questions.items()).keys()
        return sorted(wrong | dict(endings.items() ^ stored.endings.items()).keys())


class QuestionRow(NamedTuple):
    """A question as it is stored: its event, the event that ends it, and the text of free answers."""

    number: int
    asked: bytes
    ending: bytes | None
    text: bytes | None


@dataclass(frozen=True)
class Head:
    """The end of a chain: the number of events, and the hash of the last one.

    Store its text anywhere, and pass it to `verify_chain` later:

    >>> Head.parse(str(Head(2, bytes(range(32))))) == Head(2, bytes(range(32)))
    True
    """

    count: int = 0
    hash: bytes = BEGINNING

    def __str__(self) -> str:
        return f"{self.count}:{self.hash.hex()}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Read the text of a head."""
        count, _, digest = text.strip().partition(":")
        try:
            head = cls(int(count), bytes.fromhex(digest))
        except ValueError:
            head = cls(-1)
        if head.count < 0 or len(head.hash) != 32:
            raise LedgerError(
                "Invalid ledger head.",
                hint="Write a count, a colon and 64 hexadecimal digits.",
            )
        return head

    def after(self, bodies: list[bytes]) -> list[Row]:
        """Chain further events to this head."""
        rows, previous = [], self.hash
        for number, body in enumerate(bodies, start=self.count):
            previous = link(previous, number, body)
            rows.append(Row(number, body, previous))
        return rows


class CommitPart(NamedTuple):
    """What one statement of a commit adds, and the heads before and after it."""

    rows: Sequence[Row]
    side: SideRows
    old: Head
    new: Head


def split_commit(rows: Sequence[Row], side: SideRows, old: Head, new: Head) -> list[CommitPart]:
    """Split a commit into statements of a bounded size, to be executed in one transaction."""
    sizes = [len(row.body) + len(side.answers.get(row.number, "")) for row in rows]
    if sum(sizes) <= STATEMENT_BYTES or len(rows) == 1:
        return [CommitPart(rows, side, old, new)]
    groups: list[list[Row]] = []
    room = 0
    for row, size in zip(rows, sizes, strict=True):
        if size > room:
            groups.append([])
            room = STATEMENT_BYTES
        groups[-1].append(row)
        room -= size
    parts = []
    for group in groups:
        after = Head(group[-1].number + 1, group[-1].hash)
        own = side.among(range(group[0].number, after.count))
        parts.append(CommitPart(group, own, old, after))
        old = after
    return parts


#: How questions are selected: by digests of analyst and key, by number, or by the digest of an analyst.
QuestionFilter = Literal["keys", "number", "analyst"]


class Store(ABC):
    """Keeps rows and the head, and changes both in one transaction.

    Side tables hold an index of the questions, and the text of free answers. A store opened for writing
    holds a lock that excludes every other writer. `migrations` lists the statements from each version of
    the tables to the next, starting with an empty database; entries are only ever added. Tables of an
    older version are migrated, and their events indexed, when they are opened for writing; they can be
    read as they are.
    """

    migrations: ClassVar[tuple[tuple[str, ...], ...]]
    read_only: bool

    @abstractmethod
    def head(self) -> Head:
        """The committed head, after rolling back an unfinished transaction.

        Reconnects, and takes the lock again, if the connection was lost.
        """

    @abstractmethod
    def write(self, rows: Sequence[Row], side: SideRows, old: Head, new: Head, at: float) -> bool:
        """Add rows and move the head in one durable transaction; False if the head is not `old`.

        What is too large for one statement is sent in several of the same transaction.

        After LedgerUnavailable the outcome is unknown until `head` is read.
        """

    @abstractmethod
    def read(self, start: int, stop: int) -> Iterator[Row]:
        """The rows with numbers from start up to stop, in order; safe from any thread."""

    @abstractmethod
    def questions(self, by: QuestionFilter, value: object, after: int = -1) -> list[QuestionRow]:
        """Some questions with numbers above `after`, in order: of these keys, this number or analyst."""

    @abstractmethod
    def times(self, numbers: Collection[int]) -> dict[int, float]:
        """When the events with these numbers were written, as far as there are any."""

    @abstractmethod
    def side_rows(self, *, answers: bool = True) -> SideRows | None:
        """What is stored beside the chain, with or without answers; None in tables that hold none."""

    @abstractmethod
    def check(self) -> list[str]:
        """Damage that the store itself detects in its files, in words."""

    @abstractmethod
    def close(self) -> None:
        """Close the file or connection; the lock is free when this returns."""

    def pending_migrations(self, version: int) -> list[str]:
        """The statements that bring tables of a version up to date; rejects newer versions."""
        known = len(self.migrations)
        if version > known:
            raise LedgerError(
                f"The tables of the ledger have version {version}; this version of Sharewell supports "
                f"up to {known}.",
                hint="Open the ledger with the version of Sharewell that wrote it, or a newer one.",
            )
        return [statement for step in self.migrations[version:] for statement in step]


def digest(*texts: str) -> str:
    """Half of the SHA-256 of some texts, in hexadecimal."""
    return sha256("\0".join(texts).encode()).hexdigest()[:32]
