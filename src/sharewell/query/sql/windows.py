"""Windows over the rows of a result: totals, running and moving totals, and ranks.

The rows are the groups, all of them public, so a window sums answers that are bought anyway.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
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
    if name in draft.source.unknown_functions:
        raise draft.source.unknown_functions[name]
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
        message = f"{draft.source.quote(inner.this)} cannot be totalled over rows of the result."
        hint = "Use COUNT(*), or the SUM of a column that is not known by bins."
        raise draft.source.error(node, message, hint)
    if order:
        frames = _frames(draft, node, partitions, order)
        sums = _sums(draft, terms, frames)
    else:
        members = defaultdict[int, list[int]](list)
        for row, part in enumerate(partitions):
            members[part].append(row)
        frames = [(members[part], 0, len(members[part])) for part in partitions]
        sums = _totals(terms, partitions)
    if isinstance(inner, exp.Avg):
        factors = [Fraction(1, max(1, end - start)) for _, start, end in frames]
        sums = draft.forms.scaled(sums, factors)
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
        message = f"OVER takes grouped columns, not {draft.source.quote(node)}."
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


#: The rows of a partition in their order, and where those that a window sums start and end.
Frame = tuple[list[int], int, int]


def _frames(
    draft: Draft, node: exp.Window, partitions: Sequence[int], order: Sequence[OrderKey]
) -> list[Frame]:
    """Return the frame of each row; without ROWS, it ends with the last row equal in the order."""
    keys = []
    for key in order:
        if not isinstance(key.source, GroupKey):
            message = "A running total requires an order by grouped columns."
            raise draft.source.error(node, message, "Order by a column of GROUP BY.")
        keys.append((key, key.source.ranks))
    spec = node.args.get("spec")
    bounds = _bounds(draft, node, spec) if spec is not None else (None, 0)
    one_by_one = spec is not None and spec.args.get("kind") == "ROWS"
    if not one_by_one and bounds != (None, 0):
        message = "Only ROWS can be counted from the current row."
        raise draft.source.error(node, message, "Write ROWS BETWEEN in place of RANGE BETWEEN.")
    found: list[Frame] = [([], 0, 0)] * len(partitions)
    parts: dict[int, list[int]] = defaultdict(list)
    for row, part in enumerate(partitions):
        parts[part].append(row)
    for rows in parts.values():
        for key, ranks in reversed(keys):
            rows = key.sort(rows, ranks)
        ends = {tuple(ranks[row] for _, ranks in keys): at + 1 for at, row in enumerate(rows)}
        for at, row in enumerate(rows):
            if one_by_one:
                first, last = bounds
                start = 0 if first is None else min(max(0, at + first), len(rows))
                end = len(rows) if last is None else min(max(start, at + last + 1), len(rows))
            else:
                start, end = 0, ends[tuple(ranks[row] for _, ranks in keys)]
            found[row] = (rows, start, end)
    return found


def _bounds(draft: Draft, node: exp.Window, spec: exp.WindowSpec) -> tuple[int | None, int | None]:
    """Return the first and the last row of a frame, counted from the current one; None is unbounded."""

    def bound(at: str) -> int | None:
        written, side = spec.args.get(at), spec.args.get(f"{at}_side")
        if written in (None, "CURRENT ROW"):
            return 0
        if written == "UNBOUNDED":
            return None
        number = draft.constant(written) if isinstance(written, exp.Expr) else None
        if not isinstance(number, Fraction) or number < 0 or number.denominator != 1:
            message = "ROWS BETWEEN requires whole numbers of rows."
            raise draft.source.error(node, message, "Example: ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING.")
        return int(number) * (-1 if side == "PRECEDING" else 1)

    return bound("start"), bound("end")


def _sums(draft: Draft, terms: Sequence[Terms], frames: Sequence[Frame]) -> list[Terms]:
    """Sum the terms of each frame; one that only goes on from another is computed from it."""
    known: dict[tuple[int, int], tuple[int, Terms]] = {}
    found: list[Terms] = [{}] * len(terms)
    for row in sorted(range(len(frames)), key=lambda row: frames[row][2]):
        rows, start, end = frames[row]
        before, total = known.get((id(rows), start), (start, {}))
        if before != end:
            total = dict(total)
            for each in rows[before:end]:
                for place, factor in terms[each].items():
                    total[place] = total.get(place, Fraction(0)) + factor
            draft.forms.compute(total)
            known[id(rows), start] = end, total
        found[row] = total
    return found
