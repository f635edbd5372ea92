"""Schedulers by name: the one place that knows them all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sharewell.errors import SharingError
from sharewell.privacy.budget import Amount
from sharewell.sharing.schedulers.base import Item, Scheduler, Ticket
from sharewell.sharing.schedulers.in_order import InOrder
from sharewell.sharing.schedulers.randomized import Randomized
from sharewell.sharing.schedulers.round_robin import RoundRobin
from sharewell.sharing.schedulers.weighted_round_robin import WeightedRoundRobin, turns_for

__all__ = [
    "SCHEDULERS",
    "InOrder",
    "Item",
    "Randomized",
    "RoundRobin",
    "Scheduler",
    "Ticket",
    "WeightedRoundRobin",
    "make_scheduler",
    "turns_for",
]

#: Every scheduler by its name in a configuration, and the options that it takes.
SCHEDULERS: Mapping[str, tuple[str, ...]] = {
    InOrder.name: (),
    RoundRobin.name: ("idle_after",),
    WeightedRoundRobin.name: ("idle_after", "turns"),
    Randomized.name: ("probabilities", "draw"),
}


def make_scheduler(
    name: str, shares_or_analysts: Mapping[str, Amount] | Iterable[str], **options: Any
) -> Scheduler[Any]:
    """A scheduler by its name, for analysts who are given with or without their shares.

    `weighted-round-robin` takes its turns from the option `turns`, else from the shares, and without
    either gives everybody one. `randomized` draws uniformly, whatever the shares, unless it is given
    `probabilities`. An option that is None counts as not given.

    >>> make_scheduler("weighted-round-robin", {"ann": "0.2", "bob": "0.1"}).turns
    {'ann': 2, 'bob': 1}
    """
    if name not in SCHEDULERS:
        raise SharingError(
            f"There is no scheduler called {name!r}.", hint=f"There are {', '.join(SCHEDULERS)}."
        )
    given = {option: value for option, value in options.items() if value is not None}
    if unknown := sorted(set(given) - set(SCHEDULERS[name])):
        takes = " and ".join(SCHEDULERS[name]) or "no options"
        raise SharingError(
            f"The {name} scheduler has no option {unknown[0]!r}.", hint=f"It takes {takes}."
        )
    shares = shares_or_analysts if isinstance(shares_or_analysts, Mapping) else None
    analysts = InOrder[Any](shares_or_analysts).analysts
    if name == InOrder.name:
        return InOrder(analysts)
    if name == RoundRobin.name:
        return RoundRobin(analysts, **given)
    if name == WeightedRoundRobin.name:
        default = dict.fromkeys(analysts, 1) if shares is None else turns_for(shares)
        return WeightedRoundRobin(_of_all(analysts, given.pop("turns", default), "turns"), **given)
    if "probabilities" in given:
        return Randomized(_of_all(analysts, given.pop("probabilities"), "probabilities"), **given)
    return Randomized(analysts, **given)


def _of_all(analysts: tuple[str, ...], by_name: Mapping[str, Any], what: str) -> dict[str, Any]:
    """A value for each analyst, in their order; none may be missing and none too many."""
    if not isinstance(by_name, Mapping) or set(by_name) != set(analysts):
        raise SharingError(
            f"The {what} must be given by name, for each analyst and for nobody else.",
            hint=f"The analysts are {', '.join(analysts)}.",
        )
    return {analyst: by_name[analyst] for analyst in analysts}
