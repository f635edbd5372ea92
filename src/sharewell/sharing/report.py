"""Reports: what a certificate says of everybody at one moment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sharewell.errors import SharingError
from sharewell.sharing.desiderata import ratio
from sharewell.sharing.promises import Promise


@dataclass(frozen=True)
class Standing:
    """How one analyst fares: the utility of the same questions here, alone, and without each other."""

    analyst: str
    answers: int
    here: float
    alone: float
    without: Mapping[str, float]
    #: Answers that are less precise here than they would be alone, or without somebody.
    worse_answers: int

    @property
    def ratio(self) -> float:
        """How many times better off one would be alone; above 1 breaks the sharing incentive."""
        return ratio(self.alone, self.here)

    @property
    def interference(self) -> float:
        """How many times better off one would be without the one other who costs one the most."""
        return max((ratio(there, self.here) for there in self.without.values()), default=1.0)


@dataclass(frozen=True)
class Report:
    """What a certificate says at one moment."""

    mechanism: str
    scheduler: str
    error_threshold: float
    promises: tuple[Promise, ...]
    #: Empty where the errors of the mechanism depend on the data, so that nobody may know them.
    standings: tuple[Standing, ...]
    #: How many entries of the stream it covers.
    entries: int

    @property
    def exact(self) -> bool:
        """Whether the figures could be computed, from public things alone."""
        return bool(self.standings)

    @property
    def worst_ratio(self) -> float:
        """The max ratio error: the largest ratio of anybody."""
        return max((standing.ratio for standing in self.standings), default=1.0)

    @property
    def worst_interference(self) -> float:
        """The largest interference of anybody with anybody."""
        return max((standing.interference for standing in self.standings), default=1.0)

    @property
    def holds(self) -> bool:
        """Whether no utility and no single answer is worse here than alone or without somebody."""
        unharmed = all(not standing.worse_answers for standing in self.standings)
        return self.exact and unharmed and max(self.worst_ratio, self.worst_interference) <= 1

    def of(self, analyst: str) -> Standing:
        """One analyst's standing."""
        for standing in self.standings:
            if standing.analyst == analyst:
                return standing
        raise SharingError(f"The certificate knows nobody called {analyst!r}.")

    def to_json(self) -> dict[str, Any]:
        """The report as plain data; what is infinite, or cannot be known, is None."""
        return {
            "mechanism": self.mechanism,
            "scheduler": self.scheduler,
            "error_threshold": self.error_threshold,
            "entries": self.entries,
            "exact": self.exact,
            "holds": self.holds if self.exact else None,
            "worst_ratio": _finite(self.worst_ratio) if self.exact else None,
            "worst_interference": _finite(self.worst_interference) if self.exact else None,
            "analysts": [
                {
                    "analyst": standing.analyst,
                    "answers": standing.answers,
                    "here": standing.here,
                    "alone": standing.alone,
                    "without": dict(standing.without),
                    "ratio": _finite(standing.ratio),
                    "interference": _finite(standing.interference),
                    "worse_answers": standing.worse_answers,
                }
                for standing in self.standings
            ],
            "promises": [
                {
                    "desideratum": promise.desideratum,
                    "meaning": promise.meaning,
                    "status": promise.status,
                    "assumptions": list(promise.assumptions),
                    "page": promise.page,
                }
                for promise in self.promises
            ],
        }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
