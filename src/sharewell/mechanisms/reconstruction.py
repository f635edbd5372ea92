"""Reconstruction: the best linear unbiased estimate of any query from all that was measured.

With rows a_j measured as y_j with variance v_j, the estimate of a query q is q'x, where x minimises
the sum of (y_j - a_j'x)^2 / v_j, and its variance is q' (sum of a_j a_j' / v_j)^+ q. Several solvers
compute it. `Reconstruction` takes the first of these that suits what was measured, and another where
that changes as rows come in:

    Contrasts.of_all_rows   a vague seed of few rows: written out, they are rows like all others
    Sparse                  an identity seed, and many queries, or rows mostly of large GROUP BYs
    Dense                   few cells, or fewer than rows, all determined by a seed that is not vague
    Contrasts.of            any seed
    Contrasts.without_seed  rows alone, where rounding beside the seed has spoilt all others

A seed is *vague* where its rows have far more variance than those paid for: rounding is relative to the
larger of them. Beside one of many rows, paid rows are given as much more noise as the digits of a double
need, and of what the rows alone determine the better of two estimates is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sharewell.mechanisms.contrasts import Contrasts
from sharewell.mechanisms.dense import Dense
from sharewell.mechanisms.marginal_prior import MarginalPrior
from sharewell.mechanisms.marginal_seed import MarginalSeed, marginal_cell
from sharewell.mechanisms.measurements import (
    MANY,
    MOST_SPREAD,
    VAGUE,
    MeasurementBatch,
    Measurements,
    Solver,
    Unsuitable,
)
from sharewell.mechanisms.planned_seed import PlannedSeed
from sharewell.mechanisms.sparse import Sparse
from sharewell.mechanisms.strategy import Strategy
from sharewell.query.block import ParallelBlock
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]
SolverType = Callable[[Measurements], Solver]

#: Up to this many cells a dense covariance is fastest, however few rows there are.
FEW_CELLS = 256
#: Up to this many cells a dense covariance can be kept at all.
MOST_CELLS = 4096
#: A variance below this is taken to be this: without any noise there is nothing to weigh.
TINY = 1e-12
#: Of how many queries at a time estimates are remembered, and how often.
FEW_QUERIES, MOST_REMEMBERED = 256, 4096
#: The most that a query is multiplied by to have about the variance of another.
MOST_BALANCED = 2**20
#: By how much rounding may raise the variance of a measured row above that of its own noise.
SLACK = 1e-6


class _Choice(NamedTuple):
    """The solver for some number of queries; and one of rows alone, beside a seed too vague."""

    solver: Solver
    alone: Solver | None


@dataclass
class _Computed:
    """What was computed since the last row came, or the seed changed."""

    #: By the queries' keys, as the same questions are asked again and again.
    estimates: dict[tuple[str, ...], tuple[Vector, Vector]] = field(default_factory=dict)
    #: The solvers that were chosen for few queries, and for many.
    choices: dict[bool, _Choice] = field(default_factory=dict)
    #: The solver for estimates that rounding has spoilt, where there are any.
    exact: Solver | None = None


class Reconstruction:
    """Estimates of any query from a seed and the rows measured since.

    Privacy: post-processing of released values; costs nothing and never touches the data.
    """

    def __init__(self, strategy: Strategy | MarginalSeed | PlannedSeed) -> None:
        self.measurements = Measurements(strategy)
        #: Solvers by kind, each with the number of batches that it has seen; and kinds that failed.
        self._solvers: dict[SolverType, tuple[Solver, int]] = {}
        self._unsuitable: set[SolverType] = set()
        #: The largest spread of a row, among so many batches.
        self._largest_spread = 0, 0.0
        #: The measured rows' own values and variances, by key.
        self._own: dict[str, tuple[float, float]] = {}
        self._computed = _Computed()

    def __len__(self) -> int:
        return self.measurements.count

    def observe_seed(
        self,
        values: NDArray[np.int64] | Vector,
        variances: float | Vector,
        measured: MarginalSeed | None = None,
    ) -> None:
        """Add one measurement of every seed row: the same variance for all, or for all of a part.

        Of a planned seed, what was measured.
        """
        known = self.measurements
        seed = measured or known.strategy
        observed = np.asarray(values, dtype=np.float64)
        if isinstance(seed, Strategy):
            known.observe_strategy(seed, observed, max(float(np.ravel(variances)[0]), TINY))
        elif isinstance(seed, MarginalSeed):
            noise = np.broadcast_to(np.maximum(variances, TINY), np.shape(values))
            known.observe_parts(seed, observed, noise)
        self._start_again()

    def observe(
        self, rows: Sequence[LinearQuery], values: NDArray[np.int64] | Vector, variances: Vector
    ) -> None:
        """Add measured rows."""
        batch = _batch(rows, values, variances)
        if self.measurements.observe(batch):
            self._start_again()
        self._computed = _Computed()
        pairs = zip(batch.values.tolist(), batch.variances.tolist(), strict=True)
        self._own.update(zip([row.key for row in rows], pairs, strict=True))

    def _start_again(self) -> None:
        """Drop what no longer holds when the seed has changed."""
        self._solvers.clear()
        self._unsuitable.clear()
        self._largest_spread = 0, 0.0
        self._computed = _Computed()

    def estimate(self, queries: Sequence[LinearQuery]) -> tuple[Vector, Vector]:
        """The queries' estimates and their variances; infinite where nothing determines them.

        Of rows alone where they are better beside a seed too vague.
        """
        key = tuple([query.key for query in queries])
        remembered = self._computed.estimates
        if key in remembered:
            return remembered[key]
        solver, alone = self.choose(len(queries))
        values, variances = solver.estimate(queries)
        if alone is not None:
            of_rows, noise = alone.estimate(queries)
            better = noise < variances
            values[better], variances[better] = of_rows[better], noise[better]
        found = self._checked(queries, values, variances)
        if len(key) <= FEW_QUERIES and len(remembered) < MOST_REMEMBERED:
            for part in found:
                part.flags.writeable = False
            remembered[key] = found
        return found

    def suits(self, rows: Sequence[LinearQuery], variances: Vector) -> bool:
        """Whether estimates stay exact once these rows are measured.

        They do beside a seed whose variance of no row is more than `MOST_SPREAD` times its noise, and
        beside any seed whose rows are few enough to be written out.
        """
        return self._is_exact(_batch(rows, np.zeros(len(rows)), variances))

    def _is_exact(self, *more: MeasurementBatch) -> bool:
        """Whether rounding beside the seed spoils no estimate, with all rows as precise as they are.

        Where it would, rows are given more noise. So estimates are unbiased and no variance too small.
        """
        return self.writes_seed_out or self._spread(*more) <= MOST_SPREAD

    def _spread(self, *more: MeasurementBatch) -> float:
        """The largest spread of a row."""
        known = self.measurements
        seen, most = self._largest_spread
        most = max([most, *(known.most_spread(batch) for batch in known.batches[seen:])])
        self._largest_spread = len(known.batches), most
        return max([most, *(known.most_spread(batch) for batch in more)])

    @property
    def writes_seed_out(self) -> bool:
        """Whether the rows of a vague seed are written out: it has few, and no solver has failed.

        Estimates then stay exact whatever is measured.
        """
        few = self.measurements.has_few_seed_rows
        return few and Contrasts.of_all_rows not in self._unsuitable

    def covariances(self, left: Sequence[LinearQuery], right: Sequence[LinearQuery]) -> Vector:
        """The covariances of the estimates of pairs of queries; NaN where one is undetermined.

        By polarization: Var(a q + b r) = a^2 Var(q) + b^2 Var(r) + 2 a b Cov(q, r), with factors that
        give both queries about the same variance, so that few digits cancel.
        """
        first, second = self.estimate(left)[1], self.estimate(right)[1]
        known = np.isfinite(first) & np.isfinite(second) & (first > 0) & (second > 0)
        ratios = np.sqrt(np.divide(first, second, out=np.ones(len(left)), where=known))
        a = np.clip(np.rint(1 / ratios), 1, MOST_BALANCED)
        b = np.clip(np.rint(ratios), 1, MOST_BALANCED)
        sums = [q * int(x) + r * int(y) for q, r, x, y in zip(left, right, a, b, strict=True)]
        variances = np.zeros(len(sums))
        places = [at for at, query in enumerate(sums) if not query.is_zero]
        if places:
            scales = np.array([float(sums[at].scale) for at in places])
            variances[places] = self.estimate([sums[at].primitive for at in places])[1] * scales**2
        with np.errstate(invalid="ignore"):
            found = (variances - a**2 * first - b**2 * second) / (2 * a * b)
            most = np.sqrt(first * second)
            return np.where(known, np.clip(found, -most, most), np.nan)

    def variances_after(
        self, queries: Sequence[LinearQuery], rows: Sequence[LinearQuery], variances: Vector
    ) -> Vector:
        """What the queries' variances would be if these rows were measured too."""
        if not len(rows):
            return self.estimate(queries)[1]
        batch = _batch(rows, np.zeros(len(rows)), variances)
        if self.measurements.completed_by(batch):
            return self._trial(batch).estimate(queries)[1]
        limits = dict(zip([row.key for row in rows], batch.variances.tolist(), strict=True))
        after = np.zeros(len(queries))
        if self._is_vague() == self._is_vague(batch) and self._is_exact(batch):
            with suppress(Unsuitable):
                after = self.choose(len(queries)).solver.variances_after(queries, batch)
        if _plausible(after, np.array([limits.get(query.key, np.inf) for query in queries])).all():
            return after
        return self._trial(batch).estimate(queries)[1]

    def work(
        self, queries: int, rows: Sequence[LinearQuery] = (), variances: Vector | None = None
    ) -> tuple[float, float]:
        """Operations and bytes to estimate so many queries, and to add these rows.

        Rows that complete a marginal are added to the seed; what else was measured is then added anew.
        """
        solver = self.choose(queries).solver
        if variances is not None and isinstance(solver, Contrasts):
            batch = _batch(rows, np.zeros(len(rows)), variances)
            completed = {table[:2] for table in self.measurements.completed_by(batch)}
            if completed and all((marginal_cell(row) or ())[:2] in completed for row in rows):
                return solver.work_anew(queries + len(rows))
        return solver.work(queries, len(rows))

    def _trial(self, batch: MeasurementBatch) -> Reconstruction:
        """A copy that has seen more rows, with solvers of its own."""
        trial = self.snapshot()
        trial._solvers = {}
        trial.observe(batch.rows, batch.values, batch.variances)
        return trial

    def _checked(
        self, queries: Sequence[LinearQuery], values: Vector, variances: Vector
    ) -> tuple[Vector, Vector]:
        """Replace estimates that rounding has spoilt: a variance is positive, and measuring lowers it.

        The solver that writes the seed's rows out is slower, and right beside any seed that has few.
        Where that does not help, a measured row is answered with its own noisy value, a count whose
        signed row was measured from that and the total, and nothing is said about any other query.
        """
        limits = np.array([self._own.get(query.key, (0.0, np.inf))[1] for query in queries])
        wrong = np.flatnonzero(~_plausible(variances, limits))
        if len(wrong) and self.writes_seed_out:
            exact = self._computed.exact
            if exact is None:
                exact = Contrasts.of_all_rows(self.measurements)
                for batch in self.measurements.batches:
                    exact.observe(batch)
                self._computed.exact = exact
            chosen = [queries[at] for at in wrong.tolist()]
            values[wrong], variances[wrong] = exact.estimate(chosen)
            wrong = wrong[~_plausible(variances[wrong], limits[wrong])]
        for at in wrong.tolist():
            own = self._own.get(queries[at].key)
            values[at], variances[at] = own or self._from_signed_row(queries[at])
        return values, variances

    def _from_signed_row(self, query: LinearQuery) -> tuple[float, float]:
        """A count w from the own value of its row 2w - u and the total as the seed alone knows it."""
        signed = ParallelBlock(query.domain, [query]).signed
        total = LinearQuery.all(query.domain)
        if signed is None or signed[0].key not in self._own:
            return np.nan, np.inf
        prior, _ = self.measurements.prior()
        if isinstance(prior, MarginalPrior) and not prior.determines(total):
            return np.nan, np.inf
        largest = query.primitive.max_abs
        factor = float((query.primitive * 2 - total * largest).scale)
        value, variance = self._own[signed[0].key]
        known, error = prior.means([total]).item(), prior.variances([total]).item()
        weight = float(largest)
        # Measured apart, so that the variances add up.
        return (factor * value + weight * known) / 2, (factor**2 * variance + weight**2 * error) / 4

    def snapshot(self) -> Reconstruction:
        """A copy to read while this one goes on.

        A solver that lacks batches is left out: several threads that read would all add them.
        """
        self.choose()
        frozen = copy(self)
        frozen.measurements = self.measurements.snapshot()
        frozen._solvers = {
            kind: (solver.snapshot(), seen)
            for kind, (solver, seen) in self._solvers.items()
            if seen == len(self.measurements.batches)
        }
        frozen._own, frozen._unsuitable = dict(self._own), set(self._unsuitable)
        frozen._computed = _Computed(dict(self._computed.estimates), exact=self._computed.exact)
        return frozen

    def choose(self, queries: int = 1) -> _Choice:
        """The solver that suits seed, sizes and the number of queries, with all batches added."""
        many, choices = queries >= MANY, self._computed.choices
        if many in choices:
            return choices[many]
        for kind in self._kinds(many):
            try:
                if kind not in self._unsuitable:
                    solver = self._updated(kind)
                    break
            except Unsuitable:
                self._unsuitable.add(kind)
        alone = None if self._is_exact() else self._updated(Contrasts.without_seed)
        if kind is not Sparse:
            # Others take memory, unless they are used beside it.
            used = {kind, Sparse}
            if alone is not None:
                used |= {Contrasts.of, Contrasts.without_seed}
            self._solvers = {other: at for other, at in self._solvers.items() if other in used}
        choices[many] = _Choice(solver, alone)
        return choices[many]

    def _kinds(self, many: bool) -> Iterator[SolverType]:
        """The kinds of solver to try, best first; always the same for the same measurements.

        The last one suits everything.
        """
        known = self.measurements
        cells, rows, vague = known.strategy.domain.size, known.count, self._is_vague()
        if vague and self.writes_seed_out:
            yield Contrasts.of_all_rows
        if known.determined and cells > FEW_CELLS and (many or 2 * known.grouped > rows):
            yield Sparse
        few = cells <= FEW_CELLS or (rows > cells and cells <= MOST_CELLS)
        if known.determined and few and not vague:
            yield Dense.of
        yield Contrasts.of
        yield Contrasts.without_seed

    def _is_vague(self, *more: MeasurementBatch) -> bool:
        """Whether the seed is vague beside the rows, and some more."""
        known = self.measurements
        if not known.determined:
            return self._spread(*more) > VAGUE
        least = min([known.least_variance, *(batch.least_variance for batch in more)])
        return least * VAGUE * known.seed_precision < 1

    def _updated(self, kind: SolverType) -> Solver:
        """The solver of a kind, with all batches added."""
        batches = self.measurements.batches
        solver, seen = self._solvers.get(kind) or (kind(self.measurements), 0)
        exact = kind in (Contrasts.of_all_rows, Contrasts.without_seed)
        for batch in batches[seen:]:
            solver.observe(batch if exact else self.measurements.noisier(batch))
        self._solvers[kind] = solver, len(batches)
        return solver


def _batch(
    rows: Sequence[LinearQuery], values: NDArray[np.int64] | Vector, variances: Vector
) -> MeasurementBatch:
    return MeasurementBatch(
        tuple(rows), np.asarray(values, dtype=np.float64), np.maximum(variances, TINY)
    )


def _plausible(variances: Vector, limits: Vector) -> NDArray[np.bool_]:
    """Which variances are positive, and no larger than a limit; none that is not a number."""
    return (variances > 0) & (variances <= limits * (1 + SLACK))


def matrix_mechanism_variances(
    workload: Sequence[LinearQuery], strategy: Strategy, noise_variance: float
) -> Vector:
    """The matrix mechanism's error formula: each query's variance from a strategy's noisy rows alone.

    Li, Miklau, Hay, McGregor and Rastogi (2015): noise variance times q' (A'A)^+ q.
    """
    known = Reconstruction(strategy)
    known.observe_seed(np.zeros(len(strategy)), noise_variance)
    return known.estimate(workload)[1]
