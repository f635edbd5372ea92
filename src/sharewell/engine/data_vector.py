"""The data vector: the number of rows in every cell of the public domain. Private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sharewell.errors import SourceError
from sharewell.query import diagram
from sharewell.query.block import Answerable
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: The maximum number of rows: with weights of at most 2**31, every answer fits in a 64-bit integer.
MAX_ROWS = 2**31
#: The maximum number of cells of a dense data vector, where the number of rows is bounded otherwise.
MAX_DENSE = 2**22


@dataclass(frozen=True, eq=False, repr=False)
class DataVector:
    """The counts of a table over its public domain; its repr reveals none of them.

    It is dense, with the count of every cell in C order; or, with `codes`, sparse: the cells that have
    rows, each given by one code for every attribute, padded with empty cells to a public number. Its
    answers are the same, and the time that they take depends on public numbers only.

    >>> import numpy as np
    >>> from sharewell import Domain, Integer
    >>> DataVector(Domain([Integer("dice", 1, 6)]), np.array([3, 1, 4, 1, 5, 9]))
    DataVector(dice: 6 cells)
    """

    domain: Domain
    counts: NDArray[np.int64] = field(repr=False)
    """Read-only. Only `privacy/` may read it, and research code, to measure true errors."""
    codes: tuple[NDArray[Any], ...] | None = field(default=None, repr=False)
    """Read-only: the cells of sparse counts, one array for each attribute; None for dense counts."""

    def __post_init__(self) -> None:
        if self.codes is None:
            self.domain.require_dense()
            object.__setattr__(self, "counts", _counts(self.counts, self.domain.size))
            return
        object.__setattr__(self, "counts", _counts(self.counts, len(self.codes[0])))
        object.__setattr__(self, "codes", _codes(self.codes, self.domain, len(self.counts)))

    @classmethod
    def of_cells(
        cls,
        domain: Domain,
        codes: Sequence[NDArray[Any]],
        counts: NDArray[np.integer[Any]],
        max_rows: int | None = None,
    ) -> DataVector:
        """Build the vector from the cells that have rows, each once, given by codes.

        It is dense for small domains, and without `max_rows`; otherwise sparse, with room for `max_rows`
        cells. More rows than that are refused: this is for the curator, before anything is served.
        """
        if max_rows is not None and counts.sum() > max_rows:
            raise SourceError(f"The table has more than {max_rows:,} rows.", hint="Raise `max_rows`.")
        if max_rows is None or domain.size <= MAX_DENSE:
            domain.require_dense()
            dense = np.zeros(domain.size, dtype=np.int64)
            dense[np.ravel_multi_index([each.astype(np.intp) for each in codes], domain.shape)] = counts
            dense.flags.writeable = False
            return cls(domain, dense)
        padded = [
            _padded(each, max_rows, kind) for each, kind in zip(codes, _kinds(domain), strict=True)
        ]
        return cls(domain, _padded(counts, max_rows, np.int64), tuple(padded))

    @classmethod
    def empty(cls, domain: Domain) -> DataVector:
        """Build the vector of a table without rows, for what only keeps accounts."""
        none = np.zeros(0, dtype=np.int64)
        return cls.of_cells(domain, [none] * len(domain.attributes), none, max_rows=1)

    def answer(self, query: LinearQuery) -> int:
        """Return the exact answer of a query with integer weights."""
        if self.codes is None:
            return int(query.dot(self.counts))
        if query.root is None:
            return 0
        return int(query.scale) * int(_weighted(query.root, self.counts, self.codes).sum())

    def answers(self, rows: Answerable) -> NDArray[np.int64]:
        """Return the exact answer of every row of a block."""
        return rows.answers(self)

    def by_group(self, query: LinearQuery, groups: Mapping[int, NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the exact answer of a query in every combination of groups.

        `groups[level][cell]` is the group of a cell; the result has one axis for each, in their order.
        """
        if query.root is None:
            return np.zeros(_shape(groups), dtype=np.int64)
        if self.codes is not None:
            answers = _summed(_weighted(query.root, self.counts, self.codes), self.codes, groups)
        else:
            tensor = self.counts.reshape(self.domain.shape)
            answers = diagram.apply_by_group(query.root, tensor, groups)
            answers = answers.transpose(np.argsort(np.argsort(list(groups))))
        return int(query.scale) * answers

    def marginal(self, levels: Sequence[int]) -> NDArray[np.int64]:
        """Return the number of rows in every combination of cells of some attributes."""
        if self.codes is not None:
            cells = {level: np.arange(self.domain.shape[level]) for level in levels}
            return _summed(self.counts, self.codes, cells)
        others = tuple(set(range(len(self.domain.shape))) - set(levels))
        summed = self.counts.reshape(self.domain.shape).sum(axis=others)
        return np.asarray(summed.transpose(np.argsort(np.argsort(levels))))

    def __repr__(self) -> str:
        return f"DataVector({', '.join(self.domain.names)}: {self.domain.size:,} cells)"

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled arrays are writable.
        return DataVector, (self.domain, self.counts, self.codes)


