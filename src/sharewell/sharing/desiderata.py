"""Desiderata: what it means that nobody is worse off, as numbers.

An analyst's *utility* is any function of their answers; by default, how many are within an error
threshold. It is compared in three cases: with everybody (*joint*), alone with one's own share, and
with everybody but one other. All three use the same mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sharewell.errors import SharingError
from sharewell.query.linear import LinearQuery


@dataclass(frozen=True)
class Outcome:
    """What became of one query: how far off its answer is, infinitely where there is none.

    The error is either the one that happened (known in the lab alone, where the truth is) or the one
    that was to be expected (its standard error, which is public). The two are never mixed.
    """

    query: LinearQuery
    error: float


#: What an analyst makes of their outcomes; more is better.
Utility = Callable[[Sequence[Outcome]], float]


def within(error_threshold: float) -> Utility:
    """The default utility: how many answers are off by at most this many rows.

    A sum may be off by as much as that many rows of its largest weight come to.

    >>> from sharewell import Domain, Integer
    >>> everybody = LinearQuery.all(Domain([Integer("age", 0, 85)]))
    >>> within(10)([Outcome(everybody, 3.5), Outcome(everybody, 10), Outcome(everybody, math.inf)])
    2
    """
    if not math.isfinite(error_threshold) or error_threshold <= 0:
        raise SharingError(
            f"The error threshold must be a positive number of rows, not {error_threshold!r}.",
            hint="An answer is useful when it is off by no more than this.",
        )

    def count(outcomes: Sequence[Outcome]) -> int:
        return sum(o.error <= error_threshold * float(o.query.max_abs) for o in outcomes)

    return count


def outcomes(queries: Sequence[LinearQuery], errors: Sequence[float]) -> list[Outcome]:
    """The outcomes of several queries; one of no cell is none, since everybody knows its answer."""
    return [
        Outcome(query, error) for query, error in zip(queries, errors, strict=True) if not query.is_zero
    ]


def ratio(elsewhere: float, joint: float) -> float:
    """How many times better off one would be elsewhere; above 1 is a reason not to share.

    Where one has nothing here: infinitely better off with anything, and equally well off with nothing.
    """
    if joint > 0:
        return elsewhere / joint
    return math.inf if elsewhere > 0 else 1.0


def max_ratio_error(alone: Mapping[str, float], joint: Mapping[str, float]) -> float:
    """The largest ratio of anybody, alone against joint; above 1 breaks the sharing incentive."""
    return max((ratio(alone[analyst], joint[analyst]) for analyst in joint), default=1.0)


def interference(without: Mapping[str, Mapping[str, float]], joint: Mapping[str, float]) -> float:
    """The largest utility ratio of anybody, without one other analyst against with everybody.

    `without[j][i]` is the utility of i when j is not there. Above 1, somebody loses by somebody's being
    there.
    """
    return max(
        (
            ratio(utilities[analyst], joint[analyst])
            for missing, utilities in without.items()
            for analyst in joint
            if analyst != missing
        ),
        default=1.0,
    )
