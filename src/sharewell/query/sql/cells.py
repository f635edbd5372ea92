"""Expressions of columns: evaluated on every public value, they divide the cells of the domain.

An expression is evaluated once for each cell of the attributes it uses, from the declared values alone.
Cells with the same result belong together, so what WHERE selects and GROUP BY divides are sets of cells,
and expressions with the same results are the same queries. On a bin, an expression must have one result:
a number in a bin may be any number between its edges, and a day in a month any day of it.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sharewell.errors import CutsThroughBin, QueryTooComplex
from sharewell.query import diagram
from sharewell.query.attribute import Attribute, Binned, Bins, Boolean, Date, Integer, Label
from sharewell.query.diagram import Node, Scaled, spend
from sharewell.query.domain import Column, Domain
from sharewell.query.expression import Call, Constant, Expression, Field, GroupKey, call, type_of
from sharewell.query.functions import CUT, OTHER, Function, Type, singular
from sharewell.query.linear import LinearQuery
from sharewell.query.predicate import TruthSet
from sharewell.query.spans import Span
from sharewell.query.sql.encoding import EncodedColumn, evaluate_encoded
from sharewell.query.sql.text import Source, shortened

#: The maximum number of values that an expression is evaluated on.
MAX_VALUES = 2**17
#: The maximum number of values times the number of functions.
MAX_WORK = 2**22
#: The maximum number of cells on which two columns are compared, and how many in the time of one step.
MAX_COMPARED, COMPARED_OF_STEP = 2**22, 2**7
#: How many steps of a diagram it takes to make the node of a set of cells; how many are found in one.
STEPS_OF_SET, SETS_OF_STEP = 8, 8
_COMPARISONS = {"=", "<>", "<", "<=", ">", ">="}
#: How many it takes to evaluate an expression, however few its values are.
STEPS_OF_EXPRESSION = 24


@dataclass(frozen=True)
class CellValues:
    """The results of an expression on all cells of some attributes, in C order.

    `values` are the distinct results, undeclared ones and NULL last, and `codes` that of each cell.
    """

    levels: tuple[int, ...]
    values: list[Any]
    codes: NDArray[np.int64]
    type: Type

    def query(self, domain: Domain, chosen: Callable[[Any], bool]) -> LinearQuery:
        """Return the query that counts the rows of the cells with chosen results."""
        return self.sum_of(domain, [int(chosen(value)) for value in self.values])

    def sum_of(self, domain: Domain, weights: Sequence[int]) -> LinearQuery:
        """Return the query in which every row counts by the weight of its cell's result."""
        return weighted_query(domain, self.levels, np.array(weights, dtype=np.int64)[self.codes])

    def truth(self, domain: Domain) -> TruthSet:
        """Return the condition that the results are."""
        true = self.query(domain, lambda value: value is True)
        if all(isinstance(value, bool) for value in self.values):
            return TruthSet(true, true)
        return TruthSet(true, self.query(domain, lambda value: value is not False))


class JointColumn:
    """A grouping of the cells of several attributes at once: `groups` has an axis for each of them."""

    def __init__(self, name: str, found: CellValues, other: str | None) -> None:
        self.name = name
        self.type = found.type
        self.levels = found.levels
        self.values, self.groups = found.values, found.codes
        self.labels = tuple(label_of(value, other) for value in self.values)

    def queries(self, domain: Domain) -> list[LinearQuery]:
        """Return the rows of each group."""
        return _partition(domain, self.levels, self.groups)


class ExpressionColumn(Column):
    """A grouping of one attribute's cells by the results of an expression."""

    def __init__(self, name: str, level: int, attribute: Attribute, found: CellValues) -> None:
        self.values, self.type = found.values, found.type
        labels = tuple(label_of(value, attribute.other) for value in self.values)
        super().__init__(level, attribute, Bins(name, labels, tuple(found.codes.tolist())))

    @cached_property
    def identity(self) -> tuple[Any, ...]:
        """What is equal for two columns with the same groups and labels."""
        return self.level, self.labels, self.groups.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExpressionColumn) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)


