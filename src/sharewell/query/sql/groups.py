"""Groups: the rows of the result of a GROUP BY, and the queries of each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from sharewell.query.attribute import Category, Label, Mask
from sharewell.query.domain import Column
from sharewell.query.linear import LinearQuery
from sharewell.query.statement import GroupKey


class Grouping:
    """The groups of GROUP BY: combinations of the columns' labels in C order; one without columns.

    Combinations that no cell of the domain has, such as an age outside its age group, are left out.
    Groups that merely have no rows stay: which groups are empty is private.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)
        #: The number of combinations, including impossible ones.
        self.size = math.prod(len(column.labels) for column in self.columns)
        self._group_keys: dict[Column, GroupKey] = {}

    @cached_property
    def keys(self) -> list[tuple[int, ...]]:
        """The groups, each as an index into the labels of every column."""
        keys = itertools.product(*(range(len(column.labels)) for column in self.columns))
        levels = [column.level for column in self.columns]
        if len(set(levels)) == len(levels):
            return list(keys)
        # Only columns of the same attribute can exclude each other.
        sharing = [[i for i, each in enumerate(levels) if each == level] for level in set(levels)]
        found = [set(zip(*(self.columns[i].groups.tolist() for i in at), strict=True)) for at in sharing]
        checks = list(zip(sharing, found, strict=True))
        return [key for key in keys if all(tuple(key[i] for i in at) in cells for at, cells in checks)]

    @property
    def labels(self) -> tuple[tuple[Label, ...], ...]:
        """The groups, each as a label of every column."""
        lists = [column.labels for column in self.columns]
        return tuple(tuple(list_[at] for list_, at in zip(lists, key, strict=True)) for key in self.keys)

    def group_key(self, column: Column) -> GroupKey:
        """Return a grouped column as a column of the result; the same object every time."""
        if column not in self._group_keys:
            at = self.columns.index(column)
            labels = column.labels
            order = [i for i, label in enumerate(labels) if label is not None]
            if isinstance(column.attribute, Category):
                order.sort(key=lambda i: str(labels[i]))
            ranks = {i: rank for rank, i in enumerate(order)}
            self._group_keys[column] = GroupKey(
                labels=tuple(labels[key[at]] for key in self.keys),
                ranks=tuple(ranks.get(key[at]) for key in self.keys),
            )
        return self._group_keys[column]

    def split(self, total: LinearQuery) -> list[LinearQuery]:
        """Split a query into one query per group.

        The last attribute is split first, so that the lower levels of the diagram are built once and
        shared by all groups of the attributes above.
        """
        order = sorted(range(len(self.columns)), key=lambda i: -self.columns[i].level)
        parts = [total]
        for column in (self.columns[i] for i in order):
            at = (column.level, column.groups, len(column.labels))
            parts = [each for part in parts for each in part.split(*at)]
        table = np.empty(len(parts), dtype=object)
        table[:] = parts
        by_key = table.reshape([len(self.columns[i].labels) for i in order]).transpose(np.argsort(order))
        return [by_key[key] for key in self.keys]

    def labelled(self, column: Column, mask: Mask) -> Mask:
        """Return the groups whose label of a grouped column is in a mask over its labels."""
        at = self.columns.index(column)
        return mask[[key[at] for key in self.keys]]
