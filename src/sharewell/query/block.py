"""Blocks: queries that are measured and charged together, and their sensitivity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import QueryError, QueryTooComplex
from sharewell.query import contraction
from sharewell.query.diagram import MAX_STEPS, MAX_WEIGHT, TERMINAL, Node, are_disjoint
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: Neighbouring tables differ by one row added or removed, or by one row replaced.
Neighbours = Literal["add-remove", "replace-one"]

#: The maximum number of steps when listing the distinct columns of a block.
MAX_COLUMNS = 200_000
#: The maximum number of columns for which all pairwise distances are computed under replace-one.
MAX_PAIRED_COLUMNS = 512


class Marginal(NamedTuple):
    """Some data vectors, summed by combination of cells of some attributes."""

    levels: tuple[int, ...]
    vectors: tuple[int, ...] = (0,)


class Data(Protocol):
    """A data vector, dense or sparse, as rows are answered on it."""

    def answer(self, query: LinearQuery) -> int:
        """Return the exact answer of a query."""

    def by_group(self, query: LinearQuery, groups: Mapping[int, NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the exact answer of a query in every combination of groups: one axis for each."""

    def marginals(self, wanted: Sequence[Marginal]) -> list[NDArray[np.int64]]:
        """Return marginals: each has its vectors first, then an axis for each attribute."""


class Answerable(Protocol):
    """Rows that can be answered on data."""

    def answers(self, data: Data) -> NDArray[np.int64]:
        """Return the exact answer of every row."""


class Measurable(Protocol):
    """Input of the kernel: integer-weighted rows over a domain. It computes their sensitivity itself."""

    @property
    def domain(self) -> Domain:
        """The domain of the rows."""

    def __len__(self) -> int: ...

    def to_json(self) -> dict[str, Any]:
        """Return the block as JSON data."""


