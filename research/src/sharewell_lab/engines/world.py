"""One world of a trial: the stream, the order of service, the data, who is present, and the outcome."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import ConfigError, QueryError
from sharewell_lab.streams import Questions, first_equal


@dataclass(frozen=True)
class Runs:
    """Questions as runs of neighbouring groups: those of question q are first[q] to first[q + 1]."""

    first: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Distinct:
    """A stream's questions without repetition, over groups of cells that none of them tells apart.

    A run costs as much as the stream has groups, however many cells the domain has.
    """

    #: For every question of the stream, which of the different ones it is.
    which: NDArray[np.int64]
    #: For every cell, its group.
    group: NDArray[np.int64]
    #: How many cells each group has.
    width: NDArray[np.int64]
    #: One row a different question, one column a group: 1 where the question counts its cells.
    weights: NDArray[np.float64]

    @cached_property
    def size(self) -> NDArray[np.int64]:
        """How many cells each question counts."""
        return (self.weights @ self.width).astype(np.int64)

    @cached_property
    def overlaps(self) -> NDArray[np.float64]:
        """How many cells each pair shares: with an identity seed, all that their covariance needs."""
        return np.ascontiguousarray((self.weights * self.width) @ self.weights.T)

    @cached_property
    def runs(self) -> Runs:
        """The questions as runs of groups: one begins where the weight rises and ends where it falls."""
        edges = np.diff(self.weights, axis=1, prepend=0.0, append=0.0)
        question, start = np.nonzero(edges > 0)
        first = np.searchsorted(question, np.arange(len(self.weights) + 1))
        return Runs(first, start, np.nonzero(edges < 0)[1])

    def answers(self, per_cell: NDArray[np.int64]) -> NDArray[np.float64]:
        """Every question's answer on whole numbers per cell; exact while sums stay below 2^53."""
        return np.asarray(self.weights @ np.bincount(self.group, per_cell, len(self.width)))


_KNOWN: WeakKeyDictionary[Questions, Distinct] = WeakKeyDictionary()


def distinct(questions: Questions) -> Distinct:
    """The different questions of a stream, found once for every stream."""
    if questions not in _KNOWN:
        first, which = np.unique(questions.same, return_inverse=True)
        weights = questions.weights[first]
        if len(empty := np.flatnonzero(~weights.any(axis=1))):
            raise QueryError(
                f"Question {first[empty[0]]} selects no cell, so its answer is 0.",
                hint="Leave such questions out of the stream: no mechanism answers them.",
            )
        # QuotaGroups are in the order of their first cells, so that neighbours mostly stay neighbours.
        cells = first_equal(np.ascontiguousarray(weights.T))
        leaders, group, width = np.unique(cells, return_inverse=True, return_counts=True)
        _KNOWN[questions] = Distinct(which, group, width, weights[:, leaders].astype(np.float64))
    return _KNOWN[questions]


#: The fraction that a float stands for is looked for among those with at most this denominator.
LARGEST_DENOMINATOR = 10**9


@dataclass(frozen=True, eq=False)
class PlaySettings:
    """Shares, public numbers and the mechanisms' settings, as floats.

    >>> shares = np.array([0.1, 0.2])
    >>> setting = PlaySettings(shares, population=1000, seed_fraction=0.5, query_budget=0.01)
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
    #: For PMW: `players.pmw_tuning` gives what is None, from the population, the pot and alpha.
    updates: int | None = None
    threshold: int | None = None
    #: For PMW: alpha, for which it is tuned; None stands for the product's defaults.
    error_threshold: float | None = None

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


@dataclass(frozen=True, eq=False)
class World:
    """All that a run depends on but its noise.

    `order` lists the places of the questions in the order of being served, each once at the most, and
    only of analysts who are present. Those who are absent hold no share here.
    """

    questions: Questions
    order: NDArray[np.int64]
    counts: NDArray[np.int64]
    setting: PlaySettings
    present: NDArray[np.bool_]

    def __post_init__(self) -> None:
        questions, order = self.questions, self.order
        if self.counts.shape != (questions.cells,):
            raise ConfigError(
                f"There are {self.counts.size} counts for {questions.cells} cells.",
                hint="Give the data that the questions are about.",
            )
        if self.present.shape != (questions.analysts,) or len(self.setting.shares) != questions.analysts:
            raise ConfigError(
                f"The stream has {questions.analysts} analysts, who need one share each.",
                hint="Give `shares` and `present` one entry an analyst.",
            )
        if not self.present.any():
            raise ConfigError("No analyst is present, so there is no budget.")
        if len(order) and not 0 <= order.min() <= order.max() < len(questions):
            raise ConfigError("`order` names a question that the stream does not have.")
        if np.bincount(order, minlength=1).max() > 1:
            raise ConfigError("`order` names a question twice.")
        if not self.present[questions.analyst[order]].all():
            raise ConfigError(
                "`order` contains a question of an absent analyst.",
                hint="Serve only questions of those present, as `Questions.places` lists them.",
            )

    @cached_property
    def distinct(self) -> Distinct:
        """The different questions of the stream."""
        return distinct(self.questions)

    @cached_property
    def served(self) -> NDArray[np.int64]:
        """Which of the different questions is served, step by step."""
        return self.distinct.which[self.order]

    @cached_property
    def asker(self) -> NDArray[np.int64]:
        """Who asks it, step by step."""
        return self.questions.analyst[self.order]

    @cached_property
    def truth(self) -> NDArray[np.float64]:
        """The true answer of every different question."""
        return self.distinct.answers(self.counts)

    @cached_property
    def pot(self) -> Fraction:
        """What those present hold together."""
        return self.setting.pot(self.present)


#: The payer of an answer that no analyst paid for.
NO_PAYER = -1


@dataclass(frozen=True, eq=False)
class Run:
    """One number a question, in order of *arrival*; NaN where the question was not served."""

    #: The answer; NaN where it was refused.
    value: NDArray[np.float64]
    #: How far it is from the truth; infinite where it was refused.
    error: NDArray[np.float64]
    #: The standard error that comes with it; NaN where the mechanism does not know it, infinite where
    #: it was refused.
    expected: NDArray[np.float64]
    #: Who paid for it, now or before; NO_PAYER where it is a guess, a reconstruction or a seed row.
    payer: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        world: World,
        value: NDArray[np.float64],
        expected: NDArray[np.float64],
        payer: NDArray[np.int64],
    ) -> Run:
        """A run from what came of each step; a value that is NaN was refused."""
        error = np.abs(value - world.truth[world.served])
        error[np.isnan(value)] = np.inf
        paid = np.full(len(world.questions), NO_PAYER, dtype=np.int64)
        paid[world.order] = payer
        return cls(
            _by_arrival(world, value), _by_arrival(world, error), _by_arrival(world, expected), paid
        )


def _by_arrival(world: World, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """One number a step, put where its question arrived."""
    arrived = np.full(len(world.questions), np.nan)
    arrived[world.order] = steps
    return arrived
