"""A second implementation of estimates and variances: slow, simple, and independent of the first.

`verify` and the certificate check answers with it, so that no solver is judged by itself: nothing here
uses the solvers of `mechanisms`. With integer rows A measured as y with variances V, let

    G = A' V^-1 A,   b = A' V^-1 y.

The best linear unbiased estimate of a query q is q'G^+ b, and its variance is q'G^+ q; where q is no
combination of the rows, nothing determines it. G is written out, over the cells that queries and rows
tell apart (`merged_cells.py`), and eliminated in long doubles. Where that could lose more than ten
digits, it is done again with 200 decimals. Over too many cells, the estimates are computed by rows
(`kriging.py`); with too many rows for that, by LSMR. What is too large for all of them is not checked.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from decimal import Decimal, localcontext
from functools import lru_cache, partial, reduce
from random import SystemRandom
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import lsmr
from threadpoolctl import threadpool_limits

from sharewell.mechanisms.base import Mechanism
from sharewell.mechanisms.marginal_seed import MarginalSeed
from sharewell.mechanisms.strategy import Strategy
from sharewell.privacy.measurement import Measurement
from sharewell.query.block import Block
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell.sharing.kriging import BeyondReach, Kriging
from sharewell.sharing.merged_cells import MergedCells, NoisyMarginal, marginals_of

#: Two numbers agree if they differ by no more than this part of the standard error. The solvers of
#: `mechanisms` are far more precise on most seeds, and promise this on all.
AGREEMENT = 1e-6

#: The most cells for long doubles, and for decimals after cells that no row tells apart are merged.
MOST_CELLS, MOST_DECIMAL_CELLS = 256, 128
#: The most rows besides marginals for estimates by rows.
MOST_ROWS = 192
#: For LSMR: the most weights, the nanoseconds of each in a step, and the most of them altogether.
MOST_WEIGHTS, LSMR, LONGEST = 5_000_000, 10.0, 2e9
#: The most cells for decimals before those that no row tells apart are merged.
MOST_UNMERGED = 4096
#: A query of which LSMR leaves less than this part is determined; more than that, it is not.
SOLVED, UNSOLVED = 1e-9, 1e-3
DIGITS = 200
#: The most answers to one question that are checked.
MOST_ANSWERS = 16
#: A smaller variance counts as this one: of no noise there is nothing to weigh.
TINY = 1e-12
#: A pivot below this part of its diagonal entry is lost to rounding, or is zero.
LONG_DOUBLE_PIVOT = 1e10 * float(np.finfo(np.longdouble).eps)
DECIMAL_PIVOT = Decimal(10) ** -100
#: Roughly the nanoseconds of a step of an elimination, and of each number in it: long double, decimal.
STEP, LONG_DOUBLE, DECIMAL = 50_000.0, 3.0, 500.0

Estimate = tuple[float, float]


#: Integer rows, their values and their variances.
Stack = tuple[sp.csr_array, NDArray[np.longdouble], NDArray[np.float64]]


class Reference:
    """Estimates of any query from measurements, recomputed from their definition."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        #: What was measured: marginals, rows one by one, and strategies of other rows.
        self._marginals: list[NoisyMarginal] = []
        self._rows: list[LinearQuery] = []
        self._values: list[float] = []
        self._variances: list[float] = []
        self._strategies: list[Measurement] = []
        self._measured: list[Measurement] = []
        self._small = domain.size <= MOST_CELLS
        #: How many of the measurements are in the normal equations over all cells of a small domain.
        self._counted = 0
        size = domain.size if self._small else 0
        self._gram = np.zeros((size, size), dtype=np.longdouble)
        self._weighted = np.zeros(size, dtype=np.longdouble)
        self._eliminated: _Elimination | None = None
        self._kriging: Kriging | None = None
        self._stacked: tuple[MergedCells, Stack | None] | None = None
        #: Roughly the nanoseconds spent so far, counted and not measured: a `Sample` bounds them.
        self.work = 0.0

    def observe(self, measurement: Measurement) -> None:
        """Add a measurement."""
        self._measured.append(measurement)
        self._eliminated = self._stacked = None
        marginals = marginals_of(measurement)
        if marginals is not None:
            self._marginals += marginals
            self._kriging = None
        elif isinstance(measurement.block, Block):
            variances = np.maximum(measurement.variances, TINY)
            for row, value, variance in zip(
                measurement.block, measurement.values, variances.tolist(), strict=True
            ):
                scale = float(row.scale) or 1.0
                self._rows.append(row.primitive)
                self._values.append(float(value) / scale)
                self._variances.append(variance / scale**2)
        else:
            self._strategies.append(measurement)

    def estimate(
        self, queries: Sequence[LinearQuery], *, with_values: bool = True
    ) -> list[Estimate] | None:
        """The value and the variance of each query; None where this size is beyond every way."""
        whole = [query.primitive for query in queries]
        if not self._measured:
            return [(0.0, math.inf if query.max_abs else 0.0) for query in queries]
        found = self._of_all_cells(whole) if self._small else None
        if found is None:
            cells = self._merged(whole)
            ways = (self._in_long_doubles, self._in_decimals, self._by_rows, self._iteratively)
            tried = (way(cells, whole, with_values) for way in ways)
            found = next((each for each in tried if each is not None), None)
            self._stacked = None
        if found is None:
            return None
        scales = [float(query.scale) for query in queries]
        return [
            (value * scale, variance * scale**2)
            for (value, variance), scale in zip(found, scales, strict=True)
        ]

    def errors(self, queries: Sequence[LinearQuery]) -> list[float] | None:
        """The standard error of each query."""
        found = self.estimate(queries, with_values=False)
        return None if found is None else [math.sqrt(variance) for _, variance in found]

    # The normal equations

    def _merged(self, queries: Sequence[LinearQuery]) -> MergedCells:
        """The cells that the rows and some queries tell apart; all cells, if a strategy does."""
        self.work += STEP * len(self._domain.attributes) + 2_000.0 * len(self._rows)
        return MergedCells(self._domain, [*self._rows, *queries], merge=not self._strategies)

    def _stack(self, cells: MergedCells, with_values: bool, most: int) -> Stack | None:
        """Everything measured, over merged cells; None where the rows have too many weights.

        The last one is kept: where one way cannot use it, the next one may.
        """
        if self._stacked is None or self._stacked[0] is not cells:
            self._stacked = cells, self._new_stack(cells, with_values, most)
        return self._stacked[1]

    def _new_stack(self, cells: MergedCells, with_values: bool, most: int) -> Stack | None:
        weights = cells.weights(self._marginals)
        rows = cells.rows(self._rows, most) if weights <= most else None
        if rows is None:
            return None
        summed = sum(marginal.table.size for marginal in self._marginals) if with_values else 0
        self.work += LSMR * (rows.nnz + weights + summed)
        values = np.array(self._values, dtype=np.longdouble)
        parts = [(rows, values, np.array(self._variances, dtype=np.float64))]
        parts += cells.marginals(self._marginals, with_values)
        parts += [
            (_strategy_matrix(each.block), each.values.astype(np.longdouble), each.variances)  # type: ignore[arg-type]
            for each in self._strategies
        ]
        self.work += STEP * (len(parts) + len(self._rows))
        return (
            sp.csr_array(sp.vstack([rows for rows, _, _ in parts], format="csr")),
            np.concatenate([values for _, values, _ in parts]),
            np.maximum(np.concatenate([variances for _, _, variances in parts]), TINY),
        )

    def _normal_equations(self, stack: Stack) -> tuple[NDArray[np.longdouble], NDArray[np.longdouble]]:
        rows, values, variances = stack
        size = rows.shape[1]
        gram, weighted = np.zeros((size, size), dtype=np.longdouble), np.zeros(size, dtype=np.longdouble)
        for at in range(0, len(values), MOST_CELLS):
            some = slice(at, at + MOST_CELLS)
            dense = rows[some].toarray().astype(np.longdouble)
            scaled = dense / variances[some, None].astype(np.longdouble)
            gram += scaled.T @ dense
            weighted += scaled.T @ values[some]
            self.work += LONG_DOUBLE * dense.size * size
        return gram, weighted

    def _update_gram(self) -> None:
        """Add what was measured since the last time to the normal equations of a small domain."""
        new = Reference(self._domain)
        for measurement in self._measured[self._counted :]:
            new.observe(measurement)
        self._counted = len(self._measured)
        cells = MergedCells(self._domain, (), merge=False)
        if new._measured and (stack := new._stack(cells, True, MOST_WEIGHTS)) is not None:
            gram, weighted = new._normal_equations(stack)
            self._gram += gram
            self._weighted += weighted
        self.work += new.work

    def _of_all_cells(self, queries: Sequence[LinearQuery]) -> list[Estimate] | None:
        """Over all cells of a small domain, whose normal equations are kept."""
        if self._eliminated is None:
            self._update_gram()
            self._eliminated = self._eliminate(self._gram)
        cells = MergedCells(self._domain, (), merge=False)
        return self._substitute(self._eliminated, cells, queries, self._weighted)

    def _in_long_doubles(
        self, cells: MergedCells, queries: Sequence[LinearQuery], with_values: bool
    ) -> list[Estimate] | None:
        if cells.count > MOST_CELLS:
            return None
        stack = self._stack(cells, with_values, MOST_WEIGHTS)
        if stack is None:
            return None
        gram, weighted = self._normal_equations(stack)
        return self._substitute(self._eliminate(gram), cells, queries, weighted)

    def _eliminate(self, gram: NDArray[np.longdouble]) -> _Elimination:
        self.work += _elimination_work(len(gram), LONG_DOUBLE)
        return _Elimination(gram, LONG_DOUBLE_PIVOT)

    def _substitute(
        self,
        eliminated: _Elimination,
        cells: MergedCells,
        queries: Sequence[LinearQuery],
        weighted: NDArray[np.longdouble],
    ) -> list[Estimate] | None:
        asked = cells.rows(queries, MOST_WEIGHTS) if eliminated.is_complete else None
        if asked is None:
            return None
        self.work += cells.count * (STEP + LONG_DOUBLE * cells.count * len(queries))
        return eliminated.estimate(asked.toarray().T.astype(np.longdouble), weighted)

    def _in_decimals(
        self, cells: MergedCells, queries: Sequence[LinearQuery], with_values: bool
    ) -> list[Estimate] | None:
        """The same with 200 decimals, over as few cells as the rows and the queries tell apart."""
        most = MOST_WEIGHTS if self._strategies else MOST_UNMERGED
        if cells.count > most:
            return None
        asked, stack = cells.rows(queries, MOST_WEIGHTS), self._stack(cells, with_values, MOST_WEIGHTS)
        if asked is None or stack is None:
            return None
        rows, values, variances = stack
        every = sp.vstack([asked, rows], format="csr")
        # Cells with the same weight in every row count only together: what is estimated is their sum.
        # They are found by a random combination of the rows, modulo 2^64.
        random = np.frombuffer(os.urandom(8 * every.shape[0]), dtype=np.uint64)
        signatures = every.astype(np.uint64).T @ random
        _, chosen = np.unique(signatures, return_index=True)
        if len(chosen) > MOST_DECIMAL_CELLS:
            return None
        with localcontext() as context:
            context.prec = DIGITS
            gram, weighted = _exact_gram(rows[:, chosen], values, variances)
            self.work += _elimination_work(len(chosen) + len(queries), DECIMAL)
            right = _decimals(asked[:, chosen].toarray().T)
            return _Elimination(gram, DECIMAL_PIVOT).estimate(right, weighted)

    # By rows, and by iteration

    def _by_rows(
        self, _cells: MergedCells, queries: Sequence[LinearQuery], with_values: bool
    ) -> list[Estimate] | None:
        if self._strategies or len(self._rows) > MOST_ROWS:
            return None
        if self._kriging is None:
            self._kriging = Kriging(self._domain, self._marginals)
        before = self._kriging.work
        try:
            for at in range(len(self._kriging), len(self._rows)):
                self._kriging.append(self._rows[at], self._values[at], self._variances[at])
            return self._kriging.estimate(queries, with_values)
        except BeyondReach:
            return None
        finally:
            self.work += self._kriging.work - before

    def _iteratively(
        self, cells: MergedCells, queries: Sequence[LinearQuery], with_values: bool
    ) -> list[Estimate] | None:
        """The least-norm weights u of the rows, scaled by their errors, that add up to each query."""
        if cells.count > MOST_WEIGHTS:
            return None
        asked, stack = cells.rows(queries, MOST_WEIGHTS), self._stack(cells, with_values, MOST_WEIGHTS)
        if asked is None or stack is None or stack[0].nnz > MOST_WEIGHTS:
            return None
        whole, values, variances = stack
        errors = np.sqrt(variances)
        rows = sp.csr_array(sp.diags_array(1 / errors) @ whole)
        scaled = (values / errors).astype(np.float64)
        steps = max(int(LONGEST / (LSMR * rows.nnz * len(queries))), 10)
        found = []
        for query in asked:
            right = query.toarray().ravel().astype(np.float64)
            # On vectors of this size, threads cost more than they save.
            with threadpool_limits(1):
                weights, stop, count, *_ = lsmr(rows.T, right, 0.0, 1e-14, 1e-14, 0, steps)
            self.work += LSMR * count * rows.nnz
            missing = np.linalg.norm(rows.T @ weights - right) / (np.linalg.norm(right) or 1.0)
            if missing <= SOLVED:
                found.append((float(weights @ scaled), float(weights @ weights)))
            elif stop in (2, 5) and missing >= UNSOLVED:
                found.append((0.0, math.inf))
            else:
                return None
        return found


