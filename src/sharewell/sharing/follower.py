"""The follower: a certificate kept up in a process of its own, so that no answer waits for it."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Any

from sharewell.collector import stay_calm
from sharewell.errors import SharingError
from sharewell.sharing.certificate import Certificate
from sharewell.sharing.collective import Collective, Rehearsal
from sharewell.sharing.promises import promises
from sharewell.sharing.report import Report, Standing
from sharewell.sharing.scheduler import InOrder, Scheduler
from sharewell.sharing.stream import Entry

#: How many entries go over in one message at the most, so that a question about them need not wait.
BATCH = 256
#: How long somebody waits for a report by default, in seconds, before they are given the last.
PATIENCE = 0.5
#: How long to collect entries for a message: many small ones would disturb those who are answering.
GATHER = 0.05


class Follower:
    """Follows a collective from another process.

    `record` only puts what has happened into a queue. A thread sends what has gathered, and the other
    process, which has a lower priority, lets it happen in the certificate's shadow ledgers. It ends
    when this one does, however that ends. Where what is recorded are no entries yet, `read` makes each
    into one, over there: nobody here is to wait for that either.

    Privacy: the other process is told what is public, and is never given data.
    """

    def __init__(
        self,
        collective: Collective,
        *,
        error_threshold: float,
        scheduler: Scheduler[Any] | None = None,
        read: Callable[[Any], Entry] | None = None,
    ) -> None:
        mechanism = Rehearsal(collective).mechanism
        #: What the other process said last; before that, that nothing has happened.
        self._last: Report | SharingError = Report(
            mechanism.name,
            InOrder.name if scheduler is None else scheduler.name,
            error_threshold,
            promises(mechanism, scheduler),
            tuple(_nothing_yet(collective.shares) if mechanism.errors_are_public else ()),
            0,
        )
        self._begun = self._last
        self._asked: Event | None = None
        context = get_context("spawn")
        self._line, theirs = context.Pipe()
        self._process = context.Process(
            target=_follow,
            args=(theirs, collective, error_threshold, read),
            daemon=True,
            name="certificate",
        )
        with _without_main():
            self._process.start()
        theirs.close()
        self._recorded = 0
        self._recording = Lock()
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._sending = Lock()
        self._sender = Thread(target=self._send, daemon=True, name="certificate-sender")
        self._sender.start()

    def record(self, happened: Any) -> None:
        """Take in what has happened: an entry, or what `read` makes into one; returns at once."""
        with self._recording:
            self._recorded += 1
            self._queue.put(happened)

    def report(self, patience: float = PATIENCE) -> Report:
        """What the certificate says now, or said last if it is at work for longer than one waits.

        `entries` tells how far it has come.
        """
        self._ask().wait(patience)
        if isinstance(self._last, SharingError):
            raise self._last
        return replace(self._last, scheduler=self._begun.scheduler, promises=self._begun.promises)

    def _ask(self) -> Event:
        """Ask for a report, unless somebody has just done so; set when it has come."""
        with self._recording:
            if self._asked is None or self._asked.is_set():
                self._asked = Event()
                Thread(target=self._fetch, args=(self._asked,), daemon=True).start()
            return self._asked

    def _fetch(self, come: Event) -> None:
        with self._sending:
            try:
                self._line.send(None)
                self._last = self._line.recv()
            except (EOFError, OSError):
                self._last = SharingError(
                    "The certificate's process has ended.",
                    hint="Open the collective again to restart it.",
                )
        come.set()

    @property
    def behind(self) -> int:
        """How many entries the certificate has not taken in yet."""
        return self._recorded - self.report().entries

    def wait(self, timeout: float = 60.0) -> Report:
        """The report that covers everything recorded so far, when it is there."""
        end = time.monotonic() + timeout
        goal = self._recorded
        while (report := self.report(timeout)).entries < goal:
            if time.monotonic() > end:
                raise SharingError(f"The certificate is still {goal - report.entries} entries behind.")
            time.sleep(0.01)
        return report

    def close(self) -> None:
        """End the other process; what it knows can be computed anew."""
        self._process.terminate()
        self._queue.put(None)
        self._sender.join(timeout=5)
        self._process.join(timeout=5)
        self._line.close()

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self) -> None:
        """Send entries in batches until told to end."""
        ended = False
        while not ended:
            batch = [self._queue.get()]
            time.sleep(GATHER)
            while len(batch) < BATCH and not self._queue.empty():
                batch.append(self._queue.get())
            ended = batch[-1] is None
            with self._sending, suppress(OSError):
                self._line.send([happened for happened in batch if happened is not None])


def _nothing_yet(analysts: Iterable[str]) -> Iterator[Standing]:
    """How everybody stands before the first question."""
    everybody = tuple(analysts)
    for analyst in everybody:
        without = {other: 0.0 for other in everybody if other != analyst}
        yield Standing(analyst, 0, 0.0, 0.0, without, 0)


@contextmanager
def _without_main() -> Iterator[None]:
    """Start a process that does not run the caller's script once more: it needs nothing of it."""
    main = sys.modules["__main__"]
    hidden = {name: vars(main).pop(name) for name in ("__file__",) if name in vars(main)}
    spec, main.__spec__ = main.__spec__, None
    try:
        yield
    finally:
        vars(main).update(hidden)
        main.__spec__ = spec


def _follow(
    line: Connection,
    collective: Collective,
    error_threshold: float,
    read: Callable[[Any], Entry] | None,
) -> None:
    """What the other process does: take in entries, and report when asked."""
    # Ctrl-C reaches every process of a terminal. This one ends when whoever started it says so.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError, AttributeError):
        os.nice(5)
    stay_calm()
    certificate = Certificate(collective, error_threshold=error_threshold)
    failed: SharingError | None = None
    while True:
        try:
            message = line.recv()
        except (EOFError, OSError):
            return
        if message is None:
            line.send(failed or certificate.report())
            continue
        for happened in message:
            try:
                if failed is None:
                    certificate.record(read(happened) if read else happened)
            except Exception:
                # With a gap it would say what is not so.
                failed = SharingError(
                    "The certificate could not follow what has happened.",
                    hint="Verify the ledger, which computes it anew.",
                )
