"""A triangular factor that grows by blocks of rows, and is never moved or copied when it does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

Vector = NDArray[np.float64]

#: Blocks are merged up to this many rows: large enough for matrix products, small enough to be copied.
LARGEST_BLOCK = 512
#: How many columns are solved for at a time.
COLUMNS = 256


class BlockFactor:
    """The lower triangular factor of a covariance matrix, as blocks of rows. Immutable: copies share it.

    A block holds its rows up to the diagonal. Solving is a product with what is solved already, and a
    triangle, for each block; so one column costs a pass over the factor, and many cost matrix products.
    """

    def __init__(self, blocks: Sequence[Vector] = ()) -> None:
        self._blocks = tuple(blocks)
        self.size = self._blocks[-1].shape[1] if self._blocks else 0

    def solve(self, right: Vector) -> Vector:
        """Solve L x = right, for one column or for many."""
        if right.ndim == 2 and right.shape[1] > COLUMNS:
            starts = range(0, right.shape[1], COLUMNS)
            return np.hstack([self.solve(right[:, at : at + COLUMNS]) for at in starts])
        found = np.empty(right.shape)
        start = 0
        for block in self._blocks:
            end = block.shape[1]
            rest = right[start:end]
            if start:
                rest = rest - block[:, :start] @ found[:start]
            found[start:end] = (
                (rest.T / block[0, start]).T
                if end == start + 1
                else solve_triangular(block[:, start:], rest, lower=True, check_finite=False)
            )
            start = end
        return found

    def extended(self, between: Vector, corner: Vector) -> BlockFactor:
        """The factor with more rows: what they share with those before, solved for; and a triangle.

        `between` has a column for every new row, and `corner` is the lower triangle of the new rows.
        """
        new = np.hstack([between.T, corner])
        blocks = list(self._blocks)
        # As in a binary counter, every row is copied a few times at the most.
        while blocks and len(blocks[-1]) <= len(new) and len(blocks[-1]) + len(new) <= LARGEST_BLOCK:
            last = blocks.pop()
            merged = np.zeros((len(last) + len(new), new.shape[1]))
            merged[: len(last), : last.shape[1]] = last
            merged[len(last) :] = new
            new = merged
        return BlockFactor([*blocks, new])
