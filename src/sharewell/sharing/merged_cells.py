"""Cells that no query tells apart count only together: few of them, in a domain of any width.

Along an attribute, cells with the same weights in every query are one *class*. Functions that are
constant within classes are mapped to such functions by the normal equations of every marginal and of
every query, and so are those that sum to zero within classes. What is estimated is therefore the sum of
the cells of each combination of classes, and a marginal tells of it what its rows, summed by class, do:
each sum has the variance of one row times the number of rows in it. Nothing else is lost or gained. The
same holds for the centred rows n e_j - 1 of a marginal; where all cells are one class, their sum is 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from random import SystemRandom
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sharewell.mechanisms.marginal_seed import MarginalSeed
from sharewell.mechanisms.strategy import Rows, Strategy
from sharewell.privacy.measurement import Measurement
from sharewell.query.block import GroupedBlock
from sharewell.query.diagram import Node, Weights
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery


class NoisyMarginal(NamedTuple):
    """A measured marginal of one data vector: its attributes, its rows' variance, and its table."""

    levels: tuple[int, ...]
    vector: int
    variance: float
    table: NDArray[np.int64]
    #: Whether its rows are n e_j - 1 along every attribute, and not e_j.
    centred: bool = False


def marginals_of(measurement: Measurement) -> list[NoisyMarginal] | None:
    """The marginals that a measurement consists of; None where it is of something else."""
    block = measurement.block
    if isinstance(block, MarginalSeed):
        if any(part.rows for part in block.parts):
            return None
        parts = [(part.attributes, part.vector) for part in block.parts]
        pairs = zip(_split(measurement, parts), block.parts, strict=True)
        return [marginal._replace(centred=part.centred) for marginal, part in pairs]
    if isinstance(block, Strategy):
        return _of_strategy(measurement, block)
    if isinstance(block, GroupedBlock) and (found := _complete(block)) is not None:
        levels, vector = found
        if (measurement.variances == measurement.variances[0]).all():
            shape = [block.domain.shape[level] for level in levels]
            order = np.argsort(levels)
            table = measurement.values.reshape(shape).transpose(order)
            ascending = tuple(sorted(levels))
            return [NoisyMarginal(ascending, vector, float(measurement.variances[0]), table)]
    return None


def _split(
    measurement: Measurement, parts: Sequence[tuple[tuple[int, ...], int]]
) -> Iterator[NoisyMarginal]:
    start, shape = 0, measurement.block.domain.shape
    for levels, vector in parts:
        sizes = [shape[level] for level in levels]
        end = start + math.prod(sizes)
        table = measurement.values[start:end].reshape(sizes)
        yield NoisyMarginal(levels, vector, float(measurement.variances[start]), table)
        start = end


def _of_strategy(measurement: Measurement, strategy: Strategy) -> list[NoisyMarginal] | None:
    """The marginals of a strategy whose rows are all cells, or all rows, along every attribute."""
    parts = []
    for part in strategy.parts:
        if not all(rows.matrix is None or _is_total(rows) for rows in part):
            return None
        parts.append(tuple(level for level, rows in enumerate(part) if rows.matrix is None))
    if not strategy.domain.measures:
        return list(_split(measurement, [(levels, 0) for levels in parts]))
    last = len(strategy.domain.attributes)
    if any(last not in levels for levels in parts):
        return None
    found = []
    for levels, _, variance, table, _ in _split(measurement, [(levels, 0) for levels in parts]):
        tables = np.moveaxis(table, -1, 0)
        found += [NoisyMarginal(levels[:-1], k, variance, each) for k, each in enumerate(tables)]
    return found


def _is_total(rows: Rows) -> bool:
    matrix = rows.matrix
    return matrix is not None and matrix.shape[0] == 1 and bool((matrix.toarray() == 1).all())


def _complete(block: GroupedBlock) -> tuple[tuple[int, ...], int] | None:
    """The attributes and the data vector of a GROUP BY that lists every cell of a marginal in order."""
    if block.base.scale != 1 or levels_of(block.base) or len(block) != math.prod(block.shape):
        return None
    if not np.array_equal(block.places, np.arange(len(block))):
        return None
    if any(not np.array_equal(of, np.arange(len(of))) for of in block.groups.values()):
        return None
    vectors = vectors_of(block.base)
    return (tuple(block.groups), vectors[0][0]) if vectors == ((vectors[0][0], 1),) else None


