"""Reconstruction: the best linear unbiased estimate of any query from all that was measured.

With rows a_j measured as y_j with variance v_j, the estimate of a query q is q'x, where x minimises
the sum of (y_j - a_j'x)^2 / v_j, and its variance is q' (sum of a_j a_j' / v_j)^+ q. Three ways give
the same numbers: from the rows, from the cells, or by iteration. `Reconstruction` takes whichever
suits the sizes, and changes it as rows come in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sharewell.mechanism.by_cells import ByCells
from sharewell.mechanism.by_iteration import ByIteration
from sharewell.mechanism.by_rows import ByRows
from sharewell.mechanism.evidence import Batch, Evidence
from sharewell.mechanism.strategy import Strategy
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]

#: Up to this many cells a dense covariance is the fastest way, however few rows there are.
FEW_CELLS = 256
#: Up to this many cells a dense covariance can be kept at all.
MOST_CELLS = 4096
#: A variance below this is taken to be this: without any noise there is nothing to weigh.
TINY = 1e-12
#: Of how many queries at a time estimates are remembered, and how often.
FEW_QUERIES, MOST_REMEMBERED = 256, 4096
#: Up to this many rows their covariances with each other can be kept.
MOST_ROWS = 6000


class Way(Protocol):
    """One way to compute estimates from evidence."""

    def observe(self, batch: Batch) -> None:
        """Take in new rows, already added to the evidence."""

    def estimate(self, queries: Sequence[LinearQuery]) -> tuple[Vector, Vector]:
        """The queries' estimates and their variances; infinite where nothing determines them."""

    def covariance(self, queries: Sequence[LinearQuery]) -> Vector:
        """The covariance matrix of the queries' estimates."""


class Reconstruction:
    """Estimates of any query from a seed and the rows measured since.

    Privacy: post-processing of released values; costs nothing and never touches the data.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.evidence = Evidence(strategy)
        self._way: Way | None = None
        #: What was estimated since the last row came; the same questions are asked again and again.
        self._estimates: dict[tuple[str, ...], tuple[Vector, Vector]] = {}

    def __len__(self) -> int:
        return self.evidence.count

    def observe_seed(self, values: NDArray[np.int64] | Vector, variance: float) -> None:
        """Take in one measurement of every seed row, all with the same variance."""
        precision = 1 / max(variance, TINY)
        weighted = np.asarray(values, dtype=np.float64) * precision
        known = self.evidence.seed_weighted
        self.evidence.seed_weighted = weighted if known is None else known + weighted
        self.evidence.seed_precision += precision
        self._way = None
        self._estimates.clear()

    def observe(
        self, rows: Sequence[LinearQuery], values: NDArray[np.int64] | Vector, variances: Vector
    ) -> None:
        """Take in measured rows."""
        batch = Batch(tuple(rows), np.asarray(values, dtype=np.float64), np.maximum(variances, TINY))
        self.evidence.batches.append(batch)
        self.evidence.count += len(rows)
        self._estimates.clear()
        if self._way is not None and isinstance(self._way, self._best_way()):
            self._way.observe(batch)
        else:
            self._way = None

    def estimate(self, queries: Sequence[LinearQuery]) -> tuple[Vector, Vector]:
        """The queries' estimates and their variances; infinite where nothing determines them."""
        key = tuple([query.key for query in queries])
        found = self._estimates.get(key)
        if found is None:
            found = self._ready().estimate(queries)
            if len(key) <= FEW_QUERIES and len(self._estimates) < MOST_REMEMBERED:
                for part in found:
                    part.flags.writeable = False
                self._estimates[key] = found
        return found

    def variances_after(
        self, queries: Sequence[LinearQuery], rows: Sequence[LinearQuery], variances: Vector
    ) -> Vector:
        """What the queries' variances would be if these rows were measured too."""
        both = [*queries, *rows]
        known = self._ready().covariance(both)
        at = len(queries)
        if not np.isfinite(known.diagonal()).all():
            what_if = Reconstruction(self.evidence.strategy)
            what_if.evidence = replace(self.evidence, batches=list(self.evidence.batches))
            what_if.observe(rows, np.zeros(len(rows)), variances)
            return what_if.estimate(queries)[1]
        cross = known[:at, at:]
        inner = known[at:, at:] + np.diag(np.maximum(variances, TINY))
        gained = np.einsum("ij,ji->i", cross, np.linalg.solve(inner, cross.T))
        after: Vector = np.maximum(known.diagonal()[:at] - gained, 0.0)
        return after

    def _ready(self) -> Way:
        if self._way is None:
            self._way = self._best_way()(self.evidence)
        return self._way

    def _best_way(self) -> type[ByCells] | type[ByRows] | type[ByIteration]:
        cells, rows = self.evidence.strategy.domain.size, self.evidence.count
        determined = self.evidence.seed_weighted is not None and self.evidence.strategy.covariance
        if cells <= FEW_CELLS or (cells <= MOST_CELLS and (not determined or rows > cells)):
            return ByCells
        return ByRows if determined and rows <= MOST_ROWS else ByIteration
