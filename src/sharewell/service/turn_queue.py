"""A queue that serves several analysts in turn."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class TurnQueue(Generic[Item]):
    """Items of several analysts, taken from each in turn: a long line of one delays no other's.

    >>> queue = TurnQueue()
    >>> for analyst, item in [("ben", 1), ("ben", 2), ("ben", 3), ("ann", 4)]:
    ...     queue.put(analyst, item)
    >>> [queue.pop() for _ in range(len(queue))]
    [1, 4, 2, 3]
    """

    def __init__(self) -> None:
        # The first is next.
        self._lines: dict[str, deque[Item]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, analyst: str, item: Item) -> None:
        """Add an item at the end of its analyst's line."""
        self._lines.setdefault(analyst, deque()).append(item)
        self._size += 1

    def pop(self) -> Item:
        """Take the first item of the analyst whose turn it is; the others come before their next."""
        analyst = next(iter(self._lines))
        line = self._lines.pop(analyst)
        item = line.popleft()
        if line:
            self._lines[analyst] = line
        self._size -= 1
        return item

    def remove(self, analyst: str) -> list[Item]:
        """Take all items of an analyst."""
        line = list(self._lines.pop(analyst, ()))
        self._size -= len(line)
        return line
