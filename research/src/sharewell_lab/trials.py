"""Trials: one random stream for every contestant, with all analysts, each alone, and without each."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import ConfigError
from sharewell.query.domain import Domain
from sharewell.schedulers.registry import SCHEDULERS
from sharewell_lab import orders
from sharewell_lab.orders import ServiceOrder
from sharewell_lab.streams import Asker, Questions, child, draw_questions, first_with

if TYPE_CHECKING:
    from sharewell_lab.engines import PlaySettings

#: Columns of tidy results by name.
Columns = dict[str, NDArray[Any]]

MECHANISMS = ("uniform", "laplace", "pmw", "scr", "scr-as-printed")
#: The mechanisms that know the standard error of their answers.
KNOWS_ERRORS = ("laplace", "scr", "scr-as-printed")

#: How many questions the average share pays for, after the seed, where no price is set.
PAID_QUESTIONS = 8
#: Laplace's price where none is set: at it, this part of the answers is off by more than the threshold.
LAPLACE_MISSES = 0.05


@dataclass(frozen=True)
class Contestant:
    """A mechanism behind a scheduler, with settings that differ from those of the case, if any do."""

    label: str
    mechanism: str
    scheduler: str = "none"
    independent: bool = False
    probabilities: tuple[float, ...] | None = None
    seed_fraction: float | None = None
    query_budget: float | None = None
    updates: int | None = None
    threshold: int | None = None
    #: For a randomized scheduler: draw only among the analysts who are not done.
    skip_done: bool = False

    def __post_init__(self) -> None:
        for what, value, known in (
            ("mechanism", self.mechanism, MECHANISMS),
            ("scheduler", self.scheduler, tuple(SCHEDULERS)),
        ):
            if value not in known:
                raise ConfigError(
                    f"Unknown {what} {value!r}.", hint=f"Choose one of {', '.join(known)}."
                )
        for given, what in ((self.probabilities, "probabilities"), (self.skip_done, "skip_done")):
            if given and self.scheduler != "randomized":
                raise ConfigError(
                    f"The scheduler of {self.label} is not randomized, so it takes no {what}.",
                    hint='Write scheduler = "randomized".',
                )

    def check(self, analysts: int) -> None:
        """Refuse probabilities that are not one for each analyst."""
        chances = self.probabilities
        if chances is None:
            return
        if len(chances) != analysts or min(chances) <= 0 or abs(sum(chances) - 1) > 1e-9:
            raise ConfigError(
                f"The probabilities of {self.label} must be {analysts} positive numbers that sum to 1.",
                hint="Give one for each analyst, in order; a third can be written as 1/3.",
            )


#: Those who take part in the paper's experiments.
CONTESTANTS: Mapping[str, Contestant] = {
    contestant.label: contestant
    for contestant in (
        Contestant("Uniform", "uniform"),
        Contestant("Ind", "pmw", independent=True),
        Contestant("Laplace", "laplace"),
        Contestant("PMW", "pmw"),
        Contestant("RR", "pmw", "round-robin"),
        Contestant("RS", "pmw", "randomized"),
        Contestant("RS skip", "pmw", "randomized", skip_done=True),
        Contestant("SCR printed", "scr-as-printed"),
        Contestant("SCR", "scr"),
    )
}


@dataclass(frozen=True)
class Case:
    """One point of a study: every number that its trials are played with.

    `shares` are parts of the budget, and `query_budget` is one as well; without them shares are equal,
    and a price is found for each mechanism. `chances` say how likely each analyst asks; without them the
    first does with probability `p` and the others alike.
    """

    epsilon: float
    analysts: int
    population: float
    error_threshold: float
    p: float = 0.1
    chances: tuple[float, ...] | None = None
    shares: tuple[float, ...] | None = None
    seed_fraction: float = 0.5
    query_budget: float | None = None
    updates: int | None = None
    threshold: int | None = None
    swept: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        for what, right, should in (
            ("epsilon", 0 < self.epsilon < math.inf, "greater than 0"),
            ("analysts", self.analysts >= 1, "at least 1"),
            ("population", 0 < self.population < math.inf, "greater than 0"),
            ("error_threshold", 0 < self.error_threshold < math.inf, "greater than 0"),
            ("p", 0 <= self.p <= 1, "from 0 to 1"),
            ("seed_fraction", 0 < self.seed_fraction < 1, "between 0 and 1"),
            ("query_budget", self.query_budget is None or 0 < self.query_budget <= 1, "a part of 1"),
            ("updates", self.updates is None or self.updates >= 1, "at least 1"),
            ("threshold", self.threshold is None or self.threshold >= 0, "at least 0"),
        ):
            if not right:
                raise ConfigError(f"{what} must be {should}, not {getattr(self, what)}.")
        if self.chances is not None and not (min(self.chances) >= 0 and sum(self.chances) > 0):
            raise ConfigError(
                "No analyst may have a negative chance to ask, and at least one must be positive."
            )
        for what, values in (("shares", self.shares), ("chances", self.chances)):
            if values is not None and len(values) != self.analysts:
                raise ConfigError(
                    f"There are {self.analysts} analysts and {len(values)} {what}.",
                    hint="Give one for each analyst, or none at all.",
                )
        if self.shares is not None and (min(self.shares) <= 0 or sum(self.shares) > 1 + 1e-9):
            raise ConfigError(
                "Shares are positive parts of the budget, and together at most 1.",
                hint="Divide each by their sum.",
            )

    @property
    def budgets(self) -> NDArray[np.float64]:
        """The epsilon of each analyst."""
        parts = (1 / self.analysts,) * self.analysts if self.shares is None else self.shares
        return self.epsilon * np.array(parts)

    @property
    def arrival(self) -> NDArray[np.float64]:
        """How likely each analyst is to ask next."""
        if self.chances is None:
            return first_with(self.p, self.analysts)
        weights = np.array(self.chances, dtype=np.float64)
        return np.asarray(weights / weights.sum())

    def price(self, contestant: Contestant) -> float:
        """What a measured question costs a contestant, in epsilon."""
        own = self.query_budget if contestant.query_budget is None else contestant.query_budget
        if own is not None:
            return self.epsilon * own
        if contestant.mechanism == "laplace":
            return min(self.epsilon, -math.log(LAPLACE_MISSES) / self.error_threshold)
        left = 1 - _first(contestant.seed_fraction, self.seed_fraction)
        return float(self.budgets.mean()) * left / PAID_QUESTIONS

    def setting(self, contestant: Contestant) -> PlaySettings:
        """What a contestant's runs depend on beside the questions and the data."""
        from sharewell_lab.engines import PlaySettings

        return PlaySettings(
            shares=self.budgets,
            population=self.population,
            seed_fraction=_first(contestant.seed_fraction, self.seed_fraction),
            query_budget=self.price(contestant),
            updates=self.updates if contestant.updates is None else contestant.updates,
            threshold=self.threshold if contestant.threshold is None else contestant.threshold,
            error_threshold=self.error_threshold,
        )


