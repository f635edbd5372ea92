"""Contractions of a decision diagram: what it is level by level, or node by node, reduced to numbers.

Inner products with counts, the weights of given cells or of all, the extreme weights, the groups in
which there are any, and the memory that the nodes take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sharewell.query.diagram import MAX_KEPT, TERMINAL, Node, Weights

Item = TypeVar("Item")

#: The largest table of the runs of nodes by cell; beyond it they are searched for.
MAX_TABLE = 2**22


def levels(root: Node) -> list[list[Node]]:
    """Return the nodes of a function, each once: by level, from the root to those above the terminal."""
    found, below = [[root]], dict.fromkeys(root.children)
    while below and TERMINAL not in below:
        found.append(list(below))
        below = dict.fromkeys(child for node in found[-1] for child in node.children)
    return found


def apply(node: Node, array: NDArray[Any]) -> float:
    """Return the inner product of a function with a dense array that has one axis per attribute."""
    if array.ndim == 1:
        # The children of a node are distinct, and the terminal is the only child here.
        [(weights, _)] = node.vectors
        return (array @ weights).item()
    answer: float = apply_by_group(node, array, {}).item()
    return answer


def apply_by_group(
    node: Node, array: NDArray[Any], groups: Mapping[int, NDArray[np.int64]]
) -> NDArray[Any]:
    """Return the inner product for every combination of groups: one axis for each grouped level.

    `groups[level][cell]` is the group of a cell. The array is first sliced to the bounding box of the
    function's support, which is free. Then, level by level, each node holds the slices of the array
    that reach it, already weighted and summed over the attributes above, so each node is visited once
    regardless of the number of paths to it.
    """
    boxes = []
    for nodes in levels(node):
        spans = [each.span for each in nodes]
        boxes.append(slice(min(first for first, _ in spans), max(end for _, end in spans)))
    reached: dict[Node, NDArray[Any]] = {node: array[tuple(boxes)]}
    for depth, box in enumerate(boxes):
        below: dict[Node, NDArray[Any]] = {}
        for at, part in reached.items():
            for weights, child in at.vectors:
                if depth in groups:
                    count = int(groups[depth].max()) + 1
                    summed = _contract_groups(weights[box], part, groups[depth][box], count)
                else:
                    summed = _contract(weights[box], part)
                below[child] = below[child] + summed if child in below else summed
        reached = below
    return reached[TERMINAL]


def _contract_groups(
    weights: Weights, part: NDArray[Any], of_cell: NDArray[np.int64], count: int
) -> NDArray[Any]:
    """Sum `part` over the cells of every group along its first axis, which becomes the last."""
    order = np.argsort(of_cell, kind="stable")
    found, starts = np.unique(of_cell[order], return_index=True)
    weighted = part[order] * weights[order].reshape(-1, *[1] * (part.ndim - 1))
    summed = np.zeros((count, *part.shape[1:]), dtype=weighted.dtype)
    summed[found] = np.add.reduceat(weighted, starts, axis=0)
    return np.moveaxis(summed, 0, -1)


def _contract(weights: Weights, part: NDArray[Any]) -> NDArray[Any]:
    """Sum `part` over its first axis with these weights, reading only where they are non-zero."""
    used = np.flatnonzero(weights)
    first, last = int(used[0]), int(used[-1]) + 1
    solid = len(used) == last - first
    chosen = weights[first:last] if solid else weights[used]
    rows = part[first:last] if solid else part[used]
    if (chosen == 1).all():
        return np.asarray(rows.sum(axis=0))
    return np.asarray(np.tensordot(chosen, rows, axes=1))


def evaluate(
    root: Node, codes: Sequence[NDArray[Any]]
) -> tuple[NDArray[Any] | None, NDArray[Any] | None, list[Node]]:
    """Evaluate a function on a list of cells, given by one array of codes for each of its first levels.

    Returns the weight of every cell (None if all are 1), then for functions with further levels the
    index of the node that a cell leads to (None if all lead to the first) and these nodes. A level on
    which the function is constant is not read. The time depends on the function and the number of
    cells alone.
    """
    weights: NDArray[Any] | None = None
    at: NDArray[Any] | None = None
    nodes = [root]
    for column in codes:
        children = list(dict.fromkeys(child for node in nodes for child in node.children))
        if any(len(node.starts) > 1 for node in nodes):
            own = _weights_at(nodes, at, column)
            weights = own if weights is None else _times(weights, own)
            if len(children) > 1:
                numbers = {child: number for number, child in enumerate(children)}
                into = [[numbers[child] for child in node.children] for node in nodes]
                # A run without weight leads anywhere.
                targets = [np.array(each)[node.which] for each, node in zip(into, nodes, strict=True)]
                kind = np.min_scalar_type(len(children))
                at = _look_up(nodes, at, column, np.concatenate(targets).astype(kind))
            else:
                at = None
        # Otherwise every node leads to a child of its own, so the indices stay.
        nodes = children
    return weights, at, nodes


def _weights_at(nodes: Sequence[Node], at: NDArray[Any] | None, column: NDArray[Any]) -> NDArray[Any]:
    """Return each cell's weight at its node; booleans if all are 0 or 1."""
    own = np.concatenate([node.weights for node in nodes])
    plain = own.min() >= 0 and own.max() == 1
    if plain and at is None and np.count_nonzero(own) == 1:
        # One range of codes; unsigned numbers wrap around below it.
        first, end = nodes[0].span
        return np.asarray(column - column.dtype.type(first) < column.dtype.type(end - first))
    return _look_up(nodes, at, column, own.astype(bool) if plain else own)


