"""The registry of mechanisms: their names in a configuration, and how they are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from sharewell.errors import PrivacyError
from sharewell.mechanisms.base import Mechanism, Seed, decode_seed
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.independent import Independent
from sharewell.mechanisms.laplace import Laplace
from sharewell.mechanisms.marginal_seed import MarginalSeed
from sharewell.mechanisms.planned_seed import PlannedSeed
from sharewell.mechanisms.pmw import PrivateMultiplicativeWeights
from sharewell.mechanisms.strategy import Strategy
from sharewell.privacy.curator import Curator
from sharewell.query.domain import Domain

#: Every mechanism that a configuration can name; the first is the default.
MECHANISMS: Mapping[str, type[Mechanism]] = {
    kind.key: kind for kind in (CacheReconstruct, PrivateMultiplicativeWeights, Laplace)
}


@dataclass(frozen=True)
class MechanismFactory:
    """Makes a configured mechanism for any curator, and knows what follows from its arguments alone."""

    kind: type[Mechanism]
    arguments: Mapping[str, Any]
    #: Whether every analyst has an instance of their own.
    independent: bool = False

    def __call__(self, curator: Curator) -> Mechanism:
        """Make the mechanism."""
        make: Callable[[Curator], Mechanism] = partial(self.kind, **self.arguments)
        return Independent(curator, make) if self.independent else make(curator)

    def with_seed(self, stored: Sequence[Mapping[str, Any]], domain: Domain) -> MechanismFactory:
        """The same mechanism with the seed that a ledger holds, if it holds one, and all plans.

        What an optimizer finds depends on the machine and on the expected questions, so that a
        configuration only says how its seed was chosen.
        """
        if not stored or self.seed is None:
            return self
        seed: Seed = decode_seed(domain, stored[0])
        if seed.name != self.seed.name:
            raise PrivacyError(
                "The ledger holds measurements of another seed.",
                hint=f"Use the seed that it was begun with: {seed.name}.",
            )
        if isinstance(self.seed, PlannedSeed):
            seed = self.seed.with_stored(stored)
        return replace(self, arguments={**self.arguments, "seed": seed})

    def with_signed_rows(self, signed: bool) -> MechanismFactory:
        """The same mechanism, which measures single counts as signed rows, if it can."""
        if self.kind is not CacheReconstruct:
            return self
        return replace(self, arguments={**self.arguments, "signed_rows": signed})

    @property
    def name(self) -> str:
        """The mechanism's name, as its instances have it."""
        return f"{Independent.prefix} {self.kind.name}" if self.independent else self.kind.name

    @property
    def errors_are_public(self) -> bool:
        """Whether standard errors depend on public values alone."""
        return self.kind.errors_are_public

    @property
    def pooled(self) -> bool:
        """Whether all analysts pay from one pot."""
        return self.kind.pooled and not self.independent

    @property
    def price(self) -> Fraction | None:
        """The cost of a paid question; None where it is not fixed."""
        return self.kind.price(self.arguments)

    @property
    def seed(self) -> Seed | None:
        """The rows measured at the start, if any."""
        return self.arguments.get("seed")

    def seed_of(self, shares: Mapping[str, Fraction]) -> Strategy | MarginalSeed | None:
        """The rows that analysts with these shares measure at the start, if any."""
        return None if self.seed is None else self.seed.bought_by(shares)

    @property
    def signed_rows(self) -> bool:
        """Whether single counts are measured as signed rows."""
        return bool(self.arguments.get("signed_rows"))

    @property
    def seed_fraction(self) -> Fraction:
        """The fraction of every share that pays for the seed."""
        return Fraction(self.arguments.get("seed_fraction", 0))
