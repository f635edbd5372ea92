"""Aggregates: COUNT, SUM and AVG as linear queries.

A query's weights are whole numbers times one factor. Where the numbers that a SUM adds up need more
digits than that can hold, they are rounded to the finest power of ten at which they fit. The grid
follows from the declared edges, or from the numbers in the SQL: it is public.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from sqlglot import exp

from sharewell.errors import SqlError
from sharewell.query.attribute import Attribute
from sharewell.query.condition import Not, predicate
from sharewell.query.diagram import MAX_WEIGHT, Weights
from sharewell.query.linear import LinearQuery
from sharewell.query.ordered import Binned
from sharewell.query.sql import comparison
from sharewell.query.sql.conditions import ConditionReader
from sharewell.query.sql.constants import constant_text, kind, read_constant
from sharewell.query.sql.names import Scope

AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Filter)


def read_aggregate(node: exp.Expr, scope: Scope, where: LinearQuery) -> tuple[LinearQuery, ...]:
    """The queries of an aggregate on the rows that `where` selects: for AVG a sum and a count."""
    match node:
        case exp.Filter(this=exp.Count() | exp.Sum() | exp.Avg()):
            condition = ConditionReader(scope).read(node.expression.this)
            return read_aggregate(node.this, scope, where & predicate(condition, scope.domain))
        case exp.Count(this=exp.Star()):
            return (where,)
        case exp.Count():
            return (_present(node, scope).where(where),)
        case exp.Sum():
            return (_numbers(node, scope)[0].where(where),)
        case exp.Avg():
            total, count = _numbers(node, scope)
            return total.where(where), count.where(where)
    raise SqlError(
        "This is not an aggregate that is answered.",
        hint="Use COUNT, SUM or AVG, each with at most one FILTER.",
        where=scope.source.at_node(node),
    )


def by_middles(node: exp.Expr, scope: Scope) -> Iterator[str]:
    """The column that an aggregate adds up by the middles of its bins, if it does."""
    inner = node.this if isinstance(node, exp.Filter) else node
    if isinstance(inner, exp.Sum | exp.Avg) and isinstance(inner.this, exp.Expr):
        argument = inner.this.unnest()
        if isinstance(argument, exp.Column):
            column = scope.column(argument)
            if isinstance(column.attribute, Binned):
                yield column.name


def on_grid(numbers: Sequence[Fraction]) -> tuple[Fraction, list[int]]:
    """Numbers as whole multiples, of at most MAX_WEIGHT, of one factor; rounded where they must be.

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
def _weights(attribute: Attribute) -> tuple[Fraction, Weights] | None:
    """What each cell of an attribute adds to a SUM; the `other` and NULL cells add nothing."""
    if attribute.measures is None:
        return None
    unit, whole = on_grid(attribute.measures)
    return unit, np.array([*whole, *(0 for _ in attribute.special)], dtype=np.int64)


def _argument(node: exp.Expr, scope: Scope) -> exp.Expr:
    if node.this is None or isinstance(node.this, exp.Star):
        raise SqlError(
            "The aggregate has nothing to add up.",
            hint="Write COUNT(*), or name a column.",
            where=scope.source.at_node(node),
        )
    argument: exp.Expr = node.this.unnest()
    return argument


def _present(node: exp.Count, scope: Scope) -> LinearQuery:
    """The rows on which the argument of COUNT is not NULL."""
    argument = _argument(node, scope)
    match argument:
        case exp.Column():
            return predicate(Not(comparison.null(scope.column(argument))), scope.domain)
        case exp.Case():
            return _sum(
                scope, [rows for number, rows in _branches(argument, scope) if number is not None]
            )
    constant = read_constant(argument, scope.source)
    return LinearQuery.zero(scope.domain) if constant is None else LinearQuery.all(scope.domain)


def _numbers(node: exp.Sum | exp.Avg, scope: Scope) -> tuple[LinearQuery, LinearQuery]:
    """What each row adds to a SUM, and the rows that have a number at all."""
    argument = _argument(node, scope)
    match argument:
        case exp.Column():
            return _column_numbers(argument, scope)
        case exp.Case():
            branches = list(_branches(argument, scope))
        case _:
            branches = [(_number(argument, scope), LinearQuery.all(scope.domain))]
    known = [(number, rows) for number, rows in branches if number is not None]
    unit, whole = on_grid([number for number, _ in known])
    total = _sum(scope, [rows * weight for weight, (_, rows) in zip(whole, known, strict=True)])
    return total * unit, _sum(scope, [rows for _, rows in known])


def _column_numbers(node: exp.Column, scope: Scope) -> tuple[LinearQuery, LinearQuery]:
    column = scope.column(node)
    attribute = column.attribute
    found = None if column.bins else _weights(attribute)
    if found is None:
        raise SqlError(
            f"{column.name} has no numbers to add up.",
            hint="SUM and AVG take columns of numbers, or of true and false; COUNT takes any.",
            where=scope.source.at_node(node),
        )
    unit, weights = found
    declared = attribute.mask(slice(0, len(attribute.values)))
    total = LinearQuery.product(scope.domain, {attribute.name: weights}) * unit
    return total, LinearQuery.product(scope.domain, {attribute.name: declared})


def _branches(node: exp.Case, scope: Scope) -> Iterator[tuple[Fraction | None, LinearQuery]]:
    """The number of each branch of a CASE, None for NULL, and the rows that reach it."""
    left = LinearQuery.all(scope.domain)
    for branch in node.args["ifs"]:
        condition = ConditionReader(scope).read(branch.this)
        rows = left & predicate(condition, scope.domain)
        yield _number(branch.args["true"], scope), rows
        left = left - rows
    default = node.args.get("default")
    yield _number(default, scope) if default else None, left


def _number(node: exp.Expr, scope: Scope) -> Fraction | None:
    if isinstance(node.unnest(), exp.Column):
        raise SqlError(
            "The branches of a CASE are numbers here, not columns.",
            hint="Write SUM(income) FILTER (WHERE ...) to add up a column on some rows.",
            where=scope.source.at_node(node),
        )
    constant = read_constant(node, scope.source)
    if constant is None or isinstance(constant, Fraction):
        return constant
    raise SqlError(
        f"There should be a number here, and {constant_text(constant)} is {kind(constant)}.",
        hint="SUM and AVG add up numbers.",
        where=scope.source.at_node(node),
    )


def _sum(scope: Scope, queries: Sequence[LinearQuery]) -> LinearQuery:
    return sum(queries, start=LinearQuery.zero(scope.domain))
