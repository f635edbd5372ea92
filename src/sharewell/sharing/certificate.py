"""The fairness certificate: how each analyst fares here, alone, and without each other analyst.

An analyst's *utility* is a number that grows with accuracy; by default, how many answers are within an
error threshold. It is compared in three cases: with all analysts (*joint*), alone with one's own share,
and with all but one other. All three use the same mechanism.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from sharewell.errors import SharingError
from sharewell.mechanisms.base import Mechanism
from sharewell.query.linear import LinearQuery
from sharewell.schedulers.base import InOrder, Scheduler
from sharewell.sharing.collective import Ask, CloseRound, Collective, DryRun, Entry, Join
from sharewell.sharing.reference import AGREEMENT, Sample, agree

# Utility


@dataclass(frozen=True)
class Outcome:
    """One query and the standard error of its answer: infinite where there is none."""

    query: LinearQuery
    error: float


#: What one answer is worth; an analyst's utility is the sum over their answers.
Utility = Callable[[Outcome], float]


def within(error_threshold: float) -> Utility:
    """The default utility: 1 for an answer whose error is at most this many rows, else 0.

    The bound for a sum is that many rows of its largest weight.

    >>> from sharewell import Domain, Integer
    >>> total = LinearQuery.all(Domain([Integer("age", 0, 85)]))
    >>> [within(10)(Outcome(total, error)) for error in (3.5, 10, math.inf)]
    [True, True, False]
    """
    if not math.isfinite(error_threshold) or error_threshold <= 0:
        raise SharingError(
            f"The error threshold must be a positive number of rows, not {error_threshold!r}.",
            hint="An answer is useful if its error is at most this.",
        )
    return lambda outcome: outcome.error <= error_threshold * float(outcome.query.max_abs)


def outcomes(queries: Sequence[LinearQuery], errors: Sequence[float]) -> list[Outcome]:
    """The outcomes of several queries, without those of no cell, whose answer is public."""
    return [
        Outcome(query, error) for query, error in zip(queries, errors, strict=True) if not query.is_zero
    ]


def ratio(elsewhere: float, joint: float) -> float:
    """The ratio of two utilities, elsewhere and here; above 1 it is a reason not to share.

    With nothing here: infinite if there is anything elsewhere, and 1 if there is nothing either.
    """
    if joint > 0:
        return elsewhere / joint
    return math.inf if elsewhere > 0 else 1.0


# Promises

Status = Literal["proven", "under conditions", "not promised"]

MEANINGS = {
    "sharing incentive": "No analyst would do better alone with their own share.",
    "analyst monotonicity": "No analyst does worse because others join with their shares.",
    "non-interference": "No analyst does worse because of any single other analyst.",
}

ALWAYS_WAITING = "The analyst always has a question waiting."


@dataclass(frozen=True)
class Promise:
    """One desideratum: whether it is promised, on which assumptions, and where the proof is."""

    desideratum: str
    status: Status
    assumptions: tuple[str, ...]
    page: str

    @property
    def meaning(self) -> str:
        """The desideratum in one sentence."""
        return MEANINGS[self.desideratum]


def promises(mechanism: Mechanism, scheduler: Scheduler[Any] | None = None) -> tuple[Promise, ...]:
    """The promises of a mechanism under a scheduler, or in order of arrival without one."""
    known = mechanism.guarantee
    in_order = scheduler is None or scheduler.keeps_arrival_order
    if known.assumptions is not None:
        return _all("proven", known.assumptions + (() if in_order else known.reordered), known.page)
    turns = None if scheduler is None else scheduler.turn_assumptions
    if turns is None or known.in_turns is None:
        return _all("not promised", (), known.page)
    # By the scheduler theorems, turns protect only analysts who always have a question waiting.
    assumptions = (ALWAYS_WAITING, *known.in_turns, *turns)
    incentive = Promise("sharing incentive", "under conditions", assumptions, "theory.md")
    return (incentive, *_all("not promised", (), "fairness.md")[1:])


def _all(status: Status, assumptions: tuple[str, ...], page: str) -> tuple[Promise, ...]:
    return tuple(Promise(name, status, assumptions, page) for name in MEANINGS)


# Reports


@dataclass(frozen=True)
class Standing:
    """One analyst's utility of the same questions here, alone, and without each other analyst."""

    analyst: str
    answers: int
    here: float
    alone: float
    without: Mapping[str, float]
    #: Answers that are less precise here than they would be alone, or without one other analyst.
    worse_answers: int

    @property
    def ratio(self) -> float:
        """The utility alone divided by that here; above 1 breaks the sharing incentive."""
        return ratio(self.alone, self.here)

    @property
    def interference(self) -> float:
        """The largest utility without one other analyst, divided by that here."""
        return max((ratio(there, self.here) for there in self.without.values()), default=1.0)


