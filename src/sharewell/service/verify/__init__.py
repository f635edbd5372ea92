"""Offline verification of ledgers.

Deliberately separate from the code that runs the service: a verifier must not share its mistakes.
"""

from sharewell.service.verify.audit import Check, LedgerFinding
from sharewell.service.verify.verification import Verification, verify

__all__ = ["Check", "LedgerFinding", "Verification", "verify"]
