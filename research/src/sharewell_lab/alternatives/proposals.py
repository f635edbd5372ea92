"""Sharewell itself with several settings, by name, and "everything once": one release and nothing kept.

These play the product's own mechanism, Seeded Cache and Reconstruct, question by question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.special import erf

from sharewell import Budget, Curator
from sharewell.mechanisms import seed as seeds
from sharewell.mechanisms.base import Answer, Seed
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.planned_seed import PlannedSeed
from sharewell.mechanisms.seed_planner import Plan, plan_seed
from sharewell.privacy.budget import Currency
from sharewell.privacy.noise import Noise
from sharewell.query.domain import Domain
from sharewell_lab.alternatives.rivals import Answers
from sharewell_lab.alternatives.streams import Numbers, TableQuestion, TableStream
from sharewell_lab.noise import NoNoise, SeededNoise

#: The delta of every contestant with Gaussian noise.
DELTA = "1/1000000"
#: The currencies, the first of which wins a tie.
CURRENCIES: tuple[Currency, ...] = ("zcdp", "pure")


def budget_of(currency: Currency, epsilon: float) -> Budget:
    """The budget in a currency that is (epsilon, delta)-private; pure epsilon is so for any delta."""
    exact = Fraction(str(epsilon))
    return Budget.pure(exact) if currency == "pure" else Budget.zcdp(exact, DELTA)


def marginals(stream: TableStream, most: int) -> Seed:
    """All marginals of so many attributes, or of all attributes where there are fewer."""
    domain = stream.data.domain
    return seeds.marginals(domain, min(most, len(domain.shape)))


def views(stream: TableStream) -> Seed:
    """The marginals that the expected questions are about, without those that another one contains."""
    found = {frozenset(question.view) for expected in stream.expects for question in expected}
    most = [view for view in found if not any(view < other for other in found)]
    names = stream.data.domain.names
    return seeds.marginals_of(
        stream.data.domain, [[names[level] for level in view] for view in sorted(map(sorted, most))]
    )


def planned(stream: TableStream, currency: Currency) -> Seed:
    """Every donor's own plan, from what they declare; those who declare the same have the same."""
    plans = {
        who: _plan(declared, stream.data.domain, currency) for who, declared in enumerate(stream.expects)
    }
    return PlannedSeed(
        stream.data.domain, currency, plans={str(who): plan for who, plan in plans.items()}
    )


@lru_cache(maxsize=64)
def _plan(declared: tuple[TableQuestion, ...], domain: Domain, currency: Currency) -> Plan:
    return plan_seed(domain, [question.asked for question in declared], currency, "add-remove")


#: The rows that are measured at the start, by name, for a stream and a currency.
SEEDS: Mapping[str, Callable[[TableStream, Currency], Seed]] = {
    "identity": lambda stream, _: seeds.identity(stream.data.domain),
    "marginals(1)": lambda stream, _: marginals(stream, 1),
    "marginals(2)": lambda stream, _: marginals(stream, 2),
    "views": lambda stream, _: views(stream),
    "planned": planned,
}


@dataclass(frozen=True)
class Proposal:
    """Settings of Seeded Cache and Reconstruct.

    `seed_fraction` of every share goes to the seed; what is left of it pays for `purchases` questions.
    """

    label: str
    #: None: the one in which more of the expected answers are within alpha, which is public.
    currency: Currency | None
    seed: str
    seed_fraction: Fraction
    purchases: int

    def play(self, stream: TableStream, epsilon: float, rng: np.random.Generator) -> Answers:
        """Every question, asked by its analyst in order of arrival."""
        currency = self.currency or self.best_currency(stream, epsilon)
        mechanism = self._begun(stream, currency, epsilon, SeededNoise(rng))
        curator, price = mechanism.curator, mechanism.query_budget
        known: dict[object, Numbers] = {}
        answers: Answers = []
        for question, who in zip(stream.questions, stream.analyst.astype(str).tolist(), strict=True):
            pays = curator.left(who) >= price
            if pays or question.key not in known:
                before = curator.left(who)
                values = _values(mechanism.ask(question.asked, who))
                if curator.left(who) != before:
                    known.clear()  # A purchase may sharpen every other answer.
                known[question.key] = values
            answers.append(known[question.key])
        return answers

    @lru_cache(maxsize=256)  # noqa: B019 - proposals live as long as the program
    def best_currency(self, stream: TableStream, epsilon: float) -> Currency:
        """The currency in which more of the expected answers are within alpha at the start."""
        begun = {one: self._begun(stream, one, epsilon, NoNoise()) for one in CURRENCIES}
        return max(begun, key=lambda one: expected_useful(stream, begun[one]))

    def _begun(
        self, stream: TableStream, currency: Currency, epsilon: float, noise: Noise
    ) -> CacheReconstruct:
        """The mechanism, with its seed measured."""
        budget = budget_of(currency, epsilon)
        share = budget.total / stream.analysts
        shares = {str(who): share for who in range(stream.analysts)}
        return CacheReconstruct(
            Curator(stream.data, budget, shares, noise=noise),
            seed=SEEDS[self.seed](stream, currency),
            seed_fraction=self.seed_fraction,
            query_budget=share * (1 - self.seed_fraction) / self.purchases,
        )


def expected_useful(stream: TableStream, mechanism: CacheReconstruct) -> float:
    """The part of the expected answers that should be within alpha, by their standard errors.

    Privacy: free, and the same for all data, since errors depend on the questions alone.
    """
    declared = {question.key: question for some in stream.expects for question in some}
    found = []
    for question in declared.values():
        answers = _several(mechanism.ask(question.asked, "0", pay=False))
        errors = np.array([np.inf if a.standard_error is None else a.standard_error for a in answers])
        reach = stream.error_threshold / np.maximum(errors, 1e-300)
        found.append(float(np.mean(erf(reach / np.sqrt(2)))))
    return float(np.mean(found))


def everything_once(
    stream: TableStream, epsilon: float, seed: str, currency: Currency, rng: np.random.Generator
) -> Answers:
    """One measurement with the whole budget, and every answer by least squares from it."""
    budget = budget_of(currency, epsilon)
    mechanism = CacheReconstruct(
        Curator(stream.data, budget, {"all": budget.total}, noise=SeededNoise(rng)),
        seed=SEEDS[seed](stream, currency),
        seed_fraction="1",
        query_budget=budget.total,
    )
    known: dict[object, Numbers] = {}
    for question in stream.questions:
        if question.key not in known:
            known[question.key] = _values(mechanism.ask(question.asked, "all", pay=False))
    return [known[question.key] for question in stream.questions]


def _several(answers: Answer | tuple[Answer, ...]) -> tuple[Answer, ...]:
    return answers if isinstance(answers, tuple) else (answers,)


def _values(answers: Answer | tuple[Answer, ...]) -> Numbers:
    """The values, with NaN for what is undetermined."""
    found = _several(answers)
    return np.array([one.value if one.is_determined else np.nan for one in found], dtype=np.float64)


#: The product with its settings, by name.
PROPOSALS = (
    Proposal("Sharewell, views", None, "views", Fraction(19, 20), 1),
    Proposal("Sharewell, planned", None, "planned", Fraction(19, 20), 1),
)
