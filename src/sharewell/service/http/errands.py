"""Errands: work for a desk, done at once while it is quick, and in a thread where it is not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Found = TypeVar("Found")

#: What may hold up everybody else, in seconds.
QUICK = 0.003
#: How many pieces of work the usual time is a mean of, about.
MEMORY = 8


class Errands:
    """Decides where work is done, by how long work of its kind has taken so far.

    A thread costs more than most of this work does; but on a large domain, or while the mechanism
    thinks, one piece of it may take long, and nobody else is to wait for that.
    """

    def __init__(self) -> None:
        self.usual = 0.0

    async def run(
        self, work: Callable[Given, Found], *given: Given.args, **named: Given.kwargs
    ) -> Found:
        """Do it, here or in a thread."""
        if self.usual > QUICK:
            return await asyncio.to_thread(self._timed, partial(work, *given, **named))
        return self._timed(partial(work, *given, **named))

    def _timed(self, work: Callable[[], Found]) -> Found:
        begun = time.perf_counter()
        try:
            return work()
        finally:
            self.usual += (time.perf_counter() - begun - self.usual) / MEMORY