def _weighted(
    root: diagram.Node, counts: NDArray[np.int64], codes: Sequence[NDArray[Any]]
) -> NDArray[np.int64]:
    """Return the count of every listed cell times its weight."""
    weights, _, _ = diagram.evaluate(root, codes)
    return counts if weights is None else counts * weights


def _summed(
    values: NDArray[np.int64], codes: Sequence[NDArray[Any]], groups: Mapping[int, NDArray[np.int64]]
) -> NDArray[np.int64]:
    """Sum a value of every listed cell by combination of groups, in integers."""
    summed = np.zeros(_shape(groups), dtype=np.int64)
    place, stride = np.zeros(len(values), dtype=np.int64), summed.size
    for (level, of_cell), size in zip(groups.items(), summed.shape, strict=True):
        stride //= size
        place += (of_cell * stride).take(codes[level])
    np.add.at(summed.reshape(-1), place, values)
    return summed


def _shape(groups: Mapping[int, NDArray[np.int64]]) -> list[int]:
    return [int(of_cell.max()) + 1 for of_cell in groups.values()]


def _counts(counts: ArrayLike, size: int) -> NDArray[np.int64]:
    """Return valid counts as a read-only array; copy them if anything else could write to them."""
    given = np.asarray(counts)
    if given.size != size:
        raise SourceError("A data vector requires one count per cell of its domain.")
    if not np.issubdtype(given.dtype, np.integer):
        raise SourceError("Counts must be integers.", hint="Use an integer array.")
    # Each count is bounded before summing, so the sum cannot overflow.
    if given.min() < 0 or given.max() > MAX_ROWS or given.sum(dtype=np.int64) > MAX_ROWS:
        raise SourceError(f"Counts must be non-negative and sum to at most {MAX_ROWS:,}.")
    return _own(given.reshape(-1), np.int64)


def _codes(codes: Sequence[Any], domain: Domain, size: int) -> tuple[NDArray[Any], ...]:
    """Return valid codes as read-only arrays of the smallest unsigned integers."""
    given = [np.asarray(each) for each in codes]
    if len(given) != len(domain.shape) or any(each.shape != (size,) for each in given):
        raise SourceError("A sparse data vector requires one code per attribute for each of its cells.")
    for each, limit in zip(given, domain.shape, strict=True):
        if not np.issubdtype(each.dtype, np.integer) or each.min() < 0 or each.max() >= limit:
            raise SourceError("The codes of a data vector must be cells of the attributes.")
    return tuple(_own(each, kind) for each, kind in zip(given, _kinds(domain), strict=True))


def _own(given: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Return a read-only array that nothing else can write to."""
    shared = given.flags.writeable or given.base is not None
    own = given.astype(kind, order="C", copy=shared)
    own.flags.writeable = False
    return own


def _kinds(domain: Domain) -> list[np.dtype[Any]]:
    return [np.min_scalar_type(size - 1) for size in domain.shape]


def _padded(given: NDArray[Any], size: int, kind: Any) -> NDArray[Any]:
    padded = np.zeros(size, dtype=kind)
    padded[: len(given)] = given
    padded.flags.writeable = False
    return padded
