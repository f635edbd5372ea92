"""The ledger that outlives the process: durable, hash-chained, with one writer at a time."""

from sharewell.service.ledger.chain import Head
from sharewell.service.ledger.copying import copy_ledger
from sharewell.service.ledger.durable import DurableLedger
from sharewell.service.ledger.opening import open_ledger
from sharewell.service.ledger.sqlite import SqliteLedger
from sharewell.service.ledger.verify import Finding, verify_chain

__all__ = [
    "DurableLedger",
    "Finding",
    "Head",
    "SqliteLedger",
    "copy_ledger",
    "open_ledger",
    "verify_chain",
]
