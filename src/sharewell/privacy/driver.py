"""The driver: runs what mechanisms write as generators, alone or in batches.

A mechanism answers a question with a generator. It yields a request to the kernel, or None where it buys
nothing, is resumed with what the kernel released, and returns its answers. The driver reserves the cost
of a request when it is yielded, and resumes a generator only when the charge is stored.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from sharewell.errors import LedgerError, SourceUnavailable
from sharewell.privacy.curator import Curator
from sharewell.privacy.ledger import Event
from sharewell.privacy.measurement import Measurement, Request, Reservation, SparseVectorTest

Answers = TypeVar("Answers")

#: One question to a mechanism, on its way through the kernel.
Step = Generator[Request | None, Any, Answers]


def run(step: Step[Answers], curator: Curator) -> Answers:
    """Run one step alone: each request is charged, measured and stored before the next is made."""
    with closing(step):
        try:
            request = next(step)
            while True:
                request = step.send(_perform(request, curator))
        except StopIteration as finished:
            return finished.value  # type: ignore[no-any-return]


def run_free(step: Step[Answers]) -> Answers | None:
    """Run a step that asks nothing of the kernel; None where it does.

    Privacy: costs nothing and touches no data, so that it can run beside the kernel, on a snapshot.
    """
    with closing(step):
        try:
            request = next(step)
            while request is None:
                request = step.send(None)
        except StopIteration as finished:
            return finished.value  # type: ignore[no-any-return]
    return None


def answer_free(question: BatchItem, steps: Iterable[Step[Any]]) -> Sequence[Event] | None:
    """Answer a question that asks nothing of the kernel: the events to store; None where it does."""
    answers = []
    try:
        for step in steps:
            answers.append(run_free(step))
            if answers[-1] is None:
                return None
        return question.finish(answers)
    except Exception as error:
        return question.fail(error)


def _perform(request: Request | None, curator: Curator) -> Measurement | bool | None:
    if request is None:
        return None
    if isinstance(request, SparseVectorTest):
        return request.sparse_vector.exceeds(request.query, request.guess)
    return curator.measure(request.block, request.cost, request.payer)


class BatchItem(Protocol):
    """A question of a batch: takes in its outcome, and says which events to store for it."""

    def finish(self, answers: list[Any]) -> Sequence[Event]:
        """Take in what the steps returned: the events to store for it."""

    def fail(self, error: Exception) -> Sequence[Event]:
        """Take in why there is no answer: the events to store for it."""


@dataclass
class _Entry:
    question: BatchItem
    #: The steps of a sequential mechanism, which begin when their turn comes.
    later: Iterable[Step[Any]] = ()
    steps: list[Step[Any]] = field(default_factory=list)
    reservations: list[Reservation | None] = field(default_factory=list)
    error: Exception | None = None


class Batch:
    """Questions that share two commits: first all charges, then all releases and answers.

    Decisions are made in the order in which questions are added, and each sees what was reserved for
    those before it. Answers are computed in the same order, which is that of the ledger: a state that is
    restored from the ledger is equal to the last bit.

    Privacy: costs what the questions reserve. Nothing is released before its charge is stored, and `run`
    returns only when everything that was released is stored.
    """

    def __init__(self, curator: Curator, *, sequential: bool = False) -> None:
        self._curator = curator
        self._sequential = sequential
        self._entries: list[_Entry] = []
        #: Whether computing an answer failed after its charge: the mechanism's state is not to be used.
        self.broken = False

    def add(self, question: BatchItem, steps: Iterable[Step[Any]], *, free_only: bool = False) -> bool:
        """Advance a question's steps to their decisions, and reserve what they buy: all, or nothing.

        With `free_only`, a question that buys, or may buy, is left out. Returns whether it is in.
        """
        if self._sequential:
            if not free_only:
                self._entries.append(_Entry(question, later=steps))
            return not free_only
        entry = _Entry(question)
        try:
            for step in steps:
                entry.steps.append(step)
                request = next(step)
                if isinstance(request, SparseVectorTest):
                    raise RuntimeError("A mechanism that tests is sequential: its questions run alone.")
                entry.reservations.append(self._curator.reserve(request) if request else None)
        except LedgerError:
            raise
        except Exception as error:
            self._cancel(entry)
            entry.error = error
        if free_only and any(entry.reservations):
            self._cancel(entry)
            return False
        self._entries.append(entry)
        return True

    def run(self, before: Sequence[Event] = ()) -> None:
        """Charge, measure, compute and store; `before` are events to store ahead of the charges."""
        if self._sequential:
            self._run_one_by_one(before)
            return
        reserved = [each for entry in self._entries for each in entry.reservations if each]
        measured = self._curator.charge(reserved, before) if reserved else []
        events = [] if reserved else [*before]
        bought = iter(measured)
        for entry in self._entries:
            events += self._resume(entry, bought)
        self._curator.store(measured, events)

    def _run_one_by_one(self, before: Sequence[Event]) -> None:
        """Run and store each question alone: a sequential mechanism's requests depend on answers."""
        if before:
            self._curator.record(before)
        for entry in self._entries:
            try:
                answers = [run(step, self._curator) for step in entry.later]
                events = entry.question.finish(answers)
            except (LedgerError, SourceUnavailable):
                raise
            except Exception as error:
                self.broken = True
                events = entry.question.fail(error)
            self._curator.store((), events)

    def _resume(self, entry: _Entry, bought: Iterator[Measurement]) -> list[Event]:
        """One question's answers, computed with what was measured for it."""
        own = [next(bought) if reserved else None for reserved in entry.reservations]
        events: list[Event] = [event for each in own if each for event in each.released]
        if entry.error is None:
            try:
                answers = [_send(step, each) for step, each in zip(entry.steps, own, strict=True)]
                return [*events, *entry.question.finish(answers)]
            except LedgerError:
                raise
            except Exception as error:
                # The charge is stored, and trying again would fail again. Other questions must not wait.
                self.broken = True
                entry.error = error
        return [*events, *entry.question.fail(entry.error)]

    def _cancel(self, entry: _Entry) -> None:
        for step in reversed(entry.steps):
            step.close()
        for reservation in entry.reservations:
            if reservation:
                self._curator.release(reservation)
        entry.steps, entry.reservations = [], []


def _send(step: Step[Answers], bought: Measurement | None) -> Answers:
    """Resume a step with what it bought."""
    try:
        step.send(bought)
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]
    step.close()
    raise RuntimeError("A step of a batch yields exactly once; declare the mechanism sequential.")
