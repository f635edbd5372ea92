"""An exact audit: the privacy loss of a whole mechanism on a small table, by enumeration.

The real mechanism runs on the real kernel with a noise source that draws nothing: it plays through all
values of every draw up to a bound, and multiplies their probabilities. That gives the distribution of
what analysts see, up to a stated probability, and from two neighbouring tables the loss between them.

A test of a sparse vector needs no enumeration. Its outcome changes once as its noise grows, so the value
at which it changes is found by bisection, and the two outcomes have the probabilities of the two sides.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Law = Literal["laplace", "gaussian"]

#: Noise beyond this magnitude decides every test of a sparse vector.
DECISIVE = 2**20


@dataclass(frozen=True)
class OutcomeDistribution:
    """The probability of each outcome, and the probability of noise that was not enumerated."""

    outcomes: Mapping[Hashable, float]
    tail: float


@dataclass(frozen=True)
class Branch:
    """One value of a draw, with its probability."""

    value: int
    probability: float


class EnumeratedNoise:
    """Plays back chosen values; draws beyond them take the first branch, and are remembered."""

    exact = False

    def __init__(self, chosen: list[int], enumerate_draw: Callable[[Law, float], list[Branch]]) -> None:
        self._chosen = chosen
        self._enumerate = enumerate_draw
        self.drawn: list[tuple[Law, float, list[Branch]]] = []

    def laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        """The values chosen for discrete Laplace draws."""
        return self._draw("laplace", scale, size)

    def gaussian(self, scale: float, size: int) -> NDArray[np.int64]:
        """The values chosen for discrete Gaussian draws."""
        return self._draw("gaussian", scale, size)

    def _draw(self, law: Law, scale: float, size: int) -> NDArray[np.int64]:
        values = []
        for _ in range(size):
            at, branches = len(self.drawn), self._enumerate(law, scale)
            values.append(self._chosen[at] if at < len(self._chosen) else branches[0].value)
            self.drawn.append((law, scale, branches))
        return np.array(values, dtype=np.int64)


def enumerate_outcomes(
    run: Callable[[EnumeratedNoise], Hashable],
    *,
    beyond: float = 1e-6,
    test_scales: Collection[float] = (),
) -> OutcomeDistribution:
    """The distribution of what `run` returns over all draws of its noise.

    Each draw is enumerated but for a probability of at most `beyond`. Laplace draws whose scale is one
    of `test_scales` decide tests of a sparse vector, and nothing else.

    >>> coin = enumerate_outcomes(lambda noise: bool(noise.laplace(1.0, 1)[0] > 0))
    >>> round(coin.outcomes[True], 3), coin.tail < 1e-6
    (0.269, True)
    """

    def play(chosen: list[int]) -> tuple[Hashable, EnumeratedNoise]:
        noise = EnumeratedNoise(chosen, enumerate_draw)
        return run(noise), noise

    def enumerate_draw(law: Law, scale: float) -> list[Branch]:
        if scale in test_scales:
            return [Branch(-DECISIVE, math.nan), Branch(DECISIVE, math.nan)]
        return probable_values(law, scale, beyond)

    outcomes: dict[Hashable, float] = defaultdict(float)
    pending: list[tuple[list[int], float]] = [([], 1.0)]
    while pending:
        chosen, probability = pending.pop()
        outcome, noise = play(chosen)
        if len(noise.drawn) == len(chosen):
            outcomes[outcome] += probability
            continue
        _, scale, branches = noise.drawn[len(chosen)]
        if scale in test_scales:
            branches = _decide(play, chosen, scale)
        pending += [([*chosen, each.value], probability * each.probability) for each in branches]
    return OutcomeDistribution(dict(outcomes), max(0.0, 1 - math.fsum(outcomes.values())))


def _decide(
    play: Callable[[list[int]], tuple[Hashable, EnumeratedNoise]], chosen: list[int], scale: float
) -> list[Branch]:
    """The two outcomes of a test, from the least noise with which it exceeds."""

    def seen(value: int) -> tuple[Hashable, int]:
        outcome, noise = play([*chosen, value])
        return outcome, len(noise.drawn)

    low, high = -DECISIVE, DECISIVE
    below = seen(low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if seen(middle) == below else (low, middle)
    at_least = laplace_tail(scale, high)
    return [Branch(-DECISIVE, 1 - at_least), Branch(DECISIVE, at_least)]


@lru_cache
def probable_values(law: Law, scale: float, beyond: float) -> list[Branch]:
    """The values of a draw from 0 outwards, until all others have a probability of at most `beyond`."""
    if scale == 0:
        return [Branch(0, 1.0)]
    if law == "laplace":
        reach = math.ceil(scale * math.log(2 / beyond)) + 1
        weights = np.exp(-np.arange(reach + 1) / scale)
        total = 2 / -math.expm1(-1 / scale) - 1
    else:
        reach = math.ceil(scale * math.sqrt(2 * math.log(2 / beyond))) + 1
        weights = np.exp(-(np.arange(reach + 1) ** 2) / (2 * scale**2))
        far = np.arange(reach + 1, reach + math.ceil(40 * scale) + 2)
        total = float(2 * weights.sum() - 1 + 2 * np.exp(-(far**2) / (2 * scale**2)).sum())
    return [Branch(k, float(weights[abs(k)]) / total) for k in range(-reach, reach + 1)]


def laplace_tail(scale: float, least: int) -> float:
    """The probability that a discrete Laplace draw is at least some value."""
    ratio = math.exp(-1 / scale)
    if least > 0:
        return ratio**least / (1 + ratio)
    return 1 - ratio ** (1 - least) / (1 + ratio)


def pure_loss(left: OutcomeDistribution, right: OutcomeDistribution) -> tuple[float, float]:
    """The largest log-ratio of the probabilities of an outcome, and the probability not compared.

    An outcome that only one side has lies at the edge of what was enumerated, if it is improbable, and
    shows that the mechanism is not private otherwise.
    """
    ratios = [abs(math.log(p / q)) for p, q in _matched(left, right)]
    unmatched = max(
        1 - math.fsum(p for p, _ in _matched(left, right)),
        1 - math.fsum(q for _, q in _matched(left, right)),
    )
    return max(ratios, default=math.inf), unmatched


def renyi_divergence(left: OutcomeDistribution, right: OutcomeDistribution, order: float) -> float:
    """The Rényi divergence of an order above 1, over the outcomes that both sides have."""
    moment = math.fsum(p**order * q ** (1 - order) for p, q in _matched(left, right))
    return math.log(moment) / (order - 1)


def hockey_stick(left: OutcomeDistribution, right: OutcomeDistribution, epsilon: float) -> float:
    """The least delta for which (epsilon, delta) holds from left to right, or a little more.

    All that was not enumerated counts as lost.
    """
    excess = (p - math.exp(epsilon) * right.outcomes.get(t, 0.0) for t, p in left.outcomes.items())
    return left.tail + math.fsum(each for each in excess if each > 0)


def _matched(left: OutcomeDistribution, right: OutcomeDistribution) -> Iterator[tuple[float, float]]:
    for outcome, p in left.outcomes.items():
        q = right.outcomes.get(outcome, 0.0)
        if p and q:
            yield p, q
