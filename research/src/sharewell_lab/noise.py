"""Fast seeded noise for studies: the kernel's distributions, drawn by NumPy.

Not for real data: a seed that can be guessed gives the noise away, and the draws pass through floats.
The service refuses any source that is not `exact`.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sharewell.privacy.noise import NoNoise

__all__ = ["NoNoise", "SeededNoise"]


class SeededNoise:
    """Reproducible discrete noise behind the kernel's interface; the seed has no default."""

    exact = False

    def __init__(self, seed: int | np.random.SeedSequence | np.random.Generator) -> None:
        self._rng = np.random.default_rng(seed)

    def laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        """Discrete Laplace draws: the difference of two geometric ones."""
        if scale == 0:
            return np.zeros(size, dtype=np.int64)
        success = -np.expm1(-1 / scale)
        return self._rng.geometric(success, size) - self._rng.geometric(success, size)

    def gaussian(self, scale: float, size: int) -> NDArray[np.int64]:
        """Discrete Gaussian draws: from a table of the distribution, or rounded where it is wide."""
        if scale > 1000:
            # The discrete Gaussian and a rounded one differ by about 1 / (24 scale^2) in probability.
            return np.rint(self._rng.normal(0, scale, size)).astype(np.int64)
        values, cumulative = _gaussian_table(scale)
        return values[np.searchsorted(cumulative, self._rng.random(size), side="right")]


@lru_cache(maxsize=64)
def _gaussian_table(scale: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    reach = int(np.ceil(12 * scale)) + 1
    values = np.arange(-reach, reach + 1)
    mass = np.exp(-(values**2) / (2 * max(scale, 1e-9) ** 2))
    cumulative = np.cumsum(mass / mass.sum())
    cumulative[-1] = 1.0
    return values, cumulative
