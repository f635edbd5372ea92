"""The certificate: how everybody fares here, alone, and without each other, kept up as it happens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sharewell.sharing.collective import Collective, Rehearsal
from sharewell.sharing.desiderata import Outcome, Utility, outcomes, within
from sharewell.sharing.promises import promises
from sharewell.sharing.report import Report, Standing
from sharewell.sharing.scheduler import InOrder, Scheduler
from sharewell.sharing.stream import Ask, Entry, Join, read_stream

#: A larger error than this many times another counts as larger: what rounding may do.
SLACK = 1 + 1e-9


class Certificate:
    """Follows a collective, entry by entry, in shadow ledgers: no data, no spending.

    Each analyst's questions are rehearsed with everybody, with that analyst alone, and with everybody
    but each one of the others. So at any moment it is known how each would have fared, for any
    utility. Where the mechanism's errors depend on the data, it tells the promises and no figures.

    Privacy: post-processing of what is public already; sees no data and spends nothing.
    """

    def __init__(
        self,
        collective: Collective,
        *,
        error_threshold: float,
        scheduler: Scheduler[Any] | None = None,
        utility: Utility | None = None,
    ) -> None:
        self.collective = collective
        self.error_threshold = error_threshold
        self.scheduler = scheduler
        self._utility = utility or within(error_threshold)
        self._past: list[Entry] = []
        self._joint = Rehearsal(collective)
        self._alone: dict[str, Rehearsal] = {}
        self._without: dict[str, Rehearsal] = {}
        self._cases: dict[str, _Cases] = {}
        for analyst in collective.shares:
            self._meet(analyst)

    @property
    def exact(self) -> bool:
        """Whether errors depend on public things alone, so that figures can be given."""
        return self._joint.mechanism.errors_are_public

    def record(self, entry: Entry) -> None:
        """Take in what has happened."""
        if self.exact:
            self._rehearse(entry)
        self._past.append(entry)

    def report(self) -> Report:
        """What is known now."""
        return Report(
            self._joint.mechanism.name,
            self.scheduler.name if self.scheduler else InOrder.name,
            self.error_threshold,
            promises(self._joint.mechanism, self.scheduler),
            tuple(self._standing(analyst, cases) for analyst, cases in self._cases.items()),
            len(self._past),
        )

    def _rehearse(self, entry: Entry) -> None:
        here = self._joint.play(entry)  # refuses what cannot happen, before anything else has changed
        if isinstance(entry, Join):
            self._meet(entry.analyst)
        others = {
            missing: world.play(entry)
            for missing, world in self._without.items()
            if missing != entry.analyst
        }
        alone = self._alone[entry.analyst].play(entry)
        if isinstance(entry, Ask) and here and alone:
            self._cases[entry.analyst].add(entry, here, alone, others)

    def _meet(self, analyst: str) -> None:
        """Begin to rehearse how an analyst fares alone, and how all others have fared without them."""
        if not self.exact:
            return
        self._alone[analyst] = Rehearsal(self.collective, {analyst})
        self._without[analyst] = world = Rehearsal(self.collective, missing={analyst})
        self._cases[analyst] = _Cases()
        for entry in self._past:
            errors = world.play(entry)
            if isinstance(entry, Ask) and errors:
                self._cases[entry.analyst].without[analyst] += outcomes(entry.queries, errors)

    def _standing(self, analyst: str, cases: _Cases) -> Standing:
        return Standing(
            analyst,
            len(cases.here),
            self._utility(cases.here),
            self._utility(cases.alone),
            {other: self._utility(cases.without[other]) for other in self._without if other != analyst},
            cases.worse,
        )


@dataclass
class _Cases:
    """One analyst's outcomes, case by case."""

    here: list[Outcome] = field(default_factory=list)
    alone: list[Outcome] = field(default_factory=list)
    without: defaultdict[str, list[Outcome]] = field(default_factory=lambda: defaultdict(list))
    worse: int = 0

    def add(
        self,
        ask: Ask,
        here: Sequence[float],
        alone: Sequence[float],
        without: Mapping[str, Sequence[float] | None],
    ) -> None:
        """Add one question's outcomes."""
        self.here += outcomes(ask.queries, here)
        self.alone += outcomes(ask.queries, alone)
        elsewhere = [alone]
        for missing, errors in without.items():
            self.without[missing] += outcomes(ask.queries, errors or ())
            elsewhere.append(errors or ())
        best = np.min(elsewhere, axis=0)
        self.worse += int(np.sum(np.asarray(here) > best * SLACK))


def expected_desiderata(
    collective: Collective,
    stream: Iterable[Any],
    *,
    error_threshold: float,
    utility: Utility | None = None,
) -> Report:
    """The exact desiderata of a whole stream: everybody's expected utility here and elsewhere."""
    certificate = Certificate(collective, error_threshold=error_threshold, utility=utility)
    for entry in read_stream(stream):
        certificate.record(entry)
    return certificate.report()
