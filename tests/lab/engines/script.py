"""A source of noise that gives everybody the same draws, however many they take at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sharewell_lab.noise import SeededNoise

DRAWS = 2000


class Script:
    """For each scale, one long list of draws that is read from its beginning.

    A player takes all its draws of a scale at once and the real mechanism one by one; from two scripts
    with the same seed they get the same.
    """

    exact = False

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._lists: dict[float, NDArray[np.int64]] = {}
        self._read: dict[float, int] = {}

    def laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        if scale not in self._lists:
            own = np.random.SeedSequence([self._seed, int(np.float64(scale).view(np.uint64))])
            self._lists[scale] = SeededNoise(own).laplace(scale, DRAWS)
            self._read[scale] = 0
        start = self._read[scale]
        self._read[scale] += size
        assert self._read[scale] <= DRAWS, "the script is too short"
        return self._lists[scale][start : start + size].copy()

    def gaussian(self, scale: float, size: int) -> NDArray[np.int64]:
        raise AssertionError("the players are for the pure currency")
