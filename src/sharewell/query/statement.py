"""Statements: the queries that one SQL text needs, and how their answers become a result.

Everything here is post-processing of noisy numbers and of public labels, and so costs nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sharewell.errors import QueryError
from sharewell.query.attribute import Label, Mask
from sharewell.query.block import ParallelBlock
from sharewell.query.condition import Condition, Fixed, Marks, settle
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: An answer, exact or noisy: int, float or Fraction. None where there is none (0 / 0).
Value = Any

#: Where there is no HAVING, every row stays.
EVERYTHING = Fixed(True)

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Grouped:
    """A column of the result that shows a grouped column's labels.

    `ranks` order the rows as SQL orders the values; NULL has none.
    """

    labels: tuple[Label, ...] = field(repr=False)
    ranks: tuple[int | None, ...] = field(repr=False)

    blocks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Total:
    """A column of the result that shows the answers to one block: a COUNT or a SUM."""

    block: int

    @property
    def blocks(self) -> tuple[int, ...]:
        """The block that it is made of."""
        return (self.block,)


@dataclass(frozen=True)
class Mean:
    """A column of the result that divides a SUM by a COUNT; None where the count is not positive."""

    total: int
    count: int

    @property
    def blocks(self) -> tuple[int, ...]:
        """The two blocks that it is made of: the sums, then the counts."""
        return (self.total, self.count)


Source = Grouped | Total | Mean
Term = Total | Mean | Value


@dataclass(frozen=True)
class Output:
    """A column of the result: its name, and what it is made of."""

    name: str
    source: Source


@dataclass(frozen=True)
class OrderKey:
    """One ORDER BY term."""

    source: Source
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True)
class Compare(Condition):
    """A HAVING leaf: two answers, or an answer and a number, compared row by row."""

    operator: str
    left: Term
    right: Term


@dataclass(frozen=True)
class Missing(Condition):
    """A HAVING leaf: whether an answer IS NULL."""

    term: Term


@dataclass(frozen=True, eq=False)
class Statement:
    """A compiled SQL text.

    Each block is what is measured and paid together: an aggregate's query for every row of the
    result. `queries` are the blocks' queries one after the other, and `rows` takes one number for
    each of them. An aggregate that is asked for twice has one block.
    """

    text: str
    domain: Domain = field(repr=False)
    blocks: tuple[ParallelBlock, ...] = field(repr=False)
    outputs: tuple[Output, ...] = field(repr=False)
    group_labels: tuple[tuple[Label, ...], ...] = field(repr=False)
    having: Condition = field(default=EVERYTHING, repr=False)
    order: tuple[OrderKey, ...] = field(default=(), repr=False)
    limit: int | None = field(default=None, repr=False)
    #: Columns that are known by their bins only, and were added up by the bins' middles.
    middles: tuple[str, ...] = field(default=(), repr=False)

    @cached_property
    def queries(self) -> tuple[LinearQuery, ...]:
        """Every query that needs an answer: block by block, each in the order of `group_labels`."""
        return tuple(query for block in self.blocks for query in block)

    @cached_property
    def size(self) -> int:
        """How many numbers it asks for; or how many fields it shows, where that is more.

        One number may be shown in many columns. Labels of groups that stand there once do not count.
        """
        labels = self.group_labels
        if not labels:
            return len(self.queries)
        rows = len(labels) if self.limit is None else min(len(labels), self.limit)
        return max(len(self.queries), rows * (len(self.outputs) - len(labels[0])))

    @cached_property
    def chooses(self) -> bool:
        """Whether noisy numbers decide which rows the result has."""
        by_numbers = any(not isinstance(key.source, Grouped) for key in self.order)
        return self.having != EVERYTHING or (by_numbers and self.limit is not None)

    @cached_property
    def averages(self) -> bool:
        """Whether some column of the result is an average."""
        return any(isinstance(output.source, Mean) for output in self.outputs)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the result's columns."""
        return tuple(output.name for output in self.outputs)

    def positions(self, output: Output, row: int) -> tuple[int, ...]:
        """Which of `queries` one field of the result is made of, before HAVING, ORDER BY and LIMIT."""
        return tuple(block * len(self.group_labels) + row for block in output.source.blocks)

    def rows(self, values: Sequence[Value]) -> list[tuple[Value, ...]]:
        """The result, given one number for each query: rows in the order of the columns."""
        answers = self._answers(values)
        columns = [answers.column(output.source) for output in self.outputs]
        return [tuple(column[row] for column in columns) for row in self.arrange(values)]

    def arrange(self, values: Sequence[Value]) -> list[int]:
        """The positions in `group_labels` that HAVING, ORDER BY and LIMIT leave, in their order."""
        if self.having == EVERYTHING and not self.order:
            return list(range(len(self.group_labels)))[: self.limit]
        answers = self._answers(values)
        kept = settle(self.having, False, answers.settled)
        rows = [int(row) for row in np.flatnonzero(kept)]
        for key in reversed(self.order):
            rows = _sorted(rows, answers.ranks(key.source), key)
        return rows[: self.limit]

    def _answers(self, values: Sequence[Value]) -> _Answers:
        if len(values) != len(self.queries):
            raise QueryError(
                f"The statement has {len(self.queries):,} queries, and got {len(values):,} numbers.",
                hint="Give one number for each of `queries`, in their order.",
            )
        plain = [value.item() if isinstance(value, np.generic) else value for value in values]
        return _Answers(len(self.group_labels), plain)


@dataclass(frozen=True)
class _Answers:
    """The numbers of a statement, by column of the result."""

    rows: int
    values: list[Value]

    def column(self, term: Source | Term) -> Sequence[Value]:
        """One value per row."""
        match term:
            case Grouped():
                return term.labels
            case Total(block):
                return self.values[block * self.rows : (block + 1) * self.rows]
            case Mean(total, count):
                pairs = zip(self.column(Total(total)), self.column(Total(count)), strict=True)
                return [above / below if below > 0 else None for above, below in pairs]
        return [term] * self.rows

    def ranks(self, source: Source) -> Sequence[Value]:
        """What one value per row is sorted by; None for NULL."""
        return source.ranks if isinstance(source, Grouped) else self.column(source)

    def settled(self, condition: Condition, unknown: bool) -> Mask:
        """The rows on which a HAVING leaf holds."""
        match condition:
            case Fixed():
                return np.full(self.rows, condition.settled(unknown))
            case Marks():
                return condition.settled(unknown)
            case Missing(term):
                return np.array([value is None for value in self.column(term)], dtype=bool)
            case Compare(symbol, left, right):
                holds = OPERATORS[symbol]
                pairs = zip(self.column(left), self.column(right), strict=True)
                truths = [unknown if None in pair else holds(*pair) for pair in pairs]
                return np.array(truths, dtype=bool)
        raise TypeError(f"{condition!r} says nothing about rows.")


def _sorted(rows: list[int], ranks: Sequence[Value], key: OrderKey) -> list[int]:
    """Sort rows by rank; equal ones keep their order, NULLs go to the end that was asked for."""
    nulls = [row for row in rows if ranks[row] is None]
    known = [row for row in rows if ranks[row] is not None]
    known.sort(key=lambda row: ranks[row], reverse=key.descending)
    return nulls + known if key.nulls_first else known + nulls
