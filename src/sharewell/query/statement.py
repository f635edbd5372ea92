"""Statements: the queries that an SQL text needs, and how their answers become rows.

Privacy: everything here post-processes noisy answers and public labels, and costs nothing.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from sharewell.errors import QueryError
from sharewell.query import diagram
from sharewell.query.attribute import Label, Mask
from sharewell.query.block import ParallelBlock
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell.query.predicate import Predicate, TruthValue, evaluate

#: An answer, exact or noisy: int, float or Fraction. None is NULL: undetermined, or an average of none.
Value = Any

#: The HAVING of a statement without one.
ALWAYS = TruthValue(True)

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class GroupKey:
    """The labels of a grouped column, one per row.

    `ranks` sort the rows as SQL sorts the values; None for NULL.
    """

    labels: tuple[Label, ...] = field(repr=False)
    ranks: tuple[int | None, ...] = field(repr=False)


@dataclass(frozen=True)
class Aggregate:
    """The answers of one block: a COUNT or a SUM; `edges` of a sum over bins is one of `edge_sums`.

    The block of a measure's sum is centred: `middle` is to be added for each row that `count` counts.
    """

    block: int
    edges: int | None = None
    count: int | None = None
    middle: Fraction = Fraction(0)


@dataclass(frozen=True)
class Average:
    """The answers of one block divided by those of another; None unless the count is positive.

    That of a measure is centred: `middle` is to be added; and it lies between `low` and `high`.
    """

    total: int
    count: int
    edges: int | None = None
    low: Fraction | None = None
    high: Fraction | None = None
    middle: Fraction = Fraction(0)

    def within(self, value: float) -> float:
        """Return the nearest number that the average can be."""
        low = -math.inf if self.low is None else float(self.low)
        high = math.inf if self.high is None else float(self.high)
        return min(max(value, low), high)


Expression = GroupKey | Aggregate | Average
Term = Aggregate | Average | Value


@dataclass(frozen=True)
class Projection:
    """A column of the result."""

    name: str
    source: Expression


@dataclass(frozen=True)
class OrderKey:
    """An ORDER BY term."""

    source: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Comparison(Predicate):
    """A HAVING leaf: compares two aggregates, or an aggregate and a number, row by row."""

    operator: str
    left: Term
    right: Term


@dataclass(frozen=True)
class IsNull(Predicate):
    """A HAVING leaf: whether an aggregate is NULL."""

    term: Term


@dataclass(frozen=True)
class EdgeSums:
    """The limits of a sum over bins: each row counts as its bin's lower edge, or as its upper edge.

    The sum of the values themselves, which `block` approximates by midpoints, lies between the true
    answers of `lower` and `upper`, and their average between `low` and `high`. The edges' queries are
    estimated from what was bought, and never bought.
    """

    block: int
    column: str
    low: Fraction
    high: Fraction
    lower: ParallelBlock = field(repr=False)
    upper: ParallelBlock = field(repr=False)


@dataclass(frozen=True, eq=False)
class Statement:
    """A compiled SELECT over one table.

    A block holds one aggregate's query for every group and is measured and charged as a whole.
    `queries` lists the queries of all blocks; `rows` takes one answer for each of them. Equal
    aggregates share a block.
    """

    text: str
    table: str
    domain: Domain = field(repr=False)
    blocks: tuple[ParallelBlock, ...] = field(repr=False)
    outputs: tuple[Projection, ...] = field(repr=False)
    group_labels: tuple[tuple[Label, ...], ...] = field(repr=False)
    having: Predicate = field(default=ALWAYS, repr=False)
    order: tuple[OrderKey, ...] = field(default=(), repr=False)
    limit: int | None = field(default=None, repr=False)
    #: The limits of the sums over bins, which use midpoints.
    edge_sums: tuple[EdgeSums, ...] = field(default=(), repr=False)

    @cached_property
    def queries(self) -> tuple[LinearQuery, ...]:
        """All queries: block by block, each in the order of `group_labels`."""
        return tuple([query for block in self.blocks for query in block.queries])

    @cached_property
    def size(self) -> int:
        """The number of queries, or the number of numeric fields in the result if that is larger.

        One answer may be shown in many columns. Group labels do not count.
        """
        labels = self.group_labels
        if not labels:
            return len(self.queries)
        rows = len(labels) if self.limit is None else min(len(labels), self.limit)
        return max(len(self.queries), rows * (len(self.outputs) - len(labels[0])))

    @cached_property
    def nbytes(self) -> int:
        """About how much memory the statement takes: its text, labels, queries and their diagrams."""
        edges = [
            query for sums in self.edge_sums for block in (sums.lower, sums.upper) for query in block
        ]
        queries = [*self.queries, *edges]
        parts = len(queries) + len(self.group_labels) + len(self.outputs)
        roots = (query.root for query in queries if query.root)
        return len(self.text) + 512 * parts + diagram.nbytes(roots)

    @cached_property
    def selects_by_noise(self) -> bool:
        """Whether noisy answers decide which rows the result has."""
        by_answers = any(not isinstance(key.source, GroupKey) for key in self.order)
        return self.having != ALWAYS or (by_answers and self.limit is not None)

    @cached_property
    def midpoint_columns(self) -> tuple[str, ...]:
        """The columns known only by their bins that are summed by the midpoints of the bins."""
        return tuple(dict.fromkeys(sums.column for sums in self.edge_sums))

    @cached_property
    def has_average(self) -> bool:
        """Whether some column of the result is an average."""
        return any(isinstance(output.source, Average) for output in self.outputs)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs of blocks whose answers are combined in the result: sums and their counts."""
        found: dict[tuple[int, int], None] = {}
        for output in self.outputs:
            match output.source:
                case Aggregate(block, _, int(count)) | Average(block, count, None):
                    found[block, count] = None
        return tuple(found)

    @cached_property
    def free_blocks(self) -> tuple[ParallelBlock, ...]:
        """What is estimated beside the answers and never bought: as many rows as that takes."""
        edges = [block for sums in self.edge_sums for block in (sums.lower, sums.upper)]
        counts = [self.count_of(place) for place in range(len(self.edge_sums))]
        shared = [block for block in counts if block is not None for _ in range(2)]
        again = self.blocks if len(self.blocks) > 1 else ()
        return (*edges, *shared, *again, *(self.blocks[left] for left, _ in self.pairs))

    def count_of(self, edges: int) -> ParallelBlock | None:
        """The counts that sums over bins, one of `edge_sums`, are divided by; None if they are not."""
        for output in self.outputs:
            if isinstance(output.source, Average) and output.source.edges == edges:
                return self.blocks[output.source.count]
        return None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the result's columns."""
        return tuple(output.name for output in self.outputs)

    def rows(self, values: Sequence[Value]) -> list[tuple[Value, ...]]:
        """Return the result, given one answer per query."""
        values = [value.item() if isinstance(value, np.generic) else value for value in values]
        kept = self.select_rows(values)
        columns = [self._column(output.source, values) for output in self.outputs]
        return [tuple(column[row] for column in columns) for row in kept]

    def select_rows(self, values: Sequence[Value]) -> list[int]:
        """Apply HAVING, ORDER BY and LIMIT: return indices into `group_labels`."""
        if len(values) != len(self.queries):
            raise QueryError(f"Expected {len(self.queries):,} answers, got {len(values):,}.")
        if self.having == ALWAYS and not self.order:
            return list(range(len(self.group_labels)))[: self.limit]
        kept = evaluate(self.having, False, partial(self._decide, values))
        rows = [int(row) for row in np.flatnonzero(kept)]
        for key in reversed(self.order):
            term = key.source
            ranks: Sequence[Value] = (
                term.ranks if isinstance(term, GroupKey) else self._column(term, values)
            )
            nulls = [row for row in rows if ranks[row] is None]
            known = [row for row in rows if ranks[row] is not None]
            # Ties keep their order, even if it is descending.
            known.sort(key=ranks.__getitem__, reverse=key.descending)
            rows = nulls + known if key.nulls_first else known + nulls
        return rows[: self.limit]

    def _column(self, term: Expression | Term, values: Sequence[Value]) -> Sequence[Value]:
        """Return one value per row."""
        rows = len(self.group_labels)
        match term:
            case GroupKey():
                return term.labels
            case Aggregate(block, _, None):
                return values[block * rows : (block + 1) * rows]
            case Aggregate(block, _, int(count), middle):
                return [
                    None if a is None or b is None else a + _like(b, middle) * b
                    for a, b in self._pairs(block, count, values)
                ]
            case Average(total, count):
                return [_ratio(term, a, b) for a, b in self._pairs(total, count, values)]
        return [term] * rows

    def _pairs(self, left: int, right: int, values: Sequence[Value]) -> Iterator[tuple[Value, Value]]:
        """Return the answers of two blocks, row by row."""
        return zip(*(self._column(Aggregate(at), values) for at in (left, right)), strict=True)

    def _decide(self, values: Sequence[Value], leaf: Predicate, unknown: bool) -> Mask:
        """Evaluate a HAVING leaf on every row."""
        match leaf:
            case TruthValue():
                return np.full(len(self.group_labels), leaf.decide(unknown))
            case IsNull(term):
                return np.array([value is None for value in self._column(term, values)], dtype=bool)
            case Comparison(symbol, left, right):
                compare = OPERATORS[symbol]
                pairs = zip(*(self._column(side, values) for side in (left, right)), strict=True)
                truths = [unknown if None in pair else compare(*pair) for pair in pairs]
                return np.array(truths, dtype=bool)
        raise TypeError(f"{leaf!r} is not a predicate over rows")


def _like(value: Value, number: Fraction) -> Value:
    """Return a number as a value can be combined with it: exactly, or as a float."""
    return float(number) if isinstance(value, float) else number


def _ratio(average: Average, total: Value, count: Value) -> Value:
    """Divide a sum by a count; None unless both are known, and the count is positive."""
    if total is None or count is None or not count > 0:
        return None
    value = total / count
    if average.middle:
        value += _like(value, average.middle)
    return average.within(value) if isinstance(value, float) else value
