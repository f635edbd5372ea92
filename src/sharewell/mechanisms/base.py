"""What every mechanism does: say what an answer would cost and how precise it would be, and answer."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from sharewell.engine.data_vector import MAX_DENSE
from sharewell.errors import LedgerCorrupt, OverBudget, QueryError, SharewellError, UnknownPayer
from sharewell.mechanisms.marginal_seed import MarginalSeed
from sharewell.mechanisms.planned_seed import PlannedSeed
from sharewell.mechanisms.strategy import Strategy
from sharewell.options import Option
from sharewell.privacy.budget import Amount, Budget
from sharewell.privacy.curator import Curator
from sharewell.privacy.driver import Step, run
from sharewell.privacy.dry_run import CuratorSnapshot
from sharewell.privacy.measurement import Measurement, MeasureRequest
from sharewell.query.block import Block, Measurable, Neighbours, ParallelBlock
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: Where a value came from: measured now, measured before, reconstructed from measurements, read off a
#: synthetic table, or known to be 0 without looking.
Source = Literal["measured", "cached", "reconstructed", "synthetic", "public"]
Question = LinearQuery | Block

NOTHING = Fraction(0)

#: Half the width of a 95 % interval, in standard errors, for Gaussian noise and for one draw of Laplace
#: noise: ln 20 / sqrt 2. Sums of Laplace draws have lighter tails, so theirs hold with 95 % to 96.6 %.
GAUSSIAN_CRITICAL, LAPLACE_CRITICAL = 1.96, 2.1184


@dataclass(frozen=True)
class Answer:
    """A value, its standard error, and where it came from.

    Where nothing that was measured determines the value, it is NaN and its standard error infinite:
    there is no unbiased estimate, and a paid question is needed.

    Rows of a block that were measured together share one charge: each carries its whole cost, and
    `charge` is the number of the event in the ledger.

    An answer of a statement of several blocks may have its `covariances` with the answers of other
    blocks in the same row, by block; that to a sum over bins the limits of `edges`, by place in
    `Statement.edge_sums`; and the first of a linear combination its `moments`, variances and
    covariances, by place in `Statement.moments`.
    """

    value: float
    standard_error: float | None
    interval: tuple[float, float] | None
    source: Source
    cost: Fraction = NOTHING
    payer: str | None = None
    charge: int | None = None
    covariances: tuple[tuple[int, float], ...] = ()
    edges: tuple[tuple[int, EdgeEstimate], ...] = ()
    moments: tuple[tuple[int, float], ...] = ()
    #: Whether the source had changed: then the answer mixes several states of it.
    source_changed: bool = False

    @property
    def is_determined(self) -> bool:
        """Whether the measurements determine the value."""
        return not math.isnan(self.value)


class EdgeEstimate(NamedTuple):
    """Estimates of the sums of lower and of upper edges, and how far they may be off, at 95 %.

    Where they are known also their standard errors, and of an average their covariances with its count.
    """

    lower: float
    below: float
    upper: float
    above: float
    lower_error: float | None = None
    upper_error: float | None = None
    lower_with_count: float | None = None
    upper_with_count: float | None = None


ZERO_ANSWER = Answer(0.0, 0.0, (0.0, 0.0), "public")


def total_cost(answers: Iterable[Answer]) -> Fraction:
    """What answers have cost together, each charge counted once."""
    charges = {answer.charge: answer.cost for answer in answers if answer.charge is not None}
    return sum(charges.values(), NOTHING)


@dataclass(frozen=True)
class Prospect:
    """What a question would cost, and the standard error of each answer where it is known."""

    cost: Fraction
    standard_errors: tuple[float | None, ...]
    sources: tuple[str, ...]

    @property
    def standard_error(self) -> float | None:
        """The largest standard error; None where one is not known."""
        known = [error for error in self.standard_errors if error is not None]
        return max(known) if len(known) == len(self.standard_errors) else None

    @property
    def undetermined(self) -> int:
        """How many answers nothing would determine: they have no value, and infinite errors."""
        return sum(error == math.inf for error in self.standard_errors)


@dataclass(frozen=True)
class Preview:
    """What a question costs and gives with and without paying; None where that is impossible."""

    paid: Prospect | None
    free: Prospect | None


class Work(NamedTuple):
    """An estimate of what it takes to quote or answer a question, from public sizes alone."""

    #: Elementary operations; one core does about 10^9 a second.
    operations: float
    #: Memory in use at the same time.
    bytes: float


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


class Mechanism(ABC):
    """Answers the questions of the analysts who hold a share at a curator.

    A mechanism never holds the data. Its `answer` is a generator that yields what it wants from the
    kernel, and a driver decides when that is charged and measured. All that a mechanism knows is in the
    ledger: a mechanism made for a curator with a past has the same state.
    """

    name: str
    #: The name in a configuration file, and the options there.
    key: ClassVar[str] = ""
    options: ClassVar[tuple[Option, ...]] = ()
    #: Whether all analysts pay from one pot.
    pooled: ClassVar[bool] = False
    #: What is proven about fairness.
    guarantee: Guarantee
    #: Whether the standard errors of all answers depend on public values alone.
    errors_are_public: bool = False
    #: Whether every answer is the best linear unbiased estimate from what was measured, which can
    #: be checked without the mechanism; and whether each analyst's come from their own measurements.
    best_estimates: bool = False
    separate: ClassVar[bool] = False
    #: Whether requests depend on earlier answers, so that questions cannot be batched.
    sequential: bool = False

    @classmethod
    def arguments(cls, options: Mapping[str, Any], context: PublicContext) -> dict[str, Any]:
        """Convert the options of a configuration to keyword arguments of the constructor."""
        return dict(options)

    @classmethod
    def price(cls, arguments: Mapping[str, Any]) -> Fraction | None:
        """The cost of a paid question made with these arguments; None where it is not fixed."""
        return arguments.get("query_budget")

    def __init__(self, curator: Curator) -> None:
        self.curator = curator
        self.domain = curator.domain
        self.critical = GAUSSIAN_CRITICAL if curator.budget.currency == "zcdp" else LAPLACE_CRITICAL
        #: What was charged before a crash, and measured now, after it.
        self.recovered = curator.complete(decode)

    @abstractmethod
    def answer(self, block: ParallelBlock, analyst: str, pay: bool) -> Step[list[Answer]]:
        """Answer every row of a block that has no empty rows.

        Yields once for each decision: a request, or None to buy nothing. With `pay` false it never buys.
        """

    @abstractmethod
    def expect(self, block: ParallelBlock, analyst: str, pay: bool) -> Prospect | None:
        """What `answer` would cost and return, from public values; None where it is impossible.

        Changes nothing, so that any number of threads can ask a snapshot.
        """

    def covariances(
        self, left: Sequence[LinearQuery], right: Sequence[LinearQuery], analyst: str
    ) -> NDArray[np.float64] | None:
        """The covariances of the current estimates of pairs of queries; None if not known.

        NaN where an estimate is undetermined.
        """
        return None

    # Asking

    @overload
    def ask(self, question: LinearQuery, analyst: str, *, pay: bool = True) -> Answer: ...
    @overload
    def ask(self, question: Block, analyst: str, *, pay: bool = True) -> tuple[Answer, ...]: ...
    def ask(self, question: Question, analyst: str, *, pay: bool = True) -> Answer | tuple[Answer, ...]:
        """Answer a query, or every query of a block; with `pay=False` nothing is spent."""
        found = run(self.step(question, analyst, pay=pay), self.curator)
        return found[0] if isinstance(question, LinearQuery) else found

    def step(self, question: Question, analyst: str, *, pay: bool = True) -> Step[tuple[Answer, ...]]:
        """The question as a step for a driver; rows that select no cell are answered with 0."""
        block, places, size = self._normalize(question, analyst)
        if places:
            found = yield from self.answer(block, analyst, pay)
        else:
            found = []
            yield None
        by_place = dict(zip(places, found, strict=True))
        return tuple([by_place.get(place, ZERO_ANSWER) for place in range(size)])

    def preview(self, question: Question, analyst: str) -> Preview:
        """What an answer would cost, and its standard errors, from public values; spends nothing."""
        block, places, size = self._normalize(question, analyst)
        if not places:
            nothing = Prospect(NOTHING, (0.0,) * size, ("public",) * size)
            return Preview(nothing, nothing)
        paid, free = (self.expect(block, analyst, pay) for pay in (True, False))
        return Preview(_placed(paid, places, size), _placed(free, places, size))

    def snapshot(self) -> Self:
        """A read-only copy of the public state as of now, for previews from any thread.

        Take it where the mechanism does not change meanwhile; after that, both are independent. It holds
        no data, and what would charge is refused.
        """
        frozen = copy(self)
        frozen.curator = CuratorSnapshot(self.curator)
        return frozen

    def work(self, question: Question, *, pay: bool = True) -> Work:
        """What a free answer takes, or with `pay` a preview or a paid one.

        By default, a pass over the cells for every row; in a large domain, over those that have rows.
        """
        rows = 1 if isinstance(question, LinearQuery) else len(question)
        cells = float(min(self.domain.size, MAX_DENSE))
        return Work(rows * cells, 8 * cells)

    def can_sell(self, question: Question, analyst: str) -> bool:
        """Whether answers would still be exact once an analyst has paid for a question.

        What it looks at is public; once it is true of a question, it stays true.
        """
        return True

    def _normalize(self, question: Question, analyst: str) -> tuple[ParallelBlock, tuple[int, ...], int]:
        """The question's non-empty rows as disjoint rows, their places in it, and its size."""
        self.require(analyst)
        if question.domain != self.domain:
            raise QueryError("The question and the data have different domains.")
        single = isinstance(question, LinearQuery)
        if isinstance(question, LinearQuery):
            question = ParallelBlock(self.domain, [question])
        if not isinstance(question, ParallelBlock):
            question = ParallelBlock.of(question)
        block, places = question.filled
        if not places and (single or not len(question)):
            raise QueryError(
                "The question selects no cell, so its answer is 0.", hint="Nothing was spent."
            )
        return block, places, len(question)

    def _answered(
        self,
        query: LinearQuery,
        value: float,
        variance: float | None,
        source: Source,
        bought: Measurement | None = None,
        payer: str | None = None,
    ) -> Answer:
        """The answer to a query, from the value and variance of its primitive query."""
        scale = float(query.scale)
        value *= scale
        error = None if variance is None else math.sqrt(variance) * abs(scale)
        interval = None
        if error == math.inf:
            interval = -math.inf, math.inf
            value = math.nan  # The same object for all, so that equal answers are equal.
        elif error is not None:
            reach = reach_of(error, abs(scale), self.critical)
            interval = value - reach, value + reach
        cost, charge = (bought.cost, bought.charge) if bought else (NOTHING, None)
        return Answer(value, error, interval, source, cost, payer, charge)

    # Analysts

    @property
    def analysts(self) -> tuple[str, ...]:
        """The analysts who may ask."""
        return self.curator.payers

    def join(self, analyst: str, share: Amount) -> None:
        """Admit a new analyst, with a share of the unallocated budget."""
        self.curator.grant(analyst, share)

    def leave(self, analyst: str, *, donate: bool = False) -> None:
        """Let an analyst leave; what they have left is lost, unless the mechanism can use a donation."""
        self.require(analyst)
        if donate:
            raise QueryError(f"{self.name} cannot use a donation.", hint="Leave without donating.")
        self.curator.retire(analyst)

    def closing_request(self, done: Iterable[str]) -> MeasureRequest | None:
        """What a closing round measures with all that analysts have left; None where it is too little.

        Public, spends nothing.
        """
        raise QueryError(
            f"{self.name} cannot spend what analysts have left.",
            hint="It has no common seed to measure.",
        )

    def close_round(self, done: Iterable[str]) -> None:
        """Spend all that analysts who are done have left on one measurement for all analysts.

        They can still ask, and pay for nothing more.
        """
        raise QueryError(f"{self.name} has no closing round.")

    def require(self, analyst: str) -> None:
        """Refuse names that hold no share."""
        if analyst not in self.curator.payers:
            raise UnknownPayer(
                f"Unknown analyst {analyst!r}.", hint=f"The analysts are {', '.join(self.analysts)}."
            )

    def spendable(self, analyst: str) -> Fraction:
        """What can be spent on an analyst's questions now."""
        return self.curator.left(analyst)

    # A common pot

    def _in_pot(self) -> Fraction:
        return sum((self.curator.left(analyst) for analyst in self.analysts), NOTHING)

    def _pot(self, cost: Fraction) -> Mapping[str, Fraction]:
        """A bill for all analysts, in proportion to what they have left, so that all run out at once."""
        left = {analyst: self.curator.left(analyst) for analyst in self.analysts}
        total = self._in_pot()
        if cost > total:
            raise OverBudget(
                f"The common pot holds {float(total):.6g}, and this costs {float(cost):.6g}.",
                hint="No more measurements can be made.",
            )
        return {analyst: cost * part / total for analyst, part in left.items() if part}


