"""SELECT: from the parser's tree to a statement."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cached_property

from sqlglot import exp

from sharewell.errors import QueryTooComplex, SqlError
from sharewell.query.block import ParallelBlock
from sharewell.query.condition import Condition, Fixed, Marks, predicate
from sharewell.query.linear import LinearQuery
from sharewell.query.sql.aggregates import AGGREGATES, by_middles, read_aggregate
from sharewell.query.sql.conditions import ConditionReader, Operand
from sharewell.query.sql.constants import read_constant
from sharewell.query.sql.groups import Groups
from sharewell.query.sql.names import Aliases, Column, Scope
from sharewell.query.sql.text import shortened
from sharewell.query.statement import Mean, OrderKey, Output, Source, Statement, Total

#: The most queries of one statement, and so the most groups.
MAX_QUERIES = 2**16
#: The most parts that HAVING may have, times the groups.
MAX_LOOKS = 2**22

#: What a column of the result shows.
Shown = Column | Total | Mean


class SelectCompiler:
    """One SELECT on its way to a statement.

    `totals` are the ungrouped queries that it was found to need, each with the number of its block:
    equal totals have equal shares of every group, so two aggregates that mean the same are one block.
    """

    def __init__(self, select: exp.Select, scope: Scope, most: int = MAX_QUERIES) -> None:
        scope.open(select)
        self.select = select
        self.scope = scope
        self.most = min(most, MAX_QUERIES)
        self.totals: dict[LinearQuery, int] = {}
        #: The columns that are added up by the middles of their bins, in order.
        self.middles: dict[str, None] = {}
        self.where = self._where()
        self.groups = self._groups()
        self.shown = [(node, self._shown(node.unalias())) for node in select.expressions]

    def statement(self) -> Statement:
        """The statement."""
        having, order, limit = self._having(), self._order(), self._limit()
        if not self.totals:
            raise self._refused(
                self.select, "The SQL asks for no COUNT, SUM or AVG.", "Add COUNT(*) after SELECT."
            )
        return Statement(
            text=self.scope.source.text,
            domain=self.scope.domain,
            # Groups of a column share no cell, so neither do the parts that they split a query into.
            blocks=tuple(
                ParallelBlock(self.scope.domain, self.groups.split(total), disjoint=True)
                for total in self.totals
            ),
            outputs=tuple(Output(self._name(node), self.source(shown)) for node, shown in self.shown),
            group_labels=self.groups.labels,
            having=having,
            order=order,
            limit=limit,
            middles=tuple(self.middles),
        )

    def answer(self, node: exp.Expr) -> Total | Mean:
        """An aggregate; its blocks are added to those needed."""
        blocks = []
        self.middles.update(dict.fromkeys(by_middles(node, self.scope)))
        for total in read_aggregate(node, self.scope, self.where):
            blocks.append(self.totals.setdefault(total, len(self.totals)))
            self._check_size(node, self.groups, len(self.totals))
        return Mean(*blocks) if len(blocks) == 2 else Total(*blocks)

    def named(self, node: exp.Column) -> Shown:
        """What a name in HAVING or ORDER BY means: an alias of the SELECT list, or a grouped column."""
        meant = dict.fromkeys(self._aliases.meanings(node))
        column = self.scope.column(node) if node.args.get("table") else self.scope.find(node.this)
        if column is not None and column in self.groups.columns:
            meant[column] = None
        if len(meant) > 1:
            raise self._refused(
                node,
                f"{shortened(node.name)} could mean two things here.",
                "Give one of them another name with AS.",
            )
        return next(iter(meant)) if meant else self._grouped(node)

    def source(self, shown: Shown) -> Source:
        """What a column of the result is made of."""
        return self.groups.source(shown) if isinstance(shown, Column) else shown

    def _where(self) -> LinearQuery:
        clause = self.select.args.get("where")
        if clause is None:
            return LinearQuery.all(self.scope.domain)
        return predicate(ConditionReader(self.scope).read(clause.this), self.scope.domain)

    def _groups(self) -> Groups:
        clause = self.select.args.get("group")
        if clause is None:
            return Groups(self.scope.domain, ())
        if not clause.expressions:
            raise self._refused(self.select, "GROUP BY names no column.", "Name one, or leave it out.")
        columns = dict.fromkeys(map(self._group_column, clause.expressions))
        groups = Groups(self.scope.domain, tuple(columns))
        self._check_size(clause, groups, 1)
        return groups

    def _group_column(self, node: exp.Expr) -> Column:
        node = node.unnest()
        if isinstance(node, exp.Literal) and not node.is_string:
            node = self._ordinal(node).unalias().unnest()
        if not isinstance(node, exp.Column):
            raise self._refused(
                node, "GROUP BY takes columns and declared bins.", "Name them, or give their numbers."
            )
        if not isinstance(node.this, exp.Identifier) or self.scope.find(node.this):
            return self.scope.column(node)
        at = next(iter(self._aliased_columns.meanings(node)), None)
        if at is None:
            return self.scope.column(node)
        return self.scope.column(self.select.expressions[at].unalias().unnest())

    def _shown(self, node: exp.Expr) -> Shown:
        node = node.unnest()
        if isinstance(node, AGGREGATES):
            return self.answer(node)
        if node.is_star:
            raise self._refused(
                node, "SELECT * is not answered: no single row is ever shown.", "Write SELECT COUNT(*)."
            )
        if isinstance(node, exp.Column):
            return self._grouped(node)
        raise self._refused(
            node, "SELECT takes aggregates and grouped columns.", "Use COUNT, SUM or AVG by themselves."
        )

    def _grouped(self, node: exp.Column) -> Column:
        column = self.scope.column(node)
        if column in self.groups.columns:
            return column
        raise self._refused(
            node,
            f"{column.name} is neither grouped nor inside an aggregate.",
            f"Add {column.name} to GROUP BY, or take it out here.",
        )

    @cached_property
    def _aliases(self) -> Aliases[Shown]:
        return Aliases((item.alias, shown) for item, shown in self.shown)

    @cached_property
    def _aliased_columns(self) -> Aliases[int]:
        """Of the aliases that stand for plain columns, where in the SELECT list they are."""
        return Aliases(
            (item.alias, at)
            for at, item in enumerate(self.select.expressions)
            if isinstance(item.unalias().unnest(), exp.Column)
        )

    def _name(self, node: exp.Expr) -> str:
        """The name of a column of the result: its alias, its own, or the words of the aggregate."""
        inner = node.unalias().unnest()
        if node.alias:
            return str(node.alias)
        return (
            self.scope.column(inner).name
            if isinstance(inner, exp.Column)
            else self.scope.source.words(inner)
        )

    def _having(self) -> Condition:
        clause = self.select.args.get("having")
        if clause is None:
            return Fixed(True)
        # It is looked at in the end, when the answers were paid for: nothing may take long then.
        if self.groups.size * sum(1 for _ in clause.walk()) > MAX_LOOKS:
            raise QueryTooComplex(
                f"HAVING is too long for a result of {self.groups.size:,} rows.",
                hint="Leave it out, and choose among the rows of the result.",
                where=self.scope.source.at_node(clause),
            )
        return HavingReader(self).read(clause.this)

    def _order(self) -> tuple[OrderKey, ...]:
        """The ORDER BY terms; what rows were sorted by before does not sort them again."""
        clause = self.select.args.get("order")
        keys: dict[Shown, OrderKey] = {}
        for node in clause.expressions if clause else ():
            shown = self._order_source(node)
            if shown not in keys:
                keys[shown] = OrderKey(
                    self.source(shown), bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
                )
        return tuple(keys.values())

    def _order_source(self, node: exp.Ordered) -> Shown:
        key = node.this.unnest()
        if isinstance(key, exp.Literal) and not key.is_string:
            return self._shown(self._ordinal(key).unalias().unnest())
        if isinstance(key, exp.Column):
            return self.named(key)
        if isinstance(key, AGGREGATES):
            return self.answer(key)
        raise self._refused(
            node, "ORDER BY takes columns of the result.", "Use a name, a number or an aggregate."
        )

    def _ordinal(self, node: exp.Literal) -> exp.Expr:
        items = self.select.expressions
        # As it is written by itself: 1.0 and 01 are no columns.
        if re.fullmatch("[1-9][0-9]{0,8}", node.name) and int(node.name) <= len(items):
            found: exp.Expr = items[int(node.name) - 1]
            return found
        raise self._refused(
            node,
            f"There is no column number {shortened(node.name)}.",
            f"Give a number from 1 to {len(items)}.",
        )

    def _limit(self) -> int | None:
        clause = self.select.args.get("limit")
        if clause is None:
            return None
        number = read_constant(clause.expression, self.scope.source)
        if not isinstance(number, Fraction) or number < 0 or number.denominator != 1:
            raise self._refused(clause, "LIMIT takes a number of rows.", "Write, for example, LIMIT 10.")
        return int(number)

    def _check_size(self, node: exp.Expr, groups: Groups, totals: int) -> None:
        most, queries = MAX_QUERIES, groups.size * totals
        if queries <= most:
            most, queries = self.most, len(groups.keys) * totals
        if queries > most:
            raise QueryTooComplex(
                f"The SQL asks for {queries:,} numbers, and {most:,} at most are answered.",
                hint="Group by fewer columns, or by declared bins.",
                where=self.scope.source.at_node(node),
            )

    def _refused(self, node: exp.Expr, message: str, hint: str) -> SqlError:
        return SqlError(message, hint=hint, where=self.scope.source.at_node(node))


class HavingReader(ConditionReader):
    """Reads HAVING, which is about the rows of the result: their aggregates and their labels."""

    def __init__(self, compiler: SelectCompiler) -> None:
        super().__init__(compiler.scope)
        self.compiler = compiler

    def operand(self, node: exp.Expr) -> Operand:
        """An aggregate, an alias, a grouped column or a constant."""
        node = node.unnest()
        if isinstance(node, AGGREGATES):
            return self.compiler.answer(node)
        if isinstance(node, exp.Column):
            return self.compiler.named(node)
        return super().operand(node)

    def on_column(self, column: Column, marks: Marks) -> Condition:
        """A grouped column's labels are public, so the rows that have them are known at once."""
        return self.compiler.groups.on_rows(column, marks)
