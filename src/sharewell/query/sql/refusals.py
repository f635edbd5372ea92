"""Refusals: what is not SQL, or not supported, and the nearest thing that is."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from sqlglot import Token, TokenType, exp
from sqlglot.dialects import DuckDB

from sharewell.errors import Location, SqlError, SqlSyntaxError
from sharewell.query.attribute import Date, Ordered
from sharewell.query.domain import Column
from sharewell.query.sql.text import CLOSING, OPENING, Source, did_you_mean, shortened, token_types

_JOIN = ("Joins are not supported.", "Query one table, and compare its groups by FILTER (WHERE ...).")
_SUBQUERY = "A subquery is only supported in FROM."
_CAST = ('Values cannot be cast to "{}".', "Cast to INTEGER, DOUBLE, DECIMAL, VARCHAR, BOOLEAN or DATE.")

#: Messages and hints for SQL keywords outside the vocabulary; `{}` stands for the token.
REFUSED_WORDS: dict[TokenType, tuple[str, str]] = dict.fromkeys(
    DuckDB.parser_class.TYPE_TOKENS, _CAST
) | {
    token: (message, hint)
    for tokens, message, hint in (
        ("JOIN LEFT RIGHT INNER OUTER FULL CROSS NATURAL SEMI ANTI ASOF POSITIONAL LATERAL ON", *_JOIN),
        (
            "EXCEPT INTERSECT",
            "EXCEPT and INTERSECT are not supported.",
            "Combine the conditions with AND NOT, or with AND.",
        ),
        (
            "WINDOW QUALIFY",
            "{} is not supported.",
            "Write the window after OVER, and choose rows afterwards: "
            "SELECT * FROM (SELECT ..., RANK() OVER (ORDER BY COUNT(*) DESC) AS place ...) AS t "
            "WHERE place <= 5.",
        ),
        ("TABLE_SAMPLE USING", "Sampling is not supported.", "Remove the sampling clause."),
        ("FETCH", "FETCH is not supported.", "Use LIMIT."),
        (
            "PIVOT UNPIVOT",
            "{} is not supported.",
            "Write one COUNT(*) FILTER (WHERE ...) for each column of the result.",
        ),
        (
            "PLACEHOLDER PARAMETER COLON DOLLAR",
            "Parameters are not supported.",
            "Write the value in the SQL text.",
        ),
        (
            "GLOB RLIKE COLLATE",
            'Unsupported operator "{}".',
            "Use LIKE, ILIKE, SIMILAR TO or regexp_matches(column, 'pattern').",
        ),
        ("AMP PIPE HASH", 'Unsupported operator "{}".', "Use + - * / // % or **."),
        ("FARROW", 'Unsupported operator "{}".', "Write >=."),
        (
            "CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP TIMESTAMP TIMESTAMPNTZ TIME",
            "The current time is not supported: the same question must mean the same tomorrow.",
            "Write a date as DATE '2024-12-31'.",
        ),
        ("EXISTS", _SUBQUERY, "Count the rows that exist: SELECT COUNT(*) FROM ... WHERE ..."),
    )
    for token in token_types(tokens)
}


def syntax_error(source: Source, errors: Iterable[dict[str, Any]]) -> SqlSyntaxError:
    """Return the error for a text that the parser cannot read."""
    where = source.locate(source.tokens[-1])
    if len(source.tokens) > 2 and source.tokens[1].text.upper() == "TOP":
        number = shortened(source.tokens[2].text)
        hint = f"Write LIMIT {number} at the end."
        return source.error(source.tokens[1], "TOP is not supported.", hint, SqlSyntaxError)
    for error in errors:
        words = error.get("highlight") or ""
        if error.get("line") and error.get("col"):
            where = Location(error["line"], max(1, error["col"] - len(words) + 1), shortened(words))
    return SqlSyntaxError(
        f'Syntax error at or near "{where.text}".' if where.text else "Syntax error.",
        hint="Check the text just before this position.",
        where=where,
    )


def unexpected(source: Source, token: Token) -> SqlSyntaxError:
    """Return the error for a token that no part of the tree is written with."""
    hint = "Remove it, or add what is missing next to it."
    if token.token_type is TokenType.STRING:
        hint = f'Strings are values. Write names in double quotes: "{shortened(token.text)}".'
    return source.error(token, f'Unexpected "{shortened(token.text)}".', hint, SqlSyntaxError)


def unsupported_node(source: Source, node: exp.Expr) -> SqlError:
    """Return the error for a node, or an argument of one, outside the grammar."""
    message, hint = "Unsupported expression.", "Remove it."
    if isinstance(node, exp.Join):
        message, hint = _JOIN
    elif isinstance(node, exp.Subquery):
        return subquery(source, node)
    elif isinstance(node, exp.Rollup | exp.Cube):
        name = type(node).__name__.upper()
        message, hint = f"WITH {name} is not supported.", f"Write GROUP BY {name} (...)."
    elif isinstance(node, exp.Between):
        message, hint = "BETWEEN SYMMETRIC is not supported.", "Write the smaller end first."
    return source.error(node, message, hint)


def subquery(source: Source, node: exp.Expr) -> SqlError:
    """Return the error for a subquery outside of FROM, with what serves in its place."""
    if node.find_ancestor(exp.In):
        hint = "Write its conditions in WHERE, in place of IN."
    elif node.find_ancestor(exp.Where, exp.Having, exp.Filter):
        hint = "Ask it on its own, and write its answer here as a number."
    elif (outer := node.find_ancestor(exp.Select)) and outer.args.get("group"):
        hint = "For shares of the total, write COUNT(*) / SUM(COUNT(*)) OVER ()."
    else:
        hint = "For a share, write COUNT(*) FILTER (WHERE ...) / COUNT(*)."
    return source.error(node, _SUBQUERY, hint)


def unsupported_word(source: Source, token: Token) -> SqlError:
    """Return the error for a word outside the vocabulary."""
    word = shortened(token.text)
    default = (
        'Unsupported keyword "{}".',
        f'To use it as a name, write it in double quotes: "{word}".'
        if word.isidentifier()
        else "Remove it.",
    )
    message, hint = REFUSED_WORDS.get(token.token_type, default)
    return source.error(token, message.format(word), hint)


def unknown_function(source: Source, token: Token, known: Iterable[str]) -> SqlError:
    """Return the error for a function outside the grammar, with what comes nearest to it."""
    word = token.text.upper()
    instead = INSTEAD.get(word)
    if instead is not None:
        instead = _about(source, token, instead)
    message = f'Unsupported function "{shortened(token.text)}".'
    if instead is None:
        hint, _ = did_you_mean(word, sorted(known), str)
        instead = hint or _KNOWN[_kind(_column(source, token))]
    return source.error(token, message, instead)


def _about(source: Source, token: Token, instead: str) -> str:
    """Write what comes nearest to a function with the column that it was written with."""
    at = source.tokens.index(token) + 2
    named = source.tokens[at].text if at < len(source.tokens) else ""
    column = _column(source, token)
    if column is not None and "ORDER BY {x}" in instead and not isinstance(column.attribute, Ordered):
        instead = _COUNTS
    elif column is None and "ORDER BY {x}" in instead:
        aliases = [
            b.text for a, b in itertools.pairwise(source.tokens) if a.token_type is TokenType.ALIAS
        ]
        order = {"MIN": "", "MAX": " DESC"}.get(token.text.upper())
        instead = "Name a column."
        if any(named.casefold() == measure.name.casefold() for measure in source.domain.measures):
            instead = f"{named} is only summed. {_DECLARE_BINS}"
        elif order is not None and named in aliases:
            instead = f"Of the rows of a result, write ORDER BY {named}{order} LIMIT 1."
    return instead.format(x=column.name if column else "column", table=source.table)


def _column(source: Source, token: Token) -> Column | None:
    """Return the first column in the parentheses after a function's name."""
    depth = 0
    for each in source.tokens[source.tokens.index(token) + 1 :]:
        depth += (each.token_type in OPENING) - (each.token_type in CLOSING)
        if depth <= 0:
            break
        found = source.domain.columns.get(each.text.casefold())
        if found is not None and each.token_type is not TokenType.STRING:
            return found
    return None


