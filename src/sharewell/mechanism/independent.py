"""Independent: one instance of a mechanism per analyst, each with its own share and nothing else."""

from __future__ import annotations

from collections.abc import Callable

from sharewell.mechanism.base import Answer, Mechanism, Prepared, Preview
from sharewell.privacy.budget import Amount
from sharewell.privacy.curator import Curator
from sharewell.privacy.measurement import Measurement, Order
from sharewell.query.block import ParallelBlock


class Independent(Mechanism):
    """What everybody would have without sharing: the baseline of every comparison.

    Privacy: that of the mechanism inside; each instance spends its own analyst's share alone.
    """

    def __init__(self, curator: Curator, make: Callable[[Curator], Mechanism]) -> None:
        super().__init__(curator)
        self._make = make
        self._alone = {analyst: make(curator.alone(analyst)) for analyst in curator.payers}
        inside = next(iter(self._alone.values()), None)
        self.errors_are_public = all(own.errors_are_public for own in self._alone.values())
        self.plans_ahead = all(own.plans_ahead for own in self._alone.values())
        self.name = f"Independent {inside.name if inside else ''}".strip()

    def join(self, analyst: str, share: Amount) -> None:
        """Take in a new analyst, with an instance of their own."""
        super().join(analyst, share)
        self._alone[analyst] = self._make(self.curator.alone(analyst))

    def leave(self, analyst: str, *, donate: bool = False) -> None:
        """Let an analyst go; a donation would serve nobody."""
        super().leave(analyst, donate=donate)
        del self._alone[analyst]

    def _preview(self, block: ParallelBlock, analyst: str) -> Preview:
        return self._alone[analyst]._preview(block, analyst)

    def _order(self, block: ParallelBlock, analyst: str, pay: bool) -> Order | None:
        return self._alone[analyst]._order(block, analyst, pay)

    def _answer(self, prepared: Prepared, bought: Measurement | None) -> list[Answer]:
        return self._alone[prepared.analyst]._answer(prepared, bought)

    def forget(self, prepared: Prepared) -> None:
        """Give up a prepared question."""
        self._alone[prepared.analyst].forget(prepared)
