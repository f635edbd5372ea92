"""Coefficients of queries in rows, from the whole inner products of their open parts.

Chosen after measuring: an answer over 300 sums of random 31-bit weights depends on all of them, and its
exact fractions have 20,000 bits, which take 2 seconds. A solution in doubles, with residuals in whole
numbers, has the same leading digits and takes 10 milliseconds. Only what doubles cannot solve, such as
chains of heavy weights, is solved in fractions.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
from flint import fmpz, fmpz_mat, nmod, nmod_mat
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from sharewell.mechanisms.marginal_prior import MarginalPrior
from sharewell.mechanisms.products import products_of
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]

#: Primes lie between this and its double.
LEAST_PRIME = 2**25
#: A prime that checks other coefficients lies between this and its double.
LEAST_LARGE_PRIME = 2**60
#: Up to this many rows their equations are solved in fractions.
FEW_ROWS = 24
#: What doubles can solve: the least pivot of the rows' correlations, and steps until nothing changes.
LEAST_PIVOT, MOST_STEPS = 1e-5, 6
#: How many supports keep their factorization.
MOST_SUPPORTS = 8


class ExactProducts:
    """Whole inner products of open parts: times the sizes of the attributes that each row mentions."""

    def __init__(self, prior: MarginalPrior) -> None:
        self._prior = prior
        self._places: dict[str, int] = {}
        self._queries: list[LinearQuery] = []
        self._primes: list[int] = []
        self._rows = prior.rows()
        #: The products of every row with itself and those before it.
        self._products: list[list[int]] = []
        self._supports: dict[tuple[int, ...], Support] = {}

    def copy(self) -> ExactProducts:
        """A copy that grows on its own."""
        new = copy(self)
        new._places, new._queries = dict(self._places), list(self._queries)
        new._products, new._supports = list(self._products), dict(self._supports)
        new._rows = self._rows.copy()
        return new

    def solve(self, query: LinearQuery, rows: Sequence[LinearQuery]) -> Vector | None:
        """The coefficients of a query in independent rows; None where they do not determine it."""
        places = tuple([self.place(row) for row in rows])
        *with_rows, square = self._with_all(query)
        support = self._supports.get(places)
        if support is None:
            matrix = [[self._products[max(a, b)][min(a, b)] for b in places] for a in places]
            support = Support(matrix)
            if len(self._supports) >= MOST_SUPPORTS:
                self._supports.clear()
            self._supports[places] = support
        right = [with_rows[at] for at in places]
        if not support.determines(right, square, self._prior.domain.shape):
            return None
        return support.solve(right, [_scale(row) for row in rows], _scale(query))

    def place(self, row: LinearQuery) -> int:
        """The number of a row, which is added if it is new."""
        found = self._places.get(row.key)
        if found is None:
            self._reserve(row)
            found = self._places[row.key] = len(self._queries)
            self._products.append(self._with_all(row))
            self._queries.append(row)
            self._rows.append(row)
        return found

    def _reserve(self, query: LinearQuery) -> None:
        """Take as many primes as the largest product of a row with this one needs."""
        largest = max((_size(row) for row in self._queries), default=1)
        bits = (_size(query) * max(largest, _size(query))).bit_length() + 2
        enough = len(self._primes) * (LEAST_PRIME.bit_length() - 1)
        if bits > enough:
            needed = math.ceil(1.5 * bits / (LEAST_PRIME.bit_length() - 1))
            self._primes = random_primes(needed, self._prior.domain.shape)
            self._rows = self._prior.rows(self._primes)
            for row in self._queries:
                self._rows.append(row)

    def _with_all(self, query: LinearQuery) -> list[int]:
        """The whole products of a query with all rows and with itself, from their residues."""
        self._reserve(query)
        modulus, total = math.prod(self._primes), np.zeros(self._rows.count + 1, dtype=object)
        own = _scale(query)
        for which, prime in enumerate(self._primes):
            rest = modulus // prime
            unit = rest * pow(rest, -1, prime)
            residues = self._rows.open_products([query], which)[0].tolist()
            residues.append(self._prior.open_squares([query], prime).item())
            total += np.array(residues, dtype=object) * unit
        scaled = [
            value * own * _scale(row) % modulus
            for value, row in zip(total.tolist(), [*self._queries, query], strict=True)
        ]
        return [value - modulus if 2 * value > modulus else value for value in scaled]


class Support:
    """Solves for coefficients in some independent rows, from the whole products of their open parts."""

    def __init__(self, matrix: list[list[int]]) -> None:
        self._matrix = fmpz_mat(matrix)
        self._size = len(matrix)
        self._roots = [math.isqrt(line[at]) for at, line in enumerate(matrix)]
        self._factor: Any = None
        self._inverse: tuple[int, nmod_mat] | None = None
        if self._size > FEW_ROWS and min(self._roots) > 0:
            correlations = np.array(
                [
                    [value / (a * b) for value, b in zip(line, self._roots, strict=True)]
                    for line, a in zip(matrix, self._roots, strict=True)
                ]
            )
            try:
                factor = cho_factor(correlations, lower=True)
            except LinAlgError:
                return
            if factor[0].diagonal().min() > LEAST_PIVOT:
                self._factor = factor

    def determines(self, right: list[int], square: int, shape: Sequence[int]) -> bool:
        """Whether products with the rows leave nothing of a square, modulo a random prime of 61 bits."""
        if not self._size:
            return square == 0
        prime, inverse = self._inverse or self._inverted(shape)
        along = inverse * nmod_mat(self._size, 1, right, prime)
        left = nmod(square, prime)
        for at, value in enumerate(right):
            left -= along[at, 0] * value
        return int(left) == 0

    def _inverted(self, shape: Sequence[int]) -> tuple[int, nmod_mat]:
        """A random prime, and the inverse modulo it, which is kept."""
        while self._inverse is None:
            [prime] = random_primes(1, shape, LEAST_LARGE_PRIME)
            with suppress(ZeroDivisionError):  # The rows are independent, but not modulo this one.
                self._inverse = prime, nmod_mat(self._matrix, prime).inv()
        return self._inverse

    def solve(self, right: list[int], scales: list[int], own: int) -> Vector:
        """The coefficients, times the rows' scales, over the query's own."""
        if self._factor is not None:
            found = self._refined(right)
            if found is not None:
                whole, power = found
                return np.array(
                    [_quotient(v * s, own << power) for v, s in zip(whole, scales, strict=True)]
                )
        exact = self._matrix.solve(fmpz_mat([[value] for value in right]))
        parts = ((int(exact[at, 0].p), int(exact[at, 0].q)) for at in range(self._size))
        return np.array([_quotient(p * s, q * own) for (p, q), s in zip(parts, scales, strict=True)])

    def _refined(self, right: list[int]) -> tuple[list[int], int] | None:
        """The solution as whole numbers over a power of 2; None where it does not settle."""
        power = 80 + max(root.bit_length() for root in self._roots)
        wanted = fmpz_mat([[value << power] for value in right])
        whole = [0] * self._size
        largest = 0.0
        for _ in range(MOST_STEPS):
            left = wanted - self._matrix * fmpz_mat([[value] for value in whole])
            rest = [_quotient(int(left[at, 0]), root << power) for at, root in enumerate(self._roots)]
            step = cho_solve(self._factor, np.array(rest))
            size = float(np.abs(step).max())
            largest = max(largest, size)
            if not math.isfinite(size):
                return None
            whole = [
                value + _rounded(change, power, root)
                for value, change, root in zip(whole, step.tolist(), self._roots, strict=True)
            ]
            if size <= 1e-17 * largest:
                return whole, power
        return None


def _rounded(change: float, power: int, root: int) -> int:
    """A double times a power of 2 over a root, as a whole number."""
    numerator, denominator = change.as_integer_ratio()
    return (numerator << power) // (denominator * root)


def _quotient(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if (numerator > 0) == (denominator > 0) else -math.inf


@lru_cache(maxsize=8192)
def _scale(row: LinearQuery) -> int:
    """The product of the sizes of all attributes that a row mentions."""
    levels = {level for product in products_of(row) for level in product.axes}
    return math.prod(row.domain.shape[level] for level in levels)


@lru_cache(maxsize=8192)
def _size(row: LinearQuery) -> int:
    """A bound on the root of a row's whole product with itself."""
    return int(row.primitive.max_abs) * _scale(row) * max(1, row.domain.shape[-1])


def random_primes(number: int, shape: Sequence[int], least: int = LEAST_PRIME) -> list[int]:
    """Different primes between a number and its double that divide no attribute's size, all alike."""
    found: list[int] = []
    for _ in count():
        candidate = least + secrets.randbelow(least)
        if candidate not in found and fmpz(candidate).is_prime() and all(n % candidate for n in shape):
            found.append(candidate)
            if len(found) == number:
                break
    return found
