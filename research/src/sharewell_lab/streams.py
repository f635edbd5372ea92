"""Streams: what simulated analysts ask, and in which order their questions arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sharewell.errors import ConfigError, QueryError
from sharewell.query import workload
from sharewell.query.attribute import Integer, Ordered
from sharewell.query.block import Block
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell_lab import workloads


@dataclass(frozen=True, eq=False)
class Questions:
    """One trial's stream of counting questions, in order of arrival.

    `same` holds, for every question, the place of the first one that is equal to it: its own place
    where there is none before. A mechanism that remembers answers needs nothing else to find them.

    >>> stream = Questions.of([[1, 1, 0], [0, 0, 1], [1, 1, 0]], [0, 1, 1], analysts=2)
    >>> stream.same.tolist(), len(stream), stream.cells
    ([0, 1, 0], 3, 3)
    """

    weights: NDArray[np.uint8]
    analyst: NDArray[np.int64]
    same: NDArray[np.int64]
    analysts: int

    @classmethod
    def of(
        cls,
        queries: Iterable[LinearQuery | ArrayLike],
        analyst: Sequence[int] | NDArray[Any],
        *,
        analysts: int,
    ) -> Questions:
        """The stream of these queries (or rows of weights 0 and 1), and who asks each."""
        return cls.of_rows(np.array([_row(query) for query in queries]), analyst, analysts=analysts)

    @classmethod
    def of_rows(
        cls, weights: ArrayLike, analyst: Sequence[int] | NDArray[Any], *, analysts: int
    ) -> Questions:
        """The stream of these rows of weights 0 and 1, one a question, and who asks each."""
        rows = np.asarray(weights)
        if rows.ndim != 2:
            raise QueryError(
                "A stream needs at least one question, and rows of one length.",
                hint="Give one weight for every cell, the same number in each row.",
            )
        if rows.dtype != np.uint8 or rows.max(initial=0) > 1:
            if not np.isin(rows, (0, 1)).all():
                raise QueryError(
                    "The lab asks counting questions only: every weight is 0 or 1.",
                    hint="Leave out queries with other weights, such as sums.",
                )
            rows = rows.astype(np.uint8)
        rows = np.ascontiguousarray(rows)
        who = np.asarray(analyst, dtype=np.int64)
        if who.shape != (len(rows),) or (len(who) and not 0 <= who.min() <= who.max() < analysts):
            raise QueryError(
                "Every question needs an analyst who exists.",
                hint=f"Give {len(rows)} numbers from 0 to {analysts - 1}.",
            )
        return cls(rows, who, first_equal(rows), analysts)

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def cells(self) -> int:
        """How many cells the domain has."""
        return int(self.weights.shape[1])

    def asked(self) -> NDArray[np.int64]:
        """How many questions each analyst asks."""
        return np.bincount(self.analyst, minlength=self.analysts)

    def places(self, present: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The places of the questions whose analyst is present, in order of arrival."""
        return np.flatnonzero(present[self.analyst])


