"""The query limit: how many hard queries can be answered well, alone and together.

Of a stream of hard queries about (alpha * epsilon)^(2/3) can be answered within alpha, in counts. The
exponent is below 1, so shares of a budget are worth more apart than the whole is together: what
every analyst could get alone cannot be had by all at once, by any mechanism that only reaches the limit.
This is our reading of the paper's query-limit theorem and of its Figure 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sharewell.errors import SharingError
from sharewell.privacy.budget import Amount, amount
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell_lab.theory.draws import MOST_ANALYSTS, between, whole

#: Who asks what, in order.
Stream = list[tuple[str, LinearQuery]]

MOST_QUERIES = 100_000


@dataclass(frozen=True, init=False)
class QueryLimit:
    """The limits for analysts with equal shares of epsilon; alpha is in counts.

    >>> limit = QueryLimit(alpha=1000, epsilon="1", analysts=8)
    >>> round(limit.alone, 9), round(limit.together, 9), round(limit.all_alone, 9)
    (25.0, 100.0, 200.0)
    """

    alpha: float
    epsilon: Fraction
    analysts: int

    def __init__(self, alpha: float, epsilon: Amount, analysts: int) -> None:
        object.__setattr__(self, "alpha", between(alpha, "alpha", 0, 1e15))
        object.__setattr__(self, "epsilon", amount(epsilon, "epsilon"))
        object.__setattr__(self, "analysts", whole(analysts, "The number of analysts", 1, MOST_ANALYSTS))
        between(float(self.epsilon), "epsilon", 0, 1e9)

    @property
    def alone(self) -> float:
        """What one analyst can have answered with their own share: (alpha epsilon / k)^(2/3)."""
        return math.pow(self.alpha * float(self.epsilon) / self.analysts, 2 / 3)

    @property
    def together(self) -> float:
        """What all can have answered with the whole budget: (alpha epsilon)^(2/3)."""
        return math.pow(self.alpha * float(self.epsilon), 2 / 3)

    @property
    def all_alone(self) -> float:
        """What all would get if each were alone: k^(1/3) times what they can get together."""
        return self.analysts * self.alone

    @property
    def shortfall(self) -> float:
        """What is missing for all to be as well off together as alone."""
        return self.all_alone - self.together

    @property
    def owed(self) -> float:
        """What must be kept for those who may still come: what each of the others has alone."""
        return (self.analysts - 1) * self.alone

    @property
    def held_back(self) -> float:
        """How much of the joint limit that takes; more than all of it there is not to hold back."""
        return min(self.owed, self.together)

    @property
    def usable(self) -> float:
        """What is left of the joint limit for the analyst who is there first."""
        return self.together - self.held_back

    def streams(
        self, domain: Domain, rng: np.random.Generator, names: Sequence[str] | None = None
    ) -> LimitStreams:
        """The three streams Q, Q' and Q'' at this limit, over a domain of at least two cells."""
        names = _names(self.analysts, names)
        first, each = _floor(self.together), _floor(self.alone)
        count = first + (self.analysts - 1) * each
        if not first or count > MOST_QUERIES:
            raise SharingError(
                f"The streams would have {count:,} queries.",
                hint=f"Choose alpha and epsilon so that there are from 1 to {MOST_QUERIES:,}.",
            )
        hard = hard_queries(domain, count, rng)
        late = [name for name in names[1:] for _ in range(each)]
        return LimitStreams(
            hard,
            [(names[0], query) for query in hard],
            list(zip([names[0]] * first + late, hard, strict=True)),
            first,
        )


@dataclass(frozen=True)
class LimitStreams:
    """The streams that show the limit: the same hard queries, dealt out in two ways.

    `one_asks` and `others_come` are equal in their first `same_until` pairs.
    """

    #: Q: the hard queries themselves.
    hard: list[LinearQuery]
    #: Q': the first analyst asks everything.
    one_asks: Stream
    #: Q'': the first asks up to the joint limit, then each other comes with what they had alone.
    others_come: Stream
    same_until: int


def hard_queries(domain: Domain, count: int, rng: np.random.Generator) -> list[LinearQuery]:
    """Counts over random halves of the domain: nothing that is known of one helps with another."""
    if domain.size < 2:
        raise SharingError("A domain of one cell has no halves.", hint="Use one of two cells or more.")
    domain.require_dense()
    half = np.zeros(domain.size, dtype=np.int64)
    half[: domain.size // 2] = 1
    return [LinearQuery.from_vector(domain, rng.permutation(half)) for _ in range(count)]


def _floor(limit: float) -> int:
    # The power of a floating-point number may miss a whole number such as 100 by its last digit.
    return math.floor(limit * (1 + 1e-12))


def _names(count: int, names: Sequence[str] | None) -> Sequence[str]:
    if names is None:
        return [f"analyst {number}" for number in range(1, count + 1)]
    if len(names) != count or len(set(names)) != count:
        raise SharingError(f"The {count:,} analysts need {count:,} different names.")
    return names
