"""Exact linear algebra over the open parts of measured rows: which queries they determine, and how.

Whether a query's open part is a combination of the rows' is decided modulo two random primes. A
remainder is a proof that it is not. If none is left, its coefficients follow, and are checked:

- Where they are small whole numbers, they are taken from the residues. What they leave of the open part
  has a square that is a whole number, of at most 530 bits in a table of 2^200 cells. It must be 0 modulo
  four more random primes, each one of 1.89 million. At most 530 / 25 of these divide it unless it is 0,
  so that all four do with a probability below 10^-19.
- Other coefficients follow from the rows' whole inner products. Their determinant, with the query, must
  be 0 modulo a random prime of 61 bits too. If it has a million bits, and is not 0, all three primes
  divide it with a probability below 10^-15; most have thousands of bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sharewell.mechanisms.exact_products import ExactProducts, random_primes
from sharewell.mechanisms.marginal_prior import MarginalPrior
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Products of residues, modulo a prime of 26 bits, with numbers of so many bits are summed exactly in
#: doubles, for up to 2^14 columns of a matrix.
LOW_BITS = 13
#: Changes of an inverse that are kept apart, until they are added in one matrix product.
MOST_PENDING = 64
#: Whole coefficients up to this size are taken from the residues, and checked modulo so many primes.
SIMPLE, CHECKS = 2**20, 4
#: The whole products of rows with larger weights are computed when they are bought: then only their
#: buyer waits for them.
HEAVY = 64


class Combination(NamedTuple):
    """Coefficients of some rows, by number."""

    rows: Integers
    factors: Vector


class OpenProducts(NamedTuple):
    """D modulo a prime, of queries with themselves, and of each with all rows."""

    squares: Integers
    with_rows: Integers

    def line(self, at: int) -> OpenProducts:
        """Those of one query."""
        return OpenProducts(self.squares[at : at + 1], self.with_rows[at : at + 1])


class Residues(NamedTuple):
    """Coefficients modulo a prime, a column for each query; and what they leave of its open square."""

    solutions: Integers
    left: Integers


NONE = Combination(np.zeros(0, dtype=np.int64), np.zeros(0))


class ModularInverse:
    """The inverse of a growing symmetric matrix modulo a prime. Immutable, so that copies share it.

    W + sum of u u' / s: a matrix, and the latest changes, each of rank one.
    """

    def __init__(self, prime: int) -> None:
        self.prime = prime
        self.size = 0
        self._base: Vector = np.zeros((0, 0))
        self._tails: Vector = np.zeros((0, 0))
        self._scales: Vector = np.zeros(0)

    def _reduced(self, values: Vector) -> Vector:
        """Whole numbers below 2^53 modulo the prime; the quotient may be rounded up, by one."""
        values = values - self.prime * np.floor(values / self.prime)
        return values + self.prime * (values < 0)

    def _product(self, matrix: Vector, other: Vector) -> Vector:
        """A product of residues, the second cut in two so that sums of products are exact."""
        high = np.floor(other / 2**LOW_BITS)
        low = other - high * 2**LOW_BITS
        high = self._reduced(matrix @ high) * 2**LOW_BITS
        return self._reduced(high + self._reduced(matrix @ low))

    def solve(self, right: Integers) -> Integers:
        """The inverse times every column of a matrix."""
        columns = right.astype(np.float64)
        total = np.zeros(columns.shape)
        known = len(self._base)
        total[:known] = self._product(self._base, columns[:known])
        if len(self._tails):
            along = self._reduced(self._product(self._tails, columns) * self._scales[:, None])
            total = self._reduced(total + self._product(self._tails.T, along))
        return total.astype(np.int64)

    def extended(self, solution: Integers, left: int) -> ModularInverse:
        """The inverse with one more row, from its solution, and what that leaves of its own square."""
        new = copy(self)
        new.size = self.size + 1
        tails = np.zeros((len(self._tails) + 1, new.size))
        tails[:-1, : self.size] = self._tails
        tails[-1, :-1], tails[-1, -1] = solution, self.prime - 1
        new._tails = tails
        new._scales = np.append(self._scales, float(pow(left, -1, self.prime)))
        return new._consolidated() if len(tails) >= MOST_PENDING else new

    def _consolidated(self) -> ModularInverse:
        new = copy(self)
        scaled = self._reduced(self._tails * self._scales[:, None])
        new._base = self._product(self._tails.T, scaled)
        known = len(self._base)
        new._base[:known, :known] = self._reduced(new._base[:known, :known] + self._base)
        new._tails, new._scales = np.zeros((0, self.size)), np.zeros(0)
        return new

    def exchanged(self, place: int, coefficients: Integers) -> ModularInverse:
        """The inverse after the row at a place is replaced by a combination of all of them."""
        new, p = self._consolidated(), self.prime
        scale = pow(int(coefficients[place]), -1, p)
        change = -coefficients * scale % p
        change[place] = (scale - 1) % p
        part = change.astype(np.float64)[None, :]
        base = new._base
        base = self._reduced(base + self._product(base[:, [place]], part))
        new._base = self._reduced(base + self._product(part.T, base[[place], :]))
        return new


class OpenParts:
    """The open parts of rows, a largest independent set of them, and exact coefficients in that set."""

    def __init__(self, prior: MarginalPrior) -> None:
        self._prior = prior
        self._queries: list[LinearQuery] = []
        #: The rows of the independent set, by number, in the order of the inverses.
        self.basis: list[int] = []
        self._exact: ExactProducts | None = None
        self._lock = Lock()
        self._start()

    def _start(self) -> None:
        """Begin with new primes, which no earlier row can have been chosen for."""
        primes = random_primes(2 + CHECKS, self._prior.domain.shape)
        self._primes, self._checks = primes[:2], primes[2:]
        self.rows = self._prior.rows(primes)
        self._inverses = [ModularInverse(prime) for prime in self._primes]

    def copy(self) -> OpenParts:
        """A copy that grows on its own."""
        new = copy(self)
        new._queries, new.basis = list(self._queries), list(self.basis)
        new.rows = self.rows.copy()
        new._inverses = list(self._inverses)
        with self._lock:
            new._exact = self._exact.copy() if self._exact else None
        new._lock = Lock()
        return new

    def append(self, queries: Sequence[LinearQuery]) -> list[Combination | None]:
        """Add rows: their open parts' coefficients in the independent set, or None where one joins it.

        What they have in common is computed for all together. Simple coefficients are checked together
        too, at the end: a row that the first primes deceived about is then decided about alone.
        """
        first = len(self._queries)
        self._queries += queries
        for query in queries:
            self.rows.append(query)
        found: list[Combination | None] = [NONE] * len(queries)
        places = [at for at, query in enumerate(queries) if not self._prior.determines(query)]
        simple, products, primes = list[int](), list[OpenProducts](), None
        for line, at in enumerate(places):
            if primes is not self._primes:  # At first, and after a restart.
                primes, chosen = self._primes, [queries[each] for each in places]
                products = [self._open_products(chosen, which) for which in range(len(primes))]
            residues = [self._solutions(each.line(line), which) for which, each in enumerate(products)]
            if any(each.left.item() for each in residues):
                found[at] = None
                self._join(first + at, residues)
                continue
            support, guess = self._guessed([each.solutions[:, 0] for each in residues])
            simple += [at] if guess else []
            found[at] = guess or self._solved(queries[at], support)
            if found[at] is None:
                self._join(first + at, residues)
        wrong = self._leave_something([queries[at] for at in simple], [found[at] for at in simple])
        for place in wrong:
            found[simple[place]] = self._decided(first + simple[place])
        return found

    def _decided(self, row: int) -> Combination | None:
        """The coefficients of one stored row; it joins the independent set where there are none."""
        residues = self._all_residues(self._queries[row])
        found = None
        if not any(each.left.item() for each in residues):
            [found] = self._checked([self._queries[row]], [[each.solutions[:, 0] for each in residues]])
        if found is None:
            self._join(row, residues)
        return found

    def combinations(self, queries: Sequence[LinearQuery]) -> list[Combination | None]:
        """The coefficients of the queries' open parts; None where the rows do not determine one."""
        found = [NONE if self._prior.determines(query) else None for query in queries]
        places = [at for at, each in enumerate(found) if each is None]
        residues: dict[int, list[Integers]] = {at: [] for at in places}
        for which in range(len(self._primes)):
            solutions, left = self._residues([queries[at] for at in places], which)
            for column in np.flatnonzero(left == 0).tolist():
                residues[places[column]].append(solutions[:, column])
            places = [at for at in places if len(residues[at]) > which]
        checked = self._checked([queries[at] for at in places], [residues[at] for at in places])
        for at, combination in zip(places, checked, strict=True):
            found[at] = combination
        return found

    def _checked(
        self, queries: Sequence[LinearQuery], residues: Sequence[Sequence[Integers]]
    ) -> list[Combination | None]:
        """The coefficients that leave nothing modulo two primes; None where they leave something."""
        guesses = [self._guessed(both) for both in residues]
        found = [guess for _, guess in guesses]
        simple = [at for at, guess in enumerate(found) if guess]
        wrong = self._leave_something([queries[at] for at in simple], [found[at] for at in simple])
        for at in {*range(len(queries))} - {*simple} | {simple[place] for place in wrong}:
            found[at] = self._solved(queries[at], guesses[at][0])
        return found

    def _guessed(self, residues: Sequence[Integers]) -> tuple[Integers, Combination | None]:
        """The rows that have coefficients; and these, where they are small whole numbers."""
        first, second = (
            np.where(2 * part > prime, part - prime, part)
            for part, prime in zip(residues, self._primes, strict=True)
        )
        places = np.flatnonzero((first != 0) | (second != 0))
        support = np.array(self.basis, dtype=np.int64)[places]
        if ((first == second) & (np.abs(first) <= SIMPLE))[places].all():
            return support, Combination(support, first[places].astype(np.float64))
        return support, None

    def _leave_something(
        self, queries: Sequence[LinearQuery], combinations: Sequence[Combination | None]
    ) -> list[int]:
        """The places of queries that have an open part beside whole combinations, modulo the checks."""
        if not queries:
            return []
        rows = [each.rows for each in combinations if each]
        support = np.unique(np.concatenate(rows))
        factors = np.zeros((len(queries), len(support)), dtype=np.int64)
        for line, each in zip(factors, combinations, strict=True):
            if each:
                line[np.searchsorted(support, each.rows)] = each.factors
        members = [self._queries[row] for row in support.tolist()]
        wrong = np.zeros(len(queries), dtype=bool)
        for which, prime in enumerate(self._checks, len(self._primes)):
            shared = self.rows.open_products(queries, which)[:, support]
            among = factors @ self.rows.open_products(members, which)[:, support]
            taken = (2 * shared - among) % prime * (factors % prime) % prime
            left = self._prior.open_squares(queries, prime) - taken.sum(axis=1)
            wrong |= left % prime != 0
        return np.flatnonzero(wrong).tolist()

    def exchange(self, leaving: int, entering: int) -> None:
        """Put a row into the independent set in place of one that it depends on."""
        place = self.basis.index(leaving)
        found = self._all_residues(self._queries[entering])
        solutions = [each.solutions[:, 0] for each in found]
        self.basis[place] = entering
        if all(solution[place] for solution in solutions):
            pairs = zip(self._inverses, solutions, strict=True)
            self._inverses = [inverse.exchanged(place, solution) for inverse, solution in pairs]
        else:
            self._restart()

    def _open_products(self, queries: Sequence[LinearQuery], which: int) -> OpenProducts:
        squares = self._prior.open_squares(queries, self._primes[which])
        return OpenProducts(squares, self.rows.open_products(queries, which))

    def _residues(self, queries: Sequence[LinearQuery], which: int) -> Residues:
        return self._solutions(self._open_products(queries, which), which)

    def _solutions(self, found: OpenProducts, which: int) -> Residues:
        """The coefficients of queries in the independent set, and what is left of them."""
        if not self.basis or not len(found.squares):
            return Residues(
                np.zeros((len(self.basis), len(found.squares)), dtype=np.int64), found.squares
            )
        prime, products = self._primes[which], found.with_rows[:, self.basis].T
        solutions = self._inverses[which].solve(products)
        taken = (products * solutions % prime).sum(axis=0)
        return Residues(solutions, (found.squares - taken) % prime)

    def _all_residues(self, query: LinearQuery) -> list[Residues]:
        return [self._residues([query], which) for which in range(len(self._primes))]

    def _join(self, row: int, found: Sequence[Residues]) -> None:
        """Let an independent row join the set; if it is not independent modulo a prime, change that."""
        self.basis.append(row)
        if (query := self._queries[row]).max_abs > HEAVY:
            with self._lock:
                self._products().place(query)
        if all(each.left.item() for each in found):
            self._inverses = [
                inverse.extended(each.solutions[:, 0], each.left.item())
                for inverse, each in zip(self._inverses, found, strict=True)
            ]
        else:
            self._restart()

    def _restart(self) -> None:
        """Compute everything again modulo other primes."""
        members, self.basis = self.basis, []
        self._start()
        for query in self._queries:
            self.rows.append(query)
        for row in members:
            self._join(row, self._all_residues(self._queries[row]))

    # Coefficients that are no simple fractions

    def _solved(self, query: LinearQuery, numbers: Integers) -> Combination | None:
        """The coefficients of a query in rows; None where it does not depend on them."""
        rows = [self._queries[row] for row in numbers.tolist()]
        with self._lock:  # Several threads may read one copy.
            factors = self._products().solve(query, rows)
        return None if factors is None else Combination(numbers, factors)

    def _products(self) -> ExactProducts:
        if self._exact is None:
            self._exact = ExactProducts(self._prior)
        return self._exact
