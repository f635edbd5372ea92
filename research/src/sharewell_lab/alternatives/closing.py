"""What a closing round adds: what analysts who are done have left, on one more seed measurement.

Expected errors do not depend on the data, so no noise is drawn. Two rounds are looked at. One is closed
during the stream, after a fixed part of it, and changes the answers to later questions. The other one is
closed after the last question, and all questions are asked once more, for free.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from sharewell_lab.alternatives.comparison import draw_streams
from sharewell_lab.alternatives.proposals import (
    CLOSED,
    Given,
    Settings,
    asked_free,
    begun,
    errors_of,
    place_of,
    played,
    proposed,
)
from sharewell_lab.alternatives.streams import STREAMS, TableStream
from sharewell_lab.estimates import IntervalEstimate, mean
from sharewell_lab.noise import NoNoise

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
            found = zip(*(both_rounds(stream, settings) for stream in drawn), strict=True)
            for at_end, pairs in zip((False, True), found, strict=True):
                without, with_round = zip(*pairs, strict=True)
                yield Gain(name, 1 - settings.seed_fraction, at_end, tuple(without), tuple(with_round))


def keeping_half(settings: Settings, analysts: int) -> Settings:
    """The same seed, measured with half of every share."""
    half = Fraction(1, 2)
    price = settings.budget.total / analysts * half / PAID
    return settings._replace(seed_fraction=half, query_budget=price)


Pair = tuple[float, float]


def both_rounds(stream: TableStream, settings: Settings) -> tuple[Pair, Pair]:
    """The expected share of useful answers without a round and with one: during the stream, at the end.

    During the stream, of the questions after the round.
    """
    place = place_of(CLOSED, stream)

    def useful(answers: Iterable[Given], first: int = 0) -> float:
        within = stream.expected_within([errors_of(each) for each in answers])
        return float(within[first:].mean())

    mechanism = begun(stream, settings, NoNoise())
    during = useful(played(mechanism, stream), place)
    before = useful(asked_free(mechanism, stream))
    mechanism.close_round(mechanism.analysts)
    after = useful(asked_free(mechanism, stream))
    if len(set(stream.analyst[place:].tolist())) < stream.analysts:  # An analyst is done by then.
        closed = useful(played(begun(stream, settings, NoNoise()), stream, CLOSED), place)
    else:
        closed = during
    return (during, closed), (before, after)
