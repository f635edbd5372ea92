"""Streams of tables and counts: what several analysts ask, question by question.

A question is a count or a GROUP BY under a condition. Its rows are disjoint and one individual is in one
of them at most, so it has the sensitivity of a single count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from sharewell import datasets
from sharewell.engine.data_vector import DataVector
from sharewell.query.attribute import Ordered
from sharewell.query.block import GroupedBlock
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell_lab.streams import Asker, arrivals, paper_workloads
from sharewell_lab.studies import people_by

Numbers = NDArray[np.float64]

#: The part of the population that an answer may be off by.
ALPHA = 0.001
ANALYSTS = 10
#: How many questions an analyst asks where the stream does not say otherwise.
ASKED = 30
#: How many ranges of each attribute are declared.
DECLARED = 30


@dataclass(frozen=True, eq=False)
class TableQuestion:
    """Counts of the individuals that a condition selects, by the values of some attributes, or in all.

    `where` has the cells that the condition allows, by attribute; attributes are numbers.
    """

    domain: Domain
    by: tuple[int, ...]
    where: Mapping[int, NDArray[np.bool_]]

    @cached_property
    def view(self) -> tuple[int, ...]:
        """The attributes that it is about: its answers are sums of their marginal's cells."""
        return tuple(sorted({*self.by, *self.where}))

    @cached_property
    def key(self) -> tuple[tuple[int, ...], tuple[tuple[int, bytes], ...]]:
        """Equal for questions that are answered by the same rows."""
        return self.by, tuple((level, self.where[level].tobytes()) for level in sorted(self.where))

    @cached_property
    def cells_per_row(self) -> int:
        """How many cells of the view's marginal each row sums."""
        return int(np.prod([self.where[at].sum() for at in self.where if at not in self.by], dtype=int))

    def answers(self, table: Numbers) -> Numbers:
        """Every row's answer on a table of numbers, one for each cell of the domain."""
        found, kept = table.reshape(self.domain.shape), 0
        # From the first attribute on, so that most products are those of a vector and a matrix.
        for level, size in enumerate(self.domain.shape):
            mask = self.where.get(level)
            if level in self.by:
                found = found if mask is None else found.compress(mask, axis=kept)
                kept += 1
            else:
                weights = np.ones(size) if mask is None else mask.astype(np.float64)
                found = np.tensordot(weights, found, (0, kept))
        return found.reshape(-1)

    def spread(self, rows: Numbers) -> Numbers:
        """One number a row, put into all cells that the row counts; the others have 0."""
        shape = [
            (self.domain.shape[level] if level not in self.where else int(self.where[level].sum()))
            if level in self.by
            else 1
            for level in range(len(self.domain.shape))
        ]
        inside = rows.reshape(shape)
        for level, mask in self.where.items():
            if level in self.by:
                wide = list(inside.shape)
                wide[level] = len(mask)
                filled = np.zeros(wide)
                filled[(slice(None),) * level + (mask,)] = inside
                inside = filled
            else:
                along = [1] * inside.ndim
                along[level] = len(mask)
                inside = inside * mask.reshape(along)
        return np.broadcast_to(inside, self.domain.shape).reshape(-1)

    @cached_property
    def asked(self) -> LinearQuery | GroupedBlock:
        """The question as the product asks it."""
        vectors = {level: mask.astype(np.int64) for level, mask in self.where.items()}
        base = LinearQuery.of_vectors(self.domain, vectors) if vectors else LinearQuery.all(self.domain)
        if not self.by:
            return base
        return GroupedBlock(base, {level: range(self.domain.shape[level]) for level in self.by})


