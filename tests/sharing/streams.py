"""Hypothesis strategies for collectives and their streams, and how to play one on the real mechanism."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
from hypothesis import strategies as st

from sharewell import Block, Domain, LinearQuery
from sharewell.mechanisms.cache_reconstruct import CacheReconstruct
from sharewell.mechanisms.strategy import Strategy
from sharewell.privacy.budget import Budget
from sharewell.sharing import collective as entries_of
from sharewell.sharing.collective import Collective, DryRun, Entry, expected_errors
from tests.mechanisms.measurements import SEEDS, line_of, shapes
from tests.mechanisms.oracle import Ask, Close, Event, Join, Leave, Outcome, Setting, matrix_of, simulate

ANALYSTS = ("ann", "bob", "cem", "dee")


@lru_cache(maxsize=512)
def seed_of(name: str, domain: Domain) -> Strategy:
    return SEEDS[name](domain)


@dataclass(frozen=True)
class Stream:
    """Everything that a collective's answers depend on, but for who is there."""

    domain: Domain
    seed_name: str
    shares: dict[str, Fraction]
    events: tuple[Event, ...]
    seed_fraction: Fraction
    query_budget: Fraction
    currency: str
    neighbours: str
    buy_seed_rows: bool
    signed_rows: bool = False

    @property
    def analysts(self) -> list[str]:
        """Everybody who is ever there."""
        late = [event.analyst for event in self.events if isinstance(event, Join)]
        return [*self.shares, *late]

    @property
    def seed(self) -> Strategy:
        return seed_of(self.seed_name, self.domain)

    @property
    def entries(self) -> dict[int, Entry]:
        """The events as a stream's entries, by their places; whoever has left asks no more."""
        found: dict[int, Entry] = {}
        gone: set[str] = set()
        for at, event in enumerate(self.events):
            if isinstance(event, Close):
                found[at] = entries_of.CloseRound(tuple(n for n in event.done if n not in gone))
                continue
            if event.analyst in gone:
                continue
            if isinstance(event, Leave):
                gone.add(event.analyst)
                found[at] = entries_of.Leave(event.analyst, event.donate)
            elif isinstance(event, Join):
                found[at] = entries_of.Join(event.analyst, event.share)
            else:
                found[at] = entries_of.Ask(event.analyst, self._question(event), event.pay)
        return found

    def _question(self, ask: Ask) -> LinearQuery | Block | tuple[Block, ...]:
        first, *more = (
            Block(self.domain, [LinearQuery.from_vector(self.domain, np.array(row)) for row in rows])
            for rows in (ask.rows, ask.then)
            if rows
        )
        if more:
            return (first, *more)
        return first[0] if len(first) == 1 else first

    def settings(self, answers: Any = "estimate") -> dict[str, Any]:
        """How the mechanism is set up."""
        return {
            "answers": answers,
            "seed": self.seed,
            "seed_fraction": self.seed_fraction,
            "query_budget": self.query_budget,
            "buy_seed_rows": self.buy_seed_rows,
            "signed_rows": self.signed_rows and answers == "estimate",
        }

    def collective(self, answers: Any = "estimate", kind: Any = CacheReconstruct) -> Collective:
        late = [event.share for event in self.events if isinstance(event, Join)]
        total = sum(self.shares.values(), Fraction(0)) + sum(late, Fraction(0))
        budget = Budget(self.currency, total, total)  # type: ignore[arg-type]
        make = partial(kind, **self.settings(answers))
        return Collective(self.domain, budget, self.shares, make, self.neighbours)  # type: ignore[arg-type]

    def expected_errors(self, present: Collection[str], answers: Any = "estimate") -> dict[int, Any]:
        """What `sharewell.expected_errors` says, by the events' places."""
        found = expected_errors(
            self.domain,
            self.entries.values(),
            self.shares,
            privacy=self.currency,  # type: ignore[arg-type]
            neighbours=self.neighbours,  # type: ignore[arg-type]
            present=present,
            **self.settings(answers),
        )
        return {at: np.atleast_1d(e) for at, e in zip(self.entries, found, strict=True) if e is not None}

    def simulate(self, present: Collection[str]) -> Outcome:
        """What the oracle says about this stream with some of the analysts only."""
        setting = Setting(
            matrix_of(self.seed),
            self.shares,
            self.seed_fraction,
            self.query_budget,
            self.currency,
            self.neighbours,
            self.buy_seed_rows,
            self.signed_rows,
        )
        return simulate(setting, self.events, present)


@dataclass(frozen=True)
class Played:
    """The standard errors of every event's answers, what everybody has left, and the mechanism."""

    errors: dict[int, list[float]]
    left: dict[str, Fraction]
    mechanism: CacheReconstruct


def play(
    stream: Stream, present: Collection[str], answers: str = "estimate", kind: Any = CacheReconstruct
) -> Played:
    """Rehearse a stream with some of the analysts only."""
    dry_run = DryRun(stream.collective(answers, kind), present)
    mechanism = dry_run.mechanism
    assert isinstance(mechanism, CacheReconstruct)
    errors: dict[int, list[float]] = {}
    for at, entry in stream.entries.items():
        found = dry_run.play(entry)
        if found is not None:
            # An empty row of a block is 0 for certain, and no business of the theorem's.
            errors[at] = [error for error in found if error]
    left = {name: mechanism.curator.left(name) for name in stream.analysts if name in present}
    return Played(errors, left, mechanism)


