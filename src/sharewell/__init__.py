"""Sharewell: several analysts share one sensitive table under one differential-privacy budget.

The public interface is this module, `sharewell.query`, `sharewell.mechanisms` and
`sharewell.schedulers`; everything else may change.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sharewell import errors as _errors
from sharewell.errors import *  # noqa: F403

if TYPE_CHECKING:
    from sharewell import datasets
    from sharewell.client import (
        AsyncCuratorSession,
        AsyncSession,
        CuratorSession,
        Session,
        begin,
        connect,
        connect_async,
        connect_curator,
        connect_curator_async,
        open,
        open_curator,
    )
    from sharewell.config import parse_config, read_config
    from sharewell.config.forecast import current_candidate
    from sharewell.engine.data_vector import DataVector
    from sharewell.engine.vectorize import vectorize
    from sharewell.engine.view_tables import PersonView, ViewTable
    from sharewell.privacy.budget import Budget
    from sharewell.privacy.curator import Curator
    from sharewell.privacy.ledger import Granted, MemoryLedger
    from sharewell.privacy.noise import NoNoise, gaussian_variance, laplace_variance
    from sharewell.query import (
        Binned,
        Block,
        Boolean,
        Category,
        Date,
        Domain,
        Integer,
        LinearQuery,
        Measure,
        compile_sql,
    )
    from sharewell.service.ledger import copy_ledger, open_ledger, verify_chain
    from sharewell.service.verify import verify
    from sharewell.sharing.certificate import Certificate
    from sharewell.sharing.collective import (
        Ask,
        CloseRound,
        Collective,
        Join,
        Leave,
        expected_errors,
    )
    from sharewell.sharing.plan import plan
    from sharewell.wire import (
        AnalystList,
        BudgetStatus,
        CertificateReport,
        ClosedRound,
        DatasetInfo,
        EventPage,
        Number,
        Quote,
        Result,
        Ticket,
    )

__version__ = "0.1.0"

__all__ = [
    "AnalystList",
    "Ask",
    "AsyncCuratorSession",
    "AsyncSession",
    "Binned",
    "Block",
    "Boolean",
    "Budget",
    "BudgetStatus",
    "Category",
    "Certificate",
    "CertificateReport",
    "CloseRound",
    "ClosedRound",
    "Collective",
    "Curator",
    "CuratorSession",
    "DataVector",
    "DatasetInfo",
    "Date",
    "Domain",
    "EventPage",
    "Granted",
    "Integer",
    "Join",
    "Leave",
    "LinearQuery",
    "Measure",
    "MemoryLedger",
    "NoNoise",
    "Number",
    "PersonView",
    "Quote",
    "Result",
    "Session",
    "Ticket",
    "ViewTable",
    "begin",
    "compile_sql",
    "connect",
    "connect_async",
    "connect_curator",
    "connect_curator_async",
    "copy_ledger",
    "current_candidate",
    "datasets",
    "expected_errors",
    "gaussian_variance",
    "laplace_variance",
    "open",
    "open_curator",
    "open_ledger",
    "parse_config",
    "plan",
    "read_config",
    "vectorize",
    "verify",
    "verify_chain",
]
__all__ += _errors.__all__

#: Names that need a large library, by module: imported on first use, so that `import sharewell` is fast.
_LAZY = {
    "sharewell.client": (
        *("AsyncCuratorSession", "AsyncSession", "CuratorSession", "Session"),
        *("connect", "connect_async", "connect_curator", "connect_curator_async"),
        *("begin", "open", "open_curator"),
    ),
    "sharewell.config": ("parse_config", "read_config"),
    "sharewell.config.forecast": ("current_candidate",),
    "sharewell.engine.data_vector": ("DataVector",),
    "sharewell.engine.vectorize": ("vectorize",),
    "sharewell.engine.view_tables": ("PersonView", "ViewTable"),
    "sharewell.privacy.budget": ("Budget",),
    "sharewell.privacy.curator": ("Curator",),
    "sharewell.privacy.ledger": ("Granted", "MemoryLedger"),
    "sharewell.privacy.noise": ("NoNoise", "gaussian_variance", "laplace_variance"),
    "sharewell.query": (
        *(
            "Binned",
            "Block",
            "Boolean",
            "Category",
            "Date",
            "Domain",
            "Integer",
            "LinearQuery",
            "Measure",
        ),
        "compile_sql",
    ),
    "sharewell.service.ledger": ("copy_ledger", "open_ledger", "verify_chain"),
    "sharewell.service.verify": ("verify",),
    "sharewell.sharing.certificate": ("Certificate",),
    "sharewell.sharing.collective": (
        "Ask",
        "CloseRound",
        "Collective",
        "Join",
        "Leave",
        "expected_errors",
    ),
    "sharewell.sharing.plan": ("plan",),
    "sharewell.wire": (
        *("AnalystList", "BudgetStatus", "CertificateReport", "ClosedRound", "DatasetInfo"),
        *("EventPage", "Number", "Quote", "Result", "Ticket"),
    ),
}
_MODULE_OF = {name: module for module, names in _LAZY.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return import_module("sharewell.datasets")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'sharewell' has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def load_ipython_extension(shell: Any) -> None:
    """Provide `%sharewell` in a notebook; IPython calls this for `%load_ext sharewell`."""
    import_module("sharewell.client.notebook").load(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
