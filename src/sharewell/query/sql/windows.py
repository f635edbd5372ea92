"""Windows over the rows of a result: totals, running totals and ranks.

The rows are the groups, all of them public, so a window sums answers that are bought anyway.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING

from sqlglot import exp

from sharewell.query.expression import Expression, GroupKey, Linear, OrderKey, Rank
from sharewell.query.sql.forms import Terms
from sharewell.query.sql.grammar import CALL, WINDOW_FUNCTIONS

if TYPE_CHECKING:
    from sharewell.query.sql.select import Draft


def compile_window(draft: Draft, node: exp.Window) -> Expression:
    """Compile a function with OVER."""
    partitions = _partitions(draft, node)
    order = _order(draft, node)
    inner = node.this
    name = inner.name.removesuffix(CALL) if isinstance(inner, exp.Anonymous) else ""
    if name in WINDOW_FUNCTIONS:
        if not order:
            message = f"{name} requires an order."
            raise draft.source.error(node, message, f"Write {name}() OVER (ORDER BY COUNT(*) DESC).")
        return Rank(name, order, partitions)
    if not isinstance(inner, exp.Sum | exp.Avg) or inner.this is None:
        message = f"{draft.source.quote(inner)} is not supported with OVER."
        hint = "Use SUM or AVG of an aggregate, such as SUM(COUNT(*)) OVER (), or RANK()."
        raise draft.source.error(node, message, hint)
    argument = draft.item(inner.this)
    rows = len(draft.groups.rows)
    terms = draft.forms.terms(argument, rows)
    if terms is None:
        message = f"{draft.source.quote(inner.this)} has no totals over rows of the result."
        hint = "Use COUNT(*), or the SUM of a column that is not known by bins."
        raise draft.source.error(node, message, hint)
    sums = _running(draft, node, terms, partitions, order) if order else _totals(terms, partitions)
    if isinstance(inner, exp.Avg):
        if order:
            message = "A running average is not supported."
            raise draft.source.error(node, message, "Remove ORDER BY from the window, or use SUM.")
        sizes = Counter(partitions)
        sums = draft.forms.scaled(sums, [Fraction(1, sizes[part]) for part in partitions])
    return Linear(draft.forms.add_all(sums))


def _partitions(draft: Draft, node: exp.Window) -> tuple[int, ...]:
    """Return the number of each row's partition."""
    keys = [_public_key(draft, each) for each in node.args.get("partition_by") or ()]
    rows = range(len(draft.groups.rows))
    labels = [tuple(key.labels[row] for key in keys) for row in rows]
    numbers = {label: at for at, label in enumerate(dict.fromkeys(labels))}
    return tuple(numbers[label] for label in labels)


def _public_key(draft: Draft, node: exp.Expr) -> GroupKey:
    found = draft.item(node)
    if not isinstance(found, GroupKey):
        message = (
            f"A window is divided and summed by grouped columns, not by {draft.source.quote(node)}."
        )
        raise draft.source.error(node, message, "Name a column of GROUP BY.")
    return found


def _order(draft: Draft, node: exp.Window) -> tuple[OrderKey, ...]:
    clause = node.args.get("order")
    return tuple(
        OrderKey(draft.item(each.this), bool(each.args.get("desc")), bool(each.args.get("nulls_first")))
        for each in (clause.expressions if clause else ())
    )


def _totals(terms: Sequence[Terms], partitions: Sequence[int]) -> list[Terms]:
    found: dict[int, Terms] = {}
    for own, part in zip(terms, partitions, strict=True):
        total = found.setdefault(part, {})
        for at, factor in own.items():
            total[at] = total.get(at, Fraction(0)) + factor
    return [found[part] for part in partitions]


def _running(
    draft: Draft,
    node: exp.Window,
    terms: Sequence[Terms],
    partitions: Sequence[int],
    order: Sequence[OrderKey],
) -> list[Terms]:
    """Sum from the first row of the partition on; rows that are equal in the order have the same sum."""
    spec = node.args.get("spec")
    if spec is not None and not (
        spec.args.get("start") == "UNBOUNDED"
        and spec.args.get("start_side") == "PRECEDING"
        and spec.args.get("end") in (None, "CURRENT ROW")
    ):
        message = "Only windows from the first row to the current one are supported."
        raise draft.source.error(node, message, "Remove ROWS BETWEEN.")
    keys = []
    for key in order:
        if not isinstance(key.source, GroupKey):
            message = "A running total requires an order by grouped columns."
            raise draft.source.error(node, message, "Order by a column of GROUP BY.")
        keys.append((key, key.source.ranks))
    found: list[Terms] = [{}] * len(terms)
    parts: dict[int, list[int]] = defaultdict(list)
    for row, part in enumerate(partitions):
        parts[part].append(row)
    one_by_one = spec is not None and spec.args.get("kind") == "ROWS"
    for rows in parts.values():
        for key, ranks in reversed(keys):
            nulls = [row for row in rows if ranks[row] is None]
            known = [row for row in rows if ranks[row] is not None]
            known.sort(key=ranks.__getitem__, reverse=key.descending)  # type: ignore[arg-type]
            rows = nulls + known if key.nulls_first else known + nulls
        total: Terms = {}
        for _, equal in groupby(
            rows, lambda row: row if one_by_one else tuple(ranks[row] for _, ranks in keys)
        ):
            peers = list(equal)
            total = dict(total)
            for row in peers:
                for place, factor in terms[row].items():
                    total[place] = total.get(place, Fraction(0)) + factor
            draft.forms.compute(total)
            for row in peers:
                found[row] = total
    return found
