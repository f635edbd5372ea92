"""The canonical form of a linear query: a weighted decision diagram over the attributes.

A node stands for a function of the attributes from its level on. It is a sum of terms, each a weight
vector over its own attribute's cells times a node one level down:

    f(v, rest) = sum over edges of weights[v] * child(rest)

What makes it canonical: the weight vectors of one node have disjoint supports, its children differ,
and every node is *primitive*: integer weights with greatest common divisor 1 and a positive first
weight. A factor taken out of a node travels up to whoever holds it, in the end to the query's scale.
So two functions are equal up to a factor exactly when their diagrams are the same, and a condition
that is an AND over attributes, or a SUM over one of them, is a single chain of nodes.

Every operation is a recursion over pairs of nodes that remembers the pairs it has seen; its cost
follows the diagrams and the attributes' sizes, never the size of the domain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import QueryError, QueryTooComplex

Weights = NDArray[np.int64]

#: The largest weight: with at most 2**31 rows, no answer can leave 64-bit integers.
MAX_WEIGHT = 2**31
#: The most pairs of nodes that one operation may visit.
MAX_PAIRS = 50_000


@dataclass(frozen=True, eq=False)
class Node:
    """A primitive function of the attributes from this level on; equal functions have equal digests."""

    edges: tuple[tuple[Weights, Node], ...]
    digest: bytes
    #: Whether the function is 1 everywhere, and whether it is 0 or 1 everywhere.
    is_one: bool
    is_predicate: bool

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def support(self) -> NDArray[np.bool_]:
        """The cells of this level's attribute on which the function is not zero everywhere."""
        support: NDArray[np.bool_] = np.logical_or.reduce([weights != 0 for weights, _ in self.edges])
        return support


#: Below the last attribute: the number 1.
TERMINAL = Node((), b"", is_one=True, is_predicate=True)

#: An integer times a primitive node; (0, None) is the zero function.
Scaled = tuple[int, Node | None]
ZERO: Scaled = (0, None)


