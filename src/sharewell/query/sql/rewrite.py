"""Rewriting: WITH, subqueries in FROM and DISTINCT as one SELECT over the table, people as rows.

A subquery that only filters, renames or computes is put in the place of its names. One that aggregates
may be filtered, ordered and computed with, so what is outside becomes the HAVING, ORDER BY and SELECT
list of the one inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sqlglot import Token, TokenError, TokenType, exp

from sharewell.errors import QueryTooComplex, SqlError
from sharewell.query.diagram import spend
from sharewell.query.domain import Domain
from sharewell.query.sql.grammar import AGGREGATE_FUNCTIONS, CALL
from sharewell.query.sql.text import DIALECT, MAX_TEXT, Source, names_match, shortened

#: The maximum number of nodes of a rewritten SELECT.
MAX_NODES = 50_000
#: How many steps of a diagram it takes to copy a node and to look for names in it.
STEPS_OF_NODE = 4

_COUNT_DISTINCT = re.compile(r"count\s*\(\s*distinct\b", re.IGNORECASE)
_COUNT_OPENING = (TokenType.VAR, TokenType.L_PAREN, TokenType.DISTINCT)
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Filter, exp.WithinGroup)


def rewrite(tree: exp.Select, source: Source) -> exp.Select:
    """Return one SELECT over the table that means the same."""
    clause = tree.args.get("from_")
    if tree.args.get("with_") or (clause is not None and isinstance(clause.this, exp.Subquery)):
        tree = _flatten(tree, source, {})
    elif tree.args.get("having"):
        _check_windows(tree, source)
    return _without_distinct(tree, source) if tree.args.get("distinct") else tree


def _check_windows(select: exp.Select, source: Source) -> None:
    """Refuse windows over the rows that HAVING leaves: noise would choose what they sum."""
    window = next((w for item in select.expressions for w in item.find_all(exp.Window)), None)
    if window is not None:
        message = "OVER cannot be combined with HAVING, which chooses the rows that it is over."
        hint = "Choose rows afterwards: SELECT * FROM (SELECT ... OVER () ...) AS t WHERE n > 100."
        raise source.error(window, message, hint)


def _flatten(select: exp.Expr, source: Source, known: dict[str, exp.Expr]) -> exp.Select:
    if not isinstance(select, exp.Select):
        raise source.error(select, "A subquery must be one SELECT.", "Write SELECT ... FROM ...")
    if select.args.get("having"):
        _check_windows(select, source)
    known = dict(known)
    if with_ := select.args.get("with_"):
        for each in with_.expressions:
            known[each.alias.casefold()] = _flatten(each.this, source, known)
        select.set("with_", None)
    clause = select.args.get("from_")
    inner, alias = _inner(clause, known) if clause is not None else (None, "")
    if inner is None:
        return select
    inner = _flatten(inner.copy(), source, known)
    if inner.args.get("distinct"):
        inner = _without_distinct(inner, source)
    found = _merge(select, inner, alias, source)
    _check_size(found)
    return found


def _check_size(tree: exp.Expr) -> None:
    size = sum(1 for _ in tree.walk())
    spend(STEPS_OF_NODE * size)
    if size > MAX_NODES:
        raise QueryTooComplex(
            "The SQL is too long once its subqueries are put in their places.", hint="Write it out."
        )


def _inner(clause: exp.From, known: dict[str, exp.Expr]) -> tuple[exp.Expr | None, str]:
    """Return what FROM selects from, unless that is the table, and the name that it has outside."""
    named = clause.this
    if isinstance(named, exp.Subquery):
        return named.this, named.alias
    if isinstance(named, exp.Table) and not named.args.get("db"):
        return known.get(named.name.casefold()), named.alias or named.name
    return None, ""


def _merge(outer: exp.Select, inner: exp.Select, alias: str, source: Source) -> exp.Select:
    """Put a subquery in the place of the names that it gives."""
    aggregated = _is_aggregated(inner)
    if aggregated:
        _settle(inner, source)
    names = _outputs(inner)
    star = any(item.is_star for item in inner.expressions)
    for clause in ("limit", "offset"):
        if inner.args.get(clause) and (
            not aggregated or any(outer.args.get(c) for c in ("where", "order", "limit"))
        ):
            message = (
                f"{clause.upper()} in a subquery is only supported where nothing is done with its rows."
            )
            raise source.error(inner.args[clause], message, f"Move {clause.upper()} to the end.")
    if aggregated and (outer.args.get("group") or _is_aggregated(outer)):
        message = "The result of GROUP BY cannot be aggregated again."
        raise source.error(outer, message, _instead_of_again(outer, inner, source))
    if any(item.is_star for item in outer.expressions):
        if len(outer.expressions) > 1 and aggregated:
            raise source.error(outer, "* cannot be combined with other columns.", "List the columns.")
        if aggregated:
            outer.set("expressions", [exp.column(name) for name in names])
            for item, name in zip(outer.expressions, names.values(), strict=True):
                item.this._meta = dict(name.meta)
    outer.set("from_", None)
    _substitute(outer, names, alias, source, star=star)
    if aggregated:
        _conjoin(inner, outer, "where", "having", exp.Having)
        inner.set("expressions", outer.expressions)
        for clause in ("order", "limit", "offset"):
            if outer.args.get(clause):
                inner.set(clause, outer.args[clause])
        return inner
    _conjoin(inner, outer, "where", "where", exp.Where)
    outer.set("where", inner.args.get("where"))
    outer.set("from_", inner.args.get("from_"))
    return outer


def _instead_of_again(outer: exp.Select, inner: exp.Select, source: Source) -> str:
    """Write what comes nearest to an aggregate of aggregates: a window over the groups."""
    names = _outputs(inner)
    for node in outer.find_all(exp.Sum, exp.Avg):
        own = names.get(node.this.name.casefold()) if isinstance(node.this, exp.Column) else None
        if own is not None and _has_aggregate(own):
            window = f"{node.key.upper()}({shortened(source.quote(own))}) OVER ()"
            return f"Add {window} to the SELECT that has GROUP BY."
    return "Aggregate once: SUM and AVG over groups are those over all rows, or SUM(COUNT(*)) OVER ()."


def _settle(select: exp.Select, source: Source) -> None:
    """Write out what the clauses of a SELECT mean by aliases, positions and ALL.

    Its own list gives way to that of the SELECT around it.
    """
    aliases: dict[str, exp.Expr] = {}
    for item in select.expressions:
        _resolve(item, aliases, source)
        if item.alias:
            aliases.setdefault(item.alias.casefold(), item.unalias())
    group, order, having = (select.args.get(clause) for clause in ("group", "order", "having"))
    if group is not None and group.args.get("all"):
        keys = [item.unalias() for item in select.expressions if not _has_aggregate(item)]
        group.set("expressions", [key.copy() for key in keys])
    for term in list(_terms(group)) if group is not None else ():
        _settle_term(term, select, aliases, source)
    for key in order.expressions if order is not None else ():
        term = key.this.unnest()
        if (
            isinstance(term, exp.Column)
            and not term.args.get("table")
            and term.name.casefold() in aliases
        ):
            term.replace(aliases[term.name.casefold()].copy())  # here an alias comes before a column
        else:
            _settle_term(term, select, aliases, source)
    if having is not None:
        _resolve(having, aliases, source)


def _terms(group: exp.Expr) -> Iterator[exp.Expr]:
    """Yield what GROUP BY lists, in ROLLUP and its relatives too."""
    for each in group.expressions:
        if isinstance(each, exp.Tuple | exp.Rollup | exp.Cube | exp.GroupingSets):
            yield from _terms(each)
        else:
            yield each.unnest()


def _settle_term(
    term: exp.Expr, select: exp.Select, aliases: Mapping[str, exp.Expr], source: Source
) -> None:
    """Write out a term of GROUP BY or ORDER BY, which may be a position."""
    if not isinstance(term, exp.Literal) or term.is_string:
        _resolve(term, aliases, source)
    elif term.name.isdecimal() and 1 <= int(term.name) <= len(select.expressions):
        term.replace(select.expressions[int(term.name) - 1].unalias().copy())


def _resolve(node: exp.Expr, aliases: Mapping[str, exp.Expr], source: Source) -> None:
    """Put what aliases stand for in the place of their names, where no column has the name."""
    for column in list(node.find_all(exp.Column)):
        is_column = column.args.get("table") or source.find(column) or source.find_measure(column)
        found = None if is_column else aliases.get(column.name.casefold())
        if found is not None:
            copied = found.copy()
            is_term = isinstance(column.parent, exp.Group) or isinstance(copied, exp.Column)
            column.replace(copied if is_term else exp.Paren(this=copied))
            _check_size(node)


def _outputs(select: exp.Select) -> dict[str, exp.Expr]:
    """Return what the names of a subquery stand for."""
    found: dict[str, exp.Expr] = {}
    for item in select.expressions:
        if not item.is_star:
            found[(item.alias or item.output_name or item.unalias().sql("duckdb")).casefold()] = (
                item.unalias()
            )
    return found


def _substitute(
    outer: exp.Select, names: dict[str, exp.Expr], alias: str, source: Source, *, star: bool
) -> None:
    """Replace the names that a subquery gives, outside of it."""
    aliases = {item.alias.casefold() for item in outer.expressions if item.alias}
    for item in list(outer.expressions):
        if isinstance(item, exp.Column) and item.name.casefold() in names:
            named = exp.Alias(this=item.copy(), alias=item.this.copy())
            outer.set("expressions", [named if each is item else each for each in outer.expressions])
    for column in list(outer.find_all(exp.Column)):
        if isinstance(column.this, exp.Star):
            continue
        table = column.args.get("table")
        if table is not None:
            if not names_match(table, alias):
                raise source.unknown(column, "table", table.name, alias, f"Write {alias}.{column.name}.")
            column.set("table", None)
        replaced = names.get(column.name.casefold())
        if replaced is not None:
            copied = replaced.copy()
            column.replace(copied if isinstance(copied, exp.Column) else exp.Paren(this=copied))
        elif not star and column.name.casefold() not in aliases:
            raise _unknown(source, column, names)


def _unknown(source: Source, column: exp.Column, names: dict[str, exp.Expr]) -> SqlError:
    hint = f"The subquery has {', '.join(names)}." if names else "Name it in the subquery."
    message = f'Unknown column "{shortened(column.name)}" of the subquery.'
    return source.error(column, message, hint)


def _conjoin(
    inner: exp.Select, outer: exp.Select, outside: str, inside: str, kind: type[exp.Expr]
) -> None:
    """Add a condition from outside to one inside."""
    conditions = [each.this for each in (inner.args.get(inside), outer.args.get(outside)) if each]
    if len(conditions) == 2:
        wrapped = [exp.Paren(this=each) for each in conditions]
        conditions = [exp.And(this=wrapped[0], expression=wrapped[1])]
    inner.set(inside, kind(this=conditions[0]) if conditions else None)


def _is_aggregated(select: exp.Select) -> bool:
    """Whether a SELECT has one row for each group."""
    if select.args.get("group") or select.args.get("distinct"):
        return True
    return any(_is_aggregate(node) for item in select.expressions for node in item.walk())


def _has_aggregate(item: exp.Expr) -> bool:
    return any(isinstance(node, exp.Window) or _is_aggregate(node) for node in item.walk())


def _is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node.parent, exp.Window) and node.parent.this is node:
        return False  # it sums rows of a result
    if isinstance(node, exp.Anonymous):
        return node.name.removesuffix(CALL) in AGGREGATE_FUNCTIONS
    return isinstance(node, _AGGREGATES)


def _without_distinct(select: exp.Select, source: Source) -> exp.Select:
    """Write SELECT DISTINCT as GROUP BY: the groups of a result are distinct."""
    distinct = select.args["distinct"]
    if distinct.args.get("on") or distinct.expressions:
        raise source.error(select, "DISTINCT ON is not supported.", "Use GROUP BY.")
    select.set("distinct", None)
    if not _is_aggregated(select):
        select.set("group", exp.Group(all=True))
    return select


def count_people(text: str, unit: str, most: int, domain: Domain, table: str) -> str:
    """Write COUNT(*) for COUNT(DISTINCT unit), or refuse it where a person may have several rows.

    >>> from sharewell import Boolean
    >>> domain = Domain([Boolean("employed")])
    >>> count_people("SELECT COUNT(DISTINCT person) FROM people", "person", 1, domain, "people")
    'SELECT COUNT(*) FROM people'
    """
    if len(text) > MAX_TEXT or not _COUNT_DISTINCT.search(text):
        return text
    try:
        tokens = DIALECT.tokenize(text)
    except TokenError:
        return text  # The compiler says what is wrong with it.
    for at in reversed(range(len(tokens))):
        end = _end_of_count(tokens, at, unit)
        if end is None:
            continue
        first, last = tokens[at].start, tokens[end].end + 1
        if most > 1:
            view = f"SELECT {unit}, ... FROM {table} GROUP BY {unit}"  # noqa: S608
            raise SqlError(
                f"COUNT(DISTINCT {unit}) is not supported: up to {most} rows of each {unit} are "
                "counted, and the number of people is no sum over rows.",
                hint="It is COUNT(*) in a dataset with one row a person. Ask your curator for a person "
                f"view with max_rows_per_person = 1: {view}.",
                where=Source(text, domain, table).at(first, last),
            )
        text = f"{text[:first]}COUNT(*){text[last:]}"
    return text


def _end_of_count(tokens: list[Token], at: int, unit: str) -> int | None:
    """Return the last token of a COUNT(DISTINCT unit) that begins here, if one does."""
    kinds = tuple(token.token_type for token in tokens[at : at + 3])
    if kinds != _COUNT_OPENING or tokens[at].text.upper() != "COUNT":
        return None
    name = at + 3
    if name + 1 < len(tokens) and tokens[name + 1].token_type is TokenType.DOT:
        name += 2
    if name + 1 >= len(tokens) or tokens[name + 1].token_type is not TokenType.R_PAREN:
        return None
    return name + 1 if tokens[name].text.casefold() == unit.casefold() else None
