"""The worker: the one thread that changes anything.

It takes all questions that have come in the meantime, lets the scheduler decide, and stores what it
does in two breaths for all of them: questions and charges before the data is touched, values and
answers before anybody is given them. When the ledger fails, those who asked are told, and the state
is read anew from what the ledger holds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import RLock, Thread

from sharewell.errors import (
    Closed,
    LedgerError,
    LedgerUnavailable,
    SharewellError,
    UnknownPayer,
)
from sharewell.privacy.ledger import Event, Ledger, Turn
from sharewell.privacy.measurement import Measurement
from sharewell.service.served import Served, not_computed
from sharewell.service.state import State
from sharewell.service.ticket import Ticket, Tickets
from sharewell.sharing.scheduler import InOrder

#: How many questions are stored in one breath at the most, and after how many numbers no more are taken
#: in: a store takes only so much in one piece.
MOST_AT_ONCE, MOST_NUMBERS = 256, 100_000
#: How long to wait for more where several came at once the last time, in seconds: to store and to
#: measure takes little longer for many than for one.
GATHER = 0.002
#: How often a scheduler that waits for somebody is asked again, in seconds.
PATIENCE = 0.2


@dataclass
class Errand:
    """Something for the worker to do between two batches."""

    run: Callable[[State], None]
    future: Future[None]


class Worker:
    """Serves tickets in batches and runs errands between them, in the order in which they come."""

    def __init__(
        self,
        ledger: Ledger,
        tickets: Tickets,
        open_state: Callable[[], State],
        told: Callable[[State, Sequence[Served]], None],
        tick: float,
    ) -> None:
        #: Held while the mechanism decides or computes, and let go of while questions are stored.
        self.thinking = RLock()
        self.state = open_state()
        self._ledger = ledger
        self._tickets = tickets
        self._open_state = open_state
        self._told = told
        self._tick = tick
        self._next_tick = 0.0
        self._stale = False
        #: How many came at once the last time.
        self._came = 0
        self._queue: SimpleQueue[Ticket | Errand | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name="broker", daemon=True)

    def start(self) -> None:
        """Begin to serve, first of all what waited when the ledger was closed."""
        self._thread.start()

    def put(self, ticket: Ticket) -> None:
        """Hand in a question."""
        self._queue.put(ticket)

    def run(self, errand: Callable[[State], None]) -> Future[None]:
        """Have something done between two batches."""
        future: Future[None] = Future()
        self._queue.put(Errand(errand, future))
        return future

    def close(self) -> None:
        """Finish what was handed in, and end."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        closing = False
        while not closing:
            taken = self._take()
            closing = None in taken
            batch: list[Ticket] = []
            for item in taken:
                if isinstance(item, Ticket):
                    batch.append(item)
                elif item is not None:
                    self._guarded(batch)
                    batch = []
                    self._do(item)
            self._guarded(batch)
        self._tickets.give_up(Closed("The service has closed.", hint="Ask again with the same key."))

    def _take(self) -> list[Ticket | Errand | None]:
        """All that there is to do; nothing, when it is only time to decide again."""
        try:
            taken = [self._queue.get(timeout=self._wait())]
        except Empty:
            return []
        if isinstance(taken[0], Ticket):
            self._gather()
        while len(taken) < MOST_AT_ONCE and not self._queue.empty():
            taken.append(self._queue.get())
        self._came = len(taken)
        return taken

    def _gather(self) -> None:
        """Give those a moment who are likely to come: as many as the last time."""
        until = time.monotonic() + GATHER
        while self._queue.qsize() + 1 < self._came and time.monotonic() < until:
            time.sleep(GATHER / 4)

    def _wait(self) -> float | None:
        """How long to wait for something to come: not at all, a while, or for ever."""
        scheduler = self.state.scheduler
        if self._stale:
            return PATIENCE
        if self.state.due or (scheduler.waiting and isinstance(scheduler, InOrder)):
            return 0.0
        if not scheduler.waiting:
            return None
        return self._tick if scheduler.paced else PATIENCE

    def _guarded(self, batch: Sequence[Ticket]) -> None:
        """Serve a batch; when that fails, tell those who are new, and read the state anew next time."""
        try:
            self._refresh()
            self._serve(self._admit(self._tickets.only_new(batch)))
        except Exception as error:
            self._stale = True
            failure = error if isinstance(error, SharewellError) else _unexpected()
            self._tickets.drop(batch, failure)

    def _admit(self, new: Sequence[Ticket]) -> list[Ticket]:
        """Those whose analyst is still here; the others are told."""
        here = self.state.mechanism.analysts
        for ticket in new:
            if ticket.analyst not in here:
                self._tickets.drop([ticket], UnknownPayer(f"{ticket.analyst} has left."))
        return [ticket for ticket in new if not ticket.done]

    def _refresh(self) -> None:
        """After the ledger has failed, what it holds is what has happened."""
        if self._stale:
            with self.thinking:
                self.state = self._open_state()
            self._told(self.state, ())
            self._stale = False

    def _do(self, errand: Errand) -> None:
        try:
            self._refresh()
            with self.thinking:
                errand.run(self.state)
            self._told(self.state, ())
            errand.future.set_result(None)
        except Exception as error:
            self._stale |= not isinstance(error, SharewellError) or isinstance(error, LedgerError)
            errand.future.set_exception(error)

    def _serve(self, new: Sequence[Ticket]) -> None:
        """Take in new questions, let the scheduler decide, and answer those whose turn it is."""
        with self.thinking:
            asked = self._ask(new)
            due = [self._prepare(Served(ticket)) for ticket in self.state.take_due()]
            served = [*due, *self._decide()]
            if served and not isinstance(self.state.scheduler, InOrder):
                numbers = tuple(each.ticket.stored for each in served)
                asked.append(Turn(numbers, self.state.scheduler.state()))
        self._store(asked, served)
        self._tickets.keep(new)
        for each in served:
            each.hand_over()
        for ticket in new:
            if not ticket.ready:
                ticket.waits()
        self._told(self.state, served)

    def _ask(self, new: Sequence[Ticket]) -> list[Event]:
        """Give the questions their numbers and their places with the scheduler."""
        first = len(self._ledger)
        for at, ticket in enumerate(new):
            ticket.number = first + at
            ticket.place = self.state.scheduler.submit(ticket.analyst, ticket)
        return [ticket.asked for ticket in new]

    def _decide(self) -> list[Served]:
        """Those whose turn it is: all that can be served now, or one at a tick."""
        scheduler, now = self.state.scheduler, time.monotonic()
        most = MOST_AT_ONCE
        if scheduler.paced and scheduler.waiting:
            if now < self._next_tick:
                return []
            self._next_tick = now + self._tick
            most = 1
        chosen: list[Served] = []
        numbers = 0
        while scheduler.waiting and len(chosen) < most and numbers < MOST_NUMBERS:
            place = scheduler.next(now)
            if place is None:
                break
            place.item.place = None
            chosen.append(self._prepare(Served(place.item)))
            numbers += chosen[-1].numbers
        return chosen

    def _prepare(self, served: Served) -> Served:
        """Decide what to buy for a question; or why it is refused."""
        mechanism, analyst, pay = self.state.mechanism, served.ticket.analyst, served.ticket.pay
        try:
            for block in served.statement.blocks:
                served.prepared.append(mechanism.prepare(block, analyst, pay=pay))
        except LedgerError:
            raise
        except Exception as error:
            for each in reversed(served.prepared):
                mechanism.forget(each)
            served.prepared.clear()
            served.error = error if isinstance(error, SharewellError) else not_computed()
        return served

    def _store(self, asked: Sequence[Event], served: Sequence[Served]) -> None:
        """Charge and store, measure, answer and store."""
        orders = [p.order for each in served for p in each.prepared if p.order]
        if orders:
            self.state.curator.fill(
                orders, before=asked, report=lambda found: self._finish(served, found)
            )
        elif self.state.mechanism.plans_ahead:
            if events := [*asked, *self._finish(served, [])]:
                self._ledger.append_many(events)
        else:
            # What such a mechanism buys is up to the data, so it charges while it answers.
            if asked:
                self._ledger.append_many(asked)
            for each in served:
                self._ledger.append_many(self._finish([each], []))

    def _finish(self, served: Sequence[Served], found: Sequence[Measurement]) -> list[Event]:
        """The answers, one after the other, each with what was measured for it just before."""
        measured = iter(found)
        events: list[Event] = []
        with self.thinking:
            for each in served:
                bought = [next(measured) if p.order else None for p in each.prepared]
                events += [measurement.released for measurement in bought if measurement]
                try:
                    for prepared, measurement in zip(each.prepared, bought, strict=True):
                        each.answers += self.state.mechanism.finish(prepared, measurement)
                except LedgerError:
                    raise
                except Exception as error:
                    # It is stored, and would be tried again for ever. The others must not wait for it.
                    each.error = error if isinstance(error, SharewellError) else not_computed()
                    self._stale = True
                events.append(each.event)
        return events


def _unexpected() -> LedgerUnavailable:
    """Says nothing about what happened: an error of a library may quote what must not be told."""
    return LedgerUnavailable(
        "The question could not be finished.", hint="Ask again with the same key; nothing is paid twice."
    )
