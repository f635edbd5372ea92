"""Requests to the kernel, and the measurements that it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sharewell.privacy.accounts import Payer
from sharewell.privacy.ledger import Charged, Released
from sharewell.privacy.sensitivity import Rows
from sharewell.privacy.sparse_vector import SparseVector
from sharewell.query.block import Measurable
from sharewell.query.linear import LinearQuery


@dataclass(frozen=True)
class Measure:
    """A request: measure every row of a block with noise, at a cost charged to a payer."""

    block: Measurable
    cost: Fraction
    payer: Payer


@dataclass(frozen=True)
class Test:
    """A request: test whether a query's answer is a sparse vector's threshold away from a guess."""

    sparse_vector: SparseVector
    query: LinearQuery
    guess: float


#: The requests that a mechanism may yield.
Request = Measure | Test


@dataclass(frozen=True, eq=False)
class Reservation:
    """A valid request to measure whose cost is reserved: charged once, or released once."""

    block: Measurable
    #: The kernel's own copy of the rows, whose sensitivity it has computed.
    rows: Rows
    scales: NDArray[np.float64]
    cost: Fraction
    bill: Mapping[str, Fraction]

    @cached_property
    def charged(self) -> Charged:
        """The event that charges it, for the rows that are measured: not for what the block says."""
        scales = [scale.hex() for scale in self.scales.tolist()]
        return Charged(self.bill, {"measure": self.rows.to_json(), "scales": scales})


@dataclass(frozen=True, eq=False)
class Measurement:
    """A block's noisy values, public once stored, and the exact variance of each.

    `charge` is the number of the event that paid for it.
    """

    block: Measurable
    values: NDArray[np.int64]
    variances: NDArray[np.float64]
    cost: Fraction
    bill: Mapping[str, Fraction]
    charge: int

    @property
    def released(self) -> Released:
        """The event that releases it."""
        return Released(self.charge, tuple(self.values.tolist()))
