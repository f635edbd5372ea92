"""What a closing round adds: what analysts who are done have left, on one more seed measurement.

Expected errors do not depend on the data, so no noise is drawn. Two rounds are looked at. One is closed
during the stream, after a fixed part of it, and changes the answers to later questions. The other one is
closed after the last question, and all questions are asked once more, for free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from sharewell_lab.alternatives.comparison import draw_streams
from sharewell_lab.alternatives.proposals import CLOSED, Settings, expected_errors, proposed
from sharewell_lab.alternatives.streams import STREAMS, TableStream
from sharewell_lab.estimates import IntervalEstimate, mean

#: How many questions the part that is not donated pays for, where half of a share is kept.
PAID = 16


class Gain(NamedTuple):
    """The expected share of useful answers, without a closing round and with one, by stream drawn."""

    stream: str
    #: The part of a share that is kept for questions, and what the round is closed after.
    kept: Fraction
    at_end: bool
    without: tuple[float, ...]
    with_round: tuple[float, ...]

    @property
    def before(self) -> float:
        """The mean share without a round."""
        return mean(self.without).value

    @property
    def gain(self) -> IntervalEstimate:
        """What the round adds to the share."""
        return mean([b - a for a, b in zip(self.without, self.with_round, strict=True)])


def gains(
    streams: Sequence[str] = tuple(STREAMS), epsilon: float = 0.1, trials: int = 3, seed: int = 1
) -> Iterator[Gain]:
    """What both rounds add with the recommended settings, and where half of every share is kept."""
    for name in streams:
        drawn = draw_streams(name, trials, seed)
        for half in (False, True):
            settings = proposed(drawn[0], epsilon)
            settings = keeping_half(settings, drawn[0].analysts) if half else settings
            for at_end in (False, True):
                pairs = [_pair(stream, settings, at_end) for stream in drawn]
                without, with_round = zip(*pairs, strict=True)
                yield Gain(name, 1 - settings.seed_fraction, at_end, tuple(without), tuple(with_round))


def keeping_half(settings: Settings, analysts: int) -> Settings:
    """The same seed, measured with half of every share."""
    half = Fraction(1, 2)
    price = settings.budget.total / analysts * half / PAID
    return settings._replace(seed_fraction=half, query_budget=price)


def _pair(stream: TableStream, settings: Settings, at_end: bool) -> tuple[float, float]:
    """The expected share of useful answers among those that a round can change: without it, and with."""
    later = slice(0 if at_end else round(CLOSED * len(stream.questions)), None)
    found = []
    for closed in (None, CLOSED):
        errors = expected_errors(stream, settings, closed=closed, again=at_end)
        found.append(float(stream.expected_within(errors)[later].mean()))
    return found[0], found[1]
