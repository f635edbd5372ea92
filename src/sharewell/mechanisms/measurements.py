"""Measurements: all that was measured, in the order in which it came; and what makes estimates of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sharewell.mechanisms.cell_prior import CellPrior, MeasuredPart, prior_of
from sharewell.mechanisms.kronecker import KroneckerPrior
from sharewell.mechanisms.marginal_prior import MarginalPrior
from sharewell.mechanisms.marginal_seed import MarginalSeed, marginal_cell
from sharewell.mechanisms.planned_seed import PlannedSeed
from sharewell.mechanisms.strategy import Strategy
from sharewell.privacy.kronecker import Centred, Factors
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]

#: Up to this spread rounding changes a variance by less than a millionth, whatever the weights are.
MOST_SPREAD = 1e9
#: A seed is vague where its rows have more than this many times the variance of a measured row; one that
#: has open parts, where that is what it says about the row. Rounding is relative to the larger of them.
VAGUE = 1e6
#: A vague seed of no more rows than this is written out: they are then rows like all others, and no
#: weights or variances whatever cost more than a few digits.
MOST_SEED_ROWS = 512
#: From this many queries at a time on, or rows in a batch, it pays to treat them as one sparse matrix.
MANY = 64

#: A marginal whose rows have the same variance: its attributes, one bit each, its data vector, and that.
Table = tuple[int, int, float]


@dataclass(frozen=True)
class MeasurementBatch:
    """Rows that were measured together."""

    rows: Sequence[LinearQuery]
    values: Vector
    variances: Vector

    @cached_property
    def least_variance(self) -> float:
        """The smallest variance of a row, in units of its largest weight."""
        pairs = zip(self.rows, self.variances.tolist(), strict=True)
        return min((v / float(row.max_abs) ** 2 for row, v in pairs), default=float("inf"))


class Prior(Protocol):
    """What a measured seed says about queries, before any row was paid for."""

    def means(self, queries: Sequence[LinearQuery]) -> Vector:
        """The estimates of the parts of queries that the seed determines."""

    def variances(self, queries: Sequence[LinearQuery]) -> Vector:
        """The variances of those estimates."""

    def rows(self) -> Any:
        """An empty store of rows, with `append`, `covariances` of queries with all rows, and `copy`."""


@dataclass
class Measurements:
    """All that was measured: the seed, as precision and precision-weighted values, and batches of rows.

    Batches are kept apart, so that what is rebuilt from them repeats the same arithmetic in the same
    order, and gives the same numbers to the last bit.
    """

    strategy: Strategy | MarginalSeed | PlannedSeed
    seed_precision: float = 0.0
    seed_weighted: Vector | None = None
    #: What was measured of a seed of marginals, and of marginals that were bought row by row.
    marginals: MarginalPrior | None = None
    #: Parts of a planned seed that are no marginals: with them everything is determined.
    products: dict[tuple[Any, ...], MeasuredPart] = field(default_factory=dict)
    batches: list[MeasurementBatch] = field(default_factory=list)
    #: Whether what was measured of the seed determines every query.
    determined: bool = False
    #: How many rows there are, and how many of them in large batches.
    count: int = 0
    grouped: int = 0
    #: The smallest variance of a row, in units of its largest weight.
    least_variance: float = float("inf")
    #: The values of the rows of marginals that were measured one by one, by cell.
    cells: dict[Table, dict[int, float]] = field(default_factory=dict)
    _prior: tuple[Prior, MeasurementBatch | None] | None = None

    def seed_row(self, at: int) -> tuple[float, float]:
        """One seed row's value and variance."""
        if isinstance(self.strategy, MarginalSeed):
            found = (self.marginals or MarginalPrior(self.strategy.domain)).measured_row(
                *self.strategy.place_of(at)
            )
            return found or (0.0, float("inf"))
        if self.seed_weighted is None:
            return 0.0, float("inf")
        return float(self.seed_weighted[at]) / self.seed_precision, 1 / self.seed_precision

    def observe_strategy(self, strategy: Strategy, values: Vector, variance: float) -> None:
        """Add one measurement of every row of a strategy, all with the same variance."""
        precision = 1 / variance
        weighted, before = values * precision, self.seed_weighted
        self.seed_weighted = weighted if before is None else before + weighted
        self.seed_precision += precision
        self.determined, self._prior = strategy.determines_all, None

    def observe_parts(self, seed: MarginalSeed, values: Vector, variances: Vector) -> None:
        """Add one measurement of every part of a seed."""
        start, levels = 0, tuple(range(len(seed.domain.attributes)))
        prior = self.marginals or MarginalPrior(seed.domain)
        for part, size in zip(seed.parts, seed.sizes, strict=True):
            table, variance = values[start : start + size], float(variances[start])
            start += size
            if not part.rows:
                prior = prior.with_marginal(
                    part.mask, part.vector, table, variance, centred=part.centred
                )
            else:
                before = self.products.get(part.key) or MeasuredPart(part, 0.0, np.zeros(size))
                self.products[part.key] = MeasuredPart(
                    part, before.precision + 1 / variance, before.weighted + table / variance
                )
            if part.attributes == levels and not part.centred and None not in part.rows:
                self.seed_precision += 1 / variance
        self.marginals, self.determined, self._prior = prior, bool(self.products), None

    def observe(self, batch: MeasurementBatch) -> bool:
        """Add measured rows; whether that has changed the seed.

        A marginal becomes part of a seed of marginals once its last row was measured, all with the same
        variance. Its rows leave the batches, and the estimates stay what they are: it is the same
        least-squares problem, of which more has a closed form. Further measurements of a row stay rows.
        """
        self.batches.append(batch)
        self.count += len(batch.rows)
        self.grouped += len(batch.rows) if len(batch.rows) >= MANY else 0
        self.least_variance = min(self.least_variance, batch.least_variance)
        if not self.has_open_parts:
            return False
        completed = self.completed_by(batch)
        for table, cell, value in _cells_of(batch):
            self.cells.setdefault(table, {}).setdefault(cell, value)
        for table in sorted(completed):
            cells = self.cells.pop(table)
            values = np.array([cells[at] for at in range(len(cells))])
            prior = self.marginals or MarginalPrior(self.strategy.domain)
            self.marginals = prior.with_marginal(*table[:2], values, table[2])
            self.batches, self._prior = _without(self.batches, table), None
        return bool(completed)

    @property
    def has_open_parts(self) -> bool:
        """Whether the seed consists of marginals alone, which leave parts of queries open."""
        return not isinstance(self.strategy, Strategy) and not self.products

    def completed_by(self, batch: MeasurementBatch) -> set[Table]:
        """The marginals that would become part of the seed with these rows.

        None where a vague seed would get too many rows to be written out: what one analyst buys must
        not keep another from buying (see `Reconstruction.suits`).
        """
        if not self.has_open_parts:
            return set()
        shape = self.strategy.domain.shape
        new: dict[Table, set[int]] = {}
        for table, cell, _ in _cells_of(batch):
            new.setdefault(table, set()).add(cell)
        sizes = {
            table: math.prod(n for level, n in enumerate(shape) if table[0] >> level & 1)
            for table in new
        }
        completed = {
            table
            for table, cells in new.items()
            if len(cells | self.cells.get(table, {}).keys()) == sizes[table]
        }
        rows = self.seed_count + sum(sizes[table] for table in completed)
        if completed and self.has_few_seed_rows and rows > MOST_SEED_ROWS:
            parts = self.marginals.measured_parts() if self.marginals else ()
            largest = max((1 / precision for _, precision, _ in parts), default=0.0)
            if largest > VAGUE * batch.least_variance:
                return set()
        return completed

    def snapshot(self) -> Measurements:
        """A copy that does not see what is added later."""
        cells = {table: dict(values) for table, values in self.cells.items()}
        return replace(self, batches=list(self.batches), products=dict(self.products), cells=cells)

    def prior_of_products(self) -> KroneckerPrior | CellPrior:
        """What a planned seed says that determines everything."""
        marginals = self.marginals.measured_parts() if self.marginals else ()
        known = [MeasuredPart(*each) for each in marginals]
        return prior_of(self.strategy.domain, [*known, *self.products.values()])

    def marginal_prior(self) -> MarginalPrior:
        """What the marginals of the seed say about queries; what else it has is not part of that."""
        strategy = self.strategy
        prior = self.marginals or MarginalPrior(strategy.domain)
        if isinstance(strategy, Strategy) and self.seed_weighted is not None:
            values = np.split(self.seed_values, np.cumsum(strategy.sizes)[:-1])
            for mask, part in zip(strategy.marginals or (), values, strict=False):
                prior = prior.with_marginal(mask, 0, part, 1 / self.seed_precision)
        return prior

    def prior(self) -> tuple[Prior, MeasurementBatch | None]:
        """What the seed says about queries, and seed rows that are not part of that.

        A strategy without a closed form, which leaves something open, is a set of rows like any other.
        """
        if self._prior is None:
            self._prior = self._make_prior()
        return self._prior

    def _make_prior(self) -> tuple[Prior, MeasurementBatch | None]:
        strategy = self.strategy
        if not isinstance(strategy, Strategy):
            return self.prior_of_products() if self.products else self.marginal_prior(), None
        masks = strategy.marginals
        if self.seed_weighted is None or (masks is not None and not strategy.is_identity):
            return self.marginal_prior(), None
        if strategy.covariance is not None:
            estimate = strategy.covariance.times(strategy.back(self.seed_values))
            return KroneckerPrior(strategy.covariance, estimate, 1 / self.seed_precision), None
        rows = tuple(LinearQuery.from_vector(strategy.domain, row) for row in strategy.matrix.toarray())
        noise = np.full(len(rows), 1 / self.seed_precision)
        return MarginalPrior(strategy.domain), MeasurementBatch(rows, self.seed_values, noise)

    def spread(self, batch: MeasurementBatch) -> Vector:
        """How many times the variance of each row's noise the seed's variance of it is."""
        primitive = [row.primitive for row in batch.rows]
        scales = np.array([float(row.scale) for row in batch.rows])
        return np.asarray(self.prior()[0].variances(primitive) * scales**2 / batch.variances)

    def most_spread(self, batch: MeasurementBatch) -> float:
        """The largest spread; under a seed that determines everything, a bound that says enough."""
        covariance = self.strategy.covariance if isinstance(self.strategy, Strategy) else None
        if covariance is not None and self.seed_precision:
            weights = math.prod(covariance.shape)  # Each is at most the largest.
            bound = weights * covariance.norm / self.seed_precision / batch.least_variance
            if bound <= MOST_SPREAD:
                return bound
        return float(self.spread(batch).max(initial=0.0))

    def noisier(self, batch: MeasurementBatch) -> MeasurementBatch:
        """A batch whose rows have at least the noise that the digits of a double suffice for."""
        if self.most_spread(batch) <= MOST_SPREAD:
            return batch
        factors = np.maximum(self.spread(batch) / MOST_SPREAD, 1.0)
        return replace(batch, variances=batch.variances * factors)

    @property
    def has_few_seed_rows(self) -> bool:
        """Whether the seed has few enough rows to be written out."""
        return self.seed_count <= MOST_SEED_ROWS

    @property
    def seed_count(self) -> int:
        """How many rows of the seed were measured."""
        if isinstance(self.strategy, Strategy):
            return 0 if self.seed_weighted is None else len(self.seed_weighted)
        marginals = self.marginals.size if self.marginals else 0
        return marginals + sum(part.weighted.size for part in self.products.values())

    def seed_rows(self) -> MeasurementBatch:
        """The rows of the seed that were measured, written out."""
        rows, values, variances = list[LinearQuery](), [np.zeros(0)], [np.zeros(0)]
        for matrices, weighted, precision in self._seed_parts():
            written = list(_written_out(self.strategy.domain, matrices))
            kept = [at for at, row in enumerate(written) if not row.is_zero]
            rows += [written[at] for at in kept]
            values.append(weighted[kept] / precision)
            variances.append(np.full(len(kept), 1 / precision))
        return MeasurementBatch(tuple(rows), np.concatenate(values), np.concatenate(variances))

    def _seed_parts(self) -> Iterator[tuple[Factors, Vector, float]]:
        """Each part of the seed: a matrix by level, the values weighted by precision, and that."""
        strategy = self.strategy
        if isinstance(strategy, Strategy):
            if self.seed_weighted is not None:
                parts = np.split(self.seed_weighted, np.cumsum(strategy.sizes)[:-1])
                for factors, weighted in zip(strategy.parts, parts, strict=True):
                    matrices = {level: rows.matrix for level, rows in enumerate(factors)}
                    yield matrices, weighted, self.seed_precision
            return
        domain = strategy.domain
        marginals = self.marginals.measured_parts() if self.marginals else ()
        for part, precision, weighted in (*marginals, *self.products.values()):
            matrices = dict(zip(part.attributes, part.matrices(domain.shape), strict=True))
            if domain.measures:
                unit = np.eye(domain.vectors, dtype=np.int64)
                matrices[len(domain.attributes)] = sp.csr_array(unit[[part.vector]])
            yield matrices, weighted, precision

    @property
    def seed_values(self) -> Vector:
        """The seed rows' values: the precision-weighted mean of all times that they were measured."""
        if self.seed_weighted is None:
            return np.zeros(0)
        return self.seed_weighted / self.seed_precision


