"""What a run depends on beside the questions and the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import ConfigError

#: The fraction that a float stands for is looked for among those with at most this denominator.
LARGEST_DENOMINATOR = 10**9


@dataclass(frozen=True, eq=False)
class Setting:
    """Shares, public numbers and the mechanisms' settings, as floats.

    >>> setting = Setting(np.array([0.1, 0.2]), population=1000, seed_fraction=0.5, query_budget=0.01)
    >>> setting.exact_shares
    (Fraction(1, 10), Fraction(1, 5))
    """

    #: The epsilon of each analyst; those present bring theirs into the run.
    shares: NDArray[np.float64]
    #: The public number of rows, which PMW and the uniform guess know.
    population: float
    #: For SCR: the part of every share that pays for the seed.
    seed_fraction: float
    #: For SCR and Laplace: what one measured question costs.
    query_budget: float
    #: For PMW: `mechanism.pmw.tuned` gives what is None, from the population and the pot.
    updates: int | None = None
    threshold: int | None = None

    def __post_init__(self) -> None:
        if self.shares.ndim != 1 or not len(self.shares):
            raise ConfigError("Shares are a list, one number an analyst.", hint="Give at least one.")
        for name, values in (
            ("share", self.shares.tolist()),
            ("population", [self.population]),
            ("seed_fraction", [self.seed_fraction]),
            ("query_budget", [self.query_budget]),
        ):
            for value in values:
                if not (math.isfinite(value) and value > 0):
                    raise ConfigError(f"`{name}` must be greater than 0, not {value!r}.")
        if self.seed_fraction > 1:
            raise ConfigError(f"`seed_fraction` must be at most 1, not {self.seed_fraction!r}.")
        for name, least in (("updates", 1), ("threshold", 0)):
            whole = getattr(self, name)
            if whole is not None and whole < least:
                raise ConfigError(f"`{name}` must be a whole number from {least} on, not {whole!r}.")

    @cached_property
    def exact_shares(self) -> tuple[Fraction, ...]:
        """The shares that the floats stand for."""
        return tuple(exact(share) for share in self.shares.tolist())

    def pot(self, present: NDArray[np.bool_]) -> Fraction:
        """What those present hold together."""
        return sum(
            (share for share, here in zip(self.exact_shares, present.tolist(), strict=True) if here),
            Fraction(0),
        )


@lru_cache(maxsize=4096)
def exact(number: float) -> Fraction:
    """The simple fraction that a float stands for: the kernel counts in these, and 0.1 is 1/10 there.

    How many questions a share pays for hangs on it: as floats, 0.1 + 0.2 would pay for more than 0.3.

    >>> exact(0.1), exact(0.1 * 0.5 / 8), exact(1 / 3)
    (Fraction(1, 10), Fraction(1, 160), Fraction(1, 3))
    """
    found = Fraction(number).limit_denominator(LARGEST_DENOMINATOR)
    if found <= 0:
        raise ConfigError(
            f"{number!r} is too small for an amount of budget.",
            hint=f"Use at least 1/{LARGEST_DENOMINATOR:,}.",
        )
    return found
