"""Sharewell itself with several settings, by name, and "everything once": one release and nothing kept.

These play the product's own mechanism, Seeded Cache and Reconstruct, question by question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sharewell import Budget, Curator
from sharewell.mechanisms import seed as seeds
from sharewell.mechanisms.base import Answer, Seed
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.privacy.budget import Currency
from sharewell_lab.alternatives.rivals import Answers
from sharewell_lab.alternatives.streams import Numbers, TableStream
from sharewell_lab.noise import SeededNoise

#: The delta of every Gaussian contestant.
DELTA = "1/1000000"


def budget_of(currency: Currency, epsilon: float) -> Budget:
    """The budget in a currency that is (epsilon, delta)-private; pure epsilon is so for any delta."""
    exact = Fraction(str(epsilon))
    return Budget.pure(exact) if currency == "pure" else Budget.zcdp(exact, DELTA)


#: The rows that are measured at the start, by name, for a stream and a currency.
SEEDS: Mapping[str, Callable[[TableStream, Currency], Seed]] = {
    "identity": lambda stream, _: seeds.identity(stream.data.domain),
    "tables": lambda stream, _: seeds.tables(stream.data.domain),
    "marginals(1)": lambda stream, _: marginals(stream, 1),
    "marginals(2)": lambda stream, _: marginals(stream, 2),
    "marginals(3)": lambda stream, _: marginals(stream, 3),
    "views": lambda stream, _: views(stream),
}


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


@dataclass(frozen=True)
class Proposal:
    """Settings of Seeded Cache and Reconstruct.

    `seed_fraction` of every share goes to the seed; what is left of it pays for `purchases` questions.
    """

    label: str
    currency: Currency
    seed: str
    seed_fraction: Fraction
    purchases: int

    def play(self, stream: TableStream, epsilon: float, rng: np.random.Generator) -> Answers:
        """Every question, asked by its analyst in order of arrival."""
        budget = budget_of(self.currency, epsilon)
        share = budget.total / stream.analysts
        shares = {str(who): share for who in range(stream.analysts)}
        mechanism = CacheReconstruct(
            Curator(stream.data, budget, shares, noise=SeededNoise(rng)),
            seed=SEEDS[self.seed](stream, self.currency),
            seed_fraction=self.seed_fraction,
            query_budget=share * (1 - self.seed_fraction) / self.purchases,
        )
        asked = zip(stream.questions, stream.analyst.tolist(), strict=True)
        return [_values(mechanism.ask(question.asked, str(who))) for question, who in asked]


def everything_once(stream: TableStream, epsilon: float, seed: str, rng: np.random.Generator) -> Answers:
    """One measurement with the whole budget, and every answer by least squares from it."""
    budget = budget_of("zcdp", epsilon)
    mechanism = CacheReconstruct(
        Curator(stream.data, budget, {"all": budget.total}, noise=SeededNoise(rng)),
        seed=SEEDS[seed](stream, "zcdp"),
        seed_fraction="1",
        query_budget=budget.total,
    )
    known: dict[object, Numbers] = {}
    for question in stream.questions:
        if question.key not in known:
            known[question.key] = _values(mechanism.ask(question.asked, "all", pay=False))
    return [known[question.key] for question in stream.questions]


def _values(answers: Answer | tuple[Answer, ...]) -> Numbers:
    """The values, with NaN for what is undetermined."""
    found = answers if isinstance(answers, tuple) else (answers,)
    return np.array([one.value if one.is_determined else np.nan for one in found], dtype=np.float64)


#: The product with its settings, by name.
PROPOSALS = (
    Proposal("Sharewell, identity (pure)", "pure", "identity", Fraction(1, 2), 8),
    Proposal("Sharewell, views", "zcdp", "views", Fraction(9, 10), 2),
)
