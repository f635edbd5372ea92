"""The canonical form of a linear query: a weighted decision diagram over the attributes.

A node represents a function of the attributes from its level on. It cuts the cells of its attribute into
runs; on each run the function is a weight times a node one level down:

    f(v, rest) = weight of v's run * child of v's run (rest)

The form is canonical because neighbouring runs differ, children are distinct and in the order of their
first run, and every node is *primitive*: integer weights with greatest common divisor 1 and a positive
first weight. Factors propagate up to the query's scale. Two functions are therefore equal up to a factor
exactly when their diagrams are equal. An AND over attributes, or a SUM over one of them, is a single
chain of nodes.

Every operation is a memoized recursion over pairs of nodes. A pair costs the number of its runs: the
size of the domain does not matter, nor do those of its attributes.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import QueryError, QueryTooComplex

Weights = NDArray[np.int64]

#: The largest weight: with at most 2**31 rows, every answer fits in a 64-bit integer.
MAX_WEIGHT = 2**31
#: The maximum number of node pairs that one operation may visit.
MAX_PAIRS = 50_000
#: The maximum number of steps of a check that functions are disjoint.
MAX_STEPS = 2**22
#: The maximum number of weights that a node keeps as dense vectors.
MAX_KEPT = 1024


@dataclass(frozen=True, eq=False)
class Node:
    """A primitive function of the attributes from this level on; equal functions have equal digests.

    Run i begins at cell `starts[i]` and leads to `children[which[i]]`; without weight, `which[i]` is -1.
    """

    digest: bytes
    size: int
    starts: Weights
    weights: Weights
    which: Weights
    children: tuple[Node, ...]
    #: Whether the function is 1 everywhere, and whether it is 0 or 1 everywhere.
    is_one: bool
    is_predicate: bool

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def runs(self) -> Iterator[tuple[int, int, int, int]]:
        """The runs with a weight: first cell, one past the last, weight and the index of the child."""
        starts = self.starts.tolist()
        runs = zip(
            starts, [*starts[1:], self.size], self.weights.tolist(), self.which.tolist(), strict=True
        )
        return (run for run in runs if run[2])

    @cached_property
    def span(self) -> tuple[int, int]:
        """The first cell with a weight, and one past the last."""
        used = self.weights.nonzero()[0]
        first, last = int(used[0]), int(used[-1]) + 1
        return int(self.starts[first]), int(self.starts[last]) if last < len(self.starts) else self.size

    @property
    def vectors(self) -> tuple[tuple[Weights, Node], ...]:
        """Every child with its weights, one for each cell; kept if they take little memory."""
        if (known := self.__dict__.get("kept_vectors")) is not None:
            return known  # type: ignore[no-any-return]
        lengths = np.diff(self.starts, append=self.size)
        vectors = [
            np.repeat(
                self.weights if len(self.children) == 1 else self.weights * (self.which == at), lengths
            )
            for at in range(len(self.children))
        ]
        for vector in vectors:
            vector.flags.writeable = False
        found = tuple(zip(vectors, self.children, strict=True))
        if self.size * len(self.children) <= MAX_KEPT:
            self.__dict__["kept_vectors"] = found
        return found


def _node(
    size: int, starts: Weights, weights: Weights, which: Weights, children: Sequence[Node], plain: bool
) -> Node:
    """Seal a node in canonical form; `plain` if all its weights are 0 or 1."""
    parts = [size.to_bytes(8, "little"), len(starts).to_bytes(8, "little")]
    for array in (starts, weights, which):
        array.flags.writeable = False
        parts.append(array.tobytes())
    parts += [child.digest for child in children]
    digest = hashlib.blake2b(b"".join(parts), digest_size=16).digest()
    plain = plain and all(child.is_predicate for child in children)
    is_one = plain and len(starts) == 1 and children[0].is_one
    return Node(digest, size, starts, weights, which, tuple(children), is_one, plain)


_NONE: Weights = np.zeros(0, dtype=np.int64)
#: Below the last attribute: the number 1.
TERMINAL = Node(b"", 0, _NONE, _NONE, _NONE, (), is_one=True, is_predicate=True)

#: An integer times a primitive node; (0, None) is the zero function.
Scaled = tuple[int, Node | None]
ZERO: Scaled = (0, None)


@lru_cache(maxsize=4096)
def ones(*sizes: int) -> Node:
    """Return the function that is 1 on every cell of attributes of these sizes."""
    return constant(sizes[0], ones(*sizes[1:])) if sizes else TERMINAL


_FIRST, _ONCE = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)


def constant(size: int, child: Node) -> Node:
    """Return the function that is a child's on every cell of an attribute."""
    return _node(size, _FIRST, _ONCE, _FIRST, [child], plain=True)


