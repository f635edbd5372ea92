"""A dataset that was never begun: its curators compare settings, and no row is read."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from threading import Lock

from sharewell import wire
from sharewell.config.config import Config
from sharewell.config.forecast import analyst_budgets, current_candidate
from sharewell.errors import RequestError
from sharewell.mechanisms import CacheReconstruct
from sharewell.privacy.budget import amount
from sharewell.service.sessions import SessionStore
from sharewell.service.tokens import Principal, TokenStore, id_of


class PlannedDataset:
    """What curators can do with a dataset before it is begun: see what its settings would mean.

    Privacy: everything is computed from the configuration, which is public.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.name = config.name
        self.tokens = TokenStore(config.service.access)
        self.sessions = SessionStore(self.tokens)
        self._planning = Lock()

    def authenticate(self, token: str = "", *, session: str = "") -> Principal | None:
        """The curator whose token or browser's session this is; analysts have nothing to ask yet."""
        found = self.tokens.authenticate(token) if token else self.sessions.owner(session)
        named = found and found.role == "curator" and found.name in self.config.service.curators
        return found if named else None

    def sign_in(self, token: str) -> str | None:
        """Begin a curator's session: its secret; None for other tokens."""
        return self.sessions.begin(id_of(token)) if token and self.authenticate(token) else None

    def plan(self, proposal: wire.PlanProposal | None = None) -> wire.PlanForecast:
        """The expected errors under the settings of the file, or under proposed ones."""
        make = self.config.make
        if make.kind is not CacheReconstruct or make.independent or make.seed is None:
            raise RequestError(
                f"Plans are for Seeded Cache and Reconstruct, not for {make.name}.",
                hint='Set mechanism.name = "cache-reconstruct", and a seed.',
            )
        total = self.config.budget.total
        # As in the file: the price is a part of the whole budget.
        fraction, price = make.seed_fraction, (make.price or Fraction(0)) / total
        if proposal is not None:
            fraction = amount(proposal.seed_fraction, "The seed fraction")
            price = amount(proposal.query_budget, "The query budget")
        if not 0 < fraction < 1 or not 0 < price <= 1:
            raise RequestError(
                "The seed fraction must be between 0 and 1, and the price within the budget.",
                hint="For example: a seed fraction of 1/2 and a query budget of 1/100.",
            )
        chosen = {**make.arguments, "seed_fraction": fraction, "query_budget": price * total}
        config = replace(self.config, make=replace(make, arguments=chosen))
        # One at a time: a plan takes a processor for a while.
        with self._planning:
            found = current_candidate(config)
        if found is None:
            raise RequestError(
                "The errors of this seed cannot be computed for so many cells.",
                hint="Use a seed of tables; see `sharewell plan`.",
            )
        return wire.PlanForecast(
            dataset=self.name,
            epsilon=self.config.budget.epsilon,
            error_threshold=self.config.error_threshold,
            seed=found.seed,
            seed_fraction=fraction,
            query_budget=price,
            typical_error=found.typical_error,
            useful=found.average,
            analysts=tuple(
                wire.PlannedAnalyst(
                    analyst=each.analyst,
                    questions=each.paid_questions,
                    useful=found.within.get(each.analyst),
                )
                for each in analyst_budgets(config)
            ),
        )
