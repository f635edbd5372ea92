"""Sharewell: several analysts, one sensitive table, one privacy budget, and nobody worse off.

This module is the whole public interface; everything else may move.
"""

from typing import TYPE_CHECKING, Any

from sharewell.errors import SharewellError
from sharewell.query.attribute import Boolean, Category
from sharewell.query.block import Block
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell.query.ordered import Binned, Date, Integer

if TYPE_CHECKING:
    from sharewell import datasets
    from sharewell.client import connect, connect_async, open
    from sharewell.engine.data_vector import DataVector
    from sharewell.engine.vectorize import vectorize
    from sharewell.privacy.budget import Budget
    from sharewell.privacy.curator import Curator
    from sharewell.query.sql import compile_sql
    from sharewell.sharing.expected import expected_errors
    from sharewell.sharing.stream import Ask, Join, Leave

__version__ = "0.1.0"

__all__ = [
    "Ask",
    "Binned",
    "Block",
    "Boolean",
    "Budget",
    "Category",
    "Curator",
    "DataVector",
    "Date",
    "Domain",
    "Integer",
    "Join",
    "Leave",
    "LinearQuery",
    "SharewellError",
    "compile_sql",
    "connect",
    "connect_async",
    "datasets",
    "expected_errors",
    "open",
    "vectorize",
]

#: Names that need a heavy library: found when first used, so that `import sharewell` stays quick.
_LATER = {
    "Ask": "sharewell.sharing.stream",
    "Budget": "sharewell.privacy.budget",
    "Curator": "sharewell.privacy.curator",
    "DataVector": "sharewell.engine.data_vector",
    "Join": "sharewell.sharing.stream",
    "Leave": "sharewell.sharing.stream",
    "compile_sql": "sharewell.query.sql",
    "connect": "sharewell.client",
    "connect_async": "sharewell.client",
    "datasets": "sharewell.datasets",
    "expected_errors": "sharewell.sharing.expected",
    "open": "sharewell.client",
    "vectorize": "sharewell.engine.vectorize",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'sharewell' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(_LATER[name])
    return module if name == "datasets" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LATER])
