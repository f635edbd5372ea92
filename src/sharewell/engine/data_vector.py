"""The data vector: the number of rows in every cell of the public domain. Private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sharewell.engine.marginals import sum_by, sum_marginals
from sharewell.errors import SourceError
from sharewell.query import contraction, diagram
from sharewell.query.block import Answerable, Marginal
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: The maximum number of rows: with weights of at most 2**31, every answer fits in a 64-bit integer.
MAX_ROWS = 2**31
#: The maximum number of cells of a dense data vector, where the number of rows is bounded otherwise.
MAX_DENSE = 2**22
#: The most rows of one person that may be counted.
MAX_ROWS_PER_PERSON = 1000


@dataclass(frozen=True, eq=False, repr=False)
class DataVector:
    """The counts of a table over its public domain; its repr reveals none of them.

    It is dense, with the count of every cell in C order; or, with `codes`, sparse: the cells that have
    rows, each given by one code for every attribute, padded with empty cells to a public number. Its
    answers are the same, and the time that they take depends on public numbers only. Where the domain
    has measures, each cell has its sums beside its count; sparse ones are listed vector by vector.

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
    max_rows_per_person: int = 1
    """How many of the counted rows may be of one person. The kernel's noise is in proportion to it."""

    def __post_init__(self) -> None:
        most = self.max_rows_per_person
        if type(most) is not int or not 1 <= most <= MAX_ROWS_PER_PERSON:
            raise SourceError(
                f"`max_rows_per_person` cannot be {most!r}.",
                hint=f"Use a whole number from 1 to {MAX_ROWS_PER_PERSON:,}.",
            )
        if self.codes is None:
            self.domain.require_dense()
            own = _counts(self.counts, self.domain.cells, self.domain, axis=1)
            object.__setattr__(self, "counts", own)
            return
        cells = len(self.codes[0])
        object.__setattr__(self, "counts", _counts(self.counts, cells, self.domain, axis=0))
        object.__setattr__(self, "codes", _codes(self.codes, self.domain, cells))

    @classmethod
    def of_cells(
        cls,
        domain: Domain,
        codes: Sequence[NDArray[Any]],
        counts: NDArray[np.integer[Any]],
        max_rows: int | None = None,
        max_rows_per_person: int = 1,
    ) -> DataVector:
        """Build the vector from the cells that have rows, each once, given by codes.

        `counts` has a row for each vector of the domain, or is the only one. The result is dense for
        small domains, and without `max_rows`; otherwise sparse, with room for `max_rows` cells. More
        rows than that are refused: this is for the curator, before anything is served.
        """
        counts = np.asarray(counts).reshape(domain.vectors, -1)
        if max_rows is not None and counts[0].sum() > max_rows:
            raise SourceError(f"The table has more than {max_rows:,} rows.", hint="Raise `max_rows`.")
        if max_rows is None or domain.size <= MAX_DENSE:
            domain.require_dense()
            sizes = [attribute.size for attribute in domain.attributes]
            dense = np.zeros((domain.cells, domain.vectors), dtype=np.int64)
            dense[np.ravel_multi_index([each.astype(np.intp) for each in codes], sizes)] = counts.T
            return cls(domain, dense, None, max_rows_per_person)
        padded = [
            _padded(code, max_rows, kind) for code, kind in zip(codes, _kinds(domain), strict=True)
        ]
        own = np.stack([_padded(each, max_rows, np.int64) for each in counts])
        return cls(domain, own, tuple(padded), max_rows_per_person)

    @classmethod
    def empty(cls, domain: Domain, max_rows_per_person: int = 1) -> DataVector:
        """Build the vector of a table without rows, for what only keeps accounts."""
        none = np.zeros((domain.vectors, 0), dtype=np.int64)
        return cls.of_cells(domain, [none[0]] * len(domain.attributes), none, 1, max_rows_per_person)

    @cached_property
    def _sparse(self) -> SparseCells | None:
        if self.codes is None:
            return None
        return SparseCells(self.domain, self.codes, self.counts.reshape(self.domain.vectors, -1))

    #: What a copy was made from may change: it does not.
    fingerprint: ClassVar[str | None] = None

    def require_answerable(self, rows: Answerable) -> None:
        """Refuse nothing: everything can be answered from a copy."""

    def answer(self, query: LinearQuery) -> int:
        """Return the exact answer of a query with integer weights."""
        return int(query.dot(self.counts)) if self._sparse is None else self._sparse.answer(query)

    def answers_together(self, blocks: Sequence[Answerable]) -> list[NDArray[np.int64]]:
        """Return the exact answers of every row of several blocks."""
        return [rows.answers(self) for rows in blocks]

    def by_group(self, query: LinearQuery, groups: Mapping[int, NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the exact answer of a query in every combination of groups.

        `groups[level][cell]` is the group of a cell; the result has one axis for each, in their order.
        """
        if self._sparse is not None:
            return self._sparse.by_group(query, groups)
        if query.root is None:
            return np.zeros(_shape(groups), dtype=np.int64)
        tensor = self.counts.reshape(self.domain.shape)
        answers = contraction.apply_by_group(query.root, tensor, groups)
        return int(query.scale) * answers.transpose(np.argsort(np.argsort(list(groups))))

    def marginals(self, wanted: Sequence[Marginal]) -> list[NDArray[np.int64]]:
        """Return marginals: each has its vectors first, then an axis for each attribute."""
        if self._sparse is not None:
            return self._sparse.marginals(wanted)
        sizes = [attribute.size for attribute in self.domain.attributes]
        tensor = self.counts.reshape(*sizes, self.domain.vectors)
        return [_marginal(tensor, each) for each in wanted]

    def __repr__(self) -> str:
        return f"DataVector({', '.join(self.domain.names)}: {self.domain.cells:,} cells)"

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled arrays are writable.
        return DataVector, (self.domain, self.counts, self.codes, self.max_rows_per_person)


@dataclass(frozen=True, eq=False, repr=False)
class SparseCells:
    """Some cells, each given by one code for every attribute, and the numbers of all vectors there."""

    domain: Domain
    codes: Sequence[NDArray[Any]]
    #: A row for each vector, and a column for each cell.
    sums: NDArray[np.int64]

    def __post_init__(self) -> None:
        # Unsigned, as `contraction.evaluate` needs them.
        pairs = zip(self.codes, _kinds(self.domain), strict=True)
        object.__setattr__(self, "codes", [each.astype(kind, copy=False) for each, kind in pairs])

    def answer(self, query: LinearQuery) -> int:
        """Return the exact answer of a query with integer weights."""
        if query.root is None:
            return 0
        return int(query.scale) * int(_weighted(query.root, self.sums, self.codes).sum())

    def by_group(self, query: LinearQuery, groups: Mapping[int, NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the exact answer of a query in every combination of groups."""
        if query.root is None:
            return np.zeros(_shape(groups), dtype=np.int64)
        weighted = _weighted(query.root, self.sums, self.codes)
        return int(query.scale) * sum_by(weighted, self.codes, groups)

    def marginals(self, wanted: Sequence[Marginal]) -> list[NDArray[np.int64]]:
        """Return marginals: each has its vectors first, then an axis for each attribute."""
        sizes = [attribute.size for attribute in self.domain.attributes]
        return sum_marginals(self.sums, self.codes, sizes, wanted)


def _weighted(
    root: diagram.Node, sums: NDArray[np.int64], codes: Sequence[NDArray[Any]]
) -> NDArray[np.int64]:
    """Return what every listed cell adds to the answer: its numbers times their weights."""
    weights, at, nodes = contraction.evaluate(root, codes)
    total = sums[0]
    if nodes != [diagram.TERMINAL]:
        of_vectors = np.stack([node.vectors[0][0] for node in nodes], axis=1)
        total = np.zeros(sums.shape[1], dtype=np.int64)
        for vector in np.flatnonzero(of_vectors.any(axis=1)):
            own = of_vectors[vector]
            total += sums[vector] * (own[0] if at is None else own.take(at))
    return np.asarray(total if weights is None else total * weights)


def _marginal(tensor: NDArray[np.int64], wanted: Marginal) -> NDArray[np.int64]:
    """Sum dense counts, whose last axis holds the vectors, to some of the attributes."""
    others = tuple(set(range(tensor.ndim - 1)) - set(wanted.levels))
    summed = np.stack([tensor[..., vector].sum(axis=others) for vector in wanted.vectors])
    return summed.transpose(0, *(1 + np.argsort(np.argsort(wanted.levels))))


def _shape(groups: Mapping[int, NDArray[np.int64]]) -> list[int]:
    return [int(of_cell.max()) + 1 for of_cell in groups.values()]


def _counts(counts: ArrayLike, cells: int, domain: Domain, axis: int) -> NDArray[np.int64]:
    """Return valid counts as a read-only array; copy them if anything else could write to them.

    Their vectors, if there are several, are along the given axis of a matrix.
    """
    given = np.asarray(counts)
    if given.size != cells * domain.vectors:
        raise SourceError("A data vector requires one count per cell of its domain.")
    if not np.issubdtype(given.dtype, np.integer):
        raise SourceError("Counts must be integers.", hint="Use an integer array.")
    rows, *sums = np.moveaxis(given.reshape((-1, cells) if axis == 0 else (cells, -1)), axis, 0)
    # Each count is bounded before summing, so the sum cannot overflow.
    if rows.min() < 0 or rows.max() > MAX_ROWS or rows.sum(dtype=np.int64) > MAX_ROWS:
        raise SourceError(f"Counts must be non-negative and sum to at most {MAX_ROWS:,}.")
    for measure in domain.measures:
        valued = sums.pop(0) if measure.nullable else rows
        total = sums.pop(0)
        within = (valued >= 0) & (valued <= rows)
        within &= (valued * measure.lowest <= total) & (total <= valued * measure.highest)
        if not within.all():
            raise SourceError(f"The sums of {measure.name!r} are outside its bounds.")
    for product, total in zip(domain.product_vectors, sums, strict=True):
        if not ((rows * product.lowest <= total) & (total <= rows * product.highest)).all():
            raise SourceError("The sums of a product are outside its bounds.")
    return _own(given.reshape(-1), np.int64)


def _codes(codes: Sequence[Any], domain: Domain, size: int) -> tuple[NDArray[Any], ...]:
    """Return valid codes as read-only arrays of the smallest unsigned integers."""
    given = [np.asarray(each) for each in codes]
    if len(given) != len(domain.attributes) or any(each.shape != (size,) for each in given):
        raise SourceError("A sparse data vector requires one code per attribute for each of its cells.")
    for each, attribute in zip(given, domain.attributes, strict=True):
        if not np.issubdtype(each.dtype, np.integer) or each.min() < 0 or each.max() >= attribute.size:
            raise SourceError("The codes of a data vector must be cells of the attributes.")
    return tuple(_own(each, kind) for each, kind in zip(given, _kinds(domain), strict=True))


def _own(given: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Return a read-only array that nothing else can write to."""
    shared = given.flags.writeable or given.base is not None
    own = given.astype(kind, order="C", copy=shared)
    own.flags.writeable = False
    return own


def _kinds(domain: Domain) -> list[np.dtype[Any]]:
    return [np.min_scalar_type(attribute.size - 1) for attribute in domain.attributes]


def _padded(given: NDArray[Any], size: int, kind: Any) -> NDArray[Any]:
    padded = np.zeros(size, dtype=kind)
    padded[: len(given)] = given
    padded.flags.writeable = False
    return padded
