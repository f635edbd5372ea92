"""UNION ALL: several SELECTs over the table as one statement.

Each SELECT is compiled on its own. The statement buys their blocks, equal ones once, and has their rows
one below the other. A column is merged by its shape: labels become one column of labels, counts and sums
one of linear combinations, averages and ratios one of ratios, and the same function is applied to such.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain
from typing import Any

from sqlglot import exp

from sharewell.errors import QueryTooComplex
from sharewell.query.expression import (
    Aggregate,
    Average,
    Call,
    Constant,
    Expression,
    GroupKey,
    Linear,
    OrderKey,
    Ratio,
    Spread,
)
from sharewell.query.functions import Type
from sharewell.query.linear import LinearQuery
from sharewell.query.sql.cells import group_key
from sharewell.query.sql.forms import Forms, Terms
from sharewell.query.sql.rewrite import rewrite
from sharewell.query.sql.select import compile_select, too_large
from sharewell.query.sql.text import Source, names_match, shortened
from sharewell.query.statement import ALWAYS, Projection, Statement

#: The maximum number of SELECTs of one statement.
MAX_PARTS = 64


def compile_union(tree: exp.Union, source: Source, most: int) -> Statement:
    """Compile a UNION ALL; refuse one that needs more than `most` queries."""
    selects = _selects(tree, source)
    parts: list[Statement] = []
    for select in selects:
        with source.collected():
            parts.append(_part(select, source, most))
    if source.mistakes:
        raise source.mistakes.pop()
    widths = [len(part.outputs) for part in parts]
    for select, width in zip(selects, widths, strict=True):
        if width != widths[0]:
            message = f"The SELECTs of UNION ALL have {widths[0]} and {width} columns."
            raise source.error(select, message, "Give all of them the same number of columns.")
    union = _Union(source, selects, parts)
    names = [output.name for output in parts[0].outputs]
    items = [union.column(at, [part.outputs[at].source for part in parts]) for at in range(widths[0])]
    if union.forms.starts[-1] > most:
        raise too_large(union.forms.starts[-1], most)
    labels = [item.labels for item in items if isinstance(item, GroupKey)]
    return Statement(
        text=source.normalized,
        table=source.table,
        domain=source.domain,
        blocks=tuple(union.forms.blocks),
        outputs=tuple(map(Projection, names, items)),
        group_labels=tuple(zip(*labels, strict=True)) or ((),) * sum(union.rows),
        order=_order(tree, source, names, items),
        limit=_whole(tree, source, "limit"),
        offset=_whole(tree, source, "offset") or 0,
        forms=tuple(union.forms.forms),
    )


def _selects(tree: exp.Union, source: Source) -> list[exp.Select]:
    """Return the SELECTs from left to right, each with the WITH of the whole."""
    found: list[exp.Select] = []
    pending: list[exp.Expr] = [tree]
    while pending:
        node = pending.pop()
        while isinstance(node, exp.Subquery) and not node.alias:
            node = node.this
        if isinstance(node, exp.Union):
            if node is not tree and any(node.args.get(key) for key in ("order", "limit", "offset")):
                hint = "Move them to the end, where they apply to the whole result."
                raise source.error(node, "ORDER BY and LIMIT inside UNION ALL are not supported.", hint)
            pending += [node.expression, node.this]
        elif isinstance(node, exp.Select):
            found.append(node)
        else:
            raise source.error(node, "UNION ALL takes SELECTs.", "Write SELECT ... UNION ALL SELECT ...")
    if len(found) > MAX_PARTS:
        message = f"UNION ALL has {len(found)} SELECTs; the limit is {MAX_PARTS}."
        raise source.error(tree, message, "Use GROUP BY, or split the question.", QueryTooComplex)
    if with_ := tree.args.get("with_"):
        for select in found:
            own = select.args.get("with_")
            both = [*with_.copy().expressions, *(own.expressions if own else ())]
            select.set("with_", exp.With(expressions=both))
    return found


def _part(select: exp.Select, source: Source, most: int) -> Statement:
    for key, name in (("having", "HAVING"), ("limit", "LIMIT"), ("offset", "OFFSET")):
        if select.args.get(key):
            hint = f"Ask the SELECT with {name} on its own."
            raise source.error(select, f"{name} inside UNION ALL is not supported.", hint)
    found = compile_select(rewrite(select, source), source, most)
    if found.having is not ALWAYS or found.limit is not None or found.offset:
        message = "A SELECT of UNION ALL cannot choose among the groups of a subquery."
        raise source.error(select, message, "Ask it on its own.")
    return found


@dataclass
class _Union:
    """The blocks of all parts, and where the answers of each part are among all answers."""

    source: Source
    selects: Sequence[exp.Select]
    parts: Sequence[Statement]
    forms: Forms = field(default_factory=Forms)
    places: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        known: dict[tuple[LinearQuery, ...], int] = {}
        for part in self.parts:
            of_part: list[int] = []
            for block in part.blocks:
                if block.queries not in known:
                    known[block.queries] = self.forms.add_block(block)
                start = self.forms.starts[known[block.queries]]
                of_part += range(start, start + len(block))
            self.places.append(of_part)
        self.rows = [len(part.group_labels) for part in self.parts]

    def column(self, at: int, sources: Sequence[Expression]) -> Expression:
        """Merge a column of the result."""
        found = self._merge(sources)
        if isinstance(found, str):
            message = f"Column {at + 1} of UNION ALL {found}."
            node = self.selects[1].expressions[at] if len(self.selects) > 1 else self.selects[0]
            hint = "Compute the same in every SELECT, or ask them one by one."
            raise self.source.error(node, message, hint)
        if isinstance(found, Constant):
            return self._labels([found] * len(self.parts))
        return found

    def _merge(self, sources: Sequence[Expression]) -> Expression | str:
        """Merge the same expression of all parts; a string says why that is not possible."""
        if all(isinstance(each, Constant) and each == sources[0] for each in sources):
            return sources[0]
        if all(isinstance(each, Constant | GroupKey) for each in sources):
            types = {each.type for each in sources if isinstance(each, Constant | GroupKey)} - {"null"}
            if len(types) > 1:
                return f"is {' in one SELECT and '.join(sorted(types))} in another"
            return self._labels(sources)
        if any(getattr(each, "edges", None) is not None for each in sources):
            return "is a sum over bins, which cannot be put below another"
        terms = [self._terms(part, each) for part, each in enumerate(sources)]
        if all(each is not None for each in terms):
            return Linear(self.forms.add_all([row for each in terms for row in each or ()]))
        ratios = [self._ratio(part, each) for part, each in enumerate(sources)]
        if all(each is not None for each in ratios):
            pairs = [each for each in ratios if each is not None]
            above = [row for pair in pairs for row in pair[0]]
            below = [row for pair in pairs for row in pair[1]]
            positive = {pair[2] for pair in pairs}
            if len(positive) == 1:
                numerators, denominators = map(self.forms.add_all, (above, below))
                low, high = _limits(sources)
                return Ratio(numerators, denominators, positive.pop(), low, high)
            return "is an average in one SELECT and another ratio in another"
        spreads = [each for each in sources if isinstance(each, Spread)]
        if len(spreads) == len(sources):
            return self._spread(spreads)
        calls = [each for each in sources if isinstance(each, Call)]
        shapes = {(each.function.name, len(each.arguments), each.type) for each in calls}
        if len(calls) == len(sources) and len(shapes) == 1:
            arguments = []
            for own in zip(*(each.arguments for each in calls), strict=True):
                found = self._merge(own)
                if isinstance(found, str):
                    return found
                arguments.append(found)
            return Call(calls[0].function, tuple(arguments), calls[0].type)
        return "is computed in different ways"

    def _labels(self, sources: Sequence[Expression]) -> GroupKey:
        values: list[Any] = []
        kind: Type = "null"
        for rows, each in zip(self.rows, sources, strict=True):
            if isinstance(each, Constant):
                values += [each.value] * rows
            elif isinstance(each, GroupKey):
                values += each.values or each.labels
            if isinstance(each, Constant | GroupKey) and each.type != "null":
                kind = each.type
        return group_key(values, kind, None)

    def _terms(self, part: int, source: Expression) -> list[Terms] | None:
        """Return the coefficients of a linear number in every row of a part."""
        statement, rows = self.parts[part], range(self.rows[part])
        match source:
            case Linear(forms):
                return [self._move(part, statement.forms[at]) for at in forms]
            case Aggregate(block, None, count, middle):
                found = [{self._place(part, block, row): Fraction(1)} for row in rows]
                for row in rows if count is not None and middle else ():
                    found[row][self._place(part, count, row)] = middle  # type: ignore[arg-type]
                return found
        return None

    def _ratio(self, part: int, source: Expression) -> tuple[list[Terms], list[Terms], bool] | None:
        """Return numerators and denominators, and whether a denominator must be positive."""
        rows = range(self.rows[part])
        match source:
            case Ratio(above, below, positive, middle=middle):
                forms = self.parts[part].forms
                numerators, denominators = (
                    [self._move(part, forms[at]) for at in each] for each in (above, below)
                )
                if middle:
                    shifts = [{at: middle * f for at, f in own.items()} for own in denominators]
                    numerators = self.forms.added(numerators, shifts)
                return numerators, denominators, positive
            case Average(total, count, None, middle=middle):
                sums: list[Terms] = [{self._place(part, total, row): Fraction(1)} for row in rows]
                counts: list[Terms] = [{self._place(part, count, row): Fraction(1)} for row in rows]
                for own, counted in zip(sums, counts, strict=True):
                    own |= {place: middle for place in counted if middle}
                return sums, counts, True
        return None

    def _spread(self, spreads: Sequence[Spread]) -> Expression | str:
        """Put the rows of one spread below those of another: of the same kind, from the same centres."""
        first = spreads[0]
        if len({(each.kind, each.spans, each.centres, each.half_bin) for each in spreads}) > 1:
            return "is of columns with different bounds"
        moved = [
            [[self._move(part, self.parts[part].forms[at]) for at in forms] for _, forms in each.sums]
            for part, each in enumerate(spreads)
        ]
        rows = [self.forms.add_all(list(chain(*own))) for own in zip(*moved, strict=True)]
        names = [name for name, _ in first.sums]
        return replace(first, sums=tuple(zip(names, rows, strict=True)))

    def _place(self, part: int, block: int, row: int) -> int:
        return self.places[part][self.parts[part].starts[block] + row]

    def _move(self, part: int, form: Sequence[tuple[int, Fraction]]) -> Terms:
        found: Terms = {}
        for at, factor in form:
            place = self.places[part][at]
            found[place] = found.get(place, Fraction(0)) + factor
        return found


def _limits(sources: Sequence[Expression]) -> tuple[Fraction | None, Fraction | None]:
    """Return the bounds of averages, if all have the same."""
    found = {(each.low, each.high) for each in sources if isinstance(each, Average | Ratio)}
    return found.pop() if len(found) == 1 else (None, None)


def _order(
    tree: exp.Union, source: Source, names: Sequence[str], items: Sequence[Expression]
) -> tuple[OrderKey, ...]:
    """Read ORDER BY at the end: names or positions of columns."""
    keys: dict[Expression, OrderKey] = {}
    clause = tree.args.get("order")
    for node in clause.expressions if clause is not None else ():
        key, found = node.this.unnest(), None
        if isinstance(key, exp.Column) and isinstance(key.this, exp.Identifier):
            found = next((at for at, name in enumerate(names) if names_match(key.this, name)), None)
        elif isinstance(key, exp.Literal) and re.fullmatch("[1-9][0-9]{0,3}", key.name):
            found = int(key.name) - 1 if int(key.name) <= len(items) else None
        if found is None:
            message = f"ORDER BY {shortened(source.quote(key))} is not a column of the UNION ALL."
            hint = f"Name one of {', '.join(names)}, or its position."
            raise source.error(key, message, hint)
        item = items[found]
        desc, nulls_first = bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
        keys.setdefault(item, OrderKey(item, desc, nulls_first))
    return tuple(keys.values())


def _whole(tree: exp.Union, source: Source, key: str) -> int | None:
    """Read the number of LIMIT or OFFSET at the end."""
    clause = tree.args.get(key)
    if clause is None:
        return None
    number = clause.expression
    if not isinstance(number, exp.Literal) or not re.fullmatch("[0-9]{1,9}", number.name):
        message = f"{key.upper()} requires a non-negative integer."
        raise source.error(clause, message, f"Example: {key.upper()} 10.")
    return int(number.name)
