"""SQL to linear queries: a subset of SQL over one table, compiled from public information only.

A text passes four steps. `text` divides it into tokens, and knows the names that it may use. `grammar`
parses it, and checks its words and its tree against an allowlist. `rewrite` puts subqueries in their
places, so that one SELECT over the table is left. `select` compiles that, one rule for each clause;
`union` puts several together.

A rule reads expressions (`expressions`) down to their leaves, each compiled where it occurs: grouped
columns (`groups`), and `aggregates`, `quantiles`, `spreads` and `windows`. What is bought are blocks of
queries over the rows of `conditions`; what is linear in their answers are `forms`. Expressions of
columns are evaluated on `cells`.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import nullcontext
from threading import Lock

from sqlglot import exp

from sharewell.errors import QueryTooComplex, SqlError
from sharewell.query.diagram import limited
from sharewell.query.domain import Domain
from sharewell.query.sql.grammar import parse, too_deep
from sharewell.query.sql.rewrite import rewrite
from sharewell.query.sql.schema import describe
from sharewell.query.sql.select import UNLIMITED, compile_select, too_large
from sharewell.query.sql.text import Source, normalize_sql
from sharewell.query.sql.union import compile_union
from sharewell.query.statement import Statement

#: The maximum work of a new question, in steps of 8 to 20 us; each number of the result allows more.
MAX_STEPS = 36_000

__all__ = ["STATEMENTS", "Statement", "compile_sql", "normalize_sql"]


def compile_sql(
    text: str,
    domain: Domain,
    table: str = "people",
    *,
    most: int | None = None,
    max_bytes: int | None = None,
) -> Statement:
    """Compile one SELECT into linear queries; raise a QueryError if it is not supported.

    The limits are for new questions. If `most` is given, a statement of a larger `size`, or one that
    takes too much work, is refused before it is built; if `max_bytes` is, a longer text is not parsed.

    >>> from sharewell import Domain, Integer
    >>> domain = Domain([Integer("age", 0, 85)])
    >>> statement = compile_sql("SELECT COUNT(*) FROM people WHERE age < 18", domain)
    >>> statement.columns, [int(query.l1_norm) for query in statement.queries]
    (('COUNT(*)',), [18])
    """
    if not isinstance(text, str):
        raise SqlError(
            f"SQL must be a string, not {type(text).__name__}.",
            hint='Example: "SELECT COUNT(*) FROM people".',
        )
    size = len(text.encode("utf-8", "surrogatepass"))
    if max_bytes is not None and size > max_bytes:
        raise QueryTooComplex(
            f"The SQL has {size:,} bytes; the limit is {max_bytes:,}.",
            hint="Replace long lists of values by ranges or declared bins, or split the question.",
        )
    source = Source(text, domain, table)
    statement = STATEMENTS.get(source.normalized, domain, table)
    if statement is None:
        with nullcontext() if most is None else limited(MAX_STEPS):
            statement = compile_anew(source, UNLIMITED if most is None else most)
        STATEMENTS.put(statement)
    if most is not None and statement.size > most:
        raise too_large(statement.size, most)
    return statement


def compile_anew(source: Source, most: int = UNLIMITED) -> Statement:
    """Compile a text without the cache. Errors point into the text as it was written."""
    if (schema := describe(source)) is not None:
        return schema
    source.tokenize()
    try:
        with source.collected():
            tree = parse(source)
            if isinstance(tree, exp.Union):
                statement = compile_union(tree, source, most)
            else:
                statement = compile_select(rewrite(tree, source), source, most)
    except RecursionError:
        raise too_deep() from None
    except QueryTooComplex as error:  # which ends the search for others
        source.mistakes.append(error)
    if source.mistakes:
        raise source.all_mistakes()
    return statement


class StatementCache:
    """A thread-safe LRU cache of statements by their normalized texts, bounded by their memory."""

    def __init__(self, max_bytes: int) -> None:
        self.nbytes = 0
        self._max_bytes = max_bytes
        self._statements: OrderedDict[tuple[str, Domain, str], Statement] = OrderedDict()
        self._lock = Lock()

    def get(self, text: str, domain: Domain, table: str) -> Statement | None:
        """Return the statement of a normalized text, or None if it would have to be compiled."""
        key = (text, domain, table)
        with self._lock:
            found = self._statements.get(key)
            if found is not None:
                self._statements.move_to_end(key)
            return found

    def put(self, statement: Statement) -> None:
        """Keep a statement, and forget those used longest ago until all fit."""
        if statement.nbytes > self._max_bytes:
            return
        key = (statement.text, statement.domain, statement.table)
        with self._lock:
            if key not in self._statements:
                self._statements[key] = statement
                self.nbytes += statement.nbytes
            while self.nbytes > self._max_bytes:
                _, oldest = self._statements.popitem(last=False)
                self.nbytes -= oldest.nbytes


STATEMENTS = StatementCache(max_bytes=2**26)
