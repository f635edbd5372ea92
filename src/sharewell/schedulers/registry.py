"""The registry of schedulers: their names in a configuration, and how they are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sharewell.errors import SharingError
from sharewell.privacy.budget import Amount
from sharewell.schedulers.base import InOrder, Scheduler
from sharewell.schedulers.randomized import Randomized
from sharewell.schedulers.round_robin import RoundRobin, WeightedRoundRobin

#: Every scheduler that a configuration can name; the first is the default.
SCHEDULERS: Mapping[str, type[Scheduler[Any]]] = {
    kind.name: kind for kind in (InOrder, RoundRobin, WeightedRoundRobin, Randomized)
}


def make_scheduler(
    name: str, shares_or_analysts: Mapping[str, Amount] | Iterable[str], **options: Any
) -> Scheduler[Any]:
    """Make a scheduler by its name, for analysts given with or without their shares.

    An option that is None counts as not given.

    >>> make_scheduler("weighted-round-robin", {"ann": "0.2", "bob": "0.1"}).turns
    {'ann': 2, 'bob': 1}
    """
    if name not in SCHEDULERS:
        raise SharingError(
            f"Unknown scheduler {name!r}.", hint=f"The schedulers are {', '.join(SCHEDULERS)}."
        )
    kind = SCHEDULERS[name]
    given = {option: value for option, value in options.items() if value is not None}
    known = (*(option.name for option in kind.options), *kind.code_options)
    if unknown := sorted(set(given) - set(known)):
        raise SharingError(
            f"The {name} scheduler has no option {unknown[0]!r}.",
            hint=f"It takes {' and '.join(known) or 'no options'}.",
        )
    shares = shares_or_analysts if isinstance(shares_or_analysts, Mapping) else None
    # Validates the names first, whatever the scheduler.
    analysts = InOrder[Any](shares_or_analysts).analysts
    return kind.create(analysts, shares, **given)
