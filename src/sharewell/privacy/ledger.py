"""The ledger: what happened, in order, and never changed afterwards.

The kernel appends an event and goes on only when `append` has returned; a durable ledger returns when
the event is on disk. Events say what happened, not what follows from it: what is left of a share, the
cache and the certificate are all computed from them. Each kind has a version; a kind is never removed
and its meaning never changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from threading import Lock
from typing import Any, ClassVar, Protocol

from sharewell.privacy.budget import Budget
from sharewell.query.domain import Domain


@dataclass(frozen=True)
class Begun:
    """A curator began the ledger, or adopted an older one, for the dataset with this random id."""

    version: ClassVar[int] = 1
    dataset: str


@dataclass(frozen=True)
class Opened:
    """A dataset was opened with a total budget. In version 1 a person had one row."""

    version: ClassVar[int] = 2
    currency: str
    epsilon: Fraction
    delta: Fraction
    total: Fraction
    neighbours: str
    domain: str
    max_rows_per_person: int = 1

    @classmethod
    def of(cls, budget: Budget, neighbours: str, domain: Domain, max_rows_per_person: int = 1) -> Opened:
        """What is promised about a domain."""
        promised = (budget.currency, budget.epsilon, budget.delta, budget.total)
        return cls(*promised, neighbours, domain.fingerprint, max_rows_per_person)


@dataclass(frozen=True)
class Granted:
    """A payer was given a share of the total."""

    version: ClassVar[int] = 1
    payer: str
    share: Fraction


@dataclass(frozen=True)
class Charged:
    """Payers were charged, and may now be given what they paid for: `purpose` says what, in full.

    The noise scales of a measurement are runs of equal ones: pairs of a scale, as hexadecimal text, and
    of how many rows it has. In version 1 there was a text for each row.
    """

    version: ClassVar[int] = 2
    bill: Mapping[str, Fraction]
    purpose: Mapping[str, Any]


@dataclass(frozen=True)
class Released:
    """Noisy values left the kernel for the charge with that number.

    Many values are several events, one directly after the other in one commit; `rest` is the number of
    values in those that follow.
    """

    version: ClassVar[int] = 2
    charge: int
    values: tuple[int, ...]
    rest: int = 0


@dataclass(frozen=True)
class Armed:
    """A sparse vector drew its noisy threshold, which it needs again after a restart.

    Secret, like the data itself: with it, negative answers would reveal more than they cost. It is in
    no `repr`, and is never shown.
    """

    version: ClassVar[int] = 1
    charge: int
    noisy_threshold: int = field(repr=False)


@dataclass(frozen=True)
class Exceeded:
    """A sparse vector gave a positive answer for the charge with that number."""

    version: ClassVar[int] = 1
    charge: int
    query: Mapping[str, Any]
    guess: int


@dataclass(frozen=True)
class Left:
    """A payer left; nothing can be charged to them any more."""

    version: ClassVar[int] = 1
    payer: str


@dataclass(frozen=True)
class RoundClosed:
    """A curator closed a round: these payers, who were done, can pay for nothing more.

    All that they had left is charged together by the next event, which is stored in the same commit.
    """

    version: ClassVar[int] = 1
    payers: tuple[str, ...]


@dataclass(frozen=True)
class Recovered:
    """Payers were charged for what a witness says was spent and this ledger lacks.

    `witnessed` is the head that the witness named. The lost events may have released what was charged
    before this one: nothing is released for those charges any more, and no sparse vector continues.
    """

    version: ClassVar[int] = 1
    bill: Mapping[str, Fraction]
    witnessed: str


@dataclass(frozen=True)
class SourceSeen:
    """A source that is measured in place gave this hash of its version, for the first time or anew.

    Secret: what is hashed may be the number of rows, which is easily found by trying.
    """

    version: ClassVar[int] = 1
    fingerprint: str = field(repr=False)


@dataclass(frozen=True)
class SourceChanged:
    """A source that is measured in place has changed: answers from here on mix several states of it.

    They have no exact intervals, and there is no certificate any more.
    """

    version: ClassVar[int] = 1


@dataclass(frozen=True)
class CuratorAction:
    """A curator began, adopted or recovered a ledger, changed who may ask, or paused the dataset.

    `curator` is empty for an action on the command line. `subject` is the analyst or curator whom it
    concerns, and `token` the public id of a token, never its secret.
    """

    version: ClassVar[int] = 1
    curator: str
    action: str
    subject: str = ""
    token: str = ""


@dataclass(frozen=True)
class Configured:
    """From here on the service runs with these settings: mechanism, scheduler, error threshold.

    They are what a verifier needs, beside the events, to compute every answer again. `signed_rows` says
    whether single counts are measured as signed rows. It was decided with the first settings, and stays;
    version 1 had no signed rows.
    """

    version: ClassVar[int] = 2
    settings: Mapping[str, Any]
    signed_rows: bool = False


@dataclass(frozen=True)
class Asked:
    """An analyst asked something; the number of this event is the question's.

    `key` is the analyst's own name for the request: asked again with it, they get the same answer.
    `question` is plain data. With `pay` false the question must not be charged for.
    """

    version: ClassVar[int] = 1
    key: str
    analyst: str
    question: Mapping[str, Any]
    pay: bool


@dataclass(frozen=True)
class Answered:
    """The question with that number got these answers, as plain data; stored before they are given."""

    version: ClassVar[int] = 1
    asked: int
    answers: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class AnsweredFree:
    """The question with that number got answers that cost nothing; they are stored beside the ledger.

    The event has the number of answers, and length and SHA-256 of their text in UTF-8: so hashes of the
    ledger cover the text. Few of them are read again, so `events` leaves `text` out.
    """

    version: ClassVar[int] = 1
    asked: int
    size: int
    length: int
    digest: str
    text: str | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Refused:
    """The question with that number could not be answered; asked again, it is refused again."""

    version: ClassVar[int] = 1
    asked: int
    code: str
    message: str


@dataclass(frozen=True)
class Turn:
    """The scheduler took the questions with those numbers, in that order, and this is its new state."""

    version: ClassVar[int] = 1
    asked: tuple[int, ...]
    scheduler: Mapping[str, Any]


@dataclass(frozen=True)
class Done:
    """An analyst has no more questions for now: the scheduler waits for them no longer."""

    version: ClassVar[int] = 1
    analyst: str


Event = (
    Opened
    | Granted
    | Charged
    | Released
    | Armed
    | Exceeded
    | Left
    | Configured
    | Asked
    | Answered
    | AnsweredFree
    | Refused
    | Turn
    | Done
    | Begun
    | Recovered
    | CuratorAction
    | RoundClosed
    | SourceSeen
    | SourceChanged
)

#: Events that are never shown.
SECRET = (Armed, SourceSeen)

#: Events that end a question.
Ending = Answered | AnsweredFree | Refused


@dataclass(frozen=True)
class StoredQuestion:
    """A question in a ledger with its number, and how it ended, if it has."""

    number: int
    asked: Asked
    ending: Ending | None


class Ledger(Protocol):
    """An append-only list of events, with one curator at a time.

    Two curators on one ledger would each spend the whole budget: a ledger that outlives the process
    must hold a lock that a second opener cannot take.
    """

    def append(self, event: Event) -> int:
        """Store an event durably and return its number, counted from 0; safe from many threads."""

    def append_many(self, events: Sequence[Event]) -> int:
        """Store several events in a row, all or none of them, and give the first one's number."""

    def events(self, start: int = 0) -> Iterator[Event]:
        """Every event so far from a number on, in order."""

    def __len__(self) -> int:
        """The number of events so far."""


