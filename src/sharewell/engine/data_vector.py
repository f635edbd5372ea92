"""The data vector: the number of rows in every cell of the public domain. Private."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sharewell.errors import SourceError
from sharewell.query.domain import Domain

#: The maximum number of rows: with weights of at most 2**31, every answer fits in a 64-bit integer.
MAX_ROWS = 2**31


@dataclass(frozen=True, eq=False, repr=False)
class DataVector:
    """The counts of a table over its public domain, in C order; its repr reveals none of them.

    >>> import numpy as np
    >>> from sharewell import Domain, Integer
    >>> DataVector(Domain([Integer("dice", 1, 6)]), np.array([3, 1, 4, 1, 5, 9]))
    DataVector(dice: 6 cells)
    """

    domain: Domain
    counts: NDArray[np.int64] = field(repr=False)
    """Read-only. Only `privacy/` may read it, and research code, to measure true errors."""

    def __post_init__(self) -> None:
        self.domain.require_dense()
        object.__setattr__(self, "counts", _validate(self.counts, self.domain.size))

    def __repr__(self) -> str:
        return f"DataVector({', '.join(self.domain.names)}: {self.domain.size:,} cells)"

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled arrays are writable.
        return DataVector, (self.domain, self.counts)


def _validate(counts: ArrayLike, size: int) -> NDArray[np.int64]:
    """Return valid counts as a read-only array; copy them if anything else could write to them."""
    given = np.asarray(counts)
    if given.size != size:
        raise SourceError("A data vector requires one count per cell of its domain.")
    if not np.issubdtype(given.dtype, np.integer):
        raise SourceError("Counts must be integers.", hint="Use an integer array.")
    # Each count is bounded before summing, so the sum cannot overflow.
    if given.min() < 0 or given.max() > MAX_ROWS or given.sum(dtype=np.int64) > MAX_ROWS:
        raise SourceError(f"Counts must be non-negative and sum to at most {MAX_ROWS:,}.")
    shared = given.flags.writeable or given.base is not None
    own = given.astype(np.int64, order="C", copy=shared).reshape(-1)
    own.flags.writeable = False
    return own