@dataclass(frozen=True, eq=False)
class TableStream:
    """Who asks what, in order of arrival, of a public table.

    `expects` has what every analyst declares beforehand: the kinds of questions that the stream draws
    from, and not the draw.
    """

    name: str
    data: DataVector
    questions: tuple[TableQuestion, ...]
    analyst: NDArray[np.int64]
    expects: tuple[tuple[TableQuestion, ...], ...]

    @property
    def analysts(self) -> int:
        """How many analysts there are."""
        return len(self.expects)

    @cached_property
    def counts(self) -> Numbers:
        """The number of individuals in every cell."""
        return np.asarray(self.data.counts, dtype=np.float64)

    @cached_property
    def error_threshold(self) -> float:
        """Alpha, in individuals."""
        return ALPHA * float(self.counts.sum())

    @cached_property
    def truth(self) -> tuple[Numbers, ...]:
        """The exact answers."""
        return tuple(question.answers(self.counts) for question in self.questions)

    def within(self, answers: Sequence[Numbers | None]) -> Numbers:
        """The share of every question's rows that are answered within alpha; refused ones have none."""
        pairs = zip(answers, self.truth, strict=True)
        alpha = self.error_threshold
        # NaN, for what is undetermined, is not within anything.
        return np.array(
            [0.0 if a is None else np.mean(np.abs(a - truth) <= alpha) for a, truth in pairs]
        )

    def expected_within(self, errors: Sequence[Numbers]) -> Numbers:
        """The same by standard errors, as for normal errors; infinite ones are not within anything."""
        reach = self.error_threshold / np.sqrt(2)
        return np.array([np.mean(erf(reach / np.maximum(each, 1e-9))) for each in errors])


class Topic(NamedTuple):
    """What a stream is about: a table, and what every analyst declares to ask of it."""

    data: DataVector
    expects: tuple[tuple[TableQuestion, ...], ...]

    @property
    def domain(self) -> Domain:
        """The domain of the table."""
        return self.data.domain


@lru_cache
def _ages() -> Topic:
    data = datasets.movers_by_age()
    rows = (row for kind in paper_workloads(data.domain) for row in kind.rows)
    return Topic(data, (tuple(_cells(data.domain, row) for row in rows),) * ANALYSTS)


def paper(rng: np.random.Generator) -> TableStream:
    """The paper's: 86 ages, one of six workloads each, half of them on a random range of ages."""
    topic = _ages()
    asker = Asker(paper_workloads(topic.domain), restrict=0.5)
    own = [[_cells(topic.domain, row) for row in asker.draw(topic.domain, rng)] for _ in range(ANALYSTS)]
    return _mixed("paper", topic, own, rng)


@lru_cache
def _pairs() -> Topic:
    data = datasets.massachusetts().vector()
    pool = tuple(TableQuestion(data.domain, pair, {}) for pair in combinations(range(6), 2))
    return Topic(data, (pool,) * ANALYSTS)


def zipf(rng: np.random.Generator) -> TableStream:
    """Two-way tables of six attributes, 120,400 cells; the r-th most popular one with weight 1 / r."""
    topic = _pairs()
    pool = topic.expects[0]
    popular = rng.permutation(len(pool))
    weights = 1 / np.arange(1, len(pool) + 1)
    own = [
        [pool[popular[rank]] for rank in rng.choice(len(pool), ASKED, p=weights / weights.sum())]
        for _ in range(ANALYSTS)
    ]
    return _mixed("zipf", topic, own, rng)


@lru_cache
def _tables() -> Topic:
    data = people_by("age", "sex", "race", "moved")
    return Topic(data, (tuple(_tables_and_conditions(data.domain)),) * ANALYSTS)


def busy(rng: np.random.Generator) -> TableStream:
    """The first analyst asks ten times as much as each other, and before all of them: 2,408 cells."""
    topic = _tables()
    pool = topic.expects[0]
    own = [
        [pool[at] for at in rng.integers(len(pool), size=10 * ASKED if not who else ASKED)]
        for who in range(ANALYSTS)
    ]
    who = np.repeat(np.arange(ANALYSTS), [len(mine) for mine in own])
    others = who > 0
    who[others] = rng.permutation(who[others])
    return _in_order("busy", topic, own, who)


