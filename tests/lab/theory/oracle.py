"""The slow and obvious ways: every state of the draws, in exact fractions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

State = tuple[int, ...]


def expected_draws(quotas: Sequence[int], probabilities: Sequence[Fraction]) -> Fraction:
    """The expected number of draws until nobody wants a turn, by first-step analysis."""

    @cache
    def from_here(wanted: State) -> Fraction:
        if not any(wanted):
            return Fraction(0)
        useful = sum((p for p, left in zip(probabilities, wanted, strict=True) if left), Fraction(0))
        after = sum(
            (
                p * from_here((*wanted[:i], wanted[i] - 1, *wanted[i + 1 :]))
                for i, p in enumerate(probabilities)
                if wanted[i]
            ),
            Fraction(0),
        )
        return (1 + after) / useful

    return from_here(tuple(quotas))


def met_after(quotas: Sequence[int], probabilities: Sequence[Fraction], steps: int) -> list[Fraction]:
    """The probability that nobody wants a turn after 0, 1, ..., `steps` draws, draw by draw."""
    done = (0,) * len(quotas)
    states: dict[State, Fraction] = {tuple(quotas): Fraction(1)}
    found = [states.get(done, Fraction(0))]
    for _ in range(steps):
        after: dict[State, Fraction] = defaultdict(Fraction)
        for wanted, chance in states.items():
            for i, p in enumerate(probabilities):
                after[(*wanted[:i], max(wanted[i] - 1, 0), *wanted[i + 1 :])] += chance * p
        states = after
        found.append(states.get(done, Fraction(0)))
    return found
