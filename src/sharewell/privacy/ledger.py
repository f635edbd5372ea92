"""The ledger: what happened, in order, and never changed afterwards.

The kernel appends an event and goes on only when `append` has returned; a durable ledger returns when
the event is on disk. Events say what happened, not what follows from it: what is left of a share, the
cache and the certificate are all computed from them. Each kind has a version; a kind is never removed
and its meaning never changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from threading import Lock
from typing import Any, ClassVar, Protocol

from sharewell.privacy.budget import Budget
from sharewell.query.domain import Domain


@dataclass(frozen=True)
class Opened:
    """A dataset was opened with a total budget."""

    version: ClassVar[int] = 1
    currency: str
    epsilon: Fraction
    delta: Fraction
    total: Fraction
    neighbours: str
    domain: str

    @classmethod
    def of(cls, budget: Budget, neighbours: str, domain: Domain) -> Opened:
        """What is promised about a domain."""
        promised = (budget.currency, budget.epsilon, budget.delta, budget.total)
        return cls(*promised, neighbours, domain.fingerprint)


@dataclass(frozen=True)
class Granted:
    """A payer was given a share of the total."""

    version: ClassVar[int] = 1
    payer: str
    share: Fraction


@dataclass(frozen=True)
class Charged:
    """Payers were charged, and may now be given what they paid for: `purpose` says what, in full."""

    version: ClassVar[int] = 1
    bill: Mapping[str, Fraction]
    purpose: Mapping[str, Any]


@dataclass(frozen=True)
class Released:
    """Noisy values left the kernel for the charge with that number."""

    version: ClassVar[int] = 1
    charge: int
    values: tuple[int, ...]


@dataclass(frozen=True)
class Armed:
    """A sparse vector drew its noisy threshold, which it needs again after a restart.

    Secret, like the data itself: whoever knew it would learn from negative answers, which are free
    because nobody does. It is in no `repr`, and no one is ever shown it.
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
class Configured:
    """From here on the service runs with these settings: mechanism, scheduler, error threshold.

    They are what a verifier needs, beside the events, to compute every answer again.
    """

    version: ClassVar[int] = 1
    settings: Mapping[str, Any]


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
class Refused:
    """The question with that number could not be answered; asked again, it is refused alike."""

    version: ClassVar[int] = 1
    asked: int
    code: str
    message: str


@dataclass(frozen=True)
class Turn:
    """The scheduler took the questions with those numbers, in that order, and stands like that now."""

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
    | Refused
    | Turn
    | Done
)

#: Events that nobody is ever shown.
SECRET = (Armed,)


class Ledger(Protocol):
    """An append-only list of events, with one curator at a time.

    Two curators on one ledger would each spend the whole budget: a ledger that outlives the process
    must hold a lock that a second opener cannot take.
    """

    def append(self, event: Event) -> int:
        """Store an event for good and give its number, counted from 0; safe from many threads."""

    def append_many(self, events: Sequence[Event]) -> int:
        """Store several events in a row, all or none of them, and give the first one's number."""

    def events(self) -> Iterator[Event]:
        """Every event so far, in order."""

    def __len__(self) -> int:
        """How many events there are: the number of the next one, unless somebody else is quicker."""


class MemoryLedger:
    """A ledger that lasts as long as the process: for tests, the lab and one-off studies."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._lock = Lock()

    def append(self, event: Event) -> int:
        """Store an event and give its number."""
        return self.append_many((event,))

    def append_many(self, events: Sequence[Event]) -> int:
        """Store several events in a row and give the first one's number."""
        with self._lock:
            self._events.extend(events)
            return len(self._events) - len(events)

    def events(self) -> Iterator[Event]:
        """Every event so far, in order."""
        return iter(tuple(self._events))

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
