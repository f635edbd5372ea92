"""The data vector: the number of rows in every cell of the public domain. Secret."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sharewell.errors import SourceError
from sharewell.query.domain import Domain

#: The most rows: with weights of at most 2**31, no answer can leave 64-bit integers.
MAX_ROWS = 2**31


@dataclass(frozen=True, eq=False, repr=False)
class DataVector:
    """The counts of a table over its public domain, in C order; shows nothing of them.

    >>> import numpy as np
    >>> from sharewell import Domain, Integer
    >>> DataVector(Domain([Integer("dice", 1, 6)]), np.array([3, 1, 4, 1, 5, 9]))
    DataVector(dice: 6 cells)
    """

    domain: Domain
    counts: NDArray[np.int64] = field(repr=False)
    """Read-only, the one way in. Only `privacy/` may read it, and the lab, to measure its own errors."""

    def __post_init__(self) -> None:
        self.domain.require_dense()
        object.__setattr__(self, "counts", _checked(self.counts, self.domain.size))

    def __repr__(self) -> str:
        return f"DataVector({', '.join(self.domain.names)}: {self.domain.size:,} cells)"

    def __reduce__(self) -> tuple[Any, ...]:
        # An array comes out of a pickle writable again.
        return DataVector, (self.domain, self.counts)


def _checked(counts: ArrayLike, size: int) -> NDArray[np.int64]:
    """Whole, non-negative counts, one a cell, read-only: a copy unless nobody else can write to them."""
    given = np.asarray(counts)
    if given.size != size:
        raise SourceError("A data vector needs one count for every cell of its domain.")
    if not np.issubdtype(given.dtype, np.integer):
        raise SourceError("Counts must be whole numbers.", hint="Give an array of integers.")
    # Each count is bounded before they are added, so that the sum cannot wrap around.
    if given.min() < 0 or given.max() > MAX_ROWS or given.sum(dtype=np.int64) > MAX_ROWS:
        raise SourceError(f"Counts must not be negative, and at most {MAX_ROWS:,} in all.")
    shared = given.flags.writeable or given.base is not None
    own = given.astype(np.int64, order="C", copy=shared).reshape(-1)
    own.flags.writeable = False
    return own
