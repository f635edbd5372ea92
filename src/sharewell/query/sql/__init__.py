"""SQL to queries: a small part of SQL over one table, checked word by word before anything is spent.

A text goes through `text` (words and tree), `vocabulary` and `grammar` (nothing unknown), `names`,
`constants`, `comparison`, `conditions`, `aggregates` and `groups` (what the parts mean), and
`select` (the statement). All of it looks at the public domain only.
"""

from __future__ import annotations

from sharewell.errors import SqlError
from sharewell.query.domain import Domain
from sharewell.query.sql.cache import StatementCache
from sharewell.query.sql.grammar import check_tree
from sharewell.query.sql.names import Scope
from sharewell.query.sql.select import MAX_QUERIES, SelectCompiler
from sharewell.query.sql.text import parse, tokenize, too_deep
from sharewell.query.sql.vocabulary import check_words
from sharewell.query.statement import Statement

__all__ = ["Statement", "compile_sql", "compiled_before"]

_CACHE = StatementCache(max_statements=4096, max_queries=2**16)


def compile_sql(
    text: str, domain: Domain, table: str = "people", *, most: int = MAX_QUERIES
) -> Statement:
    """Compile one SELECT into the linear queries that it needs; anything else raises a QueryError.

    What needs more than `most` queries is refused before they are made, unless it was compiled before.

    >>> from sharewell import Domain, Integer
    >>> domain = Domain([Integer("age", 0, 85)])
    >>> statement = compile_sql("SELECT COUNT(*) FROM people WHERE age < 18", domain)
    >>> statement.columns, [int(query.l1_norm) for query in statement.queries]
    (('COUNT(*)',), [18])
    """
    if not isinstance(text, str):
        raise SqlError(
            f"SQL is text, and this is {type(text).__name__}.",
            hint='Write, for example, "SELECT COUNT(*) FROM people".',
        )
    return _CACHE.get((text, domain, table), lambda: _compile(text, domain, table, most))


def compiled_before(text: str, domain: Domain, table: str = "people") -> Statement | None:
    """What `compile_sql` would give, where it need not compile for it."""
    return _CACHE.peek((text, domain, table))


def _compile(text: str, domain: Domain, table: str, most: int = MAX_QUERIES) -> Statement:
    source = tokenize(text, table)
    check_words(source, {*domain.columns, table.casefold()})
    try:
        select = check_tree(source, parse(source))
        return SelectCompiler(select, Scope(source, domain, table), most).statement()
    except RecursionError:
        raise too_deep() from None
