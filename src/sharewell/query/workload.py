"""Standard workloads, each as a Block.

Workloads on one attribute (`prefixes`, `hierarchy`, `ranges`) sum over all the others. `Block.where`
restricts any of them to a predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, pairwise, product

import numpy as np

from sharewell.errors import QueryError
from sharewell.query.block import Block
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: A family of intervals: yields (first, last + 1) pairs for a given number of cells.
Intervals = Callable[[int], Iterator[tuple[int, int]]]


def identity(domain: Domain) -> Block:
    """Return one count per cell of the domain."""
    return marginal(domain, domain.names)


def total(domain: Domain) -> Block:
    """Return the count of all rows."""
    return Block(domain, [LinearQuery.all(domain)])


def prefixes(domain: Domain, name: str | None = None) -> Block:
    """Return the running totals of an attribute: cells 0 to i for every i."""
    return _on_line(domain, name, lambda size: ((0, end) for end in range(1, size + 1)))


def ranges(domain: Domain, name: str | None = None) -> Block:
    """Return every interval of an attribute's cells."""
    return _on_line(
        domain, name, lambda size: ((a, b) for a in range(size) for b in range(a + 1, size + 1))
    )


def hierarchy(domain: Domain, name: str | None = None, *, branching: int = 2) -> Block:
    """Return a tree of intervals: all cells, their `branching` parts, and so on down to single cells."""
    if branching < 2:
        raise QueryError(f"The branching factor must be at least 2, not {branching}.")
    return _on_line(domain, name, lambda size: tree(size, branching))


def h2(domain: Domain, name: str | None = None) -> Block:
    """Return the binary hierarchy."""
    return hierarchy(domain, name, branching=2)


def marginal(domain: Domain, names: Iterable[str]) -> Block:
    """Return one count per combination of the attributes' cells, in C order."""
    levels = [domain.index(name) for name in names]
    eyes = [np.eye(domain.shape[level], dtype=np.int64) for level in levels]
    return Block(
        domain,
        [
            LinearQuery.of_vectors(domain, dict(zip(levels, rows, strict=True)))
            for rows in product(*eyes)
        ],
    )


def marginals(domain: Domain, k: int) -> Block:
    """Return all k-way marginals; k = 0 is the total."""
    if not 0 <= k <= len(domain.names):
        raise QueryError(f"Cannot form {k}-way marginals of {len(domain.names)} attributes.")
    return _union(domain, (marginal(domain, names) for names in combinations(domain.names, k)))


def data_cube(domain: Domain) -> Block:
    """Return the marginals of every order, from the total to single cells."""
    return _union(domain, (marginals(domain, k) for k in range(len(domain.names) + 1)))


def random_points(domain: Domain, count: int, rng: np.random.Generator) -> Block:
    """Draw single cells uniformly, with replacement."""
    return Block(domain, [LinearQuery.cell(domain, int(c)) for c in rng.integers(0, domain.size, count)])


def random_ranges(domain: Domain, count: int, rng: np.random.Generator) -> Block:
    """Draw boxes: on every attribute, an interval drawn uniformly from all its intervals."""

    def box() -> LinearQuery:
        vectors = {}
        for level, size in enumerate(domain.shape):
            # Two distinct edges out of size + 1, unordered, are a uniformly drawn interval.
            start, end = sorted(rng.choice(size + 1, 2, replace=False))
            vectors[level] = _interval(size, int(start), int(end))
        return LinearQuery.of_vectors(domain, vectors)

    return Block(domain, [box() for _ in range(count)])


def _on_line(domain: Domain, name: str | None, intervals: Intervals) -> Block:
    level = level_of(domain, name)
    size = domain.shape[level]
    return Block(
        domain,
        [LinearQuery.of_vectors(domain, {level: _interval(size, a, b)}) for a, b in intervals(size)],
    )


def tree(size: int, branching: int) -> Iterator[tuple[int, int]]:
    """Yield the intervals of a tree level by level; parts differ in size by at most one."""
    level = [(0, size)]
    while level:
        yield from level
        level = [part for a, b in level if b - a > 1 for part in _parts(a, b, branching)]


def _parts(start: int, end: int, count: int) -> list[tuple[int, int]]:
    cuts = [start + (end - start) * i // count for i in range(count + 1)]
    return [(a, b) for a, b in pairwise(cuts) if a < b]


def level_of(domain: Domain, name: str | None) -> int:
    """Return the position of an attribute; without a name, of the only one."""
    if name is None and len(domain.names) > 1:
        raise QueryError(
            "The domain has several attributes; name one.",
            hint=f"The attributes are {', '.join(domain.names)}.",
        )
    return 0 if name is None else domain.index(name)


def _interval(size: int, start: int, end: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    vector = np.zeros(size, dtype=np.int64)
    vector[start:end] = 1
    return vector


def _union(domain: Domain, blocks: Iterable[Block]) -> Block:
    return Block(domain, dict.fromkeys(query for block in blocks for query in block))
