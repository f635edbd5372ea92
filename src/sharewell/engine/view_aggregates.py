"""Aggregates and windows of person views: functions of the rows of one person.

Other people's rows change the order in which an engine finds rows: so sums are exact, and windows break
ties by all columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from sharewell.engine.cells import Kind, Type, double
from sharewell.engine.view_scalars import ScalarExpressions, is_small_number
from sharewell.engine.view_values import BIGINT, DOUBLE, Scope, Value

#: Numbers up to this size are summed, in steps of a millionth: a sum of integers has no order.
LARGEST_SUMMED, MILLION = 1e12, 1e6

AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
#: Window functions whose result depends on the order of ties.
ORDERED = (exp.RowNumber, exp.Lag, exp.Lead)


class AggregateExpressions(ScalarExpressions):
    """Compiles aggregates and windows, which are over the rows of one person."""

    def _aggregate(self, node: exp.Expr, scope: Scope) -> Value:
        if scope.keys is None or scope.allowed != "aggregate":
            raise self.refuse(
                node,
                "An aggregate is only supported with GROUP BY the unit: otherwise it has rows of "
                "several people.",
                f"Add GROUP BY {self._unit_name(scope)}, or OVER (PARTITION BY ...).",
            )
        return self._aggregated(node, replace(scope, keys=None, allowed=""), lambda call: call)

    def _filter(self, node: exp.Expr, scope: Scope) -> Value:
        """Compile FILTER as CASE in the argument."""
        call, condition = node.this, node.expression.this
        if not isinstance(call, AGGREGATES) or isinstance(call.this, exp.Distinct):
            raise self.refuse(node, "FILTER is supported for plain aggregates only.", "Use CASE.")
        self._only(call, "this", "big_int")
        argument = exp.Literal.number(1) if isinstance(call.this, exp.Star) else call.this.copy()
        chosen = exp.Case(ifs=[exp.If(this=condition.copy(), true=argument)])
        return self._aggregate(type(call)(this=chosen), scope)

    def _aggregated(
        self,
        node: exp.Expr,
        scope: Scope,
        over: Callable[[Any], Any],
    ) -> Value:
        """Compile an aggregate; `over` puts a call of the engine's in its window."""
        self._only(node, "this", "big_int")
        argument = node.this
        if isinstance(node, exp.Count):
            return Value(over(self._counted(argument, scope)), Kind.INTEGER, BIGINT, 2.0**31)
        if isinstance(argument, exp.Distinct):
            raise self.refuse(node, "DISTINCT is supported in COUNT only.", "Select DISTINCT in FROM.")
        value = self._value(argument, scope)
        if isinstance(node, exp.Min | exp.Max):
            if value.kind in (Kind.BOOLEAN, None):
                raise self.refuse(
                    node,
                    "MIN and MAX of this type are not supported.",
                    "Use CASE WHEN x THEN 1 ELSE 0 END.",
                )
            if value.kind is Kind.NUMBER:
                value = self._number(value, node)
            return replace(value, sql=over(type(node)(this=value.sql.copy())), is_unit=False)
        bounded = self._number(value, node)
        total = self._exact_sum(bounded, over)
        if isinstance(node, exp.Sum):
            return total
        counted = exp.cast(over(exp.Count(this=self._summed(bounded))), Type.DOUBLE)
        mean = exp.Div(this=total.sql, expression=exp.Nullif(this=counted, expression=double(0.0)))
        return replace(total, sql=exp.paren(mean), largest=LARGEST_SUMMED, smallest=1e-16)

    def _counted(self, argument: exp.Expr, scope: Scope) -> exp.Expr:
        if isinstance(argument, exp.Star):
            return exp.Count(this=exp.Star())
        if not isinstance(argument, exp.Distinct):
            return exp.Count(this=self._value(argument, scope).sql.copy())
        if len(argument.expressions) != 1:
            raise self.refuse(argument, "COUNT(DISTINCT ...) takes one expression.", "Count one column.")
        value = self._value(argument.expressions[0], scope)
        if value.kind is Kind.NUMBER:
            value = self._number(value, argument)
        return exp.Count(this=exp.Distinct(expressions=[value.sql.copy()]))

    def _summed(self, value: Value) -> exp.Condition:
        """Return a number that is small enough to be summed, or NULL."""
        if value.largest is not None and value.largest <= LARGEST_SUMMED:
            return value.sql.copy()
        size = exp.Abs(this=exp.paren(value.sql.copy()))
        small = exp.LTE(this=size, expression=double(LARGEST_SUMMED))
        return exp.paren(exp.case().when(small, value.sql.copy()))

    def _exact_sum(self, value: Value, over: Callable[[Any], Any]) -> Value:
        """Sum millionths as integers: a sum of doubles would depend on the order of all rows."""
        product = exp.Mul(this=exp.paren(self._summed(value)), expression=double(MILLION))
        scaled = exp.Add(this=product, expression=double(0.5))
        whole = exp.cast(exp.Floor(this=scaled), Type.BIGINT)
        match self.dialect:
            case "sqlite":
                total: exp.Expr = exp.Anonymous(this="exact_sum", expressions=[whole])
            case "clickhouse":
                total = exp.Sum(this=exp.Anonymous(this="toInt128", expressions=[whole]))
            case "spark":
                total = exp.Sum(this=exp.cast(whole, exp.DataType.build("decimal(19, 0)")))
            case _:
                total = exp.Sum(this=whole)
        summed = exp.Div(this=exp.cast(over(total), Type.DOUBLE), expression=double(MILLION))
        return Value(exp.paren(summed), Kind.NUMBER, DOUBLE, LARGEST_SUMMED * 2.0**31, 1 / MILLION)

    def _window(self, node: exp.Expr, scope: Scope) -> Value:
        if scope.allowed != "window":
            raise self.refuse(
                node,
                "A window function is only supported in the SELECT list, without GROUP BY.",
                "Compute it in a subquery in FROM.",
            )
        self._only(node, "this", "partition_by", "order", "over")
        inside = replace(scope, allowed="")
        partition = [self._value(each, inside) for each in node.args.get("partition_by") or ()]
        if not any(value.is_unit for value in partition):
            raise self.refuse(
                node,
                "The window is not partitioned by the unit: it has rows of several people.",
                f"Add PARTITION BY {self._unit_name(scope)}.",
            )
        keys = [self._ordered(each, inside) for each in _order(node)]
        call = node.this
        if isinstance(call, ORDERED):
            # Ties would be in the order in which the engine finds all rows.
            keys += [
                exp.Ordered(this=value.sql.copy(), nulls_first=False)
                for relation in scope.sources.values()
                for value in relation.columns.values()
            ]
        order = exp.Order(expressions=keys) if keys else None

        def over(function: Any) -> Any:
            return exp.Window(
                this=function,
                partition_by=[value.sql.copy() for value in partition],
                order=order.copy() if order is not None else None,
            )

        if isinstance(call, AGGREGATES):
            if isinstance(call.this, exp.Distinct):
                raise self.refuse(node, "DISTINCT is not supported in a window.", "Use GROUP BY.")
            return self._aggregated(call, inside, over)
        if isinstance(call, exp.Rank | exp.DenseRank | exp.RowNumber) and not call.expressions:
            if order is None:
                raise self.refuse(node, "This window needs ORDER BY.", "Add ORDER BY.")
            return Value(exp.cast(over(type(call)()), Type.BIGINT), Kind.INTEGER, BIGINT, 2.0**31)
        if isinstance(call, exp.Lag | exp.Lead):
            return self._neighbour(node, call, inside, over)
        raise self._unsupported(call)

    def _neighbour(
        self,
        node: exp.Expr,
        call: exp.Expr,
        scope: Scope,
        over: Callable[[Any], Any],
    ) -> Value:
        self._only(call, "this", "offset")
        offset = call.args.get("offset")
        if offset is not None and not is_small_number(offset):
            raise self.refuse(node, "The offset must be a small number.", "Write LAG(x, 1).")
        if node.args.get("order") is None:
            raise self.refuse(node, "This window needs ORDER BY.", "Add ORDER BY.")
        value = self._value(call.this, scope)
        moved = type(call)(
            this=value.sql.copy(), offset=exp.Literal.number(offset.name if offset else 1)
        )
        return replace(value, sql=over(moved), is_unit=False)

    def _ordered(self, node: exp.Expr, scope: Scope) -> exp.Ordered:
        self._only(node, "this", "desc", "nulls_first")
        value = self._value(node.this, scope)
        return exp.Ordered(
            this=value.sql.copy(),
            desc=bool(node.args.get("desc")),
            nulls_first=bool(node.args.get("nulls_first")),
        )


def _order(node: exp.Expr) -> Sequence[exp.Expr]:
    order = node.args.get("order")
    return order.expressions if order is not None else ()
