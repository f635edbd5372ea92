"""SELECT: from the parse tree to a statement, one rule for each clause."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sharewell.errors import Location, QueryTooComplex
from sharewell.query.attribute import Binned, Category, Mask
from sharewell.query.block import GroupedBlock, ParallelBlock
from sharewell.query.domain import Column
from sharewell.query.linear import LinearQuery
from sharewell.query.predicate import Predicate, TruthSet
from sharewell.query.sql.aggregates import AGGREGATES, Aggregates
from sharewell.query.sql.conditions import Conditions, Operand
from sharewell.query.sql.constants import read_constant
from sharewell.query.sql.text import Source, names_match, normalize_sql, shortened
from sharewell.query.statement import (
    ALWAYS,
    Aggregate,
    Average,
    EdgeSums,
    Expression,
    GroupKey,
    OrderKey,
    Projection,
    Statement,
)

#: The maximum number of queries of one statement, and so of groups.
MAX_QUERIES = 2**16
#: The maximum size of HAVING times the number of groups.
MAX_HAVING_STEPS = 2**22

#: An item of the SELECT list, resolved.
Item = Column | Aggregate | Average
#: A name as it is matched: whether it is quoted, and else case-folded. None matches no alias.
NameKey = tuple[bool, str] | None


def compile_select(select: exp.Select, source: Source, most: int = MAX_QUERIES) -> Statement:
    """Compile a parsed SELECT; refuse one that needs more than `most` queries, before they are made."""
    everything = LinearQuery.all(source.domain)
    draft = Draft(select, source, min(most, MAX_QUERIES), Aggregates(source, everything, everything))
    for name, rule in RULES:
        clause = select.args.get(name)
        if clause is not None:
            rule(draft, clause)
    if select.args.get("from_") is None:
        raise source.error(select, "Missing FROM clause.", f"Add FROM {source.table}.")
    if not draft.totals:
        message = "The query has no COUNT, SUM or AVG."
        raise source.error(select, message, "Add COUNT(*) to the SELECT list.")
    names = [
        node.alias or (item.name if isinstance(item, Column) else source.quote(node.unnest()))
        for node, item in zip(select.expressions, draft.items, strict=True)
    ]
    groups = draft.groups
    return Statement(
        text=normalize_sql(source.text),
        table=source.table,
        domain=source.domain,
        blocks=tuple(map(groups.split, draft.totals)),
        outputs=tuple(map(Projection, names, map(draft.expression, draft.items))),
        group_labels=tuple(zip(*(key.labels for key in groups.shown.values()), strict=True)) or ((),),
        having=draft.having,
        order=draft.order,
        limit=draft.limit,
        edge_sums=tuple(
            EdgeSums(block, bins.name, bins.edges[0], bins.edges[-1], *map(groups.split, edges))
            for block, bins, edges in draft.edges
        ),
    )


def from_table(draft: Draft, clause: exp.From) -> None:
    """FROM names the table, and every qualified column its alias or the table itself."""
    source, named, hint = draft.source, clause.this, f"Write FROM {draft.source.table}."
    if not isinstance(named, exp.Table) or not isinstance(named.this, exp.Identifier):
        raise source.error(clause, "FROM requires one table.", hint)
    if not names_match(named.this, source.table):
        raise source.unknown(named, "table", named.name, source.table, hint)
    qualifier = named.alias or source.table
    for column in draft.select.find_all(exp.Column):
        table = column.args.get("table")
        if table is not None and not names_match(table, qualifier):
            hint = f"Write {qualifier}.{shortened(column.name)}."
            raise source.unknown(column, "table", table.name, qualifier, hint)


def where(draft: Draft, clause: exp.Where) -> None:
    """WHERE selects the rows that all aggregates are over."""
    draft.aggregates.rows = draft.aggregates.select(clause.this)


def group_by(draft: Draft, clause: exp.Group) -> None:
    """GROUP BY lists columns, by their names, aliases or positions."""
    if not clause.expressions:
        hint = "Name a column, or remove GROUP BY."
        raise draft.source.error(draft.select, "GROUP BY has no columns.", hint)
    items = [(each, each.unalias().unnest()) for each in reversed(draft.select.expressions)]
    named = [(each, item) for each, item in items if isinstance(item, exp.Column)]
    aliases = {key: item for each, item in named for key in _alias_keys(each)}
    columns: dict[Column, None] = {}
    for node in clause.expressions:
        node = node.unnest()
        if isinstance(node, exp.Literal) and not node.is_string:
            node = draft.ordinal(node).unalias().unnest()
        if not isinstance(node, exp.Column):
            message = "GROUP BY requires columns or declared bins."
            raise draft.source.error(node, message, "Use their names or their positions.")
        if isinstance(node.this, exp.Identifier) and not draft.source.find(node.this):
            node = aliases.get(_name_key(node), node)
        columns[draft.source.column(node)] = None
    draft.groups = Groups(columns)
    draft.check_size(clause)


def select_list(draft: Draft, items: list[exp.Expr]) -> None:
    """The SELECT list has aggregates and grouped columns."""
    draft.items = [draft.item(node) for node in items]
    for node, item in zip(items, draft.items, strict=True):
        for key in _alias_keys(node):
            draft.aliases.setdefault(key, {})[item] = None


def having(draft: Draft, clause: exp.Having) -> None:
    """HAVING selects rows of the result by their aggregates and labels."""
    # It is evaluated after the answers are paid for: it must not take long then.
    if draft.groups.size * sum(1 for _ in clause.walk()) > MAX_HAVING_STEPS:
        message = f"HAVING is too long for a result of {draft.groups.size:,} rows."
        hint = "Remove it, and filter the result instead."
        raise draft.source.error(clause, message, hint, QueryTooComplex)
    draft.having = RowConditions(draft.source, draft).compile(clause.this)


def order_by(draft: Draft, clause: exp.Order) -> None:
    """ORDER BY lists names, positions or aggregates; a repeated term has no effect."""
    keys: dict[Item, OrderKey] = {}
    for node in clause.expressions:
        key = node.this.unnest()
        if isinstance(key, exp.Literal) and not key.is_string:
            item = draft.item(draft.ordinal(key))
        elif isinstance(key, exp.Column):
            item = draft.resolve(key)
        elif isinstance(key, AGGREGATES):
            item = draft.aggregate(key)
        else:
            message = "ORDER BY requires columns of the result."
            raise draft.source.error(node, message, "Use a name, a position or an aggregate.")
        desc, nulls_first = node.args.get("desc"), node.args.get("nulls_first")
        keys.setdefault(item, OrderKey(draft.expression(item), bool(desc), bool(nulls_first)))
    draft.order = tuple(keys.values())


def limit(draft: Draft, clause: exp.Limit) -> None:
    """LIMIT is a whole number."""
    number = read_constant(clause.expression, draft.source)
    if not isinstance(number, Fraction) or number < 0 or number.denominator != 1:
        message = "LIMIT requires a non-negative integer."
        raise draft.source.error(clause, message, "Example: LIMIT 10.")
    draft.limit = int(number)


#: The rules that make a statement, in the order in which SQL evaluates the clauses.
RULES: tuple[tuple[str, Callable[[Draft, Any], None]], ...] = (
    ("from_", from_table),
    ("where", where),
    ("group", group_by),
    ("expressions", select_list),
    ("having", having),
    ("order", order_by),
    ("limit", limit),
)


class Groups:
    """The groups of GROUP BY: combinations of the columns' labels in C order; one without columns.

    Combinations that no cell of the domain has, such as an age outside its age group, are left out.
    Groups that merely have no rows stay: which groups are empty is private.
    """

    def __init__(self, columns: Iterable[Column] = ()) -> None:
        self.columns = tuple(columns)
        #: The number of combinations, including impossible ones.
        self.size = math.prod(len(column.labels) for column in self.columns)

    @cached_property
    def keys(self) -> list[tuple[int, ...]]:
        """The groups, each as an index into the labels of every column."""
        keys = list(itertools.product(*(range(len(column.labels)) for column in self.columns)))
        for level in {column.level for column in self.columns}:
            at = [i for i, column in enumerate(self.columns) if column.level == level]
            if len(at) > 1:  # Only columns of the same attribute can exclude each other.
                cells = set(zip(*(self.columns[i].groups.tolist() for i in at), strict=True))
                keys = [key for key in keys if tuple(key[i] for i in at) in cells]
        return keys

    @cached_property
    def shown(self) -> dict[Column, GroupKey]:
        """The grouped columns as columns of the result."""
        found = {}
        for column, positions in zip(self.columns, zip(*self.keys, strict=True), strict=True):
            labels = column.labels
            order = [i for i, label in enumerate(labels) if label is not None]
            if isinstance(column.attribute, Category):
                order.sort(key=list(map(str, labels)).__getitem__)
            ranks = {i: rank for rank, i in enumerate(order)}
            found[column] = GroupKey(
                tuple(map(labels.__getitem__, positions)), tuple(map(ranks.get, positions))
            )
        return found

    def split(self, total: LinearQuery) -> ParallelBlock:
        """Split a query into one for each group; those that none of its cells is in are zero.

        The last attribute is split first, so that the lower levels of the diagram are built once and
        shared by all groups of the attributes above.
        """
        if not self.columns:
            return ParallelBlock(total.domain, [total])
        return GroupedBlock(total, *self._places)

    @cached_property
    def _places(self) -> tuple[dict[int, NDArray[np.int64]], NDArray[np.int64]]:
        """The group of every cell by attribute, and the number of each key among all combinations."""
        keys = np.array(self.keys, dtype=np.int64).T
        groups: dict[int, NDArray[np.int64]] = {}
        places = np.zeros(len(self.keys), dtype=np.int64)
        for level in sorted({column.level for column in self.columns}, reverse=True):
            at = [i for i, column in enumerate(self.columns) if column.level == level]
            # Several columns of one attribute divide its cells by all of their labels together.
            labels = np.stack([self.columns[i].groups for i in at])
            found, of_cell = np.unique(labels, axis=1, return_inverse=True)
            groups[level] = of_cell.ravel()
            numbers = {tuple(label): number for number, label in enumerate(found.T.tolist())}
            own = [numbers[tuple(key)] for key in keys[at].T.tolist()]
            places = places * len(numbers) + own
        return groups, places


@dataclass
class Draft:
    """A SELECT on its way to a statement; each rule fills in what its clause says.

    `totals` holds the ungrouped queries and the index of their block. Equal totals split into equal
    groups, so aggregates with the same meaning share a block. `edges` holds the sums of lower and of
    upper edges, which are never bought, in the same way.
    """

    select: exp.Select
    source: Source
    most: int
    aggregates: Aggregates
    groups: Groups = field(default_factory=Groups)
    items: list[Item] = field(default_factory=list)
    totals: dict[LinearQuery, int] = field(default_factory=dict)
    edges: dict[tuple[int, Binned, tuple[LinearQuery, ...]], int] = field(default_factory=dict)
    having: Predicate = ALWAYS
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    #: The distinct items of each alias.
    aliases: dict[NameKey, dict[Item, None]] = field(default_factory=dict)

    def item(self, node: exp.Expr) -> Item:
        """Compile an item of the SELECT list: an aggregate or a grouped column."""
        node = node.unalias().unnest()
        if isinstance(node, AGGREGATES):
            return self.aggregate(node)
        if node.is_star:
            message = "SELECT * is not supported: single rows are never returned."
            raise self.source.error(node, message, "Write SELECT COUNT(*).")
        if isinstance(node, exp.Column):
            return self.grouped(node)
        message = "Only aggregates and grouped columns are allowed in the SELECT list."
        raise self.source.error(node, message, "Use COUNT, SUM or AVG without arithmetic.")

    def aggregate(self, node: exp.Expr) -> Aggregate | Average:
        """Compile an aggregate, and add its queries to those of the statement."""
        bought, edges, bins, limits, middle = self.aggregates.queries(node)
        blocks = []
        for total in bought:
            blocks.append(self.totals.setdefault(total, len(self.totals)))
            self.check_size(node)
        at = self.edges.setdefault((blocks[0], bins, edges), len(self.edges)) if bins else None
        if len(blocks) == 1:
            return Aggregate(blocks[0], at)
        average = isinstance(node.this if isinstance(node, exp.Filter) else node, exp.Avg)
        if not average:
            return Aggregate(blocks[0], at, blocks[1], middle)
        low, high = limits or (None, None)
        return Average(blocks[0], blocks[1], at, low, high, middle)

    def grouped(self, node: exp.Column) -> Column:
        """Return a column, which must be grouped."""
        column = self.source.column(node)
        if column in self.groups.columns:
            return column
        message = f'Column "{column.name}" must appear in GROUP BY or inside an aggregate.'
        raise self.source.error(node, message, f"Add {column.name} to GROUP BY, or remove it here.")

    def expression(self, item: Item) -> Expression:
        """Return an item as a column of the result."""
        return self.groups.shown[item] if isinstance(item, Column) else item

    def resolve(self, node: exp.Column) -> Item:
        """Resolve a name in HAVING or ORDER BY: an alias of the SELECT list, or a grouped column."""
        found = dict(self.aliases.get(_name_key(node), {}))
        column = self.source.find(node.this) if isinstance(node.this, exp.Identifier) else None
        if column is not None and column in self.groups.columns:
            found[column] = None
        if len(found) > 1:
            message = f'Ambiguous name "{shortened(node.name)}".'
            raise self.source.error(node, message, "Rename one of the columns with AS.")
        return next(iter(found)) if found else self.grouped(node)

    def ordinal(self, node: exp.Literal) -> exp.Expr:
        """Return the item of the SELECT list at a position; 1.0 and 01 are not positions."""
        items = self.select.expressions
        if re.fullmatch("[1-9][0-9]{0,8}", node.name) and int(node.name) <= len(items):
            found: exp.Expr = items[int(node.name) - 1]
            return found
        message = f"Position {shortened(node.name)} is not in the SELECT list."
        hint = f"Use a position from 1 to {len(items)}." if len(items) > 1 else "The only position is 1."
        raise self.source.error(node, message, hint)

    def check_size(self, node: exp.Expr) -> None:
        """Refuse more queries than are allowed, blaming a node."""
        totals = max(1, len(self.totals))
        most, queries = MAX_QUERIES, self.groups.size * totals
        if queries <= most:
            most, queries = self.most, len(self.groups.keys) * totals
        if queries > most:
            raise too_large(queries, most, self.source.locate(node))


@dataclass
class RowConditions(Conditions):
    """Compiles HAVING, which is over the rows of the result: their aggregates and their labels."""

    draft: Draft

    def operand(self, node: exp.Expr) -> Operand:
        """Read an aggregate, an alias, a grouped column or a constant."""
        node = node.unnest()
        if isinstance(node, AGGREGATES):
            return self.draft.aggregate(node)
        if isinstance(node, exp.Column):
            return self.draft.resolve(node)
        return super().operand(node)

    def on_column(self, column: Column, true: Mask, unknown: Mask) -> Predicate:
        """Return the groups whose labels match: labels are public."""
        groups = self.draft.groups
        at = groups.columns.index(column)
        labels = [key[at] for key in groups.keys]
        return TruthSet(true[labels], (true | unknown)[labels])


def _name_key(node: exp.Column) -> NameKey:
    if node.args.get("table") or not isinstance(node.this, exp.Identifier):
        return None
    return (True, node.name) if node.this.quoted else (False, node.name.casefold())


def _alias_keys(item: exp.Expr) -> tuple[NameKey, ...]:
    """Return what names an item's alias: exactly, in quotes, or ignoring case."""
    return ((True, item.alias), (False, item.alias.casefold())) if item.alias else ()


def too_large(size: int, limit: int, where: Location | None = None) -> QueryTooComplex:
    """Return the error for a statement that asks for too many numbers."""
    return QueryTooComplex(
        f"The query asks for {size:,} numbers; the limit is {limit:,}.",
        hint="Group by fewer columns, or by declared bins.",
        where=where,
    )
