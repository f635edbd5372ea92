"""One benchmark: a time of ours beside a time of the thing it is compared with."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """What was timed, in seconds, next to its reference, and the ratio that we promise."""

    name: str
    ours: float
    reference_name: str
    reference: float
    target: float
    #: Whether `ours / reference` must stay below the target (time), or above it (rate, as speed-up).
    at_most: bool = True

    @property
    def ratio(self) -> float:
        """Ours over the reference; for a speed-up, the reference over ours."""
        return self.ours / self.reference if self.at_most else self.reference / self.ours

    @property
    def met(self) -> bool:
        """Whether the promise is kept in this run."""
        return self.ratio <= self.target if self.at_most else self.ratio >= self.target


def best_of(repeats: int, *tasks: Callable[[], object]) -> list[float]:
    """The shortest time of each task; the tasks take turns, so that a busy moment hits all alike."""
    return [min(times) for times in zip(*in_turns(repeats, *tasks), strict=True)]


def in_turns(repeats: int, *tasks: Callable[[], object]) -> list[list[float]]:
    """The times of all tasks, round by round."""
    return [[seconds(task) for task in tasks] for _ in range(repeats)]


def seconds(task: Callable[[], object]) -> float:
    """How long a task takes."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def in_the_middle(pairs: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Of times and their references, measured side by side, the pair whose ratio is the median.

    For what takes seconds: a machine that others use, too, is faster at one moment than at the next, and
    the best times of the two may come from different ones.
    """
    ranked = sorted(pairs, key=lambda pair: pair[0] / pair[1])
    return ranked[len(ranked) // 2]
