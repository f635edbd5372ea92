"""Domains, attributes, linear queries, workloads and SQL. Nothing here ever sees a row.

>>> from sharewell.query import Domain, Integer, compile_sql
>>> domain = Domain([Integer("age", 0, 85)])
>>> compile_sql("SELECT COUNT(*) FROM people WHERE age < 18", domain).queries
(LinearQuery(age[0..17]),)
"""

from typing import TYPE_CHECKING, Any

from sharewell.query import workload
from sharewell.query.attribute import Attribute, Binned, Boolean, Category, Date, Integer
from sharewell.query.block import Block, ParallelBlock
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell.query.measure import Measure
from sharewell.query.statement import Statement

if TYPE_CHECKING:
    from sharewell.query.sql import compile_sql

__all__ = [
    "Attribute",
    "Binned",
    "Block",
    "Boolean",
    "Category",
    "Date",
    "Domain",
    "Integer",
    "LinearQuery",
    "Measure",
    "ParallelBlock",
    "Statement",
    "compile_sql",
    "workload",
]


def __getattr__(name: str) -> Any:
    if name != "compile_sql":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Imports sqlglot, which is slow: only on first use.
    from sharewell.query.sql import compile_sql

    return compile_sql
