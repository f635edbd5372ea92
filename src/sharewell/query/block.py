"""Blocks: queries that are measured and paid for together, and what one row can change in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Literal, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import QueryError, QueryTooComplex
from sharewell.query.diagram import MAX_WEIGHT, Node
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: Which tables count as neighbours: one row more or less, or one row replaced by another.
Neighbours = Literal["add-remove", "replace-one"]

#: The most groups of like cells that are told apart when a block's columns are listed.
MAX_COLUMNS = 200_000
#: The most different columns whose pairwise distances are all computed under replace-one.
MAX_PAIRED_COLUMNS = 512


class Measurable(Protocol):
    """What the kernel can measure: whole-number rows over a domain, and their sensitivity."""

    @property
    def domain(self) -> Domain:
        """The cells that the rows weigh."""

    def __len__(self) -> int: ...

    def units(self, neighbours: Neighbours) -> NDArray[np.int64]:
        """How wide each row's noise is beside the others': a row's noise is its unit times a scale."""

    def answers(self, array: NDArray[np.int64]) -> NDArray[np.int64]:
        """Every row's exact answer on a dense array of counts."""

    def l1_sensitivity(self, neighbours: Neighbours) -> int:
        """The most that neighbouring tables' answers differ, in units, summed over the rows."""

    def l2_sensitivity_squared(self, neighbours: Neighbours) -> int:
        """The most that neighbouring tables' answers differ, in units, as a sum of squares."""

    def to_json(self) -> dict[str, Any]:
        """The block as plain data, for a ledger."""


@dataclass(frozen=True)
class Block(Sequence[LinearQuery]):
    """An ordered list of queries over one domain.

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
            raise QueryError("The queries of a block must all be over its domain.")

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
        """These queries on the rows that a predicate selects; those that become empty or equal go."""
        kept = dict.fromkeys(query.where(predicate) for query in self.queries)
        return Block(self.domain, [query for query in kept if not query.is_zero])

    def units(self, neighbours: Neighbours) -> NDArray[np.int64]:
        """1 for every row: all get the same noise."""
        return np.ones(len(self.queries), dtype=np.int64)

    def answers(self, array: NDArray[np.int64]) -> NDArray[np.int64]:
        """Every query's exact answer on a dense array of counts."""
        return np.array([query.dot(array) for query in self.queries], dtype=np.int64)

    def l1_sensitivity(self, neighbours: Neighbours) -> int:
        """The largest L1 norm of a column, or the largest L1 distance between two under replace-one."""
        return self._sensitivity(neighbours, power=1)

    def l2_sensitivity_squared(self, neighbours: Neighbours) -> int:
        """The same in the L2 norm, squared so that it stays a whole number."""
        return self._sensitivity(neighbours, power=2)

    def _sensitivity(self, neighbours: Neighbours, power: int) -> int:
        norms: list[int] = sorted(sum(abs(w) ** power for _, w in column) for column in self.columns)
        if not norms:
            return 0
        if neighbours == "add-remove":
            return norms[-1]
        if len(self.columns) <= MAX_PAIRED_COLUMNS:
            return self._largest_distance(power)
        # Too many pairs to look at each: |u - v| <= |u| + |v|, and without negative weights the
        # squared distance is at most the sum of the squared norms.
        two_largest = norms[-1] + norms[-2]
        signed = any(w < 0 for column in self.columns for _, w in column)
        return 2 * two_largest if signed and power == 2 else two_largest

    def _largest_distance(self, power: int) -> int:
        # Whole numbers of any size: squares of large weights would not fit into 64 bits.
        dense = np.zeros((len(self.columns), len(self.queries)), dtype=object)
        for i, column in enumerate(self.columns):
            for row, weight in column:
                dense[i, row] = weight
        return max(int((np.abs(dense - column) ** power).sum(axis=1).max()) for column in dense)

    @cached_property
    def columns(self) -> frozenset[tuple[tuple[int, int], ...]]:
        """The different columns of the block's matrix, each as its (row, weight) pairs that are not 0.

        Under replace-one a row may also be replaced by one that no cell holds: unless the domain
        catches every row, the empty column is among them.
        """
        found: set[tuple[tuple[int, int], ...]] = {()} if self.domain.may_drop else set()
        pending = [[(row, int(q.scale), q.root) for row, q in enumerate(self._whole()) if q.root]]
        steps = 0
        while pending:
            active = pending.pop()
            steps += 1
            if steps > MAX_COLUMNS:
                raise QueryTooComplex(
                    "The block tells too many groups of cells apart.", hint="Split it up."
                )
            if not any(node.edges for _, _, node in active):
                found.add(tuple((row, weight) for row, weight, _ in active))
            else:
                pending.extend(_split(active))
        return frozenset(found)

    def _whole(self) -> tuple[LinearQuery, ...]:
        """The queries, whose weights must be whole and small enough for 64-bit answers."""
        weighted = [query for query in self.queries if not query.is_predicate]
        if any(q.scale.denominator != 1 for q in weighted):
            raise QueryError(
                "Only queries with whole-number weights have a sensitivity here.",
                hint="Measure `query.primitive` and multiply by `query.scale`.",
            )
        if any(q.max_abs > MAX_WEIGHT for q in weighted):
            raise QueryError(
                f"A query's weights must stay within {MAX_WEIGHT:,} of zero to be measured.",
                hint="Scale the query down.",
            )
        return self.queries

    def to_json(self) -> dict[str, Any]:
        """The block as plain data, for a ledger."""
        return {"kind": self.kind, "queries": [query.to_json() for query in self.queries]}

    @classmethod
    def from_json(cls, domain: Domain, data: Mapping[str, Any]) -> Block:
        """The block that `to_json` wrote."""
        kind = {block.kind: block for block in (Block, ParallelBlock)}[data["kind"]]
        return kind(domain, [LinearQuery.from_json(domain, query) for query in data["queries"]])