@dataclass(frozen=True)
class Block(Sequence[LinearQuery]):
    """An ordered sequence of queries over one domain.

    >>> from sharewell import Block, Domain, Integer, LinearQuery
    >>> domain = Domain([Integer("age", 0, 85)])
    >>> histogram = Block(domain, [LinearQuery.cell(domain, i) for i in range(86)])
    >>> histogram.l1_sensitivity("add-remove"), histogram.l1_sensitivity("replace-one")
    (1, 2)
    """

    kind: ClassVar[str] = "queries"

    domain: Domain
    queries: tuple[LinearQuery, ...]

    def __init__(self, domain: Domain, queries: Iterable[LinearQuery]) -> None:
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "queries", tuple(queries))
        if any(q.domain is not domain and q.domain != domain for q in self.queries):
            raise QueryError("All queries of a block must have its domain.")

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[LinearQuery]:
        return iter(self.queries)

    @overload
    def __getitem__(self, at: int) -> LinearQuery: ...
    @overload
    def __getitem__(self, at: slice) -> Block: ...
    def __getitem__(self, at: int | slice) -> LinearQuery | Block:
        return Block(self.domain, self.queries[at]) if isinstance(at, slice) else self.queries[at]

    def where(self, predicate: LinearQuery) -> Block:
        """Restrict the queries to the rows a predicate selects; drop empty queries and duplicates."""
        kept = dict.fromkeys(query.where(predicate) for query in self.queries)
        return Block(self.domain, [query for query in kept if not query.is_zero])

    def units(self, neighbours: Neighbours) -> NDArray[np.int64]:
        """Return 1 for every row: all get the same noise."""
        return np.ones(len(self.queries), dtype=np.int64)

    def answers(self, data: Data) -> NDArray[np.int64]:
        """Return the exact answer of every query."""
        return np.array([data.answer(query) for query in self.queries], dtype=np.int64)

    def l1_sensitivity(self, neighbours: Neighbours) -> int:
        """Return the largest L1 norm of a column; under replace-one, the largest distance of two."""
        return self._sensitivity(neighbours, power=1)

    def l2_sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Return the same in the L2 norm, squared so that it stays an integer."""
        return self._sensitivity(neighbours, power=2)

    def _sensitivity(self, neighbours: Neighbours, power: int) -> int:
        norms: list[int] = sorted(sum(abs(w) ** power for _, w in column) for column in self.columns)
        if not norms:
            return 0
        if neighbours == "add-remove":
            return norms[-1]
        if len(self.columns) <= MAX_PAIRED_COLUMNS:
            return self._largest_distance(power)
        # Too many pairs to enumerate: |u - v| <= |u| + |v|, and without negative weights the squared
        # distance is at most the sum of the squared norms.
        two_largest = norms[-1] + norms[-2]
        signed = any(w < 0 for column in self.columns for _, w in column)
        return 2 * two_largest if signed and power == 2 else two_largest

    def _largest_distance(self, power: int) -> int:
        # Python integers: the squares of large weights do not fit in 64 bits.
        dense = np.zeros((len(self.columns), len(self.queries)), dtype=object)
        for i, column in enumerate(self.columns):
            for row, weight in column:
                dense[i, row] = weight
        return max(int((np.abs(dense - column) ** power).sum(axis=1).max()) for column in dense)

    @cached_property
    def columns(self) -> frozenset[tuple[tuple[int, int], ...]]:
        """The distinct columns of the block's matrix, each as its non-zero (row, weight) pairs.

        With measures, those of the extreme rows of the table: every other is between them, and both
        norms are convex.

        Under replace-one, a row may be replaced by one outside the domain, so the empty column is
        included unless the domain covers every possible row.
        """
        found: set[tuple[tuple[int, int], ...]] = {()} if self.domain.may_drop else set()
        for query in self.queries:
            _require_whole(query)
        pending = [[(row, int(q.scale), q.root) for row, q in enumerate(self.queries) if q.root]]
        steps = 0
        while pending:
            active = pending.pop()
            steps += 1
            if steps > MAX_COLUMNS:
                raise QueryTooComplex(
                    "The block is too complex: it has too many distinct columns.", hint="Split it."
                )
            if not any(node.children for _, _, node in active):
                found.add(tuple((row, weight) for row, weight, _ in active))
            elif self.domain.measures and active[0][2].children == (TERMINAL,):
                extremes = _extreme_columns(self.domain, active)
                steps += len(extremes)
                found.update(extremes)
            else:
                pending.extend(_split(active))
        return frozenset(found)

    @property
    def nbytes(self) -> int:
        """About how much memory the queries take."""
        return 512 * len(self) + contraction.nbytes(query.root for query in self.queries if query.root)

    def to_json(self) -> dict[str, Any]:
        """Return the block as JSON data."""
        return {"kind": self.kind, "queries": [query.to_json() for query in self.queries]}

    @classmethod
    def from_json(cls, domain: Domain, data: Mapping[str, Any]) -> Block:
        """Read a block that `to_json` wrote."""
        if data["kind"] == GroupedBlock.kind:
            return GroupedBlock.from_json(domain, data)
        kind = {block.kind: block for block in (Block, ParallelBlock)}[data["kind"]]
        return kind(domain, [LinearQuery.from_json(domain, query) for query in data["queries"]])


class ParallelBlock(Block):
    """Queries with pairwise disjoint cells, such as those of a GROUP BY.

    A row falls in at most one of them, so each is measured on its own, with noise proportional to its
    largest weight. Under replace-one, a row may leave one query and enter another, which doubles the
    noise; a block of one query is treated the same, so the noise never depends on the other queries.

    Privacy: rests on disjointness, which the kernel checks before it measures.
    """

    kind = "parallel"

    @classmethod
    def of(cls, block: Block) -> ParallelBlock:
        """Convert a block whose queries share no cell."""
        if isinstance(block, GroupedBlock):
            return block
        if not are_disjoint([q.root for q in block if q.root], len(block.domain.attributes)):
            raise QueryError(
                "Two queries of the block overlap in a cell.", hint="Put them in separate blocks."
            )
        return cls(block.domain, block.queries)

    @classmethod
    def group_by(cls, query: LinearQuery, groups: Mapping[int, Sequence[int]]) -> ParallelBlock:
        """Split a query by attributes, keyed by position: `groups[level][cell]` is the group of a cell.

        Returns one query per combination of groups, in C order, including empty ones.
        """
        parts = [query]
        for level, of_cell in groups.items():
            parts = [each for part in parts for each in part.split(level, of_cell, max(of_cell) + 1)]
        return cls(query.domain, parts)

    def take(self, rows: Iterable[int]) -> ParallelBlock:
        """Return a subset of the rows, each at most once: two copies would share their cells."""
        chosen = list(rows)
        if len(set(chosen)) < len(chosen):
            raise QueryError("A row of a parallel block cannot be taken twice.")
        return ParallelBlock(self.domain, [self.queries[row] for row in chosen])

    @cached_property
    def primitive(self) -> ParallelBlock:
        """The rows divided by their scales: integer weights, as measured."""
        if all(query.scale == 1 for query in self.queries):
            return self
        return ParallelBlock(self.domain, [query.primitive for query in self.queries])

    @cached_property
    def filled(self) -> tuple[ParallelBlock, tuple[int, ...]]:
        """The non-empty rows, and their positions."""
        places = tuple([place for place, query in enumerate(self.queries) if not query.is_zero])
        return (self if len(places) == len(self) else self.take(places)), places

    @cached_property
    def signed(self) -> ParallelBlock | None:
        """A single count with weights w from 0 to u, as the row 2w - u; None for all other blocks.

        Adding or removing a row of the table changes both by at most u, and 2w - u by twice as much of
        what tells one count from another. Count and complement have the same row. The rows of a GROUP
        BY are no single count, however few of them are left.
        """
        if len(self) != 1 or not self[0].counts_rows:
            return None
        count = self[0].primitive
        if count.is_zero or count.spread != count.max_abs:
            return None
        everything = LinearQuery.all(self.domain) * count.max_abs
        return ParallelBlock(self.domain, [(count * 2 - everything).primitive])

    def units(self, neighbours: Neighbours) -> NDArray[np.int64]:
        """Return the sensitivity of each query on its own."""
        return np.array([_unit(query, neighbours) for query in self.queries], dtype=np.int64)

    def l1_sensitivity(self, neighbours: Neighbours) -> int:
        """Return 1, or 2 under replace-one: the number of queries that change, each by one unit."""
        return 1 if neighbours == "add-remove" else 2

    def l2_sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Return 1, or 2 under replace-one: the number of queries that change, each by one unit."""
        return 1 if neighbours == "add-remove" else 2


