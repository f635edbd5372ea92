"""Aggregates: from COUNT, SUM and AVG to linear queries over the rows that WHERE selects.

The weights of a query are integers times one factor. If the numbers of a SUM need more precision, they
are rounded to the finest power of ten that fits. The grid is public: it depends only on the declared
edges or on the numbers in the SQL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from sqlglot import exp

from sharewell.query.attribute import Attribute, Binned, Integer, Mask
from sharewell.query.diagram import MAX_WEIGHT, Weights
from sharewell.query.domain import Column
from sharewell.query.linear import LinearQuery
from sharewell.query.measure import Measure
from sharewell.query.predicate import Predicate, TruthSet, TruthValue, balanced, evaluate
from sharewell.query.sql.conditions import Conditions, is_null
from sharewell.query.sql.constants import constant_text, read_constant, type_name

AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Filter)

#: The branches of a CASE: their numbers, None for NULL, and the rows that fit their conditions.
Branches = list[tuple[Fraction | None, LinearQuery]]
_Weighted = tuple[LinearQuery, LinearQuery]


class AggregateQueries(NamedTuple):
    """The queries of an aggregate: its count or sum and, if needed, the count of the rows summed.

    A sum over bins counts each row as the midpoint of its bin, and `edges` as the lower or upper edge.
    That of a measure counts it as its distance from `middle`, and its average is within `limits`.
    """

    bought: tuple[LinearQuery, ...]
    edges: tuple[LinearQuery, ...] = ()
    bins: Binned | None = None
    limits: tuple[Fraction, Fraction] | None = None
    middle: Fraction = Fraction(0)

    def where(self, rows: LinearQuery) -> AggregateQueries:
        """Restrict all queries to some rows."""
        bought, edges = (tuple(query.where(rows) for query in part) for part in self[:2])
        return self._replace(bought=bought, edges=edges)


@dataclass
class Aggregates(Conditions):
    """Compiles aggregates over the rows of WHERE, and conditions over the cells of columns."""

    everything: LinearQuery
    rows: LinearQuery

    def select(self, condition: exp.Expr) -> LinearQuery:
        """Return the query that counts the rows on which a condition is true."""

        def leaf(node: Predicate, unknown: bool) -> LinearQuery:
            if not isinstance(node, TruthValue):
                raise TypeError(f"{node!r} is not a predicate over cells")
            return self.everything if node.decide(unknown) else LinearQuery.zero(self.source.domain)

        return evaluate(self.compile(condition), False, leaf)

    def on_column(self, column: Column, true: Mask, unknown: Mask) -> Predicate:
        """Return the cells whose labels match."""
        masks = [true, true | unknown] if unknown.any() else [true]
        sets = [self._cells(column, mask[column.groups] if column.bins else mask) for mask in masks]
        return TruthSet(sets[0], sets[-1])

    def _cells(self, column: Column, weights: Weights | Mask) -> LinearQuery:
        return LinearQuery.of_vectors(self.source.domain, {column.level: weights})

    def queries(self, node: exp.Expr) -> AggregateQueries:
        """Compile an aggregate."""
        rows = self.rows
        if isinstance(node, exp.Filter) and isinstance(node.this, exp.Count | exp.Sum | exp.Avg):
            rows = rows & self.select(node.expression.this)
            node = node.this
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return AggregateQueries((rows,))
        if not isinstance(node, exp.Count | exp.Sum | exp.Avg):
            hint = "Use COUNT, SUM or AVG, each with at most one FILTER."
            raise self.source.error(node, "Unsupported aggregate.", hint)
        if node.this is None or isinstance(node.this, exp.Star):
            hint = "Write COUNT(*), or name a column."
            raise self.source.error(node, "The aggregate has no argument.", hint)
        argument = node.this.unnest()
        if isinstance(node, exp.Count):
            return AggregateQueries((self._known(argument).where(rows),))
        return self._numbers(argument, average=isinstance(node, exp.Avg)).where(rows)

    def _known(self, argument: exp.Expr) -> LinearQuery:
        """Return the rows on which the argument of COUNT is not NULL."""
        if isinstance(argument, exp.Column):
            if measure := self.source.find_measure(argument):
                return LinearQuery.vector(self.source.domain, self._vectors(measure)[0])
            column = self.source.column(argument)
            null, _ = is_null(column)
            return self._cells(column, ~null[column.groups])
        if isinstance(argument, exp.Case):
            return _first_match(self._branches(argument), _is_known)
        return self.everything * _is_known(read_constant(argument, self.source))

    def _numbers(self, argument: exp.Expr, *, average: bool) -> AggregateQueries:
        """Return the number that each row adds to a sum and, for AVG, the rows that have a number."""
        if isinstance(argument, exp.Column):
            measure = self.source.find_measure(argument)
            if measure is not None:
                return self._measured(measure, average=average)
            return self._column_numbers(argument, average=average)
        if isinstance(argument, exp.Case):
            branches = self._branches(argument)
        else:
            branches = [(self._number(argument), self.everything)]
        known = list({number for number, _ in branches if number is not None})
        unit, whole = on_grid(known)
        weights: dict[Fraction | None, int] = dict(zip(known, whole, strict=True))
        total = _first_match(branches, lambda number: weights.get(number, 0)) * unit
        return AggregateQueries((total, _first_match(branches, _is_known)) if average else (total,))

    def _measured(self, measure: Measure, *, average: bool) -> AggregateQueries:
        """Return the centred sum of a measure, in its unit, and the number of its values."""
        count, total = (LinearQuery.vector(self.source.domain, at) for at in self._vectors(measure))
        total *= measure.step
        if not average and not measure.middle:
            return AggregateQueries((total,))
        limits = (Fraction(measure.low), Fraction(measure.high)) if average else None
        return AggregateQueries((total, count), limits=limits, middle=measure.middle)

    def _vectors(self, measure: Measure) -> tuple[int, int]:
        return self.source.domain.vectors_of(measure.name)

    def _column_numbers(self, node: exp.Column, *, average: bool) -> AggregateQueries:
        column = self.source.column(node)
        attribute = column.attribute
        found = () if column.bins else _sum_weights(attribute)
        if not found:
            hint = "SUM and AVG require a numeric or boolean column."
            raise self.source.error(node, f'Column "{column.name}" is not numeric.', hint)
        total, *edges = (self._cells(column, weights) * unit for unit, weights in found)
        count = self._cells(column, attribute.mask(slice(0, len(attribute.values))))
        bins = attribute if isinstance(attribute, Binned) else None
        return AggregateQueries((total, count) if average else (total,), tuple(edges), bins)

    def _branches(self, node: exp.Case) -> Branches:
        default = node.args.get("default")
        return [
            *((self._number(each.args["true"]), self.select(each.this)) for each in node.args["ifs"]),
            (self._number(default) if default else None, self.everything),
        ]

    def _number(self, node: exp.Expr) -> Fraction | None:
        if isinstance(node.unnest(), exp.Column):
            hint = "To sum a column over some rows, write SUM(income) FILTER (WHERE ...)."
            raise self.source.error(node, "A branch of CASE must be a number, not a column.", hint)
        constant = read_constant(node, self.source)
        if constant is None or isinstance(constant, Fraction):
            return constant
        message = f"SUM and AVG require numbers, but {constant_text(constant)} is {type_name(constant)}."
        raise self.source.error(node, message, "Write a number.")


def _first_match(branches: Branches, weight: Callable[[Fraction | None], int]) -> LinearQuery:
    """Return the query that gives each row the weight of the first branch whose condition it fits.

    Two neighbouring parts of a CASE combine like two branches: the second applies to the rows that the
    first leaves. So the parts combine in a balanced tree, and not branch by branch.
    """

    def then(first: _Weighted, second: _Weighted) -> _Weighted:
        (total, matched), (other, more) = first, second
        return total + other.where(~matched), matched | more

    return balanced(then, [(rows * weight(number), rows) for number, rows in branches])[0]


def _is_known(value: object) -> int:
    return int(value is not None)


def on_grid(
    numbers: Sequence[Fraction], rounded: Callable[[Fraction], int] = round
) -> tuple[Fraction, list[int]]:
    """Write numbers as integer multiples, of at most MAX_WEIGHT, of one factor; round if necessary.

    >>> on_grid([Fraction(5), Fraction(5, 2)])
    (Fraction(5, 2), [2, 1])
    """
    largest = max(map(abs, numbers), default=Fraction(0))
    denominator = math.lcm(*(number.denominator for number in numbers))
    unit = Fraction(math.gcd(*(int(number * denominator) for number in numbers)) or 1, denominator)
    if largest > unit * MAX_WEIGHT:
        unit = Fraction(1)
        while largest > unit * MAX_WEIGHT:
            unit *= 10
        while largest * 10 <= unit * MAX_WEIGHT:
            unit /= 10
    return unit, [rounded(number / unit) for number in numbers]


@lru_cache(maxsize=256)
def _sum_weights(attribute: Attribute) -> tuple[tuple[Fraction, Weights], ...]:
    """Return what each cell adds to a SUM, as a unit and integers; `other` and NULL add nothing.

    Of bins, also their lower and their upper edges, rounded outwards. Empty if there are no numbers.
    """
    special = np.zeros(len(attribute.special), dtype=np.int64)
    if isinstance(attribute, Integer) and max(abs(attribute.low), abs(attribute.high)) <= MAX_WEIGHT:
        # Consecutive integers fit as they are; as fractions, a million of them would take seconds.
        numbers = np.array(attribute.values)
        divisor = int(np.gcd.reduce(numbers[:2])) or 1
        return ((Fraction(divisor), np.append(numbers // divisor, special)),)
    if attribute.measures is None:
        return ()
    grids = [on_grid(attribute.measures)]
    if isinstance(attribute, Binned):
        grids += [on_grid(attribute.edges[:-1], math.floor), on_grid(attribute.edges[1:], math.ceil)]
    return tuple((unit, np.append(np.array(whole, np.int64), special)) for unit, whole in grids)