# Strategies


def _rows(draw, domain: Domain) -> tuple[tuple[int, ...], ...]:
    """One row, or several that share no cell; counts, sums and differences."""
    size = domain.size
    kind = draw(st.sampled_from(["box", "box", "weights", "sum"]))
    if kind == "box":
        weights = np.ones(1, dtype=np.int64)
        for length in domain.shape:
            start = draw(st.integers(0, length - 1))
            mask = np.zeros(length, dtype=np.int64)
            mask[start : draw(st.integers(start + 1, length))] = 1
            weights = np.multiply.outer(weights, mask).ravel()
    elif kind == "weights":
        weights = np.array(draw(st.lists(st.integers(-2, 3), min_size=size, max_size=size)))
    else:
        level = draw(st.integers(0, len(domain.shape) - 1))
        along = np.arange(domain.shape[level]) + draw(st.integers(0, 3))
        shape = [1] * len(domain.shape)
        shape[level] = -1
        weights = np.broadcast_to(along.reshape(shape), domain.shape).ravel()
    if not weights.any():
        weights = np.ones(size, dtype=np.int64)
    if draw(st.booleans()):
        return (tuple(weights.tolist()),)
    level = draw(st.integers(0, len(domain.shape) - 1))
    group = np.indices(domain.shape)[level].ravel() // draw(st.integers(1, 3))
    return tuple(tuple(np.where(group == g, weights, 0).tolist()) for g in range(group.max() + 1))


@st.composite
def streams(draw, most_cells: int = 10, rows: Any = _rows, apart: bool = False) -> Stream:
    """Random domains, seeds, shares and prices; few questions and small means, so that both matter.

    `rows` draws the rows of a question. With `apart`, analysts ask questions of their own, more of them
    without paying, some have small shares, and more rounds are closed.
    """
    domain = line_of(*draw(shapes(most_cells).filter(lambda shape: max(shape) > 2)))
    query_budget = Fraction(1, draw(st.sampled_from([50, 10, 4])))
    seed_fraction = Fraction(draw(st.sampled_from([9, 5, 1, 0, 8, 10])), 10)
    # What is not donated pays for none to two questions, and something may be left over.
    paid = st.sampled_from([2, 1, 3, 4, 5]).map(lambda halves: query_budget * halves / 2)
    amounts = paid.map(lambda part: part / (1 - seed_fraction) if seed_fraction < 1 else part)
    if apart:
        amounts = st.tuples(amounts, st.sampled_from([1, 1, 8])).map(lambda pair: pair[0] / pair[1])
    people = draw(st.sampled_from([3, 2, 4]))
    late = draw(st.sampled_from([0, 0, 1, people - 1]))
    shares = {name: draw(amounts) for name in ANALYSTS[: people - late]}
    waiting = list(ANALYSTS[people - late : people])
    pool = [rows(draw, domain) for _ in range(draw(st.integers(3, 7)))]
    events: list[Event] = []
    kinds = st.sampled_from(
        ["ask"] * 9 + ["free", "join", "leave", "close"] + ["free", "close"] * 4 * apart
    )
    for _ in range(draw(st.integers(6, 24))):
        kind = draw(kinds)
        analyst = draw(st.sampled_from(_there(shares, events)))
        if kind == "join" and waiting:
            events.append(Join(waiting.pop(0), draw(amounts)))
        elif kind == "close":
            done = draw(st.lists(st.sampled_from(_there(shares, events)), unique=True))
            events.append(Close(tuple(done)))
        elif kind == "leave":
            events.append(Leave(analyst, draw(st.booleans())))
        else:
            own = pool[ANALYSTS.index(analyst) % len(pool) :: people] if apart else pool
            first, then = (draw(st.sampled_from(own)) for _ in range(2))
            pay, two = kind != "free", draw(st.sampled_from([False] * 7 + [True]))
            events.append(Ask(analyst, first, pay, then if two else ()))
    events += [Join(name, draw(amounts)) for name in waiting]
    neighbours = draw(st.sampled_from(["add-remove", "add-remove", "replace-one"]))
    return Stream(
        domain,
        draw(st.sampled_from(sorted(SEEDS))),
        shares,
        tuple(events),
        seed_fraction,
        query_budget,
        draw(st.sampled_from(["pure", "zcdp"])),
        neighbours,
        draw(st.booleans()),
        signed_rows=neighbours == "add-remove" and draw(st.sampled_from([True, True, False])),
    )


def _there(shares: dict[str, Fraction], events: list[Event]) -> list[str]:
    """Those who have come; whoever has left may still be drawn, and is then not there to ask."""
    return [*shares, *(event.analyst for event in events if isinstance(event, Join))]


@st.composite
def streams_and_subsets(draw, of: Any = None) -> tuple[Any, frozenset[str]]:
    """A stream, and some of its analysts: at least one, and not all."""
    stream = draw(streams() if of is None else of)
    everybody = draw(st.permutations(stream.analysts))
    return stream, frozenset(everybody[: draw(st.integers(1, len(everybody) - 1))])
