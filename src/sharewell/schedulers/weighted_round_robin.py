"""Weighted round robin: turns in proportion to what each analyst could ask alone."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import gcd, lcm
from typing import Any

from sharewell.errors import PrivacyError, SharingError
from sharewell.options import INTEGER, Option, by_analyst
from sharewell.privacy.budget import Amount, amount
from sharewell.schedulers.base import Item
from sharewell.schedulers.round_robin import RoundRobin

#: The maximum number of turns in a round.
MAX_TURNS = 10_000


class WeightedRoundRobin(RoundRobin[Item]):
    """A rotation in which analysts have several turns a round, evenly spread.

    >>> scheduler = WeightedRoundRobin({"ann": 3, "bob": 1})
    >>> for at in range(8):
    ...     _ = scheduler.submit("ann", at), scheduler.submit("bob", at)
    >>> " ".join(scheduler.next().analyst for _ in range(8))
    'ann ann bob ann ann ann bob ann'
    """

    name = "weighted-round-robin"
    options = (
        *RoundRobin.options,
        Option(
            "turns",
            by_analyst(INTEGER, "a table of whole numbers by analyst"),
            None,
            "turns of each analyst in a round",
            unset="in proportion to the shares",
        ),
    )

    @classmethod
    def create(
        cls, analysts: tuple[str, ...], shares: Mapping[str, Amount] | None, **options: Any
    ) -> WeightedRoundRobin[Any]:
        """Take the turns from the option, else from the shares; without either, one each."""
        turns = options.pop("turns", None)
        if turns is None:
            turns = dict.fromkeys(analysts, 1) if shares is None else turns_for(shares)
        return cls(cls._for_each(analysts, turns, "turns"), **options)

    def __init__(self, turns: Mapping[str, int], idle_after: float | None = None) -> None:
        if not isinstance(turns, Mapping):
            raise SharingError("`turns` must map names to numbers.", hint='Write {"ann": 2, "bob": 1}.')
        super().__init__(turns, idle_after)
        self._turns = _validate_turns(turns)
        self._arrange()
        self._at = 0

    @property
    def turns(self) -> dict[str, int]:
        """The number of turns of each analyst in a round."""
        return dict(self._turns)

    def join(self, analyst: str, turns: int = 1) -> None:
        """Add an analyst with a number of turns; the current turn does not change.

        In the current round they have the turns that lie after the current one.
        """
        _validate_turns({**self._turns, analyst: turns})
        self._seat(analyst, turns)

    def state(self) -> dict[str, Any]:
        """The common state, the position of the rotation, and the turns."""
        return {**super().state(), "turns": self.turns}

    def _restored_turns(self, state: Mapping[str, Any]) -> dict[str, int]:
        return _validate_turns({analyst: state["turns"][analyst] for analyst in self._buffers})


def turns_for(amounts: Mapping[str, Amount]) -> dict[str, int]:
    """The smallest whole numbers in proportion to what each analyst could ask alone.

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
    return _validate_turns({analyst: turns // common for analyst, turns in scaled.items()})


def _validate_turns(turns: Mapping[str, int]) -> dict[str, int]:
    """The turns of a round, validated."""
    for analyst, count in turns.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise SharingError(
                f"The turns of {analyst} must be a whole number greater than 0, not {count!r}.",
                hint="Use turns_for(...) to compute turns from amounts.",
            )
    if sum(turns.values()) > MAX_TURNS:
        raise SharingError(
            f"These proportions need {sum(turns.values()):,} turns a round; "
            f"the maximum is {MAX_TURNS:,}.",
            hint="Round the amounts, for example to hundredths of the largest.",
        )
    return dict(turns)
