"""The statements compiled last, so that a question asked again is not compiled again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

from sharewell.query.statement import Statement


class StatementCache:
    """The statements used last, by key; safe to share among threads.

    Bounded by the queries that the statements hold, and not only by their number: one statement may
    hold a single query or tens of thousands.
    """

    def __init__(self, max_statements: int, max_queries: int) -> None:
        self._max_statements = max_statements
        self._max_queries = max_queries
        self._statements: OrderedDict[Hashable, Statement] = OrderedDict()
        self._queries = 0
        self._lock = Lock()

    def get(self, key: Hashable, compile: Callable[[], Statement]) -> Statement:
        """The statement of this key, compiled where it is not at hand."""
        with self._lock:
            found = self._statements.get(key)
            if found is not None:
                self._statements.move_to_end(key)
                return found
        statement = compile()
        with self._lock:
            self._keep(key, statement)
        return statement

    def peek(self, key: Hashable) -> Statement | None:
        """The statement of this key, if it is at hand."""
        return self._statements.get(key)

    def _keep(self, key: Hashable, statement: Statement) -> None:
        if key in self._statements or len(statement.queries) > self._max_queries:
            return
        self._statements[key] = statement
        self._queries += len(statement.queries)
        while len(self._statements) > self._max_statements or self._queries > self._max_queries:
            _, oldest = self._statements.popitem(last=False)
            self._queries -= len(oldest.queries)
