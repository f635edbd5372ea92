"""A second implementation of estimates and variances: slow, simple, and independent of the first.

`verify` and the certificate check answers with it, so that no solver is judged by itself: nothing here
uses the solvers of `mechanisms`. With integer rows A measured as y with variances V, let

    G = A' V^-1 A,   b = A' V^-1 y.

The best linear unbiased estimate of a query q is q'G^+ b, and its variance is q'G^+ q; where q is no
combination of the rows, nothing determines it. G is written out and eliminated in long doubles. Where
that could lose more than ten digits, it is done again with 200 decimals; over too many cells, by LSMR.
"""

from __future__ import annotations

import math
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
from sharewell.mechanisms.strategy import Strategy
from sharewell.privacy.measurement import Measurement
from sharewell.query.block import Measurable
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: Two numbers agree if they differ by no more than this part of the standard error. The solvers of
#: `mechanisms` are far more precise on most seeds, and promise this on all.
AGREEMENT = 1e-6

#: The most cells for long doubles, and for decimals after cells that no row tells apart are merged.
MOST_CELLS, MOST_DECIMAL_CELLS = 256, 128
#: For LSMR: the most weights, the nanoseconds of each in a step, and the most of them altogether.
MOST_WEIGHTS, LSMR, LONGEST = 20_000_000, 10.0, 2e9
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


class Reference:
    """Estimates of any query from measurements, recomputed from their definition."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._measured: list[Measurement] = []
        #: How many of the measurements are in the normal equations.
        self._counted = 0
        self._small = domain.size <= MOST_CELLS
        size = domain.size if self._small else 0
        self._gram = np.zeros((size, size), dtype=np.longdouble)
        self._weighted = np.zeros(size, dtype=np.longdouble)
        self._eliminated: _Elimination | None = None
        #: Roughly the nanoseconds spent so far, counted and not measured: a `Sample` bounds them.
        self.work = 0.0

    def observe(self, measurement: Measurement) -> None:
        """Add a measurement."""
        self._measured.append(measurement)
        self._eliminated = None

    def _stack(self, start: int = 0) -> tuple[sp.csr_array, NDArray[np.int64], NDArray[np.float64]]:
        """Everything measured from a measurement on: integer rows, their values and their variances."""
        some = self._measured[start:]
        rows = sp.vstack([_matrix(measurement.block) for measurement in some], format="csr")
        values = np.concatenate([measurement.values for measurement in some])
        variances = np.concatenate([measurement.variances for measurement in some])
        self.work += STEP * len(some)
        return sp.csr_array(rows), values, np.maximum(variances, TINY)

    def _update_gram(self) -> None:
        """Add what was measured since the last time to the normal equations."""
        if self._counted == len(self._measured):
            return
        rows, values, variances = self._stack(self._counted)
        self._counted = len(self._measured)
        for at in range(0, len(values), MOST_CELLS):
            some = slice(at, at + MOST_CELLS)
            dense = rows[some].toarray().astype(np.longdouble)
            scaled = dense / variances[some, None].astype(np.longdouble)
            self._gram += scaled.T @ dense
            self._weighted += scaled.T @ values[some].astype(np.longdouble)
            self.work += LONG_DOUBLE * dense.size * self._domain.size

    def estimate(self, queries: Sequence[LinearQuery]) -> list[Estimate] | None:
        """The value and the variance of each query; None where this size is beyond all three ways."""
        whole = [query.primitive for query in queries]
        found = self._in_long_doubles(whole) or self._in_decimals(whole) or self._iteratively(whole)
        if found is None:
            return None
        scales = [float(query.scale) for query in queries]
        return [
            (value * scale, variance * scale**2)
            for (value, variance), scale in zip(found, scales, strict=True)
        ]

    def errors(self, queries: Sequence[LinearQuery]) -> list[float] | None:
        """The standard error of each query."""
        found = self.estimate(queries)
        return None if found is None else [math.sqrt(variance) for _, variance in found]

    def _in_long_doubles(self, queries: Sequence[LinearQuery]) -> list[Estimate] | None:
        if not self._small:
            return None
        if self._eliminated is None:
            self._update_gram()
            self._eliminated = _Elimination(self._gram, LONG_DOUBLE_PIVOT)
            self.work += _elimination_work(self._domain.size, LONG_DOUBLE)
        if not self._eliminated.is_complete:
            return None
        right = _matrix(queries, self._domain).toarray().T.astype(np.longdouble)
        self.work += self._domain.size * (STEP + LONG_DOUBLE * self._domain.size * len(queries))
        return self._eliminated.estimate(right, self._weighted)

    def _in_decimals(self, queries: Sequence[LinearQuery]) -> list[Estimate] | None:
        """The same with 200 decimals, over as few cells as the rows and the queries tell apart."""
        asked = _matrix(queries, self._domain)
        if not self._measured:
            return [(0.0, math.inf if query.max_abs else 0.0) for query in queries]
        rows, values, variances = self._stack()
        every = sp.vstack([asked, rows], format="csr")
        # Cells with the same weight in every row count only together: what is estimated is their sum.
        # They are found by a random combination of the rows, modulo 2^64.
        draw = SystemRandom()
        random = np.array([draw.getrandbits(64) for _ in range(every.shape[0])], dtype=np.uint64)
        signatures = every.astype(np.uint64).T @ random
        _, cells = np.unique(signatures, return_index=True)
        if len(cells) > MOST_DECIMAL_CELLS:
            return None
        with localcontext() as context:
            context.prec = DIGITS
            gram, weighted = _exact_gram(rows[:, cells], values, variances)
            self.work += _elimination_work(len(cells) + len(queries), DECIMAL)
            right = _decimals(asked[:, cells].toarray().T)
            return _Elimination(gram, DECIMAL_PIVOT).estimate(right, weighted)

    def _iteratively(self, queries: Sequence[LinearQuery]) -> list[Estimate] | None:
        """The least-norm weights u of the rows, scaled by their errors, that add up to each query."""
        whole, values, variances = self._stack()
        if whole.nnz > MOST_WEIGHTS:
            return None
        errors = np.sqrt(variances)
        rows, scaled = sp.csr_array(sp.diags_array(1 / errors) @ whole), values / errors
        steps = max(int(LONGEST / (LSMR * rows.nnz * len(queries))), 10)
        found = []
        for query in _matrix(queries, self._domain):
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
    rows: sp.csr_array, values: NDArray[np.int64], variances: NDArray[np.float64]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The normal equations in decimals: sums of whole numbers, divided by each variance once."""
    size = rows.shape[1]
    gram, weighted = (_decimals(np.zeros(shape, dtype=object)) for shape in ((size, size), size))
    for variance in np.unique(variances).tolist():
        same = variances == variance
        few, answers = rows[same].toarray().astype(object), values[same].astype(object)
        gram += _decimals(few.T @ few) / Decimal(variance)
        weighted += _decimals(few.T @ answers) / Decimal(variance)
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


