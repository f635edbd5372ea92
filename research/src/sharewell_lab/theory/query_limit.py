"""The query limit: how many hard queries a budget answers, per query and by the norm of all errors.

Of d hard queries measured together with Laplace noise each answer has noise of scale d / epsilon. If
alpha bounds the error *of each answer*, d = alpha epsilon of them are useful: shares add up to the
whole, and k analysts with epsilon / k have together what one has with epsilon. The paper bounds the *L2
norm over all d errors*, d^(3/2) / epsilon, which gives d = (alpha epsilon)^(2/3) and shares that are
worth more apart. The latter is no limit for the answers of several analysts: k independent mechanisms
with a share each answer k^(1/3) times as many, and are as private.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import SharingError
from sharewell.privacy.budget import Amount, amount
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell_lab.theory.draws import MOST_ANALYSTS, between, whole

#: Who asks what, in order.
Stream = list[tuple[str, LinearQuery]]

MOST_QUERIES = 100_000


@dataclass(frozen=True)
class AnswerCount:
    """How many hard queries are answered within alpha: with one share, and with the whole budget."""

    alone: float
    together: float
    analysts: int

    @property
    def independent(self) -> float:
        """What one mechanism for each analyst answers in all: every analyst's own amount."""
        return self.analysts * self.alone


@dataclass(frozen=True, init=False)
class QueryLimit:
    """The counts for analysts with equal shares of epsilon; alpha is in counts.

    >>> limit = QueryLimit(alpha=1000, epsilon="1", analysts=8)
    >>> limit.per_query.alone, limit.per_query.independent, limit.per_query.together
    (125.0, 1000.0, 1000.0)
    >>> [round(count, 9) for count in (limit.norm.alone, limit.norm.independent, limit.norm.together)]
    [25.0, 200.0, 100.0]
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
    def per_query(self) -> AnswerCount:
        """Where alpha bounds the error of each answer: alpha epsilon, and alpha epsilon / k."""
        together = self.alpha * float(self.epsilon)
        return AnswerCount(together / self.analysts, together, self.analysts)

    @property
    def norm(self) -> AnswerCount:
        """Where alpha bounds the L2 norm of all errors, as printed: the 2/3 power of these."""
        linear = self.per_query
        return AnswerCount(
            math.pow(linear.alone, 2 / 3), math.pow(linear.together, 2 / 3), self.analysts
        )

    def streams(
        self, domain: Domain, rng: np.random.Generator, names: Sequence[str] | None = None
    ) -> LimitStreams:
        """The paper's streams Q, Q' and Q'', over a domain of at least two cells for each analyst."""
        names = _names(self.analysts, names)
        first, each = _floor(self.norm.together), _floor(self.norm.alone)
        count = first + (self.analysts - 1) * each
        if not each or count > MOST_QUERIES:
            raise SharingError(
                f"The streams would have {count:,} queries.",
                hint=f"Choose alpha and epsilon so that there are up to {MOST_QUERIES:,}, and at least "
                "one for each analyst.",
            )
        parts = np.array_split(np.arange(domain.size), self.analysts)
        hard = hard_queries(domain, first, rng, parts[0])
        own = [hard_queries(domain, each, rng, part) for part in parts[1:]]
        asked = [(names[0], query) for query in hard]
        return LimitStreams(
            [*asked, *((name, query) for name in names[1:] for query in hard[:each])],
            [
                *asked,
                *((name, q) for name, mine in zip(names[1:], own, strict=True) for q in mine),
            ],
            [
                asked[0],
                *((name, mine[0]) for name, mine in zip(names[1:], own, strict=True)),
            ],
            first,
        )


@dataclass(frozen=True)
class LimitStreams:
    """The streams that an online mechanism cannot tell apart in time.

    `repeated` and `disjoint` are equal in their first `same_until` pairs, and `one_each` in the first.
    """

    #: Q: the first analyst asks, and the others repeat the beginning of it.
    repeated: Stream
    #: Q': the first analyst asks the same, and the others each about a part of the domain of their own.
    disjoint: Stream
    #: Q'': every analyst asks one query, each about a part of their own.
    one_each: Stream
    same_until: int


def hard_queries(
    domain: Domain, count: int, rng: np.random.Generator, cells: NDArray[np.int64] | None = None
) -> list[LinearQuery]:
    """Counts over random halves of some cells, or of all: one hardly helps with another."""
    domain.require_dense()
    among = np.arange(domain.size) if cells is None else cells
    if len(among) < 2:
        raise SharingError(
            "One cell has no halves.", hint="Use a domain of two cells or more for each analyst."
        )
    queries = []
    for _ in range(count):
        half = np.zeros(domain.size, dtype=np.int64)
        half[rng.permutation(among)[: len(among) // 2]] = 1
        queries.append(LinearQuery.from_vector(domain, half))
    return queries


def _floor(limit: float) -> int:
    # The power of a floating-point number may miss a whole number such as 100 by its last digit.
    return math.floor(limit * (1 + 1e-12))


def _names(count: int, names: Sequence[str] | None) -> Sequence[str]:
    if names is None:
        return [f"analyst {number}" for number in range(1, count + 1)]
    if len(names) != count or len(set(names)) != count:
        raise SharingError(f"The {count:,} analysts need {count:,} different names.")
    return names
