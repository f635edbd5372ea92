"""Collectives: who shares a budget, by which mechanism, what happens in it, and the errors to expect.

All of it is public. A collective holds no data; a dry run plays a stream without any.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, get_args

from sharewell.engine.data_vector import DataVector
from sharewell.errors import OverBudget, SharingError
from sharewell.mechanisms.base import Answer, Mechanism, Seed
from sharewell.mechanisms.cache_reconstruct import Answers, CacheReconstruct
from sharewell.privacy.budget import Amount, Budget, Currency, amount
from sharewell.privacy.curator import Curator
from sharewell.privacy.driver import Batch
from sharewell.privacy.dry_run import DryCurator, NullLedger
from sharewell.privacy.ledger import Event, Ledger
from sharewell.privacy.noise import Noise
from sharewell.query.block import Block, Neighbours
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell.sharing.reference import References

# Streams


@dataclass(frozen=True)
class Ask:
    """An analyst asks a query, a block of queries, or several blocks, which are answered all or none.

    With `pay=False` it is never paid for.
    """

    analyst: str
    question: LinearQuery | Block | tuple[Block, ...]
    pay: bool = True

    @property
    def parts(self) -> tuple[LinearQuery | Block, ...]:
        """The blocks, each of which is bought as a whole."""
        return self.question if isinstance(self.question, tuple) else (self.question,)

    @property
    def queries(self) -> tuple[LinearQuery, ...]:
        """Every query that needs an answer."""
        return tuple(
            query for part in self.parts for query in ([part] if isinstance(part, LinearQuery) else part)
        )


@dataclass(frozen=True)
class Join:
    """A new analyst joins with a share."""

    analyst: str
    share: Amount


@dataclass(frozen=True)
class Leave:
    """An analyst leaves; with `donate`, what they have left is spent for all others."""

    analyst: str
    donate: bool = False


@dataclass(frozen=True)
class CloseRound:
    """The curator closes a round: what analysts who are done have left buys one seed measurement."""

    done: tuple[str, ...]


Entry = Ask | Join | Leave | CloseRound

#: How a question is marked in a plain tuple.
PAY = {"pay": True, "free": False}


def read_stream(stream: Iterable[Any]) -> list[Entry]:
    """A stream's entries; `(analyst, question)` and `(analyst, question, "free")` stand for an `Ask`."""
    return [_read(entry, at) for at, entry in enumerate(stream)]


def _read(entry: Any, at: int) -> Entry:
    if isinstance(entry, Entry):
        return entry
    match entry:
        case (str(analyst), LinearQuery() | Block() as question):
            return Ask(analyst, question)
        case (str(analyst), LinearQuery() | Block() as question, ("pay" | "free") as how):
            return Ask(analyst, question, PAY[how])
    raise SharingError(
        f"Entry {at} of the stream has an unsupported type: {type(entry).__name__}.",
        hint='Write (analyst, query), (analyst, query, "free"), Ask(...), Join(...), Leave(...) or '
        "CloseRound(...).",
    )


# Collectives

#: The number of questions whose errors a dry run caches.
MOST_REMEMBERED = 4096
#: The standard error of each answer to an entry that asks; None for all other entries.
Errors = tuple[float, ...] | None


@dataclass(frozen=True)
class Collective:
    """Several analysts with shares of one budget, and the mechanism that answers them.

    `make` builds the mechanism for a curator: `functools.partial(CacheReconstruct, seed=...)`, say.
    """

    domain: Domain
    budget: Budget
    shares: Mapping[str, Fraction]
    make: Callable[[Curator], Mechanism]
    neighbours: Neighbours = "add-remove"
    max_rows_per_person: int = 1

    def open(
        self, data: DataVector, *, noise: Noise | None = None, ledger: Ledger | None = None
    ) -> Mechanism:
        """The mechanism on real data.

        Privacy: everything asked of it costs at most the budget.
        """
        return self.make(
            Curator(
                data,
                self.budget,
                self.shares,
                neighbours=self.neighbours,
                noise=noise,
                ledger=ledger,
            )
        )

    def errors(self, stream: Iterable[Any], present: Collection[str] | None = None) -> Iterator[Errors]:
        """The exact standard errors of every entry's answers, with all analysts or only some."""
        dry_run = DryRun(self, present)
        return (dry_run.play(entry) for entry in read_stream(stream))

    @cached_property
    def empty(self) -> DataVector:
        """A table without rows, which all dry runs share."""
        return DataVector.empty(self.domain, self.max_rows_per_person)

    def __getstate__(self) -> dict[str, Any]:
        # The empty table is large and cheap to rebuild.
        return {name: value for name, value in vars(self).items() if name != "empty"}


