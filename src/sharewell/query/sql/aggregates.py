"""Aggregates: from COUNT, SUM and AVG to linear queries over the rows that WHERE selects.

The weights of a query are integers times one factor. If the numbers of a SUM need more precision, they
are rounded to the finest power of ten that fits. The grid is public: it depends only on the declared
edges or on the numbers in the SQL.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sqlglot import exp

from sharewell.query.attribute import Attribute, Binned, Date, Integer, Mask
from sharewell.query.diagram import MAX_WEIGHT, Weights, spend
from sharewell.query.domain import Column
from sharewell.query.expression import (
    Aggregate,
    Average,
    Constant,
    Expression,
    Linear,
    Ratio,
    type_of,
)
from sharewell.query.functions import OTHER
from sharewell.query.linear import LinearQuery
from sharewell.query.measure import Measure
from sharewell.query.predicate import Predicate, TruthValue, balanced, evaluate, leaves_of
from sharewell.query.sql.cells import STEPS_OF_EXPRESSION, CellValues, evaluate_cells
from sharewell.query.sql.conditions import ColumnTruth, ColumnTruths, Conditions, is_null
from sharewell.query.sql.constants import parse_number
from sharewell.query.sql.grammar import CALL
from sharewell.query.sql.spreads import compile_products, compile_spread
from sharewell.query.sql.text import shortened

if TYPE_CHECKING:
    from sharewell.query.sql.select import Draft

AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Filter)
#: Functions that count rows on which a condition is true.
COUNT_IF = {f"COUNT_IF{CALL}", f"COUNTIF{CALL}"}
#: The maximum number of branches of a CASE, times cells of its columns, that are compared one by one,
#: and how many of them in the time of one step of a diagram.
MAX_CASE_CELLS, CELLS_OF_STEP = 2**25, 2**12
#: How many steps it takes to compile an aggregate, besides those of its diagrams.
STEPS_OF_AGGREGATE = 28

#: What a row adds to a sum, and the rows that have a number.
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
        return self._rows(self.compile(condition))

    def _rows(self, predicate: Predicate) -> LinearQuery:
        """Return the query that counts the rows on which a predicate is true."""

        def leaf(node: Predicate, unknown: bool) -> LinearQuery:
            if isinstance(node, TruthValue):
                return self.everything if node.decide(unknown) else LinearQuery.zero(self.source.domain)
            vectors: dict[int, Mask] = {}
            for level, mask in _masks(node, unknown):
                vectors[level] = vectors[level] & mask if level in vectors else mask
            return LinearQuery.of_vectors(self.source.domain, vectors)

        return evaluate(predicate, False, leaf)

    def _cells(self, column: Column, weights: Weights | Mask) -> LinearQuery:
        return LinearQuery.of_vectors(self.source.domain, {column.level: weights})

    def queries(self, node: exp.Expr) -> AggregateQueries:
        """Compile an aggregate."""
        rows = self.rows
        if isinstance(node, exp.Filter):
            rows = rows & self.select(node.expression.this)
            node = node.this
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return AggregateQueries((rows,))
        if isinstance(node, exp.Anonymous) and node.name in COUNT_IF and len(node.expressions) == 1:
            return AggregateQueries((self.select(node.expressions[0]) & rows,))
        if not isinstance(node, exp.Count | exp.Sum | exp.Avg):
            hint = "Use COUNT, SUM or AVG, each with at most one FILTER."
            raise self.source.error(node, "Unsupported aggregate.", hint)
        is_distinct = isinstance(node.this, exp.Distinct)
        if not (node.this.expressions if is_distinct else node.this) or isinstance(node.this, exp.Star):
            hint = "Write COUNT(*), or name a column."
            raise self.source.error(node, "The aggregate has no argument.", hint)
        if is_distinct:
            raise self._distinct(node)
        argument = node.this.unnest()
        if isinstance(node, exp.Count):
            return AggregateQueries((self._known(argument).where(rows),))
        return self._numbers(argument, average=isinstance(node, exp.Avg)).where(rows)

    def _distinct(self, node: exp.Expr) -> Exception:
        written = self.source.quote(node.this.expressions[0])
        message = f"{shortened(self.source.quote(node))} is not supported: one row alone can change it."
        hint = f"Count the rows of each value: SELECT {written}, COUNT(*) ... GROUP BY {written}."
        return self.source.error(node, message, hint)

    def _known(self, argument: exp.Expr) -> LinearQuery:
        """Return the rows on which the argument of COUNT is not NULL."""
        if isinstance(argument, exp.Column):
            if measure := self.source.find_measure(argument):
                count, _ = self.source.domain.vectors_of(measure.name)
                return LinearQuery.vector(self.source.domain, count)
            column = self.source.column(argument)
            return self._cells(column, ~is_null(column)[column.groups])
        if isinstance(argument, exp.Case) and (only := self._only_column(argument, average=True)):
            branch, rows = only
            return self._known(branch).where(rows)
        if isinstance(argument, exp.Case) and self._has_numbers(argument):
            return self._case(argument)[1]
        if not self._is_scalar(argument):
            return self._weighted(argument)[1]
        found = self.translator.translate(argument)
        if isinstance(found, Constant):
            return self.everything * int(found.value is not None)
        values = evaluate_cells(self.source, argument, found)
        return values.query(self.source.domain, lambda value: value is not None)

    def _has_numbers(self, case: exp.Case) -> bool:
        """Whether the results of a CASE with conditions are numbers, and not text or dates."""
        if case.args.get("this"):
            return False
        results = [*(each.args["true"] for each in case.args["ifs"]), case.args.get("default")]
        for result in (each for each in results if each is not None):
            if not self._is_scalar(result):
                return True
            if (type_ := type_of(self.translator.translate(result))) != "null":
                return type_ not in ("text", "date")
        return True

    def _is_scalar(self, argument: exp.Expr) -> bool:
        """Whether an expression uses no measure."""
        return not any(self.source.find_measure(each) for each in argument.find_all(exp.Column))

    def _numbers(self, argument: exp.Expr, *, average: bool) -> AggregateQueries:
        """Return the number that each row adds to a sum and, for AVG, the rows that have a number."""
        if isinstance(argument, exp.Column):
            measure = self.source.find_measure(argument)
            if measure is not None:
                return self._measured(measure, average=average)
            return self._column_numbers(argument, average=average)
        if isinstance(argument, exp.Case) and (column := self._only_column(argument, average)):
            # CASE WHEN condition THEN column END: the column's own sum, over some rows.
            branch, rows = column
            return self._numbers(branch, average=average).where(rows)
        total, count = self._weighted(argument, counted=average)
        return AggregateQueries((total, count) if average else (total,))

    def numbers_of(self, argument: exp.Expr) -> _Weighted:
        """Return the sum of an expression's numbers, of bins their midpoints, and the rows with one."""
        if isinstance(argument, exp.Column):
            total, count = self._column_numbers(argument, average=True).bought
            return total, count
        return self._weighted(argument)

    def _only_column(self, node: exp.Case, average: bool) -> tuple[exp.Expr, LinearQuery] | None:
        """Return the column that a CASE returns on some rows, where it adds nothing on all others."""
        branches = [*((each.this, each.args["true"].unnest()) for each in node.args["ifs"])]
        default = node.args.get("default")
        if len(branches) != 1 or node.args.get("this") or not isinstance(branches[0][1], exp.Column):
            return None
        zero = not average and isinstance(default, exp.Literal) and parse_number(default.name) == 0
        if default is not None and not isinstance(default, exp.Null) and not zero:
            return None
        return branches[0][1], self.select(branches[0][0])

    def _weighted(self, node: exp.Expr, *, counted: bool = True) -> _Weighted:
        """Return the sum of an expression's numbers and, if `counted`, the count of rows with one."""
        node = node.unnest()
        if isinstance(node, exp.Case) and not node.args.get("this"):
            return self._case(node, counted=counted)
        if isinstance(node, exp.Column):
            found = self._numbers(node, average=True)
            if found.edges or found.middle:
                message = (
                    f"{shortened(self.source.quote(node))} cannot be combined with others in a sum."
                )
                hint = f"Write SUM({self.source.quote(node)}) FILTER (WHERE ...)."
                raise self.source.error(node, message, hint)
            return found.bought[0], found.bought[1]
        if not self._is_scalar(node):
            message = "Sums of computed measures are not supported."
            raise self.source.error(node, message, self._instead_of_sum(node))
        found_expression = self.translator.translate(node)
        type_ = type_of(found_expression)
        if type_ not in ("number", "boolean", "null"):
            written = shortened(self.source.quote(node))
            message = f"SUM and AVG require numbers, but {written} is {type_}."
            raise self.source.error(node, message, "Write a number.")
        if isinstance(found_expression, Constant):
            number = found_expression.value
            if number is None:
                return LinearQuery.zero(self.source.domain), LinearQuery.zero(self.source.domain)
            # As numbers from the text, on the same grid as those of other branches.
            unit, [whole] = on_grid([Fraction(number)])
            return self.everything * whole * unit, self.everything
        return self._sum_of(evaluate_cells(self.source, node, found_expression))

    def _sum_of(self, found: CellValues) -> _Weighted:
        """Return the sum and the count of numbers that are known for every cell."""
        known = [value for value in found.values if value is not None and value is not OTHER]
        unit, whole = on_grid([Fraction(value) for value in known])
        # Undeclared values and NULL are the last, and add nothing.
        weights = whole + [0] * (len(found.values) - len(known))
        count = found.query(self.source.domain, lambda value: value is not None and value is not OTHER)
        return found.sum_of(self.source.domain, weights) * unit, count

    def _instead_of_sum(self, node: exp.Expr) -> str:
        """Write what comes nearest to the sum of a computed measure."""
        measures = [each for each in node.find_all(exp.Column) if self.source.find_measure(each)]
        written = [shortened(self.source.quote(each)) for each in measures]
        if isinstance(node, exp.Div) and len(written) == 2:
            return f"SUM({written[0]}) / SUM({written[1]}) is the ratio of the sums."
        if isinstance(node, exp.Mul) and len(written) == 1:
            sides = [each.unnest() for each in (node.this, node.expression)]
            for condition in (each for each in sides if isinstance(each, exp.Predicate)):
                rows = shortened(self.source.quote(condition))
                return f"Write SUM({written[0]}) FILTER (WHERE {rows})."
        return f"Sum the measure itself, and compute with the result: SUM({written[0]}) / COUNT(*)."

    def _case(self, node: exp.Case, *, counted: bool = True) -> _Weighted:
        """Sum a CASE: each branch over the rows that fit its condition, and none before it."""
        spend(STEPS_OF_EXPRESSION)
        zero, default = LinearQuery.zero(self.source.domain), node.args.get("default") or exp.Null()
        results = [*(each.args["true"] for each in node.args["ifs"]), default]
        # Equal results are compiled once; numbers are on one grid.
        numbers = {result: self._constant_number(result) for result in dict.fromkeys(results)}
        predicates = [self.compile(each.this) for each in node.args["ifs"]]
        branch = self._branch_of_cells(predicates)
        unit = Fraction(1)
        if _VARIES in numbers.values():
            weighted = {result: self._weighted(result) for result in numbers}
        else:
            known = list(dict.fromkeys(number for number in numbers.values() if number is not None))
            unit, whole = on_grid(known)
            grid = dict(zip(known, whole, strict=True))
            if branch is not None:
                weights = [grid.get(numbers[result], 0) for result in results]
                total = branch.sum_of(self.source.domain, weights) * unit
                exists = [int(numbers[result] is not None) for result in results]
                return total, branch.sum_of(self.source.domain, exists) if counted else zero
            weighted = {
                result: (zero, zero) if n is None else (self.everything * grid[n], self.everything)
                for result, n in numbers.items()
            }
        if branch is not None:
            total, count = zero, zero
            for result, (own, more) in weighted.items():
                rows = branch.sum_of(self.source.domain, [int(each == result) for each in results])
                total, count = total + own.where(rows), count + more.where(rows) if counted else zero
            return total * unit, count

        # Two neighbouring parts of a CASE combine like two branches: the second applies to the rows that
        # the first leaves. So the parts combine in a balanced tree, and not branch by branch.
        def then(first: _Branch, second: _Branch) -> _Branch:
            total, count, matched = first
            other, more, rows = second
            left = ~matched
            both = count + more.where(left) if counted else count
            return total + other.where(left), both, matched | rows

        rows_of = [*map(self._rows, predicates), self.everything]
        parts = [
            (weighted[result][0].where(own), weighted[result][1].where(own) if counted else zero, own)
            for result, own in zip(results, rows_of, strict=True)
        ]
        total, count, _ = balanced(then, parts)
        return total * unit, count

    def _branch_of_cells(self, predicates: Sequence[Predicate]) -> CellValues | None:
        """Return the number of the first predicate that is true in each cell; None if these are many."""
        leaves = [leaf for predicate in predicates for leaf in leaves_of(predicate)]
        if not all(isinstance(leaf, ColumnTruth | ColumnTruths | TruthValue) for leaf in leaves):
            return None
        levels = sorted({level for leaf in leaves for level, _ in _masks(leaf, False)})
        shape = [self.source.domain.shape[level] for level in levels]
        work = len(predicates) * math.prod(shape)
        if work > MAX_CASE_CELLS:
            return None
        spend(work // CELLS_OF_STEP)

        def cells(node: Predicate, unknown: bool) -> Mask:
            if isinstance(node, TruthValue):
                return np.array(node.decide(unknown))
            # A mask of one attribute's cells extends along the axes of the others.
            masks = (
                mask.reshape([-1 if each == level else 1 for each in levels])
                for level, mask in _masks(node, unknown)
            )
            return reduce(operator.and_, masks)

        found = np.full(shape, len(predicates))
        # The first that is true overwrites the later ones.
        for at in range(len(predicates) - 1, -1, -1):
            found[np.broadcast_to(evaluate(predicates[at], False, cells), shape)] = at
        return CellValues(tuple(levels), list(range(len(predicates) + 1)), found, "number")

    def _constant_number(self, node: exp.Expr) -> Any:
        """Return the number of a branch, None for NULL; _VARIES if it is not the same in all rows."""
        if node.find(exp.Column):
            return _VARIES
        found = self.translator.translate(node)
        if isinstance(found, Constant) and type_of(found) in ("number", "boolean", "null"):
            return found.value if found.value is None else Fraction(found.value)
        return _VARIES

    def _measured(self, measure: Measure, *, average: bool) -> AggregateQueries:
        """Return the centred sum of a measure, in its unit, and the number of its values."""
        domain = self.source.domain
        count, total = (LinearQuery.vector(domain, at) for at in domain.vectors_of(measure.name))
        total *= measure.step
        if not average and not measure.middle:
            return AggregateQueries((total,))
        limits = (Fraction(measure.low), Fraction(measure.high)) if average else None
        return AggregateQueries((total, count), limits=limits, middle=measure.middle)

    def _column_numbers(self, node: exp.Column, *, average: bool) -> AggregateQueries:
        column = self.source.column(node)
        attribute = column.attribute
        found = () if column.bins else _sum_weights(attribute)
        if not found:
            hint = f"Count its values: SELECT {column.name}, COUNT(*) ... GROUP BY {column.name}."
            if isinstance(attribute, Date) and not column.bins:
                hint = f"Use MEDIAN({column.name})."
            raise self.source.error(node, f'Column "{column.name}" is not numeric.', hint)
        total, *edges = (self._cells(column, weights) * unit for unit, weights in found)
        count = self._cells(column, attribute.mask(slice(0, len(attribute.values))))
        bins = attribute if isinstance(attribute, Binned) else None
        return AggregateQueries((total, count) if average else (total,), tuple(edges), bins)


# What a result shows of them


def compile_aggregate(draft: Draft, node: exp.Expr) -> Expression:
    """Compile an aggregate, and add its queries to those of the statement."""
    spend(STEPS_OF_AGGREGATE)
    inner = node.this if isinstance(node, exp.Filter) else node
    if isinstance(inner, exp.Anonymous) and inner.name not in COUNT_IF:
        return compile_spread(draft, node, inner)
    argument = inner.this.unnest() if isinstance(inner, exp.Sum | exp.Avg) and inner.this else None
    if argument is not None and not isinstance(argument, exp.Column):
        computed = compile_products(draft, node, inner, argument)
        if computed is not None:
            return computed
    found = draft.aggregates.queries(node)
    bins, middle, limits = found.bins, found.middle, found.limits
    blocks = [draft.block(total, node) for total in found.bought]
    at = draft.edges.setdefault((blocks[0], bins, found.edges), len(draft.edges)) if bins else None
    if draft.groups.has_subtotals:
        limits = (bins.edges[0], bins.edges[-1]) if bins else limits
        average = isinstance(inner, exp.Avg)
        return _subtotals(draft, blocks, average=average, middle=middle, limits=limits, edges=at)
    if len(blocks) == 1:
        return Aggregate(blocks[0], at)
    if not isinstance(inner, exp.Avg):
        return Aggregate(blocks[0], at, blocks[1], middle)
    low, high = limits or (None, None)
    return Average(blocks[0], blocks[1], at, low, high, middle)


def _subtotals(
    draft: Draft,
    blocks: list[int],
    *,
    average: bool,
    middle: Fraction,
    limits: tuple[Fraction, Fraction] | None,
    edges: int | None,
) -> Expression:
    """Sum the groups of every row of the result."""
    sums = [draft.terms_of(block) for block in blocks]
    if average:
        total, count = (draft.forms.add_all(each) for each in sums)
        low, high = limits or (None, None)
        return Ratio(total, count, positive=True, low=low, high=high, middle=middle, edges=edges)
    for own, count_terms in zip(sums[0], sums[-1], strict=True):
        if middle:
            own |= {at: factor * middle for at, factor in count_terms.items()}
    return Linear(draft.forms.add_all(sums[0]), edges)


def _masks(node: Predicate, unknown: bool) -> Iterator[tuple[int, Mask]]:
    """Return where a leaf on columns is true: the level of each column, and a mask of its cells."""
    for part in node.parts if isinstance(node, ColumnTruths) else [node]:
        if isinstance(part, ColumnTruth):
            mask = part.possible if unknown else part.true
            yield part.column.level, mask[part.column.groups] if part.column.bins else mask


_VARIES = object()

#: What a branch of CASE adds to a sum and to its count, and the rows that fit its condition.
_Branch = tuple[LinearQuery, LinearQuery, LinearQuery]


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