def first_equal(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """For every row, the place of the first row with the same bytes."""
    packed = np.packbits(rows, axis=1)
    first: dict[bytes, int] = {}
    places = [first.setdefault(row.tobytes(), at) for at, row in enumerate(packed)]
    return np.array(places, dtype=np.int64)


def _row(query: LinearQuery | ArrayLike) -> NDArray[Any]:
    return query.to_vector() if isinstance(query, LinearQuery) else np.asarray(query)


#: Counting questions as weights 0 and 1, one row a question.
Rows = NDArray[np.uint8]

#: How often a random predicate is drawn anew before a workload counts as one that none can restrict.
PATIENCE = 1_000


@dataclass(frozen=True, eq=False)
class Workload:
    """Questions that belong together, over the cells of a domain."""

    name: str
    rows: Rows

    @classmethod
    def of(cls, name: str, block: Block) -> Workload:
        """A block of counting queries."""
        if not all(query.is_predicate for query in block):
            raise ConfigError(
                f"The workload {name} has weights other than 0 and 1.",
                hint="The lab asks counting questions only; leave out sums.",
            )
        return cls(name, rows_of(block))

    def draw(self, domain: Domain, rng: np.random.Generator) -> Rows:
        """The questions, which are the same in every trial."""
        return self.rows

    def describe(self) -> bytes:
        """What tells it apart from others."""
        return self.name.encode() + self.rows.tobytes()

    def where(self, mask: NDArray[np.bool_]) -> Workload:
        """These questions on the cells of a mask; those that become empty or equal go."""
        return Workload(self.name, restricted(self.rows, mask))


@dataclass(frozen=True)
class RandomQueries:
    """Single cells and ranges in equal numbers, drawn anew in every trial from a line of cells.

    A range is drawn uniformly from all intervals of the line, which begins at the cell `first`.
    """

    name: str
    count: int
    first: int
    cells: int

    def draw(self, domain: Domain, rng: np.random.Generator) -> Rows:
        """The questions of one trial, the single cells first."""
        points = rng.integers(self.cells, size=self.count - self.count // 2)
        # Two different edges among cells + 1, unordered, are an interval drawn uniformly.
        start = rng.integers(self.cells + 1, size=self.count // 2)
        end = (start + rng.integers(1, self.cells + 1, size=len(start))) % (self.cells + 1)
        low = self.first + np.concatenate([points, np.minimum(start, end)])
        high = self.first + np.concatenate([points + 1, np.maximum(start, end)])
        at = np.arange(domain.size)
        return ((low[:, None] <= at) & (at < high[:, None])).astype(np.uint8)

    def describe(self) -> bytes:
        """What tells it apart from others."""
        return repr(self).encode()


@dataclass(frozen=True)
class Asker:
    """What one analyst asks in a trial: one of several workloads, drawn alike, and shuffled.

    With the probability `restrict` it is asked of a part of the table only, which a random predicate
    selects. A predicate that leaves nothing to ask is drawn anew. Askers with the same `twin` draw with
    the same random numbers, so that they can ask the same of different parts.
    """

    choices: tuple[Workload | RandomQueries, ...]
    restrict: float = 0.0
    twin: int | None = None

    def draw(self, domain: Domain, rng: np.random.Generator) -> Rows:
        """The questions of one trial, in the order in which they are asked."""
        chosen = self.choices[int(rng.integers(len(self.choices)))]
        rows = chosen.draw(domain, rng)
        if rng.random() < self.restrict:
            rows = _restricted_at_random(chosen.name, rows, domain, rng)
        return rows[rng.permutation(len(rows))]


def _restricted_at_random(name: str, asked: Rows, domain: Domain, rng: np.random.Generator) -> Rows:
    for _ in range(PATIENCE):
        rows = restricted(asked, random_predicate(domain, rng))
        if len(rows):
            return rows
    raise ConfigError(
        f"No random predicate leaves anything of the workload {name}.",
        hint="Ask more with it, or set `restrict` to 0.",
    )


def random_predicate(domain: Domain, rng: np.random.Generator) -> NDArray[np.bool_]:
    """The cells that a random condition on one attribute selects.

    The attribute is drawn alike. If it is ordered the condition is an interval, all of them alike;
    otherwise it is one of the attribute's values.
    """
    level = int(rng.integers(len(domain.shape)))
    size = domain.shape[level]
    vector = np.zeros(size, dtype=np.bool_)
    if isinstance(domain.attributes[level], Ordered):
        # Two different edges among size + 1, unordered, are an interval drawn uniformly.
        start, end = np.sort(rng.choice(size + 1, 2, replace=False))
        vector[start:end] = True
    else:
        vector[rng.integers(size)] = True
    shape = [1] * len(domain.shape)
    shape[level] = size
    return np.broadcast_to(vector.reshape(shape), domain.shape).reshape(-1)


def rows_of(block: Block) -> Rows:
    """The weights of counting queries, one row each."""
    rows: Rows = np.array([query.to_vector() for query in block], dtype=np.uint8)
    return rows


def restricted(rows: Rows, mask: NDArray[np.bool_]) -> Rows:
    """Questions on the cells of a mask; those that become empty or equal go, as in `Block.where`."""
    cut: Rows = rows * mask.astype(np.uint8)
    cut = cut[cut.any(axis=1)]
    kept: Rows = cut[first_equal(cut) == np.arange(len(cut))]
    return kept


def first_cells(cells: int, size: int, make: Callable[[Domain], Block], name: str = "cell") -> Rows:
    """A workload over a line of `cells` cells, laid over the first of `size` cells."""
    if size < cells:
        raise ConfigError(
            f"A workload over {cells} cells does not fit into {size}.",
            hint="Give a histogram with more cells.",
        )
    rows = rows_of(make(Domain([Integer(name, 0, cells - 1)])))
    return np.pad(rows, ((0, 0), (0, size - cells)))


def paper_workloads(domain: Domain) -> tuple[Workload, ...]:
    """The six workloads of the paper's main experiment, on a domain of one ordered attribute.

    The race workloads are about 64 combinations of six races; here the first 64 cells stand for them.
    """
    size = domain.size
    races = (
        Workload(name, first_cells(64, size, make))
        for name, make in (
            ("race1", workloads.race1),
            ("race2", workloads.race2),
            ("race3", workloads.race3),
        )
    )
    return (
        *races,
        Workload.of("identity", workload.identity(domain)),
        Workload.of("prefixes", workload.prefixes(domain)),
        Workload.of("h2", workload.h2(domain)),
    )


def arrivals(
    asked: Sequence[int], chances: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Who asks at each step: drawn with these chances among those with questions left.

    Where all who are left have no chance, they are drawn alike.
    """
    left = np.asarray(asked).tolist()
    draws = rng.random(sum(left)).tolist()
    order: list[int] = []
    who: list[int] = []
    up_to: list[float] = []
    for draw in draws:
        if not who:
            who = [analyst for analyst, count in enumerate(left) if count]
            weights = chances[who]
            if not weights.sum() > 0:
                weights = np.ones(len(who))
            up_to = (np.cumsum(weights) / weights.sum()).tolist()
            up_to[-1] = 1.0
        place = 0
        while draw >= up_to[place]:
            place += 1
        analyst = who[place]
        order.append(analyst)
        left[analyst] -= 1
        if not left[analyst]:
            who = []
    return np.array(order, dtype=np.int64)


def first_with(p: float, analysts: int) -> NDArray[np.float64]:
    """The chances where the first analyst asks with probability p, and the others alike."""
    if analysts == 1:
        return np.ones(1)
    return np.array([p] + [(1 - p) / (analysts - 1)] * (analysts - 1))


def draw_questions(
    domain: Domain,
    askers: Sequence[Asker],
    chances: NDArray[np.float64],
    seed: np.random.SeedSequence,
) -> Questions:
    """One trial's stream.

    What an analyst asks depends on the seed and their place alone, so that it stays the same when
    others join or when the chances change.
    """
    own = [
        asker.draw(
            domain,
            np.random.default_rng(child(seed, 0, place if asker.twin is None else asker.twin)),
        )
        for place, asker in enumerate(askers)
    ]
    who = arrivals([len(rows) for rows in own], chances, np.random.default_rng(child(seed, 1)))
    weights = np.empty((len(who), domain.size), dtype=np.uint8)
    for analyst, rows in enumerate(own):
        weights[who == analyst] = rows
    return Questions.of_rows(weights, who, analysts=len(askers))


def child(seed: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """A child seed for a key, independent of who asks for it and when."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key))
