"""The worker: the one thread that changes the state of a dataset.

It takes questions from analysts in turn, lets the scheduler choose, and answers the chosen ones as a
batch: one commit for questions and charges, one for values and answers. When the ledger fails, the
affected submissions are refused and the state is rebuilt from what the ledger holds.

A large question that buys nothing is computed beside the worker, on a snapshot, while the worker answers
small ones that buy nothing either. Those that buy wait for it: so each answer follows from what the
ledger holds before it. For the same reason a large question that buys is computed by the worker. Either
way one question delays another by at most `service.max_seconds` of estimated work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any, TypeVar

from sharewell.errors import (
    Closed,
    LedgerError,
    LedgerUnavailable,
    SharewellError,
    SourceUnavailable,
    UnknownPayer,
)
from sharewell.privacy.driver import Batch, answer_free
from sharewell.privacy.ledger import Event, Turn
from sharewell.service.release_slots import Published
from sharewell.service.state import DatasetState, TurnQueue
from sharewell.service.submissions import UNSTORED, Submission, Submissions, closing, overloaded

#: The most questions in a batch, and the number of answers after which no more are added: others wait
#: until a batch is stored.
BATCH_SIZE, BATCH_ANSWERS = 256, 500
#: How long to wait for more questions where several came at once the last time, and how often to look
#: whether they keep coming, in seconds: storing and measuring takes little longer for many than for one.
GATHER, GATHER_STEP = 0.01, 0.0005
#: The same with release slots, as far as that is at most a fifth of a slot: answers wait for its end.
GATHER_IN_SLOT, STEP_IN_SLOT = 0.02, 0.002
#: How often a scheduler that stalls is asked again, in seconds.
STALL_POLL = 0.2

Result = TypeVar("Result")


@dataclass
class _Job:
    """Something to run between two batches."""

    run: Callable[[DatasetState], Any]
    #: Whether it may change what a large question is computed from.
    changes: bool
    future: Future[Any]


@dataclass
class _Large:
    """A large question that is computed beside the worker: the events to store, or None if it buys."""

    submission: Submission
    events: Future[Sequence[Event] | None]


class Worker:
    """Answers submissions in batches and runs jobs between them.

    Each analyst's submissions and jobs are taken in order of arrival.
    """

    def __init__(
        self,
        submissions: Submissions,
        open_state: Callable[[], DatasetState],
        changed: Callable[[DatasetState], None],
        *,
        tick: float,
        release_every: float,
    ) -> None:
        self.state = open_state()
        #: What may be read by any thread.
        self.published = Published(self.state.public(), release_every)
        self._submissions = submissions
        self._open_state = open_state
        self._changed = changed
        self._tick = tick
        has_long_slots = release_every >= 5 * GATHER_IN_SLOT
        self._gather_for = GATHER_IN_SLOT if has_long_slots else GATHER
        self._gather_step = STEP_IN_SLOT if has_long_slots else GATHER_STEP
        self._next_tick = 0.0
        self._stale = False
        self._last_arrivals = 0
        #: Whether the last batch was full, so that more questions may have their turn. At the beginning
        #: some may have waited when the ledger was closed.
        self._more = True
        #: Notified when something arrives, and when a large question is computed.
        self._arrived = Condition()
        self._arrivals: TurnQueue[tuple[int, Submission | _Job]] = TurnQueue()
        self._arrival = 0
        self._closed = False
        self._large: _Large | None = None
        self._beside = ThreadPoolExecutor(1, "large-questions")
        self._thread = Thread(target=self._work, name="worker", daemon=True)

    def start(self) -> None:
        """Begin to serve, first what was pending when the ledger was closed."""
        self._publish()
        self._thread.start()

    def submit(self, new: Submission) -> Submission:
        """Accept a question; returns the submission of its key, which may have come before."""
        with self._arrived:
            if self._closed:
                raise closing()
            found = self._submissions.add(new)
            if found is new:
                self._put(new.analyst, new)
        return found

    def run(
        self, analyst: str, job: Callable[[DatasetState], Result], *, changes: bool = True
    ) -> Result:
        """Run a job that concerns an analyst, after what came from them before: what it returns.

        One that changes the mechanism waits for the large question that is computed.
        """
        future: Future[Result] = Future()
        with self._arrived:
            if self._closed:
                raise closing()
            self._put(analyst, _Job(job, changes, future))
        return future.result()

    def close(self) -> None:
        """Finish what was submitted, and end."""
        with self._arrived:
            self._closed = True
            self._arrived.notify()
        self._thread.join()
        self._beside.shutdown()

    def _put(self, analyst: str, item: Submission | _Job) -> None:
        self._arrival += 1
        self._arrivals.put(analyst, (self._arrival, item))
        self._arrived.notify()

    def _work(self) -> None:
        while not (self._closed and self._is_finished()):
            batch: list[Submission] = []
            for item in self._take():
                if isinstance(item, Submission):
                    batch.append(item)
                else:
                    self._serve(batch)
                    batch = []
                    self._do(item)
            self._serve(batch)
        self._submissions.give_up(Closed("The service has closed.", hint="Ask again with the same key."))

    def _take(self) -> list[Submission | _Job]:
        """What has arrived, from each analyst in turn, up to a batch, in order of arrival.

        Nothing, when it is only time to serve what waits.
        """
        scheduler, timeout = self.state.scheduler, None
        if self._stale or scheduler.waiting:
            timeout = self._tick if scheduler.paced and not self._stale else STALL_POLL
        with self._arrived:
            self._arrived.wait_for(
                lambda: self._arrivals.waiting or self._closed or self._can_serve(), timeout
            )
        self._gather()
        taken: list[tuple[int, Submission | _Job]] = []
        answers = 0
        with self._arrived:
            while self._arrivals.waiting and len(taken) < BATCH_SIZE and answers < BATCH_ANSWERS:
                taken.append(self._arrivals.pop())
                item = taken[-1][1]
                answers += item.size if isinstance(item, Submission) and not item.large else 0
        self._last_arrivals = len(taken)
        return [item for _, item in sorted(taken, key=lambda each: each[0])]

    def _gather(self) -> None:
        """Where several came at once the last time, wait for as many, and for more while they come."""
        seen, until = 0, time.monotonic() + self._gather_for
        while self._last_arrivals > 1 and time.monotonic() < until:
            waiting = self._arrivals.waiting
            if waiting == seen and (not waiting or waiting >= self._last_arrivals):
                return
            seen = waiting
            time.sleep(self._gather_step)

    def _can_serve(self) -> bool:
        """Whether something can be done before anything more arrives."""
        state = self.state
        if self._stale:
            return False
        if self._more and state.scheduler.waiting:
            return True
        if self._large is not None:
            return self._large.events.done()
        return bool(state.due or state.large.waiting)

    def _is_finished(self) -> bool:
        return not self._arrivals.waiting and (
            self._stale or (self._large is None and not self._can_serve())
        )

    def _serve(self, submissions: Sequence[Submission]) -> None:
        """Accept questions, choose those whose turn it is, answer them, and publish what has changed.

        When that fails, the new ones are refused, and the state is rebuilt next time.
        """
        try:
            if self._stale:
                self._rebuild()
            if self._large is not None and (self._large.events.done() or self._closed):
                self._finish_large()
            events = self._accept(submissions)
            chosen = self._choose(events)
            if self._large is None and chosen and chosen[0].large:
                self._begin_large(chosen[0], events)
            elif chosen or events:
                self._answer(chosen, events)
            self._publish()
            for submission in submissions:
                is_computed = self._large is not None and submission is self._large.submission
                if not (submission.done or is_computed):
                    submission.queue()
        except Exception as error:
            self._stale = True
            refusal = error if isinstance(error, SharewellError) else _unfinished()
            self._submissions.drop(submissions, refusal)

    def _do(self, job: _Job) -> None:
        try:
            if self._stale:
                self._rebuild()
            if job.changes:
                self._finish_large()
            result = job.run(self.state)
            self._publish()
            job.future.set_result(result)
        except Exception as error:
            self._stale |= not isinstance(error, SharewellError) or isinstance(
                error, LedgerError | SourceUnavailable
            )
            job.future.set_exception(error)

    def _rebuild(self) -> None:
        """After the ledger has failed, what it holds is what has happened."""
        # It will be computed again: what the ledger holds may have changed what it is computed from.
        self._large = None
        self.state = self._open_state()
        self._publish()
        self._stale = False

    def _publish(self) -> None:
        """Publish what has happened, then give answers to those who wait.

        In this order, an analyst who was given an answer sees what it has cost.
        """
        try:
            self._changed(self.state)
            self.published.put(self.state.public())
        finally:
            self.state.settle()

    def _accept(self, submissions: Sequence[Submission]) -> list[Event]:
        """Number new questions and queue them with the scheduler: the events to store."""
        self._submissions.adopt_stored(submissions)
        events: list[Event] = []
        analysts, now = self.state.curator.payers, time.monotonic()
        for submission in submissions:
            # Some were stored after all, in a commit that seemed to fail.
            if submission.number != UNSTORED or submission.done:
                continue
            if submission.analyst not in analysts:
                self._submissions.drop([submission], UnknownPayer(f"{submission.analyst} has left."))
                continue
            if submission.deadline < now:
                self._submissions.drop([submission], overloaded())
                continue
            submission.number = self.state.history.count + len(events)
            events.append(submission.asked)
            self.state.scheduler.submit(submission.analyst, submission)
        return events

    def _choose(self, events: list[Event]) -> list[Submission]:
        """The questions to answer now: small ones together, or one large one alone.

        While a large one is computed, all whose turn it is: `_answer` lets some of them wait, in order.
        Without a scheduler, large ones let small ones pass. A paced scheduler decides once a tick.
        """
        state, scheduler, now = self.state, self.state.scheduler, time.monotonic()
        chosen: list[Submission] = []
        turns: list[Submission] = []
        had_turns = [*([self._large.submission] if self._large else []), *state.due]
        answers = 0
        while not (full := len(chosen) == BATCH_SIZE or answers >= BATCH_ANSWERS):
            if state.due and self._large is None:
                submission = state.due.popleft()
            elif scheduler.waiting and now >= self._next_tick:
                if scheduler.paced:
                    self._next_tick = now + self._tick
                if (entry := scheduler.next(now)) is None:
                    break
                submission = entry.item
                turns.append(submission)
            else:
                break
            if submission.large and scheduler.keeps_arrival_order:
                state.large.put(submission.analyst, submission)
            elif not submission.large or self._large is not None:
                chosen.append(submission)
                answers += 0 if submission.large else submission.size
            elif chosen:
                state.due.appendleft(submission)
                break
            else:
                chosen.append(submission)
                break
        self._more = full
        if turns and not scheduler.keeps_arrival_order:
            numbers = tuple([each.number for each in (*had_turns, *turns)])
            events.append(Turn(numbers, scheduler.state()))
        if not chosen and state.large.waiting and self._large is None:
            chosen = [state.large.pop()]
        return chosen

    def _answer(self, chosen: Sequence[Submission], events: Sequence[Event] = ()) -> None:
        """Answer a batch; while a large question is computed, only small ones that buy nothing."""
        mechanism, busy = self.state.mechanism, self._large is not None
        batch = Batch(self.state.curator, sequential=mechanism.sequential)
        for each in chosen:
            if (busy and each.large) or not batch.add(each, each.steps(mechanism), free_only=busy):
                self.state.due.append(each)
        batch.run(events)
        self._stale |= batch.broken

    # Large questions

    def _begin_large(self, submission: Submission, events: Sequence[Event]) -> None:
        """Store events, and compute a large question beside the worker, in case it buys nothing."""
        if events:
            self.state.curator.record(events)
        steps = submission.steps(self.state.public().mechanism)
        self._large = _Large(submission, self._beside.submit(answer_free, submission, steps))
        self._large.events.add_done_callback(self._notify)

    def _notify(self, _: object) -> None:
        with self._arrived:
            self._arrived.notify()

    def _finish_large(self) -> None:
        """Wait for the large question that is computed, if any, and store it; run it if it buys."""
        large, self._large = self._large, None
        if large is None:
            return
        events = large.events.result()
        if events is None:
            self._answer([large.submission])
        else:
            self.state.curator.store((), events)


def _unfinished() -> LedgerUnavailable:
    """The refusal after an unexpected error; a library's message may quote what must not be shown."""
    return LedgerUnavailable(
        "The question could not be finished.",
        hint="Ask again with the same key; it is charged at most once.",
    )
