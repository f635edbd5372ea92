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
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sharewell.errors import CutsThroughBin, QueryTooComplex
from sharewell.query.attribute import Attribute, Binned, Bins, Boolean, Date, Integer, Label
from sharewell.query.domain import Column, Domain
from sharewell.query.expression import Call, Expression, Field, GroupKey, evaluate, type_of
from sharewell.query.functions import CUT, OTHER, Span, Type
from sharewell.query.linear import LinearQuery
from sharewell.query.predicate import TruthSet, balanced
from sharewell.query.sql.text import Source, shortened

#: The maximum number of values that an expression is evaluated on.
MAX_VALUES = 2**17
#: The maximum number of values times the number of functions.
MAX_WORK = 2**22


@dataclass(frozen=True)
class CellValues:
    """The results of an expression on all cells of some attributes, in C order."""

    levels: tuple[int, ...]
    shape: tuple[int, ...]
    values: list[Any]
    type: Type

    def query(self, domain: Domain, chosen: Callable[[Any], bool]) -> LinearQuery:
        """Return the query that counts the rows of the cells with chosen results."""
        mask = np.fromiter(map(chosen, self.values), dtype=bool, count=len(self.values))
        return mask_query(domain, self.levels, mask.reshape(self.shape))

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
        self.values, numbers = _distinct(found.values)
        self.groups = np.array(numbers).reshape(found.shape)
        self.labels = tuple(label_of(value, other) for value in self.values)

    def queries(self, domain: Domain) -> list[LinearQuery]:
        """Return the rows of each group."""
        return [mask_query(domain, self.levels, self.groups == at) for at in range(len(self.labels))]


class ExpressionColumn(Column):
    """A grouping of one attribute's cells by the results of an expression."""

    def __init__(self, name: str, level: int, attribute: Attribute, found: CellValues) -> None:
        self.values, numbers = _distinct(found.values)
        self.type = found.type
        labels = tuple(label_of(value, attribute.other) for value in self.values)
        super().__init__(level, attribute, Bins(name, labels, tuple(numbers)))

    @cached_property
    def identity(self) -> tuple[Any, ...]:
        """What is equal for two columns with the same groups and labels."""
        return self.level, self.labels, self.groups.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExpressionColumn) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)


def evaluate_cells(source: Source, node: exp.Expr, expression: Expression) -> CellValues:
    """Evaluate an expression of columns on every cell; refuse one that divides a bin."""
    domain = source.domain
    fields = _fields(expression)
    levels = tuple(sorted({each.column.level for each in fields}))
    attributes = [domain.attributes[level] for level in levels]
    shape = tuple(attribute.size for attribute in attributes)
    options = [_options(attribute) for attribute in attributes]
    # The days of a month are evaluated one by one, so a cell may stand for several combinations.
    count = math.prod(sum(map(len, of_cell)) for of_cell in options)
    if count > MAX_VALUES or count * _size(expression) > MAX_WORK:
        names = " and ".join(attribute.name for attribute in attributes)
        message = f"{shortened(source.quote(node))} takes too long on {count:,} values of {names}."
        hint = "Compare the column itself with constants, or use declared bins."
        raise source.error(node, message, hint, QueryTooComplex)
    cells, combinations = [], []
    for cell, own in enumerate(itertools.product(*options)):
        for combination in itertools.product(*own):
            cells.append(cell)
            combinations.append(combination)
    columns = dict(zip(levels, zip(*combinations, strict=True), strict=True)) if levels else {}
    positions = np.unravel_index(cells, shape) if levels else ()
    of_level = {level: at.tolist() for level, at in zip(levels, positions, strict=True)}

    def leaf(field: Field) -> Sequence[Any]:
        column = field.column
        if not column.is_text:
            return columns[column.level]
        labels = text_values(column)
        return [labels[cell] for cell in of_level[column.level]]

    found = evaluate(expression, leaf, range(len(cells)))
    results: list[Any] = [_MISSING] * math.prod(shape)
    for cell, value in zip(cells, found, strict=True):
        before = results[cell]
        results[cell] = value if before is _MISSING or _same(before, value) else CUT
    for cell, value in enumerate(results):
        if value is CUT or isinstance(value, Span):
            raise _cuts(source, node, attributes, np.unravel_index(cell, shape))
    return CellValues(levels, shape, results, type_of(expression))


_MISSING = object()


def mask_query(domain: Domain, levels: Sequence[int], mask: NDArray[np.bool_]) -> LinearQuery:
    """Return the query that counts the rows of some cells of some attributes."""
    if len(levels) == 0:
        return LinearQuery.all(domain) if mask.all() else LinearQuery.zero(domain)
    if len(levels) == 1:
        return LinearQuery.of_vectors(domain, {levels[0]: mask.astype(np.int64)})
    flat = mask.reshape(len(mask), -1)
    rows, of_cell = np.unique(flat, axis=0, return_inverse=True)
    parts = []
    for at, row in enumerate(rows):
        if row.any():
            own = LinearQuery.of_vectors(domain, {levels[0]: (of_cell.ravel() == at).astype(np.int64)})
            parts.append(own & mask_query(domain, levels[1:], row.reshape(mask.shape[1:])))
    return balanced(lambda a, b: a | b, parts) if parts else LinearQuery.zero(domain)


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


def _distinct(values: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Return the distinct values, undeclared ones and NULL last, and the number of each value's."""
    found = dict.fromkeys(values)
    ordered = [each for each in found if each is not None and each is not OTHER]
    ordered += [each for each in (OTHER, None) if each in found]
    numbers = {value: at for at, value in enumerate(ordered)}
    return ordered, [numbers[value] for value in values]


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and bool(a == b))


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
            edges = [attribute.edge_text(edge) for edge in attribute.edges[:6]]
            more = ", ..." if len(attribute.edges) > 6 else ""
            hint = f"The edges of {attribute.name} are {', '.join(edges)}{more}."
            return source.error(node, message, hint, CutsThroughBin)
    raise AssertionError("only bins can be cut")
