"""Randomized: at every step one analyst is drawn."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import accumulate
from typing import Any

from sharewell.errors import PrivacyError, SharingError
from sharewell.privacy.budget import Amount, amount
from sharewell.sharing.schedulers.base import Item, Scheduler, Ticket

Probability = Amount | float

#: How far from 1 probabilities may sum to when one of them is a float.
TOLERANCE = Fraction(1, 10**9)


class Randomized(Scheduler[Item]):
    """Draws one analyst at each step; if their buffer is empty the step serves nobody.

    Analysts are drawn uniformly, or with the probabilities given by name. All who have not left are
    drawn, those who are done too: the time until full buffers are empty is then exactly the coupon
    collector's. The service draws from the operating system; the simulator gives a `draw` with a seed.

    >>> scheduler = Randomized({"ann": "0.9", "bob": "0.1"}, random.Random(1))
    >>> for at in range(10):
    ...     _ = scheduler.submit("ann", at), scheduler.submit("bob", at)
    >>> sum(scheduler.next().analyst == "ann" for _ in range(10))
    10
    """

    name = "randomized"
    paced = True

    def __init__(
        self,
        analysts: Iterable[str] | Mapping[str, Probability] = (),
        draw: random.Random | None = None,
    ) -> None:
        super().__init__(analysts)
        if draw is not None and not isinstance(draw, random.Random):
            raise SharingError(
                f"Analysts cannot be drawn from a value of type {type(draw).__name__}.",
                hint="Give a random.Random, or nothing to draw from the operating system.",
            )
        self._random = (draw or random.SystemRandom()).random
        if isinstance(analysts, Mapping):
            self._use(_distribution(analysts))
        else:
            count = len(self._buffers)
            self._use({analyst: Fraction(1, count) for analyst in self._buffers})

    @property
    def probabilities(self) -> dict[str, Fraction]:
        """With what probability each analyst is drawn at a step."""
        return dict(self._probabilities)

    def join(self, analyst: str, probability: Probability | None = None) -> None:
        """Take in a new analyst with a probability p; the others' are scaled by 1 - p.

        Without one, p is 1 / (number of analysts), so a uniform draw stays uniform. Whoever is alone
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
                    hint="The others share what is left.",
                )
        super().join(analyst)
        if not others:
            part = Fraction(1)
        self._use({**{name: old * (1 - part) for name, old in others.items()}, analyst: part})

    def leave(self, analyst: str) -> tuple[Ticket[Item], ...]:
        """Let an analyst go; the others' probabilities keep their proportions."""
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
            # The last one takes what rounding leaves.
            analyst = names[bisect_right(self._cumulative, self._random(), 0, len(names) - 1)]
        return analyst if self._buffers[analyst] else None

    def _use(self, probabilities: dict[str, Fraction]) -> None:
        self._probabilities = probabilities
        self._names = list(probabilities)
        uniform = len(set(probabilities.values())) <= 1
        sums = accumulate(probabilities.values())
        self._cumulative = None if uniform else [float(up_to) for up_to in sums]

    def state(self) -> dict[str, Any]:
        """The common state, and the probabilities; what was drawn has left no trace."""
        return {
            **super().state(),
            "probabilities": {name: str(part) for name, part in self._probabilities.items()},
        }

    def _restore(self, state: Mapping[str, Any], now: float | None) -> None:
        super()._restore(state, now)
        stored = {name: Fraction(state["probabilities"][name]) for name in self._buffers}
        self._use(_distribution(stored) if stored else {})


def _distribution(probabilities: Mapping[str, Probability]) -> dict[str, Fraction]:
    """Probabilities as exact numbers that sum to 1; floats are scaled to do so."""
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
