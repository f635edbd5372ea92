"""The data vector: the number of rows in every cell of the public domain. Secret."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import SourceError
from sharewell.query.domain import Domain

#: The most rows: with weights of at most 2**31, no answer can leave 64-bit integers.
MAX_ROWS = 2**31


@dataclass(frozen=True, eq=False)
class DataVector:
    """The counts of a table over its public domain, in C order; shows nothing of them.

    Only `privacy/` may read `counts`, and the lab, to measure how far off its own answers are.
    """

    domain: Domain
    counts: NDArray[np.int64] = field(repr=False)

    def __post_init__(self) -> None:
        self.domain.require_dense()
        counts = np.array(self.counts, dtype=np.int64).reshape(-1)
        if len(counts) != self.domain.size:
            raise SourceError("A data vector needs one count for every cell of its domain.")
        if counts.min() < 0 or counts.sum() > MAX_ROWS:
            raise SourceError(f"Counts must not be negative, and at most {MAX_ROWS:,} in all.")
        counts.flags.writeable = False
        object.__setattr__(self, "counts", counts)
