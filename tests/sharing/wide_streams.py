"""Streams with planned seeds, and over tables of any width, with a small dense problem for each.

A wide stream is a stream over few cells, each of which stands for a class of very many. What is asked is
the same for all cells of a class, and so is the seed but for their order: so is the best estimate. Along
an attribute, the n cells of a class that a marginal measures apart, with variance v each, measure the
class with variance n v; centred rows, of which n are the same, with variance v / n. An attribute that is
not asked about is one class: its marginals say the same with n times the variance, and its centred rows
say nothing. This small problem is solved with a pseudo-inverse by `tests/mechanisms/oracle.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from sharewell import Block, Domain, Integer, LinearQuery
from sharewell.mechanisms.marginal_seed import MarginalPart, MarginalSeed
from sharewell.mechanisms.planned_seed import PlannedSeed
from sharewell.query.block import GroupedBlock
from tests.mechanisms.oracle import Ask, Outcome, Setting, noise_variance, simulate
from tests.sharing.streams import Stream, _rows, streams

#: The sizes of classes along each attribute that is asked about, by position.
Classes = Mapping[int, tuple[int, ...]]


class PartStream(Stream):
    """A stream whose seed is measured part by part: planned for its donors, or the same for all."""

    @property
    def classes(self) -> Classes:
        """Every cell of every attribute is a class of its own."""
        return {at: (1,) * size for at, size in enumerate(self.domain.shape)}

    @cached_property
    def seed(self) -> PlannedSeed | MarginalSeed:  # type: ignore[override]
        return PlannedSeed(self.domain, self.currency, self.neighbours, self.expected)  # type: ignore[arg-type]

    @cached_property
    def expected(self) -> dict[str, list[Any]]:
        """What analysts expect to ask: their own questions, or those of another analyst."""
        expected: dict[str, list[Any]] = {}
        for event in self.events:
            if isinstance(event, Ask):
                question = self._question(event)
                parts = question if isinstance(question, tuple) else (question,)
                expected.setdefault(event.analyst, []).extend(parts)
        if self.buy_seed_rows:
            expected = dict(zip(expected, [*expected.values()][::-1], strict=True))
        return expected

    def simulate(self, present) -> Outcome:
        seed = self.seed
        parts = seed.parts if isinstance(seed, MarginalSeed) else ()
        own = [self._asked_cell_by_cell(part) for part in parts]
        setting = Setting(
            np.concatenate(own) if own else np.zeros((0, 0)),
            self.shares,
            self.seed_fraction,
            self.query_budget,
            self.currency,
            self.neighbours,
            self.buy_seed_rows,
            self.signed_rows,
            self.sown,
        )
        return simulate(setting, self.events, present)

    def _asked_cell_by_cell(self, part: MarginalPart) -> np.ndarray:
        """A marginal's rows that can be asked for: those of one cell. Of any other part none can."""
        rows, cells = self.merged(part)
        return rows[:0] if part.centred or part.rows else rows[cells == 1]

    def sown(self, bill: Mapping[str, Fraction]) -> tuple[np.ndarray, np.ndarray]:
        """The merged rows that donors buy, and their variances: each part for the sum of its amounts."""
        amounts: dict[Any, Fraction] = {}
        known: dict[Any, MarginalPart] = {}
        for donor, amount in bill.items():
            plan = self.seed.plan_of(donor) if isinstance(self.seed, PlannedSeed) else self.seed.parts
            for part in plan:
                known[part.key] = part
                amounts[part.key] = amounts.get(part.key, Fraction(0)) + amount * part.weight
        rows, variances = [], []
        for key, part in known.items():
            noise = noise_variance(self.currency, self._sensitivity(part), amounts[key])
            merged, factors = self.merged(part)
            rows.append(merged)
            variances.append(noise * factors)
        return np.concatenate(rows), np.concatenate(variances)

    def _sensitivity(self, part: MarginalPart) -> float:
        """The largest column of a part's rows; two of them where a row of the table is replaced."""
        power, whole, signed = (1 if self.currency == "pure" else 2), 1, part.centred
        for at, level in enumerate(part.attributes):
            size = self.domain.shape[level]
            rows = part.rows[at] if part.rows else None
            if rows is not None and rows.matrix is not None:
                matrix = np.abs(rows.matrix.toarray())
                whole *= int((matrix**power).sum(axis=0).max())
                signed |= bool((rows.matrix.toarray() < 0).any())
            elif part.centred or (part.rows and rows is None):
                whole *= (size - 1) ** power + size - 1
                signed = True
        if self.neighbours == "add-remove":
            return whole
        return whole * (4 if power == 2 and signed else 2)

    def merged(self, part: MarginalPart) -> tuple[np.ndarray, np.ndarray]:
        """A part's rows over classes of cells, with what the variance of each is multiplied by."""
        rows: np.ndarray = np.ones((1, 1))
        factors: np.ndarray = np.ones(1)
        shape = self.domain.shape
        own = dict(zip(part.attributes, part.rows or [None] * len(part.attributes), strict=True))
        for level in own.keys() - self.classes.keys():
            if part.centred:
                return np.zeros((0, self.cells)), np.zeros(0)
            factors = factors * shape[level]
        for level, each in self.classes.items():
            sizes = np.array(each, dtype=float)
            if level not in own:
                along, times = np.ones((1, len(sizes))), np.ones(1)
            elif (given := own[level]) is not None:
                along = np.eye(len(sizes)) if given.matrix is None else given.matrix.toarray()
                times = np.ones(len(along))
            elif part.centred or part.rows:
                along, times = np.diag(shape[level] / sizes) - 1, 1 / sizes
            else:
                along, times = np.eye(len(sizes)), sizes
            rows, factors = np.kron(rows, along), np.kron(factors, times)
        return rows, factors

    @property
    def cells(self) -> int:
        """How many classes of cells there are."""
        return math.prod(len(sizes) for sizes in self.classes.values())


