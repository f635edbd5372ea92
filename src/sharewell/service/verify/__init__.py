"""Verification of a ledger, offline and from what it holds alone: one file a check."""

from sharewell.service.verify.finding import Check, Finding
from sharewell.service.verify.report import Verification, verify

__all__ = ["Check", "Finding", "Verification", "verify"]