class QuestionLedger(Ledger, Protocol):
    """A ledger that finds questions again, with the text of free answers."""

    def find(self, keys: Collection[tuple[str, str]]) -> list[StoredQuestion]:
        """The questions with these pairs of an analyst and a key, as far as there are any."""

    def question(self, number: int) -> StoredQuestion | None:
        """The question with that number."""

    def questions(self, analyst: str, after: int = -1) -> Iterator[StoredQuestion]:
        """An analyst's questions with numbers above `after`, in order."""


class MemoryLedger:
    """A ledger that lasts as long as the process: for tests, the lab and one-off studies."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._asked: dict[tuple[str, str], int] = {}
        self._endings: dict[int, Ending] = {}
        self._lock = Lock()

    def append(self, event: Event) -> int:
        """Store an event and give its number."""
        return self.append_many((event,))

    def append_many(self, events: Sequence[Event]) -> int:
        """Store several events in a row and give the first one's number."""
        with self._lock:
            first = len(self._events)
            for number, event in enumerate(events, first):
                if isinstance(event, Asked):
                    self._asked.setdefault((event.analyst, event.key), number)
                elif isinstance(event, Ending):
                    self._endings.setdefault(event.asked, event)
            self._events.extend(events)
            return first

    def events(self, start: int = 0) -> Iterator[Event]:
        """Every event so far from a number on, in order."""
        return iter(tuple(self._events[start:]))

    def find(self, keys: Collection[tuple[str, str]]) -> list[StoredQuestion]:
        """The questions with these pairs of an analyst and a key."""
        found = [self.question(self._asked[key]) for key in keys if key in self._asked]
        return [each for each in found if each]

    def question(self, number: int) -> StoredQuestion | None:
        """The question with that number."""
        asked = self._events[number] if 0 <= number < len(self._events) else None
        if not isinstance(asked, Asked):
            return None
        return StoredQuestion(number, asked, self._endings.get(number))

    def questions(self, analyst: str, after: int = -1) -> Iterator[StoredQuestion]:
        """An analyst's questions with numbers above `after`, in order."""
        for number in range(after + 1, len(self._events)):
            found = self.question(number)
            if found and found.asked.analyst == analyst:
                yield found

    def __len__(self) -> int:
        return len(self._events)


def public_events(ledger: Ledger) -> Iterator[tuple[int, Event]]:
    """Every event that may be shown, with its number: what is secret leaves a gap.

    >>> ledger = MemoryLedger()
    >>> first = ledger.append_many([Armed(0, noisy_threshold=17), Left("ann")])
    >>> list(public_events(ledger))
    [(1, Left(payer='ann'))]
    """
    for number, event in enumerate(ledger.events()):
        if not isinstance(event, SECRET):
            yield number, event
