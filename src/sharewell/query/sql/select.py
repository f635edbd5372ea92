"""SELECT: from the parse tree to a statement, one rule for each clause."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from sqlglot import exp

from sharewell.errors import Location, QueryTooComplex
from sharewell.query.attribute import Binned
from sharewell.query.diagram import allow, spend
from sharewell.query.expression import (
    Call,
    Constant,
    Expression,
    GroupKey,
    OrderKey,
    Quantile,
    is_public,
    numbers,
    size_of,
    type_of,
)
from sharewell.query.linear import LinearQuery
from sharewell.query.sql.aggregates import AGGREGATES, STEPS_OF_AGGREGATE, Aggregates, compile_aggregate
from sharewell.query.sql.cells import ExpressionColumn, JointColumn, evaluate_cells
from sharewell.query.sql.expressions import Translator
from sharewell.query.sql.forms import ONE, Forms, Terms, simplified
from sharewell.query.sql.grammar import AGGREGATE_FUNCTIONS, CALL
from sharewell.query.sql.groups import (
    GROUPING_SETS,
    AnyColumn,
    Groups,
    grouping_sets,
    not_grouped,
)
from sharewell.query.sql.quantiles import (
    Histogram,
    compile_quantile,
    expand_quantiles,
    is_quantile,
)
from sharewell.query.sql.text import Source, names_match, shortened
from sharewell.query.sql.windows import compile_window
from sharewell.query.statement import ALWAYS, EdgeSums, Projection, Statement

#: The maximum number of queries of one statement, and so of groups.
MAX_QUERIES = 2**16
#: Allows as many numbers as there may be queries.
UNLIMITED = sys.maxsize
#: The maximum size of an expression times the number of groups.
MAX_STEPS_OF_ROWS = 2**22
#: How many steps of a diagram it takes to simplify a function of results; how many values of it, and how
#: many groups, are computed in one.
STEPS_OF_FUNCTION, VALUES_OF_STEP, GROUPS_OF_STEP = 2, 32, 2
#: How many more each number of a result allows.
STEPS_OF_NUMBER = 8

#: A name as it is matched: whether it is quoted, and else case-folded. None matches no alias.
NameKey = tuple[bool, str] | None


def compile_select(select: exp.Select, source: Source, most: int = UNLIMITED) -> Statement:
    """Compile a parsed SELECT; refuse one that needs more than `most` queries, before they are made."""
    if any(item.find(exp.Anonymous) for item in select.expressions):
        expand_quantiles(select, source)
    everything = LinearQuery.all(source.domain)
    draft = Draft(source, select, most, Aggregates(source, everything, everything))
    for name, rule in RULES:
        clause, before = select.args.get(name), len(source.mistakes)
        if clause is not None:
            with source.collected():
                rule(draft, clause)
        if len(source.mistakes) > before and name in ("from_", "group", "expressions"):
            break  # what follows depends on it
    if source.mistakes:
        draft.check_names()
        raise source.mistakes.pop()
    if select.args.get("from_") is None:
        raise source.error(select, "Missing FROM clause.", f"Add FROM {source.table}.")
    # SELECT DISTINCT region only lists public values.
    listed = draft.groups.columns and select.args["group"].args.get("all")
    if not draft.forms.blocks and not listed:
        message = "The query has no COUNT, SUM or AVG."
        raise source.error(select, message, "Add COUNT(*) to the SELECT list.")
    written = source.item_texts()
    if len(written) != len(select.expressions):  # a subquery has other items than it shows
        written = [source.quote(node.unnest()) for node in select.expressions]
    names: list[str] = []
    for node, text in zip(select.expressions, written, strict=True):
        column = source.find(node.unnest())
        names.append(node.alias or (column.name if column else text))
    groups = draft.groups
    labels = [groups.shown[column].labels for column in groups.columns]
    return Statement(
        text=source.normalized,
        table=source.table,
        domain=source.domain,
        blocks=tuple(draft.forms.blocks),
        outputs=tuple(map(Projection, names, draft.items)),
        group_labels=tuple(zip(*labels, strict=True)) or ((),) * len(groups.rows),
        having=draft.having,
        order=draft.order,
        limit=draft.limit,
        offset=draft.offset,
        edge_sums=tuple(
            EdgeSums(block, bins.name, bins.edges[0], bins.edges[-1], *map(groups.split, edges))
            for block, bins, edges in draft.edges
        ),
        forms=tuple(draft.forms.forms),
    )


def from_table(draft: Draft, clause: exp.From) -> None:
    """FROM names the table, and every qualified column its alias or the table itself."""
    source, named, hint = draft.source, clause.this, f"Write FROM {draft.source.table}."
    if not isinstance(named, exp.Table) or not isinstance(named.this, exp.Identifier):
        raise source.error(clause, "FROM requires one table.", hint)
    schema = named.args.get("db")
    if not names_match(named.this, source.table) or (schema and schema.name.casefold() != "main"):
        raise source.unknown(named, "table", named.name, source.table, hint)
    qualifier = named.alias or source.table
    for column in draft.select.find_all(exp.Column):
        table = column.args.get("table")
        if table is not None and not names_match(table, qualifier):
            hint = f"Write {qualifier}.{shortened(column.name)}."
            raise source.unknown(column, "table", table.name, qualifier, hint)


def where(draft: Draft, clause: exp.Where) -> None:
    """WHERE selects the rows that all aggregates are over; it may use aliases of the SELECT list."""
    for column in list(clause.find_all(exp.Column)) if draft.items_by_alias else ():
        known = isinstance(column.this, exp.Star) or draft.source.find(column)
        alias = None if known else draft.aliased(column)
        if alias is None:
            continue
        if has_aggregate(draft, alias):
            written = shortened(draft.source.quote(column))
            message = f"{written} is {shortened(draft.source.quote(alias))}, which WHERE cannot use."
            raise draft.source.error(
                column, message, f"Write its condition after GROUP BY: HAVING {written} ..."
            )
        column.replace(exp.Paren(this=alias.copy()))
    draft.aggregates.rows = draft.aggregates.select(clause.this)


def group_by(draft: Draft, clause: exp.Group) -> None:
    """GROUP BY lists columns and expressions of them, by their names, aliases or positions."""
    nodes: Iterable[exp.Expr]
    sets: list[tuple[int, ...]] | None = None
    if clause.args.get("all") and not clause.expressions:
        nodes = [e for e in draft.select.expressions if not has_aggregate(draft, e.unalias())]
    elif not clause.expressions:
        hint = "Name a column, or remove GROUP BY."
        raise draft.source.error(draft.select, "GROUP BY has no columns.", hint)
    elif any(isinstance(node, GROUPING_SETS) for node in clause.expressions):
        nodes, sets = grouping_sets(draft.source, clause)
    else:
        terms = [e.expressions if isinstance(e, exp.Tuple) else [e] for e in clause.expressions]
        nodes = dict.fromkeys(node.unnest() for term in terms for node in term)
    columns: dict[AnyColumn, int] = {}
    places: list[int | None] = []
    for node in nodes:
        column = draft.group_column(node)
        places.append(None if column is None else columns.setdefault(column, len(columns)))
    chosen = None
    if sets is not None:
        if len(set(places)) < len(places):
            message = "ROLLUP, CUBE and GROUPING SETS list a column twice."
            raise draft.source.error(clause, message, "List it once.")
        chosen = [frozenset(place for at in each if (place := places[at]) is not None) for each in sets]
    draft.groups = Groups(columns, chosen)
    if draft.groups.size > MAX_QUERIES:  # so many are not even listed
        raise too_large(draft.groups.size, MAX_QUERIES, draft.source.locate(clause))
    draft.check_size(clause, len(draft.groups.keys))
    spend(len(draft.groups.sets) * len(draft.groups.keys) // GROUPS_OF_STEP)


def select_list(draft: Draft, items: list[exp.Expr]) -> None:
    """The SELECT list has grouped columns, aggregates, and what is computed from them."""
    for node in items:
        with draft.source.collected():
            item = draft.item(node.unalias())
            draft.items.append(item)
            draft.shown += not isinstance(item, GroupKey)
            rows = len(draft.groups.rows)
            size = draft.shown * (rows if draft.limit is None else min(rows, draft.limit))
            if size > draft.most:
                raise too_large(size, draft.most, draft.source.locate(node))
            for key in _alias_keys(node) if node.alias else ():
                draft.aliases.setdefault(key, {})[item] = None


def having(draft: Draft, clause: exp.Having) -> None:
    """HAVING selects rows of the result by their aggregates and labels."""
    found = draft.item(clause.this)
    if type_of(found) not in ("boolean", "null"):
        raise draft.source.error(clause, "Expected a condition.", "Example: HAVING COUNT(*) > 100.")
    draft.having = found


def order_by(draft: Draft, clause: exp.Order) -> None:
    """ORDER BY lists names, positions or expressions; a repeated term has no effect."""
    keys: dict[Expression, OrderKey] = {}
    for node in clause.expressions:
        key = node.this.unnest()
        if isinstance(key, exp.Literal) and not key.is_string:
            item = draft.items[draft.position(key)]
        else:
            item = draft.item(key)
        desc, nulls_first = node.args.get("desc"), node.args.get("nulls_first")
        if not isinstance(item, Constant):
            keys.setdefault(item, OrderKey(item, bool(desc), bool(nulls_first)))
    draft.order = tuple(keys.values())


def limit(draft: Draft, clause: exp.Limit) -> None:
    """LIMIT is a whole number."""
    draft.limit = draft.whole(clause, "LIMIT")


def offset(draft: Draft, clause: exp.Offset) -> None:
    """OFFSET is a whole number."""
    draft.offset = draft.whole(clause, "OFFSET")


#: The rules that make a statement, in the order in which SQL evaluates the clauses; but what LIMIT says
#: is known before, and bounds how many numbers there are.
RULES: tuple[tuple[str, Callable[[Draft, Any], None]], ...] = (
    ("from_", from_table),
    ("where", where),
    ("group", group_by),
    ("limit", limit),
    ("expressions", select_list),
    ("having", having),
    ("order", order_by),
    ("offset", offset),
)


@dataclass
class Draft(Translator):
    """A SELECT on its way to a statement; each rule fills in what its clause says.

    `forms` holds the blocks. Equal totals split into equal groups, so aggregates with the same meaning
    share a block. `edges` holds the sums of lower and of upper edges, which are never bought, in the
    same way.
    """

    select: exp.Select
    most: int
    aggregates: Aggregates
    groups: Groups = field(default_factory=Groups)
    items: list[Expression] = field(default_factory=list)
    totals: dict[LinearQuery, int] = field(default_factory=dict)
    forms: Forms = field(default_factory=Forms)
    #: The counts by value of a column over some rows, and the quantiles that they have.
    histograms: dict[tuple[LinearQuery, int], Histogram] = field(default_factory=dict)
    quantiles: dict[tuple[tuple[LinearQuery, int], Fraction], Quantile] = field(default_factory=dict)
    edges: dict[tuple[int, Binned, tuple[LinearQuery, ...]], int] = field(default_factory=dict)
    #: How many items are numbers.
    shown: int = 0
    having: Expression = ALWAYS
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    #: The columns of grouped expressions, by what they are written as.
    grouped_texts: dict[str, AnyColumn] = field(default_factory=dict)
    #: The distinct items of each alias.
    aliases: dict[NameKey, dict[Expression, None]] = field(default_factory=dict)

    def check_names(self) -> None:
        """Collect all names of the text that do not exist."""
        for column in self.select.find_all(exp.Column):
            is_name = isinstance(column.this, exp.Identifier)
            if is_name and not self.source.find_measure(column) and not self.aliased(column):
                with self.source.collected():
                    self.source.column(column)

    # Items

    def item(self, node: exp.Expr) -> Expression:
        """Compile an item of the SELECT list, or an expression of HAVING or ORDER BY."""
        node = node.unnest()
        if node.is_star:
            message = "SELECT * is not supported: single rows are never returned."
            hint = f"Write SELECT COUNT(*). DESCRIBE {self.source.table} lists the columns."
            raise self.source.error(node, message, hint)
        found = self.translate(node)
        return self._computed(node, found) if isinstance(found, Call) else found

    def _computed(self, node: exp.Expr, translated: Call) -> Expression:
        """Simplify a function of results; refuse what takes too long or has no meaning."""
        # An alias may stand for an expression that has aliases again, twice in each.
        rows, size = len(self.groups.rows), size_of(translated)
        spend(STEPS_OF_FUNCTION * size + size * rows // VALUES_OF_STEP)
        found = simplified(translated, self.forms, rows)
        if not isinstance(found, Call):
            return found
        if type_of(found) != "boolean" and any(type_of(each) == "date" for each in numbers(found)):
            message = f"{shortened(self.source.quote(node))} is an expression of a quantile of dates."
            hint = "Select the quantile itself, or a quantile of numbers."
            raise self.source.error(node, message, hint)
        if rows * sum(1 for _ in node.walk()) > MAX_STEPS_OF_ROWS:
            message = f"The expression is too long for a result of {rows:,} rows."
            hint = "Remove it, and compute it from the result yourself."
            raise self.source.error(node, message, hint, QueryTooComplex)
        return found

    def leaf(self, node: exp.Expr) -> Expression | None:
        """Read what is not computed from other parts of an expression: aggregates and public values."""
        match node:
            case exp.Column():
                return self.resolve(node)
            case exp.Count() | exp.Sum() | exp.Avg():
                return compile_aggregate(self, node)
            case exp.Window():
                return compile_window(self, node)
            case exp.Anonymous() | exp.Filter() | exp.WithinGroup() if is_quantile(node):
                spend(STEPS_OF_AGGREGATE)
                return compile_quantile(self, node)
            case exp.Anonymous() | exp.Filter() if _is_aggregate(node):
                return compile_aggregate(self, node)
        if node.find(exp.Column) and not has_aggregate(self, node):
            return self._public(node)
        return None

    def _public(self, node: exp.Expr) -> Expression | None:
        """Evaluate an expression of grouped columns; None if it must be taken apart."""
        columns = list(node.find_all(exp.Column))
        matching = self.grouped_texts.get(_text(node)) if self.grouped_texts else None
        if matching is not None:
            return self.groups.shown[matching]
        if any(self.aliases.get(_name_key(column)) and not self._grouped(column) for column in columns):
            return None
        if isinstance(node, exp.Not | exp.And | exp.Or | exp.Paren):
            return None
        levels = {column.level for each in columns if (column := self.source.find(each))}
        if not isinstance(node, exp.Column) and any(map(self.groups.is_divided, levels)):
            return None
        return self._of_groups(node, self.aggregates.translator.translate(node))

    def _of_groups(self, node: exp.Expr, expression: Expression) -> GroupKey:
        subtotals = self.groups.has_subtotals
        values = evaluate_cells(self.source, node, expression, subtotals=subtotals)
        return self.groups.computed(self.source, node, values)

    def _grouped(self, node: exp.Column) -> bool:
        return self.source.find(node) in self.groups.columns

    def terms_of(self, block: int) -> list[Terms]:
        """Return the answer of a block in every row of the result, or the sum of those of its groups."""
        start = self.forms.starts[block]
        if not self.groups.has_subtotals:
            return [{start + row: ONE} for row in range(len(self.groups.rows))]
        return [dict.fromkeys([start + at for at in own], ONE) for own in self.groups.members.values()]

    def block(self, total: LinearQuery, node: exp.Expr) -> int:
        """Add the block of an ungrouped query, unless there is one."""
        if total not in self.totals:
            self.check_size(node, self.forms.starts[-1] + len(self.groups.keys))
            # A sum over bins is split into groups three times: by midpoints, lower and upper edges.
            allow(STEPS_OF_NUMBER * (len(self.groups.keys) - 1))
            self.totals[total] = self.forms.add_block(self.groups.split(total))
        return self.totals[total]

    def resolve(self, node: exp.Column) -> Expression:
        """Resolve a name: an alias of the SELECT list, or a grouped column."""
        column = self.source.find(node)
        shown = self.groups.shown.get(column) if column else None
        if shown is not None and len(self.items) < len(self.select.expressions):
            return shown  # In the SELECT list itself, a column comes before an alias of the same name.
        found = self.aliases.get(_name_key(node), {})
        if shown is not None:
            found = {shown: None} | found
        if len(found) > 1:
            message = f'Ambiguous name "{shortened(node.name)}".'
            raise self.source.error(node, message, "Rename one of the columns with AS.")
        if found:
            return next(iter(found))
        column = self.source.column(node)
        try:
            return self._of_groups(node, self.aggregates.translator.translate(node))
        except QueryTooComplex:
            raise not_grouped(self.source, node) from None
        except Exception:
            if column.level not in {getattr(each, "level", None) for each in self.groups.columns}:
                raise not_grouped(self.source, node) from None
            raise

    # Groups

    def group_column(self, node: exp.Expr) -> AnyColumn | None:
        """Compile a term of GROUP BY; None for a constant, which divides nothing."""
        node = node.unalias().unnest()
        if isinstance(node, exp.Literal) and not node.is_string:
            node = self.select.expressions[self.position(node)].unalias().unnest()
        if isinstance(node, exp.Column):
            named = self.source.find(node)
            if named is not None:
                return named
            node = self.aliased(node) or node
        if isinstance(node, exp.Column):
            return self.source.column(node)
        for function in node.find_all(exp.Anonymous) if self.source.unknown_functions else ():
            self.check_function(function)
        if has_aggregate(self, node):
            message = "GROUP BY cannot contain aggregates."
            raise self.source.error(node, message, "Group by columns, or expressions of them.")
        expression = self.aggregates.translator.translate(node)
        if isinstance(expression, Constant):
            return None
        found = evaluate_cells(self.source, node, expression)
        column: AnyColumn
        if len(found.levels) == 1:
            attribute = self.source.domain.attributes[found.levels[0]]
            column = ExpressionColumn(self.source.quote(node), found.levels[0], attribute, found)
        else:
            other = next((a.other for a in self.source.domain.attributes if a.other), None)
            column = JointColumn(self.source.quote(node), found, other)
        self.grouped_texts[_text(node)] = column
        return column

    def check_function(self, node: exp.Anonymous) -> None:
        """Refuse a function that does not exist."""
        unknown = self.source.unknown_functions.get(node.name.removesuffix(CALL))
        if unknown is not None:
            raise unknown

    def aliased(self, node: exp.Column) -> exp.Expr | None:
        """Return the item of the SELECT list that an alias names."""
        item = self.items_by_alias.get(_name_key(node))
        found: exp.Expr | None = item and item.unalias().unnest()
        return found

    @cached_property
    def items_by_alias(self) -> dict[NameKey, exp.Expr]:
        """The first item of the SELECT list for each name of an alias."""
        found = dict[NameKey, exp.Expr]()
        for item in self.select.expressions:
            for key in _alias_keys(item):
                found.setdefault(key, item)
        return found

    def position(self, node: exp.Literal) -> int:
        """Return the place of an item of the SELECT list; 1.0 and 01 are not positions."""
        items = self.select.expressions
        if re.fullmatch("[1-9][0-9]{0,8}", node.name) and int(node.name) <= len(items):
            return int(node.name) - 1
        message = f"Position {shortened(node.name)} is not in the SELECT list."
        hint = f"Use a position from 1 to {len(items)}." if len(items) > 1 else "The only position is 1."
        raise self.source.error(node, message, hint)

    def whole(self, clause: exp.Expr, name: str) -> int:
        """Read the number of LIMIT or OFFSET."""
        found = self.constant(clause.expression)
        if not isinstance(found, Fraction) or found < 0 or found.denominator != 1:
            message = f"{name} requires a non-negative integer."
            raise self.source.error(clause, message, f"Example: {name} 10.")
        return int(found)

    def constant(self, node: exp.Expr) -> Any:
        """Read a constant; None for anything else."""
        if node.find(exp.Column) or has_aggregate(self, node):
            return None
        found = self.translate(node)
        return found.value if isinstance(found, Constant) else None

    def check_size(self, node: exp.Expr, queries: int) -> None:
        """Refuse more queries than are allowed, blaming a node."""
        most = min(self.most, MAX_QUERIES)
        if queries > most:
            raise too_large(queries, most, self.source.locate(node))


def has_aggregate(draft: Draft, node: exp.Expr) -> bool:
    """Whether an expression uses the rows of a group, or an alias of what does."""
    for each in node.walk():
        if _is_aggregate(each) or isinstance(each, exp.Window | exp.WithinGroup):
            return True
        if isinstance(each, exp.Column) and not draft._grouped(each):
            found = draft.aliases.get(_name_key(each))
            if found and not all(map(is_public, found)):
                return True
    return False


def _is_aggregate(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Filter) else node
    if isinstance(inner, exp.Anonymous):
        return inner.name.removesuffix(CALL) in AGGREGATE_FUNCTIONS
    return isinstance(node, AGGREGATES)


def _text(node: exp.Expr) -> str:
    return node.sql(dialect="duckdb", normalize=True)


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
