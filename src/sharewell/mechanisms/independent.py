"""Independent: one instance of a mechanism per analyst, each with its own share and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sharewell.mechanisms.base import Answer, Guarantee, Mechanism, Prospect, Question, Work
from sharewell.privacy.budget import Amount
from sharewell.privacy.curator import Curator
from sharewell.privacy.driver import Step
from sharewell.query.block import ParallelBlock
from sharewell.query.linear import LinearQuery


class Independent(Mechanism):
    """What analysts would have without sharing: the baseline of every comparison.

    Privacy: that of the mechanism inside; each instance spends its own analyst's share alone.
    """

    prefix = "Independent"
    separate = True
    guarantee = Guarantee("guarantees/independent.md", ("Every analyst has an instance of their own.",))

    def __init__(self, curator: Curator, make: Callable[[Curator], Mechanism]) -> None:
        super().__init__(curator)
        self._make = make
        self._alone = {analyst: make(curator.alone(analyst)) for analyst in curator.payers}
        inside = next(iter(self._alone.values()), None)
        self.errors_are_public = all(own.errors_are_public for own in self._alone.values())
        self.best_estimates = all(own.best_estimates for own in self._alone.values())
        self.sequential = any(own.sequential for own in self._alone.values())
        self.name = f"{self.prefix} {inside.name if inside else ''}".strip()

    def answer(self, block: ParallelBlock, analyst: str, pay: bool) -> Step[list[Answer]]:
        """As the analyst's own instance does."""
        return (yield from self._alone[analyst].answer(block, analyst, pay))

    def expect(self, block: ParallelBlock, analyst: str, pay: bool) -> Prospect | None:
        """As the analyst's own instance does."""
        return self._alone[analyst].expect(block, analyst, pay)

    def covariances(
        self, left: Sequence[LinearQuery], right: Sequence[LinearQuery], analyst: str
    ) -> NDArray[np.float64] | None:
        """Those of the analyst's own instance."""
        return self._alone[analyst].covariances(left, right, analyst)

    def snapshot(self) -> Self:
        """A snapshot of every instance."""
        frozen = super().snapshot()
        frozen._alone = {analyst: own.snapshot() for analyst, own in self._alone.items()}
        return frozen

    def work(self, question: Question, *, pay: bool = True) -> Work:
        """That of the instance with the most work."""
        return max((own.work(question, pay=pay) for own in self._alone.values()), default=Work(0.0, 0.0))

    def can_sell(self, question: Question, analyst: str) -> bool:
        """As the analyst's own instance says."""
        return self._alone[analyst].can_sell(question, analyst)

    def join(self, analyst: str, share: Amount) -> None:
        """Admit a new analyst, with an instance of their own."""
        super().join(analyst, share)
        self._alone[analyst] = self._make(self.curator.alone(analyst))

    def leave(self, analyst: str, *, donate: bool = False) -> None:
        """Let an analyst leave; no other analyst could use a donation."""
        super().leave(analyst, donate=donate)
        del self._alone[analyst]
