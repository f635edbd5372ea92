"""Predicates: SQL's three-valued logic over the cells of a domain.

A predicate is a tree. Each leaf is true, false or unknown on each cell; comparisons with NULL are
unknown. Evaluation turns the tree into a set by deciding whether the unknown counts as true: WHERE
excludes it. NOT flips that decision (a cell is certainly outside exactly if it is not possibly inside),
so one two-valued pass is enough.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")


class Predicate:
    """A condition that is true, false or unknown on every cell."""


@dataclass(frozen=True)
class And(Predicate):
    """True if every part is true, false if any part is false."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or(Predicate):
    """True if any part is true, false if every part is false."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Not(Predicate):
    """Negation; unknown stays unknown."""

    part: Predicate


@dataclass(frozen=True)
class IsTruth(Predicate):
    """IS TRUE, IS FALSE or, if `expected` is None, IS NULL; never unknown."""

    part: Predicate
    expected: bool | None


@dataclass(frozen=True)
class TruthValue(Predicate):
    """A constant: true, false or, if None, unknown."""

    truth: bool | None

    def decide(self, unknown: bool) -> bool:
        """Return the constant, with `unknown` in place of None."""
        return unknown if self.truth is None else self.truth


@dataclass(frozen=True, eq=False)
class TruthSet(Predicate):
    """A leaf given by two sets: where it is true, and where it is true or unknown."""

    true: Any
    possible: Any


class _Set(Protocol):
    """A set with intersection, union and complement."""

    def __and__(self: Set, other: Set, /) -> Set: ...
    def __or__(self: Set, other: Set, /) -> Set: ...
    def __invert__(self: Set) -> Set: ...


Set = TypeVar("Set", bound=_Set)


def evaluate(predicate: Predicate, unknown: bool, leaf: Callable[[Predicate, bool], Set]) -> Set:
    """Return the set on which a predicate is true, including where it is unknown if `unknown`.

    `leaf` evaluates every node that is not AND, OR, NOT, IS or a TruthSet.
    """
    # IS NULL evaluates its part twice, so nesting n of them would take 2^n evaluations without a memo.
    # Its value does not depend on `unknown`.
    memo: dict[int, Set] = {}

    def visit(node: Predicate, unknown: bool) -> Set:
        match node:
            case And(parts):
                return balanced(operator.and_, [visit(part, unknown) for part in parts])
            case Or(parts):
                return balanced(operator.or_, [visit(part, unknown) for part in parts])
            case Not(part):
                return ~visit(part, not unknown)
            case IsTruth(part, True):
                return visit(part, False)
            case IsTruth(part, False):
                return ~visit(part, True)
            case IsTruth(part, None):
                if id(node) not in memo:
                    memo[id(node)] = visit(part, True) & ~visit(part, False)
                return memo[id(node)]
            case TruthSet(true, possible):
                chosen: Set = possible if unknown else true
                return chosen
        return leaf(node, unknown)

    return visit(predicate, unknown)


def leaves_of(predicate: Predicate) -> Iterator[Predicate]:
    """Return the leaves of a predicate."""
    match predicate:
        case And(parts) | Or(parts):
            for each in parts:
                yield from leaves_of(each)
        case Not(part) | IsTruth(part):
            yield from leaves_of(part)
        case _:
            yield predicate


def balanced(combine: Callable[[Item, Item], Item], items: Iterable[Item]) -> Item:
    """Combine items in order by an associative operation, as a balanced tree.

    Queries are cheap to combine while they are small: one by one, n of them would take n^2 steps.
    """
    combined: list[tuple[int, Item]] = []
    for item in items:
        count = 1
        while combined and combined[-1][0] == count:
            _, before = combined.pop()
            item, count = combine(before, item), 2 * count
        combined.append((count, item))
    return reduce(lambda after, before: combine(before, after), [item for _, item in reversed(combined)])
