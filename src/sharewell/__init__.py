"""Sharewell: several analysts, one sensitive table, one privacy budget, and nobody worse off."""

from sharewell.query.attribute import Binned, Boolean, Category, Date, Integer
from sharewell.query.block import Block
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

__version__ = "0.1.0"
__all__ = ["Binned", "Block", "Boolean", "Category", "Date", "Domain", "Integer", "LinearQuery"]
