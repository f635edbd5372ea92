"""Errands: whether work of some kind is quick enough to be done on the event loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Found = TypeVar("Found")

#: What may hold up everybody else, in seconds.
QUICK = 0.003
#: How many pieces of work the usual time is a mean of, about.
MEMORY = 8


class Errands:
    """Knows how long work of its kind has taken so far.

    A thread costs more than most of this work does; but on a large domain one piece of it may take
    long, and nobody else is to wait for that.
    """

    def __init__(self) -> None:
        self._usual = 0.0

    @property
    def are_quick(self) -> bool:
        """Whether they usually are."""
        return self._usual <= QUICK

    def timed(self, work: Callable[Given, Found], *given: Given.args, **named: Given.kwargs) -> Found:
        """Do it, and remember how long it took."""
        # What it takes of a processor: that others are at work too makes no errand longer.
        begun = time.thread_time()
        try:
            return work(*given, **named)
        finally:
            self._usual += (time.thread_time() - begun - self._usual) / MEMORY
