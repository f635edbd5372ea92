"""Planned seeds: each donation buys its donor's own plan, and every part is measured once for all."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from sharewell.mechanisms.marginal_seed import MarginalPart, MarginalSeed
from sharewell.mechanisms.seed_planner import Plan, plan_seed
from sharewell.mechanisms.workload_terms import Question
from sharewell.privacy.budget import Currency
from sharewell.query.block import Neighbours
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: What donors expect to ask, by name; those who are not named have the default workload.
Expected = Mapping[str, Sequence[Question]]


@dataclass(frozen=True, eq=False)
class PlannedSeed:
    """What every donor's donation buys: the plan that suits their own expected questions best.

    A plan depends on its donor alone: not on who else is there. So whatever others donate only adds to
    what a donor's own plan measures. Plans that a ledger holds are used as they are, and never computed
    again: an optimizer may find others on another machine.

    >>> from fractions import Fraction
    >>> from sharewell import Domain, Integer
    >>> domain = Domain([Integer("age", 0, 85), Integer("sex", 1, 2)])
    >>> PlannedSeed(domain, "zcdp").bought_by({"ann": Fraction(1, 2)})
    MarginalSeed(planned, 261 rows)
    """

    domain: Domain
    currency: Currency
    neighbours: Neighbours = "add-remove"
    #: Compiled when they are first needed.
    expected: Callable[[], Expected] | Expected = field(default_factory=dict)
    name: str = "planned"
    #: The plans known so far, by donor: from a ledger, or computed here.
    plans: dict[str, Plan] = field(default_factory=dict)
    #: The questions that plans were computed for: donors with the same ones have the same plan.
    _computed: list[tuple[Sequence[Question], Plan]] = field(default_factory=list, repr=False)
    #: The rows that were bought last, by the donors' fractions of the bill.
    _bought: dict[tuple[tuple[str, Fraction], ...], MarginalSeed] = field(
        default_factory=dict, init=False, repr=False
    )

    def plan_of(self, donor: str) -> Plan:
        """The plan of a donor."""
        if donor not in self.plans:
            expected = self.expected() if callable(self.expected) else self.expected
            self.plans[donor] = self._plan_for(expected.get(donor, ()))
        return self.plans[donor]

    def _plan_for(self, questions: Sequence[Question]) -> Plan:
        for known, plan in self._computed:
            if len(known) == len(questions) and all(map(operator.is_, known, questions)):
                return plan
        plan = plan_seed(self.domain, questions, self.currency, self.neighbours)
        self._computed.append((questions, plan))
        return plan

    def bought_by(self, bill: Mapping[str, Fraction]) -> MarginalSeed:
        """The rows that donors pay for together: for each part their amounts are added."""
        total = sum(bill.values(), Fraction(0))
        parts_of_total = tuple((donor, amount / total) for donor, amount in bill.items())
        if parts_of_total not in self._bought:
            self._bought.clear()
            self._bought[parts_of_total] = self._mixture(dict(parts_of_total))
        return self._bought[parts_of_total]

    def _mixture(self, bill: Mapping[str, Fraction]) -> MarginalSeed:
        """The rows that donors of these fractions of a whole pay for."""
        weights: dict[str, dict[Any, Fraction]] = {}
        parts: dict[Any, MarginalPart] = {}
        for donor, amount in bill.items():
            plan = {part.key: part for part in self.plan_of(donor)}
            weights[donor] = {key: part.weight for key, part in plan.items()}
            for key, part in plan.items():
                before = parts[key].weight if key in parts else Fraction(0)
                parts[key] = part._replace(weight=before + part.weight * amount)
        plans = {
            donor: tuple(own.get(key, Fraction(0)) for key in parts) for donor, own in weights.items()
        }
        return MarginalSeed(self.domain, tuple(parts.values()), self.name, plans)

    def with_stored(self, stored: Iterable[Mapping[str, Any]]) -> PlannedSeed:
        """The same, with the plans of all donors whose donations a ledger holds."""
        plans = dict(self.plans)
        for data in stored:
            seed = MarginalSeed.from_json(self.domain, data)
            for donor, weights in (seed.plans or {}).items():
                pairs = zip(seed.parts, weights, strict=True)
                plans[donor] = tuple(part._replace(weight=own) for part, own in pairs if own)
        return replace(self, plans=plans)

    def row_of(self, query: LinearQuery) -> None:
        """No query counts as measured by a plan: which rows a seed has depends on who donates."""

    def __getstate__(self) -> dict[str, Any]:
        # Another process gets the questions, and not the code that compiles them.
        expected = self.expected() if callable(self.expected) else self.expected
        return {**vars(self), "expected": expected}
