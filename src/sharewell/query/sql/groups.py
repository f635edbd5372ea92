"""Groups: the rows that GROUP BY makes of a query, and the subtotals of ROLLUP and its relatives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sharewell.query.attribute import Boolean, Category, Integer
from sharewell.query.block import GroupedBlock, ParallelBlock
from sharewell.query.diagram import spend
from sharewell.query.domain import Column
from sharewell.query.expression import GroupKey
from sharewell.query.functions import Type
from sharewell.query.linear import LinearQuery
from sharewell.query.sql.cells import CellValues, ExpressionColumn, JointColumn, group_key
from sharewell.query.sql.text import Source

AnyColumn = Column | JointColumn

#: The maximum number of columns of ROLLUP and of CUBE.
MAX_ROLLED_UP: dict[type[exp.Expr], int] = {exp.Rollup: 64, exp.Cube: 12}
GROUPING_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
TOO_MANY_SETS = ("There are too many grouping sets.", "List fewer columns.")
#: How many values of a column of the result are found in the time of one step of a diagram.
ROWS_OF_STEP = 2


class Groups:
    """The groups of GROUP BY: combinations of the columns' labels in C order; one without columns.

    Combinations that no cell of the domain has, such as an age outside its age group, are left out.
    Groups that merely have no rows stay: which groups are empty is private.

    The result has a row for each group of each of the `sets` of columns, which GROUPING SETS lists; only
    the groups of all columns are bought, and `members` are those that a row is the sum of.
    """

    def __init__(
        self, columns: Iterable[AnyColumn] = (), sets: Sequence[frozenset[int]] | None = None
    ) -> None:
        self.columns = tuple(columns)
        #: The number of combinations, including impossible ones.
        self.size = math.prod(len(column.labels) for column in self.columns)
        every = frozenset(range(len(self.columns)))
        self.sets = [every] if sets is None else list(sets)
        self.has_subtotals = self.sets != [every]
        #: The attributes that are grouped, and the places of their columns.
        self.levels: dict[int, list[int]] = {}
        for at, column in enumerate(self.columns):
            if not isinstance(column, JointColumn):
                self.levels.setdefault(column.level, []).append(at)

    @cached_property
    def keys(self) -> list[tuple[int, ...]]:
        """The groups, each as an index into the labels of every column."""
        keys = list(itertools.product(*(range(len(column.labels)) for column in self.columns)))
        for at in self.levels.values():
            if len(at) > 1:  # Only columns of the same attribute can exclude each other.
                cells = set(zip(*(self.columns[i].groups.tolist() for i in at), strict=True))
                keys = [key for key in keys if tuple(key[i] for i in at) in cells]
        return keys

    # Rows of the result

    @cached_property
    def rows(self) -> Sequence[tuple[int | None, ...]]:
        """The rows of the result: an index into the labels of every column, None where it is summed."""
        return [row for _, row in self.members] if self.has_subtotals else self.keys

    @cached_property
    def members(self) -> dict[tuple[int, tuple[int | None, ...]], list[int]]:
        """The groups that each row of the result is the sum of, by the number of its set and the row."""
        found: dict[tuple[int, tuple[int | None, ...]], list[int]] = {}
        for number, chosen in enumerate(self.sets):
            for place, key in enumerate(self.keys):
                row = tuple(at if i in chosen else None for i, at in enumerate(key))
                found.setdefault((number, row), []).append(place)
        return found

    @cached_property
    def shown(self) -> dict[AnyColumn, GroupKey]:
        """The grouped columns as columns of the result."""
        return {
            column: _shown(column, [row[at] for row in self.rows])
            for at, column in enumerate(self.columns)
        }

    def is_divided(self, level: int) -> bool:
        """Whether a subtotal has some columns of an attribute and not others: a year, but no month."""
        own = frozenset(self.levels.get(level, ()))
        return any(own & chosen not in (frozenset(), own) for chosen in self.sets)

    def computed(self, source: Source, node: exp.Expr, found: CellValues) -> GroupKey:
        """Return an expression of grouped columns, which must be the same in all cells of a group."""
        groups: dict[int, NDArray[np.int64]] = {}
        keys: dict[int, dict[tuple[int, ...], int]] = {}
        for level in found.levels:
            at = self.levels.get(level)
            if at is None:
                raise not_grouped(source, node)
            groups[level], keys[level] = self._divide(at)
            if self.has_subtotals:  # the last cell is that of subtotals, whose key is empty
                groups[level] = np.append(groups[level], len(keys[level]))
                keys[level][()] = len(keys[level])
        # The group of every cell, numbered in C order of the groups of each attribute.
        sizes = tuple(len(keys[level]) for level in found.levels)
        place = np.zeros((), dtype=np.int64)
        for level, size in zip(found.levels, sizes, strict=True):
            place = place[..., np.newaxis] * size + groups[level]
        _, first, of_cell = np.unique(place, return_index=True, return_inverse=True)
        of_group = found.codes.ravel()[first]
        if (of_group[of_cell.ravel()] != found.codes.ravel()).any():
            raise not_grouped(source, node)
        codes = of_group.reshape(sizes)
        spend(len(self.rows) // ROWS_OF_STEP)
        shown = []
        for row in self.rows:
            group: tuple[int, ...] = ()
            for level in found.levels:
                own = tuple(i for at in self.levels[level] if (i := row[at]) is not None)
                group += (keys[level][own],)
            shown.append(found.values[codes[group]])
        other = source.domain.attributes[found.levels[0]].other if found.levels else None
        return group_key(shown, found.type, other)

    # Blocks

    def split(self, total: LinearQuery) -> ParallelBlock:
        """Split a query into one for each group; those that none of its cells is in are zero.

        The last attribute is split first, so that the lower levels of the diagram are built once and
        shared by all groups of the attributes above.
        """
        if not self.columns:
            return ParallelBlock(total.domain, [total])
        joint = [
            (at, column) for at, column in enumerate(self.columns) if isinstance(column, JointColumn)
        ]
        if not joint:
            return GroupedBlock(total, *self._places)
        rest = Groups(column for column in self.columns if not isinstance(column, JointColumn))
        number = {key: at for at, key in enumerate(rest.keys)}
        parts: dict[tuple[int, ...], tuple[LinearQuery, ...]] = {}
        options = [column.queries(total.domain) for _, column in joint]
        for chosen in itertools.product(*(range(len(queries)) for queries in options)):
            base = total
            for queries, at in zip(options, chosen, strict=True):
                base = base.where(queries[at])
            parts[chosen] = rest.split(base).queries
        at_joint = [at for at, _ in joint]
        return ParallelBlock(
            total.domain,
            [
                parts[tuple(key[at] for at in at_joint)][
                    number[tuple(each for at, each in enumerate(key) if at not in at_joint)]
                ]
                for key in self.keys
            ],
        )

    @cached_property
    def _places(self) -> tuple[dict[int, NDArray[np.int64]], NDArray[np.int64]]:
        """The group of every cell by attribute, and the number of each key among all combinations."""
        groups: dict[int, NDArray[np.int64]] = {}
        places = np.zeros(len(self.keys), dtype=np.int64)
        for level, at in sorted(self.levels.items(), reverse=True):
            groups[level], numbers = self._divide(at)
            own = [numbers[tuple(key[i] for i in at)] for key in self.keys]
            places = places * len(numbers) + own
        return groups, places

    def _divide(self, at: Sequence[int]) -> tuple[NDArray[np.int64], dict[tuple[int, ...], int]]:
        """Divide an attribute's cells by all labels of its columns together, and number the parts."""
        labels = np.stack([self.columns[i].groups for i in at])
        found, of_cell = np.unique(labels, axis=1, return_inverse=True)
        return of_cell.ravel(), {tuple(label): number for number, label in enumerate(found.T.tolist())}