def evaluate_cells(
    source: Source, node: exp.Expr, expression: Expression, *, subtotals: bool = False
) -> CellValues:
    """Evaluate an expression of columns on every cell; refuse one that divides a bin.

    With `subtotals`, each attribute has one more cell, the last: NULL, as the columns of a subtotal are.
    """
    spend(STEPS_OF_EXPRESSION)
    domain = source.domain
    fields = _fields(expression)
    levels = tuple(sorted({each.column.level for each in fields}))
    attributes = [domain.attributes[level] for level in levels]
    subtotal = ((None,),) * subtotals
    shape = tuple(attribute.size + subtotals for attribute in attributes)
    options = [(*_options(attribute), *subtotal) for attribute in attributes]
    # The days of a month are evaluated one by one, so a cell may stand for several combinations.
    count = math.prod(sum(map(len, of_cell)) for of_cell in options)
    if count > MAX_VALUES or count * _size(expression) > MAX_WORK:
        if not subtotals and (compared := _compare(source, node, expression)):
            return compared
        names = " and ".join(attribute.name for attribute in attributes)
        message = f"{shortened(source.quote(node))} takes too long on {count:,} values of {names}."
        hint = "Compare the column itself with constants, or use declared bins."
        if len(attributes) == 2:
            hint = _apart(source, node, expression)
        raise source.error(node, message, hint, QueryTooComplex)
    # Every combination of values, and the cell of each.
    flat = [list(itertools.chain.from_iterable(of_cell)) for of_cell in options]
    cells_of = [np.repeat(np.arange(len(each)), list(map(len, each))) for each in options]
    at_level = np.indices(tuple(map(len, flat))).reshape(len(flat), count)
    cells = np.zeros(count, dtype=np.int64)
    for size, own, at in zip(shape, cells_of, at_level, strict=True):
        cells = cells * size + own[at]

    @cache
    def leaf(field: Field) -> EncodedColumn:
        at = levels.index(field.column.level)
        if not field.column.is_text:
            return EncodedColumn.of(flat[at], at_level[at])
        texts = [*text_values(field.column), *itertools.chain(*subtotal)]
        return EncodedColumn.of(texts, cells_of[at][at_level[at]])

    found = evaluate_encoded(expression, leaf, np.arange(count))
    _, first = np.unique(cells, return_index=True)
    of_cell = found.codes[first]
    divided = (found.codes != of_cell[cells]) | found.where(_is_divided)
    if divided.any():
        cell = np.unravel_index(int(cells[divided].min()), shape)
        raise _cuts(source, node, attributes, cell)
    values, codes = _in_order(found.values, of_cell)
    return CellValues(levels, values, codes.reshape(shape), type_of(expression))


def _apart(source: Source, node: exp.Expr, expression: Expression) -> str:
    """Write what comes nearest to an expression of two columns of many values."""
    written = shortened(source.quote(node))
    match _dates_apart(expression):
        case (Field(end), Field(start)):
            first = end.labels[0]
            means = [f"AVG({each.name} - DATE '{first}')" for each in (end, start)]
            for at, other in enumerate((start, end)):
                if other.attribute.nullable:
                    means[at] += f" FILTER (WHERE {other.name} IS NOT NULL)"
            return f"Compare it, as in {written} > 30. The average is {' - '.join(means)}."
    if isinstance(node, exp.Case):
        condition = source.quote(node.args["ifs"][0].this)
        return f"Count each of its cases: COUNT_IF({shortened(condition)})."
    return "Compare one column with the other, each side with one of them, or use declared bins."