def _matrix(rows: Measurable | Sequence[LinearQuery], domain: Domain | None = None) -> sp.csr_array:
    """Integer rows, one column a cell."""
    if isinstance(rows, Strategy):
        return _strategy_matrix(rows)
    weights = [_weights(row) for row in rows]  # type: ignore[union-attr]
    size = (domain or rows.domain).size  # type: ignore[union-attr]
    starts = np.cumsum([0, *(len(cells) for cells, _ in weights)])
    cells = np.concatenate([cells for cells, _ in weights])
    whole = np.concatenate([numbers for _, numbers in weights])
    matrix = sp.csr_array((whole, cells, starts), shape=(len(weights), size))
    matrix.sum_duplicates()
    return matrix


@lru_cache(maxsize=4096)
def _weights(row: LinearQuery) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cells that a row weighs, and how much; all worlds of a certificate measure the same rows."""
    cells, weights = row.nonzero()
    return cells, np.rint(weights).astype(np.int64)


@lru_cache(maxsize=4)
def _strategy_matrix(strategy: Strategy) -> sp.csr_array:
    """The rows of a strategy, which all worlds of a certificate measure alike."""
    unit = partial(sp.eye_array, dtype=np.int64)
    parts = [
        reduce(sp.kron, [unit(of.size) if of.matrix is None else of.matrix for of in part])  # type: ignore[arg-type]
        for part in strategy.parts
    ]
    return sp.csr_array(sp.vstack(parts, format="csr"))


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

    def pick(self, size: int) -> list[int]:
        """The places of the answers to check among those to one question: all, or some at random."""
        return sorted(self._random.sample(range(size), min(size, MOST_ANSWERS)))

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
