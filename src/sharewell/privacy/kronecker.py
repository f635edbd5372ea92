"""Rows that are Kronecker products of small matrices, as seeds are: their sensitivity and their answers.

The kernel builds these from the public matrices of a strategy, and from nothing else.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sharewell.errors import DomainTooLarge, PrivacyError
from sharewell.query.block import Data, Marginal, Neighbours
from sharewell.query.diagram import MAX_WEIGHT
from sharewell.query.domain import MAX_CELLS, Domain


@dataclass(frozen=True)
class Centred:
    """The whole-number rows n e_j - 1 of n cells: what each cell has more than the average, n times.

    Never written out: it is n times the unit matrix, less all ones.
    """

    size: int

    def __post_init__(self) -> None:
        if type(self.size) is not int or self.size < 2:
            raise PrivacyError("Centred rows need an attribute of several cells.")

    @property
    def shape(self) -> tuple[int, int]:
        """As many rows as cells."""
        return self.size, self.size


#: One matrix of whole numbers; None is the unit matrix.
Matrix = sp.csr_array | Centred | None
#: Matrices by level; a level that is left out is summed.
Factors = Mapping[int, Matrix]


@dataclass(frozen=True, eq=False)
class KroneckerProduct:
    """The Kronecker product of one matrix for each level. All rows get the same noise."""

    domain: Domain
    factors: Factors

    def __post_init__(self) -> None:
        own = {level: _own(self.factors[level]) for level in sorted(self.factors)}
        object.__setattr__(self, "factors", MappingProxyType(own))
        shape = self.domain.shape
        for level, matrix in own.items():
            if not 0 <= level < len(shape) or (matrix is not None and matrix.shape[1] != shape[level]):
                raise PrivacyError("The strategy and the data have different domains.")
        row = max(abs(change) for row in self._rows for change in row)
        if self._attributes_product(_largest) * row > MAX_WEIGHT:
            raise PrivacyError(f"The weights of a strategy must not exceed {MAX_WEIGHT:,}.")
        if max(len(self), prod(shape[level] for level in self._levels)) > MAX_CELLS:
            raise DomainTooLarge(
                f"A part of a strategy has more than {MAX_CELLS:,} cells.",
                hint="Measure marginals of fewer attributes.",
            )

    def __len__(self) -> int:
        shape = self.domain.shape
        return prod(shape[at] if m is None else m.shape[0] for at, m in self.factors.items())

    @cached_property
    def _levels(self) -> list[int]:
        """The attributes that are not summed."""
        attributes = range(len(self.domain.attributes))
        return [at for at, m in self.factors.items() if at in attributes and not _is_total(m)]

    @cached_property
    def _of_vectors(self) -> NDArray[np.int64]:
        """The matrix on the vectors: 1 for the counts alone."""
        level, vectors = len(self.domain.attributes), self.domain.vectors
        if level not in self.factors:
            return np.ones((1, vectors), dtype=np.int64)
        matrix = self.factors[level]
        if isinstance(matrix, Centred):
            raise PrivacyError("Data vectors cannot be centred.")
        return np.eye(vectors, dtype=np.int64) if matrix is None else matrix.toarray()

    @cached_property
    def _used(self) -> tuple[int, ...]:
        """The vectors that some row sums; the counts, if there is none."""
        if not self.domain.measures:
            return (0,)
        return tuple(np.flatnonzero(self._of_vectors.any(axis=0)).tolist()) or (0,)

    def units(self, neighbours: Neighbours) -> NDArray[np.int64]:
        """Return 1 for every row: all get the same noise."""
        return np.ones(len(self), dtype=np.int64)

    def answers(self, data: Data) -> NDArray[np.int64]:
        """Return the exact answer of every row: a marginal of the data, times the matrices."""
        return _answers([self], data)

    @property
    def marginal(self) -> Marginal:
        """The marginal of the data that the rows are products of."""
        return Marginal(tuple(self._levels), self._used)

    def times(self, marginal: NDArray[np.int64]) -> NDArray[np.int64]:
        """Multiply the marginal by the matrices: the answer of every row."""
        tensor = marginal
        if self.domain.measures:
            tensor = np.tensordot(self._of_vectors[:, self._used], marginal, 1)
        for axis, level in enumerate(self._levels, 1):
            if (matrix := self.factors[level]) is not None:
                tensor = _times(matrix, tensor, axis)
        return np.moveaxis(tensor, 0, -1).ravel()

    def largest_column(self, power: int) -> int:
        """Return the largest sum over a column of the absolute weights to a power.

        A column of a product is the product of columns, so its norm is the product of theirs. On the
        vectors, it is what a row of the table adds to them.
        """
        row = max(sum(abs(change) ** power for change in row) for row in self._rows)
        return int(self._attributes_product(lambda m: _column_norm(m, power)) * row)

    def _attributes_product(self, of_matrix: Callable[[Matrix], int]) -> int:
        attributes = range(len(self.domain.attributes))
        return prod(of_matrix(matrix) for at, matrix in self.factors.items() if at in attributes)

    @cached_property
    def _rows(self) -> list[list[int]]:
        """What the extreme rows of the table add to the vectors, times their matrix."""
        if not self.domain.measures:
            return [[1]]
        # Of Python's integers: a bound times a weight may not fit in 64 bits.
        weights = self._of_vectors.tolist()
        extremes = self.domain.row_extremes(self._used)
        return [[sum(map(operator.mul, row, added)) for row in weights] for added in extremes]

    @property
    def is_signed(self) -> bool:
        """Whether a row of the table can add a negative number."""
        negative = any(
            isinstance(m, Centred) or (m is not None and bool((m.data < 0).any()))
            for m in self.factors.values()
        )
        return negative or any(change < 0 for row in self._rows for change in row)

    def l1_sensitivity(self, neighbours: Neighbours) -> int:
        """Return the largest column norm, or twice that under replace-one."""
        return self.largest_column(1) * (1 if neighbours == "add-remove" else 2)

    def l2_sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Return the same for squares; two columns without negative weights differ by at most both."""
        return self.largest_column(2) * (1 if neighbours == "add-remove" else 4 if self.is_signed else 2)


