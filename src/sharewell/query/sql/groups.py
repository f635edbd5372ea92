"""GROUP BY: the rows of a result, one for each cell or bin of the grouped columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from sharewell.query.attribute import Category, Label
from sharewell.query.condition import Marks
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell.query.sql.names import Column
from sharewell.query.statement import Grouped


class Groups:
    """The combinations of the grouped columns' labels, in C order; without columns, a single row.

    A combination that no cell of the domain has, such as an age and an age group that it is not in,
    is left out; one that merely has no rows in the table stays.
    """

    def __init__(self, domain: Domain, columns: Sequence[Column]) -> None:
        self.domain = domain
        self.columns = tuple(columns)
        self._sources: dict[Column, Grouped] = {}

    @property
    def size(self) -> int:
        """How many combinations there are, the impossible ones included."""
        return math.prod(len(column.labels) for column in self.columns)

    @cached_property
    def keys(self) -> list[tuple[int, ...]]:
        """The rows: a position among the labels of each column."""
        return list(itertools.compress(self._combinations(), self._possible))

    @property
    def labels(self) -> tuple[tuple[Label, ...], ...]:
        """The rows: a label of each column."""
        return tuple(
            tuple(column.labels[at] for column, at in zip(self.columns, key, strict=True))
            for key in self.keys
        )

    def source(self, column: Column) -> Grouped:
        """A grouped column as a column of the result; shown twice, it is the same one."""
        if column not in self._sources:
            at = self.columns.index(column)
            ranks = _ranks(column)
            self._sources[column] = Grouped(
                labels=tuple(column.labels[key[at]] for key in self.keys),
                ranks=tuple(ranks[key[at]] for key in self.keys),
            )
        return self._sources[column]

    def split(self, total: LinearQuery) -> tuple[LinearQuery, ...]:
        """A query's share of each row.

        The last attribute is split first: what lies below an attribute in a query's diagram is then
        made once, and shared by all groups of the attributes above it.
        """
        order = sorted(range(len(self.columns)), key=lambda i: -self.columns[i].level)
        parts = [total]
        for i in order:
            column = self.columns[i]
            groups = [column.group(at, self.domain) for at in range(len(column.labels))]
            parts = [part.where(group) for part in parts for group in groups]
        table = np.empty(len(parts), dtype=object)
        table[:] = parts
        as_split = table.reshape([len(self.columns[i].labels) for i in order])
        as_listed = as_split.transpose(np.argsort(order)).ravel()
        return tuple(itertools.compress(as_listed, self._possible))

    def on_rows(self, column: Column, marks: Marks) -> Marks:
        """What is marked on a grouped column's cells, marked on the rows."""
        at = self.columns.index(column)
        first = dict(zip(reversed(column.groups), reversed(range(len(column.groups))), strict=True))
        cells = [first[key[at]] for key in self.keys]
        return Marks(marks.true[cells], marks.unknown[cells])

    @cached_property
    def _possible(self) -> list[bool]:
        """Which combinations some cell has: it is enough to look at columns of one attribute."""
        levels = {column.level for column in self.columns}
        sharing = [
            [i for i, column in enumerate(self.columns) if column.level == level] for level in levels
        ]
        found = [set(zip(*(self.columns[i].groups for i in at), strict=True)) for at in sharing]
        return [
            all(tuple(key[i] for i in at) in cells for at, cells in zip(sharing, found, strict=True))
            for key in self._combinations()
        ]

    def _combinations(self) -> itertools.product[tuple[int, ...]]:
        return itertools.product(*(range(len(column.labels)) for column in self.columns))


def _ranks(column: Column) -> list[int | None]:
    """The order of a column's labels: that of the texts for categories, else that of the cells."""
    known = [at for at, label in enumerate(column.labels) if label is not None]
    if isinstance(column.attribute, Category):
        known.sort(key=lambda at: str(column.labels[at]))
    ranks: list[int | None] = [None] * len(column.labels)
    for rank, at in enumerate(known):
        ranks[at] = rank
    return ranks