def _look_up(
    nodes: Sequence[Node], at: NDArray[Any] | None, column: NDArray[Any], of_run: NDArray[Any]
) -> NDArray[Any]:
    """Look up, for every cell, a value of its run at its node; `of_run` has those of all nodes."""
    size = nodes[0].size
    starts = np.concatenate([node.starts + number * size for number, node in enumerate(nodes)])
    if at is not None:
        column = at * np.int64(size) + column
    if len(nodes) * size <= MAX_TABLE:
        return np.repeat(of_run, np.diff(starts, append=len(nodes) * size)).take(column)
    return of_run[np.searchsorted(starts, column, "right") - 1]


def _times(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    return left & right if left.dtype == right.dtype == bool else np.asarray(left * right)


def dense(node: Node) -> Weights:
    """Expand the function to one weight per cell, in C order."""
    below = {TERMINAL: np.ones(1, dtype=np.int64)}
    for nodes in reversed(levels(node)):
        above = {}
        for each in nodes:
            terms = [np.multiply.outer(weights, below[child]).ravel() for weights, child in each.vectors]
            above[each] = np.sum(terms, axis=0) if len(terms) > 1 else terms[0]
        below = above
    return below[node]


def fold(node: Node, of_runs: Callable[[list[tuple[int, int, Item]]], Item], last: Item) -> Item:
    """Fold bottom-up: `of_runs` receives each run's weight, length and the value of its child."""
    memo: dict[Node, Item] = {TERMINAL: last}

    def visit(node: Node) -> Item:
        if node not in memo:
            below = [visit(child) for child in node.children]
            memo[node] = of_runs([(weight, b - a, below[at]) for a, b, weight, at in node.runs])
        return memo[node]

    return visit(node)


def extremes(root: Node, of_last: Callable[[Weights], tuple[int, int]] | None = None) -> tuple[int, int]:
    """Return the smallest and the largest non-zero weight.

    With `of_last`, the functions of the last level count as what it returns for their weights.
    """
    below = {TERMINAL: (1, 1)}
    for nodes in reversed(levels(root)):
        if of_last is not None and TERMINAL in below:
            below = {node: of_last(node.vectors[0][0]) for node in nodes}
            continue
        above = {}
        for node in nodes:
            if len(node.starts) == 1:
                above[node] = below[node.children[0]]  # The only weight of a primitive node is 1.
                continue
            ends = [below[child] for child in node.children]
            found = [weight * end for _, _, weight, at in node.runs for end in ends[at]]
            above[node] = min(found), max(found)
        below = above
    return below[root]


def support(root: Node, groups: Mapping[int, NDArray[np.int64]]) -> NDArray[np.bool_]:
    """Return in which combinations of groups a function has a weight: one axis for each grouped level.

    `groups[level][cell]` is the group of a cell.
    """
    below = {TERMINAL: np.ones((), dtype=bool)}
    for level, nodes in reversed([*enumerate(levels(root))]):
        above = {}
        for node in nodes:
            under = [below[child] for child in node.children]
            if level not in groups:
                above[node] = np.logical_or.reduce(under)
                continue
            of_cell, lengths = groups[level], np.diff(node.starts, append=node.size)
            above[node] = np.zeros((int(of_cell.max()) + 1, *under[0].shape), dtype=bool)
            for at, reached in enumerate(under):
                above[node][np.unique(of_cell[np.repeat(node.which == at, lengths)])] |= reached
        below = above
    return below[root]


def nbytes(nodes: Iterable[Node]) -> int:
    """Return about how much memory functions take, each shared node counted once."""
    pending, seen = list(nodes), {TERMINAL}
    total = 0
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            total += _node_bytes(node, len(node.starts))
            pending += node.children
    return total


def _node_bytes(node: Node, runs: int) -> int:
    """Return about how much memory a node of so many runs takes, with the vectors that it keeps."""
    dense = node.size * len(node.children)
    return 512 + 24 * runs + (8 * dense if dense <= MAX_KEPT else 0)


def nbytes_by_group(root: Node, groups: Mapping[int, NDArray[np.int64]], parts: int) -> int:
    """Return about how much memory the parts of a function take, one for each combination of groups.

    Parts that agree in the groups from a level on share their nodes from there. `groups[level][cell]` is
    the group of a cell. No part is made, so the time does not depend on how many there are.
    """
    total, combinations = 0, 1
    for level, nodes in reversed([*enumerate(levels(root))]):
        count = cuts = 1
        if level in groups:
            # All parts of a node together have its runs and those of the groups, with gaps between them.
            count = int(groups[level].max()) + 1
            cuts = 2 * int(np.count_nonzero(np.diff(groups[level])))
        combinations = min(combinations * count, parts)
        for node in nodes:
            total += combinations * _node_bytes(node, (2 * len(node.starts) + cuts) // count + 1)
    return total