@dataclass(frozen=True, eq=False)
class KroneckerRows:
    """A stack of products that are measured together, with the same noise on all rows."""

    domain: Domain
    parts: tuple[KroneckerProduct, ...]
    name: str

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def units(self, neighbours: Neighbours) -> NDArray[np.int64]:
        """Return 1 for every row: all get the same noise."""
        return np.ones(len(self), dtype=np.int64)

    def answers(self, data: Data) -> NDArray[np.int64]:
        """Return the exact answer of every row."""
        return _answers(self.parts, data)

    def l1_sensitivity(self, neighbours: Neighbours) -> int:
        """Return the sum of the parts' sensitivities: exact for one part, and a bound for several."""
        return sum(part.l1_sensitivity(neighbours) for part in self.parts)

    def l2_sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Return the same for squares."""
        return sum(part.l2_sensitivity_squared(neighbours) for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """Return the rows as JSON data, in the form of a strategy."""
        parts = [[factor for _, factor in _factors_to_json(part)] for part in self.parts]
        return {"kind": "strategy", "name": self.name, "parts": parts}


@dataclass(frozen=True, eq=False)
class ComposedRows:
    """Products that are measured one by one, each with its own fraction of the cost.

    >>> from fractions import Fraction
    >>> from sharewell import Domain, Integer
    >>> domain = Domain([Integer("age", 0, 85), Integer("sex", 1, 2)])
    >>> total, by_age = ({}, Fraction(1, 4)), ({0: None}, Fraction(3, 4))
    >>> len(ComposedRows(domain, [total, by_age], "marginals"))
    87
    """

    kind = "composed"

    domain: Domain
    products: Sequence[tuple[Factors, Fraction]]
    name: str
    #: Where every payer has a plan of their own: the fractions of their amount for the products.
    plans: Mapping[str, Sequence[Fraction]] | None = None
    parts: tuple[tuple[KroneckerProduct, Fraction], ...] = field(init=False)

    def __post_init__(self) -> None:
        parts = tuple((KroneckerProduct(self.domain, factors), part) for factors, part in self.products)
        fractions = [part for _, part in parts]
        if any(type(part) is not Fraction or part <= 0 for part in fractions) or sum(fractions) > 1:
            raise PrivacyError("The fractions of a cost must be positive and sum to at most 1.")
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "products", tuple((product.factors, part) for product, part in parts))
        if self.plans is not None:
            plans = {str(payer): tuple(plan) for payer, plan in self.plans.items()}
            for plan in plans.values():
                if len(plan) != len(parts) or any(
                    type(each) is not Fraction or each < 0 for each in plan
                ):
                    raise PrivacyError("A plan needs a fraction for each product.")
            object.__setattr__(self, "plans", MappingProxyType(plans))

    def __len__(self) -> int:
        return sum(len(product) for product, _ in self.parts)

    def require_planned_by(self, bill: Mapping[str, Fraction]) -> None:
        """Refuse fractions that are not those of the payers' own plans, in proportion to their amounts.

        What is stored about plans is then what was paid for.
        """
        if self.plans is None:
            return
        if self.plans.keys() != bill.keys():
            raise PrivacyError("The plans of a seed are not those of its payers.")
        cost = sum(bill.values(), Fraction(0))
        for at, (_, fraction) in enumerate(self.parts):
            if sum((bill[payer] * plan[at] for payer, plan in self.plans.items()), Fraction(0)) != (
                fraction * cost
            ):
                raise PrivacyError("The fractions of a seed are not those of its payers' plans.")

    def answers(self, data: Data) -> NDArray[np.int64]:
        """Return the exact answer of every row."""
        return _answers([product for product, _ in self.parts], data)

    def to_json(self) -> dict[str, Any]:
        """Return the rows as JSON data: for each product its fraction, and its matrices by level."""
        parts = [
            {"fraction": str(part), "factors": [list(pair) for pair in _factors_to_json(product)]}
            for product, part in self.parts
        ]
        form = {"kind": self.kind, "name": self.name, "parts": parts}
        if self.plans is None:
            return form
        plans = {payer: [str(each) for each in plan] for payer, plan in self.plans.items()}
        return form | {"kind": "planned", "plans": plans}

    @classmethod
    def from_json(cls, domain: Domain, data: Mapping[str, Any]) -> ComposedRows:
        """Read rows that `to_json` wrote."""
        products = [
            ({level: _factor_from_json(f) for level, f in part["factors"]}, Fraction(part["fraction"]))
            for part in data["parts"]
        ]
        stored = data.get("plans")
        plans = stored and {payer: [Fraction(f) for f in plan] for payer, plan in stored.items()}
        return cls(domain, products, data["name"], plans)


def _answers(products: Sequence[KroneckerProduct], data: Data) -> NDArray[np.int64]:
    """Return the exact answer of every row of several products, whose marginals are summed together."""
    marginals = data.marginals([product.marginal for product in products])
    pairs = zip(products, marginals, strict=True)
    return np.concatenate([product.times(marginal) for product, marginal in pairs])


def _times(matrix: sp.csr_array | Centred, tensor: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
    """Multiply a tensor by a matrix along an axis."""
    if isinstance(matrix, Centred):
        centred: NDArray[np.int64] = matrix.size * tensor - tensor.sum(axis=axis, keepdims=True)
        return centred
    moved = np.moveaxis(tensor, axis, 0)
    product = matrix @ moved.reshape(len(moved), -1)
    return np.moveaxis(product.reshape(-1, *moved.shape[1:]), 0, axis)


def _own(matrix: Any) -> Matrix:
    """Copy a matrix: no later change counts, and an entry that is listed twice is added up first.

    An entry outside the matrix is refused: a product with it would read memory beside the data.
    """
    if matrix is None:
        return None
    if type(matrix) is Centred:
        return Centred(matrix.size)
    if not np.issubdtype(matrix.dtype, np.integer):
        raise PrivacyError("The rows of a strategy must have whole-number weights.")
    own = sp.csr_array(matrix, dtype=np.int64, copy=True)
    try:
        own.check_format(full_check=True)
    except ValueError:
        raise PrivacyError("A matrix of a strategy has entries outside its shape.") from None
    own.sum_duplicates()
    return own


def _is_total(matrix: Matrix) -> bool:
    """Return whether a matrix has one row, and it is all ones."""
    if (
        matrix is None
        or isinstance(matrix, Centred)
        or matrix.shape[0] > 1
        or matrix.nnz < matrix.shape[1]
    ):
        return False
    return bool((matrix.data == 1).all())


def _largest(matrix: Matrix) -> int:
    if isinstance(matrix, Centred):
        return matrix.size - 1
    return 1 if matrix is None else max(int(matrix.max()), -int(matrix.min()))


def _column_norm(matrix: Matrix, power: int) -> int:
    """Return the largest sum over a column of the absolute weights to a power."""
    if matrix is None:
        return 1
    if isinstance(matrix, Centred):
        # n - 1 once, and 1 in every other row.
        return int((matrix.size - 1) ** power) + matrix.size - 1
    if _largest(matrix) ** power * matrix.shape[0] >= 2**62:
        raise PrivacyError("The weights of a strategy are too large to be added up in 64 bits.")
    norms = np.zeros(matrix.shape[1], dtype=np.int64)
    np.add.at(norms, matrix.indices, np.abs(matrix.data) ** power)
    return int(norms.max())


def _factors_to_json(product: KroneckerProduct) -> list[tuple[int, dict[str, Any]]]:
    shape = product.domain.shape
    return [(at, _factor_to_json(shape[at], matrix)) for at, matrix in product.factors.items()]


def _factor_to_json(size: int, matrix: Matrix) -> dict[str, Any]:
    if matrix is None:
        return {"unit": size}
    if isinstance(matrix, Centred):
        return {"centred": size}
    arrays = (matrix.indptr, matrix.indices, matrix.data)
    return {"size": size, "csr": [array.tolist() for array in arrays]}


def _factor_from_json(data: Mapping[str, Any]) -> Matrix:
    if "unit" in data:
        return None
    if "centred" in data:
        return Centred(data["centred"])
    indptr, indices, weights = (np.array(part, dtype=np.int64) for part in data["csr"])
    return sp.csr_array((weights, indices, indptr), shape=(len(indptr) - 1, data["size"]))
