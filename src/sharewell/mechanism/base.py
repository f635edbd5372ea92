"""What every mechanism does: say what an answer would cost and how far off it may be, and answer."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import OverBudget, QueryError, UnknownPayer
from sharewell.mechanism.strategy import Strategy
from sharewell.privacy.budget import Amount
from sharewell.privacy.curator import Curator
from sharewell.privacy.measurement import Measurement, Order
from sharewell.query.block import Block, Measurable, ParallelBlock
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: Where a value came from: bought now, bought before, computed from what was bought, guessed from a
#: synthetic table, or known to be 0 without looking.
Source = Literal["measured", "cached", "reconstructed", "synthetic", "public"]
Question = LinearQuery | Block

NOTHING = Fraction(0)


@dataclass(frozen=True)
class Answer:
    """A value, how far off it may be, and where it came from.

    The rows of a block that were measured together share one charge: each carries its whole cost, and
    `charge` is the number of the event in the ledger.
    """

    value: float
    standard_error: float | None
    interval: tuple[float, float] | None
    source: Source
    cost: Fraction = NOTHING
    payer: str | None = None
    charge: int | None = None


@dataclass(frozen=True)
class Offer:
    """What a question would cost, and each of its answers' standard error where it is known."""

    cost: Fraction
    standard_errors: tuple[float | None, ...]
    sources: tuple[Source, ...]

    @property
    def standard_error(self) -> float | None:
        """The largest of them; None where one is not known."""
        known = [error for error in self.standard_errors if error is not None]
        return max(known) if len(known) == len(self.standard_errors) else None


@dataclass(frozen=True)
class Preview:
    """What a question costs and gives when one pays, and when one does not; None where impossible."""

    paid: Offer | None
    free: Offer | None


class Prepared(NamedTuple):
    """A question on its way: its rows that are not empty, their places in it, and what to buy for it."""

    block: ParallelBlock
    places: tuple[int, ...]
    size: int
    analyst: str
    pay: bool
    #: What the analyst had left when asking.
    left: Fraction
    order: Order | None


