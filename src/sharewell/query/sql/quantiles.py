"""Quantiles: MEDIAN, PERCENTILE_CONT and their relatives, from the number of rows with each value.

All quantiles of a column, over the same rows and groups, use one block of counts: one price.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from sharewell.query.attribute import Binned, Date, Integer
from sharewell.query.diagram import allow, spend
from sharewell.query.domain import Column
from sharewell.query.expression import Expression, Form, Quantile
from sharewell.query.linear import LinearQuery
from sharewell.query.sql.forms import Terms
from sharewell.query.sql.grammar import CALL
from sharewell.query.sql.groups import Groups
from sharewell.query.sql.text import Source

if TYPE_CHECKING:
    from sharewell.query.sql.select import Draft

_CONTINUOUS = {"MEDIAN", "QUANTILE_CONT", "PERCENTILE_CONT"}
_DISCRETE = {"QUANTILE", "QUANTILE_DISC", "PERCENTILE_DISC"}
#: The maximum number of values of a column, times the number of groups.
MAX_VALUES = 2**13
#: How many steps of a diagram it takes to copy a quantile for one of its fractions.
STEPS_OF_COPY = 8
#: How many more steps each count of a histogram allows.
STEPS_OF_COUNT = 4


class Histogram(NamedTuple):
    """The counts by value of a column in each row of the result.

    `counts` has their forms, and `places` the answers that they add up, with the value of each.
    """

    counts: tuple[tuple[int, ...], ...]
    places: tuple[tuple[tuple[int, int], ...], ...]


def is_quantile(node: exp.Expr) -> bool:
    """Whether a node is a quantile, with its WITHIN GROUP and FILTER."""
    inner = _function(node)
    return isinstance(inner, exp.Anonymous) and inner.name.removesuffix(CALL) in _CONTINUOUS | _DISCRETE


def expand_quantiles(select: exp.Select, source: Source) -> None:
    """Replace a list of quantiles in the SELECT list by one column for each fraction.

    A column is named by the alias, or else the function, and the fraction. A quantile of dates is
    followed by columns for both ends of its interval.
    """
    select.set("expressions", list(_with_bounds(_one_by_one(select), source)))


def _with_bounds(items: Iterable[exp.Expr], source: Source) -> Iterator[exp.Expr]:
    for item in items:
        yield item
        node = item.unalias().unnest()
        column = _named(node, source) if is_quantile(node) else None
        if column is not None and isinstance(column.attribute, Date) and not column.is_text:
            for bound in ("low", "high"):
                copied = node.copy()
                _function(copied).meta["bound"] = bound
                label = exp.to_identifier(f"{item.alias or source.quote(node)} {bound}", quoted=True)
                yield exp.Alias(this=copied, alias=label)


def _named(node: exp.Expr, source: Source) -> Column | None:
    """Return the column of a quantile, if there is one."""
    while isinstance(node, exp.Filter):
        node = node.this
    if isinstance(node, exp.WithinGroup):
        ordered = [term.this for term in node.expression.expressions]
    else:
        ordered = node.expressions
    return source.find(ordered[0].unnest()) if ordered else None


def _one_by_one(select: exp.Select) -> list[exp.Expr]:
    items: list[exp.Expr] = []
    for item in select.expressions:
        node = item.unalias().unnest()
        fractions = _listed(node) if is_quantile(node) else []
        name = item.alias or _function(node).name.removesuffix(CALL) if fractions else ""
        if fractions:
            # Without the list, which would be copied for each of its members.
            inner = _function(node)
            inner.set(
                "expressions", [] if inner.name.startswith("PERCENTILE") else inner.expressions[:1]
            )
        spend(STEPS_OF_COPY * len(fractions))
        for fraction in fractions:
            single = node.copy()
            _function(single).append("expressions", fraction)
            label = exp.to_identifier(f"{name}_{fraction.sql()}", quoted=True)
            items.append(exp.Alias(this=single, alias=label))
        if not fractions:
            items.append(item)
    return items


def _function(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Filter | exp.WithinGroup):
        node = node.this
    return node


def _listed(node: exp.Expr) -> list[exp.Expr]:
    """Return the fractions of PERCENTILE_CONT(0.2, 0.5) or QUANTILE_CONT(x, [0.2, 0.5]), if several."""
    inner = _function(node)
    fractions = list(inner.expressions)
    if not inner.name.startswith("PERCENTILE"):
        fractions = fractions[1:]
    if len(fractions) == 1 and isinstance(fractions[0], exp.Array):
        fractions = list(fractions[0].expressions)
    return fractions if len(fractions) > 1 and all(e.is_number for e in fractions) else []


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
        hint = f"Write {example}, each with one fraction."
        if len(arguments) == 2:
            hint = _instead_of_computed(source, arguments[0]) or hint
        raise source.error(node, message, hint)
    fraction = draft.constant(arguments[1])
    if not isinstance(fraction, Fraction) or not 0 <= fraction <= 1:
        message = f"{name} requires a fraction from 0 to 1, not {source.quote(arguments[1])}."
        raise source.error(node, message, f"Write {example}.")
    if fraction in (0, 1):
        end = "0.01" if fraction == 0 else "0.99"
        message = f"{source.quote(node)} depends on one row alone."
        raise source.error(node, message, f"Use the fraction {end}.")
    column = _ordered_column(draft, node, arguments[0].unnest())
    found = _quantile(draft, node, column, rows, 1 - fraction if descending else fraction)
    is_date = isinstance(column.attribute, Date)
    bound = inner.meta.get("bound", "")
    return replace(found, continuous=name in _CONTINUOUS, is_date=is_date, bound=bound)


def _instead_of_computed(source: Source, argument: exp.Expr) -> str:
    """Write what comes nearest to a quantile of an expression of columns; "" if it has none."""
    columns = {each.name: each for each in argument.find_all(exp.Column)}
    if any(map(source.find_measure, columns.values())):
        return "Measures are only summed. Ask your curator to declare a column of it, with bins."
    if len(columns) == 1:
        return f"Compute with a quantile of the column itself, such as MEDIAN({min(columns)})."
    written = source.quote(argument)
    return f"Count the rows up to a value: COUNT_IF({written} <= 10) / COUNT(*)." if columns else ""


def _ordered_column(draft: Draft, node: exp.Expr, named: exp.Column) -> Column:
    source = draft.source
    found = source.find(named)
    measure = source.find_measure(named)
    if found is None and measure is not None:
        # The bins of a measure are those of the attribute that is made of the same column.
        found = source.domain.columns.get(measure.column.casefold())
    if found is None and measure is not None:
        message = f'"{named.name}" is a measure: it has sums, but no counts of its values.'
        hint = "Ask your curator to declare it as an attribute with bins too."
        raise source.error(named, message, hint)
    column = found or source.column(named)
    if column.is_text or not isinstance(column.attribute, Integer | Binned | Date):
        message = f'Quantiles require a column of numbers or dates, but "{column.name}" has none.'
        hint = f"Count its values: SELECT {column.name}, COUNT(*) ... GROUP BY {column.name}."
        raise source.error(node, message, hint)
    return column


def _quantile(
    draft: Draft,
    node: exp.Expr,
    column: Column,
    rows: LinearQuery,
    fraction: Fraction,
) -> Quantile:
    attribute, groups = column.attribute, draft.groups
    values = len(attribute.values)
    draft.check_size(node, draft.forms.starts[-1] + values * len(groups.keys))
    if values * len(groups.keys) > MAX_VALUES:
        message = f"{draft.source.quote(node)} needs {values * len(groups.keys):,} counts; the limit is "
        hint = f"Use declared bins of {column.name}, or fewer groups."
        raise draft.source.error(node, f"{message}{MAX_VALUES:,}.", hint)
    declared = attribute.mask(slice(0, values))
    known = rows.where(LinearQuery.of_vectors(draft.source.domain, {column.level: declared}))
    key = known, column.level
    if key not in draft.histograms:
        draft.histograms[key] = _histogram(draft, column, known)
    counts, places = draft.histograms[key]
    if (key, fraction) not in draft.quantiles:
        # How many rows have at most each value, less the fraction of all: it crosses 0 at the quantile.
        below, above = 1 - fraction, -fraction
        crossings = tuple(
            tuple(map(draft.forms.append, _crossings(of_group, values, below, above)))
            for of_group in places
        )
        draft.quantiles[key, fraction] = Quantile(
            column.name, fraction, _ends(column), counts, crossings
        )
    return draft.quantiles[key, fraction]


def _crossings(
    places: Sequence[tuple[int, int]], values: int, below: Fraction, above: Fraction
) -> Iterator[Form]:
    """Yield a form for each value: one factor for the answers up to it, another for those above it."""
    own = [value for _, value in places]
    if own != sorted(own):  # subtotals: the answers of several groups, one group after the other
        for value in range(values):
            yield tuple((at, below if each <= value else above) for at, each in places)
        return
    counted, left = [(at, below) for at, _ in places], [(at, above) for at, _ in places]
    for value in range(values):
        cut = bisect_right(own, value)
        yield (*counted[:cut], *left[cut:])


def _histogram(draft: Draft, column: Column, known: LinearQuery) -> Histogram:
    """Add the block of the counts by value, in each group."""
    groups, values = draft.groups, len(column.attribute.values)
    finest = Groups([*groups.columns, column])
    chosen = [at for at, each in enumerate(finest.keys) if each[-1] < values]
    allow(STEPS_OF_COUNT * len(chosen))
    block = draft.forms.add_block(finest.split(known).take(chosen))
    by_group: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for at, chosen_at in enumerate(chosen):
        *group, value = finest.keys[chosen_at]
        by_group.setdefault(tuple(group), []).append((draft.forms.starts[block] + at, value))
    counts, places = [], []
    for members in groups.members.values():
        of_group = [each for at in members for each in by_group.get(groups.keys[at], ())]
        cells: list[Terms] = [{} for _ in range(values)]
        for place, value in of_group:
            cells[value][place] = Fraction(1)
        counts.append(draft.forms.add_all(cells))
        places.append(tuple(sorted(of_group)))
    return Histogram(tuple(counts), tuple(places))


def _ends(column: Column) -> tuple[tuple[Fraction, Fraction], ...]:
    attribute = column.attribute
    if isinstance(attribute, Binned):
        return tuple(pairwise(attribute.edges))
    if isinstance(attribute, Date):
        # The first and the last day of each period.
        return tuple((Fraction(a), Fraction(b - 1)) for a, b in pairwise(attribute.edges))
    return tuple((Fraction(value), Fraction(value)) for value in attribute.values)  # type: ignore[arg-type]
