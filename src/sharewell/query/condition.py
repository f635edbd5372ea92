"""Conditions: SQL's three-valued logic, over the cells of a domain or over the rows of a result.

A condition is a small tree. Its leaves say of each cell (or row) whether they are true, false or
unknown there; unknown is where a NULL was compared. A tree is *settled* into an ordinary set by
deciding what becomes of the unknown: WHERE leaves it out. Under NOT the question turns round (a
cell is surely outside exactly where it is not possibly inside), so one two-valued pass is enough.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Protocol, TypeVar

import numpy as np

from sharewell.query.attribute import Mask
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery


class Condition:
    """Something that is true, false or unknown of every cell, or of every row of a result."""


@dataclass(frozen=True)
class All(Condition):
    """AND: true where every part is true, false where one is false."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class AnyOf(Condition):
    """OR: true where a part is true, false where all are false."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Not(Condition):
    """NOT: unknown stays unknown."""

    part: Condition


@dataclass(frozen=True)
class Is(Condition):
    """IS TRUE, IS FALSE and, with None, IS NULL: never unknown itself."""

    part: Condition
    expected: bool | None


@dataclass(frozen=True)
class Fixed(Condition):
    """A constant: true, false or, with None, unknown everywhere."""

    truth: bool | None

    def settled(self, unknown: bool) -> bool:
        """The constant as true or false, with or without the unknown."""
        return unknown if self.truth is None else self.truth


@dataclass(frozen=True, eq=False)
class Marks(Condition):
    """Where a leaf is true and where it is unknown; the two are disjoint.

    `level` is the position of the attribute whose cells are marked, or None where the marks are on
    the rows of a result.
    """

    true: Mask
    unknown: Mask
    level: int | None = None

    def settled(self, unknown: bool) -> Mask:
        """The marks as a set, with or without the unknown."""
        return self.true | self.unknown if unknown else self.true


class _Set(Protocol):
    """What a condition is settled into: sets that know intersection and complement."""

    def __and__(self: Set, other: Set, /) -> Set: ...
    def __invert__(self: Set) -> Set: ...


Set = TypeVar("Set", bound=_Set)
Leaf = Callable[[Condition, bool], Set]


def settle(condition: Condition, unknown: bool, leaf: Leaf[Set]) -> Set:
    """The set on which a condition is true, with or without where it is unknown.

    `leaf` settles what is no AND, OR, NOT or IS.
    """
    # IS NULL looks at its part twice. A condition of n of them, one in the other, would take 2^n looks
    # if it were not kept what each of them was settled into; `unknown` plays no part in that.
    kept: dict[int, Set] = {}

    def settled(condition: Condition, unknown: bool) -> Set:
        match condition:
            case All(parts):
                return _intersection(settled(part, unknown) for part in parts)
            case AnyOf(parts):
                return ~_intersection(~settled(part, unknown) for part in parts)
            case Not(part):
                return ~settled(part, not unknown)
            case Is(part, True):
                return settled(part, False)
            case Is(part, False):
                return ~settled(part, True)
            case Is(part, None):
                if id(condition) not in kept:
                    kept[id(condition)] = settled(part, True) & ~settled(part, False)
                return kept[id(condition)]
        return leaf(condition, unknown)

    return settled(condition, unknown)


def _intersection(sets: Iterable[Set]) -> Set:
    """All the sets' intersection, like with like: whole queries are cheaper to combine while small."""
    combined: list[tuple[int, Set]] = []
    for each in sets:
        count = 1
        while combined and combined[-1][0] == count:
            _, before = combined.pop()
            each, count = before & each, 2 * count
        combined.append((count, each))
    return reduce(operator.and_, (each for _, each in reversed(combined)))


def predicate(condition: Condition, domain: Domain) -> LinearQuery:
    """The cells on which a condition is true, as a query that counts their rows."""

    def leaf(condition: Condition, unknown: bool) -> Region:
        match condition:
            case Fixed():
                everything = Region.everything(domain)
                return everything if condition.settled(unknown) else ~everything
            case Marks(level=int(level)) as marks:
                return Region(domain, {level: marks.settled(unknown)})
        raise TypeError(f"{condition!r} says nothing about cells.")

    return settle(condition, False, leaf).query


@dataclass(frozen=True, eq=False)
class Region:
    """A set of cells: those that lie in every mask and, where there is one, in the predicate `rest`.

    Conditions on one attribute are combined as masks, and conditions on several stay one product of
    masks as long as AND alone combines them: both are far cheaper than combining whole queries.
    """

    domain: Domain
    masks: dict[int, Mask]
    rest: LinearQuery | None = None

    @classmethod
    def everything(cls, domain: Domain) -> Region:
        """Every cell."""
        return cls(domain, {0: np.ones(domain.shape[0], dtype=bool)})

    @cached_property
    def query(self) -> LinearQuery:
        """The predicate that selects these cells."""
        weights = {level: mask.astype(np.int64) for level, mask in self.masks.items()}
        box = LinearQuery.of_vectors(self.domain, weights)
        return box if self.rest is None else box.where(self.rest)

    def __and__(self, other: Region) -> Region:
        masks = dict(self.masks)
        for level, mask in other.masks.items():
            masks[level] = masks[level] & mask if level in masks else mask
        if self.rest is None:
            return Region(self.domain, masks, other.rest)
        rest = self.rest if other.rest is None else self.rest.where(other.rest)
        return Region(self.domain, masks, rest)

    def __invert__(self) -> Region:
        if self.rest is None and len(self.masks) == 1:
            return Region(self.domain, {level: ~mask for level, mask in self.masks.items()})
        return Region(self.domain, {}, ~self.query)
