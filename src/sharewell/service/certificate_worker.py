"""The certificate's process, and the thread that feeds and supervises it.

The thread reads the ledger from where it stopped and sends what happened in the collective to a process,
which plays it and replies with its report: no answer waits for that. Nothing is queued or kept here, so
that memory does not grow with the questions. If the process dies, another one starts, from the beginning
of the ledger.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from itertools import takewhile
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from threading import Condition, Lock, Thread
from types import ModuleType
from typing import NamedTuple

from threadpoolctl import threadpool_limits

from sharewell.config.config import Config
from sharewell.errors import Closed, LedgerError, LedgerUnavailable, OverBudget, SharingError
from sharewell.gc_tuning import tune_gc
from sharewell.mechanisms.base import is_seed
from sharewell.privacy.ledger import (
    Answered,
    AnsweredFree,
    Asked,
    Charged,
    Configured,
    Event,
    Granted,
    Ledger,
    Left,
    Refused,
    RoundClosed,
)
from sharewell.query.sql import compile_sql
from sharewell.service.release_slots import Published
from sharewell.sharing.certificate import Certificate, Report, Standing, promises
from sharewell.sharing.collective import Ask, CloseRound, Collective, DryRun, Entry, Join, Leave

#: The number of entries in the first message, and the most in any: the process replies with a report
#: after each. Where entries take long, messages are small enough for a report this often, in seconds.
FIRST_MESSAGE, MESSAGE, REPORT_EVERY = 8, 256, 1.0
#: How long to collect entries for a message, in seconds: many small ones would disturb answering.
GATHER = 0.05
#: The pause before a dead process is replaced, in seconds: doubled from the first to the last while
#: processes die within as long as the last.
FIRST_PAUSE, LAST_PAUSE = 0.5, 60.0
#: How often it is checked that an idle process is alive, in seconds.
WATCH = 0.5


class EndedQuestion(NamedTuple):
    """A question that has ended, as the process gets it: it compiles the SQL."""

    analyst: str
    sql: str
    pay: bool


Sent = EndedQuestion | Join | Leave | CloseRound


class CertificateWorker:
    """Keeps the certificate of a dataset in a process of its own, and replaces that if it dies.

    Privacy: the process gets public values only, and never data.
    """

    def __init__(
        self, config: Config, ledger: Ledger, entries: int = 0, *, release_every: float = 0.0
    ) -> None:
        self._config = config
        self._ledger = ledger
        shares = dict(_initial_shares(ledger))
        self._collective = replace(config.collective, shares=shares)
        mechanism, scheduler = DryRun(self._collective).mechanism, config.scheduler()
        self._empty = Report(
            mechanism.name,
            scheduler.name,
            config.error_threshold,
            promises(mechanism, scheduler),
            tuple(_no_answers(shares) if mechanism.errors_are_public else ()),
            0,
        )
        #: Guards all below, and is notified when any of it changes.
        self._changed = Condition()
        #: How many entries the ledger holds.
        self._entries = entries
        #: The last report; None while the process is being replaced.
        self._report: Published[Report | SharingError | None] = Published(self._empty, release_every)
        self._process: SpawnProcess | None = None
        #: How many entries the next message may have.
        self._most = FIRST_MESSAGE
        self._closing = False
        self._thread = Thread(target=self._supervise, daemon=True, name="certificate")
        self._thread.start()

    def notify(self, entries: int) -> None:
        """Announce that the ledger holds so many entries."""
        with self._changed:
            self._entries = entries
            self._changed.notify_all()

    def report(self, entries: int) -> Report:
        """The published report; `behind` says how many of so many entries it does not cover."""
        found = self._report.get()
        if found is None or self._closing:
            raise Closed(
                "The certificate's process is being restarted.", hint="Try again in a few seconds."
            )
        if isinstance(found, SharingError):
            raise found
        return replace(found, behind=max(0, entries - found.entries))

    def wait(self, timeout: float = 60.0) -> None:
        """Wait for a report that covers everything so far, or says that there is none."""
        with self._changed:
            if not self._changed.wait_for(self._is_settled, timeout):
                raise SharingError(f"The certificate is behind after {timeout:g} seconds.")

    def _is_settled(self) -> bool:
        """Whether there is no report to wait for."""
        last = self._report.latest
        covers_all = last.entries >= self._entries if isinstance(last, Report) else last is not None
        return covers_all or self._closing

    def close(self) -> None:
        """End the process."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            if self._process is not None:
                self._process.kill()
        self._thread.join()

    def __enter__(self) -> CertificateWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The thread

    def _supervise(self) -> None:
        """Run one process after another."""
        pause = FIRST_PAUSE
        while not self._closing:
            started = time.monotonic()
            try:
                self._run_process()
            except (EOFError, OSError, LedgerError):
                pass
            except Exception:
                self._publish(_could_not_follow())
                return
            self._publish(None)
            with self._changed:
                if time.monotonic() - started > LAST_PAUSE:
                    pause = FIRST_PAUSE
                self._changed.wait_for(lambda: self._closing, pause)
            pause = min(2 * pause, LAST_PAUSE)

    def _run_process(self) -> None:
        """Start a process and feed it, until it dies or the service closes."""
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        arguments = theirs, self._collective, self._config.error_threshold, self._config.name
        process = context.Process(
            target=_keep_certificate, args=arguments, daemon=True, name="certificate"
        )
        with _without_main():
            process.start()
        theirs.close()
        with self._changed:
            self._process = process
        try:
            self._feed(ours)
        finally:
            with self._changed:
                self._process = None
            process.kill()
            process.join()
            process.close()
            ours.close()

    def _feed(self, line: Connection) -> None:
        """Send what the ledger holds, message by message, and take in the report after each."""
        stream = StreamReader()
        self._most = FIRST_MESSAGE
        while not self._closing:
            message: list[Sent] = []
            try:
                for event in self._ledger.events(stream.position):
                    message += stream.read(event)
                    if len(message) >= self._most:
                        self._exchange(line, message)
                        message = []
            except LedgerUnavailable:
                time.sleep(FIRST_PAUSE)
            self._exchange(line, message)
            self._wait_for_more(line, stream)
            time.sleep(GATHER)

    def _wait_for_more(self, line: Connection, stream: StreamReader) -> None:
        """Wait until the ledger has grown; a process that dies meanwhile is noticed."""
        with self._changed:
            while not self._closing and self._entries <= stream.entries:
                self._changed.wait(WATCH)
                if line.poll():  # It sends nothing unasked, so the line has ended.
                    raise EOFError

    def _exchange(self, line: Connection, message: list[Sent]) -> None:
        """Send entries and publish the report."""
        started = time.monotonic()
        line.send(message)
        found: Report | SharingError = line.recv()
        if message:
            in_time = len(message) * REPORT_EVERY / max(time.monotonic() - started, 1e-6)
            self._most = max(1, min(MESSAGE, 2 * self._most, int(in_time)))
        if isinstance(found, Report):
            found = replace(found, scheduler=self._empty.scheduler, promises=self._empty.promises)
        self._publish(found)

    def _publish(self, report: Report | SharingError | None) -> None:
        with self._changed:
            self._report.put(report)
            self._changed.notify_all()