class DryRun:
    """A collective's stream played without data, with only the analysts present or without those absent.

    Where a mechanism's errors do not depend on the data, the errors are exact: the same
    mechanism answers, and only the values differ.

    Privacy: sees no data and spends nothing.
    """

    def __init__(
        self,
        collective: Collective,
        present: Collection[str] | None = None,
        *,
        absent: Collection[str] = (),
    ) -> None:
        self._present = None if present is None else frozenset(present)
        self._absent = frozenset(absent)
        self._ledger = NullLedger()
        #: Errors of questions that bought nothing, as long as nothing was bought since.
        self._remembered: dict[tuple[Any, ...], tuple[float, ...]] = {}
        self._as_of = 0
        self._curator = DryCurator(
            collective.empty,
            collective.budget,
            {name: share for name, share in collective.shares.items() if self.includes(name)},
            neighbours=collective.neighbours,
            ledger=self._ledger,
        )
        self.mechanism = collective.make(self._curator)
        self._references = References(collective.domain, self._curator.measured)
        #: How many measurements each part of the last question was answered from.
        self._counts: list[int] = []
        #: What `recompute` has taken so far, in nanoseconds of counted work.
        self.work = 0.0

    @property
    def changes(self) -> int:
        """A number that grows with every purchase, join and departure."""
        return len(self._ledger)

    def recompute(self, ask: Ask, places: Sequence[int]) -> list[float] | None:
        """The errors of the question just played, by the second implementation; None if it cannot.

        `places` are those of the answers to compute, in order.
        """
        errors: list[float] = []
        start = 0
        for part, count in zip(ask.parts, self._counts, strict=True):
            every = [part] if isinstance(part, LinearQuery) else list(part)
            queries = [every[at - start] for at in places if 0 <= at - start < len(every)]
            start += len(every)
            if not queries:
                continue
            reference = self._references.of(self.mechanism, ask.analyst, count)
            before = reference.work
            found = reference.errors(queries)
            self.work += reference.work - before
            if found is None:
                return None
            errors += found
        return errors

    def includes(self, analyst: str) -> bool:
        """Whether an analyst takes part, once they have joined."""
        if analyst in self._absent:
            return False
        return self._present is None or analyst in self._present

    def play(self, entry: Entry) -> Errors:
        """Play an entry, unless its analyst is absent: the errors of its answers, if it asks.

        A question that is refused for lack of budget has infinite errors.
        """
        if isinstance(entry, CloseRound):
            if done := [analyst for analyst in entry.done if self.includes(analyst)]:
                self.mechanism.close_round(done)
            return None
        if not self.includes(entry.analyst):
            return None
        match entry:
            case Join(analyst, share):
                self.mechanism.join(analyst, share)
            case Leave(analyst, donate):
                self.mechanism.leave(analyst, donate=donate)
            case Ask():
                return self._recall(entry)
        return None

    def _recall(self, ask: Ask) -> tuple[float, ...]:
        """The errors of a question, remembered until the ledger says that something has changed."""
        if len(self._ledger) != self._as_of:
            self._remembered.clear()
            self._as_of = len(self._ledger)
        key = (ask.analyst, ask.pay, *(query.key for query in ask.queries))
        if key not in self._remembered:
            errors = self._ask(ask)
            if len(self._ledger) != self._as_of:
                return errors
            if len(self._remembered) == MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = errors
        self._counts = [len(self._curator.measured)] * len(ask.parts)
        return self._remembered[key]

    def _ask(self, ask: Ask) -> tuple[float, ...]:
        """Decide all parts or none, then buy them together, as the service does."""
        if not self.mechanism.errors_are_public:
            raise SharingError(
                f"The errors of {self.mechanism.name} depend on the data, so it cannot be run dry.",
                hint="Use Seeded Cache and Reconstruct, Laplace, or an independent version of them.",
            )
        question = _DryQuestion(len(ask.queries))
        before = len(self._curator.measured)
        batch = Batch(self._curator)
        steps = (self.mechanism.step(part, ask.analyst, pay=ask.pay) for part in ask.parts)
        batch.add(question, steps)
        batch.run()
        self._counts = [before + count for count in accumulate(question.bought)]
        return question.errors


