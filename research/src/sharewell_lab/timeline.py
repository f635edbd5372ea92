"""The simulator's discrete time: at every step one question arrives and one decision is made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic

from sharewell.errors import SharingError
from sharewell.schedulers.base import Item, Scheduler

#: How many steps in a row may serve no question after the last arrival. A paced scheduler that draws
#: every analyst with a probability of at least one in 100,000 gets there once in e^100 runs.
PATIENCE = 10_000_000


@dataclass(frozen=True)
class Timeline(Generic[Item]):
    """What was served, in order, and when; steps are counted from 1.

    `served_at` and `arrived_at` belong to the questions of `order`, one by one. `steps` is the time to
    completion. `stalls` counts the steps that served no question while a question was waiting.
    """

    order: tuple[tuple[str, Item], ...]
    served_at: tuple[int, ...]
    arrived_at: tuple[int, ...]
    steps: int
    stalls: int

    @property
    def waits(self) -> tuple[int, ...]:
        """How many steps each question waited; 0 if it was served at the step of its arrival."""
        pairs = zip(self.served_at, self.arrived_at, strict=True)
        return tuple(served - arrived for served, arrived in pairs)


def run(
    scheduler: Scheduler[Item], arrivals: Iterable[tuple[str, Item]], patience: int = PATIENCE
) -> Timeline[Item]:
    """Play a whole stream of questions through a scheduler, until all of them are served.

    At each step the next question is submitted while there is one, and then one decision is made. The
    simulator knows the whole stream, so an analyst is done at the step of their last question.

    >>> from sharewell.schedulers import RoundRobin
    >>> run(RoundRobin(["ann", "bob"]), [("ann", 1), ("ann", 2), ("bob", 3)])
    Timeline(order=(('ann', 1), ('bob', 3), ('ann', 2)), served_at=(1, 3, 4), arrived_at=(1, 3, 2), \
steps=4, stalls=1)
    """
    stream = list(arrivals)
    last = {analyst: at for at, (analyst, _) in enumerate(stream)}
    present = scheduler.analysts
    if strangers := sorted(set(last) - set(present)):
        raise SharingError(
            f"The stream has questions of {strangers[0]}, who is not an analyst of the scheduler.",
            hint=f"There are {', '.join(present) or 'none'}.",
        )
    if scheduler.waiting:
        raise SharingError(
            "Questions are waiting that are not of the stream.", hint="Give a scheduler without any."
        )
    for analyst in present:
        if analyst not in last:
            scheduler.done(analyst)
    stalls = scheduler.stalls
    served: list[int] = []
    served_at: list[int] = []
    # There is no other client, so the numbers of the tickets follow each other like the questions.
    first = step = unserved = 0
    questions = len(stream)
    while step < questions or not scheduler.finished:
        if step < questions:
            analyst, item = stream[step]
            submitted = scheduler.submit(analyst, item)
            if not step:
                first = submitted.number
            if last[analyst] == step:
                scheduler.done(analyst)
        step += 1
        ticket = scheduler.next(step)
        if ticket is not None:
            served.append(ticket.number - first)
            served_at.append(step)
            unserved = 0
        elif step > questions:
            unserved += 1
            if not scheduler.paced or unserved >= patience:
                raise SharingError(
                    f"The {scheduler.name} scheduler serves no question, although no more will come and "
                    f"{scheduler.waiting} questions are waiting.",
                    hint="No analyst may be drawn too seldom, and a rotation must pass over the done.",
                )
    order = tuple((stream[at][0], stream[at][1]) for at in served)
    arrived_at = tuple(at + 1 for at in served)
    return Timeline(order, tuple(served_at), arrived_at, step, scheduler.stalls - stalls)
