"""Statements: the queries that an SQL text needs, and how their answers become rows.

Privacy: everything here post-processes noisy answers and public labels, and costs nothing.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sharewell.errors import QueryError
from sharewell.query.attribute import Label
from sharewell.query.block import Block, ParallelBlock
from sharewell.query.domain import Domain
from sharewell.query.expression import (
    Aggregate,
    Average,
    Constant,
    Expression,
    Form,
    GroupKey,
    Linear,
    Number,
    OrderKey,
    Quantile,
    Rank,
    Ratio,
    Spread,
    Value,
    evaluate,
    is_public,
    numbers,
    size_of,
)
from sharewell.query.linear import LinearQuery
from sharewell.query.predicate import balanced
from sharewell.query.statistics import number_like, quantile, spread

#: The HAVING of a statement without one.
ALWAYS = Constant(True, "boolean")


@dataclass(frozen=True)
class Projection:
    """A column of the result."""

    name: str
    source: Expression


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
    #: The labels of every row of the result, before HAVING.
    group_labels: tuple[tuple[Label, ...], ...] = field(repr=False)
    having: Expression = field(default=ALWAYS, repr=False)
    order: tuple[OrderKey, ...] = field(default=(), repr=False)
    limit: int | None = field(default=None, repr=False)
    offset: int = field(default=0, repr=False)
    #: The limits of the sums over bins, which use midpoints.
    edge_sums: tuple[EdgeSums, ...] = field(default=(), repr=False)
    #: The linear combinations of answers that its expressions use.
    forms: tuple[Form, ...] = field(default=(), repr=False)

    @cached_property
    def queries(self) -> tuple[LinearQuery, ...]:
        """All queries, block by block."""
        return tuple([query for block in self.blocks for query in block.queries])

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The place of every block's first answer among all answers, and the number of answers."""
        return tuple(itertools.accumulate((len(block) for block in self.blocks), initial=0))

    def answers_of(self, block: int, answers: Sequence[Any]) -> Sequence[Any]:
        """Return those of all answers that belong to a block."""
        return answers[self.starts[block] : self.starts[block + 1]]

    @cached_property
    def size(self) -> int:
        """The number of queries, or the number of numeric fields in the result if that is larger.

        One answer may be shown in many columns. Group labels do not count.
        """
        rows = len(self.group_labels) if self.limit is None else min(len(self.group_labels), self.limit)
        shown = sum(not isinstance(output.source, GroupKey) for output in self.outputs)
        return max(self.starts[-1], rows * shown)

    @cached_property
    def computed(self) -> tuple[int, int]:
        """How many functions are evaluated for the rows that are shown, and to choose them."""
        groups = len(self.group_labels)
        rows = groups if self.limit is None else min(groups, self.limit)
        chosen = [self.having, *(key.source for key in self.order)]
        shown = [output.source for output in self.outputs]
        return rows * sum(map(size_of, shown)), groups * sum(map(size_of, (*chosen, *shown)))

    @cached_property
    def nbytes(self) -> int:
        """About how much memory the statement takes: its text, labels, queries and their diagrams.

        It is computed without making the rows of a GROUP BY, which may be many.
        """
        edges = [block for sums in self.edge_sums for block in (sums.lower, sums.upper)]
        fields = (len(self.group_labels) + 1) * len(self.outputs)
        terms = sum(map(len, self.forms))
        blocks = sum(block.nbytes for block in (*self.blocks, *edges))
        return len(self.text) + 512 * fields + 128 * terms + blocks

    @cached_property
    def selects_by_noise(self) -> bool:
        """Whether noisy answers decide which rows the result has."""
        if self.having != ALWAYS and not is_public(self.having):
            return True
        cut = self.limit is not None or self.offset > 0
        return cut and any(not is_public(key.source) for key in self.order)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What to know about the numbers of the result, whatever the answers are."""
        found = [
            f"{column} is stored in bins: sums and averages use each bin's midpoint, and their "
            "intervals reach from its lower to its upper edge."
            for column in dict.fromkeys(sums.column for sums in self.edge_sums)
        ]
        quantiles = [each for each in self.numbers if isinstance(each, Quantile)]
        for column in dict.fromkeys(each.column for each in quantiles if each.has_bins):
            found.append(f"{column} is stored in bins: a quantile is interpolated inside its bin.")
        spreads = [each for each in self.numbers if isinstance(each, Spread)]
        for column in dict.fromkeys(each.column for each in spreads if each.half_bin):
            found.append(
                f"{column} is stored in bins: a spread uses each bin's midpoint, and its interval is "
                "wider by half of the widest bin at both ends."
            )
        if self.selects_by_noise:
            found.append(
                "Noisy numbers choose the rows, so the largest values tend to be too large. The "
                f"intervals hold for all {len(self.group_labels):,} groups at once."
            )
        return tuple(found)

    @cached_property
    def has_average(self) -> bool:
        """Whether some column of the result is an average."""
        return any(isinstance(output.source, Average) for output in self.outputs)

    @cached_property
    def numbers(self) -> tuple[Number, ...]:
        """The distinct numbers from answers that the result shows, or ranks its rows by."""
        found: dict[Number, None] = {}
        pending = [output.source for output in self.outputs]
        while pending:
            for each in numbers(pending.pop()):
                if each not in found:
                    found[each] = None
                    if isinstance(each, Rank):
                        pending += [key.source for key in each.order]
        return tuple(found)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs of blocks whose answers are combined in the result: sums and their counts."""
        found: dict[tuple[int, int], None] = {}
        for number in self.numbers:
            match number:
                case Aggregate(block, _, int(count)) | Average(block, count, None):
                    found[block, count] = None
        return tuple(found)

    @cached_property
    def moments(self) -> tuple[tuple[int, int], ...]:
        """The pairs of forms whose covariance an interval needs; a form with itself for its variance."""
        found: dict[tuple[int, int], None] = {}
        for number in self.numbers:
            match number:
                case Linear(forms):
                    found |= dict.fromkeys(zip(forms, forms, strict=True))
                case Ratio(above, below):
                    for pair in zip(above, below, strict=True):
                        found |= dict.fromkeys([(pair[0],) * 2, (pair[1],) * 2, pair])
                case Spread(_, sums):
                    # One answer alone has its own standard error.
                    for _, forms in sums:
                        if any(len(self.forms[form]) > 1 for form in forms):
                            found |= dict.fromkeys(zip(forms, forms, strict=True))
                case Quantile(crossings=crossings):
                    found |= {(form, form): None for row in crossings for form in row}
        # Last: stored answers have the others by their places.
        for number in self.numbers:
            if isinstance(number, Spread):
                for row in zip(*(forms for _, forms in number.sums), strict=True):
                    found |= dict.fromkeys(itertools.combinations(row, 2))
        return tuple([(a, b) for a, b in found if self.forms[a] and self.forms[b]])

    @cached_property
    def form_queries(self) -> dict[int, LinearQuery]:
        """The linear query that each form in `moments` adds up to.

        The forms of a quantile are long, and each differs from the one before in one term.
        """
        found: dict[int, LinearQuery] = {}
        last: Form = ()
        total: LinearQuery | None = None
        for at in dict.fromkeys(at for pair in self.moments for at in pair):
            change = _difference(self.forms[at], last)
            if total is None or len(change) >= len(self.forms[at]):
                change, parts = self.forms[at], []
            else:
                parts = [total]
            parts += [self.queries[i] * factor for i, factor in change]
            last, total = self.forms[at], balanced(lambda a, b: a + b, parts)
            found[at] = total
        return found

    @cached_property
    def free_blocks(self) -> tuple[Block, ...]:
        """What is estimated beside the answers and never bought: as many rows as that takes."""
        edges = [block for sums in self.edge_sums for block in (sums.lower, sums.upper)]
        counts = [self.count_of(place) for place in range(len(self.edge_sums))]
        shared = [block for block in counts if block is not None for _ in range(2)]
        again = self.blocks if len(self.blocks) > 1 else ()
        pairs = [self.blocks[left] for left, _ in self.pairs]
        forms = [Block(self.domain, self.form_queries.values())] if self.moments else []
        return (*edges, *shared, *again, *pairs, *forms)

    def count_of(self, edges: int) -> ParallelBlock | None:
        """The counts that sums over bins, one of `edge_sums`, are divided by; None if they are not."""
        for number in self.numbers:
            if isinstance(number, Average) and number.edges == edges:
                return self.blocks[number.count]
        return None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the result's columns."""
        return tuple(output.name for output in self.outputs)

    def rows(self, values: Sequence[Value]) -> list[tuple[Value, ...]]:
        """Return the result, given one answer per query."""
        values = [value.item() if isinstance(value, np.generic) else value for value in values]
        kept = self.select_rows(values)
        columns = [self.column(output.source, values) for output in self.outputs]
        return [tuple(_shown(column[row]) for column in columns) for row in kept]

    def select_rows(self, values: Sequence[Value]) -> list[int]:
        """Apply HAVING, ORDER BY, OFFSET and LIMIT: return indices into `group_labels`."""
        if len(values) != self.starts[-1]:
            raise QueryError(f"Expected {self.starts[-1]:,} answers, got {len(values):,}.")
        rows = list(range(len(self.group_labels)))
        if self.having != ALWAYS:
            truths = self.column(self.having, values)
            rows = [row for row in rows if truths[row] is True]
        if self.order:
            rows = self._sorted(rows, self.order, values)
        end = None if self.limit is None else self.offset + self.limit
        return rows[self.offset : end]

    def _sorted(self, rows: list[int], order: Sequence[OrderKey], values: Sequence[Value]) -> list[int]:
        for key in reversed(order):
            rows = key.sort(rows, self.order_values(key, values))
        return rows

    def order_values(self, key: OrderKey, values: Sequence[Value]) -> Sequence[Value]:
        """Return what each row is sorted by."""
        return key.source.ranks if isinstance(key.source, GroupKey) else self.column(key.source, values)

    def column(self, expression: Expression, values: Sequence[Value]) -> Sequence[Value]:
        """Return an expression's value in every row."""
        if isinstance(expression, GroupKey):
            return expression.labels
        known: dict[Expression, Sequence[Value]] = {}

        def leaf(each: Expression) -> Sequence[Value]:
            if each not in known:
                known[each] = self._leaf(each, values)
            return known[each]

        return evaluate(expression, leaf, range(len(self.group_labels)))

    def _leaf(self, term: Expression, values: Sequence[Value]) -> Sequence[Value]:
        match term:
            case GroupKey(labels, _, of_groups):
                return of_groups or labels
            case Aggregate(block, _, None):
                return self.answers_of(block, values)
            case Aggregate(block, _, int(count), middle):
                return [
                    None if a is None or b is None else a + number_like(b, middle) * b
                    for a, b in self._answer_pairs(block, count, values)
                ]
            case Average(total, count):
                return [_average(term, a, b) for a, b in self._answer_pairs(total, count, values)]
            case Linear(forms):
                return self.combine(forms, values)
            case Ratio(above, below):
                columns = [self.combine(forms, values) for forms in (above, below)]
                return [_average(term, a, b) for a, b in zip(*columns, strict=True)]
            case Spread(kind, sums, spans, centres):
                columns = [self.combine(forms, values) for _, forms in sums]
                names = [name for name, _ in sums]
                return [
                    spread(kind, dict(zip(names, row, strict=True)), spans, centres)
                    for row in zip(*columns, strict=True)
                ]
            case Quantile(_, fraction, ends, counts, _, continuous, is_date):
                found = [
                    quantile(fraction, ends, self.combine(row, values), continuous=continuous)
                    for row in counts
                ]
                return list(map(_day, found)) if is_date else found
            case Rank():
                return self._ranks(term, values)
        raise TypeError(f"{term!r} is not a column")

    def combine(self, forms: Iterable[int], values: Sequence[Value]) -> list[Value]:
        """Return linear combinations of answers; None where one of them is not known."""
        found: dict[int, Value] = {}
        for at in forms:
            if at not in found:
                terms = [(values[i], factor) for i, factor in self.forms[at]]
                known = all(value is not None for value, _ in terms)
                found[at] = sum(number_like(v, f) * v for v, f in terms) if known else None
        return [found[at] for at in forms]

    def _ranks(self, rank: Rank, values: Sequence[Value]) -> list[Value]:
        rows = range(len(self.group_labels))
        keys = [self.order_values(key, values) for key in rank.order]
        found: list[Value] = [None] * len(rows)
        for part in sorted(set(rank.partitions)):
            own = [row for row in rows if rank.partitions[row] == part]
            place = dense = 0
            before = None
            for number, row in enumerate(self._sorted(own, rank.order, values), start=1):
                key = tuple(column[row] for column in keys)
                if before is None or key != before:
                    place, dense, before = number, dense + 1, key
                found[row] = {"RANK": place, "DENSE_RANK": dense}.get(rank.kind, number)
        return found

    def _answer_pairs(
        self, left: int, right: int, values: Sequence[Value]
    ) -> Iterator[tuple[Value, Value]]:
        """Return the answers of two blocks, row by row."""
        return zip(*(self.answers_of(at, values) for at in (left, right)), strict=True)


def _difference(form: Form, other: Form) -> Form:
    """Return the terms that make one form of another."""
    factors = dict(form)
    for i, factor in other:
        factors[i] = factors.get(i, Fraction(0)) - factor
    return tuple((i, factor) for i, factor in factors.items() if factor)


def _day(number: Value) -> dt.date | None:
    """Return the date of a day's number; between two days, the first."""
    return None if number is None else dt.date.fromordinal(int(number))


def _divide(a: Value, b: Value, positive: bool) -> Value:
    if a is None or b is None or b == 0 or (positive and b < 0):
        return None
    return a / b


def _average(average: Average | Ratio, total: Value, count: Value) -> Value:
    """Divide a sum by a count; None unless both are known, and the count is positive."""
    value = _divide(total, count, getattr(average, "positive", True))
    if value is not None and average.middle:
        value += number_like(value, average.middle)
    return average.within(value) if isinstance(value, float) else value


def _shown(value: Value) -> Value:
    """Return a value as a result has it: an exact number that was computed as an int or a float."""
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    return value
