"""What every scheduler does: keep a buffer for each analyst, and say whose question is next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from sharewell.errors import SharingError

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Ticket(Generic[Item]):
    """What an analyst submitted, and its number: no two tickets of a scheduler have the same."""

    number: int
    analyst: str
    item: Item = field(compare=False)


class Scheduler(ABC, Generic[Item]):
    """Decides whose question is next; of questions, mechanisms, data and budgets it knows nothing.

    One `next` is one decision. The simulator makes one at each step of its discrete time. The service
    makes one at each tick where the scheduler is `paced`, and otherwise whenever something changed,
    until there is nothing to serve.

    Within one analyst, what was submitted first is served first. A scheduler is not safe from several
    threads: whoever uses it from more than one has to hold a lock.
    """

    name: ClassVar[str]
    paced: ClassVar[bool] = False

    def __init__(self, analysts: Iterable[str] = ()) -> None:
        #: Decisions so far; those that served nobody although somebody waited; those when nobody did.
        self.steps = self.stalls = self.idle = 0
        self._buffers: dict[str, deque[Ticket[Item]]] = {}
        self._done: set[str] = set()
        # After a restart: how many questions of each analyst are still to be submitted again.
        self._owed: dict[str, int] = {}
        self._waiting = 0
        self._tickets = 0
        self._admit(analysts)

    @property
    def analysts(self) -> tuple[str, ...]:
        """Everybody who joined and has not left, in order."""
        return tuple(self._buffers)

    @property
    def waiting(self) -> int:
        """How many tickets are in all buffers."""
        return self._waiting

    @property
    def strict(self) -> bool:
        """Whether it waits for everybody until they ask or say done."""
        return False

    @property
    def finished(self) -> bool:
        """Whether every analyst said that nothing more will come, and nothing is waiting."""
        return not self._waiting and len(self._done) == len(self._buffers)

    def submit(self, analyst: str, item: Item) -> Ticket[Item]:
        """Put a question into the analyst's buffer; whoever was done or silent is back."""
        buffer = self._buffer(analyst)
        ticket = Ticket(self._tickets, analyst, item)
        self._tickets += 1
        self._waiting += 1
        buffer.append(ticket)
        if self._owed and analyst in self._owed:
            self._repay(analyst)
        else:
            self._done.discard(analyst)
        return ticket

    def next(self, now: float = 0) -> Ticket[Item] | None:
        """Make one decision: a ticket to serve, or None when this step serves nobody."""
        analyst = self._choose(now)
        self.steps += 1
        if analyst is None:
            if self._waiting:
                self.stalls += 1
            else:
                self.idle += 1
            return None
        self._waiting -= 1
        return self._buffers[analyst].popleft()

    @abstractmethod
    def _choose(self, now: float) -> str | None:
        """The analyst whose first ticket is served now, or None; their buffer is not empty."""

    def done(self, analyst: str) -> None:
        """Take note that nothing more will come; what is in the buffer is still served."""
        self._buffer(analyst)
        self._done.add(analyst)

    def join(self, analyst: str) -> None:
        """Take in a new analyst, at the end."""
        self._admit([analyst])

    def leave(self, analyst: str) -> tuple[Ticket[Item], ...]:
        """Let an analyst go; their tickets that were not served are given back, in order."""
        withdrawn = tuple(self._buffer(analyst))
        del self._buffers[analyst]
        self._waiting -= len(withdrawn)
        self._done.discard(analyst)
        self._owed.pop(analyst, None)
        return withdrawn

    def position(self, ticket: Ticket[Item]) -> int:
        """How many tickets of the same analyst come before this one."""
        for place, other in enumerate(self._buffers.get(ticket.analyst, ())):
            if other.number == ticket.number:
                return place
        raise SharingError(
            f"Ticket {ticket.number} of {ticket.analyst} is not waiting.",
            hint="It was served or withdrawn, or is of another scheduler.",
        )

    def state(self) -> dict[str, Any]:
        """All that a restart needs except the questions themselves, as plain JSON data; public."""
        return {
            "scheduler": self.name,
            "analysts": list(self._buffers),
            "done": [analyst for analyst in self._buffers if analyst in self._done],
            "waiting": {analyst: len(buffer) for analyst, buffer in self._buffers.items() if buffer},
            "tickets": self._tickets,
            "steps": self.steps,
            "stalls": self.stalls,
            "idle": self.idle,
        }

    def restore(self, state: Mapping[str, Any], now: float | None = None) -> None:
        """Take up a state, in a scheduler that has just been made; then submit again what was waiting.

        The analysts become those of the state, whoever was named when the scheduler was made. Each
        one's questions have to be submitted again in their order; these do not bring back anybody who
        was done. Numbers of tickets go on, so that none is given twice. `now` is what the clock says
        at the restart: the time that the service was down is then nobody's silence. Without it the
        clock goes on from the last decision.
        """
        if self.steps or self._tickets:
            raise SharingError(
                "Only a scheduler that has just been made can take up a state.",
                hint="Make a new one, restore it, and submit again what was waiting.",
            )
        if not isinstance(state, Mapping) or state.get("scheduler") != self.name:
            raise SharingError(
                f"This is not the state of a {self.name} scheduler.",
                hint="Restore it into a scheduler of the kind that it was taken from.",
            )
        try:
            self._restore(state, now)
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
            raise SharingError(
                f"The state of the {self.name} scheduler is damaged.",
                hint="Make a new scheduler, and submit again what was waiting.",
            ) from None

    def _restore(self, state: Mapping[str, Any], now: float | None) -> None:
        self._buffers.clear()
        self._admit(state["analysts"])
        for analyst in state["done"]:
            self.done(analyst)
        self._owed = {analyst: int(count) for analyst, count in state["waiting"].items()}
        self._tickets, self.steps = int(state["tickets"]), int(state["steps"])
        self.stalls, self.idle = int(state["stalls"]), int(state["idle"])

    def _repay(self, analyst: str) -> None:
        """Count a question that was waiting before the restart as submitted again."""
        self._owed[analyst] -= 1
        if self._owed[analyst] <= 0:
            del self._owed[analyst]

    def _admit(self, analysts: Iterable[str]) -> None:
        """Give each a buffer: all of them, or none where a name is wrong."""
        if isinstance(analysts, str):
            raise SharingError(
                "Analysts are given as a list of names, not as one text.",
                hint=f"Write [{analysts!r}].",
            )
        names = list(analysts)
        for at, analyst in enumerate(names):
            if not isinstance(analyst, str) or not analyst.strip():
                raise SharingError(
                    f"{analyst!r} is not the name of an analyst.", hint="Give a text that is not empty."
                )
            if analyst in self._buffers or analyst in names[:at]:
                raise SharingError(
                    f"{analyst} is here already.", hint="Give each analyst once, under one name."
                )
        self._buffers.update((analyst, deque()) for analyst in names)

    def _buffer(self, analyst: str) -> deque[Ticket[Item]]:
        """The buffer of an analyst; those who are not here have none."""
        try:
            return self._buffers[analyst]
        except (KeyError, TypeError):
            there = f"There are {', '.join(self._buffers)}" if self._buffers else "Nobody is"
            raise SharingError(
                f"Nobody called {analyst!r} is here to ask.",
                hint=f"{there}; whoever is new or has left joins first.",
            ) from None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._buffers)} analysts, {self._waiting} waiting)"