class Mechanism(ABC):
    """Answers the questions of the analysts who hold a share at a curator.

    A mechanism never holds the data. All that it knows came out of the curator, is in the ledger, and
    can be taken up from there: making a mechanism for a curator with a past gives it the same state.
    """

    name: str
    #: Whether the standard errors of all answers depend on public things alone.
    errors_are_public: bool = False
    #: Whether what is bought for a question is known before any data is touched for it.
    plans_ahead: bool = True

    def __init__(self, curator: Curator) -> None:
        self.curator = curator
        #: What was charged before a crash and measured now, after it.
        self.recovered = curator.complete(decode)

    @property
    def domain(self) -> Domain:
        """The public domain."""
        return self.curator.domain

    @property
    def analysts(self) -> tuple[str, ...]:
        """Those who may ask."""
        return self.curator.payers

    @property
    def critical(self) -> float:
        """How many standard errors an interval of 95 % reaches to both sides.

        Gaussian noise needs 1.96. Laplace noise needs 2.12 alone and tends to 1.96 in sums; in
        between, 2.06 covers 94.6 % to 96.1 %.
        """
        return 1.96 if self.curator.budget.currency == "zcdp" else 2.06

    def preview(self, question: Question, analyst: str) -> Preview:
        """What an answer would cost and how far off it may be: from public things, and for nothing."""
        block, places = self._understand(question, analyst)
        nothing = Offer(Fraction(0), (), ())
        found = self._preview(block, analyst) if places else Preview(nothing, nothing)
        count = 1 if isinstance(question, LinearQuery) else len(question)
        return Preview(_placed(found.paid, places, count), _placed(found.free, places, count))

    @overload
    def answer(self, question: LinearQuery, analyst: str, *, pay: bool = True) -> Answer: ...
    @overload
    def answer(self, question: Block, analyst: str, *, pay: bool = True) -> tuple[Answer, ...]: ...
    def answer(
        self, question: Question, analyst: str, *, pay: bool = True
    ) -> Answer | tuple[Answer, ...]:
        """The answer to a query, or to every query of a block; with `pay=False` it never spends."""
        prepared = self.prepare(question, analyst, pay=pay)
        try:
            bought = self.curator.fill([prepared.order])[0] if prepared.order else None
        except BaseException:
            self.forget(prepared)
            raise
        found = self.finish(prepared, bought)
        return found[0] if isinstance(question, LinearQuery) else found

    def prepare(self, question: Question, analyst: str, *, pay: bool = True) -> Prepared:
        """Decide what to buy for an answer, and set its cost aside: nothing is charged yet.

        Several questions may be prepared one after the other and their orders filled together, as long
        as they are finished in the same order.
        """
        block, places = self._understand(question, analyst)
        count = 1 if isinstance(question, LinearQuery) else len(question)
        left = self.curator.left(analyst)
        order = self._order(block, analyst, pay) if places else None
        return Prepared(block, places, count, analyst, pay, left, order)

    def finish(self, prepared: Prepared, bought: Measurement | None) -> tuple[Answer, ...]:
        """The answers to a prepared question, with what was bought for it."""
        found = self._answer(prepared, bought) if prepared.places else []
        if len(found) == prepared.size:
            return tuple(found)
        nothing = Answer(0.0, 0.0, (0.0, 0.0), "public")
        by_place = dict(zip(prepared.places, found, strict=True))
        return tuple(by_place.get(place, nothing) for place in range(prepared.size))

    def forget(self, prepared: Prepared) -> None:
        """Give up a prepared question; nothing was charged for it."""
        if prepared.order and self.curator.holds(prepared.order):
            self.curator.cancel(prepared.order)

    @abstractmethod
    def _preview(self, block: ParallelBlock, analyst: str) -> Preview: ...

    @abstractmethod
    def _order(self, block: ParallelBlock, analyst: str, pay: bool) -> Order | None: ...

    @abstractmethod
    def _answer(self, prepared: Prepared, bought: Measurement | None) -> list[Answer]: ...

    def join(self, analyst: str, share: Amount) -> None:
        """Take in a new analyst, with a share of what nobody holds."""
        self.curator.grant(analyst, share)

    def leave(self, analyst: str, *, donate: bool = False) -> None:
        """Let an analyst go; what they have left is lost, unless the mechanism can use a donation."""
        self.require(analyst)
        if donate:
            raise QueryError(f"{self.name} has no use for a donation.", hint="Leave without one.")
        self.curator.retire(analyst)

    def require(self, analyst: str) -> None:
        """Refuse those who hold no share."""
        if not isinstance(analyst, str) or not self.curator.serves(analyst):
            raise UnknownPayer(
                f"Nobody called {analyst!r} is an analyst here.",
                hint=f"There are {', '.join(self.analysts)}.",
            )

    def _understand(self, question: Question, analyst: str) -> tuple[ParallelBlock, tuple[int, ...]]:
        """The question as rows that share no cell, without the empty ones, and their places in it."""
        self.require(analyst)
        if question.domain != self.domain:
            raise QueryError("The question is over another domain than the data.")
        single = isinstance(question, LinearQuery)
        if isinstance(question, LinearQuery):
            question = ParallelBlock(self.domain, [question], disjoint=True)
        if not isinstance(question, ParallelBlock):
            question = ParallelBlock.of(question)
        block, places = question.filled
        if not places and (single or not len(question)):
            raise QueryError(
                "The question selects no cell, so its answer is 0.", hint="Nothing is spent."
            )
        return block, places

    def _shown(
        self,
        query: LinearQuery,
        value: float,
        variance: float | None,
        source: Source,
        bought: Measurement | None = None,
        payer: str | None = None,
    ) -> Answer:
        """An answer to a query, from the value and variance of its primitive query."""
        scale = float(query.scale)
        value *= scale
        error = None if variance is None else math.sqrt(variance) * abs(scale)
        reach = None if error is None else self.critical * error
        interval = None if reach is None else (value - reach, value + reach)
        cost, charge = (bought.cost, bought.charge) if bought else (NOTHING, None)
        return Answer(value, error, interval, source, cost, payer, charge)

    def means(self, analyst: str) -> Fraction:
        """What can be spent on an analyst's questions just now."""
        return self.curator.left(analyst)

    def _in_pot(self) -> Fraction:
        return sum((self.curator.left(analyst) for analyst in self.analysts), Fraction(0))

    def _pot(self, cost: Fraction) -> Mapping[str, Fraction]:
        """A bill for all analysts, in proportion to what they have left, so that all run out at once."""
        left = {analyst: self.curator.left(analyst) for analyst in self.analysts}
        total = self._in_pot()
        if cost > total:
            raise OverBudget(
                f"The common pot holds {float(total):.6g}, and this costs {float(cost):.6g}.",
                hint="Nothing more can be measured.",
            )
        return {analyst: cost * part / total for analyst, part in left.items() if part}


def _placed(offer: Offer | None, places: Sequence[int], count: int) -> Offer | None:
    """An offer with the empty rows put back in their places: their answers are 0, public and free."""
    if offer is None or len(places) == count:
        return offer
    errors = dict(zip(places, offer.standard_errors, strict=True))
    sources = dict(zip(places, offer.sources, strict=True))
    return Offer(
        offer.cost,
        tuple(errors.get(place, 0.0) for place in range(count)),
        tuple(sources.get(place, "public") for place in range(count)),
    )


def decode(domain: Domain, data: Mapping[str, Any]) -> Measurable:
    """The block or strategy that a ledger holds as plain data."""
    kind: type[Strategy] | type[Block] = Strategy if data["kind"] == Strategy.kind else Block
    return kind.from_json(domain, data)


def errors_of(variances: NDArray[np.float64], block: Sequence[LinearQuery]) -> tuple[float, ...]:
    """The standard errors of queries, from the variances of their primitive ones."""
    scales = np.array([abs(float(query.scale)) for query in block])
    return tuple((np.sqrt(variances) * scales).tolist())