def grouping_sets(source: Source, clause: exp.Group) -> tuple[list[exp.Expr], list[tuple[int, ...]]]:
    """Return the nodes of all grouped columns, and the sets of them that ROLLUP and others list."""
    nodes: dict[exp.Expr, int] = {}

    def members(node: exp.Expr) -> tuple[int, ...]:
        parts = node.expressions if isinstance(node, exp.Tuple) else [node]
        return tuple(nodes.setdefault(each.unnest(), len(nodes)) for each in parts)

    always: list[int] = []
    product: list[tuple[int, ...]] = [()]
    for node in clause.expressions:
        if isinstance(node, exp.Rollup | exp.Cube):
            parts = [members(each) for each in node.expressions]
            if len(parts) > MAX_ROLLED_UP[type(node)]:
                raise source.error(clause, *TOO_MANY_SETS)
            chosen = (
                [range(end) for end in range(len(parts), -1, -1)]
                if isinstance(node, exp.Rollup)
                else [
                    [at for at in range(len(parts)) if not skipped >> at & 1]
                    for skipped in range(2 ** len(parts))
                ]
            )
            options = [tuple(own for at in each for own in parts[at]) for each in chosen]
        elif isinstance(node, exp.GroupingSets):
            options = [members(each) for each in node.expressions]
        else:
            always += members(node)
            continue
        product = [(*before, *option) for before in product for option in options]
        if len(product) > 4096:
            raise source.error(clause, *TOO_MANY_SETS)
    return list(nodes), [(*always, *each) for each in product]


def _shown(column: AnyColumn, positions: Sequence[int | None]) -> GroupKey:
    """Return the labels at these positions as a column of the result; None for a subtotal."""
    if isinstance(column, ExpressionColumn | JointColumn):
        other = column.attribute.other if isinstance(column, ExpressionColumn) else None
        computed = [None if i is None else column.values[i] for i in positions]
        return group_key(computed, column.type, other)
    labels, attribute = column.labels, column.attribute
    order = [i for i, label in enumerate(labels) if label is not None]
    if isinstance(attribute, Category):
        order.sort(key=list(map(str, labels)).__getitem__)
    ranks: dict[int | None, int] = {i: rank for rank, i in enumerate(order)}
    shown = tuple(None if i is None else labels[i] for i in positions)
    # Functions are applied to numbers and booleans; a bin is known by its label.
    type_: Type = "text"
    values: tuple[Any, ...] = ()
    if not column.is_text and isinstance(attribute, Integer):
        type_ = "number"
        values = tuple(Fraction(label) if isinstance(label, int) else None for label in shown)
    elif not column.is_text and isinstance(attribute, Boolean):
        type_ = "boolean"
        values = tuple(label if isinstance(label, bool) else None for label in shown)
    return GroupKey(shown, tuple(map(ranks.get, positions)), values, type_)


def not_grouped(source: Source, node: exp.Expr) -> Exception:
    """Return the error for a column that is neither grouped nor aggregated."""
    written = source.quote(node)
    message = f'"{written}" must appear in GROUP BY or inside an aggregate.'
    if isinstance(node, exp.Column):
        message = f"Column {message}"
    return source.error(node, message, f"Add {written} to GROUP BY, or remove it here.")
