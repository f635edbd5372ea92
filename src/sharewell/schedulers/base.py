"""The base of all schedulers: a buffer for each analyst, and a decision whose question is next.

The simplest of them is here too: questions are served in order of arrival.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from sharewell.errors import SharingError
from sharewell.options import Option
from sharewell.privacy.budget import Amount

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class QueueEntry(Generic[Item]):
    """A submitted question with its number, which is unique within its scheduler."""

    number: int
    analyst: str
    item: Item = field(compare=False)


class Scheduler(ABC, Generic[Item]):
    """Decides whose question is next. It sees no question, mechanism, data or budget.

    One call of `next` is one decision. The simulator makes one at each step of its discrete time. The
    service makes one at each tick if the scheduler is `paced`, and otherwise after every change, until
    nothing can be served.

    The questions of one analyst are served in the order of submission. Not thread-safe: callers lock.
    """

    #: The name in a configuration file, and the options there.
    name: ClassVar[str]
    options: ClassVar[tuple[Option, ...]] = ()
    #: Options of `make_scheduler` that a file cannot give.
    code_options: ClassVar[tuple[str, ...]] = ()
    #: Whether decisions are made at a fixed rate.
    paced: ClassVar[bool] = False
    #: Whether questions of all analysts are served in the order in which they arrive.
    keeps_arrival_order: ClassVar[bool] = False

    @classmethod
    def create(
        cls, analysts: tuple[str, ...], shares: Mapping[str, Amount] | None, **options: Any
    ) -> Scheduler[Any]:
        """Make one for these analysts; `shares` is None where they are not known."""
        return cls(analysts, **options)

    @property
    def turn_assumptions(self) -> tuple[str, ...] | None:
        """The assumptions under which its turns give the sharing incentive; None where they do not."""
        return None

    def __init__(self, analysts: Iterable[str] = ()) -> None:
        #: All decisions; those that served nothing although questions waited; those when none waited.
        self.steps = self.stalls = self.idle = 0
        self._buffers: dict[str, deque[QueueEntry[Item]]] = {}
        self._done: set[str] = set()
        #: Those who count as done until they ask again, where silence counts: see `RoundRobin`.
        self._silent: set[str] = set()
        # After a restart: how many questions of each analyst are yet to be resubmitted.
        self._to_resubmit: dict[str, int] = {}
        #: The number of questions in all buffers.
        self.waiting = 0
        self._submitted = 0
        self._add(analysts)

    @property
    def analysts(self) -> tuple[str, ...]:
        """The analysts who joined and have not left, in order."""
        return tuple(self._buffers)

    @property
    def strict(self) -> bool:
        """Whether it waits for each analyst until they ask or say done."""
        return False

    @property
    def finished(self) -> bool:
        """Whether every analyst said done, and no question waits."""
        return not self.waiting and len(self._done) == len(self._buffers)

    def submit(self, analyst: str, item: Item) -> QueueEntry[Item]:
        """Append a question to the analyst's buffer; one who was done or silent is active again."""
        buffer = self._buffer(analyst)
        entry = QueueEntry(self._submitted, analyst, item)
        self._submitted += 1
        self.waiting += 1
        buffer.append(entry)
        self._silent.discard(analyst)
        if analyst in self._to_resubmit:
            self._to_resubmit[analyst] -= 1
            if self._to_resubmit[analyst] <= 0:
                del self._to_resubmit[analyst]
        else:
            self._done.discard(analyst)
        return entry

    def next(self, now: float = 0) -> QueueEntry[Item] | None:
        """Make one decision: the question to serve, or None where this step serves none."""
        analyst = self._choose(now)
        self.steps += 1
        if analyst is None:
            if self.waiting:
                self.stalls += 1
            else:
                self.idle += 1
            return None
        self.waiting -= 1
        return self._buffers[analyst].popleft()

    @abstractmethod
    def _choose(self, now: float) -> str | None:
        """The analyst to serve now, whose buffer is not empty; or None."""

    def done(self, analyst: str) -> None:
        """Note that the analyst will ask nothing more; buffered questions are still served."""
        self._buffer(analyst)
        self._done.add(analyst)
        self._silent.discard(analyst)

    def is_done(self, analyst: str) -> bool:
        """Whether the analyst said done and has asked nothing since."""
        return analyst in self._done

    def join(self, analyst: str) -> None:
        """Add an analyst, at the end."""
        self._add([analyst])

    def leave(self, analyst: str) -> tuple[QueueEntry[Item], ...]:
        """Remove an analyst, and return their waiting questions, in order."""
        withdrawn = tuple(self._buffer(analyst))
        del self._buffers[analyst]
        self.waiting -= len(withdrawn)
        self._done.discard(analyst)
        self._silent.discard(analyst)
        self._to_resubmit.pop(analyst, None)
        return withdrawn

    def state(self) -> dict[str, Any]:
        """The state that a restart needs, without the questions, as JSON data. Public."""
        return {
            "scheduler": self.name,
            "analysts": list(self._buffers),
            "done": [analyst for analyst in self._buffers if analyst in self._done],
            "waiting": {analyst: len(buffer) for analyst, buffer in self._buffers.items() if buffer},
            "tickets": self._submitted,
            "steps": self.steps,
            "stalls": self.stalls,
            "idle": self.idle,
        }

    def restore(self, state: Mapping[str, Any], now: float | None = None) -> None:
        """Restore a state into a new scheduler; then resubmit the questions that waited.

        The analysts become those of the state. Questions of each analyst must be resubmitted in their
        order; this does not make an analyst active who was done. Numbers continue, so that none is used
        twice. `now` is the time of the restart, so that downtime does not count as silence; without it
        the clock continues from the last decision.
        """
        if self.steps or self._submitted:
            raise SharingError(
                "Only a new scheduler can restore a state.",
                hint="Make a new one, restore it, and resubmit the questions that waited.",
            )
        if not isinstance(state, Mapping) or state.get("scheduler") != self.name:
            raise SharingError(
                f"This is not the state of a {self.name} scheduler.",
                hint="Restore it into a scheduler of the same kind.",
            )
        try:
            self._restore(state, now)
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
            raise SharingError(
                f"The state of the {self.name} scheduler is damaged.",
                hint="Make a new scheduler, and resubmit the questions that waited.",
            ) from None

    def _restore(self, state: Mapping[str, Any], now: float | None) -> None:
        self._buffers.clear()
        self._add(state["analysts"])
        for analyst in state["done"]:
            self.done(analyst)
        self._to_resubmit = {analyst: int(count) for analyst, count in state["waiting"].items()}
        self._submitted, self.steps = int(state["tickets"]), int(state["steps"])
        self.stalls, self.idle = int(state["stalls"]), int(state["idle"])

    def _add(self, analysts: Iterable[str]) -> None:
        """Give every analyst a buffer; on an invalid name, none."""
        if isinstance(analysts, str):
            raise SharingError(
                f"The analysts must be a list of names, not the string {analysts!r}.",
                hint=f"Write [{analysts!r}].",
            )
        names = list(analysts)
        for at, analyst in enumerate(names):
            if not isinstance(analyst, str) or not analyst.strip():
                raise SharingError(
                    f"Invalid name of an analyst: {analyst!r}.", hint="Use a string that is not blank."
                )
            if analyst in self._buffers or analyst in names[:at]:
                raise SharingError(
                    f"Analyst {analyst!r} is named twice.", hint="Name each analyst once."
                )
        self._buffers.update((analyst, deque()) for analyst in names)

    def _buffer(self, analyst: str) -> deque[QueueEntry[Item]]:
        """The buffer of an analyst, who must have joined."""
        try:
            return self._buffers[analyst]
        except (KeyError, TypeError):
            raise SharingError(
                f"Unknown analyst {analyst!r}.",
                hint=f"The analysts are {', '.join(self._buffers) or 'none'}; others must join first.",
            ) from None

    @staticmethod
    def _for_each(analysts: tuple[str, ...], values: Any, option: str) -> dict[str, Any]:
        """An option's value for each analyst, in their order; none missing and none too many."""
        if not isinstance(values, Mapping) or set(values) != set(analysts):
            raise SharingError(
                f"`{option}` must have a value for each analyst, and for no other name.",
                hint=f"The analysts are {', '.join(analysts)}.",
            )
        return {analyst: values[analyst] for analyst in analysts}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(analysts={len(self._buffers)}, waiting={self.waiting})"


class InOrder(Scheduler[Item]):
    """Serves questions in order of arrival.

    >>> scheduler = InOrder(["ann", "bob"])
    >>> for analyst, item in [("ann", 1), ("ann", 2), ("bob", 3)]:
    ...     _ = scheduler.submit(analyst, item)
    >>> [scheduler.next().item for _ in range(3)]
    [1, 2, 3]
    """

    name = "none"
    keeps_arrival_order = True

    def __init__(self, analysts: Iterable[str] = ()) -> None:
        super().__init__(analysts)
        # The analysts of the waiting questions, in order of arrival.
        self._arrived: deque[str] = deque()

    def submit(self, analyst: str, item: Item) -> QueueEntry[Item]:
        """Append a question to the queue."""
        entry = super().submit(analyst, item)
        self._arrived.append(analyst)
        return entry

    def _choose(self, now: float) -> str | None:
        return self._arrived.popleft() if self._arrived else None

    def leave(self, analyst: str) -> tuple[QueueEntry[Item], ...]:
        """Remove an analyst and return their questions; the others move up."""
        withdrawn = super().leave(analyst)
        self._arrived = deque(other for other in self._arrived if other != analyst)
        return withdrawn
