"""Requests to the kernel, and the measurements that it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import PrivacyError
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
class Test:
    """A request: test whether a query's answer is a sparse vector's threshold away from a guess."""

    sparse_vector: SparseVector
    query: LinearQuery
    guess: float


#: The most values that one event releases: a stored text has a limit, and so has memory.
MAX_VALUES = 2**16

#: The requests that a mechanism may yield.
Request = MeasureRequest | Test


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

    @property
    def released(self) -> list[Released]:
        """The events that release it, in order; they are stored in one commit."""
        size = len(self.values)
        return [
            Released(self.charge, tuple(self.values[start:end].tolist()), size - end)
            for start in range(0, size, MAX_VALUES)
            for end in [min(start + MAX_VALUES, size)]
        ]


class StoredRelease:
    """The values that were released for a charge, put together from the events that hold them."""

    def __init__(self, *events: Released) -> None:
        self._parts: list[NDArray[np.int64]] = []
        self._rest = 0
        for event in events:
            self.add(event)

    def is_continued_by(self, event: Released) -> bool:
        """Whether an event holds the next of the values that are still to come."""
        return 0 < self._rest == len(event.values) + event.rest

    def add(self, event: Released) -> None:
        """Take in the next event."""
        self._parts.append(np.array(event.values, dtype=np.int64))
        self._rest = event.rest

    @property
    def values(self) -> NDArray[np.int64]:
        """All values; refuses a release of which a part is missing."""
        if self._rest:
            raise inconsistent("it holds a part of a release")
        return np.concatenate(self._parts)


def scale_runs(scales: NDArray[np.float64]) -> list[list[Any]]:
    """The noise scales of rows as plain data: pairs of a scale, and of how many rows it has.

    >>> scale_runs(np.array([2.0, 2.0, 2.0, 0.5]))
    [['0x1.0000000000000p+1', 3], ['0x1.0000000000000p-1', 1]]
    """
    starts = np.flatnonzero(np.diff(scales, prepend=np.nan))
    counts = np.diff(starts, append=len(scales)).tolist()
    return [[scale.hex(), n] for scale, n in zip(scales[starts].tolist(), counts, strict=True)]


def stored_rows(charged: Charged) -> int:
    """The number of rows that a charge pays for, by the runs of their scales."""
    return sum(count for _, count in _stored_runs(charged))


def stored_scales(charged: Charged, rows: int) -> NDArray[np.float64]:
    """The noise scale of each row that a charge pays for; refuses those of another number of rows."""
    runs = _stored_runs(charged)
    if sum(count for _, count in runs) != rows:
        raise inconsistent("it charged for another number of rows")
    return np.repeat(np.array([scale for scale, _ in runs]), [count for _, count in runs])


def _stored_runs(charged: Charged) -> list[tuple[float, int]]:
    """The noise scales that `scale_runs` wrote."""
    try:
        runs = [(float.fromhex(scale), count) for scale, count in charged.purpose["scales"]]
    except (LookupError, TypeError, ValueError, OverflowError):
        raise inconsistent("the noise scales of a charge cannot be read") from None
    if not all(type(count) is int and count > 0 for _, count in runs):
        raise inconsistent("it charged for noise on no rows")
    return runs


def inconsistent(how: str) -> PrivacyError:
    """The error for a ledger that something else has written or changed."""
    return PrivacyError(f"The ledger is not consistent: {how}.", hint="Do not continue with it.")