def _exact_gram(
    rows: sp.csr_array, values: NDArray[np.longdouble], variances: NDArray[np.float64]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The normal equations in decimals: sums of whole numbers, divided by each variance once."""
    size = rows.shape[1]
    gram, weighted = (_decimals(np.zeros(shape, dtype=object)) for shape in ((size, size), size))
    for variance in np.unique(variances).tolist():
        same = variances == variance
        few = rows[same].toarray().astype(object)
        high = values[same].astype(np.float64)
        # A long double is the sum of two doubles.
        answers = _decimals(high) + _decimals((values[same] - high).astype(np.float64))
        gram += _decimals(few.T @ few) / Decimal(variance)
        weighted += few.T @ answers / Decimal(variance)
    return gram, weighted


class _Elimination:
    """Symmetric Gaussian elimination of a positive semidefinite matrix, largest pivot first."""

    def __init__(self, gram: NDArray[Any], smallest: Any) -> None:
        gram, size = gram.copy(), len(gram)
        self._smallest = smallest
        self._order = np.arange(size)
        #: The pivots on the diagonal, and right of them what is left of their rows.
        self._gram = gram
        self._rank = 0
        # The diagonal of a cell that no row weighs is 0, and so is everything beside it.
        diagonal = np.where(gram.diagonal() > 0, gram.diagonal(), gram.dtype.type(1))
        for k in range(size):
            at = k + int(np.argmax(gram.diagonal()[k:] / diagonal[k:]))
            if at != k:
                for array in (gram, gram.T, diagonal, self._order):
                    array[[k, at]] = array[[at, k]]
            if gram[k, k] <= smallest * diagonal[k]:
                break
            gram[k + 1 :, k + 1 :] -= np.outer(gram[k, k + 1 :] / gram[k, k], gram[k, k + 1 :])
            self._rank += 1

    @property
    def is_complete(self) -> bool:
        """Whether no pivot was too small."""
        return self._rank == len(self._order)

    def estimate(self, queries: NDArray[Any], weighted: NDArray[Any]) -> list[Estimate]:
        """The value q'G^+ b and the variance q'G^+ q of every column q."""
        right = np.column_stack([queries, weighted])[self._order]
        squares, products = 0 * right[0], 0 * right[0]
        for k in range(self._rank):
            pivot = self._gram[k, k]
            squares = squares + right[k] ** 2 / pivot
            products = products + right[k] * right[k, -1] / pivot
            right[k + 1 :] -= np.outer(self._gram[k, k + 1 :] / pivot, right[k])
        rest, sizes = abs(right[self._rank :, :-1]), abs(queries).max(axis=0)
        undetermined = (rest > self._smallest * sizes).any(axis=0)
        return [
            (float(value), math.inf if infinite else max(float(square), 0.0))
            for value, square, infinite in zip(products, squares, undetermined, strict=False)
        ]


@lru_cache(maxsize=4)
def _strategy_matrix(strategy: Strategy | MarginalSeed) -> sp.csr_array:
    """The rows of a strategy, which all worlds of a certificate measure alike."""
    if isinstance(strategy, MarginalSeed):
        return _planned_matrix(strategy)
    unit = partial(sp.eye_array, dtype=np.int64)
    parts = [
        reduce(sp.kron, [unit(of.size) if of.matrix is None else of.matrix for of in part])  # type: ignore[arg-type]
        for part in strategy.parts
    ]
    return sp.csr_array(sp.vstack(parts, format="csr"))


def _planned_matrix(seed: MarginalSeed) -> sp.csr_array:
    """The rows of a planned seed, from what its stored form says of each attribute."""
    shape, stacked = seed.domain.shape, []
    for part in seed.to_json()["parts"]:
        along, factors = dict(part["factors"]), []
        for level, size in enumerate(shape):
            unit = np.eye(size, dtype=np.int64)
            form = along.get(level)
            if form is None:
                factors.append(sp.csr_array(np.ones((1, size), dtype=np.int64)))
            elif "csr" in form:
                starts, columns, weights = (np.array(each, dtype=np.int64) for each in form["csr"])
                rows = len(starts) - 1
                factors.append(sp.csr_array((weights, columns, starts), shape=(rows, size)))
            else:
                factors.append(sp.csr_array(size * unit - 1 if "centred" in form else unit))
        stacked.append(reduce(lambda left, right: sp.csr_array(sp.kron(left, right)), factors))
    return sp.csr_array(sp.vstack(stacked, format="csr"))


_decimals: Any = np.vectorize(Decimal, otypes=[object])


def _elimination_work(size: int, each: float) -> float:
    return size * STEP + each * size**3 / 3


class References:
    """References that follow a growing list of measurements: one for all, or one for each analyst."""

    def __init__(self, domain: Domain, measured: Sequence[Measurement]) -> None:
        self._domain = domain
        self._measured = measured
        self._by_payer: dict[str | None, tuple[Reference, int]] = {}

    def of(self, mechanism: Mechanism, analyst: str, count: int | None = None) -> Reference:
        """The reference for an analyst's questions after so many measurements, or after all."""
        payer = analyst if mechanism.separate else None
        reference, seen = self._by_payer.get(payer, (Reference(self._domain), 0))
        for measurement in self._measured[seen:count]:
            if payer is None or set(measurement.bill) == {payer}:
                reference.observe(measurement)
        self._by_payer[payer] = reference, len(self._measured) if count is None else max(seen, count)
        return reference


class Sample:
    """Decides what is checked: everything while that is cheap, then ever less, at random.

    Each time that the checks have taken another `allowance`, a quarter as many are made from there on.
    """

    def __init__(self, allowance: float) -> None:
        self.checked = 0
        self._allowance = allowance
        self._spent = 0.0
        self._one_in = 1
        self._random = SystemRandom()

    def chooses(self) -> bool:
        """Whether the next entry is to be checked."""
        return self._random.randrange(self._one_in) == 0

    def pick(self, size: int, most: int = MOST_ANSWERS) -> list[int]:
        """The places of the answers to check among those to one question: all, or some at random."""
        return sorted(self._random.sample(range(size), min(size, most)))

    def count(self, work: float, checked: bool = True) -> None:
        """Count the work that an entry took, and the entry if it could be checked."""
        self.checked += checked
        self._spent += work
        if self._spent > self._allowance:
            self._spent = 0.0
            self._one_in *= 4


def agree(found: float, reference: float) -> bool:
    """Whether two standard errors are the same but for rounding."""
    if math.isinf(found) or math.isinf(reference):
        return found == reference
    return abs(found - reference) <= AGREEMENT * reference
