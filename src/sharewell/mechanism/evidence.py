"""Evidence: all that was measured, in the order in which it came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sharewell.mechanism.strategy import Strategy
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Batch:
    """Rows that were measured together."""

    rows: Sequence[LinearQuery]
    values: Vector
    variances: Vector


@dataclass
class Evidence:
    """All that was measured: the seed, as precision and precision-weighted values, and batches of rows.

    Batches are kept apart, so that what is rebuilt from them repeats the same arithmetic in the same
    order, and gives the same numbers to the last bit.
    """

    strategy: Strategy
    seed_precision: float = 0.0
    seed_weighted: Vector | None = None
    batches: list[Batch] = field(default_factory=list)
    count: int = 0

    def seed_row(self, at: int) -> tuple[float, float]:
        """One seed row's value and variance."""
        if self.seed_weighted is None:
            return 0.0, float("inf")
        return float(self.seed_weighted[at]) / self.seed_precision, 1 / self.seed_precision

    @property
    def seed_values(self) -> Vector:
        """The seed rows' values: the precision-weighted mean of all times that they were measured."""
        if self.seed_weighted is None:
            return np.zeros(len(self.strategy))
        return self.seed_weighted / self.seed_precision
