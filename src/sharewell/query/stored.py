"""Diagrams as plain data: nodes from the bottom up, weights as run lengths."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from sharewell.errors import QueryError
from sharewell.query.diagram import TERMINAL, ZERO, Node, Scaled, Weights, make


def write(root: Node | None) -> list[Any]:
    """A diagram's nodes, each a list of [run lengths, position of the child]; 0 is the terminal."""
    places: dict[Node, int] = {TERMINAL: 0}
    written: list[Any] = []

    def place(node: Node) -> int:
        if node not in places:
            written.append([[_runs(weights), place(child)] for weights, child in node.edges])
            places[node] = len(written)
        return places[node]

    if root is not None:
        place(root)
    return written


def read(nodes: Sequence[Any]) -> Scaled:
    """The diagram that `write` wrote; refuses what breaks a node's rules: privacy rests on them."""
    made: list[Scaled] = [(1, TERMINAL)]
    for edges in nodes:
        terms = [(_expand(runs), made[child]) for runs, child in edges]
        if len({len(weights) for weights, _ in terms}) != 1:
            raise QueryError("The stored query has an attribute of two sizes.")
        if np.count_nonzero([weights for weights, _ in terms], axis=0).max() > 1:
            raise QueryError("The stored query gives a cell two weights.")
        made.append(make(terms))
    return made[-1] if nodes else ZERO


def _runs(weights: Weights) -> list[list[int]]:
    """Run lengths: [weight, how many cells in a row have it]."""
    changes = (weights[1:] != weights[:-1]).nonzero()[0] + 1
    begins = [0, *changes.tolist(), len(weights)]
    return [[weights.item(begin), end - begin] for begin, end in pairwise(begins)]


def _expand(runs: Sequence[Sequence[int]]) -> Weights:
    values, lengths = zip(*runs, strict=True)
    return np.repeat(np.array(values, dtype=np.int64), lengths)
