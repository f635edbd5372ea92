"""Dry runs: a curator that keeps the same accounts, measures nothing and stores nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharewell.privacy.curator import Curator
from sharewell.privacy.ledger import Charged, Event
from sharewell.privacy.measurement import Measurement, Reservation


class DryCurator(Curator):
    """Validates, prices and reports variances as a curator does; every value is 0.

    A mechanism on a dry curator does what it would do on real data, as far as that depends on public
    values alone.

    Privacy: reads no data and releases nothing.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        #: Everything measured so far; views share it.
        self.measured: list[Measurement] = []
        super().__init__(*args, **options)

    def charge(
        self, reservations: Sequence[Reservation], before: Sequence[Event] = ()
    ) -> list[Measurement]:
        """Zeros, with the variances that the cost buys."""
        self._claim(reservations)
        if before:
            self._append(before)
        found = [
            Measurement(
                each.block,
                np.broadcast_to(np.int64(0), len(each.scales)),
                _compact(self._variances(each.scales)),
                each.cost,
                each.bill,
                self._append([Charged(each.bill, {})]),
            )
            for each in reservations
        ]
        self.measured += found
        return found

    def store(self, measured: Sequence[Measurement], events: Sequence[Event] | None = None) -> None:
        """Store nothing."""


def _compact(variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same numbers; where all are equal, in the memory of one."""
    equal = len(variances) > 0 and bool((variances == variances[0]).all())
    return np.broadcast_to(variances[:1].copy(), len(variances)) if equal else variances


class NullLedger:
    """Counts events and keeps none of them."""

    def __init__(self) -> None:
        self._count = 0

    def append(self, event: Event) -> int:
        """Count an event."""
        return self.append_many((event,))

    def append_many(self, events: Sequence[Event]) -> int:
        """Count events: the number of the first."""
        first = self._count
        self._count += len(events)
        return first

    def events(self, start: int = 0) -> Iterator[Event]:
        """None."""
        return iter(())

    def __len__(self) -> int:
        return self._count