@lru_cache(maxsize=2**14)
def levels_of(query: LinearQuery) -> dict[int, tuple[Node, ...]]:
    """By attribute that a query mentions: the nodes of its diagram whose weights differ there."""
    found: dict[int, tuple[Node, ...]] = {}
    nodes = {query.root} if query.root is not None else set()
    for level in range(len(query.domain.attributes)):
        if chosen := tuple(node for node in nodes if len(node.starts) > 1):
            found[level] = chosen
        nodes = {child for node in nodes for child in node.children}
    return found


@lru_cache(maxsize=2**14)
def vectors_of(query: LinearQuery) -> tuple[tuple[int, int], ...]:
    """The data vectors that a query weighs anywhere, each with a weight."""
    nodes = {query.root} if query.root is not None else set()
    for _ in query.domain.attributes:
        nodes = {child for node in nodes for child in node.children}
    if not query.domain.measures:
        return ((0, 1),) if nodes else ()
    found = {k: weight for node in nodes for a, b, weight, _ in node.runs for k in range(a, b)}
    return tuple(sorted(found.items()))


class MergedCells:
    """The combinations of classes of cells that some queries tell apart, in C order."""

    def __init__(self, domain: Domain, queries: Iterable[LinearQuery], *, merge: bool = True) -> None:
        self._domain = domain
        self._levels = len(domain.attributes)
        #: By attribute with several classes: the class of every cell, and the number of its cells.
        self._classes: dict[int, NDArray[np.int64]] = {}
        nodes: dict[int, dict[Node, None]] = {}
        vectors: set[int] = set()
        for query in queries:
            for level, some in levels_of(query).items():
                nodes.setdefault(level, {}).update(dict.fromkeys(some))
            vectors.update(vector for vector, _ in vectors_of(query))
        if merge:
            for level in sorted(nodes):
                self._classes[level] = _classes(domain.shape[level], list(nodes[level]))
            self.vectors = sorted(vectors)
        else:
            self._classes = {at: np.arange(domain.shape[at]) for at in range(self._levels)}
            self.vectors = list(range(domain.vectors))
        self._sizes = {level: np.bincount(of) for level, of in self._classes.items()}
        self._cells = {level: np.unique(of, return_index=True)[1] for level, of in self._classes.items()}
        self.shape = [len(self._sizes.get(level, (0,))) for level in range(self._levels)]
        self.count = math.prod(self.shape) * len(self.vectors)

    def rows(self, queries: Sequence[LinearQuery], most: int) -> sp.csr_array | None:
        """The weights of primitive queries, a column for each cell; None where they have too many."""
        found, total = [], 0
        for query in queries:
            found.append(self._row(query))
            total += len(found[-1][0])
            if total > most:
                return None
        starts = np.cumsum([0, *(len(cells) for cells, _ in found)])
        empty = np.zeros(0, dtype=np.int64)
        cells = np.concatenate([empty, *(cells for cells, _ in found)])
        weights = np.concatenate([empty, *(weights for _, weights in found)])
        return sp.csr_array((weights, cells, starts), shape=(len(found), self.count))

    def _row(self, query: LinearQuery) -> tuple[Weights, Weights]:
        made: dict[Node, tuple[Weights, Weights]] = {}
        one = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)

        def visit(node: Node, level: int, stride: int) -> tuple[Weights, Weights]:
            if not node.children:
                return one
            if node not in made:
                attribute = level < self._levels
                size = self.shape[level] if attribute else len(self.vectors)
                at = self._cells.get(level, np.zeros(1, dtype=np.int64)) if attribute else self.vectors
                run = np.searchsorted(node.starts, at, "right") - 1
                weights, which, below = node.weights[run], node.which[run], stride // size
                cells, found = [], []
                for child in np.unique(which[weights != 0]).tolist():
                    places = np.flatnonzero((which == child) & (weights != 0))
                    inner, own = visit(node.children[child], level + 1, below)
                    cells.append(np.add.outer(places * below, inner).ravel())
                    found.append(np.multiply.outer(weights[places], own).ravel())
                none = np.zeros(0, dtype=np.int64)
                made[node] = np.concatenate([none, *cells]), np.concatenate([none, *found])
            return made[node]

        if query.root is None:
            return one[0][:0], one[0][:0]
        return visit(query.root, 0, self.count)

    def marginals(
        self, marginals: Iterable[NoisyMarginal], with_values: bool
    ) -> Iterator[tuple[sp.csr_array, NDArray[np.longdouble], NDArray[np.float64]]]:
        """Marginals summed by class, averaged where they become alike: rows, values and variances."""
        precisions: dict[tuple[tuple[int, ...], int, bool], float] = {}
        tables: dict[tuple[tuple[int, ...], int, bool], NDArray[np.longdouble]] = {}
        for levels, vector, variance, table, centred in marginals:
            kept = tuple(level for level in levels if level in self._classes)
            if vector not in self.vectors or (centred and len(kept) < len(levels)):
                continue
            merged = math.prod(self._domain.shape[level] for level in levels if level not in kept)
            weight = 1 / (max(variance, 1e-12) * merged)
            key = kept, vector, centred
            precisions[key] = precisions.get(key, 0.0) + weight
            if with_values:
                summed = self._summed(table, levels).astype(np.longdouble) * np.longdouble(weight)
                tables[key] = tables[key] + summed if key in tables else summed
        for (kept, vector, centred), precision in precisions.items():
            sizes = np.ones(1)
            for level in kept:
                sizes = np.multiply.outer(sizes, self._sizes[level])
            rows = self._marginal_rows(kept, vector)
            if centred:
                rows = self._centring(kept) @ rows
            values = np.zeros(rows.shape[0], dtype=np.longdouble)
            if with_values:
                values = tables[kept, vector, centred].ravel() / np.longdouble(precision)
            yield rows, values, sizes.ravel() / precision

    def weights(self, marginals: Sequence[NoisyMarginal]) -> int:
        """How many weights the rows of `marginals` have."""
        known = self._classes.keys()
        own = {(frozenset(known & m.levels), m.vector) for m in marginals if not m.centred}
        centred = {(m.levels, m.vector) for m in marginals if m.centred and self._tells_apart(m.levels)}
        rows = sum(math.prod(self.shape[level] for level in levels) for levels, _ in centred)
        return (len(own) + rows) * self.count

    def _tells_apart(self, levels: Iterable[int]) -> bool:
        """Whether every one of some attributes has several classes."""
        return all(level in self._classes for level in levels)

    def _centring(self, kept: Sequence[int]) -> sp.csr_array:
        """The rows of a centred marginal, summed by class, from those of the marginal."""
        found = sp.csr_array(np.ones((1, 1), dtype=np.int64))
        for level in kept:
            sizes = self._sizes[level].astype(np.int64)
            along = self._domain.shape[level] * np.eye(len(sizes), dtype=np.int64) - sizes[:, None]
            found = sp.kron(found, sp.csr_array(along), format="csr")
        return sp.csr_array(found)

    def _summed(self, table: NDArray[np.int64], levels: Sequence[int]) -> NDArray[np.int64]:
        others = tuple(axis for axis, level in enumerate(levels) if level not in self._classes)
        table = table.sum(axis=others, dtype=np.int64)
        for axis, level in enumerate(level for level in levels if level in self._classes):
            count = len(self._sizes[level])
            if count < table.shape[axis]:
                moved = np.moveaxis(table, axis, 0)
                summed = np.zeros((count, *moved.shape[1:]), dtype=np.int64)
                np.add.at(summed, self._classes[level], moved)
                table = np.moveaxis(summed, 0, axis)
        return np.asarray(table)

    def _marginal_rows(self, kept: Sequence[int], vector: int) -> sp.csr_array:
        places = np.zeros(math.prod(self.shape), dtype=np.int64)
        cells, size = np.arange(len(places)), 1
        for level in reversed(kept):
            inner = math.prod(self.shape[level + 1 :])
            places += cells // inner % self.shape[level] * size
            size *= self.shape[level]
        columns = cells * len(self.vectors) + self.vectors.index(vector)
        ones = np.ones(len(places), dtype=np.int64)
        return sp.csr_array((ones, (places, columns)), shape=(size, self.count))


def _classes(size: int, nodes: Sequence[Node]) -> NDArray[np.int64]:
    """The class of each cell: two are the same where all nodes have the same weights and children."""
    edges = np.unique(np.concatenate([node.starts for node in nodes]))
    # A random combination modulo 2^64 is the same for different weights only by a freak.
    draw, signatures = SystemRandom(), np.zeros(len(edges), dtype=np.uint64)
    for node in nodes:
        run = np.searchsorted(node.starts, edges, "right") - 1
        one, two = (np.uint64(draw.getrandbits(64)) for _ in range(2))
        signatures += one * node.weights.astype(np.uint64)[run] + two * node.which.astype(np.uint64)[run]
    _, first, classes = np.unique(signatures, return_index=True, return_inverse=True)
    # Numbered in the order of their first cells: single cells keep their order.
    in_order = np.argsort(np.argsort(first))[classes]
    return np.asarray(np.repeat(in_order, np.diff(edges, append=size)), dtype=np.int64)
