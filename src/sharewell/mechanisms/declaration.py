"""What a mechanism declares about itself, and what a configuration tells it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sharewell.privacy.budget import Budget
from sharewell.query.block import Block, Neighbours
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery


@dataclass(frozen=True)
class Guarantee:
    """What is proven about a mechanism, on which assumptions, and on which page of the documentation."""

    page: str
    #: The assumptions under which all desiderata are proven; None where they are not.
    assumptions: tuple[str, ...] | None = None
    #: Further assumptions under a scheduler that does not keep the order of arrival.
    reordered: tuple[str, ...] = ()
    #: The assumptions under which taking turns gives the sharing incentive; None where it does not.
    in_turns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class PublicContext:
    """The parts of a configuration that a mechanism's arguments may depend on. All of it is public."""

    domain: Domain
    budget: Budget
    #: The declared number of rows.
    population: int | None
    #: Compiles all queries that the analysts are expected to ask.
    workload: Callable[[], Block]
    neighbours: Neighbours = "add-remove"
    #: Compiles what analysts expect to ask, by name: of those only for whom something is given.
    expected: Callable[[], Mapping[str, Sequence[LinearQuery | Block]]] = dict