@lru_cache
def _bands() -> Topic:
    data = people_by("age", "sex", "race", "moved")
    pools = []
    for band in np.array_split(np.arange(data.domain.shape[0]), ANALYSTS):
        mask = np.zeros(data.domain.shape[0], dtype=np.bool_)
        mask[band] = True
        pools.append(
            tuple(
                TableQuestion(data.domain, by, {0: mask, **one.where})
                for one in _tables_and_conditions(data.domain, (1, 2, 3))
                for by in (one.by, (0, *one.by))
            )
        )
    return Topic(data, tuple(pools))


def disjoint(rng: np.random.Generator) -> TableStream:
    """Every analyst asks about an age band of their own: 2,408 cells."""
    topic = _bands()
    own = [[pool[at] for at in rng.integers(len(pool), size=ASKED)] for pool in topic.expects]
    return _mixed("disjoint", topic, own, rng)


@lru_cache
def _intervals() -> Topic:
    data = datasets.massachusetts().vector()
    declared = []
    for level, size in enumerate(data.domain.shape):
        every = [_interval(size, start, end) for start, end in combinations(range(size + 1), 2)]
        # As many of every attribute: each is asked about alike.
        some = (every[at * len(every) // DECLARED] for at in range(DECLARED))
        declared += [TableQuestion(data.domain, (), {level: mask}) for mask in some]
    return Topic(data, (tuple(declared),) * ANALYSTS)


def ranges(rng: np.random.Generator) -> TableStream:
    """DProvDB's randomized ranges: each a random interval of a random attribute, 120,400 cells."""
    topic = _intervals()
    domain = topic.domain
    own = [
        [_range(domain, int(rng.integers(len(domain.shape))), rng) for _ in range(2 * ASKED)]
        for _ in range(ANALYSTS)
    ]
    return _mixed("ranges", topic, own, rng)


#: The streams by name, each drawn with a generator.
STREAMS: Mapping[str, Callable[[np.random.Generator], TableStream]] = {
    "paper": paper,
    "zipf": zipf,
    "busy": busy,
    "disjoint": disjoint,
    "ranges": ranges,
}


def _tables_and_conditions(domain: Domain, among: Sequence[int] | None = None) -> list[TableQuestion]:
    """Tables by one or two attributes, also where a further one that is not ordered has one value."""
    levels = range(len(domain.shape)) if among is None else among
    found = []
    for by in (*combinations(levels, 1), *combinations(levels, 2)):
        found.append(TableQuestion(domain, by, {}))
        for level in set(levels) - {*by}:
            if not isinstance(domain.attributes[level], Ordered):
                for value in range(domain.shape[level]):
                    mask = _interval(domain.shape[level], value, value + 1)
                    found.append(TableQuestion(domain, by, {level: mask}))
    return found


def _cells(domain: Domain, row: NDArray[np.uint8]) -> TableQuestion:
    return TableQuestion(domain, (), {0: row.astype(np.bool_)})


def _range(domain: Domain, level: int, rng: np.random.Generator) -> TableQuestion:
    start, end = np.sort(rng.choice(domain.shape[level] + 1, 2, replace=False))
    return TableQuestion(domain, (), {level: _interval(domain.shape[level], int(start), int(end))})


def _interval(size: int, start: int, end: int) -> NDArray[np.bool_]:
    at = np.arange(size)
    return np.asarray((start <= at) & (at < end))


def _mixed(
    name: str, topic: Topic, own: Sequence[Sequence[TableQuestion]], rng: np.random.Generator
) -> TableStream:
    """Whose question is next is drawn alike among those with questions left."""
    who = arrivals([len(mine) for mine in own], np.ones(len(own)), rng)
    return _in_order(name, topic, own, who)


def _in_order(
    name: str, topic: Topic, own: Sequence[Sequence[TableQuestion]], who: NDArray[np.int64]
) -> TableStream:
    left = [iter(mine) for mine in own]
    questions = tuple(next(left[at]) for at in who.tolist())
    return TableStream(name, topic.data, questions, who, topic.expects)