class GroupedBlock(ParallelBlock):
    """The rows of a GROUP BY: a base query in every combination of groups in which it has a weight.

    `groups[level][cell]` is the group of an attribute's cell. `places` are the combinations of the rows,
    numbered in C order of the groups; given ones may be empty. All rows are answered in one pass.

    Privacy: the rows are disjoint by construction, since a cell is in one combination.

    >>> from sharewell import Boolean, Domain, Integer, LinearQuery
    >>> domain = Domain([Integer("age", 0, 9), Boolean("employed")])
    >>> adults = LinearQuery.of(domain, age=range(4, 10))
    >>> GroupedBlock(adults, {1: [0, 1], 0: [0] * 4 + [1] * 3 + [2] * 3}).places.tolist()
    [1, 2, 4, 5]
    """

    kind = "grouped"

    base: LinearQuery
    groups: Mapping[int, NDArray[np.int64]]
    places: NDArray[np.int64]
    #: The number of groups of each grouped attribute.
    shape: tuple[int, ...]

    def __init__(
        self,
        base: LinearQuery,
        groups: Mapping[int, Sequence[int] | NDArray[np.int64]],
        places: Iterable[int] | None = None,
    ) -> None:
        object.__setattr__(self, "domain", base.domain)
        object.__setattr__(self, "base", base)
        own = {level: np.array(of_cell, dtype=np.int64) for level, of_cell in groups.items()}
        for level, cells in own.items():
            in_domain = 0 <= level < len(base.domain.attributes)
            if not in_domain or cells.shape != (base.domain.shape[level],) or cells.min() < 0:
                raise QueryError("A GROUP BY requires the group of every cell of an attribute.")
            cells.flags.writeable = False
        object.__setattr__(self, "groups", MappingProxyType(own))
        object.__setattr__(self, "shape", tuple(int(cells.max()) + 1 for cells in own.values()))
        count = math.prod(self.shape)
        if count > MAX_STEPS:
            raise QueryTooComplex(
                f"A GROUP BY of {count:,} combinations is too large.", hint="Group by fewer values."
            )
        chosen = self._nonempty() if places is None else np.fromiter(places, dtype=np.int64)
        if len(np.unique(chosen)) < len(chosen):
            raise QueryError("A row of a parallel block cannot be taken twice.")
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < count:
            raise QueryError("A row of a grouped block is outside its groups.")
        chosen.flags.writeable = False
        object.__setattr__(self, "places", chosen)

    def _nonempty(self) -> NDArray[np.int64]:
        if self.base.root is None:
            return np.zeros(0, dtype=np.int64)
        found = contraction.support(self.base.root, self.groups)
        return np.flatnonzero(found.transpose(np.argsort(np.argsort(list(self.groups)))))

    @cached_property
    def queries(self) -> tuple[LinearQuery, ...]:
        """The rows as queries; made only where they are needed one by one. Empty ones share a zero."""
        parts, stride = {0: self.base}, math.prod(self.shape)
        for (level, of_cell), count in zip(self.groups.items(), self.shape, strict=True):
            stride //= count
            wanted = np.unique(self.places // stride)
            found: dict[int, LinearQuery] = {}
            for before, query in parts.items():
                first, end = np.searchsorted(wanted, [before * count, (before + 1) * count])
                own = wanted[first:end] - before * count
                kept = of_cell if len(own) == count else np.where(np.isin(of_cell, own), of_cell, -1)
                found |= {before * count + at: part for at, part in query.parts(level, kept).items()}
            parts = found
        zero = LinearQuery.zero(self.domain)
        return tuple([parts.get(place, zero) for place in self.places.tolist()])

    def __len__(self) -> int:
        return len(self.places)

    def take(self, rows: Iterable[int]) -> GroupedBlock:
        """Return a subset of the rows, each at most once."""
        chosen = list(rows)
        if chosen == list(range(len(self))):
            return self
        taken = GroupedBlock(self.base, self.groups, self.places[chosen])
        if "queries" in self.__dict__:
            taken.__dict__["queries"] = tuple([self.queries[row] for row in chosen])
        return taken

    @cached_property
    def primitive(self) -> ParallelBlock:
        """The rows divided by their scales: integer weights, as measured."""
        if not self._is_even:
            return super().primitive
        return (
            self if self.base.scale == 1 else GroupedBlock(self.base.primitive, self.groups, self.places)
        )

    @property
    def signed(self) -> None:
        """None: the rows of a GROUP BY are measured as they are."""

    @cached_property
    def _is_even(self) -> bool:
        """Whether all rows have the scale and the range of weights of the base.

        So it is where the base is a condition on the attributes times the same weights of vectors
        everywhere, and where it is a product with weights 0 and 1 on the grouped attributes.
        """
        if self.base.root is None:
            return True
        of_attributes = contraction.levels(self.base.root)
        if self.domain.measures and len(of_attributes.pop()) > 1:
            return False
        condition = product = True
        for level, nodes in enumerate(of_attributes):
            plain = all(0 <= node.weights.min() <= node.weights.max() <= 1 for node in nodes)
            condition = condition and plain
            product = product and len(nodes) == 1 and (plain or level not in self.groups)
        return condition or product

    @cached_property
    def filled(self) -> tuple[ParallelBlock, tuple[int, ...]]:
        """The rows that have a weight, and their positions."""
        filled = np.isin(self.places, self._nonempty())
        places = tuple(np.flatnonzero(filled).tolist())
        return (self if len(places) == len(self) else self.take(places)), places

    def units(self, neighbours: Neighbours) -> NDArray[np.int64]:
        """Return the sensitivity of each row on its own."""
        return (
            np.full(len(self), _unit(self.base, neighbours))
            if self._is_even
            else super().units(neighbours)
        )

    def answers(self, data: Data) -> NDArray[np.int64]:
        """Return the exact answer of every row, in one pass over the data."""
        return data.by_group(self.base, self.groups).ravel()[self.places]

    @property
    def nbytes(self) -> int:
        """About how much memory the rows take once they are made one by one."""
        _, places = self.filled
        if self.base.root is None or not places:
            return 512 * len(self)
        return 512 * len(self) + contraction.nbytes_by_group(self.base.root, self.groups, len(places))

    def to_json(self) -> dict[str, Any]:
        """Return the block as JSON data: each attribute's groups as [group, number of cells] runs."""
        groups: list[Any] = []
        for level, of_cell in self.groups.items():
            starts = np.flatnonzero(np.diff(of_cell, prepend=-1))
            lengths = np.diff(starts, append=len(of_cell))
            groups.append([level, np.stack([of_cell[starts], lengths], axis=1).tolist()])
        places = self.places.tolist()
        return {"kind": self.kind, "base": self.base.to_json(), "groups": groups, "places": places}

    @classmethod
    def from_json(cls, domain: Domain, data: Mapping[str, Any]) -> GroupedBlock:
        """Read a block that `to_json` wrote."""
        groups = {
            level: np.repeat(*np.array(runs, dtype=np.int64).reshape(-1, 2).T)
            for level, runs in data["groups"]
        }
        return cls(LinearQuery.from_json(domain, data["base"]), groups, data["places"])

    def __reduce__(self) -> tuple[Any, ...]:
        return GroupedBlock, (self.base, dict(self.groups), self.places)


def _unit(query: LinearQuery, neighbours: Neighbours) -> int:
    """Return the most by which one row of the table changes a query with integer weights."""
    _require_whole(query)
    return int(query.max_abs if neighbours == "add-remove" else query.spread)


def _require_whole(query: LinearQuery) -> None:
    """Refuse a query whose weights are not integers, or not bounded."""
    if query.scale.denominator != 1:
        raise QueryError(
            "Sensitivity requires queries with integer weights.",
            hint="Measure `query.primitive` and multiply by `query.scale`.",
        )
    if query.max_abs > MAX_WEIGHT:
        raise QueryError(
            f"The weights of a query must not exceed {MAX_WEIGHT:,}.", hint="Scale the query down."
        )


def _extreme_columns(
    domain: Domain, active: list[tuple[int, int, Node]]
) -> set[tuple[tuple[int, int], ...]]:
    """Return the columns of the extreme rows of a cell, from the weights of its vectors."""
    weights = np.array([node.vectors[0][0] * scale for _, scale, node in active], dtype=object)
    found = set()
    for added in domain.row_extremes(np.flatnonzero((weights != 0).any(axis=0)).tolist()):
        sums = (weights @ np.array(added, dtype=object)).tolist()
        found.add(tuple((row, total) for (row, _, _), total in zip(active, sums, strict=True) if total))
    return found


def _split(active: list[tuple[int, int, Node]]) -> Iterator[list[tuple[int, int, Node]]]:
    """Group the cells of this level by the active rows' children and weights; descend into each."""
    starts = np.unique(np.concatenate([node.starts for _, _, node in active]))
    which = np.empty((len(active), len(starts)), dtype=np.int64)
    weight = np.empty_like(which)
    for at, (_, _, node) in enumerate(active):
        run = np.searchsorted(node.starts, starts, "right") - 1
        which[at], weight[at] = node.which[run], node.weights[run]
    _, runs = np.unique(np.concatenate([which, weight]), axis=1, return_index=True)
    for run in runs:
        yield [
            (row, scale * int(weight[at, run]), node.children[which[at, run]])
            for at, (row, scale, node) in enumerate(active)
            if weight[at, run]
        ]
