"""Cancellation of long computations: their loops pass `checked`, which ends those no longer wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")

_CHECK: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)


@contextmanager
def cancelled_by(check: Callable[[], None]) -> Iterator[None]:
    """Let `check` end what is computed meanwhile, by raising an error."""
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


def checked(items: Iterable[Item], every: int = 64) -> Iterator[Item]:
    """The items; before the first of every so many, the computation may be cancelled.

    >>> list(checked("abc"))
    ['a', 'b', 'c']
    """
    check = _CHECK.get()
    if check is None:
        yield from items
        return
    for at, item in enumerate(items):
        if at % every == 0:
            check()
        yield item
