"""Curators that hold no data: for dry runs, and for quotes from any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import PrivacyError
from sharewell.privacy.curator import Curator
from sharewell.privacy.ledger import Charged, Event
from sharewell.privacy.measurement import Measurement, MeasureRequest, Reservation


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


class CuratorSnapshot(Curator):
    """The accounts of a curator at one moment: it states prices and noise, and never changes.

    Privacy: holds no data, and refuses every charge.
    """

    def __init__(self, live: Curator) -> None:
        self.budget, self.neighbours, self.domain = live.budget, live.neighbours, live.domain
        self.max_rows_per_person = live.max_rows_per_person
        self._accounts = live._accounts.snapshot()
        self.source = copy(live.source)
        self._only = live._only

    def reserve(self, request: MeasureRequest) -> Reservation:
        """Refused."""
        raise _read_only()

    def _append(self, events: Sequence[Event], undo: Callable[[], None] | None = None) -> int:
        raise _read_only()


def _read_only() -> PrivacyError:
    return PrivacyError("A snapshot is read-only.", hint="Ask the live mechanism.")


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
