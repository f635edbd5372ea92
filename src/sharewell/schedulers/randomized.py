"""Randomized scheduling: at every step one analyst is drawn."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import accumulate
from typing import Any

from sharewell.errors import PrivacyError, SharingError
from sharewell.options import AMOUNT, Option, by_analyst
from sharewell.privacy.budget import Amount, amount
from sharewell.schedulers.base import Item, QueueEntry, Scheduler

Probability = Amount | float

#: By how much the sum of probabilities may differ from 1 if one of them is a float.
TOLERANCE = Fraction(1, 10**9)


IN_EXPECTATION = "Turns are counted in expectation: an unlucky draw can give an analyst fewer."
LIKELY_TURNS = (
    "The whole budget, times the analyst's probability of a turn, answers at least as many questions "
    "as their share alone."
)


class Randomized(Scheduler[Item]):
    """Draws one analyst at each step; if their buffer is empty, the step serves nothing.

    Analysts are drawn uniformly, or with given probabilities, until they leave, even after `done`: so
    the time until full buffers are empty is exactly the coupon collector's. Randomness comes from the
    operating system, or in simulations from a seeded `draw`.

    >>> scheduler = Randomized({"ann": "0.9", "bob": "0.1"}, random.Random(1))
    >>> for at in range(10):
    ...     _ = scheduler.submit("ann", at), scheduler.submit("bob", at)
    >>> sum(scheduler.next().analyst == "ann" for _ in range(10))
    10
    """

    name = "randomized"
    paced = True
    options = (
        Option(
            "probabilities",
            by_analyst(AMOUNT, "a table of numbers by analyst"),
            None,
            "probability that each analyst is drawn; they sum to 1",
            unset="uniform",
        ),
    )
    code_options = ("draw",)

    @classmethod
    def create(
        cls, analysts: tuple[str, ...], shares: Mapping[str, Amount] | None, **options: Any
    ) -> Randomized[Any]:
        """Draw uniformly, whatever the shares, unless probabilities are given."""
        chances = options.pop("probabilities", None)
        drawn = analysts if chances is None else cls._for_each(analysts, chances, "probabilities")
        return cls(drawn, **options)

    @property
    def turn_assumptions(self) -> tuple[str, ...]:
        """Turns are counted in expectation, in proportion to the probabilities."""
        return (IN_EXPECTATION, LIKELY_TURNS)

    def __init__(
        self,
        analysts: Iterable[str] | Mapping[str, Probability] = (),
        draw: random.Random | None = None,
    ) -> None:
        super().__init__(analysts)
        if draw is not None and not isinstance(draw, random.Random):
            raise SharingError(
                f"`draw` must be a random.Random, not of type {type(draw).__name__}.",
                hint="Omit it to draw from the operating system.",
            )
        self._random = (draw or random.SystemRandom()).random
        if isinstance(analysts, Mapping):
            self._use(_distribution(analysts))
        else:
            count = len(self._buffers)
            self._use({analyst: Fraction(1, count) for analyst in self._buffers})

    @property
    def probabilities(self) -> dict[str, Fraction]:
        """The probability with which each analyst is drawn at a step."""
        return dict(self._probabilities)

    def join(self, analyst: str, probability: Probability | None = None) -> None:
        """Add an analyst with probability p, and scale the others' by 1 - p.

        By default p is 1 / (number of analysts), so that a uniform draw stays uniform. A single analyst
        has probability 1.
        """
        others = self._probabilities
        if probability is None:
            part = Fraction(1, len(others) + 1)
        else:
            part = _exact(analyst, probability)
            if part > 1 or (others and part == 1):
                raise SharingError(
                    f"The probability of {analyst} must be less than 1, not {probability}.",
                    hint="The other analysts share the rest.",
                )
        super().join(analyst)
        if not others:
            part = Fraction(1)
        self._use({**{name: old * (1 - part) for name, old in others.items()}, analyst: part})

    def leave(self, analyst: str) -> tuple[QueueEntry[Item], ...]:
        """Remove an analyst; the others' probabilities keep their proportions."""
        withdrawn = super().leave(analyst)
        rest = 1 - self._probabilities.pop(analyst)
        self._use({name: old / rest for name, old in self._probabilities.items()})
        return withdrawn

    def _choose(self, now: float) -> str | None:
        names = self._names
        if not names:
            return None
        if self._cumulative is None:
            analyst = names[int(self._random() * len(names))]
        else:
            # The last analyst absorbs the rounding error.
            analyst = names[bisect_right(self._cumulative, self._random(), 0, len(names) - 1)]
        return analyst if self._buffers[analyst] else None

    def _use(self, probabilities: dict[str, Fraction]) -> None:
        self._probabilities = probabilities
        self._names = list(probabilities)
        uniform = len(set(probabilities.values())) <= 1
        sums = accumulate(probabilities.values())
        self._cumulative = None if uniform else [float(up_to) for up_to in sums]

    def state(self) -> dict[str, Any]:
        """The common state and the probabilities; past draws need no record."""
        return {
            **super().state(),
            "probabilities": {name: str(part) for name, part in self._probabilities.items()},
        }

    def _restore(self, state: Mapping[str, Any], now: float | None) -> None:
        super()._restore(state, now)
        stored = {name: Fraction(state["probabilities"][name]) for name in self._buffers}
        self._use(_distribution(stored) if stored else {})


def _distribution(probabilities: Mapping[str, Probability]) -> dict[str, Fraction]:
    """Exact probabilities that sum to 1; floats are scaled."""
    exact = {analyst: _exact(analyst, value) for analyst, value in probabilities.items()}
    total = sum(exact.values(), Fraction(0))
    rounded = any(isinstance(value, float) for value in probabilities.values())
    if total != 1 and not (rounded and abs(total - 1) <= TOLERANCE):
        shown = str(total) if float(total) == 1 else f"{float(total):.15g}"
        raise SharingError(
            f"The probabilities sum to {shown}, not to 1.",
            hint="Divide each by their sum; a third can be written as 1/3.",
        )
    return {analyst: value / total for analyst, value in exact.items()}


def _exact(analyst: str, value: Probability) -> Fraction:
    what = f"The probability of {analyst}"
    if isinstance(value, float):
        if not 0 < value < math.inf:
            raise SharingError(f"{what} must be a number greater than 0, not {value}.")
        return Fraction(value)
    try:
        return amount(value, what)
    except PrivacyError as error:
        raise SharingError(error.message, hint=error.hint) from None
