"""COUNT(DISTINCT person): the number of rows, where every person has one."""

from __future__ import annotations

import re

from sqlglot import Token, TokenError, TokenType

from sharewell.errors import SqlError
from sharewell.query.domain import Domain
from sharewell.query.sql.text import DIALECT, MAX_TEXT, Source

_DISTINCT = re.compile(r"count\s*\(\s*distinct\b", re.IGNORECASE)
_OPENING = (TokenType.VAR, TokenType.L_PAREN, TokenType.DISTINCT)


def count_people(text: str, unit: str, most: int, domain: Domain, table: str) -> str:
    """Write COUNT(*) for COUNT(DISTINCT unit), or refuse it where a person may have several rows.

    >>> from sharewell import Boolean
    >>> domain = Domain([Boolean("employed")])
    >>> count_people("SELECT COUNT(DISTINCT person) FROM people", "person", 1, domain, "people")
    'SELECT COUNT(*) FROM people'
    """
    if len(text) > MAX_TEXT or not _DISTINCT.search(text):
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
    if kinds != _OPENING or tokens[at].text.upper() != "COUNT":
        return None
    name = at + 3
    if name + 1 < len(tokens) and tokens[name + 1].token_type is TokenType.DOT:
        name += 2
    if name + 1 >= len(tokens) or tokens[name + 1].token_type is not TokenType.R_PAREN:
        return None
    return name + 1 if tokens[name].text.casefold() == unit.casefold() else None
