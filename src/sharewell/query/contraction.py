"""Decision diagrams on arrays: inner products with counts, weights of given cells, dense weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharewell.query.diagram import TERMINAL, Node, Weights, levels

#: The largest table of the runs of nodes by cell; beyond it they are searched for.
MAX_TABLE = 2**22


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
