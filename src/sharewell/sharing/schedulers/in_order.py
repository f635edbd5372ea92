"""No scheduler at all: questions are answered in the order in which they came."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from sharewell.sharing.schedulers.base import Item, Scheduler, Ticket


class InOrder(Scheduler[Item]):
    """Serves whatever came first, whoever sent it.

    >>> scheduler = InOrder(["ann", "bob"])
    >>> for analyst, item in [("ann", 1), ("ann", 2), ("bob", 3)]:
    ...     _ = scheduler.submit(analyst, item)
    >>> [scheduler.next().item for _ in range(3)]
    [1, 2, 3]
    """

    name = "none"

    def __init__(self, analysts: Iterable[str] = ()) -> None:
        super().__init__(analysts)
        # Whose question came when; the questions themselves are in the buffers.
        self._arrived: deque[str] = deque()

    def submit(self, analyst: str, item: Item) -> Ticket[Item]:
        """Put a question at the end of the queue."""
        ticket = super().submit(analyst, item)
        self._arrived.append(analyst)
        return ticket

    def _choose(self, now: float) -> str | None:
        return self._arrived.popleft() if self._arrived else None

    def leave(self, analyst: str) -> tuple[Ticket[Item], ...]:
        """Let an analyst go; their questions are given back, and the others move up."""
        withdrawn = super().leave(analyst)
        self._arrived = deque(other for other in self._arrived if other != analyst)
        return withdrawn
