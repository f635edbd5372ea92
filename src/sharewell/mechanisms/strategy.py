"""Strategies: sets of queries worth measuring at the start, from which all others are reconstructed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sharewell.errors import QueryError
from sharewell.mechanisms.kronecker import ONES, UNIT, Factor, KroneckerSum
from sharewell.query.block import Neighbours
from sharewell.query.diagram import MAX_WEIGHT, Node
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: Of how many queries a strategy remembers their position.
MOST_PLACES = 4096


@dataclass(frozen=True, eq=False)
class Rows:
    """Whole-number rows over one attribute's cells; `None` stands for the unit matrix."""

    size: int
    matrix: sp.csr_array | None = None

    def __post_init__(self) -> None:
        if self.matrix is not None and not np.issubdtype(self.matrix.dtype, np.integer):
            raise QueryError("The rows of a strategy must have whole-number weights.")

    @cached_property
    def count(self) -> int:
        """How many rows there are."""
        return self.size if self.matrix is None else int(self.matrix.shape[0])

    @cached_property
    def key(self) -> str:
        """The same text for the same rows."""
        return json.dumps(self.to_json())

    @property
    def is_total(self) -> bool:
        """Whether there is one row, and it counts everything."""
        return self.matrix is not None and self.count == 1 and bool((self.matrix.toarray() == 1).all())

    def times(self, array: NDArray[Any], axis: int, *, back: bool = False) -> NDArray[Any]:
        """The rows times an array along an axis, or with `back` their transpose."""
        if self.matrix is None:
            return array
        matrix = self.matrix.T if back else self.matrix
        moved = np.moveaxis(array, axis, 0)
        result = matrix @ moved.reshape(moved.shape[0], -1)
        return np.moveaxis(result.reshape(-1, *moved.shape[1:]), 0, axis)

    def norms(self, power: int) -> NDArray[np.int64]:
        """Every column's sum of absolute weights to a power."""
        if self.matrix is None:
            return np.ones(self.size, dtype=np.int64)
        if self.largest**power * self.count >= 2**62:
            raise QueryError("A strategy's weights are too large to be added up in 64 bits.")
        return np.asarray((abs(self.matrix) ** power).sum(axis=0), dtype=np.int64).ravel()

    @property
    def largest(self) -> int:
        """The largest absolute weight."""
        return 1 if self.matrix is None else int(abs(self.matrix.data).max())

    @cached_property
    def gram(self) -> NDArray[np.float64]:
        """The rows' transpose times the rows."""
        if self.matrix is None:
            return np.eye(self.size)
        return np.asarray((self.matrix.T @ self.matrix).toarray(), dtype=np.float64)

    @cached_property
    def inverse(self) -> Factor | None:
        """The inverse of the Gram matrix; None where the rows leave something undetermined."""
        if self.matrix is None:
            return UNIT
        if self.count < self.size or np.linalg.matrix_rank(self.gram) < self.size:
            return None
        inverse = np.linalg.inv(self.gram)
        return Factor("dense", (inverse + inverse.T) / 2)

    @cached_property
    def positions(self) -> dict[bytes, int]:
        """Where each row stands."""
        dense = np.eye(self.size, dtype=np.int64) if self.matrix is None else self.matrix.toarray()
        return {row.astype(np.int64).tobytes(): at for at, row in reversed(list(enumerate(dense)))}

    def find(self, node: Node) -> int | None:
        """The position of the row with a node's weights."""
        if self.matrix is not None:
            lengths = np.diff(node.starts, append=node.size)
            return self.positions.get(np.repeat(node.weights, lengths).tobytes())
        first, end = node.span
        return first if end == first + 1 and node.weights.max() == 1 else None

    def to_json(self) -> Any:
        """The rows as plain data."""
        if self.matrix is None:
            return {"unit": self.size}
        parts = (self.matrix.indptr, self.matrix.indices, self.matrix.data)
        return {"size": self.size, "csr": [part.tolist() for part in parts]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Rows:
        """The rows that `to_json` wrote."""
        if "unit" in data:
            return cls(data["unit"])
        indptr, indices, weights = (np.array(part, dtype=np.int64) for part in data["csr"])
        return cls(
            data["size"], sp.csr_array((weights, indices, indptr), shape=(len(indptr) - 1, data["size"]))
        )


@dataclass(frozen=True, eq=False)
class Strategy:
    """A stack of parts, each the Kronecker product of rows over every attribute.

    Most strategies have one part; marginals have one per marginal. All rows get the same noise.
    """

    kind = "strategy"

    domain: Domain
    parts: tuple[tuple[Rows, ...], ...]
    name: str
    #: What `row_of` has found so far; the same queries are looked for again and again.
    _places: dict[str, int | None] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return sum(self.sizes)

    def __repr__(self) -> str:
        return f"Strategy({self.name}, {len(self):,} rows over {self.domain.size:,} cells)"

    @cached_property
    def sizes(self) -> list[int]:
        """The number of rows of each part."""
        return [prod(rows.count for rows in part) for part in self.parts]

    def units(self, neighbours: Neighbours) -> NDArray[np.int64]:
        """1 for every row: all get the same noise."""
        return np.ones(len(self), dtype=np.int64)

    def bought_by(self, bill: Mapping[str, Any]) -> Strategy:
        """The same rows, for every donor."""
        return self

    @property
    def is_identity(self) -> bool:
        """Whether the rows are the cells."""
        return len(self.parts) == 1 and all(rows.matrix is None for rows in self.parts[0])

    @cached_property
    def marginals(self) -> list[int] | None:
        """The attributes of each part, one bit each, where all parts are marginals; None otherwise.

        A row that adds up counts and the sums of measures is no marginal of any of them.
        """
        if self.domain.measures or any(
            not (rows.matrix is None or rows.is_total) for part in self.parts for rows in part
        ):
            return None
        return [
            sum(1 << at for at, rows in enumerate(part) if rows.matrix is None) for part in self.parts
        ]

    @cached_property
    def determines_all(self) -> bool:
        """Whether every query can be reconstructed from the rows."""
        if self.marginals is not None:
            return (1 << len(self.domain.shape)) - 1 in self.marginals
        return self.covariance is not None

    @property
    def matrix(self) -> sp.csr_array:
        """All rows, as one sparse matrix over the cells."""
        parts = []
        for part in self.parts:
            factors = [
                sp.eye_array(r.size, dtype=np.int64) if r.matrix is None else r.matrix for r in part
            ]
            parts.append(reduce(lambda left, right: sp.kron(left, right, format="csr"), factors))
        return sp.csr_array(sp.vstack(parts, format="csr"))

    def answers(self, array: NDArray[Any]) -> NDArray[Any]:
        """Every row's exact answer on a dense array."""
        return np.concatenate([self._forth(part, array) for part in self.parts])

    def _forth(self, part: Sequence[Rows], array: NDArray[Any]) -> NDArray[Any]:
        tensor = array.reshape(self.domain.shape)
        for level, rows in enumerate(part):
            tensor = rows.times(tensor, level)
        return tensor.ravel()

    def back(self, values: NDArray[Any]) -> NDArray[Any]:
        """The rows' transpose times one value per row, as a tensor over the domain."""
        total = np.zeros(self.domain.shape)
        for part, piece in zip(self.parts, np.split(values, np.cumsum(self.sizes)[:-1]), strict=True):
            tensor = piece.reshape([rows.count for rows in part])
            for level, rows in enumerate(part):
                tensor = rows.times(tensor, level, back=True)
            total += tensor
        return total

    def l1_sensitivity(self, neighbours: Neighbours) -> int:
        """A bound on what one row of the table changes: the largest column, twice under replace-one.

        Exact under add-remove for one part, where columns are products of the attributes' columns.
        """
        return self._largest(1) * (1 if neighbours == "add-remove" else 2)

    def l2_sensitivity_squared(self, neighbours: Neighbours) -> int:
        """The same for squares; two columns without negative weights are at most this far apart."""
        signed = any(r.matrix is not None and (r.matrix.data < 0).any() for p in self.parts for r in p)
        return self._largest(2) * (1 if neighbours == "add-remove" else 4 if signed else 2)

    def _largest(self, power: int) -> int:
        if any(prod(rows.largest for rows in part) > MAX_WEIGHT for part in self.parts):
            raise QueryError(f"A strategy's weights must stay within {MAX_WEIGHT:,} of zero.")
        return sum(prod(int(rows.norms(power).max()) for rows in part) for part in self.parts)

    def row_of(self, query: LinearQuery) -> int | None:
        """The position of a query among the rows; None where it is not one of them."""
        try:
            return self._places[query.key]
        except KeyError:
            found = self._find(query)
        if len(self._places) >= MOST_PLACES:
            self._places.clear()
        self._places[query.key] = found
        return found

    def _find(self, query: LinearQuery) -> int | None:
        nodes, node = [], query.root
        while node is not None and len(node.children) == 1:
            nodes.append(node)
            node = node.children[0]
        if len(nodes) < len(self.domain.shape) or query.scale != 1:
            return None
        start = 0
        for part, size in zip(self.parts, self.sizes, strict=True):
            found = [rows.find(node) for rows, node in zip(part, nodes, strict=True)]
            if None not in found:
                return start + int(np.ravel_multi_index(found, [rows.count for rows in part]))  # type: ignore[arg-type]
            start += size
        return None

    @cached_property
    def covariance(self) -> KroneckerSum | None:
        """The inverse of the rows' Gram matrix; None where the rows leave something undetermined."""
        if len(self.parts) > 1:
            return _inverse_of_marginals(self.domain.shape, self.parts)
        inverses = [rows.inverse for rows in self.parts[0]]
        return None if None in inverses else KroneckerSum.product(self.domain.shape, inverses)  # type: ignore[arg-type]

    def to_json(self) -> dict[str, Any]:
        """The strategy as plain data, for a ledger."""
        parts = [[rows.to_json() for rows in part] for part in self.parts]
        return {"kind": self.kind, "name": self.name, "parts": parts}

    @classmethod
    def from_json(cls, domain: Domain, data: Mapping[str, Any]) -> Strategy:
        """The strategy that `to_json` wrote."""
        parts = tuple(tuple(Rows.from_json(rows) for rows in part) for part in data["parts"])
        return cls(domain, parts, data["name"])


def _inverse_of_marginals(shape: Sequence[int], parts: Sequence[Sequence[Rows]]) -> KroneckerSum | None:
    """The inverse of a sum of Kronecker products of unit matrices and all-ones matrices.

    They all commute. On vectors that sum to zero along the attributes of a set T and are constant
    along the others, a marginal over S multiplies by the product of the sizes outside S if S holds T,
    and by 0 if not. So the inverse divides by the sum of these, set by set; and the projector onto
    such vectors is itself a product of (unit - ones / size) and (ones / size).
    """
    if any(not (rows.matrix is None or rows.is_total) for part in parts for rows in part):
        return None
    levels = range(len(shape))
    kept = [{at for at in levels if part[at].matrix is None} for part in parts]
    coefficient = dict.fromkeys(_subsets(levels), 0.0)
    for chosen in _subsets(levels):
        weight = sum(prod(shape[at] for at in levels if at not in s) for s in kept if s >= set(chosen))
        if weight == 0:
            return None
        for units in _subsets(chosen):
            sign = (-1) ** (len(chosen) - len(units))
            ones = prod(shape[at] for at in levels if at not in units)
            coefficient[units] += sign / (weight * ones)
    terms = tuple(
        (c, tuple(0 if at in units else 1 for at in levels)) for units, c in coefficient.items()
    )
    return KroneckerSum(tuple(shape), tuple((UNIT, ONES) for _ in levels), terms)


def _subsets(items: Sequence[int]) -> list[tuple[int, ...]]:
    return [chosen for size in range(len(items) + 1) for chosen in combinations(items, size)]