class _DryQuestion:
    """A question of a dry run: keeps the standard errors of its answers, and stores no event."""

    def __init__(self, size: int) -> None:
        self.errors: tuple[float, ...] = (float("inf"),) * size
        #: For each part, whether it was measured.
        self.bought: list[bool] = []

    def finish(self, answers: list[tuple[Answer, ...]]) -> tuple[Event, ...]:
        errors = [answer.standard_error for part in answers for answer in part]
        self.errors = tuple(error for error in errors if error is not None)
        self.bought = [any(answer.source == "measured" for answer in part) for part in answers]
        return ()

    def fail(self, error: Exception) -> tuple[Event, ...]:
        if not isinstance(error, OverBudget):
            raise error
        return ()


# Expected errors


def expected_errors(
    domain: Domain,
    stream: Iterable[Any],
    shares: Mapping[str, Amount],
    *,
    seed: Seed,
    seed_fraction: Amount,
    query_budget: Amount,
    privacy: Currency = "pure",
    answers: Answers = "estimate",
    present: Collection[str] | None = None,
    neighbours: Neighbours = "add-remove",
    max_rows_per_person: int = 1,
    buy_seed_rows: bool = False,
    signed_rows: bool = False,
) -> list[float | tuple[float, ...] | None]:
    """The exact standard error of every answer that Seeded Cache and Reconstruct gives to a stream.

    One item per entry: a number for a query, a tuple for a block, and None for all else and for
    analysts who are not `present`. Shares and prices are in the currency of
    `privacy`: epsilon, or rho for "zcdp".

    Privacy: costs nothing; no row is read.

    >>> from sharewell import Domain, Integer, LinearQuery
    >>> from sharewell.mechanisms import seed
    >>> ages = Domain([Integer("age", 0, 85)])
    >>> minors = LinearQuery.of(ages, age=range(18))
    >>> settings = dict(seed=seed.identity(ages), seed_fraction="1/2", query_budget="1/10")
    >>> stream = [("ann", minors), ("ben", minors, "free")]
    >>> shares = {"ann": "1/2", "ben": "1/2"}
    >>> [round(error, 1) for error in expected_errors(ages, stream, shares, **settings)]
    [9.1, 9.1]
    >>> alone = expected_errors(ages, stream, shares, **settings, present={"ben"})
    >>> alone[0] is None, round(alone[1], 1)
    (True, 23.9)
    """
    if privacy not in get_args(Currency):
        raise SharingError(f"Unknown currency {privacy!r}.", hint='Use "pure" or "zcdp".')
    entries = read_stream(stream)
    exact = {name: amount(share, f"The share of {name}") for name, share in shares.items()}
    _check_present(present, [*exact, *(e.analyst for e in entries if isinstance(e, Join))])
    make = partial(
        CacheReconstruct,
        seed=seed,
        seed_fraction=seed_fraction,
        query_budget=query_budget,
        answers=answers,
        buy_seed_rows=buy_seed_rows,
        signed_rows=signed_rows,
    )
    # The total is the sum of the shares: it bounds what can be spent, and no error depends on it.
    late = [amount(e.share, f"The share of {e.analyst}") for e in entries if isinstance(e, Join)]
    total = sum(exact.values(), Fraction(0)) + sum(late, Fraction(0))
    if not total:
        raise SharingError(
            "No analyst has a share.", hint='Name the analysts: {"ann": "1/2", "ben": "1/2"}.'
        )
    budget = Budget(privacy, total, total)
    collective = Collective(domain, budget, exact, make, neighbours, max_rows_per_person)
    return [
        errors[0] if errors is not None and _is_single(entry) else errors
        for entry, errors in zip(entries, collective.errors(entries, present), strict=True)
    ]


def _is_single(entry: Entry) -> bool:
    return isinstance(entry, Ask) and isinstance(entry.question, LinearQuery)


def _check_present(present: Collection[str] | None, known: Collection[str]) -> None:
    if isinstance(present, str):
        raise SharingError(
            "`present` must be a set of names, not a string.", hint=f"Write {{{present!r}}}."
        )
    if strangers := sorted(set(present or ()) - set(known)):
        raise SharingError(
            f"Unknown analyst {strangers[0]!r}.",
            hint=f"The analysts are {', '.join(known)}.",
        )
