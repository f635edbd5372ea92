"""The shadow: a curator that keeps the same accounts, and measures nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sharewell.privacy.curator import Curator, Report
from sharewell.privacy.ledger import Event
from sharewell.privacy.measurement import Measurement, Order


class ShadowCurator(Curator):
    """Checks, prices and variances as of a curator; every value is 0, and no event is kept.

    A mechanism that is given one does what it would do on real data, as far as that depends on public
    things alone.

    Privacy: reads no data and releases nothing.
    """

    def fill(
        self, orders: Sequence[Order], *, before: Sequence[Event] = (), report: Report | None = None
    ) -> list[Measurement]:
        """Zeros, with the variances that the cost buys."""
        self._take(orders)
        return [
            Measurement(
                order.block,
                np.zeros(len(order.scales), dtype=np.int64),
                self._variances(order.scales),
                order.cost,
                order.bill,
                self._ledger.append_many(()),
            )
            for order in orders
        ]


class ForgetfulLedger:
    """Counts what happens, and keeps none of it: a rehearsal never goes back."""

    def __init__(self) -> None:
        self._count = 0

    def append(self, event: Event) -> int:
        """Count an event."""
        return self.append_many((event,))

    def append_many(self, events: Sequence[Event]) -> int:
        """Count that something has happened, and give it a number."""
        first = self._count
        self._count += max(len(events), 1)
        return first

    def events(self) -> Iterator[Event]:
        """None."""
        return iter(())

    def __len__(self) -> int:
        return self._count
