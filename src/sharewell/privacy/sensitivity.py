"""What one row of the table can change, computed by the kernel from public weights.

A mechanism hands over a block or a strategy that states its sensitivity. The kernel does not trust the
statement: it rebuilds the rows from their weights alone, computes their sensitivity and later their
answers itself, and refuses what states less than that. All of it comes before any charge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sharewell.errors import PrivacyError
from sharewell.query.block import Block, Data, Measurable, Neighbours, ParallelBlock
from sharewell.query.diagram import MAX_WEIGHT, TERMINAL, Node, are_disjoint
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery


def checked(
    block: Measurable, domain: Domain, neighbours: Neighbours, power: int
) -> Block | KroneckerRows:
    """Rebuild the rows of a block over the data's domain; refuse what is not as it says.

    `power` is 1 for the L1 norm and 2 for the L2 norm. The time is that of one pass over the weights.
    """
    rows = _rebuilt(block, domain)
    if isinstance(rows, ParallelBlock) and not are_disjoint([q.root for q in rows if q.root]):
        raise PrivacyError(
            "Two rows of a parallel block overlap in a cell.", hint="Measure them as a Block."
        )
    if type(block) is not type(rows):
        stated, computed = (_changes(each, neighbours, power) for each in (block, rows))
        if len(block) != len(rows) or (stated < computed).any():
            raise PrivacyError(
                f"One row can change the {type(block).__name__} by more than it states.",
                hint="Correct the sensitivity that it states.",
            )
    return rows


def rebuilt_queries(queries: Iterable[Any], domain: Domain) -> list[LinearQuery]:
    """Copy the public weights of queries over the data's domain, and none of their code.

    A query is mutable to those who insist, and remembers what it computed: only a copy is as it was
    checked. Its diagram must have the shape of the domain, or it would leave cells out unseen.
    """
    rows, domains = list[LinearQuery](), dict[int, Any]()
    for query in queries:
        if type(query) is not LinearQuery:
            raise _cannot_measure(query)
        rows.append(LinearQuery(domain, query.scale, query.root))
        domains[id(query.domain)] = query.domain
    for each in domains.values():
        _require_same(domain, each)
    if not all(type(row.scale) is Fraction for row in rows):
        raise PrivacyError("The scale of a query must be a Fraction.")
    if not _have_shape([row.root for row in rows if row.root is not None], domain.shape):
        raise PrivacyError("The block and the data have different domains.")
    return rows


def _rebuilt(block: Any, domain: Domain) -> Block | KroneckerRows:
    """Copy the public weights of a block or a strategy, and none of its code."""
    if isinstance(block, Block):
        _require_same(domain, block.domain)
        kind = ParallelBlock if isinstance(block, ParallelBlock) else Block
        return kind(domain, rebuilt_queries(block.queries, domain))
    parts = getattr(block, "parts", None)
    if isinstance(parts, Sequence):
        _require_same(domain, block.domain)
        own = tuple(tuple(_own(rows.matrix) for rows in part) for part in parts)
        return KroneckerRows(domain, own, str(getattr(block, "name", "")))
    raise _cannot_measure(block)


def _cannot_measure(given: object) -> PrivacyError:
    return PrivacyError(
        f"Cannot measure a {type(given).__name__}.",
        hint="Pass a query or a block, such as those of compile_sql(...).blocks.",
    )


def _require_same(domain: Domain, stated: object) -> None:
    """Refuse another domain than the data's; a subclass could call itself equal to any."""
    if stated is not domain and not (type(stated) is Domain and stated == domain):
        raise PrivacyError("The block and the data have different domains.")


def _have_shape(level: Sequence[Node], shape: Sequence[int]) -> bool:
    """Whether every path through the diagrams has one node of the right size for each attribute."""
    for size in shape:
        if not all(type(node) is Node and node.size == size and node.children for node in level):
            return False
        level = list({id(child): child for node in level for child in node.children}.values())
    return all(node is TERMINAL for node in level)


def _changes(block: Measurable | KroneckerRows, neighbours: Neighbours, power: int) -> NDArray[Any]:
    """Return, for each row, its unit times the sensitivity: what its noise is made for."""
    if power == 1:
        return block.units(neighbours) * block.l1_sensitivity(neighbours)
    return block.units(neighbours).astype(object) ** 2 * block.l2_sensitivity_squared(neighbours)


