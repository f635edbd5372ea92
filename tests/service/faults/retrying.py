"""Clients that ask until they are answered, always with the same key."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from sharewell.errors import LedgerUnavailable
from sharewell.service.dataset import DatasetService
from tests.service import services
from tests.service.faults.bookkeeping import Plain, Question, plain
from tests.service.services import count

ANALYSTS = ("ann", "ben", "cleo")


def text(at: int) -> str:
    """One of sixty questions."""
    low = at % 10
    return count(low, low + 1 + at % 9, (None, "F", "M")[at % 3])


class Clients:
    """Several threads that ask; what they were answered, and how often they were refused."""

    def __init__(self, service: DatasetService, names: Sequence[str] = ANALYSTS) -> None:
        self.service = service
        self.answers: dict[Question, Plain] = {}
        self.refusals: list[LedgerUnavailable] = []
        self.stop = Event()
        self._names = names

    def once(self, thread: int, at: int) -> bool:
        """Ask once; whether there was an answer."""
        analyst, key = self._names[thread % len(self._names)], f"{thread}-{at}"
        try:
            result = self.service.ask(analyst, text(7 * at + thread), key=key, timeout=120)
        except LedgerUnavailable as error:
            self.refusals.append(error)
            return False
        self.answers[analyst, key] = plain(services.plain(result))
        return True

    def insist(self, thread: int, start: int, stop: int) -> None:
        """Ask one question after the other, each until it is answered."""
        for at in range(start, stop):
            if self.stop.is_set():
                return
            while not self.once(thread, at):
                time.sleep(0.02)

    def all_insist(self, threads: int, start: int, stop: int) -> None:
        """The same from many threads."""
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda thread: self.insist(thread, start, stop), range(threads)))
