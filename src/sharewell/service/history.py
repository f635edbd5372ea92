"""History: what a ledger says of the questions, the scheduler and the collective.

The kernel reads its own part (shares, charges, measurements). This is the rest, and a broker that
opens a ledger takes it up from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sharewell.errors import OverBudget
from sharewell.mechanism.strategy import Strategy
from sharewell.privacy.ledger import (
    Answered,
    Asked,
    Charged,
    Configured,
    Done,
    Event,
    Granted,
    Left,
    Refused,
    Turn,
)
from sharewell.query.domain import Domain
from sharewell.query.sql import compile_sql
from sharewell.sharing.stream import Ask, Entry, Join, Leave

#: What a scheduler is told: somebody asks (by the question's number), is done, joins or leaves.
Told = Asked | Done | Granted | Left
#: What happens in a collective: somebody asks, joins, or leaves and may donate what was left.
Happened = Asked | Granted | tuple[Left, bool]


@dataclass(frozen=True)
class EntryReader:
    """Says what has happened in the words of the certificate."""

    domain: Domain
    table: str

    def __call__(self, happened: Happened | Ask) -> Entry:
        """One entry of the stream."""
        match happened:
            case Ask():
                return happened
            case Granted(payer, share):
                return Join(payer, share)
            case (Left(payer), donate):
                return Leave(payer, donate)
            case Asked(_, analyst, question, pay):
                statement = compile_sql(question["sql"], self.domain, table=self.table)
                return Ask(analyst, statement.blocks, pay)


@dataclass
class History:
    """The questions so far, how each ended, and what the scheduler was told since its last turn."""

    #: The shares that were there before the first settings: everybody else has joined later.
    initial: dict[str, Fraction] = field(default_factory=dict)
    settings: Configured | None = None
    asked: dict[int, Asked] = field(default_factory=dict)
    ended: dict[int, Answered | Refused] = field(default_factory=dict)
    #: Taken by the scheduler and not answered yet: they have had their turn.
    due: dict[int, Asked] = field(default_factory=dict)
    turn: Turn | None = None
    #: Waiting since before the last turn, and what has happened after it.
    waiting: dict[int, Asked] = field(default_factory=dict)
    since: list[tuple[int, Told]] = field(default_factory=list)
    #: The collective's stream: questions as they were served, and who came and went.
    stream: list[Happened] = field(default_factory=list)
    _left: dict[str, Fraction] = field(default_factory=dict)
    _gave_all: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, events: Iterable[Event]) -> History:
        """Read a ledger."""
        history = cls()
        for number, event in enumerate(events):
            history.add(number, event)
        return history

    def add(self, number: int, event: Event) -> None:
        """Take in one event."""
        match event:
            case Configured():
                self.settings = event
            case Charged(bill, purpose):
                self._charge(bill, purpose)
            case Granted(payer, share):
                self._left[payer] = share
                if self.settings is None:
                    self.initial[payer] = share
                else:
                    self.stream.append(event)
                    self.since.append((number, event))
            case Left(payer):
                self.stream.append((event, payer in self._gave_all))
                self.since.append((number, event))
            case Done():
                self.since.append((number, event))
            case Asked():
                self.asked[number] = event
                self.since.append((number, event))
            case Turn(taken):
                self._turn(event, taken)
            case Answered(asked) | Refused(asked):
                self._end(asked, event)

    def still_waiting(self) -> Iterator[tuple[int, Told]]:
        """What a scheduler that has taken up the last turn must be told, in order."""
        yield from self.waiting.items()
        for number, told in self.since:
            if not isinstance(told, Asked) or (number not in self.ended and number not in self.due):
                yield number, told

    def _charge(self, bill: Mapping[str, Fraction], purpose: Mapping[str, Any]) -> None:
        """Note who has spent all that was left on the seed: whoever leaves after that has donated it."""
        for payer, cost in bill.items():
            self._left[payer] -= cost
            self._gave_all.discard(payer)
        if len(bill) == 1 and purpose.get("measure", {}).get("kind") == Strategy.kind:
            self._gave_all |= {payer for payer in bill if not self._left[payer]}

    def _turn(self, turn: Turn, taken: tuple[int, ...]) -> None:
        open_ones = {**self.waiting, **{n: t for n, t in self.since if isinstance(t, Asked)}}
        self.turn = turn
        self.due |= {number: self.asked[number] for number in taken}
        self.waiting = {
            number: asked
            for number, asked in open_ones.items()
            if number not in self.due and number not in self.ended
        }
        self.since = []

    def _end(self, asked: int, event: Answered | Refused) -> None:
        self.ended[asked] = event
        self.due.pop(asked, None)
        self.waiting.pop(asked, None)
        if isinstance(event, Answered) or event.code == OverBudget.code:
            self.stream.append(self.asked[asked])