@dataclass(frozen=True)
class Report:
    """A certificate's figures and promises at one moment."""

    mechanism: str
    scheduler: str
    error_threshold: float
    promises: tuple[Promise, ...]
    #: Empty where the errors of the mechanism depend on the data, and must stay secret.
    standings: tuple[Standing, ...]
    #: How many entries of the stream it covers, and how many more it knows of.
    entries: int
    behind: int = 0
    #: How many of the entries were checked by the second implementation, and how many it contradicts.
    checked: int = field(default=0, compare=False)
    contradicted: int = field(default=0, compare=False)

    @property
    def exact(self) -> bool:
        """Whether the figures could be computed from public values."""
        return bool(self.standings)

    @property
    def worst_ratio(self) -> float:
        """The max ratio error: the largest ratio of any analyst, alone against here."""
        return max((standing.ratio for standing in self.standings), default=1.0)

    @property
    def worst_interference(self) -> float:
        """The largest interference over all pairs of analysts."""
        return max((standing.interference for standing in self.standings), default=1.0)

    @property
    def holds(self) -> bool | None:
        """Whether no utility and no single answer is worse here than elsewhere; None before any answer.

        It never holds where the second implementation contradicts a figure.
        """
        if not any(standing.answers for standing in self.standings):
            return None
        unharmed = all(not standing.worse_answers for standing in self.standings)
        fair = max(self.worst_ratio, self.worst_interference) <= 1
        return unharmed and fair and not self.contradicted

    @property
    def breaks_promise(self) -> bool:
        """Whether something that is called proven does not hold."""
        return self.holds is False and any(promise.status == "proven" for promise in self.promises)

    def of(self, analyst: str) -> Standing:
        """One analyst's standing."""
        for standing in self.standings:
            if standing.analyst == analyst:
                return standing
        raise SharingError(f"The certificate has no analyst {analyst!r}.")


# The certificate

#: An error counts as larger from this many times another on: the solvers round.
SLACK = 1 + AGREEMENT
#: The most analysts without whom the errors of one entry are computed again.
MOST_WORLDS = 4
#: The work after which entries are sampled instead of all checked, in counted nanoseconds.
LIVE_CHECKS, THOROUGH_CHECKS = 3e8, 4e9