def reach_of(error: float, scale: float, critical: float) -> float:
    """Half the width of a 95 % interval of a query whose integer weights are multiplied by a scale.

    The noise of a count is a whole number: of an interval of 2.9 to both sides it can use 2. Up to half
    a count is added for that, and less where it matters less. One draw of noise of any size is then
    within its interval with 94.1 % or more, and from a standard error of 3 on with 97.1 % or less.
    """
    deviation = error / scale if scale else 0.0
    return critical * error + (min(0.53, 0.8 / deviation) * scale if deviation else 0.0)


def _placed(prospect: Prospect | None, places: Sequence[int], size: int) -> Prospect | None:
    """A prospect with the empty rows put back in their places: their answers are 0, public and free."""
    if prospect is None or len(places) == size:
        return prospect
    errors = dict(zip(places, prospect.standard_errors, strict=True))
    sources = dict(zip(places, prospect.sources, strict=True))
    return Prospect(
        prospect.cost,
        tuple(errors.get(place, 0.0) for place in range(size)),
        tuple(sources.get(place, "public") for place in range(size)),
    )


#: A set of rows to measure at the start.
Seed = Strategy | MarginalSeed | PlannedSeed


def decode(domain: Domain, data: Mapping[str, Any]) -> Measurable:
    """The block or seed that a ledger holds as plain data."""
    if is_seed(data):
        return decode_seed(domain, data)
    with _reading():
        block = Block.from_json(domain, data)
        if any(row.is_zero for row in block):
            raise QueryError("One of them has no cell.")
    return block