def _compare(source: Source, node: exp.Expr, expression: Expression) -> CellValues | None:
    """Compare two columns of many values, or two expressions of one column each; None for all else.

    Each side is evaluated on its own, and all values are ranked: what is less is decided by NumPy.
    """
    sides = _sides(expression)
    levels = [{each.column.level for each in _fields(side)} for side in sides]
    if len(sides) != 2 or any(len(each) != 1 for each in levels) or levels[0] == levels[1]:
        return None
    [first], [second] = levels
    attributes = [source.domain.attributes[level] for level in (first, second)]
    shape = tuple(attribute.size for attribute in attributes)
    found: list[tuple[EncodedColumn, NDArray[np.int64]]] = []
    for side, attribute in zip(sides, attributes, strict=True):
        options = _options(attribute)
        flat, lengths = list(itertools.chain.from_iterable(options)), list(map(len, options))
        if len(flat) * _size(side) > MAX_VALUES or math.prod(shape) > MAX_COMPARED:
            return None
        own = np.repeat(np.arange(len(options)), lengths)

        def leaf(field: Field, flat: list[Any] = flat, own: NDArray[np.int64] = own) -> EncodedColumn:
            text = field.column.is_text
            return EncodedColumn.of(text_values(field.column), own) if text else EncodedColumn.of(flat)

        found.append((evaluate_encoded(side, leaf, np.arange(len(flat))), np.cumsum([0, *lengths[:-1]])))
    spend(math.prod(shape) // COMPARED_OF_STEP)
    values = {value for column, _ in found for value in column.values}
    if any(map(_is_divided, values)):
        return None
    ranks = {value: at for at, value in enumerate(sorted(values - {None, OTHER}))}
    ranks |= {OTHER: -1, None: -2}
    ends = []
    for column, starts in found:
        rank = np.array([ranks[value] for value in column.values], dtype=np.int64)[column.codes]
        low, high = np.minimum.reduceat(rank, starts), np.maximum.reduceat(rank, starts)
        if ((low < 0) & (low != high)).any():
            return None
        ends.append((low, high))
    (a, a_high), (b, b_high) = ((low[:, None], high[:, None]) for low, high in ends)
    b, b_high = b.T, b_high.T
    is_less, is_more = a_high < b, a > b_high
    is_same = (a == a_high) & (b == b_high) & (a == b)
    true, false = {
        "=": (is_same, is_less | is_more),
        "<>": (is_less | is_more, is_same),
        "<": (is_less, a >= b_high),
        ">=": (a >= b_high, is_less),
        ">": (is_more, a_high <= b),
        "<=": (a_high <= b, is_more),
    }[expression.function.name]  # type: ignore[union-attr]
    codes = np.where(true, 1, 0)
    codes[(a == -1) | ((a >= 0) & (b == -1))] = 2
    codes[(a == -2) | ((a >= 0) & (b == -2))] = 3
    divided = (codes < 2) & ~true & ~false
    if divided.any():
        raise _cuts(source, node, attributes, np.unravel_index(int(divided.argmax()), shape))
    if first > second:
        codes, shape = codes.T, shape[::-1]
    used, codes = np.unique(codes, return_inverse=True)
    results = [(False, True, OTHER, None)[at] for at in used.tolist()]
    return CellValues(tuple(sorted((first, second))), results, codes.reshape(shape), "boolean")


def _sides(expression: Expression) -> tuple[Expression, ...]:
    """Return the two sides of a comparison, if it is one; days between dates become a later date."""
    if not isinstance(expression, Call) or expression.function.name not in _COMPARISONS:
        return ()
    a, b = expression.arguments
    match _dates_apart(a), _dates_apart(b), a, b:
        case (end, start), None, _, Constant(Fraction(denominator=1)):
            return end, call("+", start, b, type="date")
        case None, (end, start), Constant(Fraction(denominator=1)), _:
            return call("+", start, a, type="date"), end
    return a, b


def _dates_apart(expression: Expression) -> tuple[Expression, Expression] | None:
    """Return the later and the earlier date of an expression for the days between them."""
    match expression:
        case Call(Function(name="-"), (end, start)) if type_of(end) == type_of(start) == "date":
            return end, start
        case Call(Function(name="DATE_DIFF"), (Constant(str() as unit), start, end)):
            return (end, start) if singular(unit) == "day" else None
    return None


def _is_divided(value: Any) -> bool:
    return value is CUT or isinstance(value, Span)


def _in_order(values: Sequence[Any], codes: NDArray[np.int64]) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the values that occur in the order in which they do, undeclared ones and NULL last."""
    used, first = np.unique(codes, return_index=True)
    occurring = dict.fromkeys(values[at] for at in used[np.argsort(first)].tolist())
    ordered = [each for each in occurring if each is not None and each is not OTHER]
    ordered += [each for each in (OTHER, None) if each in occurring]
    numbers = {value: at for at, value in enumerate(ordered)}
    renumbered = np.zeros(len(values), dtype=np.int64)
    renumbered[used] = [numbers[values[at]] for at in used.tolist()]
    return ordered, renumbered[codes]


def weighted_query(domain: Domain, levels: Sequence[int], weights: NDArray[np.int64]) -> LinearQuery:
    """Return the query with a weight for every cell of some attributes."""
    if not levels:
        return LinearQuery.all(domain) * int(weights)
    below = _tails(domain)

    def build(part: NDArray[np.int64], at: int) -> Scaled:
        level = levels[at]
        if at == len(levels) - 1:
            return diagram.of_vector(part, below[level + 1])
        rows: dict[bytes, int] = {}
        which = np.array([rows.setdefault(row.tobytes(), len(rows)) for row in part])
        _, first = np.unique(which, return_index=True)
        parts = [_lifted(domain, level + 1, levels[at + 1], build(part[i], at + 1)) for i in first]
        starts = np.arange(len(part))
        return diagram.make(len(part), starts, np.ones_like(starts), which, parts)

    scale, root = _lifted(domain, 0, levels[0], build(weights, 0))
    return LinearQuery(domain, Fraction(scale), root)


def _partition(domain: Domain, levels: Sequence[int], groups: NDArray[np.int64]) -> list[LinearQuery]:
    """Return the rows of each group of the cells of some attributes.

    Built from the last attribute up, for all groups at once: below every cell of the attributes above,
    a group has a set of cells, and equal sets are one node.
    """
    nodes: list[Node] = [_tails(domain)[levels[-1] + 1]]
    above, group = np.arange(groups.size), groups.ravel()
    node = np.zeros(groups.size, dtype=np.int64)
    for at in range(len(levels) - 1, -1, -1):
        size, level = groups.shape[at], levels[at]
        above, cell = np.divmod(above, size)
        order = np.lexsort((cell, group, above))
        above, group, cells = above[order], group[order], np.stack([cell, node], axis=1)[order]
        first = np.ones(len(order), dtype=bool)
        first[1:] = (above[1:] != above[:-1]) | (group[1:] != group[:-1])
        starts = np.flatnonzero(first)
        ends = [*starts[1:].tolist(), len(order)]
        sets: dict[bytes, tuple[int, int, int]] = {}
        spend(len(starts) // SETS_OF_STEP)
        numbers = [
            sets.setdefault(cells[a:b].tobytes(), (len(sets), a, b))[0]
            for a, b in zip(starts.tolist(), ends, strict=True)
        ]
        spend(STEPS_OF_SET * len(sets))
        top = levels[at - 1] + 1 if at else 0
        nodes = [
            _lift(domain, top, level, _set_node(size, cells[a:b], nodes)) for _, a, b in sets.values()
        ]
        above, group, node = above[starts], group[starts], np.array(numbers, dtype=np.int64)
    return [LinearQuery(domain, Fraction(1), nodes[at]) for at in node.tolist()]


def _set_node(size: int, cells: NDArray[np.int64], nodes: Sequence[Node]) -> Node:
    """Return the predicate that is a given node's on each of some cells."""
    children, which = np.unique(cells[:, 1], return_inverse=True)
    starts, at = diagram.fill(size, cells[:, 0], np.ones(len(cells), dtype=np.int64))
    parts = [(1, nodes[child]) for child in children.tolist()]
    _, node = diagram.make(size, starts, (at >= 0).astype(np.int64), which[at], parts)
    if node is None:
        raise AssertionError("a set of cells is not empty")
    return node


def _lift(domain: Domain, top: int, level: int, node: Node) -> Node:
    """Return a function of the attributes from `level` on as one of those from `top` on."""
    spend(level - top)
    for at in range(level - 1, top - 1, -1):
        node = diagram.constant(domain.shape[at], node)
    return node


def _lifted(domain: Domain, top: int, level: int, scaled: Scaled) -> Scaled:
    scale, node = scaled
    return scale, None if node is None else _lift(domain, top, level, node)


def _tails(domain: Domain) -> list[Node]:
    """Return the count of rows as a function of the attributes from each level on."""
    found = [LinearQuery.all(domain).root or diagram.TERMINAL]
    while found[-1].children:
        found.append(found[-1].children[0])
    return found


def group_key(values: Sequence[Any], type: Type, other: str | None) -> GroupKey:
    """Return a column of the result with public values."""
    known = sorted({value for value in values if value is not None and value is not OTHER})
    ranks = {value: rank for rank, value in enumerate(known)}
    last = len(known)
    return GroupKey(
        tuple(label_of(value, other) for value in values),
        tuple(None if value is None else ranks.get(value, last) for value in values),
        tuple(None if value is OTHER else value for value in values),
        type,
    )


def label_of(value: Any, other: str | None) -> Label:
    """Return a value as a label of a group."""
    match value:
        case Fraction():
            return value.numerator if value.denominator == 1 else float(value)  # type: ignore[return-value]
        case dt.date():
            return value.isoformat()
    return other if value is OTHER else value


def field_of(column: Column) -> Field:
    """Return a column as a part of an expression."""
    attribute = column.attribute
    if column.is_text:
        return Field(column, "text")
    if isinstance(attribute, Boolean):
        return Field(column, "boolean")
    return Field(column, "date" if isinstance(attribute, Date) else "number")


@lru_cache(maxsize=64)
def _options(attribute: Attribute) -> tuple[tuple[Any, ...], ...]:
    """Return the values that the rows of each cell may have; a bin of numbers is one span."""
    match attribute:
        case Integer():
            declared: Iterable[tuple[Any, ...]] = ((Fraction(value),) for value in attribute.values)
        case Binned():
            declared = ((Span(a, b),) for a, b in itertools.pairwise(attribute.edges))
        case Date():
            declared = (
                tuple(map(dt.date.fromordinal, range(a, b)))
                for a, b in itertools.pairwise(attribute.edges)
            )
        case _:
            declared = ((value,) for value in attribute.values)
    special = ((None,) if label is None else (OTHER,) for label in attribute.special)
    return (*declared, *special)


def text_values(column: Column) -> list[Any]:
    """Return the text of every cell of a text column; `other` is one more text."""
    return [column.labels[at] for at in column.groups.tolist()] if column.bins else list(column.labels)


def _fields(expression: Expression) -> list[Field]:
    found: dict[Field, None] = {}
    pending = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, Call):
            pending.extend(node.arguments)
        elif isinstance(node, Field):
            found[node] = None
    return list(found)


