"""Exact linear algebra over measured rows: which rows are independent, and which queries they determine.

Weights are whole numbers, so whether a query is a combination of rows has an exact answer. It is found
by p-adic lifting (Dixon 1982): solve modulo a prime, subtract, divide by the prime, and go on until
nothing is left, or until something is left that the rows do not reach.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Whole numbers by position, without the zeros.
Sparse = dict[int, int]

#: Any prime gives the same results; one that divides an unlucky determinant is replaced.
FIRST_PRIME = 2**61 - 1


class Combination(NamedTuple):
    """Exact coefficients of some rows: whole numbers over a common denominator, which is positive."""

    factors: Sparse
    denominator: int

    @classmethod
    def reduced(cls, factors: Sparse, denominator: int) -> Combination:
        """The combination in lowest terms, without zeros."""
        divisor = math.gcd(denominator, *factors.values())
        divisor = -divisor if denominator < 0 else divisor
        return cls({at: f // divisor for at, f in factors.items() if f}, denominator // divisor)

    def size(self, at: int) -> float:
        """The size of one coefficient."""
        try:
            return abs(self.factors[at] / self.denominator)
        except OverflowError:
            return math.inf


class RowBasis:
    """Rows of whole numbers, a largest independent set of them, and exact coefficients in that set.

    Cells that no row tells apart form one class, so the work depends on the rows and not on the domain.
    """

    def __init__(self, cells: int) -> None:
        #: Every row, by class.
        self.rows: list[Sparse] = []
        self._prime = FIRST_PRIME
        self._class_of: NDArray[np.int64] = np.zeros(cells, dtype=np.int64)
        self._sizes = [cells]
        self._first_cell = [0]
        #: One class for each row of the basis, and modulo the prime the inverse of the square matrix
        #: over these classes: the coefficients of the class's own unit vector.
        self._inverse: dict[int, Sparse] = {}
        #: The logarithm of every row's largest weight, to base 2.
        self._bits: list[float] = []

    def copy(self) -> RowBasis:
        """A copy that can grow on its own."""
        new = copy(self)
        new.rows = [row.copy() for row in self.rows]
        new._bits = list(self._bits)
        new._class_of = self._class_of.copy()
        new._sizes, new._first_cell = list(self._sizes), list(self._first_cell)
        new._inverse = {pivot: part.copy() for pivot, part in self._inverse.items()}
        return new

    def append(self, vector: NDArray[Any]) -> Combination | None:
        """Add a row: its coefficients in the basis, or None where it joins the basis."""
        self._split_classes(vector)
        by_class = vector[self._first_cell].tolist()
        row = {at: weight for at, weight in enumerate(by_class) if weight}
        found = self._solve(row)
        self.rows.append(row)
        self._bits.append(math.log2(max(map(abs, row.values()), default=1)))
        if found is None:
            self._extend(len(self.rows) - 1)
        return found

    def coefficients(self, vector: NDArray[Any]) -> Combination | None:
        """A query's exact coefficients in the basis; None where the rows do not determine it."""
        by_class = vector[self._first_cell]
        if not np.array_equal(by_class[self._class_of], vector):
            return None  # It tells cells apart that no row does.
        used = np.flatnonzero(by_class)
        return self._solve(dict(zip(used.tolist(), by_class[used].tolist(), strict=True)))

    def steps(self) -> float:
        """About how many products of whole numbers it takes to solve for a query.

        A digit takes one for every number in the rows and in their inverse. Coefficients are quotients
        of determinants over the rows that a query depends on. For each of these rows a determinant has
        about as many bits as its largest weight, and half a bit for every doubling of its length.
        """
        if not self._inverse:
            return 0.0
        inverse = sum(map(len, self._inverse.values()))
        rows_of_query = math.ceil(inverse / len(self._inverse))
        lengths = [len(row) for row in self.rows]
        bits = [
            b + max(0.0, math.log2(n or 1) / 2 - 1) for b, n in zip(self._bits, lengths, strict=True)
        ]
        digits = 1 + 2 * sum(sorted(bits)[-rows_of_query:]) / math.log2(self._prime)
        return digits * (inverse + sum(lengths))

    def matrix(self) -> NDArray[np.float64]:
        """All rows, written out over the cells."""
        by_class = np.zeros((len(self.rows), len(self._sizes)))
        for at, row in enumerate(self.rows):
            by_class[at, list(row)] = list(row.values())
        return by_class[:, self._class_of]

    def exchange(self, leaving: int, entering: int, combination: Combination) -> None:
        """Put a row into the basis in place of one that it depends on."""
        prime, others = self._prime, dict(combination.factors)
        pivot = others.pop(leaving)
        if pivot % prime == 0:
            self._rebuild([*sorted(self._members() - {leaving}), entering])
            return
        scale = pow(pivot, -1, prime)
        for part in self._inverse.values():
            if leaving in part:
                factor = part.pop(leaving) * scale % prime
                _add(part, -factor, others, prime)
                part[entering] = factor * combination.denominator % prime

    def _split_classes(self, vector: NDArray[Any]) -> None:
        """Split every class whose cells a new row weighs differently."""
        used = np.flatnonzero(vector)
        pairs, which, counts = np.unique(
            np.stack([self._class_of[used], vector[used]]),
            axis=1,
            return_inverse=True,
            return_counts=True,
        )
        which = which.ravel()
        for at, (old, count) in enumerate(zip(pairs[0].tolist(), counts.tolist(), strict=True)):
            if count == self._sizes[old]:
                continue
            new, cells = len(self._sizes), used[which == at]
            self._class_of[cells] = new
            self._sizes[old] -= count
            self._sizes.append(count)
            self._first_cell.append(int(cells[0]))
            if self._class_of[self._first_cell[old]] == new:
                self._first_cell[old] = int(np.argmax(self._class_of == old))
            for row in self.rows:
                if old in row:
                    row[new] = row[old]

    def _solve(self, weights: Sparse) -> Combination | None:
        """The exact coefficients of weights; None where they are no combination of the basis.

        Digit by digit in base p. Whole coefficients end when nothing is left; fractions repeat, and are
        recognized once there are enough digits. Weights outside the span leave a rest that p does not
        divide, sooner or later; the basis is independent modulo p, so no denominator contains p.
        """
        prime, power, digits, enough = self._prime, 1, 0, 1
        rest, total = weights, Sparse()
        while rest:
            digit = self._digit(rest)
            left = self._minus(rest, digit)
            if any(weight % prime for weight in left.values()):
                return None
            rest = {at: weight // prime for at, weight in left.items()}
            for at, value in digit.items():
                total[at] = total.get(at, 0) + power * value
            power, digits = power * prime, digits + 1
            if rest and digits == enough:
                if found := self._fractions(weights, total, power):
                    return found
                enough += 1 + digits // 4
        return Combination({at: value for at, value in total.items() if value}, 1)

    def _digit(self, weights: Sparse) -> Sparse:
        """Coefficients modulo the prime, from the weights in the pivot classes; nearest to 0."""
        prime, half, found = self._prime, self._prime // 2, Sparse()
        for at, weight in weights.items():
            if at in self._inverse:
                weight %= prime
                for row, value in self._inverse[at].items():
                    found[row] = found.get(row, 0) + weight * value
        return {row: (c + half) % prime - half for row, c in found.items() if c % prime}

    def _minus(self, weights: Sparse, coefficients: Sparse) -> Sparse:
        left = dict(weights)
        for at, factor in coefficients.items():
            for cell, weight in self.rows[at].items():
                left[cell] = left.get(cell, 0) - factor * weight
        return {cell: weight for cell, weight in left.items() if weight}

    def _fractions(self, weights: Sparse, total: Sparse, power: int) -> Combination | None:
        """The fractions with these digits, if they solve for the weights exactly.

        With too few digits the denominators have nothing in common, and their product soon exceeds any
        that these digits can tell.
        """
        denominator, bound = 1, math.isqrt(power // 2)
        for value in total.values():
            denominator *= _denominator(value * denominator % power, power)
            if denominator > bound:
                return None
        whole = {at: value * denominator % power for at, value in total.items()}
        whole = {at: value - power if 2 * value > power else value for at, value in whole.items()}
        if self._minus({at: weight * denominator for at, weight in weights.items()}, whole):
            return None
        return Combination.reduced(whole, denominator)

    def _extend(self, new: int) -> None:
        """Let an independent row join the basis."""
        prime = self._prime
        digit = self._digit(self.rows[new])
        left = {at: rest for at, w in self._minus(self.rows[new], digit).items() if (rest := w % prime)}
        if not left:  # Independent, but not modulo this prime.
            self._rebuild([*sorted(self._members()), new])
            return
        pivot = min(left)
        scale = pow(left[pivot], -1, prime)
        column = {at: row[pivot] for at, row in enumerate(self.rows) if pivot in row}
        for part in self._inverse.values():
            common = part.keys() & column.keys()
            factor = sum(part[at] * column[at] for at in common) * scale % prime
            if factor:
                _add(part, factor, digit, prime)
                part[new] = prime - factor
        own = {at: -c * scale % prime for at, c in digit.items()}
        self._inverse[pivot] = {**own, new: scale}

    def _members(self) -> set[int]:
        """The rows of the basis."""
        return set().union(*self._inverse.values())

    def _rebuild(self, members: list[int]) -> None:
        """Begin the inverse anew, modulo the next smaller prime."""
        self._prime = next(n for n in range(self._prime - 2, 2, -2) if _is_prime(n))
        self._inverse = {}
        for at in members:
            self._extend(at)


def _add(part: Sparse, factor: int, other: Mapping[int, int], prime: int) -> None:
    """Add a multiple of another vector, modulo a prime, in place."""
    for at, value in other.items():
        total = (part.get(at, 0) + factor * value) % prime
        if total:
            part[at] = total
        else:
            part.pop(at, None)


def _denominator(value: int, modulus: int) -> int:
    """The denominator of the smallest fraction that is equal to a value modulo a number."""
    bound = math.isqrt(modulus // 2)
    last, now, before, found = modulus, value, 0, 1
    while now > bound:
        quotient = last // now
        last, now = now, last - quotient * now
        before, found = found, before - quotient * found
    return abs(found)


def _is_prime(number: int) -> bool:
    """Miller and Rabin's test, which is exact with these bases up to 3 * 10^24."""
    odd = number - 1
    twos = (odd & -odd).bit_length() - 1
    odd >>= twos
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41):
        power = pow(base, odd, number)
        if power in (1, number - 1) or number == base:
            continue
        if all((power := power * power % number) != number - 1 for _ in range(twos - 1)):
            return False
    return True
