"""Durable, hash-chained ledgers with a single writer."""

from sharewell.service.ledger.chain import ChainDamage
from sharewell.service.ledger.durable import DurableLedger
from sharewell.service.ledger.opening import copy_ledger, open_ledger, verify_chain
from sharewell.service.ledger.store import Head

__all__ = [
    "ChainDamage",
    "DurableLedger",
    "Head",
    "copy_ledger",
    "open_ledger",
    "verify_chain",
]
