"""The different questions of a stream, and what every run over it would otherwise compute again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import QueryError
from sharewell.lab.questions import Questions, first_equal


@dataclass(frozen=True)
class Runs:
    """Questions as runs of neighbouring groups: those of question q are first[q] to first[q + 1]."""

    first: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Distinct:
    """A stream's questions without repetition, over groups of cells that none of them tells apart.

    A run costs as much as the stream has groups, however many cells the domain has.
    """

    #: For every question of the stream, which of the different ones it is.
    which: NDArray[np.int64]
    #: For every cell, its group.
    group: NDArray[np.int64]
    #: How many cells each group has.
    width: NDArray[np.int64]
    #: One row a different question, one column a group: 1 where the question counts its cells.
    weights: NDArray[np.float64]

    @cached_property
    def size(self) -> NDArray[np.int64]:
        """How many cells each question counts."""
        return (self.weights @ self.width).astype(np.int64)

    @cached_property
    def overlaps(self) -> NDArray[np.float64]:
        """How many cells each pair shares: with an identity seed, all that their covariance needs."""
        return np.ascontiguousarray((self.weights * self.width) @ self.weights.T)

    @cached_property
    def runs(self) -> Runs:
        """The questions as runs of groups: one begins where the weight rises and ends where it falls."""
        edges = np.diff(self.weights, axis=1, prepend=0.0, append=0.0)
        question, start = np.nonzero(edges > 0)
        first = np.searchsorted(question, np.arange(len(self.weights) + 1))
        return Runs(first, start, np.nonzero(edges < 0)[1])

    def answers(self, per_cell: NDArray[np.int64]) -> NDArray[np.float64]:
        """Every question's answer on whole numbers per cell; exact while sums stay below 2^53."""
        return np.asarray(self.weights @ np.bincount(self.group, per_cell, len(self.width)))


_KNOWN: WeakKeyDictionary[Questions, Distinct] = WeakKeyDictionary()


def distinct(questions: Questions) -> Distinct:
    """The different questions of a stream, found once for every stream."""
    if questions not in _KNOWN:
        first, which = np.unique(questions.same, return_inverse=True)
        weights = questions.weights[first]
        if len(empty := np.flatnonzero(~weights.any(axis=1))):
            raise QueryError(
                f"Question {first[empty[0]]} selects no cell, so its answer is 0.",
                hint="Leave such questions out of the stream: no mechanism answers them.",
            )
        # Groups are in the order of their first cells, so that neighbours mostly stay neighbours.
        cells = first_equal(np.ascontiguousarray(weights.T))
        leaders, group, width = np.unique(cells, return_inverse=True, return_counts=True)
        _KNOWN[questions] = Distinct(which, group, width, weights[:, leaders].astype(np.float64))
    return _KNOWN[questions]