class Certificate:
    """Follows a collective entry by entry in dry runs: no data, no spending.

    Each analyst's questions are played with all analysts, with that analyst alone, and with all but each
    one of the others. Where the mechanism's errors depend on the data, it states the promises and no
    figures. Its size depends on the analysts and on what was bought, not on the number of questions.

    The figures are computed by the mechanism itself. A sample of the entries is computed a second time,
    by `Reference`; with `thorough`, as many as a verification can afford.

    Privacy: post-processing of public values; sees no data and spends nothing.
    """

    def __init__(
        self,
        collective: Collective,
        *,
        error_threshold: float,
        scheduler: Scheduler[Any] | None = None,
        utility: Utility | None = None,
        thorough: bool = False,
    ) -> None:
        self.collective = collective
        self.error_threshold = error_threshold
        self.scheduler = scheduler
        self._utility = utility or within(error_threshold)
        self._entries = 0
        #: The entries that bought something or changed who is there: all that a world consists of.
        self._changes: list[Entry] = []
        self._joint = DryRun(collective)
        self._alone: dict[str, DryRun] = {}
        self._without: dict[str, DryRun] = {}
        self._tallies: dict[str, _Tally] = {}
        self._sample = Sample(THOROUGH_CHECKS if thorough else LIVE_CHECKS)
        self._contradicted = 0
        for analyst in collective.shares:
            self._meet(analyst)

    @property
    def exact(self) -> bool:
        """Whether errors depend on public values only, so that figures can be published."""
        return self._joint.mechanism.errors_are_public

    def record(self, entry: Entry) -> None:
        """Record an entry of the stream."""
        if self.exact:
            self._play(entry)
        self._entries += 1

    def report(self) -> Report:
        """The report as of now."""
        return Report(
            self._joint.mechanism.name,
            self.scheduler.name if self.scheduler else InOrder.name,
            self.error_threshold,
            promises(self._joint.mechanism, self.scheduler),
            tuple(self._standing(analyst, tally) for analyst, tally in self._tallies.items()),
            self._entries,
            checked=self._sample.checked,
            contradicted=self._contradicted,
        )

    def _play(self, entry: Entry) -> None:
        before = self._joint.changes
        here = self._joint.play(entry)  # refuses an invalid entry before anything has changed
        if isinstance(entry, CloseRound):
            for world in (*self._without.values(), *self._alone.values()):
                world.play(entry)
            self._changes.append(entry)
            return
        if isinstance(entry, Join):
            self._meet(entry.analyst)
        others = {
            missing: world.play(entry)
            for missing, world in self._without.items()
            if missing != entry.analyst
        }
        alone = self._alone[entry.analyst].play(entry)
        if isinstance(entry, Ask) and here and alone:
            elsewhere = {missing: errors or () for missing, errors in others.items()}
            self._tallies[entry.analyst].add(entry, self._utility, here, alone, elsewhere)
            self._check(entry, here, alone, elsewhere)
        if self._joint.changes != before:
            self._changes.append(entry)

    def _check(
        self,
        ask: Ask,
        here: Sequence[float],
        alone: Sequence[float],
        without: Mapping[str, Sequence[float]],
    ) -> None:
        """Compute the errors of some entries again, by other means."""
        if not self._joint.mechanism.best_estimates or not self._sample.chooses():
            return
        worlds = [(self._joint, here), (self._alone[ask.analyst], alone)]
        chosen = self._sample.pick(len(without), MOST_WORLDS)
        others = list(without.items())
        worlds += [(self._without[others[at][0]], others[at][1]) for at in chosen]
        before = sum(world.work for world, _ in worlds)
        places = self._sample.pick(len(here))
        found = [
            ([errors[at] for at in places], world.recompute(ask, places)) for world, errors in worlds
        ]
        checked = all(again is not None for _, again in found)
        self._sample.count(sum(world.work for world, _ in worlds) - before, checked)
        self._contradicted += any(
            again and not all(map(agree, errors, again)) for errors, again in found
        )

    def _meet(self, analyst: str) -> None:
        """Begin the dry runs of an analyst alone, and of all others without them."""
        if not self.exact:
            return
        self._alone[analyst] = DryRun(self.collective, {analyst})
        self._without[analyst] = world = DryRun(self.collective, absent={analyst})
        for entry in self._changes:
            world.play(entry)
        for tally in self._tallies.values():
            tally.without[analyst] = tally.here
        self._tallies[analyst] = _Tally()

    def _standing(self, analyst: str, tally: _Tally) -> Standing:
        without = {other: tally.without[other] for other in self._without if other != analyst}
        return Standing(analyst, tally.answers, tally.here, tally.alone, without, tally.worse)


@dataclass
class _Tally:
    """One analyst's utilities so far."""

    answers: int = 0
    here: float = 0
    alone: float = 0
    without: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    worse: int = 0

    def add(
        self,
        ask: Ask,
        utility: Utility,
        here: Sequence[float],
        alone: Sequence[float],
        without: Mapping[str, Sequence[float]],
    ) -> None:
        """Add one question's outcomes."""

        def worth(errors: Sequence[float]) -> float:
            return sum(utility(outcome) for outcome in outcomes(ask.queries, errors))

        self.answers += len(outcomes(ask.queries, here))
        self.here += worth(here)
        self.alone += worth(alone)
        for missing, errors in without.items():
            self.without[missing] += worth(errors)
        best = np.min([alone, *without.values()], axis=0)
        self.worse += int(np.sum(np.asarray(here) > best * SLACK))
