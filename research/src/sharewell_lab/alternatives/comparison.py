"""Plays all contestants on the same streams at the same (epsilon, delta), and scores them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sharewell.privacy.budget import Currency
from sharewell_lab.alternatives.proposals import (
    CURRENCIES,
    SEEDS,
    budget_of,
    everything_once,
    play_proposed,
    proposed,
)
from sharewell_lab.alternatives.rivals import ALTERNATIVES, Alternative, Answers
from sharewell_lab.alternatives.streams import STREAMS, Numbers, TableStream
from sharewell_lab.estimates import IntervalEstimate, mean

#: Play one setting of a contestant on a stream at an epsilon.
Play = Callable[[TableStream, float, float | str, np.random.Generator], Answers]
Watch = Callable[[int, int], None]

EPSILONS = (0.1, 1.0)
#: The contestant that measures Sharewell's seed with the whole budget, and keeps nothing.
SAME_SEED = "Everything once, Sharewell's seed"


@dataclass(frozen=True)
class Contender:
    """A contestant of the comparison, and the settings of which its best is reported."""

    label: str
    play: Play
    settings: tuple[float | str, ...]


def contenders() -> tuple[Contender, ...]:
    """All contestants: the alternatives, everything once, and Sharewell as it recommends itself."""
    return (
        *(Contender(one.label, _rival(one), one.settings) for one in ALTERNATIVES),
        Contender("Everything once, identity", _once, ("zcdp identity", "pure identity")),
        Contender(
            "Everything once, best marginals",
            _once,
            tuple(
                f"{currency} {seed}"
                for currency in CURRENCIES
                for seed in ("marginals(1)", "marginals(2)", "views")
            ),
        ),
        Contender(SAME_SEED, _once_proposed, ("",)),
        Contender(
            "Sharewell", lambda stream, epsilon, _, rng: play_proposed(stream, epsilon, rng), ("",)
        ),
    )


def _rival(rival: Alternative) -> Play:
    currency: Currency = "pure" if rival.kind == "laplace" else "zcdp"

    def play(
        stream: TableStream, epsilon: float, setting: float | str, rng: np.random.Generator
    ) -> Answers:
        return rival.play(stream, float(budget_of(currency, epsilon).total), float(setting), rng)

    return play


def _once(
    stream: TableStream, epsilon: float, setting: float | str, rng: np.random.Generator
) -> Answers:
    currency, seed = str(setting).split(" ")
    budget = budget_of("pure" if currency == "pure" else "zcdp", epsilon)
    return everything_once(stream, budget, SEEDS[seed](stream), rng)


def _once_proposed(
    stream: TableStream, epsilon: float, _: float | str, rng: np.random.Generator
) -> Answers:
    settings = proposed(stream, epsilon)
    return everything_once(stream, settings.budget, settings.seed, rng)


@dataclass(frozen=True)
class Score:
    """How a contestant did with its best setting: a share of useful answers for every stream drawn."""

    stream: str
    epsilon: float
    contestant: str
    setting: str
    #: Of all questions, and of those of the analyst who has the smallest share.
    totals: tuple[float, ...]
    worst: tuple[float, ...]

    @property
    def total(self) -> float:
        """The mean share of all questions."""
        return float(np.mean(self.totals))

    @property
    def worst_off(self) -> float:
        """The mean share of the worst-off analyst's questions."""
        return float(np.mean(self.worst))


class Lead(NamedTuple):
    """By how much a contestant is ahead of another, over the same streams: in total, and at worst."""

    own: Score
    other: Score

    @property
    def total(self) -> IntervalEstimate:
        """The mean difference of all questions."""
        return mean(np.subtract(self.own.totals, self.other.totals))

    @property
    def worst_off(self) -> IntervalEstimate:
        """The mean difference of the worst-off analyst's questions."""
        return mean(np.subtract(self.own.worst, self.other.worst))


def compare(
    streams: Sequence[str] = tuple(STREAMS),
    epsilons: Sequence[float] = EPSILONS,
    trials: int = 3,
    repeats: int = 2,
    seed: int = 1,
    chosen: Sequence[Contender] | None = None,
    progress: Watch | None = None,
) -> list[Score]:
    """Play every contestant with each of its settings, and keep the best one by the total."""
    among = contenders() if chosen is None else chosen
    watch = progress or (lambda _done, _all: None)
    scores, done, every = [], 0, len(streams) * len(epsilons) * len(among)
    for name in streams:
        drawn = draw_streams(name, trials, seed)
        for epsilon in epsilons:
            for contender in among:
                scores.append(best_setting(contender, drawn, epsilon, repeats, seed))
                done += 1
                watch(done, every)
    return scores


def draw_streams(name: str, trials: int, seed: int) -> list[TableStream]:
    """So many streams of a kind; the first ones are the same whatever the number."""
    key = zlib.crc32(name.encode())
    return [STREAMS[name](np.random.default_rng([seed, trial, key])) for trial in range(trials)]


def best_setting(
    contender: Contender, drawn: Sequence[TableStream], epsilon: float, repeats: int, seed: int
) -> Score:
    """The score of the setting that serves a contestant best on these streams."""
    played = []
    for setting in contender.settings:
        found = []
        for trial, stream in enumerate(drawn):
            # The same random numbers for all: equal measurements then have equal noise.
            noise = [np.random.default_rng([seed, trial, run]) for run in range(repeats)]
            found.append(
                shares(stream, [contender.play(stream, epsilon, setting, rng) for rng in noise])
            )
        totals, worst = zip(*found, strict=True)
        played.append(
            Score(drawn[0].name, epsilon, contender.label, str(setting), tuple(totals), tuple(worst))
        )
    return max(played, key=lambda score: (score.total, score.worst_off))


def shares(stream: TableStream, runs: Sequence[Answers]) -> tuple[float, float]:
    """The share of useful answers of all questions, and of the worst-off analyst's.

    A table counts as the share of its rows that are within alpha. Runs differ in their noise, and an
    analyst's share is the mean over them: who is worst off is not a matter of luck with the noise.
    """
    within: Numbers = np.mean([stream.within(answers) for answers in runs], axis=0)
    by_analyst = [within[stream.analyst == who].mean() for who in range(stream.analysts)]
    return float(within.mean()), float(min(by_analyst))


def write_scores(scores: Sequence[Score], path: Path) -> None:
    """Store scores as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(one) for one in scores], indent=1) + "\n", encoding="utf-8")


def read_scores(path: Path) -> list[Score]:
    """Scores that were stored."""
    return [
        Score(**{**one, "totals": tuple(one["totals"]), "worst": tuple(one["worst"])})
        for one in json.loads(path.read_text(encoding="utf-8"))
    ]


def behind(scores: Sequence[Score], label: str) -> Iterator[Lead]:
    """Where a contestant has less than another on average, in total or for the worst-off."""
    mine = {(one.stream, one.epsilon): one for one in scores if one.contestant == label}
    for other in scores:
        own = mine.get((other.stream, other.epsilon))
        if own is None or other.contestant == label:
            continue
        if own.total < other.total or own.worst_off < other.worst_off:
            yield Lead(own, other)