class ParallelBlock(Block):
    """Queries of which no two weigh the same cell, such as those of a GROUP BY.

    One row falls into one of them at most, so each is measured as if it were alone: with noise in
    proportion to its own largest weight, whatever stands beside it in the block. Under replace-one a
    row may leave one query and enter another, which doubles the noise; it does so for a block of one
    query too, so that what a query's noise is never depends on its block.

    That no two share a cell is checked, unless the caller knows it from how the queries were made and
    says so with `disjoint`. Privacy rests on it.
    """

    kind = "parallel"

    def __init__(
        self, domain: Domain, queries: Iterable[LinearQuery], *, disjoint: bool = False
    ) -> None:
        super().__init__(domain, queries)
        if not disjoint and any(len(column) > 1 for column in self.columns):
            raise QueryError(
                "Two queries of the block weigh the same cell.", hint="Ask for them one by one."
            )

    @classmethod
    def of(cls, block: Block) -> ParallelBlock:
        """A block's queries, which must share no cell."""
        cls(block.domain, [query.primitive for query in block])
        return cls(block.domain, block.queries, disjoint=True)

    @classmethod
    def group_by(cls, query: LinearQuery, groups: Mapping[int, Sequence[int]]) -> ParallelBlock:
        """A query divided by attributes, given by position: `groups[level][cell]` numbers the groups.

        One row for every combination of groups, in C order, also where nothing is left of the query.
        """
        masks = [
            [(level, np.equal(of_cell, group).astype(np.int64)) for group in range(max(of_cell) + 1)]
            for level, of_cell in groups.items()
        ]
        parts = [LinearQuery.of_vectors(query.domain, dict(chosen)) for chosen in product(*masks)]
        # Different groups of one attribute share no cell, so neither do the rows.
        return cls(query.domain, [query.where(part) for part in parts], disjoint=True)

    def take(self, rows: Iterable[int]) -> ParallelBlock:
        """Some of the rows, each once at the most: two copies would share all their cells."""
        chosen = list(rows)
        if len(set(chosen)) < len(chosen):
            raise QueryError("A row of a block cannot be taken twice.")
        return ParallelBlock(self.domain, [self.queries[row] for row in chosen], disjoint=True)

    @cached_property
    def primitive(self) -> ParallelBlock:
        """The rows divided by their scales, which is what is measured: whole-number weights."""
        if all(query.scale == 1 for query in self.queries):
            return self
        return ParallelBlock(self.domain, [query.primitive for query in self.queries], disjoint=True)

    @cached_property
    def filled(self) -> tuple[ParallelBlock, tuple[int, ...]]:
        """The rows that are not empty, and their places."""
        places = tuple([place for place, query in enumerate(self.queries) if not query.is_zero])
        return (self if len(places) == len(self) else self.take(places)), places

    def units(self, neighbours: Neighbours) -> NDArray[np.int64]:
        """The most that one row of the table can change each query, by coming, going or changing."""
        if neighbours == "add-remove":
            return np.array([int(query.max_abs) for query in self._whole()], dtype=np.int64)
        return np.array([int(query.spread) for query in self._whole()], dtype=np.int64)

    def l1_sensitivity(self, neighbours: Neighbours) -> int:
        """One row, or two under replace-one, each changed by at most its unit."""
        return 1 if neighbours == "add-remove" else 2

    def l2_sensitivity_squared(self, neighbours: Neighbours) -> int:
        """One row, or two under replace-one, each changed by at most its unit."""
        return 1 if neighbours == "add-remove" else 2


def _split(active: list[tuple[int, int, Node]]) -> Iterator[list[tuple[int, int, Node]]]:
    """Group this level's cells by what every active row does there, and go one level down in each."""
    size = len(active[0][2].edges[0][0])
    which = np.zeros((len(active), size), dtype=np.int64)
    weight = np.zeros((len(active), size), dtype=np.int64)
    for at, (_, _, node) in enumerate(active):
        for edge, (weights, _) in enumerate(node.edges):
            used = weights != 0
            which[at, used] = edge
            weight[at] += weights
    _, cells = np.unique(np.concatenate([which, weight]), axis=1, return_index=True)
    for cell in cells:
        yield [
            (row, scale * int(weight[at, cell]), node.edges[which[at, cell]][1])
            for at, (row, scale, node) in enumerate(active)
            if weight[at, cell]
        ]
