"""The paper's race workloads; a cell is a 6-bit mask of the races that a person chose."""

from __future__ import annotations

from collections.abc import Iterable

from sharewell.errors import QueryError
from sharewell.query import Block, Domain, LinearQuery
from sharewell.query.workload import level_of


def race1(domain: Domain, name: str | None = None) -> Block:
    """Return the six single races and all others; a cell is a 6-bit mask of the races chosen."""
    level = _races(domain, name)
    single = [1 << bit for bit in range(6)]
    rest = [mask for mask in range(64) if mask not in single]
    return _sets(domain, level, [[mask] for mask in single] + [rest])


def race2(domain: Domain, name: str | None = None) -> Block:
    """Return every combination of races, those of exactly 1 to 6 races, and those of two or more."""
    level = _races(domain, name)
    chosen = [[mask] for mask in range(1, 64)]
    of_size = [[mask for mask in range(64) if mask.bit_count() == bits] for bits in range(1, 7)]
    several = [mask for mask in range(64) if mask.bit_count() >= 2]
    return _sets(domain, level, [*chosen, *of_size, several])


def race3(domain: Domain, name: str | None = None, *, race: int = 0) -> Block:
    """Return one single race, 0 to 5."""
    if race not in range(6):
        raise QueryError(f"Race {race} is out of range.", hint="The six races are 0 to 5.")
    return _sets(domain, _races(domain, name), [[1 << race]])


def _sets(domain: Domain, level: int, sets: Iterable[Iterable[int]]) -> Block:
    attribute = domain.attributes[level]
    vectors = [attribute.mask(cells) for cells in sets]
    return Block(domain, [LinearQuery.of_vectors(domain, {level: vector}) for vector in vectors])


def _races(domain: Domain, name: str | None) -> int:
    level = level_of(domain, name)
    if domain.shape[level] != 64:
        raise QueryError(
            f"Race workloads require 64 cells, but {domain.names[level]!r} has {domain.shape[level]}.",
            hint="A cell is a 6-bit mask of the races that a person chose.",
        )
    return level