class StreamReader:
    """Reads the entries of a collective's stream off a ledger's events; keeps open questions only."""

    def __init__(self) -> None:
        #: The number of the next event, and of entries so far.
        self.position = 0
        self.entries = 0
        self._is_configured = False
        self._open: dict[int, Asked] = {}
        self._left: dict[str, Fraction] = {}
        self._donors: set[str] = set()

    def read(self, event: Event) -> list[Sent]:
        """The entry that the next event completes, if any."""
        entry = self._read(event)
        self.position += 1
        self.entries += entry is not None
        return [] if entry is None else [entry]

    def _read(self, event: Event) -> Sent | None:
        match event:
            case Configured():
                self._is_configured = True
            case Charged():
                self._charge(event)
            case Granted(payer, share):
                self._left[payer] = share
                if self._is_configured:
                    return Join(payer, share)
            case Left(payer):
                return Leave(payer, payer in self._donors)
            case RoundClosed(payers):
                return CloseRound(payers)
            case Asked():
                self._open[self.position] = event
            case Answered(asked) | AnsweredFree(asked) | Refused(asked):
                question = self._open.pop(asked)
                if not isinstance(event, Refused) or event.code == OverBudget.code:
                    return EndedQuestion(question.analyst, question.question["sql"], question.pay)
        return None

    def _charge(self, charged: Charged) -> None:
        for payer, cost in charged.bill.items():
            self._left[payer] -= cost
            self._donors.discard(payer)
        # An analyst who leaves after spending all that was left on the seed has donated it.
        if len(charged.bill) == 1 and is_seed(charged.purpose.get("measure", {})):
            self._donors |= {payer for payer in charged.bill if not self._left[payer]}


def _initial_shares(ledger: Ledger) -> Iterator[tuple[str, Fraction]]:
    """The shares that were granted before the first settings: all other analysts have joined later."""
    for event in takewhile(lambda event: not isinstance(event, Configured), ledger.events()):
        if isinstance(event, Granted):
            yield event.payer, event.share


def _no_answers(analysts: dict[str, Fraction]) -> Iterator[Standing]:
    """The standing of every analyst before the first question."""
    for analyst in analysts:
        yield Standing(analyst, 0, 0.0, 0.0, {other: 0.0 for other in analysts if other != analyst}, 0)


def _could_not_follow() -> SharingError:
    return SharingError(
        "The certificate could not follow the ledger.",
        hint="Run `sharewell verify`, which computes it again.",
    )


# The process


_STARTING = Lock()


@contextmanager
def _without_main() -> Iterator[None]:
    """Start a process without running the caller's main script again: nothing of it is needed."""
    with _STARTING:
        main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


def _keep_certificate(
    line: Connection, collective: Collective, error_threshold: float, table: str
) -> None:
    """Take in messages of entries, and reply to each with a report."""
    # Ctrl-C reaches every process of a terminal. This one ends when its parent says so, or is gone.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    with suppress(OSError, AttributeError):
        os.nice(5)
    tune_gc()
    certificate = Certificate(collective, error_threshold=error_threshold)
    failure: SharingError | None = None
    with threadpool_limits(1), suppress(EOFError, OSError):
        while True:
            for sent in line.recv():
                try:
                    if failure is None:
                        certificate.record(_entry(sent, collective, table))
                except Exception:
                    failure = _could_not_follow()  # With a gap it would state something false.
            line.send(failure or certificate.report())


def _entry(sent: Sent, collective: Collective, table: str) -> Entry:
    if isinstance(sent, EndedQuestion):
        statement = compile_sql(sent.sql, collective.domain, table=table)
        return Ask(sent.analyst, statement.blocks, sent.pay)
    return sent


def _end_with_parent() -> None:
    """End the process as soon as its parent is gone, also in the middle of a computation."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)