def _kind(column: Column | None) -> str:
    if column is None:
        return ""
    if column.is_text:
        return "text"
    return "date" if isinstance(column.attribute, Date) else "number"


_DECLARE_BINS = "Ask your curator to declare it as an attribute with bins too, which has quantiles."

#: The functions that there are, by the kind of column that an unknown one was written with.
_KNOWN = {
    "": "The aggregates are COUNT, SUM, AVG, MEDIAN, STDDEV and those in docs/sql.md.",
    "text": "The functions of text are UPPER, LOWER, TRIM, LEFT, RIGHT, SUBSTRING, SPLIT_PART, REPLACE, "
    "LENGTH, STRPOS, CONCAT and those in docs/sql.md.",
    "number": "The functions of numbers are ABS, ROUND, FLOOR, CEIL, MOD, POWER, SQRT, LN, WIDTH_BUCKET "
    "and those in docs/sql.md; the aggregates SUM, AVG, MEDIAN and STDDEV.",
    "date": "The functions of dates are YEAR, QUARTER, MONTH, DATE_TRUNC, DATE_PART, DATE_DIFF and "
    "those in docs/sql.md.",
}

#: The nearest question for functions that cannot be answered; `{x}` is the column that was written.
_COUNTS = "Count its values: SELECT {x}, COUNT(*) FROM {table} GROUP BY {x}."
_EXTREME = "One row alone decides it. Use PERCENTILE_CONT({}) WITHIN GROUP (ORDER BY {{x}})."
_NEIGHBOUR = "Use SUM(COUNT(*)) OVER (ORDER BY ... ROWS BETWEEN {}): 0 where there is no such row."
_LISTS = "Single values are never returned. " + _COUNTS
_RANKS = "Use RANK() OVER (ORDER BY COUNT(*) DESC)."
_PARTS = "Use date_trunc('month', {x}), YEAR({x}) or MONTH({x})."
_SHIFTS = "Add a duration: {x} + INTERVAL 3 MONTH."
_PIECES = "Use SPLIT_PART({x}, '.', 1), SUBSTRING({x}, 1, 3) or REPLACE({x}, 'a', 'b')."
_SEARCHES = "Use STRPOS({x}, 'text')."
_DECIDES = "One row alone decides it. Use COUNT_IF({x})."
INSTEAD = {
    "MIN": _EXTREME.format("0.01"),
    "MAX": _EXTREME.format("0.99"),
    "FIRST": _LISTS,
    "LAST": _LISTS,
    "ANY_VALUE": _LISTS,
    "ARRAY_AGG": _LISTS,
    "LIST": _LISTS,
    "ARG_MAX": _LISTS,
    "ARG_MIN": _LISTS,
    "MAX_BY": _LISTS,
    "MIN_BY": _LISTS,
    "BOOL_AND": _DECIDES,
    "BOOL_OR": _DECIDES,
    "MEAN": "Use AVG({x}).",
    "GEOMEAN": "Use AVG({x}).",
    "PRODUCT": "Use SUM({x}).",
    "VAR": "Use VARIANCE({x}).",
    "STD": "Use STDDEV({x}).",
    "STDEV": "Use STDDEV({x}).",
    "STRING_AGG": _LISTS,
    "GROUP_CONCAT": _LISTS,
    "MODE": "Use SELECT {x}, COUNT(*) FROM {table} GROUP BY {x} ORDER BY COUNT(*) DESC LIMIT 1.",
    "HISTOGRAM": _COUNTS,
    "SKEWNESS": _COUNTS,
    "KURTOSIS": _COUNTS,
    "ENTROPY": _COUNTS,
    "MAD": "Use quantiles, such as QUANTILE_CONT({x}, [0.25, 0.5, 0.75]).",
    "GROUPING": "In the row of a subtotal the column is NULL: write {x} IS NULL.",
    "FORMAT": "Numbers are returned as numbers: round them, or format them afterwards.",
    "APPROX_COUNT_DISTINCT": "The values are public. " + _COUNTS,
    "APPROX_QUANTILE": "Use PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY {x}).",
    "LAG": _NEIGHBOUR.format("1 PRECEDING AND 1 PRECEDING"),
    "LEAD": _NEIGHBOUR.format("1 FOLLOWING AND 1 FOLLOWING"),
    "NTILE": "Use RANK() OVER (ORDER BY COUNT(*) DESC), or the quantiles of a column.",
    "PERCENT_RANK": _RANKS,
    "CUME_DIST": _RANKS,
    "FIRST_VALUE": _RANKS,
    "LAST_VALUE": _RANKS,
    "NTH_VALUE": _RANKS,
    "NOW": "Write a date as DATE '2024-12-31'.",
    "TODAY": "Write a date as DATE '2024-12-31'.",
    "RANDOM": "Questions must mean the same every time: remove it.",
    "STRFTIME": _PARTS,
    "TO_CHAR": _PARTS,
    "DATE_FORMAT": _PARTS,
    "DATE_ADD": _SHIFTS,
    "DATE_SUB": "Subtract a duration: {x} - INTERVAL 3 MONTH.",
    "DATEADD": _SHIFTS,
    "REGEXP_EXTRACT": _PIECES,
    "REGEXP_REPLACE": _PIECES,
    "POSITION": _SEARCHES,
    "CHARINDEX": _SEARCHES,
    "LOCATE": _SEARCHES,
    "ISNULL": "Write {x} IS NULL, or COALESCE in place of ISNULL.",
    "NOTNULL": "Write {x} IS NOT NULL.",
    "NVL": "Write COALESCE in place of NVL.",
    "DECODE": "Write CASE {x} WHEN ... THEN ... ELSE ... END.",
    "LIST_CONTAINS": "Write {x} IN (...).",
    "UNNEST": "Write a SELECT for each value, and UNION ALL between them.",
}