def make(
    size: int, starts: Weights, weights: Weights, which: Weights, parts: Sequence[Scaled]
) -> Scaled:
    """Build the canonical node that is `weights[i] * parts[which[i]]` on the run from `starts[i]`."""
    if len(starts) == 1:
        scale, child = parts[int(which[0])]
        scale *= int(weights[0])
        return (scale, constant(size, child)) if scale and child else ZERO
    numbers: dict[Node, int] = {}
    targets = [-1 if part is None else numbers.setdefault(part, len(numbers)) for _, part in parts]
    if not numbers:
        return ZERO
    scales = [scale for scale, _ in parts]
    if min(scales) != 1 or max(scales) != 1:
        weights = weights * np.array([_bounded(scale) for scale in scales])[which]
    which = np.where(weights, np.array(targets)[which], -1)
    keep = np.ones(len(starts), dtype=bool)
    keep[1:] = (weights[1:] != weights[:-1]) | (which[1:] != which[:-1])
    starts, weights, which = starts[keep], weights[keep], which[keep]
    children = list(numbers)
    used = [at for at in dict.fromkeys(which.tolist()) if at >= 0] if len(children) > 1 else [0]
    if used != list(range(len(children))):
        renumbered = np.full(len(children) + 1, -1)
        renumbered[used] = np.arange(len(used))
        which, children = renumbered[which], [children[at] for at in used]
    return _primitive(size, starts, weights, which, children)


