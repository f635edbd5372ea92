"""Requests to the kernel, and the measurements that it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharewell.privacy.accounts import Payer
from sharewell.privacy.ledger import Charged, Released
from sharewell.privacy.sensitivity import Rows
from sharewell.privacy.sparse_vector import SparseVector
from sharewell.query.block import Measurable
from sharewell.query.linear import LinearQuery


@dataclass(frozen=True)
class MeasureRequest:
    """A request: measure every row of a block with noise, at a cost charged to a payer."""

    block: Measurable
    cost: Fraction
    payer: Payer


@dataclass(frozen=True)
class SparseVectorTest:
    """A request: test whether a query's answer is a sparse vector's threshold away from a guess."""

    sparse_vector: SparseVector
    query: LinearQuery
    guess: float


#: The most values that one event releases: a stored text has a limit, and so has memory.
MAX_VALUES = 2**16

#: The requests that a mechanism may yield.
Request = MeasureRequest | SparseVectorTest


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
        purpose = {"measure": self.rows.to_json(), "scales": scale_runs(self.scales)}
        return Charged(self.bill, purpose)


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

    @cached_property
    def released(self) -> list[Released]:
        """The events that release it, in order; they are stored in one commit."""
        size = len(self.values)
        return [
            Released(self.charge, tuple(self.values[start:end].tolist()), size - end)
            for start in range(0, size, MAX_VALUES)
            for end in [min(start + MAX_VALUES, size)]
        ]


def scale_runs(scales: NDArray[np.float64]) -> list[list[Any]]:
    """The noise scales of rows as plain data: pairs of a scale, and of how many rows it has.

    >>> scale_runs(np.array([2.0, 2.0, 2.0, 0.5]))
    [['0x1.0000000000000p+1', 3], ['0x1.0000000000000p-1', 1]]
    """
    starts = np.flatnonzero(np.diff(scales, prepend=np.nan))
    counts = np.diff(starts, append=len(scales)).tolist()
    return [[scale.hex(), n] for scale, n in zip(scales[starts].tolist(), counts, strict=True)]
