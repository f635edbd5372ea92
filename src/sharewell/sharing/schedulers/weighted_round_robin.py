"""Weighted round robin: turns in proportion to what each analyst could ask alone."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import gcd, lcm
from typing import Any

from sharewell.errors import PrivacyError, SharingError
from sharewell.privacy.budget import Amount, amount
from sharewell.sharing.schedulers.base import Item
from sharewell.sharing.schedulers.round_robin import RoundRobin

#: How many turns a round may have.
MOST_TURNS = 10_000


class WeightedRoundRobin(RoundRobin[Item]):
    """A rotation in which analysts have several turns a round, spread evenly and not in bursts.

    >>> scheduler = WeightedRoundRobin({"ann": 3, "bob": 1})
    >>> for at in range(8):
    ...     _ = scheduler.submit("ann", at), scheduler.submit("bob", at)
    >>> " ".join(scheduler.next().analyst for _ in range(8))
    'ann ann bob ann ann ann bob ann'
    """

    name = "weighted-round-robin"

    def __init__(self, turns: Mapping[str, int], idle_after: float | None = None) -> None:
        if not isinstance(turns, Mapping):
            raise SharingError("Turns are given by name.", hint='Write {"ann": 2, "bob": 1}.')
        super().__init__(turns, idle_after)
        self._turns = _checked_turns(turns)
        self._arrange()
        self._at = 0

    @property
    def turns(self) -> dict[str, int]:
        """How many turns everybody has in a round."""
        return dict(self._turns)

    def join(self, analyst: str, turns: int = 1) -> None:
        """Take in a new analyst with so many turns a round; nobody's turn changes.

        Of the round that is under way they have the turns that lie after the present one.
        """
        _checked_turns({**self._turns, analyst: turns})
        self._seat(analyst, turns)

    def state(self) -> dict[str, Any]:
        """The common state, where the rotation is, and everybody's turns."""
        return {**super().state(), "turns": self.turns}

    def _restored_turns(self, state: Mapping[str, Any]) -> dict[str, int]:
        return _checked_turns({analyst: state["turns"][analyst] for analyst in self._buffers})


def turns_for(amounts: Mapping[str, Amount]) -> dict[str, int]:
    """The smallest whole numbers of turns in proportion to what each analyst could ask alone.

    >>> turns_for({"ann": "0.5", "bob": "0.3", "cat": "0.2"})
    {'ann': 5, 'bob': 3, 'cat': 2}
    """
    exact: dict[str, Fraction] = {}
    for analyst, value in amounts.items():
        try:
            exact[analyst] = amount(value, f"What {analyst} could ask alone")
        except PrivacyError as error:
            raise SharingError(error.message, hint=error.hint) from None
    whole = lcm(*(value.denominator for value in exact.values()))
    scaled = {analyst: int(value * whole) for analyst, value in exact.items()}
    common = gcd(*scaled.values()) or 1
    return _checked_turns({analyst: turns // common for analyst, turns in scaled.items()})


def _checked_turns(turns: Mapping[str, int]) -> dict[str, int]:
    """The turns of a round, if there are not too many of them."""
    for analyst, count in turns.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise SharingError(
                f"The turns of {analyst} must be a whole number greater than 0, not {count!r}.",
                hint="turns_for(...) finds such numbers from amounts.",
            )
    if sum(turns.values()) > MOST_TURNS:
        raise SharingError(
            f"These proportions need {sum(turns.values()):,} turns a round; "
            f"{MOST_TURNS:,} are the most there may be.",
            hint="Round the amounts to a coarser grid, such as hundredths of the largest.",
        )
    return dict(turns)