@dataclass(frozen=True, eq=False)
class KroneckerRows:
    """A stack of Kronecker products of one matrix per attribute; None stands for the unit matrix."""

    domain: Domain
    parts: tuple[tuple[sp.csr_array | None, ...], ...]
    name: str

    def __post_init__(self) -> None:
        for part in self.parts:
            pairs = zip(self.domain.shape, part, strict=True)
            if any(matrix is not None and matrix.shape[1] != size for size, matrix in pairs):
                raise PrivacyError("The strategy and the data have different domains.")
            if prod(map(_largest, part)) > MAX_WEIGHT:
                raise PrivacyError(f"The weights of a strategy must not exceed {MAX_WEIGHT:,}.")

    def __len__(self) -> int:
        return sum(
            prod(s if m is None else m.shape[0] for s, m in zip(self.domain.shape, part, strict=True))
            for part in self.parts
        )

    def units(self, neighbours: Neighbours) -> NDArray[np.int64]:
        """Return 1 for every row: all get the same noise."""
        return np.ones(len(self), dtype=np.int64)

    def answers(self, data: Data) -> NDArray[np.int64]:
        """Return the exact answer of every row."""
        return np.concatenate([_product_answers(data, part).ravel() for part in self.parts])

    def l1_sensitivity(self, neighbours: Neighbours) -> int:
        """Return the largest column norm, or twice that under replace-one.

        A column of a product is the product of columns, so its norm is the product of theirs. If there
        are several parts, the sum of their largest norms is a bound.
        """
        return self._largest_column(1) * (1 if neighbours == "add-remove" else 2)

    def l2_sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Return the same for squares; two columns without negative weights differ by at most both."""
        matrices = [m for part in self.parts for m in part if m is not None]
        signed = any((matrix.data < 0).any() for matrix in matrices)
        return self._largest_column(2) * (1 if neighbours == "add-remove" else 4 if signed else 2)

    def to_json(self) -> dict[str, Any]:
        """Return the rows as JSON data, in the form of a strategy."""
        parts = [list(map(_factor_to_json, self.domain.shape, part)) for part in self.parts]
        return {"kind": "strategy", "name": self.name, "parts": parts}

    def _largest_column(self, power: int) -> int:
        return sum(prod(_column_norm(matrix, power) for matrix in part) for part in self.parts)


def _product_answers(data: Data, part: Sequence[sp.csr_array | None]) -> NDArray[np.int64]:
    """Multiply the marginal of the attributes that are not summed by their matrices."""
    levels = [level for level, matrix in enumerate(part) if not _is_total(matrix)]
    tensor = data.marginal(levels)
    for axis, level in enumerate(levels):
        if (matrix := part[level]) is not None:
            moved = np.moveaxis(tensor, axis, 0)
            product = matrix @ moved.reshape(len(moved), -1)
            tensor = np.moveaxis(product.reshape(-1, *moved.shape[1:]), 0, axis)
    return tensor


def _is_total(matrix: sp.csr_array | None) -> bool:
    """Return whether a matrix has one row, and it is all ones."""
    return (
        matrix is not None
        and matrix.shape[0] == 1
        and matrix.nnz == matrix.shape[1]
        and bool((matrix.data == 1).all())
    )


def _own(matrix: Any) -> sp.csr_array | None:
    """Copy a matrix: no later change counts, and an entry that is listed twice is added up first."""
    if matrix is None:
        return None
    if not np.issubdtype(matrix.dtype, np.integer):
        raise PrivacyError("The rows of a strategy must have whole-number weights.")
    own = sp.csr_array(matrix, dtype=np.int64, copy=True)
    own.sum_duplicates()
    return own


def _factor_to_json(size: int, matrix: sp.csr_array | None) -> dict[str, Any]:
    if matrix is None:
        return {"unit": size}
    arrays = (matrix.indptr, matrix.indices, matrix.data)
    return {"size": size, "csr": [array.tolist() for array in arrays]}


def _largest(matrix: sp.csr_array | None) -> int:
    return 1 if matrix is None else max(int(matrix.max()), -int(matrix.min()))


def _column_norm(matrix: sp.csr_array | None, power: int) -> int:
    """Return the largest sum over a column of the absolute weights to a power."""
    if matrix is None:
        return 1
    if _largest(matrix) ** power * matrix.shape[0] >= 2**62:
        raise PrivacyError("The weights of a strategy are too large to be added up in 64 bits.")
    norms = np.zeros(matrix.shape[1], dtype=np.int64)
    np.add.at(norms, matrix.indices, np.abs(matrix.data) ** power)
    return int(norms.max())
