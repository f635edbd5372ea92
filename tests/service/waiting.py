"""To wait for what another thread or process does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable


def comes_true(is_so: Callable[[], bool]) -> None:
    """Wait until something is so, for two minutes at the most."""
    pause = threading.Event()
    for _ in range(12_000):
        if is_so():
            return
        pause.wait(0.01)
    raise AssertionError("it never was")


def greeted(said: Iterable[str]) -> str:
    """The first line of a server that has opened; before it, a slow one says that it is opening."""
    return next((line for line in said if not line.startswith("Opening")), "")
