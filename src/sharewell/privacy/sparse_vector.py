"""The sparse vector technique: which guesses are far from the truth, paid for by the far ones only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any, NoReturn

from sharewell.errors import Exhausted, PrivacyError
from sharewell.privacy.noise import Noise, laplace_scale
from sharewell.privacy.sensitivity import rebuilt_queries
from sharewell.query.block import Block, Neighbours
from sharewell.query.diagram import MAX_WEIGHT
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery


@dataclass(frozen=True)
class SparseVectorPlan:
    """What a sparse vector will do, and with how much noise: public, and nothing is drawn yet.

    Algorithm 7 of Lyu, Su and Li (2017), without its numeric answers, which are measured separately.
    """

    epsilon: Fraction
    threshold: int
    positives: int
    sensitivity: int = 1
    neighbours: Neighbours = "add-remove"
    #: One person changes an answer by so many times the sensitivity, which is that to one row.
    max_rows_per_person: int = 1

    def __post_init__(self) -> None:
        least_of = {"threshold": 0, "positives": 1, "sensitivity": 1, "max_rows_per_person": 1}
        for name, least in least_of.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_WEIGHT:
                raise PrivacyError(
                    f"The {name} of a sparse vector cannot be {value!r}.",
                    hint=f"Use a whole number from {least} to {MAX_WEIGHT:,}.",
                )
        # Computed here so that an impossible scale is refused before anything is charged.
        _ = self.threshold_scale, self.query_scale

    @cached_property
    def parts(self) -> tuple[Fraction, Fraction]:
        """Divide epsilon between threshold and tests as 1 : (2 c)^(2/3), which makes tests sharpest.

        Any division is private; this one is rational, and its parts sum to epsilon exactly.
        """
        ratio = Fraction(round((2 * self.positives) ** (2 / 3) * 1000), 1000)
        threshold = self.epsilon / (1 + ratio)
        return threshold, self.epsilon - threshold

    @cached_property
    def threshold_scale(self) -> float:
        """The scale of the noise on the threshold: sensitivity / e1."""
        return laplace_scale(self.sensitivity * self.max_rows_per_person, self.parts[0])

    @cached_property
    def query_scale(self) -> float:
        """The scale of the noise on each test: 2 c sensitivity / e2.

        The 2 stays: one row can bring one guess nearer to the truth and take another further away.
        """
        changed = self.sensitivity * self.max_rows_per_person
        return laplace_scale(2 * self.positives * changed, self.parts[1])

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data, for a ledger."""
        data = {**asdict(self), "epsilon": str(self.epsilon)}
        if self.max_rows_per_person == 1:
            del data["max_rows_per_person"]  # As before there were several.
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SparseVectorPlan:
        """The plan that `to_json` wrote."""
        return cls(**{**data, "epsilon": Fraction(data["epsilon"])})

    def arm(self, noise: Noise) -> int:
        """The threshold with its noise, drawn once for all tests. Secret: it must never be shown."""
        return self.threshold + int(noise.laplace(self.threshold_scale, 1)[0])


class SparseVector:
    """Tests |q.x - guess| >= threshold, any number of times, until so many tests have said yes.

    Privacy: plan.epsilon in all, however many tests are made. Trusts `answer` to be exact.
    """

    def __init__(
        self,
        plan: SparseVectorPlan,
        domain: Domain,
        answer: Callable[[LinearQuery], int],
        noise: Noise,
        record: Callable[[LinearQuery, int], None],
        noisy_threshold: int,
        positives_left: int,
    ) -> None:
        self.plan = plan
        self.positives_left = positives_left
        self._domain = domain
        self._answer = answer
        self._noise = noise
        self._record = record
        self._lock = Lock()
        self._noisy_threshold = noisy_threshold

    def snapshot(self) -> SparseVector:
        """The plan and the positives that are left as of now.

        Privacy: holds neither the data nor the noisy threshold, and refuses every test.
        """

        def refuse(*_: object) -> NoReturn:
            raise PrivacyError("A snapshot is read-only.", hint="Ask the live mechanism.")

        left = self.positives_left
        return SparseVector(self.plan, self._domain, refuse, self._noise, refuse, 0, left)

    def exceeds(self, query: LinearQuery, guess: float) -> bool:
        """Whether the guess is, up to noise, at least the threshold away from the truth."""
        with self._lock:
            own, whole = self._check(query, guess)
            noise = int(self._noise.laplace(self.plan.query_scale, 1)[0])
            # In one expression: no variable holds the distance for a debugger or a traceback to show.
            if abs(self._answer(own) - whole) + noise < self._noisy_threshold:
                return False
            self.positives_left -= 1
            return self._stored(own, whole)

    def _stored(self, query: LinearQuery, whole: int) -> bool:
        """Store a yes, and only then tell it.

        Where it cannot be stored, the answer is no: an error would reveal a yes that is not counted. Had
        it been a no, nothing would have been stored either; so whenever the ledger fails, the answer
        is no whatever the data is, and tells nothing.
        """
        try:
            self._record(query, whole)
        except Exception:
            return False
        return True

    def _check(self, query: LinearQuery, guess: float) -> tuple[LinearQuery, int]:
        """The kernel's copy of the query, and the guess as a whole number.

        Refuses what must not be tested, by public things alone.
        """
        if self.positives_left == 0:
            raise Exhausted(
                f"The sparse vector has given its {self.plan.positives} positive answers.",
                hint="Answer from what is already known.",
            )
        [own] = rebuilt_queries([query], self._domain)
        if not isinstance(guess, int | float) or not math.isfinite(guess) or abs(guess) > 2**62:
            raise PrivacyError(f"The guess must be a finite number, not {guess!r}.")
        if _sensitivity(own, self.plan.neighbours) > self.plan.sensitivity:
            raise PrivacyError(
                f"One row can change the query by more than the {self.plan.sensitivity} paid for.",
                hint="Open the sparse vector with a larger sensitivity.",
            )
        return own, round(guess)

    def __repr__(self) -> str:
        return f"SparseVector({self.plan.positives} positives, {self.positives_left} left)"


@lru_cache(maxsize=4096)
def _sensitivity(query: LinearQuery, neighbours: Neighbours) -> int:
    return Block(query.domain, [query]).l1_sensitivity(neighbours)
