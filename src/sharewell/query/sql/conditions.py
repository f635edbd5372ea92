"""WHERE and HAVING: from the parser's tree to a condition."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import ParamSpec, TypeVar

from sqlglot import exp

from sharewell.errors import SqlError
from sharewell.query.condition import All, AnyOf, Condition, Fixed, Is, Marks, Not
from sharewell.query.sql import comparison
from sharewell.query.sql.constants import Constant, constant_text, kind, read_constant
from sharewell.query.sql.like import like_matcher
from sharewell.query.sql.names import Column, Scope
from sharewell.query.statement import OPERATORS, Compare, Mean, Missing, Total

Operand = Column | Total | Mean | Constant

_SYMBOLS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_LOGICAL = {exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Like, exp.Escape, *_SYMBOLS}

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class ConditionReader:
    """Reads the conditions of WHERE, FILTER and CASE, which are about the cells of columns."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.source = scope.source

    def read(self, node: exp.Expr) -> Condition:
        """The condition that a part of the tree states."""
        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.And():
                return All(tuple(map(self.read, _chain(node))))
            case exp.Or():
                return AnyOf(tuple(map(self.read, _chain(node))))
            case exp.Not():
                return Not(self.read(node.this))
            case exp.Is():
                return self._is(node)
            case exp.In():
                return self._in(node)
            case exp.Between():
                value = self.operand(node.this)
                low, high = self.operand(node.args["low"]), self.operand(node.args["high"])
                return All(
                    (self._compare(node, ">=", value, low), self._compare(node, "<=", value, high))
                )
            case exp.Like():
                return self._like(node, "")
            case exp.Escape(this=exp.Like()):
                return self._escaped(node)
            case _ if type(node) in _SYMBOLS:
                left, right = self.operand(node.this), self.operand(node.expression)
                return self._compare(node, _SYMBOLS[type(node)], left, right)
        return self._bare(node)

    def operand(self, node: exp.Expr) -> Operand:
        """What a comparison compares: a column or a constant."""
        node = node.unnest()
        return (
            self.scope.column(node) if isinstance(node, exp.Column) else read_constant(node, self.source)
        )

    def on_column(self, column: Column, marks: Marks) -> Condition:
        """What is made of a leaf on one column's cells."""
        return marks

    def _compare(self, node: exp.Expr, symbol: str, left: Operand, right: Operand) -> Condition:
        if isinstance(left, Column):
            return self._compare_column(node, symbol, left, right)
        if isinstance(right, Column):
            return self._compare_column(node, _MIRRORED[symbol], right, left)
        if left is None or right is None:
            return Fixed(None)
        if isinstance(left, Total | Mean) or isinstance(right, Total | Mean):
            for side in (left, right):
                self._check_number(node, side)
            return Compare(symbol, left, right)
        if type(left) is not type(right):
            raise SqlError(
                f"{constant_text(left)} is {kind(left)}, and {constant_text(right)} is {kind(right)}.",
                hint="Compare like with like.",
                where=self.source.at_node(node),
            )
        return Fixed(OPERATORS[symbol](left, right))

    def _compare_column(self, node: exp.Expr, symbol: str, column: Column, other: Operand) -> Condition:
        if isinstance(other, Column | Total | Mean):
            raise SqlError(
                "A column is compared with constants only.",
                hint="Compare each column with a constant of its own.",
                where=self.source.at_node(node),
            )
        if other is None:
            return Fixed(None)
        if symbol not in ("=", "<>"):
            marks = self._placed(node, comparison.ordered, column, symbol, other)
            return self.on_column(column, marks)
        at = self._placed(node, comparison.position, column, other, symbol)
        equal = self.on_column(column, comparison.one_of(column, [at]))
        return equal if symbol == "=" else Not(equal)

    def _check_number(self, node: exp.Expr, side: Total | Mean | Constant) -> None:
        if not isinstance(side, Total | Mean | Fraction):
            raise SqlError(
                f"An aggregate is a number, and {constant_text(side)} is {kind(side)}.",
                hint="Compare it with a number.",
                where=self.source.at_node(node),
            )

    def _in(self, node: exp.In) -> Condition:
        operand, members = self.operand(node.this), node.expressions
        if not members:
            raise SqlError(
                "IN has an empty list.", hint="List at least one value.", where=self.source.at_node(node)
            )
        constants = [read_constant(member, self.source) for member in members]
        if not isinstance(operand, Column):
            return AnyOf(tuple(self._compare(node, "=", operand, constant) for constant in constants))
        positions = [
            self._placed(member, comparison.position, operand, constant)
            for member, constant in zip(members, constants, strict=True)
            if constant is not None
        ]
        return self.on_column(operand, comparison.one_of(operand, positions, null=None in constants))

    def _is(self, node: exp.Is) -> Condition:
        this, right = node.this.unnest(), node.expression
        if isinstance(right, exp.Boolean):
            return Is(self.read(this), bool(right.this))
        if not isinstance(right, exp.Null):
            raise SqlError(
                "IS takes NULL, TRUE or FALSE.",
                hint="Use = for values.",
                where=self.source.at_node(node),
            )
        if type(this) in _LOGICAL:
            return Is(self.read(this), None)
        operand = self.operand(this)
        match operand:
            case Column():
                return self.on_column(operand, comparison.null(operand))
            case Total() | Mean():
                return Missing(operand)
        return Fixed(operand is None)

    def _like(self, node: exp.Like, escape: str) -> Condition:
        operand, pattern = self.operand(node.this), self.operand(node.expression)
        if operand is None or pattern is None:
            return Fixed(None)
        if not isinstance(pattern, str) or not isinstance(operand, Column | str):
            raise SqlError(
                "LIKE compares a column of text with a pattern in single quotes.",
                hint="Write, for example, state LIKE 'New%'.",
                where=self.source.at_node(node),
            )
        if isinstance(operand, Column):
            marks = self._placed(node, comparison.like, operand, pattern, escape)
            found = self.on_column(operand, marks)
        else:
            found = Fixed(self._placed(node, like_matcher, pattern, escape, len(operand))(operand))
        return Not(found) if node.args.get("negate") else found

    def _escaped(self, node: exp.Escape) -> Condition:
        escape = read_constant(node.expression, self.source)
        if not isinstance(escape, str):
            raise SqlError(
                "ESCAPE takes one character in single quotes.",
                hint="Write, for example, ESCAPE '!'.",
                where=self.source.at_node(node),
            )
        return self._like(node.this, escape)

    def _bare(self, node: exp.Expr) -> Condition:
        """A column or a constant that stands as a condition."""
        operand = self.operand(node)
        match operand:
            case Column():
                return self.on_column(operand, self._placed(node, comparison.holds, operand))
            case bool() | None:
                return Fixed(operand)
        raise SqlError(
            "There should be a condition here.",
            hint="Compare a column with a value, as in age >= 20.",
            where=self.source.at_node(node),
        )

    def _placed(
        self,
        node: exp.Expr,
        function: Callable[Arguments, Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Call a function whose errors do not know their place, which is this node."""
        try:
            return function(*args, **kwargs)
        except SqlError as error:
            error.where = error.where or self.source.at_node(node)
            raise


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a AND b AND c..., without recursion: the chain may be thousands long."""
    kind, parts = type(node), []
    while type(node) is kind:
        parts.append(node.expression)
        node = node.this
    return [node, *reversed(parts)]