def _size(expression: Expression) -> int:
    """Return the number of functions in an expression; the branches of a CASE exclude each other."""
    count, pending = 1, [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, Call):
            count += node.function.name not in ("CASE", "AND", "OR", "IN")
            pending.extend(node.arguments)
    return count


def _cuts(
    source: Source, node: exp.Expr, attributes: Sequence[Attribute], cell: Sequence[Any]
) -> CutsThroughBin:
    """Return the error for an expression that has several results in a bin."""
    for attribute, at in zip(attributes, cell, strict=True):
        if isinstance(attribute, Binned | Date) and int(at) < len(attribute.values):
            start, end = (attribute.edge_text(attribute.edges[int(at) + i]) for i in (0, 1))
            written = shortened(source.quote(node))
            message = f"{written} splits the bin of {attribute.name} from {start} to {end}."
            edges = ", ".join(map(attribute.edge_text, attribute.edges[:6]))
            more = f" and {len(attribute.edges) - 6:,} more" if len(attribute.edges) > 6 else ""
            hint = f"Use {attribute.name} itself, or split it at its edges: {edges}{more}."
            dates = [each for each in attributes if isinstance(each, Date)]
            if len(dates) > 1:
                trunc = (f"date_trunc('{each.by}', {each.name})" for each in dates)
                hint = f"Compare whole periods: {' and '.join(trunc)}."
            return source.error(node, message, hint, CutsThroughBin)
    raise AssertionError("only bins can be cut")
