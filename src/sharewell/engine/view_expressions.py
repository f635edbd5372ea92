"""The allow-list of person views: the expressions that are supported, and why others are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from sharewell.engine.view_aggregates import AGGREGATES, AggregateExpressions
from sharewell.engine.view_values import Scope, Value, expression_text
from sharewell.errors import SourceError

#: How deep expressions may be nested.
MAX_DEPTH = 50
COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
#: What the error for another function suggests.
FUNCTIONS = "COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST"  # noqa: E501

_GROUPS = ("a person would be in several groups", "List the columns.")
#: Nodes that are refused: their words, the reason and the way out.
REFUSED_NODES: dict[type[exp.Expr], tuple[str, str, str]] = {
    exp.Rollup: ("ROLLUP", *_GROUPS),
    exp.Cube: ("CUBE", *_GROUPS),
    exp.GroupingSets: ("GROUPING SETS", *_GROUPS),
    exp.IgnoreNulls: ("This function", "it depends on the order of the rows", "Use MIN or MAX."),
    exp.ILike: ("ILIKE", "engines fold case differently", "Use LOWER(x) LIKE 'abc%'."),
    exp.Collate: ("COLLATE", "text is compared byte by byte", "Use LOWER."),
    exp.DPipe: ("||", "the text may become too long", "Use CASE."),
    exp.Mod: ("%", "engines differ", "Use x - FLOOR(x / n) * n."),
    exp.Interval: (
        "INTERVAL",
        "a date may leave its range",
        "Subtract dates: b - a is a number of days.",
    ),
}


class Expressions(AggregateExpressions):
    """Compiles the expressions on the list, and refuses all others."""

    def _value(self, node: exp.Expr, scope: Scope) -> Value:
        """Compile an expression of one row, or of a group where there is GROUP BY."""
        if scope.depth > MAX_DEPTH:
            raise self.refuse(node, "This is nested too deeply.", "Split it by a subquery in FROM.")
        if scope.keys is not None:
            written = self._unaliased(node, scope)
            if (key := self._key(written, scope)) is not None:
                return key
            if isinstance(node, exp.Column):
                raise self.refuse(
                    node,
                    f"{node.sql()} is neither in GROUP BY nor in an aggregate.",
                    "Add it to GROUP BY, or use MIN or MAX.",
                )
        compiler = EXPRESSIONS.get(type(node))
        if compiler is None:
            raise self._unsupported(node)
        return compiler(self, node, replace(scope, depth=scope.depth + 1))

    def _key(self, node: exp.Expr, scope: Scope) -> Value | None:
        """Return the group key that an expression is, if it is one."""
        if not isinstance(node, exp.Column):
            return (scope.keys or {}).get(expression_text(node))
        value = self._column(node, scope)
        return next((key for key in (scope.keys or {}).values() if key.sql == value.sql), None)

    def _unsupported(self, node: exp.Expr) -> SourceError:
        if node.find(exp.Select) or isinstance(node, exp.Subquery | exp.Exists):
            return self.refuse(
                node,
                "A subquery is only supported in FROM: here it would see rows of other people.",
                "Join it on the unit: JOIN (SELECT unit, ... GROUP BY unit) AS b ON a.unit = b.unit.",
            )
        words, reason, hint = REFUSED_NODES.get(type(node), ("", "", ""))
        if not words and isinstance(node, exp.Func):
            words = (node.name if type(node) is exp.Anonymous else node.sql_name()).upper()
            reason, hint = _reason(node), f"Use {FUNCTIONS}."
        words, hint = (
            words or type(node).__name__,
            hint or "Use comparisons, CASE, + - * / and functions.",
        )
        return self.refuse(
            node, f"{words} is not supported in a view: {reason or 'it is not on the list'}.", hint
        )


def _reason(node: exp.Expr) -> str:
    if isinstance(node, exp.Rand | exp.CurrentDate | exp.CurrentTimestamp | exp.CurrentTime | exp.Uuid):
        return "it has another value each time"
    if isinstance(node, exp.AggFunc):
        return "it depends on the order of the rows, or is not on the list"
    return "it may fail on some rows, or engines differ"


#: How each node is compiled; all others are refused.
EXPRESSIONS: dict[type[exp.Expr], Callable[[Expressions, Any, Scope], Value]] = {
    exp.Column: Expressions._column,
    exp.Literal: Expressions._literal,
    exp.Boolean: Expressions._truth,
    exp.Null: Expressions._null,
    exp.Paren: Expressions._paren,
    exp.And: Expressions._logic,
    exp.Or: Expressions._logic,
    exp.Not: Expressions._not,
    **dict.fromkeys(COMPARISONS, Expressions._comparison),
    exp.Between: Expressions._between,
    exp.In: Expressions._in,
    exp.Is: Expressions._is,
    exp.Like: Expressions._like,
    exp.Case: Expressions._case,
    exp.If: Expressions._if,
    exp.Coalesce: Expressions._coalesce,
    exp.Nullif: Expressions._nullif,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div), Expressions._arithmetic),
    exp.Neg: Expressions._negative,
    **dict.fromkeys((exp.Abs, exp.Floor, exp.Ceil, exp.Round), Expressions._rounded),
    **dict.fromkeys((exp.Lower, exp.Upper, exp.Trim, exp.Length), Expressions._text_function),
    exp.Substring: Expressions._substring,
    exp.Cast: Expressions._cast,
    exp.TryCast: Expressions._cast,
    exp.DateDiff: Expressions._date_diff,
    **dict.fromkeys((exp.Extract, exp.Year, exp.Quarter, exp.Month), Expressions._extract),
    **dict.fromkeys(AGGREGATES, Expressions._aggregate),
    exp.Filter: Expressions._filter,
    exp.Window: Expressions._window,
}