def play_trial(
    domain: Domain,
    counts: NDArray[np.int64],
    askers: Sequence[Asker],
    contestants: Sequence[Contestant],
    case: Case,
    seed: np.random.SeedSequence,
) -> Columns:
    """Play one trial: tidy columns with one row a contestant and analyst.

    All contestants get the same questions, and so do all cases that differ in other things than who
    asks what. Whatever is random has a seed with a key of its own, so that no result depends on which
    others are computed, or where.
    """
    questions = draw_questions(domain, askers, case.arrival, child(seed, 0))
    worlds = _Worlds(questions, counts, case, contestants, child(seed, 1))
    blocks = [worlds.rows(contestant) for contestant in contestants]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


@dataclass(frozen=True)
class _Outcome:
    """What came of one run: useful answers of each analyst, and how long it took."""

    useful: NDArray[np.int64]
    expected: NDArray[np.float64]
    order: ServiceOrder


class _Worlds:
    """The runs of one trial; a run that several contestants have in common is played once.

    Independent PMW is what each analyst of PMW gets alone, and so is a scheduler's rotation of one.
    """

    def __init__(
        self,
        questions: Questions,
        counts: NDArray[np.int64],
        case: Case,
        contestants: Sequence[Contestant],
        seed: np.random.SeedSequence,
    ) -> None:
        self.questions = questions
        self._counts = counts
        self._case = case
        self._seed = child(seed, _key(repr(case)))
        self._played: dict[tuple[Contestant, bytes], _Outcome] = {}
        mechanisms = {contestant.mechanism for contestant in contestants}
        self._both = {"scr", "scr-as-printed"} <= mechanisms
        self._settings: dict[Contestant, PlaySettings] = {}
        self._all_present = np.ones(questions.analysts, dtype=np.bool_)

    def rows(self, contestant: Contestant) -> Columns:
        """A contestant's rows of the results, one an analyst."""
        analysts = self.questions.analysts
        joint = self._outcome(contestant, self._all_present)
        if contestant.independent or contestant.mechanism == "uniform":
            # No other analyst can make a difference.
            here, expected = joint.useful, joint.expected
            alone = without = (here, expected)
        else:
            here, expected = joint.useful, joint.expected
            alone = self._own(contestant)
            others = [
                (j, self._outcome(contestant, self._all_present & (np.arange(analysts) != j)))
                for j in range(analysts)
                if analysts > 1
            ]
            without = self._largest(others, joint)
        order = joint.order
        return {
            "contestant": np.full(analysts, contestant.label),
            "analyst": np.arange(analysts),
            "asked": self.questions.asked(),
            "useful": here,
            "alone": alone[0],
            "without": without[0],
            "expected_useful": expected,
            "expected_alone": alone[1],
            "expected_without": without[1],
            "steps": np.full(analysts, order.steps),
            "stalls": np.full(analysts, order.stalls),
        }

    def _own(self, contestant: Contestant) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """What each analyst gets alone."""
        eye = np.eye(self.questions.analysts, dtype=np.bool_)
        found = [self._outcome(contestant, present) for present in eye]
        return (
            np.array([outcome.useful[i] for i, outcome in enumerate(found)]),
            np.array([outcome.expected[i] for i, outcome in enumerate(found)]),
        )

    def _largest(
        self, others: Sequence[tuple[int, _Outcome]], joint: _Outcome
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The most that each analyst gets without one other."""
        if not others:
            return joint.useful, joint.expected
        analysts = range(self.questions.analysts)
        return (
            np.array([max(outcome.useful[i] for j, outcome in others if j != i) for i in analysts]),
            np.array([max(outcome.expected[i] for j, outcome in others if j != i) for i in analysts]),
        )

    def _outcome(self, contestant: Contestant, present: NDArray[np.bool_]) -> _Outcome:
        player = replace(contestant, label="")
        if present.sum() == 1:
            player = replace(
                player, scheduler="none", probabilities=None, skip_done=False, independent=False
            )
        key = (player, present.tobytes())
        if key not in self._played:
            self._play(player, present)
        return self._played[key]

    def _play(self, player: Contestant, present: NDArray[np.bool_]) -> None:
        from sharewell_lab import engines

        places = self.questions.places(present)
        order = self._schedule(player, present, places)
        world = present.tobytes()
        if player.independent:
            self._played[player, world] = _Outcome(*self._own(player), order)
            return
        # As printed differs from estimates only in what is returned, so both get the same noise.
        scr = replace(player, mechanism="scr")
        printed = replace(player, mechanism="scr-as-printed")
        noisy = scr if player == printed else player
        run = (
            self.questions,
            places[order.places],
            self._counts,
            self._setting(player),
            present,
            child(self._seed, _key(repr(noisy)), _key(world)),
        )
        if self._both and player in (scr, printed):
            runs = zip((scr, printed), engines.play_scr_both(*run), strict=True)
        else:
            runs = zip((player,), (engines.play(player.mechanism, *run),), strict=True)
        for played, came in runs:
            self._played[played, world] = _Outcome(
                self._useful(came.error), self._expected(played, came.expected), order
            )

    def _schedule(
        self, player: Contestant, present: NDArray[np.bool_], places: NDArray[np.int64]
    ) -> ServiceOrder:
        analyst = self.questions.analyst[places]
        if player.scheduler == "round-robin":
            return orders.rotation(analyst, present.astype(np.int64).tolist())
        if player.scheduler == "weighted-round-robin":
            return orders.rotation(analyst, orders.turns_of(self._case.budgets.tolist(), present))
        if player.scheduler == "randomized":
            rng = np.random.default_rng(
                child(self._seed, _key(repr(player)), _key(present.tobytes()), 1)
            )
            weights = np.array(player.probabilities or [1.0] * len(present)) * present
            draw = orders.drawn_among_active if player.skip_done else orders.drawn
            return draw(analyst, weights / weights.sum(), rng.random)
        return orders.in_order(analyst)

    def _setting(self, player: Contestant) -> PlaySettings:
        if player not in self._settings:
            self._settings[player] = self._case.setting(player)
        return self._settings[player]

    def _useful(self, error: NDArray[np.float64]) -> NDArray[np.int64]:
        # What was not asked has no error: NaN is not within any threshold.
        within = self.questions.analyst[error <= self._case.error_threshold]
        return np.bincount(within, minlength=self.questions.analysts)

    def _expected(self, player: Contestant, error: NDArray[np.float64]) -> NDArray[np.float64]:
        if player.mechanism not in KNOWS_ERRORS:
            return np.full(self.questions.analysts, np.nan)
        return self._useful(error).astype(np.float64)


def _first(own: float | None, default: float) -> float:
    return default if own is None else own


def _key(text: str | bytes) -> int:
    return zlib.crc32(text.encode() if isinstance(text, str) else text)