def decode_seed(domain: Domain, data: Mapping[str, Any]) -> Strategy | MarginalSeed:
    """The seed that a ledger holds as plain data."""
    kind: type[Strategy | MarginalSeed] = Strategy if data["kind"] == Strategy.kind else MarginalSeed
    with _reading():
        return kind.from_json(domain, data)


@contextmanager
def _reading() -> Iterator[None]:
    """Refuse rows of another form than a ledger has, whatever is wrong with them."""
    try:
        yield
    except (
        SharewellError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
    ) as error:
        reason = f" {error.message}" if isinstance(error, SharewellError) else ""
        raise LedgerCorrupt(
            f"The ledger has a charge whose rows cannot be read.{reason}",
            hint="Run `sharewell verify`, and restore a backup.",
        ) from error


def is_seed(measured: Mapping[str, Any]) -> bool:
    """Whether what was measured, as plain data, is a seed, and not the rows of a question."""
    return measured.get("kind") in (Strategy.kind, MarginalSeed.kind, MarginalSeed.planned_kind)


def standard_errors(variances: NDArray[np.float64], block: Sequence[LinearQuery]) -> tuple[float, ...]:
    """The standard errors of queries, from the variances of their primitive queries."""
    scales = np.array([abs(float(query.scale)) for query in block])
    return tuple((np.sqrt(variances) * scales).tolist())
