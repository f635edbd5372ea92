"""The families of queries that analysts are known to ask, each as a Block.

Families on one attribute (`prefixes`, `hierarchy`, `ranges`) count over all the others. Any of them
is restricted by a predicate with `Block.where`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, pairwise, product

import numpy as np

from sharewell.errors import QueryError
from sharewell.query.block import Block
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: A family of intervals: the (first, last + 1) pairs that it has on a line of so many cells.
Intervals = Callable[[int], Iterator[tuple[int, int]]]


def identity(domain: Domain) -> Block:
    """One count per cell of the domain."""
    return marginal(domain, domain.names)


def total(domain: Domain) -> Block:
    """The count of all rows."""
    return Block(domain, [LinearQuery.all(domain)])


def prefixes(domain: Domain, name: str | None = None) -> Block:
    """The running totals along an attribute: cells 0 to i for every i."""
    return _on_line(domain, name, lambda size: ((0, end) for end in range(1, size + 1)))


def ranges(domain: Domain, name: str | None = None) -> Block:
    """Every interval of an attribute's cells."""
    return _on_line(
        domain, name, lambda size: ((a, b) for a in range(size) for b in range(a + 1, size + 1))
    )


def hierarchy(domain: Domain, name: str | None = None, *, branching: int = 2) -> Block:
    """A tree of intervals: the whole line, its `branching` parts, theirs, down to single cells."""
    if branching < 2:
        raise QueryError(f"A hierarchy branches into at least 2 parts, not {branching}.")
    return _on_line(domain, name, lambda size: tree(size, branching))


def h2(domain: Domain, name: str | None = None) -> Block:
    """The binary hierarchy."""
    return hierarchy(domain, name, branching=2)


def marginal(domain: Domain, names: Iterable[str]) -> Block:
    """One count per combination of these attributes' cells, in C order."""
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
    """All k-way marginals: one count per cell of every k attributes; k = 0 is the total."""
    if not 0 <= k <= len(domain.names):
        raise QueryError(f"There are no {k}-way marginals of {len(domain.names)} attributes.")
    return _union(domain, (marginal(domain, names) for names in combinations(domain.names, k)))


def data_cube(domain: Domain) -> Block:
    """Every marginal of every order, from the total to the single cells."""
    return _union(domain, (marginals(domain, k) for k in range(len(domain.names) + 1)))


def race1(domain: Domain, name: str | None = None) -> Block:
    """The six single races, and everybody else; a cell is a 6-bit mask of the races chosen."""
    level = _races(domain, name)
    single = [1 << bit for bit in range(6)]
    rest = [mask for mask in range(64) if mask not in single]
    return _sets(domain, level, [[mask] for mask in single] + [rest])


def race2(domain: Domain, name: str | None = None) -> Block:
    """Every combination of races singly, those of exactly 1 to 6 races, and those of two or more."""
    level = _races(domain, name)
    chosen = [[mask] for mask in range(1, 64)]
    of_size = [[mask for mask in range(64) if mask.bit_count() == bits] for bits in range(1, 7)]
    several = [mask for mask in range(64) if mask.bit_count() >= 2]
    return _sets(domain, level, [*chosen, *of_size, several])


def race3(domain: Domain, name: str | None = None, *, race: int = 0) -> Block:
    """One single race, 0 to 5."""
    if race not in range(6):
        raise QueryError(f"There is no race {race}.", hint="The six races are 0 to 5.")
    return _sets(domain, _races(domain, name), [[1 << race]])


def random_points(domain: Domain, count: int, rng: np.random.Generator) -> Block:
    """Single cells drawn uniformly, with replacement."""
    return Block(domain, [LinearQuery.cell(domain, int(c)) for c in rng.integers(0, domain.size, count)])


def random_ranges(domain: Domain, count: int, rng: np.random.Generator) -> Block:
    """Boxes: on every attribute an interval drawn uniformly among all of its intervals."""

    def box() -> LinearQuery:
        vectors = {}
        for level, size in enumerate(domain.shape):
            # Two different edges among size + 1, unordered, are an interval drawn uniformly.
            start, end = sorted(rng.choice(size + 1, 2, replace=False))
            vectors[level] = _interval(size, int(start), int(end))
        return LinearQuery.of_vectors(domain, vectors)

    return Block(domain, [box() for _ in range(count)])


def _on_line(domain: Domain, name: str | None, intervals: Intervals) -> Block:
    level = _level(domain, name)
    size = domain.shape[level]
    return Block(
        domain,
        [LinearQuery.of_vectors(domain, {level: _interval(size, a, b)}) for a, b in intervals(size)],
    )


def tree(size: int, branching: int) -> Iterator[tuple[int, int]]:
    """The intervals of the tree, level by level; parts differ in size by at most one."""
    level = [(0, size)]
    while level:
        yield from level
        level = [part for a, b in level if b - a > 1 for part in _parts(a, b, branching)]


def _parts(start: int, end: int, count: int) -> list[tuple[int, int]]:
    cuts = [start + (end - start) * i // count for i in range(count + 1)]
    return [(a, b) for a, b in pairwise(cuts) if a < b]


def _sets(domain: Domain, level: int, sets: Iterable[Iterable[int]]) -> Block:
    attribute = domain.attributes[level]
    vectors = [attribute.mask(cells).astype(np.int64) for cells in sets]
    return Block(domain, [LinearQuery.of_vectors(domain, {level: vector}) for vector in vectors])


def _level(domain: Domain, name: str | None) -> int:
    if name is None and len(domain.names) > 1:
        raise QueryError(
            "Say which attribute the queries run along.",
            hint=f"There are {', '.join(domain.names)}.",
        )
    return 0 if name is None else domain.index(name)


def _races(domain: Domain, name: str | None) -> int:
    level = _level(domain, name)
    if domain.shape[level] != 64:
        raise QueryError(
            f"The race workloads need an attribute of 64 cells, and {domain.names[level]} has "
            f"{domain.shape[level]}.",
            hint="A cell is a 6-bit mask of the races that a person chose.",
        )
    return level


def _interval(size: int, start: int, end: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    vector = np.zeros(size, dtype=np.int64)
    vector[start:end] = 1
    return vector


def _union(domain: Domain, blocks: Iterable[Block]) -> Block:
    return Block(domain, dict.fromkeys(query for block in blocks for query in block))
