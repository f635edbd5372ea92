"""Seeds that are sets of marginals or products: for tables of any width, without a vector of cells."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sharewell.errors import QueryError
from sharewell.mechanisms.products import products_of
from sharewell.mechanisms.strategy import Rows
from sharewell.privacy.kronecker import Centred, Factors, Matrix
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]


class MarginalPart(NamedTuple):
    """Rows over some attributes of one data vector, by position, and their share of a donation.

    They are a marginal, or centred along every attribute; or a Kronecker product of the `rows` given for
    each of them, where None stands for centred ones.
    """

    attributes: tuple[int, ...]
    vector: int
    weight: Fraction
    centred: bool = False
    rows: tuple[Rows | None, ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """What is measured: the same for two parts that differ in weight only."""
        rows = tuple(each and each.key for each in self.rows)
        return self.attributes, self.vector, self.centred, rows

    def matrices(self, shape: Sequence[int]) -> tuple[Matrix, ...]:
        """The matrix along each of the attributes."""
        if not self.rows:
            return tuple(Centred(shape[at]) if self.centred else None for at in self.attributes)
        pairs = zip(self.attributes, self.rows, strict=True)
        return tuple(Centred(shape[at]) if rows is None else rows.matrix for at, rows in pairs)

    @property
    def mask(self) -> int:
        """The attributes, one bit each."""
        return sum(1 << level for level in self.attributes)


@dataclass(frozen=True, eq=False)
class MarginalSeed:
    """Marginals to measure at the start, each for its share of the donations: the weights sum to 1."""

    kind = "composed"
    #: With a plan for each donor.
    planned_kind = "planned"

    domain: Domain
    parts: tuple[MarginalPart, ...]
    name: str
    #: Where every donor has a plan of their own: by donor, their weight of each part.
    plans: Mapping[str, tuple[Fraction, ...]] | None = None

    def __post_init__(self) -> None:
        levels = range(len(self.domain.attributes))
        if not self.parts or sum(part.weight for part in self.parts) != 1:
            raise QueryError("The weights of a seed's marginals must sum to 1.")
        if len({part.key for part in self.parts}) < len(self.parts):
            raise QueryError("A seed names a marginal twice.", hint="Give it the sum of both weights.")
        for part in self.parts:
            if list(part.attributes) != sorted({*part.attributes} & {*levels}):
                raise QueryError(
                    f"A seed's marginal over {part.attributes} does not name attributes in order."
                )
            sizes = [self.domain.shape[at] for at in part.attributes]
            fit = [n if rows is None else rows.size for rows, n in zip(part.rows, sizes, strict=False)]
            if part.rows and (fit != sizes or part.centred):
                raise QueryError("The rows of a seed's part do not fit its attributes.")
            if part.weight <= 0 or not 0 <= part.vector < self.vectors:
                raise QueryError("A seed's marginal needs a positive weight and a vector of the domain.")

    @classmethod
    def of(
        cls,
        domain: Domain,
        sets: Iterable[Sequence[str | int]],
        *,
        weights: Sequence[Fraction | int] | None = None,
        vectors: Sequence[int] | None = None,
        name: str | None = None,
    ) -> MarginalSeed:
        """Marginals over sets of attributes, by name or position; with equal weights by default.

        Weights are relative. Each set is measured for all these data vectors, by default the count.
        """
        positions = [
            tuple(sorted(domain.index(each) if isinstance(each, str) else each for each in chosen))
            for chosen in sets
        ]
        shares = [Fraction(1)] * len(positions) if weights is None else list(map(Fraction, weights))
        wanted = [0] if vectors is None else list(vectors)
        total = sum(shares, Fraction(0)) * len(wanted)
        parts = tuple(
            MarginalPart(chosen, vector, share / total)
            for vector in wanted
            for chosen, share in zip(positions, shares, strict=True)
        )
        return cls(domain, parts, name or f"marginals of {len(positions)} sets")

    @property
    def vectors(self) -> int:
        """How many data vectors the domain has: 1 where it has no measures."""
        return self.domain.vectors

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of rows of each part."""
        shape = self.domain.shape
        return tuple(
            math.prod(
                shape[at] if matrix is None else matrix.shape[0]
                for at, matrix in zip(part.attributes, part.matrices(shape), strict=True)
            )
            for part in self.parts
        )

    def __len__(self) -> int:
        return sum(self.sizes)

    def __repr__(self) -> str:
        return f"MarginalSeed({self.name}, {len(self):,} rows)"

    @cached_property
    def products(self) -> tuple[tuple[Factors, Fraction], ...]:
        """What the kernel measures: for each part a matrix by level, and its fraction of the cost.

        The unit matrix is None, a level that is left out is summed. The last level holds data vectors.
        """
        return tuple((self.factors_of(part), part.weight) for part in self.parts)

    def factors_of(self, part: MarginalPart) -> Factors:
        """The matrices of a part, by level."""
        factors: dict[int, Matrix] = dict(
            zip(part.attributes, part.matrices(self.domain.shape), strict=True)
        )
        if self.domain.measures:
            chosen = np.zeros((1, self.vectors), dtype=np.int64)
            chosen[0, part.vector] = 1
            factors[len(self.domain.attributes)] = sp.csr_array(chosen)
        return factors

    def kind_of(self, part: MarginalPart) -> tuple[Any, ...]:
        """What the sensitivity of a part depends on: not on which attributes have its sizes."""
        if part.rows:
            return part.key
        sizes = tuple(sorted(self.domain.shape[at] for at in part.attributes))
        return sizes, part.vector, part.centred

    def bought_by(self, bill: Mapping[str, Any]) -> MarginalSeed:
        """The same rows, for every donor."""
        return self

    def row_of(self, query: LinearQuery) -> int | None:
        """The position of a query among the rows, part after part; None where it is not one of them.

        Of a planned seed no row counts: which rows it has depends on who donates.
        """
        found = marginal_cell(query) if self.plans is None else None
        if found is None:
            return None
        mask, vector, at = found
        start = self._starts.get((mask, vector))
        return None if start is None else start + at

    @cached_property
    def _starts(self) -> dict[tuple[int, int], int]:
        """The position of each part's first row, by marginal and data vector."""
        starts = accumulate(self.sizes[:-1], initial=0)
        pairs = zip(self.parts, starts, strict=True)
        # The total is the same row, centred or not.
        return {
            (part.mask, part.vector): start
            for part, start in pairs
            if not part.rows and not (part.centred and part.attributes)
        }

    @cached_property
    def _places(self) -> tuple[list[tuple[int, int]], list[int]]:
        """The marginals and data vectors of `_starts`, and their first rows."""
        return list(self._starts), list(self._starts.values())

    def place_of(self, row: int) -> tuple[int, int, int]:
        """The marginal, one bit for each attribute, the data vector and the position there of a row."""
        keys, starts = self._places
        at = bisect_right(starts, row) - 1
        return *keys[at], row - starts[at]

    def to_json(self) -> dict[str, Any]:
        """The seed as plain data, in the form in which the kernel stores it."""
        shape, last = self.domain.shape, len(self.domain.attributes)
        parts = []
        for part in self.parts:
            factors: list[Any] = []
            for at, level in enumerate(part.attributes):
                rows = part.rows[at] if part.rows else None
                centred = {"centred" if part.centred or part.rows else "unit": shape[level]}
                factors.append([level, centred if rows is None else rows.to_json()])
            if self.domain.measures:
                csr = [[0, 1], [part.vector], [1]]
                factors.append([last, {"size": self.vectors, "csr": csr}])
            parts.append({"fraction": str(part.weight), "factors": factors})
        form = {"kind": self.kind, "name": self.name, "parts": parts}
        if self.plans is None:
            return form
        plans = {donor: [str(weight) for weight in plan] for donor, plan in self.plans.items()}
        return form | {"kind": self.planned_kind, "plans": plans}

    @classmethod
    def from_json(cls, domain: Domain, data: Mapping[str, Any]) -> MarginalSeed:
        """The seed that `to_json` wrote."""
        last, parts = len(domain.attributes), []
        for part in data["parts"]:
            factors = dict(part["factors"])
            vector = factors.pop(last)["csr"][1][0] if last in factors else 0
            forms, weight = list(factors.values()), Fraction(part["fraction"])
            centred = bool(forms) and all("centred" in form for form in forms)
            rows: tuple[Rows | None, ...] = ()
            if not centred and not all("unit" in form for form in forms):
                rows = tuple(None if "centred" in form else Rows.from_json(form) for form in forms)
            parts.append(MarginalPart(tuple(factors), vector, weight, centred, rows))
        stored = data.get("plans")
        plans = stored and {who: tuple(map(Fraction, plan)) for who, plan in stored.items()}
        seed = cls(domain, tuple(parts), data["name"], plans)
        if seed.to_json() != data:
            raise QueryError("A stored seed is not a set of marginals.")
        return seed


def marginal_cell(query: LinearQuery) -> tuple[int, int, int] | None:
    """The marginal, data vector and row there, where a query counts one cell of a marginal."""
    found = products_of(query)
    if query.scale != 1 or len(found) != 1 or found[0].factor != 1:
        return None
    at = 0
    for axis in found[0].axes.values():
        if (cell := axis.cell) is None:
            return None
        at = at * axis.size + cell
    return found[0].mentioned, found[0].vector, at


def submasks(mask: int) -> Iterator[int]:
    """All subsets of a set of bits, itself included."""
    chosen = mask
    while True:
        yield chosen
        if not chosen:
            return
        chosen = (chosen - 1) & mask
