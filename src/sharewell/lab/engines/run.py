"""What came of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sharewell.lab.engines.world import World

#: Who paid for an answer that nobody paid for.
NOBODY = -1


@dataclass(frozen=True, eq=False)
class Run:
    """One number a question, in order of *arrival*; NaN where the question was not served."""

    #: The answer; NaN where it was refused.
    value: NDArray[np.float64]
    #: How far it is from the truth; infinite where it was refused.
    error: NDArray[np.float64]
    #: The standard error that comes with it; NaN where the mechanism does not know it, infinite where
    #: it was refused.
    expected: NDArray[np.float64]
    #: Who paid for it, now or before; NOBODY where it is a guess, a reconstruction or a seed row.
    payer: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        world: World,
        value: NDArray[np.float64],
        expected: NDArray[np.float64],
        payer: NDArray[np.int64],
    ) -> Run:
        """A run from what came of each step; a value that is NaN was refused."""
        error = np.abs(value - world.truth[world.served])
        error[np.isnan(value)] = np.inf
        paid = np.full(len(world.questions), NOBODY, dtype=np.int64)
        paid[world.order] = payer
        return cls(
            _by_arrival(world, value), _by_arrival(world, error), _by_arrival(world, expected), paid
        )


def _by_arrival(world: World, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """One number a step, put where its question arrived."""
    arrived = np.full(len(world.questions), np.nan)
    arrived[world.order] = steps
    return arrived
