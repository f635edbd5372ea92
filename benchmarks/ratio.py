"""One benchmark: a time of ours beside a time of the thing it is compared with."""

import time
from collections.abc import Callable
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
    best = [float("inf")] * len(tasks)
    for _ in range(repeats):
        for i, task in enumerate(tasks):
            start = time.perf_counter()
            task()
            best[i] = min(best[i], time.perf_counter() - start)
    return best
