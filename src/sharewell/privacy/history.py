"""What a ledger held of the kernel when it was opened: charges, releases and sparse vectors."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import PrivacyError
from sharewell.privacy.ledger import (
    Armed,
    Charged,
    Event,
    Exceeded,
    Granted,
    Opened,
    Recovered,
    Released,
)
from sharewell.privacy.sparse_vector import SparseVectorPlan


@dataclass
class SourceHistory:
    """What a ledger says of the versions of its source: the last, and whether there were others."""

    fingerprint: str | None = field(default=None, repr=False)
    changed: bool = False


@dataclass
class KernelHistory:
    """What a ledger held of the kernel when it was opened: a fold that depends on nothing above."""

    shares: dict[str, Fraction] = field(default_factory=dict)
    #: Charges of sparse vectors, by number.
    charges: dict[int, Charged] = field(default_factory=dict)
    #: Charges that nothing was released for.
    unfinished: dict[int, Charged] = field(default_factory=dict)
    #: Charges with what was released for them, in the order of the releases.
    released: dict[int, tuple[Charged, StoredRelease]] = field(default_factory=dict)
    armed: dict[int, Armed] = field(default_factory=dict)
    positives: Counter[int] = field(default_factory=Counter)
    #: Sparse vectors whose positive answers a recovered ledger may have lost.
    ended: set[int] = field(default_factory=set)
    _finished: set[int] = field(default_factory=set)

    def apply(self, number: int, event: Event) -> None:
        """Take in one event."""
        match event:
            case Granted(payer, share):
                self.shares[payer] = share
            case Charged(_, purpose):
                if purpose.keys() & {"measure", "sparse_vector"}:
                    self.unfinished[number] = event
                if "sparse_vector" in purpose:
                    self.charges[number] = event
            case Released(charge):
                if charge in self.released and self.released[charge][1].is_continued_by(event):
                    self.released[charge][1].add(event)
                    return
                charged = self._finish(charge)
                if charged is not None and "measure" in charged.purpose:
                    self.released[charge] = charged, StoredRelease(event)
            case Armed(charge):
                self._finish(charge)
                if charge in self.charges:
                    self.armed[charge] = event
            case Exceeded(charge):
                self.positives[charge] += 1
            case Recovered():
                # The lost events may have released these charges, and used up the positives.
                self._finished.update(self.unfinished)
                self.unfinished.clear()
                self.ended.update(self.armed)

    def positives_left(self, charge: int, plan: SparseVectorPlan) -> int:
        """How many positive answers a sparse vector may still give."""
        return 0 if charge in self.ended else plan.positives - self.positives[charge]

    def _finish(self, charge: int) -> Charged | None:
        if charge in self._finished:
            raise PrivacyError(
                "The ledger has released a charge twice.", hint="Do not continue with it."
            )
        self._finished.add(charge)
        return self.unfinished.pop(charge, None)


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


def stored_rows(charged: Charged) -> int:
    """The number of rows that a charge pays for, by the runs of their scales."""
    return sum(count for _, count in _stored_runs(charged))


def stored_scales(charged: Charged, rows: int) -> NDArray[np.float64]:
    """The noise scale of each row that a charge pays for; refuses those of another number of rows."""
    runs = _stored_runs(charged)
    if sum(count for _, count in runs) != rows:
        raise inconsistent("it charged for a different number of rows")
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


def require_same_terms(begun: Event, opened: Opened) -> None:
    """Refuse a ledger that was begun for other data, or under other definitions of privacy."""
    if not isinstance(begun, Opened):
        raise PrivacyError("The ledger does not begin by opening a dataset.")
    if begun.domain != opened.domain:
        raise PrivacyError(
            "The ledger was begun with other attributes, or other values of them.",
            hint="Restore them: the budget was spent under them. Other data needs another ledger.",
        )
    for name in ("neighbours", "max_rows_per_person", "currency", "epsilon", "delta", "total"):
        was, now = getattr(begun, name), getattr(opened, name)
        if was != now:
            raise PrivacyError(
                f"The ledger was begun with {name} = {was}; it cannot be opened with {name} = {now}.",
                hint="Restore the setting: the budget was spent under it. Other data needs another "
                "ledger.",
            )


def inconsistent(how: str) -> PrivacyError:
    """The error for a ledger that something else has written or changed."""
    return PrivacyError(f"The ledger is not consistent: {how}.", hint="Do not continue with it.")
