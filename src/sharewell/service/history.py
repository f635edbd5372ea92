"""History: what a ledger says of the questions, the scheduler and the collective.

The kernel reads its own part (shares, charges, measurements). This is the rest, and a broker that
opens a ledger takes it up from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from sharewell.errors import OverBudget
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
    Released,
    Turn,
)

#: What a scheduler is told: somebody asks (by the question's number), is done, joins or leaves.
Told = Asked | Done | Granted | Left


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
    stream: list[Asked | Granted | tuple[Left, bool]] = field(default_factory=list)

    @classmethod
    def of(cls, events: Iterable[Event]) -> History:
        """Read a ledger."""
        history = cls()
        recent: list[Event] = []
        for number, event in enumerate(events):
            history.add(number, event, recent)
            recent = [*recent[-2:], event]
        return history

    def add(self, number: int, event: Event, recent: list[Event]) -> None:
        """Take in one event; `recent` are those just before it."""
        match event:
            case Configured():
                self.settings = event
            case Granted(payer, share):
                if self.settings is None:
                    self.initial[payer] = share
                else:
                    self.stream.append(event)
                    self.since.append((number, event))
            case Left(payer):
                self.stream.append((event, donated(payer, recent)))
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


def donated(payer: str, recent: list[Event]) -> bool:
    """Whether somebody who leaves has spent what was left on the seed: the last thing charged to them.

    Who has just joined has paid for the seed too, with the first part of their share.
    """
    match recent:
        case [before, Charged(bill, purpose), Released()] if set(bill) == {payer}:
            joining = isinstance(before, Granted) and before.payer == payer
            return not joining and purpose.get("measure", {}).get("kind") == "strategy"
    return False
