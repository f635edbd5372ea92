"""Quantiles: MEDIAN, PERCENTILE_CONT and their relatives, from the number of rows with each value.

All quantiles of a column, over the same rows and groups, use one block of counts: one price.
"""

from __future__ import annotations

import operator
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from sqlglot import exp

from sharewell.query.attribute import Binned, Integer
from sharewell.query.domain import Column
from sharewell.query.expression import Expression, Quantile
from sharewell.query.linear import LinearQuery
from sharewell.query.sql.forms import Terms
from sharewell.query.sql.grammar import CALL
from sharewell.query.sql.groups import Groups

if TYPE_CHECKING:
    from sharewell.query.sql.select import Draft

_CONTINUOUS = {"MEDIAN", "QUANTILE_CONT", "PERCENTILE_CONT"}
_DISCRETE = {"QUANTILE", "QUANTILE_DISC", "PERCENTILE_DISC"}
#: The maximum number of values of a column, times the number of groups.
MAX_VALUES = 2**13


def is_quantile(node: exp.Expr) -> bool:
    """Whether a node is a quantile, with its WITHIN GROUP and FILTER."""
    inner = node
    while isinstance(inner, exp.Filter | exp.WithinGroup):
        inner = inner.this
    return isinstance(inner, exp.Anonymous) and inner.name.removesuffix(CALL) in _CONTINUOUS | _DISCRETE


def compile_quantile(draft: Draft, node: exp.Expr) -> Expression:
    """Compile a quantile."""
    source, rows = draft.source, draft.aggregates.rows
    inner, ordered, descending = node, None, False
    while isinstance(inner, exp.Filter | exp.WithinGroup):
        if isinstance(inner, exp.Filter):
            rows = rows & draft.aggregates.select(inner.expression.this)
        else:
            [term, *more] = inner.expression.expressions
            ordered, descending = (None if more else term.this.unnest()), bool(term.args.get("desc"))
        inner = inner.this
    name, arguments = inner.name.removesuffix(CALL), list(inner.expressions)
    example = "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age), QUANTILE_CONT(age, 0.5) or MEDIAN(age)"
    if name.startswith("PERCENTILE"):
        arguments = [ordered, *arguments] if ordered is not None else []
    if name == "MEDIAN":
        arguments.append(exp.Literal.number("0.5"))
    if len(arguments) != 2 or not isinstance(arguments[0].unnest(), exp.Column):
        message = f"{source.quote(node)} is not a quantile of a column."
        raise source.error(node, message, f"Write {example}, each with one fraction.")
    fraction = draft.constant(arguments[1])
    if not isinstance(fraction, Fraction) or not 0 <= fraction <= 1:
        message = f"{name} requires a fraction from 0 to 1, not {source.quote(arguments[1])}."
        raise source.error(node, message, f"Write {example}.")
    if fraction in (0, 1):
        end = "0.01" if fraction == 0 else "0.99"
        message = f"{source.quote(node)} depends on one row alone."
        raise source.error(node, message, f"Use the fraction {end}.")
    column = _ordered_column(draft, node, arguments[0].unnest())
    continuous = name in _CONTINUOUS
    return _quantile(draft, node, column, rows, 1 - fraction if descending else fraction, continuous)


def _ordered_column(draft: Draft, node: exp.Expr, named: exp.Column) -> Column:
    source = draft.source
    found = source.find(named.this) if isinstance(named.this, exp.Identifier) else None
    if found is None and source.find_measure(named) is not None:
        message = f'"{named.name}" is a measure: it has sums, but no counts of its values.'
        hint = "Ask your curator to declare it as an attribute with bins too."
        raise source.error(named, message, hint)
    column = found or source.column(named)
    if column.is_text or not isinstance(column.attribute, Integer | Binned):
        message = f'Quantiles require a column of numbers, but "{column.name}" has none.'
        hint = f"Count its values: SELECT {column.name}, COUNT(*) ... GROUP BY {column.name}."
        raise source.error(node, message, hint)
    return column


def _quantile(
    draft: Draft,
    node: exp.Expr,
    column: Column,
    rows: LinearQuery,
    fraction: Fraction,
    continuous: bool,
) -> Expression:
    attribute, groups = column.attribute, draft.groups
    values = len(attribute.values)
    draft.check_size(node, draft.forms.size + values * len(groups.keys))
    if values * len(groups.keys) > MAX_VALUES:
        message = f"{draft.source.quote(node)} needs {values * len(groups.keys):,} counts; the limit is "
        hint = f"Use declared bins of {column.name}, or fewer groups."
        raise draft.source.error(node, f"{message}{MAX_VALUES:,}.", hint)
    ends = _ends(column)
    declared = attribute.mask(slice(0, values))
    known = rows.where(LinearQuery.of_vectors(draft.source.domain, {column.level: declared}))
    finest = Groups([*groups.columns, column])
    key = known, column.level
    if key not in draft.histograms:
        places = [at for at, each in enumerate(finest.keys) if each[-1] < values]
        draft.histograms[key] = (
            draft.forms.add_block(finest.split(known).take(places)),
            [finest.keys[at] for at in places],
        )
    block, keys = draft.histograms[key]
    start = draft.forms.starts[block]
    by_group: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for at, each in enumerate(keys):
        by_group.setdefault(each[:-1], []).append((each[-1], start + at))
    counts, crossings = [], []
    for members in groups.members:
        cells: list[Terms] = [{} for _ in range(values)]
        for member in members:
            for value, place in by_group.get(groups.keys[member], ()):
                cells[value][place] = Fraction(1)
        totals: list[Terms] = list(accumulate(cells, operator.or_))
        share = dict.fromkeys(totals[-1], -fraction)
        counts.append(draft.forms.add_all(cells))
        crossings.append(
            draft.forms.add_all([{**share, **dict.fromkeys(own, 1 - fraction)} for own in totals])
        )
    return Quantile(column.name, fraction, ends, tuple(counts), tuple(crossings), continuous)


def _ends(column: Column) -> tuple[tuple[Fraction, Fraction], ...]:
    attribute = column.attribute
    if isinstance(attribute, Binned):
        return tuple(pairwise(attribute.edges))
    return tuple((Fraction(value), Fraction(value)) for value in attribute.values)  # type: ignore[arg-type]
