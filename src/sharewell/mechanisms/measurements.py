"""Measurements: all that was measured, in the order in which it came; and what makes estimates of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sharewell.mechanisms.strategy import Strategy
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class MeasurementBatch:
    """Rows that were measured together."""

    rows: Sequence[LinearQuery]
    values: Vector
    variances: Vector

    @property
    def least_variance(self) -> float:
        """The smallest variance of a row, in units of its largest weight."""
        pairs = zip(self.rows, self.variances.tolist(), strict=True)
        return min((v / float(row.max_abs) ** 2 for row, v in pairs), default=float("inf"))


@dataclass
class Measurements:
    """All that was measured: the seed, as precision and precision-weighted values, and batches of rows.

    Batches are kept apart, so that what is rebuilt from them repeats the same arithmetic in the same
    order, and gives the same numbers to the last bit.
    """

    strategy: Strategy
    seed_precision: float = 0.0
    seed_weighted: Vector | None = None
    batches: list[MeasurementBatch] = field(default_factory=list)
    #: How many rows there are, and how many of them in large batches.
    count: int = 0
    grouped: int = 0
    #: The smallest variance of a row, in units of its largest weight.
    least_variance: float = float("inf")

    @property
    def determined(self) -> bool:
        """Whether the seed was measured, and determines every query."""
        return self.seed_weighted is not None and self.strategy.covariance is not None

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


class Solver(Protocol):
    """Computes estimates from measurements: made with the seed, then shown batch after batch."""

    def observe(self, batch: MeasurementBatch) -> None:
        """Add new rows; raises `Unsuitable` where this solver cannot."""

    def estimate(self, queries: Sequence[LinearQuery]) -> tuple[Vector, Vector]:
        """The queries' estimates and their variances; infinite where nothing determines them."""

    def variances_after(self, queries: Sequence[LinearQuery], batch: MeasurementBatch) -> Vector:
        """The queries' variances if these rows were measured too."""

    def snapshot(self) -> Solver:
        """A copy to read while this one goes on."""

    def work(self, queries: int, rows: int) -> tuple[float, float]:
        """Operations and bytes to estimate so many queries, and to add so many rows."""


class Unsuitable(ArithmeticError):
    """A solver cannot add a row: another solver has to."""
