"""The conditions of the scheduler theorems, evaluated for a mechanism by counting its useful answers.

A scheduler can promise every analyst what they would have alone if the mechanism, with the whole budget,
answers enough questions for all. How many are enough depends on how turns are dealt out. The theorems
are stated and proved in docs/theory.md. They assume that every analyst always has a question waiting,
and that the number of useful answers depends on the budget alone: not on who asks, nor in what order.
Where that is measured on one stream rather than known, a condition that holds is evidence, not proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from sharewell.engine.data_vector import DataVector
from sharewell.errors import OverBudget, SharingError
from sharewell.mechanisms.base import Answer, Mechanism
from sharewell.privacy.budget import Amount, Budget, amount
from sharewell.privacy.curator import Curator
from sharewell.privacy.noise import ExactNoise, Noise
from sharewell.query.linear import LinearQuery
from sharewell_lab.theory.coupons import coupons
from sharewell_lab.theory.draws import between, whole

#: How many questions a mechanism answers usefully with a budget.
Answered = Callable[[Fraction], int]


@dataclass(frozen=True)
class TheoremCondition:
    """What one scheduler needs for one promise, and what the mechanism has."""

    scheduler: str
    promise: str
    #: How many useful answers are enough.
    needed: float
    #: How many the mechanism gives with the whole budget.
    available: int

    @property
    def holds(self) -> bool:
        """Whether there are enough."""
        # A coupon time is known to nine digits, and 1 / (1 / 49) is more than 49 in floating point.
        return self.available >= self.needed * (1 - 1e-9)

    @property
    def words(self) -> str:
        """The condition as a sentence."""
        verdict = "holds" if self.holds else "does not hold"
        return (
            f"{self.scheduler.capitalize()}, {self.promise}: {verdict}, needs {_number(self.needed)} "
            f"useful answers and has {self.available:,}."
        )


@dataclass(frozen=True)
class Conditions:
    """Every condition for one mechanism, and the quotas that they are about."""

    #: How many useful answers each analyst would have alone, with their own share.
    quotas: Mapping[str, int]
    #: How many useful answers there are with the whole budget.
    available: int
    all: tuple[TheoremCondition, ...]

    def of(self, scheduler: str) -> tuple[TheoremCondition, ...]:
        """The conditions of one scheduler."""
        found = tuple(one for one in self.all if one.scheduler == scheduler)
        if not found:
            known = ", ".join(dict.fromkeys(one.scheduler for one in self.all))
            raise SharingError(f"Unknown scheduler {scheduler!r}.", hint=f"Choose one of {known}.")
        return found


def conditions(
    answered: Answered,
    shares: Mapping[str, Amount],
    *,
    weights: Mapping[str, int] | None = None,
    probabilities: Mapping[str, float] | None = None,
    beta: float = 0.05,
) -> Conditions:
    """Evaluate the theorems' conditions for a mechanism, given by how many questions it answers.

    `weights` are the turns in a round of weighted round robin, in proportion to the quotas if left
    out. `probabilities` are those of the non-uniform scheduler, in proportion to the shares if left
    out. `beta` is the risk that a randomized scheduler may take.

    >>> linear = conditions(lambda budget: int(100 * budget), {"ann": "1/2", "ben": "1/2"})
    >>> print(linear.of("round robin")[0].words)
    Round robin, every quota: holds, needs 100 useful answers and has 100.
    """
    if not shares:
        raise SharingError("No analyst holds a share.", hint='Give {"ann": "1/2", ...}.')
    beta = between(beta, "beta", 1e-9, 1)
    exact = {name: amount(share, f"The share of {name}") for name, share in shares.items()}
    total = sum(exact.values(), Fraction(0))
    # Equal budgets are counted once: with noise, two counts of the same might differ.
    counts = {
        budget: whole(answered(budget), "A count", 0, 10**15) for budget in {*exact.values(), total}
    }
    quotas = {name: counts[share] for name, share in exact.items()}
    available = counts[total]
    largest = max(quotas.values())
    drawn = _drawn(exact, probabilities)
    needs: dict[str, list[tuple[str, float]]] = {
        "round robin": [("every quota", len(quotas) * largest)],
        "weighted round robin": [("every quota", _rounds_need(quotas, weights))],
        "uniform randomized": _draws_need([largest] * len(quotas), None, beta),
        "non-uniform randomized": _draws_need([*quotas.values()], drawn, beta),
    }
    found = [
        TheoremCondition(scheduler, promise, needed, available)
        for scheduler, promises in needs.items()
        for promise, needed in promises
    ]
    return Conditions(MappingProxyType(quotas), available, tuple(found))


def answered_by(
    make: Callable[[Curator], Mechanism],
    data: DataVector,
    stream: Sequence[LinearQuery],
    alpha: float,
    *,
    public_counts: ArrayLike | None = None,
    noise: Callable[[], Noise] = ExactNoise,
) -> Answered:
    """Count the useful answers of a mechanism: one analyst asks a stream until refused.

    An answer is useful when its standard error is known and at most alpha. Where a mechanism does not
    know it, and only there, the realised error counts instead, if `public_counts` are given to
    compare with. The count is of this stream: it is never more than its length.

    Privacy: every count spends a budget of its own that no ledger keeps. For public or synthetic data,
    never for a protected table.
    """
    alpha = between(alpha, "alpha", 0, math.inf)
    truth = None if public_counts is None else np.asarray(public_counts)

    def useful(answer: Answer, query: LinearQuery) -> bool:
        if answer.standard_error is not None:
            return answer.standard_error <= alpha
        return truth is not None and abs(answer.value - query.dot(truth)) <= alpha

    def answered(budget: Fraction) -> int:
        curator = Curator(data, Budget.pure(budget), {"alone": budget}, noise=noise())
        mechanism = make(curator)
        count = 0
        for query in stream:
            try:
                count += useful(mechanism.ask(query, "alone"), query)
            except OverBudget:
                break
        return count

    return answered


def _rounds_need(quotas: Mapping[str, int], weights: Mapping[str, int] | None) -> int:
    """Enough turns for every analyst to have had ceil(quota / weight) rounds."""
    wanting = {name: quota for name, quota in quotas.items() if quota}
    if not wanting:
        return 0
    if weights is None:
        unit = math.gcd(*wanting.values())
        weights = {name: quota // unit for name, quota in quotas.items()}
    _same_names(weights, quotas, "weights")
    turns = {name: whole(weight, f"The weight of {name}", 0, 10**9) for name, weight in weights.items()}
    for name in wanting:
        if not turns[name]:
            raise SharingError(f"{name} has a quota and no turns.", hint="Give a weight of at least 1.")
    rounds = max(-(-quota // turns[name]) for name, quota in wanting.items())
    return rounds * sum(turns.values())


def _draws_need(
    quotas: Sequence[int], probabilities: Sequence[float] | None, beta: float
) -> list[tuple[str, float]]:
    """What a randomized scheduler needs for each of three promises, from the weakest on."""
    time = coupons(len(quotas), quotas, probabilities) if any(quotas) else None
    return [
        ("every quota in expectation of turns", time.linear if time else 0),
        ("all quotas at once in expectation of time", time.expected if time else 0),
        (
            f"all quotas at once with probability {1 - beta:g}",
            time.steps_for(1 - beta).steps if time else 0,
        ),
    ]


def _drawn(shares: Mapping[str, Fraction], probabilities: Mapping[str, float] | None) -> Sequence[float]:
    if probabilities is None:
        total = sum(shares.values(), Fraction(0))
        return [float(share / total) for share in shares.values()]
    _same_names(probabilities, shares, "probabilities")
    return [probabilities[name] for name in shares]


def _same_names(given: Mapping[str, object], wanted: Mapping[str, object], what: str) -> None:
    if set(given) != set(wanted):
        raise SharingError(
            f"The {what} are not those of the analysts.", hint=f"Give one for {', '.join(wanted)}."
        )


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