def _written_out(domain: Domain, matrices: Factors) -> Iterator[LinearQuery]:
    """The rows of a Kronecker product of matrices, one by one."""
    along = []
    for level, matrix in matrices.items():
        unit = np.eye(domain.shape[level], dtype=np.int64)
        if isinstance(matrix, Centred):
            along.append(matrix.size * unit - 1)
        else:
            along.append(unit if matrix is None else matrix.toarray())
    for chosen in product(*along):
        yield LinearQuery.of_vectors(domain, dict(zip(matrices, chosen, strict=True)))


def _cells_of(batch: MeasurementBatch) -> Iterator[tuple[Table, int, float]]:
    """The rows that are cells of marginals: the marginal, the cell there, and the row's value."""
    for row, value, variance in zip(
        batch.rows, batch.values.tolist(), batch.variances.tolist(), strict=True
    ):
        if found := marginal_cell(row):
            yield (*found[:2], variance), found[2], value


def _without(batches: Sequence[MeasurementBatch], table: Table) -> list[MeasurementBatch]:
    """The batches without the rows of a marginal, each cell left out once."""
    left_out, left = set[int](), []
    for batch in batches:
        kept = []
        for at, (row, variance) in enumerate(zip(batch.rows, batch.variances.tolist(), strict=True)):
            found = marginal_cell(row) if variance == table[2] else None
            if found and found[:2] == table[:2] and found[2] not in left_out:
                left_out.add(found[2])
            else:
                kept.append(at)
        if len(kept) == len(batch.rows):
            left.append(batch)
        elif kept:
            rows = tuple([batch.rows[at] for at in kept])
            left.append(MeasurementBatch(rows, batch.values[kept], batch.variances[kept]))
    return left


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
