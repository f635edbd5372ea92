"""Quotas: how many turns every analyst wants, and how likely each is to be drawn."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import SharingError

MOST_ANALYSTS = 100_000
MOST_QUOTA = 1_000_000
LEAST_PROBABILITY = 1e-12
#: How far from 1 probabilities may sum, so that decimals such as ten times 0.1 are taken.
SLACK = 1e-9


@dataclass(frozen=True)
class Groups:
    """Analysts who want the same number of turns and are drawn alike, as columns of a table."""

    quota: NDArray[np.float64]
    probability: NDArray[np.float64]
    count: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.quota)


@dataclass(frozen=True)
class Quotas:
    """One quota and one probability of being drawn for each analyst, checked.

    A quota may be 0: such an analyst is drawn and waits for nothing. That is also how idle steps are
    written. Probabilities are above 0 and sum to 1.
    """

    quotas: tuple[int, ...]
    probabilities: tuple[float, ...]

    @classmethod
    def of(
        cls,
        analysts: int,
        quota: int | Sequence[int],
        probabilities: Sequence[float] | None = None,
    ) -> Quotas:
        """The same quota for all or one each; the same probability unless they are given."""
        count = whole(analysts, "The number of analysts", 1, MOST_ANALYSTS)
        each = list(quota) if isinstance(quota, Sequence | np.ndarray) else [quota] * count
        if len(each) != count:
            raise SharingError(
                f"There are {count:,} analysts and {len(each):,} quotas.",
                hint="Give one quota for all, or one for each.",
            )
        quotas = tuple(whole(one, "A quota", 0, MOST_QUOTA) for one in each)
        if not any(quotas):
            raise SharingError(
                "All quotas are 0, so there is nothing to wait for.", hint="Give a quota of at least 1."
            )
        if probabilities is None:
            return cls(quotas, (1 / count,) * count)
        return cls(quotas, _normalised(probabilities, count))

    @property
    def least(self) -> int:
        """The sum of the quotas: no fewer steps can ever do."""
        return sum(self.quotas)

    @cached_property
    def groups(self) -> Groups:
        """Those who want something, equal ones together."""
        wanted = Counter((m, p) for m, p in zip(self.quotas, self.probabilities, strict=True) if m)
        pairs = np.array(list(wanted), dtype=np.float64)
        return Groups(pairs[:, 0], pairs[:, 1], np.array(list(wanted.values()), dtype=np.float64))

    @cached_property
    def idle(self) -> float:
        """The probability of drawing somebody who wants nothing."""
        return math.fsum(p for m, p in zip(self.quotas, self.probabilities, strict=True) if not m)


def whole(value: Any, what: str, least: int, most: int) -> int:
    """A whole number within limits."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise SharingError(f"{what} must be a whole number, not {str(value)[:40]}.")
    number = int(value)
    if not least <= number <= most:
        raise SharingError(f"{what} must be from {least:,} to {most:,}, not {_short(number)}.")
    return number


def between(value: Any, what: str, above: float, below: float) -> float:
    """A number above one limit and below another."""
    if not _is_real(value) or not above < value < below:
        raise SharingError(
            f"{what} must be a number above {above:.10g} and below {below:.10g}, not {str(value)[:40]}."
        )
    return float(value)


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _short(value: int) -> str:
    # Very long whole numbers cannot be printed, and nobody would read them.
    return f"{value:,}" if abs(value) < 10**30 else "a number of more than 30 digits"


def _normalised(probabilities: Sequence[float], count: int) -> tuple[float, ...]:
    stated = list(probabilities)
    if len(stated) != count:
        raise SharingError(
            f"There are {count:,} analysts and {len(stated):,} probabilities.",
            hint="Give one probability for each, or none if all are drawn alike.",
        )
    for one in stated:
        if not _is_real(one) or not LEAST_PROBABILITY <= one <= 1:
            raise SharingError(
                f"A probability must be from {LEAST_PROBABILITY:g} to 1, not {str(one)[:40]}.",
                hint="Whoever is never drawn never meets a quota.",
            )
    exact = [float(one) for one in stated]
    total = math.fsum(exact)
    if abs(total - 1) > SLACK:
        raise SharingError(
            f"The probabilities sum to {total:.10g}, and they must sum to 1.",
            hint="At every step exactly one analyst is drawn.",
        )
    return tuple(one / total for one in exact)