@dataclass(frozen=True)
class WideStream(PartStream):
    """A stream over few classes of the cells of a wide table."""

    asked: tuple[tuple[int, tuple[int, ...]], ...] = ()
    #: The attributes of the marginals that are measured, with weights; none for a planned seed.
    tables: tuple[tuple[tuple[int, ...], int], ...] = ()

    @property
    def classes(self) -> Classes:
        return dict(self.asked)

    @cached_property
    def seed(self) -> PlannedSeed | MarginalSeed:  # type: ignore[override]
        if not self.tables:
            return PlannedSeed(self.domain, self.currency, self.neighbours, self.expected)  # type: ignore[arg-type]
        sets, weights = zip(*self.tables, strict=True)
        return MarginalSeed.of(self.domain, sets, weights=weights)

    def _question(self, ask: Ask) -> LinearQuery | Block | tuple[Block, ...]:
        first, *more = (self._block(rows) for rows in (ask.rows, ask.then) if rows)
        if more:
            return (first, *more)
        return first[0] if len(first) == 1 else first

    def _block(self, rows: Sequence[tuple[int, ...]]) -> Block:
        """A GROUP BY, where rows are one; a block of queries otherwise."""
        filled = [row for row in rows if any(row)]
        base = np.array(rows).sum(axis=0)
        levels = list(self.classes)
        cells = np.indices([len(sizes) for sizes in self.classes.values()]).reshape(len(levels), -1)
        for count in (1, 2) if len(filled) > 1 else ():
            for chosen in combinations(range(len(levels)), count):
                groups = product(*(range(cells[at].max() + 1) for at in chosen))
                split = [
                    tuple((base * (cells[list(chosen)] == np.array(g)[:, None]).all(axis=0)).tolist())
                    for g in groups
                ]
                if [row for row in split if any(row)] == filled:
                    by = {levels[at]: self._class_of(levels[at]) for at in chosen}
                    return GroupedBlock(self.lifted(base), by)
        return Block(self.domain, [self.lifted(np.array(row)) for row in rows])

    def _class_of(self, level: int) -> np.ndarray:
        sizes = self.classes[level]
        return np.repeat(np.arange(len(sizes)), sizes)

    def lifted(self, row: np.ndarray) -> LinearQuery:
        """The query with these weights for all cells of each class."""

        def lift(tensor: np.ndarray, levels: list[int]) -> LinearQuery:
            if not tensor.any():
                return LinearQuery.zero(self.domain)
            if not levels:
                return LinearQuery.all(self.domain) * int(tensor)
            of_cell = self._class_of(levels[0])
            if (tensor == tensor[:1]).all():
                return lift(tensor[0], levels[1:])
            total = LinearQuery.zero(self.domain)
            for at in range(len(tensor)):
                mask = LinearQuery.of_vectors(self.domain, {levels[0]: (of_cell == at).astype(int)})
                total = total + lift(tensor[at], levels[1:]).where(mask)
            return total

        return lift(row.reshape([len(s) for s in self.classes.values()]), list(self.classes))


