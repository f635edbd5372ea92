"""The teller: tells the certificate what has happened, in its own time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
from threading import Event, Thread

from sharewell.errors import SharingError
from sharewell.service.history import Happened
from sharewell.sharing.follower import Follower
from sharewell.sharing.report import Report
from sharewell.sharing.stream import Entry


class Teller:
    """Hands a collective's stream to a follower, from a thread of its own.

    Each question has to be compiled for it. After a restart those are all that were ever asked, and
    neither the opening nor an answer is to wait for that.
    """

    def __init__(self, follower: Follower, entries: Callable[[Happened], Iterator[Entry]]) -> None:
        self._follower = follower
        self._entries = entries
        self._ending = False
        self._failed: SharingError | None = None
        self._queue: SimpleQueue[Happened | Event | None] = SimpleQueue()
        self._thread = Thread(target=self._tell, name="teller", daemon=True)
        self._thread.start()

    def put(self, happened: Iterable[Happened]) -> None:
        """Take in what has happened; returns at once."""
        for each in happened:
            self._queue.put(each)

    def report(self, *, up_to_date: bool) -> Report:
        """What the certificate says, now or when it has taken in all that has happened by now."""
        if self._failed:
            raise self._failed
        if not up_to_date:
            return self._follower.report()
        told = Event()
        self._queue.put(told)
        while not told.wait(0.1):
            if not self._thread.is_alive():
                raise SharingError("The certificate is closed.", hint="Open the collective again.")
        if self._failed:
            raise self._failed
        return self._follower.wait()

    def close(self) -> None:
        """Give up what was not told yet, and end the follower too: it begins anew next time."""
        self._ending = True
        self._queue.put(None)
        self._thread.join()
        self._follower.close()

    def _tell(self) -> None:
        while (each := self._queue.get()) is not None:
            if isinstance(each, Event):
                each.set()
            elif not self._ending and not self._failed:
                try:
                    for entry in self._entries(each):
                        self._follower.record(entry)
                except Exception:
                    # With a gap it would say what is not so.
                    self._failed = SharingError(
                        "The certificate could not follow a question.",
                        hint="Verify the ledger, which computes it anew.",
                    )
