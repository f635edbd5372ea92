"""A benchmark result: a time and the time of its reference."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """A time in seconds or another number, its reference, and the target ratio."""

    name: str
    ours: float
    reference_name: str
    reference: float
    target: float
    #: Whether `ours / reference` must stay below the target (time) or above it (speed-up).
    at_most: bool = True
    #: Whether the numbers are times; otherwise they are errors, or whatever the name says.
    times: bool = True

    @property
    def ratio(self) -> float:
        """Our time over the reference; for a speed-up, the inverse."""
        return self.ours / self.reference if self.at_most else self.reference / self.ours

    @property
    def met(self) -> bool:
        """Whether this run meets the target."""
        return self.ratio <= self.target if self.at_most else self.ratio >= self.target


Clock = Callable[[], float]


def best_of(repeats: int, *tasks: Callable[[], object], clock: Clock = time.perf_counter) -> list[float]:
    """Return the shortest time of each task; tasks alternate, so that load affects all alike."""
    return [min(times) for times in zip(*in_turns(repeats, *tasks, clock=clock), strict=True)]


def in_turns(
    repeats: int, *tasks: Callable[[], object], clock: Clock = time.perf_counter
) -> list[list[float]]:
    """Return the times of all tasks, round by round."""
    return [[seconds(task, clock) for task in tasks] for _ in range(repeats)]


def seconds(task: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    """Time a task."""
    start = clock()
    task()
    return clock() - start


def cpu_seconds(task: Callable[[], object]) -> float:
    """The processor time of a task in all threads: other processes do not add to it."""
    return seconds(task, time.process_time)


def in_the_middle(pairs: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return the pair of time and reference with the median ratio.

    For tasks of several seconds on a shared machine, where the best times of the two may come from
    different moments.
    """
    ranked = sorted(pairs, key=lambda pair: pair[0] / pair[1])
    return ranked[len(ranked) // 2]
