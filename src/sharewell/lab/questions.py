"""The questions of one trial: who asks what, in order of arrival."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sharewell.errors import QueryError
from sharewell.query.linear import LinearQuery


@dataclass(frozen=True, eq=False)
class Questions:
    """One trial's stream of counting questions, in order of arrival.

    `same` holds, for every question, the place of the first one that is equal to it: its own place
    where there is none before. A mechanism that remembers answers needs nothing else to find them.

    >>> stream = Questions.of([[1, 1, 0], [0, 0, 1], [1, 1, 0]], [0, 1, 1], analysts=2)
    >>> stream.same.tolist(), len(stream), stream.cells
    ([0, 1, 0], 3, 3)
    """

    weights: NDArray[np.uint8]
    analyst: NDArray[np.int64]
    same: NDArray[np.int64]
    analysts: int

    @classmethod
    def of(
        cls,
        queries: Iterable[LinearQuery | ArrayLike],
        analyst: Sequence[int] | NDArray[Any],
        *,
        analysts: int,
    ) -> Questions:
        """The stream of these queries (or rows of weights 0 and 1), and who asks each."""
        return cls.of_rows(np.array([_row(query) for query in queries]), analyst, analysts=analysts)

    @classmethod
    def of_rows(
        cls, weights: ArrayLike, analyst: Sequence[int] | NDArray[Any], *, analysts: int
    ) -> Questions:
        """The stream of these rows of weights 0 and 1, one a question, and who asks each."""
        rows = np.asarray(weights)
        if rows.ndim != 2:
            raise QueryError(
                "A stream needs at least one question, and rows of one length.",
                hint="Give one weight for every cell, the same number in each row.",
            )
        if rows.dtype != np.uint8 or rows.max(initial=0) > 1:
            if not np.isin(rows, (0, 1)).all():
                raise QueryError(
                    "The lab asks counting questions only: every weight is 0 or 1.",
                    hint="Leave out queries with other weights, such as sums.",
                )
            rows = rows.astype(np.uint8)
        rows = np.ascontiguousarray(rows)
        who = np.asarray(analyst, dtype=np.int64)
        if who.shape != (len(rows),) or (len(who) and not 0 <= who.min() <= who.max() < analysts):
            raise QueryError(
                "Every question needs an analyst who exists.",
                hint=f"Give {len(rows)} numbers from 0 to {analysts - 1}.",
            )
        return cls(rows, who, first_equal(rows), analysts)

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def cells(self) -> int:
        """How many cells the domain has."""
        return int(self.weights.shape[1])

    def asked(self) -> NDArray[np.int64]:
        """How many questions each analyst asks."""
        return np.bincount(self.analyst, minlength=self.analysts)

    def places(self, present: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The places of the questions whose analyst is present, in order of arrival."""
        return np.flatnonzero(present[self.analyst])


def first_equal(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """For every row, the place of the first row with the same bytes."""
    packed = np.packbits(rows, axis=1)
    first: dict[bytes, int] = {}
    places = [first.setdefault(row.tobytes(), at) for at, row in enumerate(packed)]
    return np.array(places, dtype=np.int64)


def _row(query: LinearQuery | ArrayLike) -> NDArray[Any]:
    return query.to_vector() if isinstance(query, LinearQuery) else np.asarray(query)
