"""Reconstruction from a seed and the rows paid for, whatever the seed leaves open.

The seed is a prior: for every query the mean and the covariances of the part that it determines, and
exactly what is open (see `marginal_seed`). Rows whose open parts are independent form a *basis*. Every
other row is a combination of it, as far as its open part goes; its *contrast* is the row minus that
combination,

    z_j = y_j - T_j y_B,    with covariances    G = R (K0 + V) R',    R = [-T I],

and has no open part any more. Most rows have T_j = 0. A query is determined if its open part is a
combination t of the basis. Then t'y_B is an unbiased start, and the contrasts, whose covariances with
its error are known, make it the best estimate (universal kriging). Without open parts this is Woodbury's
identity; without a seed it is least squares in square-root form (Peters and Wilkinson 1970).

The basis is chosen so that no coefficient exceeds 64 in units of noise. So no weights that an analyst
may choose spoil another's answers.

Beside a seed that has rho times the variance of a row, rounding changes variances by about 10^-15 rho,
as if the rows had a little more or less noise, and by no more whatever the weights are. A *vague* seed
of few rows needs no prior: its rows are measured rows, and the basis is chosen among them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from sharewell.cancellation import checked
from sharewell.mechanisms.marginal_prior import MarginalPrior
from sharewell.mechanisms.measurements import MeasurementBatch, Measurements, Prior, Unsuitable
from sharewell.mechanisms.open_parts import NONE, Combination, OpenParts
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]

#: The largest coefficient of a row in the basis, in units of noise. Each exchange multiplies the
#: determinant of the basis by more than this, so that exchanges end.
LARGEST = 64
#: What rounding may take from a variance of which nothing is known but that it cannot be less.
ALMOST = 1 - 1e-4
#: How many queries are solved for at a time.
CHUNK = 256
#: Blocks of a factor are merged up to this many rows: large enough for matrix products, small enough to
#: be copied.
LARGEST_BLOCK = 512
#: How many columns a factor solves for at a time.
COLUMNS = 256
#: Operations beside open parts, measured: for a query, for it and a row, and to add a row.
PER_QUERY, PER_PAIR, PER_ROW = 60_000.0, 300.0, 1_500_000.0


class Contrasts:
    """Keeps the paid rows, and a triangular factor of their contrasts' covariances."""

    def __init__(self, prior: Prior) -> None:
        self._prior = prior
        #: Exact algebra over the open parts; None where nothing is open.
        self._parts = OpenParts(prior) if isinstance(prior, MarginalPrior) else None
        #: The rows, stored for their covariances.
        self._rows: Any = self._parts.rows if self._parts else prior.rows()
        self._queries: tuple[LinearQuery, ...] = ()
        self._places: dict[str, int] = {}
        #: The rows' values less the seed's estimates, and the variances of their noise.
        self._misses, self._noise = np.zeros(0), np.zeros(0)
        #: The seed's covariances of all rows with each other, once one of them is in the basis.
        self._covariances: Vector | None = None
        #: The rows that have contrasts, in order; and the coefficients of rows outside the basis.
        self._contrasts: list[int] = []
        self._combinations: dict[int, Combination] = {}
        self._matrix: sp.csr_array | None = None
        self._factor = BlockFactor()
        self._solved = np.zeros(0)
        #: Whether a snapshot uses the same state.
        self._shared = False

    @classmethod
    def of(cls, measurements: Measurements) -> Contrasts:
        """The solver that has seen the seed."""
        prior, rows = measurements.prior()
        solver = cls(prior)
        if rows is not None:
            solver.observe(rows)
        return solver

    @classmethod
    def of_all_rows(cls, measurements: Measurements) -> Contrasts:
        """The solver to which the rows of the seed are rows like all others: right for any weights."""
        solver = cls.without_seed(measurements)
        solver.observe(measurements.seed_rows())
        return solver

    @classmethod
    def without_seed(cls, measurements: Measurements) -> Contrasts:
        """The solver for rows alone: where a seed is so vague that beside them nothing is left of it."""
        return cls(MarginalPrior(measurements.strategy.domain))

    def __len__(self) -> int:
        return len(self._queries)

    # Rows

    def observe(self, batch: MeasurementBatch) -> None:
        """Add new rows, all at once; raises `Unsuitable` where rounding would spoil them."""
        if self._shared:
            self._unshare()
        batch = _primitive(batch)
        first = len(self._queries)
        new = range(first, first + len(batch.rows))
        found = self._parts.append(batch.rows) if self._parts else [NONE] * len(new)
        if self._parts:
            self._rows = self._parts.rows
        for row, query, combination in zip(new, batch.rows, found, strict=True):
            if self._parts is None:
                self._rows.append(query)
            if combination is not None:
                self._combinations[row] = combination
            self._places[query.key] = row
        self._queries = (*self._queries, *batch.rows)
        misses = batch.values - self._prior.means(batch.rows)
        self._misses = np.concatenate([self._misses, misses])
        self._noise = np.concatenate([self._noise, batch.variances])
        if self._parts is not None and self._rebase(new):
            self._remember(new)
            self._start_again()
            return
        shared = self._remember(new)
        added = [row for row in new if row in self._combinations]
        self._contrasts = [*self._contrasts, *added]
        self._matrix = None
        if added:
            self._extend(added, shared)

    def _remember(self, new: Sequence[int]) -> Vector:
        """The covariances of new rows with all rows; kept where there are open parts."""
        shared: Vector = self._rows.covariances([self._queries[row] for row in new])
        if self._parts is None or not (self._parts.basis or self._covariances is not None):
            return shared
        if self._covariances is None and new[0]:
            self._covariances = self._rows.covariances(self._queries[: new[0]])[:, : new[0]]
        before = np.zeros((0, 0)) if self._covariances is None else self._covariances
        known = len(before)
        grown = np.empty((len(self._queries), len(self._queries)))
        grown[:known, :known] = before
        grown[known:] = shared
        grown[:known, known:] = shared[:, :known].T
        self._covariances = grown
        return shared

    def _extend(self, added: Sequence[int], shared: Vector) -> None:
        """Add contrasts to the factor."""
        first = len(self._queries) - len(shared)
        combinations = [self._combinations[row] for row in added]
        chosen = shared[[row - first for row in added]]
        own = chosen[np.arange(len(added)), added]
        columns, own = self._errors(chosen, own, combinations)
        old = len(self._solved)
        between = self._factor.solve(columns[:old])
        inner = columns[old:]
        # The contrasts' own variances; between two of them the noise of a new row does not matter.
        inner[np.diag_indices(len(added))] = own + self._noise[added]
        inner -= between.T @ between
        try:
            corner = cholesky(inner, lower=True, check_finite=False)
        except LinAlgError:
            raise Unsuitable("rows far more precise than the seed") from None
        # The noise of a row outside the basis is in no other contrast.
        if (corner.diagonal() ** 2 < self._noise[added] * ALMOST).any():
            raise Unsuitable("rows far more precise than the seed")
        misses = np.array([self._miss(row) for row in added]) - between.T @ self._solved
        self._solved = np.concatenate([self._solved, solve_triangular(corner, misses, lower=True)])
        self._factor = self._factor.extended(between, corner)

    def _start_again(self) -> None:
        """Compute the factor anew, after the basis has changed."""
        rows = range(len(self._queries))
        self._contrasts = [row for row in rows if row in self._combinations]
        self._factor, self._solved, self._matrix = BlockFactor(), np.zeros(0), None
        if self._contrasts and self._covariances is not None:
            self._extend(self._contrasts, self._covariances)

    def _miss(self, row: int) -> float:
        """The value of a row's contrast, less the seed's estimate."""
        found = self._combinations.get(row, NONE)
        return float(self._misses[row] - found.factors @ self._misses[found.rows])

    # The basis

    def _rebase(self, new: Sequence[int]) -> bool:
        """Exchange rows of the basis until no coefficient is large; whether there was anything to do."""
        parts, changed = self._parts, False
        while parts is not None and (too_large := self._too_large(new)):
            entering, leaving = too_large
            parts.exchange(leaving, entering)
            del self._combinations[entering]
            old = [row for row, found in self._combinations.items() if leaving in found.rows]
            for row in [*old, leaving]:
                [found] = parts.combinations([self._queries[row]])
                if found is None:
                    raise AssertionError("a row of the basis depends on what replaces it")
                self._combinations[row] = found
            new, changed = range(len(self._noise)), True
        if parts is not None:
            self._rows = parts.rows  # Other primes may have been taken.
        return changed

    def _too_large(self, rows: Sequence[int]) -> tuple[int, int] | None:
        """A row outside the basis, and the row of the basis that it should replace."""
        largest, pair = float(LARGEST), None
        for row in rows:
            found = self._combinations.get(row, NONE)
            if len(found.rows):
                sizes = np.abs(found.factors) * np.sqrt(self._noise[found.rows] / self._noise[row])
                at = int(np.argmax(sizes))
                if sizes[at] > largest:
                    largest, pair = float(sizes[at]), (row, int(found.rows[at]))
        return pair

    # Queries

    def estimate(self, queries: Sequence[LinearQuery]) -> tuple[Vector, Vector]:
        """The queries' estimates and their variances; infinite where nothing determines them."""
        values, variances = np.full(len(queries), np.nan), np.full(len(queries), np.inf)
        for start in checked(range(0, len(queries), CHUNK), 1):
            chunk = queries[start : start + CHUNK]
            found = self._starts(chunk)
            known = [at for at, each in enumerate(found) if each]
            if not known:
                continue
            places = start + np.array(known)
            chosen, combinations = [chunk[at] for at in known], [each for each in found if each]
            columns, own = self._solve(chosen, combinations)
            scales = np.array([float(query.scale) for query in chosen])
            starts = np.array([each.factors @ self._misses[each.rows] for each in combinations])
            seed = self._prior.means([query.primitive for query in chosen])
            values[places] = scales * (seed + starts + self._solved @ columns)
            variances[places] = scales**2 * (own - (columns**2).sum(axis=0))
        return values, variances

    def _starts(self, queries: Sequence[LinearQuery]) -> list[Combination | None]:
        """The coefficients of queries in the basis; None where one is undetermined."""
        if self._parts is None:
            return [NONE] * len(queries)
        primitive = [query.primitive for query in queries]
        rows = [self._places.get(query.key) for query in primitive]
        others = [query for query, row in zip(primitive, rows, strict=True) if row is None]
        combinations = iter(self._parts.combinations(others))
        return [
            next(combinations)
            if row is None
            else self._combinations.get(row) or Combination(np.array([row]), np.ones(1))
            for row in rows
        ]

    def _solve(
        self, queries: Sequence[LinearQuery], combinations: Sequence[Combination]
    ) -> tuple[Vector, Vector]:
        """The contrasts' covariances with the queries' errors, solved for; and their first variances."""
        primitive = [query.primitive for query in queries]
        shared, variances = self._rows.covariances(primitive), self._prior.variances(primitive)
        columns, own = self._errors(shared, variances, combinations)
        return self._factor.solve(columns), own

    def _errors(
        self,
        shared: Vector,
        variances: Vector,
        combinations: Sequence[Combination],
    ) -> tuple[Vector, Vector]:
        """The covariances of starts' errors with all contrasts, one column each; and their variances.

        Given are the seed's covariances of the queries with all rows, its variances of them, and where
        they start.
        """
        if self._parts is None or not self._parts.basis:
            return shared[:, self._contrasts].T, variances
        with_rows, own, noise = shared.copy(), variances.copy(), self._noise
        for at, found in enumerate(combinations):
            if not len(found.rows) or self._covariances is None:
                continue
            start = found.factors @ self._covariances[found.rows]
            start[found.rows] += found.factors * noise[found.rows]
            own[at] += found.factors @ (start[found.rows] - 2 * with_rows[at, found.rows])
            with_rows[at] -= start
        columns = with_rows[:, self._contrasts].T - self._coefficients @ with_rows.T
        return columns, own

    @property
    def _coefficients(self) -> sp.csr_array:
        """The contrasts' coefficients in the basis, as a sparse matrix over the rows."""
        if self._matrix is None:
            found = [self._combinations.get(row, NONE) for row in self._contrasts]
            indptr = np.cumsum([0, *(len(each.rows) for each in found)])
            indices = np.concatenate([NONE.rows, *(each.rows for each in found)])
            factors = np.concatenate([NONE.factors, *(each.factors for each in found)])
            shape = (len(found), len(self._queries))
            self._matrix = sp.csr_array((factors, indices, indptr), shape=shape)
        return self._matrix

    def variances_after(self, queries: Sequence[LinearQuery], batch: MeasurementBatch) -> Vector:
        """The queries' variances if these rows were measured too."""
        if self._parts is not None:
            trial = copy(self)
            trial._shared = True
            trial.observe(batch)
            return trial.estimate(queries)[1]
        batch = _primitive(batch)
        asked = [query.primitive for query in queries]
        distinct = list({query.key: query for query in [*asked, *batch.rows]}.values())
        place = {query.key: at for at, query in enumerate(distinct)}
        bought = [place[row.key] for row in batch.rows]
        rows = self._prior.rows()
        for row in batch.rows:
            rows.append(row)
        columns, own = self._solve(distinct, [NONE] * len(distinct))
        shared = rows.covariances(distinct)
        shared -= columns.T @ columns[:, bought]
        inner = shared[bought]
        inner[np.diag_indices(len(bought))] += batch.variances
        try:
            factor = cholesky(inner, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            raise Unsuitable("rows far more precise than the seed") from None
        gained = (solve_triangular(factor, shared.T, lower=True) ** 2).sum(axis=0)
        after = own - (columns**2).sum(axis=0) - gained
        scales = np.array([float(query.scale) for query in queries])
        return np.asarray(scales**2 * after[[place[query.key] for query in asked]])

    # Copies

    def snapshot(self) -> Contrasts:
        """A copy to read; the state is copied when either of them changes."""
        frozen = copy(self)
        if self._parts is None:
            frozen._rows = self._rows.snapshot()
            frozen._places = dict(self._places)
            frozen._combinations = dict(self._combinations)
        else:
            self._shared = frozen._shared = True
        return frozen

    def _unshare(self) -> None:
        self._parts = self._parts.copy() if self._parts else None
        self._rows = self._parts.rows if self._parts else self._rows.copy()
        self._places, self._combinations = dict(self._places), dict(self._combinations)
        self._shared = False

    def work(self, queries: int, rows: int) -> tuple[float, float]:
        """Covariances with the rows, triangular solves, and exact solutions modulo two primes."""
        known, contrasts = float(len(self._queries)), float(len(self._contrasts))
        if self._parts is not None:
            return self._open_work(queries, rows, known, len(self._parts.basis))
        after = known + rows
        operations = 300_000.0 * (queries + rows) + queries * (contrasts + rows) ** 2 + rows * after**2
        return operations, 8 * ((queries + rows) * after + rows**2)

    def work_anew(self, queries: int) -> tuple[float, float]:
        """What it takes to add all rows to another seed, and to estimate so many queries."""
        if self._parts is None:
            return self.work(queries, len(self._queries))
        return self._open_work(queries, len(self._queries), 0.0, 0)

    def _open_work(self, queries: int, rows: int, known: float, basis: int) -> tuple[float, float]:
        after, independent = known + rows, float(basis + rows)
        operations = queries * (PER_QUERY + PER_PAIR * after) + rows * (PER_ROW + PER_PAIR * after)
        # Many queries are solved for by products of matrices; rows come one by one.
        operations += (queries + 16) * (independent**2 + after**2 / 4)
        operations += rows * (5 * independent**2 + after**2 / 2)
        memory = 8 * (4 * min(queries, CHUNK) * after + (5 * after**2 if rows else 0))
        return operations, memory


def _primitive(batch: MeasurementBatch) -> MeasurementBatch:
    """The batch with every row divided by its scale."""
    if all(row.scale == 1 for row in batch.rows):
        return batch
    scales = np.array([float(row.scale) for row in batch.rows])
    rows = tuple([row.primitive for row in batch.rows])
    return MeasurementBatch(rows, batch.values / scales, batch.variances / scales**2)


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