def make(terms: Iterable[tuple[Weights, Scaled]]) -> Scaled:
    """The canonical node for a sum of terms whose supports are disjoint."""
    by_child: dict[Node, Weights] = {}
    for weights, (scale, child) in terms:
        if child is not None:
            scaled = weights if scale == 1 else _times(weights, scale)
            by_child[child] = by_child[child] + scaled if child in by_child else scaled
    placed = [(int((weights != 0).argmax()), weights, child) for child, weights in by_child.items()]
    placed = sorted((term for term in placed if term[1][term[0]]), key=lambda term: term[0])
    if not placed:
        return ZERO
    low = min(int(weights.min()) for _, weights, _ in placed)
    high = max(int(weights.max()) for _, weights, _ in placed)
    divisor = 1
    if low < 0 or high > 1:
        divisor = int(np.gcd.reduce([np.gcd.reduce(weights) for _, weights, _ in placed]))
        first, weights, _ = placed[0]
        divisor = divisor if weights[first] > 0 else -divisor
        _bounded(max(high, -low) // abs(divisor))
    edges = [(weights if divisor == 1 else weights // divisor, child) for _, weights, child in placed]
    return divisor, _seal(edges)


def _seal(edges: Sequence[tuple[Weights, Node]]) -> Node:
    digest = hashlib.blake2b(digest_size=16)
    plain = True
    for weights, child in edges:
        weights.flags.writeable = False
        digest.update(len(weights).to_bytes(8, "little"))
        digest.update(weights.tobytes())
        digest.update(child.digest)
        plain = plain and child.is_predicate and weights.min() >= 0 and weights.max() == 1
    is_one = plain and len(edges) == 1 and edges[0][1].is_one and bool(edges[0][0].all())
    return Node(tuple(edges), digest.digest(), is_one, plain)


@lru_cache(maxsize=4096)
def ones(*sizes: int) -> Node:
    """The function that is 1 on every cell of attributes of these sizes."""
    if not sizes:
        return TERMINAL
    return _seal([(np.ones(sizes[0], dtype=np.int64), ones(*sizes[1:]))])


def product(sizes: Sequence[int], vectors: Mapping[int, Weights]) -> Scaled:
    """The product of one weight vector per attribute, given by position; 1 for those left out."""
    last = max(vectors, default=-1)
    scale, node = 1, ones(*sizes[last + 1 :])
    for level in range(last, -1, -1):
        weights = vectors.get(level, ones(sizes[level]).edges[0][0])
        factor, above = make([(weights, (1, node))])
        if above is None:
            return ZERO
        scale, node = scale * factor, above
    return scale, node


def multiply(left: Node, right: Node) -> Scaled:
    """The pointwise product of two functions."""
    memo: dict[tuple[Node, Node], Scaled] = {}

    def visit(p: Node, q: Node) -> Scaled:
        if p.is_one:
            return 1, q
        if q.is_one:
            return 1, p
        if (p, q) not in memo:
            _limit(memo)
            memo[p, q] = make(
                (w * u, visit(c, d))
                for w, c in p.edges
                for u, d in q.edges
                if np.any((w != 0) & (u != 0))
            )
        return memo[p, q]

    return visit(left, right)


def complement(node: Node) -> Scaled:
    """The function that is 1 where a predicate is 0, and 0 where it is 1."""
    memo: dict[Node, Scaled] = {}

    def visit(node: Node) -> Scaled:
        if node.is_one:
            return ZERO
        if node not in memo:
            _limit(memo)
            inside = [(weights, visit(child)) for weights, child in node.edges]
            rest = ones(*sizes(node)[1:])
            memo[node] = make([*inside, ((~node.support).astype(np.int64), (1, rest))])
        return memo[node]

    return visit(node)


def combine(a: int, left: Scaled, b: int, right: Scaled) -> Scaled:
    """The function a * left + b * right."""
    memo: dict[tuple[int, int, Node, Node], Scaled] = {}

    def visit(a: int, p: Node, b: int, q: Node) -> Scaled:
        if p == q:
            return (a + b, p) if a + b else ZERO
        key = (a, b, p, q)
        if key not in memo:
            _limit(memo)
            memo[key] = make(terms(a, p, b, q))
        return memo[key]

    def terms(a: int, p: Node, b: int, q: Node) -> Iterator[tuple[Weights, Scaled]]:
        for w, c in p.edges:
            yield np.where(q.support, 0, _times(w, a)), (1, c)
        for u, d in q.edges:
            yield np.where(p.support, 0, _times(u, b)), (1, d)
        for w, c in p.edges:
            for u, d in q.edges:
                both = np.flatnonzero((w != 0) & (u != 0))
                pairs = (
                    np.unique(np.stack([w[both], u[both]]), axis=1) if len(both) else np.empty((2, 0))
                )
                for x, y in pairs.T.astype(np.int64):
                    here = ((w == x) & (u == y)).astype(np.int64)
                    yield here, visit(_bounded(a * int(x)), c, _bounded(b * int(y)), d)

    (s, p), (t, q) = left, right
    a, b = a * s, b * t
    if p is None or a == 0:
        return (b, q) if b else ZERO
    if q is None or b == 0:
        return (a, p)
    return visit(a, p, b, q)


def inner(left: Node, right: Node, pair: Callable[[int, Weights, Weights], float]) -> float:
    """The sum over terms of both of the products of `pair(level, weights, weights)`.

    With pair = dot product this is the inner product; with weights' M_level weights it is the inner
    product under a Kronecker product of matrices.
    """
    memo: dict[tuple[Node, Node], float] = {}

    def visit(level: int, p: Node, q: Node) -> float:
        if not p.edges:
            return 1
        if (p, q) not in memo:
            _limit(memo)
            total: float = 0
            for w, c in p.edges:
                for u, d in q.edges:
                    weight = pair(level, w, u)
                    if weight:
                        total += weight * visit(level + 1, c, d)
            memo[p, q] = total
        return memo[p, q]

    return visit(0, left, right)


def fold(node: Node, of_edges: Callable[[list[tuple[Weights, float]]], float]) -> float:
    """A number computed from the bottom up: `of_edges` sees each edge's weights and child's number."""
    memo: dict[Node, float] = {TERMINAL: 1}

    def visit(node: Node) -> float:
        if node not in memo:
            memo[node] = of_edges([(weights, visit(child)) for weights, child in node.edges])
        return memo[node]

    return visit(node)


def extremes(node: Node) -> tuple[int, int]:
    """The smallest and the largest value of the function among those that are not 0."""
    memo: dict[Node, tuple[int, int]] = {TERMINAL: (1, 1)}

    def visit(node: Node) -> tuple[int, int]:
        if node not in memo:
            ends = []
            for weights, child in node.edges:
                used = weights[weights != 0]
                ends += [int(w) * end for w in (used.min(), used.max()) for end in visit(child)]
            memo[node] = min(ends), max(ends)
        return memo[node]

    return visit(node)


def sizes(node: Node) -> tuple[int, ...]:
    """The sizes of the attributes that the function is over."""
    return (len(node.edges[0][0]), *sizes(node.edges[0][1])) if node.edges else ()


def apply(node: Node, array: NDArray[Any]) -> float:
    """The inner product of a function with a dense array that has one axis per attribute.

    The array is first narrowed to the box that holds the function's support, which costs nothing.
    Then level by level: each node holds the slices of the array that reach it, already weighted and
    summed over the attributes above, so a node is visited once however many paths lead to it.
    """
    if array.ndim == 1:
        # All edges of a node end in different children, and here there is one.
        return (array @ node.edges[0][0]).item()
    boxes = [_extent(nodes) for nodes in _levels(node)]
    reached: dict[Node, NDArray[Any]] = {node: array[tuple(boxes)]}
    for box in boxes:
        below: dict[Node, NDArray[Any]] = {}
        for at, part in reached.items():
            for weights, child in at.edges:
                summed = _contract(weights[box], part)
                below[child] = below[child] + summed if child in below else summed
        reached = below
    answer: float = reached[TERMINAL].item()
    return answer


def _levels(node: Node) -> Iterator[set[Node]]:
    """The nodes of each level, from the top."""
    level = {node}
    while TERMINAL not in level:
        yield level
        level = {child for at in level for _, child in at.edges}


def _extent(nodes: set[Node]) -> slice:
    """The smallest range of cells outside which all these functions are zero."""
    used = np.flatnonzero(np.logical_or.reduce([node.support for node in nodes]))
    return slice(int(used[0]), int(used[-1]) + 1)


def dense(node: Node) -> Weights:
    """The function written out, cell by cell, in C order."""
    if len(node.edges) == 1 and node.edges[0][1] is TERMINAL:
        return node.edges[0][0]
    memo: dict[Node, Weights] = {TERMINAL: np.ones(1, dtype=np.int64)}

    def visit(node: Node) -> Weights:
        if node not in memo:
            terms = [
                np.multiply.outer(weights, visit(child)).ravel() if child.edges else weights
                for weights, child in node.edges
            ]
            memo[node] = np.sum(terms, axis=0) if len(terms) > 1 else terms[0]
        return memo[node]

    return visit(node)


def paths(node: Node) -> Iterator[tuple[Weights, ...]]:
    """The products that the function is a sum of: one weight vector per attribute each."""
    if not node.edges:
        yield ()
        return
    for weights, child in node.edges:
        for rest in paths(child):
            yield (weights, *rest)


def _contract(weights: Weights, part: NDArray[Any]) -> NDArray[Any]:
    """Sum `part` over its first axis with these weights, reading only where they are not zero."""
    used = np.flatnonzero(weights)
    first, last = int(used[0]), int(used[-1]) + 1
    solid = len(used) == last - first
    chosen = weights[first:last] if solid else weights[used]
    rows = part[first:last] if solid else part[used]
    if (chosen == 1).all():
        return np.asarray(rows.sum(axis=0))
    return np.asarray(np.tensordot(chosen, rows, axes=1))


def _times(weights: Weights, factor: int) -> Weights:
    return weights * np.int64(_bounded(factor))


def _bounded(weight: int) -> int:
    if abs(weight) > MAX_WEIGHT:
        raise QueryError(
            f"A query's weights must stay within {MAX_WEIGHT:,} of zero.",
            hint="Scale the query down.",
        )
    return weight


def _limit(visited: Sized) -> None:
    if len(visited) > MAX_PAIRS:
        raise QueryTooComplex(
            "The condition ties too many attributes together to be answered.",
            hint="Ask for its parts in several questions.",
        )
