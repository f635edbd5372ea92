"""Aggregates: from COUNT, SUM and AVG to linear queries over the rows that WHERE selects.

The weights of a query are integers times one factor. If the numbers of a SUM need more precision, they
are rounded to the finest power of ten that fits. The grid is public: it depends only on the declared
edges or on the numbers in the SQL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from sqlglot import exp

from sharewell.query.attribute import Attribute, Binned, Integer, Mask
from sharewell.query.diagram import MAX_WEIGHT, Weights
from sharewell.query.domain import Column
from sharewell.query.linear import LinearQuery
from sharewell.query.predicate import Not, Predicate, TruthSet, TruthValue, balanced, evaluate
from sharewell.query.sql.conditions import Conditions, is_null
from sharewell.query.sql.constants import constant_text, read_constant, type_name
from sharewell.query.sql.text import Source

AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Filter)

#: The branches of a CASE: their numbers, None for NULL, and the rows that fit their conditions.
Branches = list[tuple[Fraction | None, LinearQuery]]
_Weighted = tuple[LinearQuery, LinearQuery]


class Aggregates(Conditions):
    """Compiles aggregates over the rows of WHERE, and conditions over the cells of columns."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.rows = LinearQuery.all(source.domain)
        #: The columns summed by the midpoints of their bins, in order of appearance.
        self.midpoint_columns: dict[str, None] = {}

    def select(self, condition: exp.Expr) -> LinearQuery:
        """Return the query that counts the rows on which a condition is true."""
        return self.cells(self.compile(condition))

    def cells(self, predicate: Predicate) -> LinearQuery:
        """Return the query that counts the rows on which a predicate is true."""
        domain = self.source.domain
        nothing, everything = LinearQuery.zero(domain), LinearQuery.all(domain)

        def leaf(node: Predicate, unknown: bool) -> LinearQuery:
            if not isinstance(node, TruthValue):
                raise TypeError(f"{node!r} is not a predicate over cells")
            return everything if node.decide(unknown) else nothing

        return evaluate(predicate, False, leaf)

    def on_column(self, column: Column, true: Mask, unknown: Mask) -> Predicate:
        """Return the cells whose labels match."""
        masks = [true, true | unknown] if unknown.any() else [true]
        masks = [mask[column.groups] for mask in masks] if column.bins else masks
        sets = [LinearQuery.of_vectors(self.source.domain, {column.level: mask}) for mask in masks]
        return TruthSet(sets[0], sets[-1])

    def queries(self, node: exp.Expr) -> tuple[LinearQuery, ...]:
        """Return the queries of an aggregate: one, or a sum and a count for AVG."""
        rows = self.rows
        if isinstance(node, exp.Filter) and isinstance(node.this, exp.Count | exp.Sum | exp.Avg):
            rows = rows & self.select(node.expression.this)
            node = node.this
        match node:
            case exp.Count(this=exp.Star()):
                return (rows,)
            case exp.Count():
                return (self._not_null(node).where(rows),)
            case exp.Sum() | exp.Avg():
                return tuple(query.where(rows) for query in self._numbers(node))
        hint = "Use COUNT, SUM or AVG, each with at most one FILTER."
        raise self.source.error(node, "Unsupported aggregate.", hint)

    def _argument(self, node: exp.Expr) -> exp.Expr:
        if node.this is None or isinstance(node.this, exp.Star):
            hint = "Write COUNT(*), or name a column."
            raise self.source.error(node, "The aggregate has no argument.", hint)
        argument: exp.Expr = node.this.unnest()
        return argument

    def _not_null(self, node: exp.Count) -> LinearQuery:
        """Return the rows on which the argument of COUNT is not NULL."""
        argument = self._argument(node)
        match argument:
            case exp.Column():
                column = self.source.column(argument)
                return self.cells(Not(self.on_column(column, *is_null(column))))
            case exp.Case():
                return _first_match(self._branches(argument), _is_known)
        constant = read_constant(argument, self.source)
        domain = self.source.domain
        return LinearQuery.zero(domain) if constant is None else LinearQuery.all(domain)

    def _numbers(self, node: exp.Sum | exp.Avg) -> Iterator[LinearQuery]:
        """Yield the number that each row adds to the sum and, for AVG, the rows that have a number."""
        argument = self._argument(node)
        match argument:
            case exp.Column():
                yield from self._column_numbers(argument)[: 1 + isinstance(node, exp.Avg)]
                return
            case exp.Case():
                branches = self._branches(argument)
            case _:
                branches = [(self._number(argument), LinearQuery.all(self.source.domain))]
        known = list({number for number, _ in branches if number is not None})
        unit, whole = on_grid(known)
        weights: dict[Fraction | None, int] = dict(zip(known, whole, strict=True))
        yield _first_match(branches, lambda number: weights.get(number, 0)) * unit
        if isinstance(node, exp.Avg):
            yield _first_match(branches, _is_known)

    def _column_numbers(self, node: exp.Column) -> tuple[LinearQuery, LinearQuery]:
        column, domain = self.source.column(node), self.source.domain
        attribute = column.attribute
        found = None if column.bins else _sum_weights(attribute)
        if found is None:
            hint = "SUM and AVG require a numeric or boolean column."
            raise self.source.error(node, f'Column "{column.name}" is not numeric.', hint)
        if isinstance(attribute, Binned):
            self.midpoint_columns[column.name] = None
        unit, weights = found
        declared = attribute.mask(slice(0, len(attribute.values)))
        total = LinearQuery.of_vectors(domain, {column.level: weights}) * unit
        return total, LinearQuery.of_vectors(domain, {column.level: declared})

    def _branches(self, node: exp.Case) -> Branches:
        default = node.args.get("default")
        return [
            *((self._number(each.args["true"]), self.select(each.this)) for each in node.args["ifs"]),
            (self._number(default) if default else None, LinearQuery.all(self.source.domain)),
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


def _is_known(number: Fraction | None) -> int:
    return int(number is not None)


def on_grid(numbers: Sequence[Fraction]) -> tuple[Fraction, list[int]]:
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
    return unit, [round(number / unit) for number in numbers]


@lru_cache(maxsize=256)
def _sum_weights(attribute: Attribute) -> tuple[Fraction, Weights] | None:
    """Return what each cell adds to a SUM, as a unit and integers; `other` and NULL add nothing."""
    numbers = attribute.values if isinstance(attribute, Integer) else attribute.measures
    if numbers is None:
        return None
    special = np.zeros(len(attribute.special), dtype=np.int64)
    if isinstance(numbers, range) and max(abs(numbers[0]), abs(numbers[-1])) <= MAX_WEIGHT:
        # Consecutive integers fit as they are; as fractions, a million of them would take seconds.
        divisor = int(np.gcd.reduce(np.array(numbers[:2]))) or 1
        return Fraction(divisor), np.append(np.arange(numbers[0], numbers[-1] + 1) // divisor, special)
    unit, whole = on_grid([Fraction(number) for number in numbers])
    return unit, np.append(np.array(whole, dtype=np.int64), special)
