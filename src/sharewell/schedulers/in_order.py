"""No scheduling: questions are answered in order of arrival."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from sharewell.schedulers.base import Item, QueueEntry, Scheduler


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
