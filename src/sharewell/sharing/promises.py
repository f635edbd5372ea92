"""Promises: what is proven of a mechanism and a scheduler, under which assumptions, and what is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sharewell.mechanism.base import Mechanism
from sharewell.mechanism.cache_reconstruct import CacheReconstruct
from sharewell.mechanism.independent import Independent
from sharewell.mechanism.laplace import Laplace
from sharewell.sharing.scheduler import InOrder, RoundRobin, Scheduler

Status = Literal["proven", "under conditions", "not promised"]

MEANINGS = {
    "sharing incentive": "Nobody would have more alone with their own share.",
    "analyst monotonicity": "Nobody has less because others have joined with their shares.",
    "non-interference": "Nobody has less because of any one other analyst's being there.",
}

FIXED = "Who asks what, in which order and who pays is not chosen in reaction to others' answers."
ORDER = "Without an analyst, the others would have been served in the same order."
PRICE = "Every question that is paid for costs the same."
WAITING = "The analyst always has a question waiting."
SILENCE = "The analyst is never silent for so long that their turn passes."
SAME = "How many questions a budget answers does not depend on who asks them, nor in which order."


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
    """What is promised to every analyst of a mechanism under a scheduler; arrival order without one."""
    in_order = scheduler is None or isinstance(scheduler, InOrder)
    if isinstance(mechanism, Independent):
        return _all("proven", ("Everybody has an instance of their own.",), "guarantees/independent.md")
    if isinstance(mechanism, CacheReconstruct):
        if mechanism.answers == "as-printed":
            return _all("not promised", (), "guarantees/cache-reconstruct.md")
        assumptions = (PRICE, FIXED) if in_order else (PRICE, FIXED, ORDER)
        return _all("proven", assumptions, "guarantees/cache-reconstruct.md")
    page = "guarantees/laplace.md" if isinstance(mechanism, Laplace) else "guarantees/pmw.md"
    if scheduler is None or in_order:
        return _all("not promised", (), page)
    return (
        _incentive(mechanism, scheduler),
        *_all("not promised", (), "fairness.md")[1:],
    )


def _incentive(mechanism: Mechanism, scheduler: Scheduler[Any]) -> Promise:
    """The sharing incentive of a common pot in turns: the scheduler theorems."""
    known = (WAITING,) if isinstance(mechanism, Laplace) else (WAITING, SAME)
    if not isinstance(scheduler, RoundRobin):
        assumptions = (
            *known,
            "Turns are counted in expectation: an unlucky draw can give somebody fewer.",
            "The whole budget answers at least as many questions, times the analyst's chance of a "
            "turn, as the analyst's share alone.",
        )
    else:
        assumptions = (
            *known,
            "The whole budget answers at least one full round for each round's worth that any share "
            "answers alone.",
        )
        if not scheduler.strict:
            assumptions = (*assumptions, SILENCE)
    return Promise("sharing incentive", "under conditions", assumptions, "theory.md")


def _all(status: Status, assumptions: tuple[str, ...], page: str) -> tuple[Promise, ...]:
    return tuple(Promise(name, status, assumptions, page) for name in MEANINGS)