# Strategies


def _rows_or_tables(draw, domain: Domain) -> tuple[tuple[int, ...], ...]:
    """The rows of a question as of any stream, or a whole table: a seed takes those in."""
    if draw(st.booleans()):
        return _rows(draw, domain)
    levels = range(len(domain.shape))
    chosen = draw(st.lists(st.sampled_from(levels), min_size=1, max_size=2, unique=True))
    kept = np.ix_(*(np.arange(n) for n in domain.shape))
    group = sum(kept[at] * 100**place for place, at in enumerate(sorted(chosen, reverse=True)))
    group = np.broadcast_to(group, domain.shape).ravel()
    return tuple(tuple((group == g).astype(int).tolist()) for g in np.unique(group))


@st.composite
def planned_streams(draw) -> PartStream:
    """Streams over few cells, with plans for what analysts ask."""
    return PartStream(**vars(draw(streams())))


@st.composite
def wide_streams(draw) -> WideStream:
    """Streams over tables of 2^31 cells and more, with plans or the same marginals for all."""
    small = draw(streams(rows=_rows_or_tables, apart=draw(st.booleans())))
    count = draw(st.integers(12, 20))
    sizes = draw(st.lists(st.sampled_from([7, 3, 10, 2, 50]), min_size=count, max_size=count))
    columns = sorted(draw(st.permutations(range(count)))[: len(small.domain.shape)])
    asked = []
    for level, cells in zip(columns, small.domain.shape, strict=True):
        each = st.sampled_from([1, 1, 1, 5]) if draw(st.booleans()) else st.just(1)
        classes = [draw(each) for _ in range(cells)]
        # A column of one cell has one class, whatever its size: there is nothing to ask about it.
        sizes[level] = sum(classes) if cells > 1 else 3
        asked.append((level, tuple(classes) if cells > 1 else (3,)))
    sizes += [50] * max(0, math.ceil((31 * math.log(2) - math.log(math.prod(sizes))) / math.log(50)))
    tables: list[tuple[tuple[int, ...], int]] = []
    if draw(st.booleans()):
        weights = st.sampled_from([1, 1, 4, 1000])
        for _ in range(draw(st.integers(1, 5))):
            # Mostly of what is asked about.
            near = draw(st.lists(st.sampled_from(columns), max_size=3, unique=True))
            far = draw(st.sampled_from([[], [], [count - 1], [0]]))
            chosen = tuple(sorted({*near, *far}))
            if math.prod(sizes[at] for at in chosen) < 5000 and chosen not in dict(tables):
                tables.append((chosen, draw(weights)))
        tables = tables or [((), 1)]
    domain = Domain([Integer(f"a{at}", 0, size - 1) for at, size in enumerate(sizes)])
    return WideStream(
        **{**vars(small), "domain": domain, "seed_name": "marginals" if tables else "planned"},
        asked=tuple(asked),
        tables=tuple(tables),
    )