def _primitive(
    size: int, starts: Weights, weights: Weights, which: Weights, children: Sequence[Node]
) -> Scaled:
    """Divide the weights of distinct runs and children by their greatest common divisor."""
    low, high, divisor = int(weights.min()), int(weights.max()), 1
    if low == high == 0:
        return ZERO
    if low < 0 or high > 1:
        divisor = int(np.gcd.reduce(weights)) * (1 if weights[weights != 0][0] > 0 else -1)
        _bounded(max(high, -low) // abs(divisor))
        weights = weights // divisor
    plain = low >= 0 and high == divisor
    return divisor, _node(size, starts, weights, which, children, plain)


def of_vector(weights: NDArray[Any], child: Node) -> Scaled:
    """Build the node with one weight per cell and one child."""
    spend(1 + (len(weights) >> 14))
    first = np.empty(len(weights), dtype=bool)
    first[:1] = True
    np.not_equal(weights[1:], weights[:-1], out=first[1:])
    starts = first.nonzero()[0]
    whole = weights[starts].astype(np.int64)
    return _primitive(len(weights), starts, whole, (whole != 0) - 1, [child])


def product(sizes: Sequence[int], vectors: Mapping[int, NDArray[Any]]) -> Scaled:
    """Multiply one weight vector per attribute, keyed by level; missing attributes have weight 1."""
    last = max(vectors, default=-1)
    spend(last + 1)
    scale, node = 1, ones(*sizes[last + 1 :])
    for level in range(last, -1, -1):
        if level not in vectors:
            node = constant(sizes[level], node)
            continue
        factor, above = of_vector(vectors[level], node)
        if above is None:
            return ZERO
        scale, node = scale * factor, above
    return scale, node


#: The common runs of two nodes: their starts, their weights in both, and which pair of children.
Overlay = tuple[Weights, Weights, Weights, Weights, list[tuple[Node | None, Node | None]]]


def _overlay(p: Node, q: Node) -> Overlay:
    if len(p.starts) == len(q.starts) == 1:
        return _FIRST, _ONCE, _ONCE, _FIRST, [(p.children[0], q.children[0])]
    starts = np.concatenate([p.starts, q.starts])
    starts.sort(kind="stable")  # merges two sorted arrays in linear time
    fresh = np.ones(len(starts), dtype=bool)
    np.not_equal(starts[1:], starts[:-1], out=fresh[1:])
    starts = starts[fresh]
    spend(len(starts) >> 6)
    i = p.starts.searchsorted(starts, "right") - 1
    j = q.starts.searchsorted(starts, "right") - 1
    base = len(q.children) + 1
    codes, which = _numbered((p.which[i] + 1) * base + q.which[j] + 1, (len(p.children) + 1) * base)
    left, right = (None, *p.children), (None, *q.children)
    pairs = [(left[code // base], right[code % base]) for code in codes]
    return starts, p.weights[i], q.weights[j], which, pairs


def _numbered(codes: Weights, bound: int) -> tuple[list[int], Weights]:
    """Number the distinct codes, all below a bound: the codes, and the number of each entry."""
    if bound > 2**16:
        distinct, numbers = np.unique(codes, return_inverse=True)
        return distinct.tolist(), numbers
    used = np.zeros(bound, dtype=bool)
    used[codes] = True
    return used.nonzero()[0].tolist(), (used.cumsum() - 1)[codes]


def multiply(left: Node, right: Node) -> Scaled:
    """Multiply two functions pointwise."""
    memo: dict[tuple[bytes, bytes], Scaled] = {}

    def visit(p: Node | None, q: Node | None) -> Scaled:
        if p is None or q is None:
            return ZERO
        if p.is_one or q.is_one:
            return 1, q if p.is_one else p
        key = (p.digest, q.digest)
        if key not in memo:
            spend(1, memo)
            starts, w, u, which, pairs = _overlay(p, q)
            memo[key] = make(p.size, starts, w * u, which, [visit(c, d) for c, d in pairs])
        return memo[key]

    return visit(left, right)


def unite(left: Node, right: Node) -> Scaled:
    """Return the predicate that is 1 where at least one of two predicates is."""
    memo: dict[tuple[bytes, bytes], Scaled] = {}

    def visit(p: Node | None, q: Node | None) -> Scaled:
        if p is None or q is None:
            return (1, p or q) if p or q else ZERO
        if p.is_one or q.is_one or p == q:
            return 1, p if p.is_one else q
        key = (p.digest, q.digest)
        if key not in memo:
            spend(1, memo)
            starts, w, u, which, pairs = _overlay(p, q)
            memo[key] = make(p.size, starts, w | u, which, [visit(c, d) for c, d in pairs])
        return memo[key]

    return visit(left, right)


def complement(node: Node) -> Scaled:
    """Return the function that is 1 where a predicate is 0, and 0 where it is 1."""
    memo: dict[Node, Scaled] = {}

    def visit(node: Node) -> Scaled:
        if node.is_one:
            return ZERO
        if node not in memo:
            spend(1, memo)
            outside = ones(*sizes(node.children[0]))
            parts = [(1, outside), *map(visit, node.children)]
            memo[node] = make(node.size, node.starts, np.ones_like(node.starts), node.which + 1, parts)
        return memo[node]

    return visit(node)


def combine(a: int, left: Scaled, b: int, right: Scaled) -> Scaled:
    """Return the function a * left + b * right."""
    memo: dict[tuple[int, int, Node, Node], Scaled] = {}

    def visit(a: int, p: Node | None, b: int, q: Node | None) -> Scaled:
        if p is None or q is None or p == q:
            return (a + b, p or q) if a + b else ZERO
        key = (_bounded(a), _bounded(b), p, q)
        if key not in memo:
            spend(1, memo)
            starts, w, u, which, pairs = _overlay(p, q)
            numbers: dict[tuple[int, int, int], int] = {}
            runs = zip(w.tolist(), u.tolist(), which.tolist(), strict=True)
            which = np.array([numbers.setdefault(run, len(numbers)) for run in runs])
            parts = [visit(a * x, pairs[at][0], b * y, pairs[at][1]) for x, y, at in numbers]
            memo[key] = make(p.size, starts, np.ones_like(starts), which, parts)
        return memo[key]

    (s, p), (t, q) = left, right
    return visit(a * s, p if a else None, b * t, q if b else None)


def split(root: Node, level: int, groups: Weights) -> dict[int, Scaled]:
    """Restrict a function to each group of an attribute's cells in which it has a weight.

    `groups[cell]` is the group of a cell; negative groups are left out.
    """
    levels = [[root]]
    for _ in range(level):
        levels.append(list(dict.fromkeys(child for node in levels[-1] for child in node.children)))
    cuts = np.flatnonzero(np.diff(groups, prepend=groups[0] - 1))
    parts = {node: dict(_split_runs(node, cuts, groups)) for node in levels.pop()}
    for nodes in reversed(levels):
        above: dict[Node, dict[int, Scaled]] = {}
        for node in nodes:
            below = [parts[child] for child in node.children]
            found = sorted({group for each in below for group in each})
            spend(len(found))
            runs = node.size, node.starts, node.weights, node.which
            above[node] = {
                group: make(*runs, [each.get(group, ZERO) for each in below]) for group in found
            }
        parts = above
    return parts[root]


def _split_runs(node: Node, cuts: Weights, groups: Weights) -> Iterator[tuple[int, Scaled]]:
    starts = np.union1d(node.starts, cuts)
    run = np.searchsorted(node.starts, starts, "right") - 1
    lengths = np.diff(starts, append=node.size)
    used = np.flatnonzero((node.weights[run] != 0) & (groups[starts] >= 0))
    order = used[np.argsort(groups[starts[used]], kind="stable")]
    found, begins = np.unique(groups[starts[order]], return_index=True)
    spend(len(found))
    parts = [(1, child) for child in node.children]
    for group, begin, end in zip(found.tolist(), begins, [*begins[1:], len(order)], strict=False):
        chosen = order[begin:end]
        filled, at = fill(node.size, starts[chosen], lengths[chosen])
        weights, which = node.weights[run[chosen]], node.which[run[chosen]]
        yield group, make(node.size, filled, np.where(at < 0, 0, weights[at]), which[at], parts)


def fill(size: int, starts: Weights, lengths: Weights) -> tuple[Weights, Weights]:
    """Fill the gaps between some runs: the starts of all runs, and each one's index or -1."""
    ends = starts + lengths
    filled = np.unique(np.concatenate([[0], starts, ends[ends < size]]))
    at = np.searchsorted(starts, filled, "right") - 1
    return filled, np.where(filled < ends[at], at, -1)


def are_disjoint(nodes: Sequence[Node], levels: int | None = None) -> bool:
    """Return whether no cell has a weight in two of these functions.

    With `levels`, a cell is given by so many levels: functions with weights in one of them overlap,
    wherever these are on the levels below.

    Descends level by level into the sets of functions that share a run of cells. Each set is looked at
    once, so the time is that of a pass over the diagrams; if it is not, QueryTooComplex is raised.
    """
    pending, seen, steps = [(1, list(nodes))], set[frozenset[bytes]](), 0
    if len({node.digest for node in nodes}) < len(nodes):
        return False
    while pending:
        #: The children whose runs end, and those whose runs begin, at each cell.
        ends, begins = defaultdict[int, list[Node]](list), defaultdict[int, list[Node]](list)
        level, sharing = pending.pop()
        for node in sharing:
            for start, end, _, at in node.runs:
                child = TERMINAL if level == levels else node.children[at]
                begins[start].append(child)
                ends[end].append(child)
        active: dict[bytes, Node] = {}
        for cell in sorted(begins.keys() | ends.keys()):
            for child in ends[cell]:
                del active[child.digest]
            for child in begins[cell]:
                if child.digest in active:
                    return False
                active[child.digest] = child
            steps += len(active)
            if steps > MAX_STEPS:
                raise _too_complex()
            if len(active) > 1 and (key := frozenset(active)) not in seen:
                seen.add(key)
                pending.append((level + 1, list(active.values())))
    return True


def sizes(node: Node) -> tuple[int, ...]:
    """Return the sizes of the function's attributes."""
    return (node.size, *sizes(node.children[0])) if node.children else ()


def paths(node: Node) -> Iterator[tuple[Weights, ...]]:
    """Yield the products that sum to the function, each as one weight vector per attribute."""
    if not node.children:
        yield ()
        return
    for weights, child in node.vectors:
        for rest in paths(child):
            yield (weights, *rest)


def serialize(root: Node | None) -> list[Any]:
    """Return a diagram's nodes, each a list of [run lengths, index of the child]; 0 is the terminal.

    Run lengths are [weight, number of consecutive cells] pairs over all cells, one list for each child.
    """
    indices: dict[Node, int] = {TERMINAL: 0}
    nodes: list[Any] = []

    def visit(node: Node) -> int:
        if node not in indices:
            below = [visit(child) for child in node.children]
            edges: list[list[list[int]]] = [[] for _ in below]
            filled = [0] * len(below)
            for start, end, weight, at in node.runs:
                edges[at] += [[0, start - filled[at]]] * (start > filled[at]) + [[weight, end - start]]
                filled[at] = end
            for runs, end in zip(edges, filled, strict=True):
                runs += [[0, node.size - end]] * (node.size > end)
            nodes.append([list(edge) for edge in zip(edges, below, strict=True)])
            indices[node] = len(nodes)
        return indices[node]

    if root is not None:
        visit(root)
    return nodes


def deserialize(nodes: Sequence[Any]) -> Scaled:
    """Rebuild a serialized diagram; refuse invalid nodes, since privacy rests on their invariants."""
    made: list[Scaled] = [(1, TERMINAL)]
    for edges in nodes:
        if any(length < 1 for runs, _ in edges for _, length in runs):
            raise QueryError("The stored query has a run without cells.")
        size, *others = {sum(length for _, length in runs) for runs, _ in edges}
        if others:
            raise QueryError("The stored query gives one attribute two sizes.")
        parts = [made[child] for _, child in edges]
        if len(edges) == 1:
            weights, lengths = np.array(edges[0][0], dtype=np.int64).T
            starts = np.cumsum(lengths) - lengths
            made.append(make(size, starts, weights, np.zeros_like(starts), parts))
            continue
        runs = sorted(run for at, (edge, _) in enumerate(edges) for run in _weighted(edge, at))
        if any(start + length > after for (start, length, *_), (after, *_) in pairwise(runs)):
            raise QueryError("The stored query gives one cell two weights.")
        starts, lengths, weights, which = np.array(runs, dtype=np.int64).T
        filled, at = fill(size, starts, lengths)
        made.append(make(size, filled, np.where(at < 0, 0, weights[at]), which[at], parts))
    return made[-1] if nodes else ZERO


def _weighted(edge: Sequence[Sequence[int]], at: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the runs of an edge that have a weight: first cell, length, weight and the edge's index."""
    for (weight, length), end in zip(edge, accumulate(length for _, length in edge), strict=True):
        if weight:
            yield end - length, length, weight, at


def _bounded(weight: int) -> int:
    if abs(weight) > MAX_WEIGHT:
        raise QueryError(
            f"The weights of a query must not exceed {MAX_WEIGHT:,}.", hint="Scale the query down."
        )
    return weight


_steps_left: ContextVar[list[int] | None] = ContextVar("steps_left", default=None)


@contextmanager
def limited(steps: int) -> Iterator[None]:
    """Let all operations inside take so many steps together; then they raise QueryTooComplex."""
    token = _steps_left.set([steps])
    try:
        yield
    finally:
        _steps_left.reset(token)


def is_limited() -> bool:
    """Whether this is inside `limited`: of what was accepted once, the work is not limited again."""
    return _steps_left.get() is not None


def allow(steps: int) -> None:
    """Let the operations inside `limited` take so many more steps."""
    left = _steps_left.get()
    if left is not None:
        left[0] += steps


def spend(steps: int, visited: Sized = ()) -> None:
    """Count steps, each about as long as making a small node; refuse too many."""
    left = _steps_left.get()
    if left is not None:
        left[0] -= steps
    if len(visited) > MAX_PAIRS or (left is not None and left[0] < 0):
        raise _too_complex()


def _too_complex() -> QueryTooComplex:
    return QueryTooComplex(
        "The question takes too much work: it combines too many values, columns or expressions.",
        hint="Use IN, ranges or declared bins, or split it into several queries.",
    )
