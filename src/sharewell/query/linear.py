"""Linear queries: a weight for every cell of the public domain, in canonical form."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sharewell.errors import QueryError
from sharewell.query import diagram, stored
from sharewell.query.attribute import Label
from sharewell.query.diagram import MAX_WEIGHT, Node, Weights
from sharewell.query.domain import Domain
from sharewell.query.ordered import Number


class LinearQuery:
    """A weight for every cell; its answer on a table x is the sum of weight times count.

    Queries are values: they are immutable, and two that weigh every cell alike are equal, hash equal
    and have the same `key`, however they were written. Predicates (weights 0 and 1) combine with
    `&`, `|` and `~`; any queries combine with `+`, `-` and multiplication by a number.

    >>> from sharewell import Domain, Integer
    >>> domain = Domain([Integer("age", 0, 85)])
    >>> adults = LinearQuery.of(domain, age=range(18, 86))
    >>> minors = LinearQuery.of(domain, age=range(18))
    >>> ~minors == adults, (adults | minors) == LinearQuery.all(domain)
    (True, True)
    """

    __slots__ = ("__dict__", "_root", "_scale", "domain")

    def __init__(self, domain: Domain, scale: Fraction, root: Node | None) -> None:
        self.domain = domain
        self._scale = scale if root is not None else Fraction(0)
        self._root = root if scale else None

    # Making queries

    @classmethod
    def all(cls, domain: Domain) -> LinearQuery:
        """The query that counts every row."""
        return cls(domain, Fraction(1), diagram.ones(*domain.shape))

    @classmethod
    def zero(cls, domain: Domain) -> LinearQuery:
        """The query that counts nothing; its answer is 0 and public."""
        return cls(domain, Fraction(0), None)

    @classmethod
    def cell(cls, domain: Domain, index: int) -> LinearQuery:
        """The query that counts one cell, given by its position in C order."""
        if not 0 <= index < domain.size:
            raise QueryError(f"There is no cell {index}.", hint=f"There are {domain.size:,} cells.")
        vectors = {}
        for level, size in reversed(list(enumerate(domain.shape))):
            index, at = divmod(index, size)
            vectors[level] = _one_hot(size, at)
        return cls.of_vectors(domain, vectors)

    @classmethod
    def of(cls, domain: Domain, /, **cells: Sequence[int] | range) -> LinearQuery:
        """The predicate that selects these cells (by position) of each attribute named."""
        masks = {}
        for name, positions in cells.items():
            size = domain[name].size
            if any(not 0 <= at < size for at in positions):
                raise QueryError(f"{name} has no such cell.", hint=f"Its cells are 0 to {size - 1}.")
            masks[name] = domain[name].mask(positions)
        return cls.product(domain, masks)

    @classmethod
    def product(cls, domain: Domain, weights: Mapping[str, ArrayLike]) -> LinearQuery:
        """The product of one weight vector per attribute; 1 for those left out."""
        scale = Fraction(1)
        vectors = {}
        for name, raw in weights.items():
            level = domain.index(name)
            factor, vectors[level] = _whole(raw, domain.shape[level], name)
            scale *= factor
        return cls.of_vectors(domain, vectors) * scale

    @classmethod
    def from_vector(cls, domain: Domain, vector: ArrayLike) -> LinearQuery:
        """The query with these weights, one per cell in C order."""
        domain.require_dense()
        scale, whole = _whole(vector, domain.size, "The domain")

        def build(part: Weights, level: int) -> diagram.Scaled:
            if level == len(domain.shape):
                return (int(part[0]), diagram.TERMINAL) if part[0] else diagram.ZERO
            rows = part.reshape(domain.shape[level], -1)
            return diagram.make(
                (_one_hot(len(rows), i), build(row, level + 1))
                for i, row in enumerate(rows)
                if row.any()
            )

        factor, root = build(whole, 0)
        return cls(domain, scale * factor, root)

    @classmethod
    def of_vectors(cls, domain: Domain, vectors: Mapping[int, Weights]) -> LinearQuery:
        """The product of whole-number weight vectors, given by the attributes' positions."""
        own = {level: np.array(weights, dtype=np.int64) for level, weights in vectors.items()}
        scale, root = diagram.product(domain.shape, own)
        return cls(domain, Fraction(scale), root)

    # Identity

    @cached_property
    def key(self) -> str:
        """A short text that is the same for equal queries, today and after a restart."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr(self.domain.shape).encode())
        digest.update(str(self._scale).encode())
        digest.update(self._root.digest if self._root else b"")
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearQuery) and self.domain == other.domain and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        if self._root is None:
            return "LinearQuery(0)"
        terms = [
            " x ".join(self._factors(vectors)) or "1" for vectors in _first(3, diagram.paths(self._root))
        ]
        more = " + ..." if len(terms) > 2 else ""
        scale = "" if self._scale == 1 else f"{self._scale} * "
        return f"LinearQuery({scale}{' + '.join(terms[:2])}{more})"

    def _factors(self, vectors: Sequence[Weights]) -> Iterator[str]:
        for attribute, weights in zip(self.domain.attributes, vectors, strict=True):
            if not (weights == 1).all():
                edges = np.flatnonzero(np.diff(weights != 0, prepend=False, append=False)).tolist()
                runs = list(zip(edges[::2], edges[1::2], strict=True))
                shown = [_run(attribute.label(a), attribute.label(b - 1)) for a, b in runs[:3]]
                more = ", ..." if len(runs) > 3 else ""
                plain = weights.min() >= 0 and weights.max() == 1
                yield f"{attribute.name}[{', '.join(shown)}{more}]" + ("" if plain else " weighted")

    # Algebra

    def __and__(self, other: LinearQuery) -> LinearQuery:
        """Rows that both predicates select."""
        return self._predicate().where(other._predicate())

    def __or__(self, other: LinearQuery) -> LinearQuery:
        """Rows that at least one of the predicates selects."""
        return ~(~self & ~other)

    def __invert__(self) -> LinearQuery:
        """Rows that the predicate does not select."""
        root = self._predicate()._root
        if root is None:
            return LinearQuery.all(self.domain)
        scale, root = diagram.complement(root)
        return LinearQuery(self.domain, Fraction(scale), root)

    def where(self, predicate: LinearQuery) -> LinearQuery:
        """This query on the rows that a predicate selects: the cell-by-cell product."""
        self._same_domain(predicate)
        if self._root is None or predicate._root is None:
            return LinearQuery.zero(self.domain)
        scale, root = diagram.multiply(self._root, predicate._root)
        return LinearQuery(self.domain, self._scale * predicate._scale * scale, root)

    def __add__(self, other: LinearQuery) -> LinearQuery:
        return self._combine(1, other)

    def __sub__(self, other: LinearQuery) -> LinearQuery:
        return self._combine(-1, other)

    def __mul__(self, factor: Number) -> LinearQuery:
        return LinearQuery(self.domain, self._scale * _rational(factor), self._root)

    __rmul__ = __mul__

    def __neg__(self) -> LinearQuery:
        return self * -1

    def _combine(self, sign: int, other: LinearQuery) -> LinearQuery:
        self._same_domain(other)
        unit = Fraction(1, math.lcm(self._scale.denominator, other._scale.denominator))
        scale, root = diagram.combine(
            int(self._scale / unit),
            (1, self._root),
            sign * int(other._scale / unit),
            (1, other._root),
        )
        return LinearQuery(self.domain, unit * scale, root)

    def _predicate(self) -> LinearQuery:
        if not self.is_predicate:
            raise QueryError(
                "AND, OR and NOT combine predicates, and this query has weights other than 0 and 1.",
                hint="Use + and -, or `where`.",
            )
        return self

    def _same_domain(self, other: LinearQuery) -> None:
        if self.domain is not other.domain and self.domain != other.domain:
            raise QueryError("The two queries are over different domains.")

    # Numbers about the query; none of them writes out the domain

    @property
    def scale(self) -> Fraction:
        """The factor on the primitive query, whose weights are whole numbers without a common factor."""
        return self._scale

    @property
    def primitive(self) -> LinearQuery:
        """This query divided by its scale: what is measured, since its weights are whole numbers."""
        return self if self._scale == 1 else LinearQuery(self.domain, Fraction(1), self._root)

    @property
    def root(self) -> Node | None:
        """The primitive query's diagram; None for the zero query."""
        return self._root

    @property
    def is_zero(self) -> bool:
        """Whether every weight is 0, so that the answer is public."""
        return self._root is None

    @property
    def is_predicate(self) -> bool:
        """Whether every weight is 0 or 1."""
        return self._root is None or (self._root.is_predicate and self._scale == 1)

    @cached_property
    def max_abs(self) -> Fraction:
        """The largest absolute weight: what one row more or less can change."""
        if self.is_predicate:
            return self._scale
        return self._scale and abs(self._scale) * self._fold(
            lambda edges: max(int(np.abs(w).max()) * below for w, below in edges)
        )

    @cached_property
    def spread(self) -> Fraction:
        """From the smallest weight to the largest, 0 being one: what one row replaced can change."""
        low, high = diagram.extremes(self._root) if self._root else (0, 0)
        return abs(self._scale) * (max(high, 0) - min(low, 0))

    @cached_property
    def l1_norm(self) -> Fraction:
        """The sum of the absolute weights; for a predicate, the number of cells that it selects."""
        return self._scale and abs(self._scale) * self._fold(
            lambda edges: sum(int(np.abs(w).sum()) * below for w, below in edges)
        )

    def inner(self, other: LinearQuery) -> Fraction:
        """The inner product of two queries' weights, exactly."""
        self._same_domain(other)
        if self._root is None or other._root is None:
            return Fraction(0)
        return self._scale * other._scale * int(diagram.inner(self._root, other._root, _dot))

    def contains(self, other: LinearQuery) -> bool:
        """Whether this predicate selects every row that the other one selects."""
        return self._predicate().inner(other._predicate()) == other.l1_norm

    def products(self) -> Iterator[tuple[Fraction, tuple[Weights, ...]]]:
        """The query as a sum of products: a factor and one weight vector per attribute each."""
        if self._root is not None:
            for vectors in diagram.paths(self._root):
                yield self._scale, vectors

    def _fold(self, of_edges: Callable[[list[tuple[Weights, float]]], float]) -> int:
        return int(diagram.fold(self._root, of_edges)) if self._root else 0

    # Dense forms

    def to_vector(self) -> NDArray[Any]:
        """The weights of all cells, in C order: whole numbers where they are, else floats."""
        self.domain.require_dense()
        if self._root is None:
            return np.zeros(self.domain.size, dtype=np.int64)
        whole = diagram.dense(self._root)
        if self._scale == 1:
            return whole.copy()
        if self._scale.denominator == 1:
            return whole * int(self._scale)
        return whole * float(self._scale)

    def nonzero(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The positions of the cells with a weight, and the weights, without writing out the others."""
        cells, values = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        for scale, vectors in self.products():
            used = [np.flatnonzero(weights) for weights in vectors]
            cells.append(np.ravel_multi_index(np.ix_(*used), self.domain.shape).ravel())
            chosen = [weights[at] for weights, at in zip(vectors, used, strict=True)]
            product = np.asarray(reduce(np.multiply.outer, chosen), dtype=np.float64)
            values.append(float(scale) * product.ravel())
        return np.concatenate(cells), np.concatenate(values)

    def dot(self, array: NDArray[Any]) -> Any:
        """The answer on a dense array over the cells: an exact int for whole weights and counts."""
        if array.size != self.domain.size:
            raise QueryError(
                f"The array has {array.size:,} numbers for a domain of {self.domain.size:,} cells."
            )
        if self._root is None:
            return 0
        total = diagram.apply(self._root, array.reshape(self.domain.shape))
        return total * (int(self._scale) if self._scale.denominator == 1 else float(self._scale))

    # Plain data, for a ledger

    def to_json(self) -> dict[str, Any]:
        """The query as plain data."""
        return self._json

    @cached_property
    def _json(self) -> dict[str, Any]:
        return {"scale": str(self._scale), "nodes": stored.write(self._root)}

    def __reduce__(self) -> tuple[Any, ...]:
        # Plain data is a tenth of the work of a diagram, and often there already.
        return LinearQuery.from_json, (self.domain, self.to_json())

    @classmethod
    def from_json(cls, domain: Domain, data: Mapping[str, Any]) -> LinearQuery:
        """The query that `to_json` wrote."""
        factor, root = stored.read(data["nodes"])
        if root is not None and diagram.sizes(root) != domain.shape:
            raise QueryError("The stored query is over another domain.")
        return cls(domain, Fraction(data["scale"]) * factor, root)


def _dot(_level: int, left: Weights, right: Weights) -> int:
    return int(left @ right)


def _one_hot(size: int, at: int) -> Weights:
    vector = np.zeros(size, dtype=np.int64)
    vector[at] = 1
    return vector


def _rational(number: Any) -> Fraction:
    if isinstance(number, np.generic):
        number = number.item()
    if not isinstance(number, int | float | Decimal | Fraction) or not math.isfinite(number):
        raise QueryError(f"A weight must be a finite number, not {number!r}.")
    return Fraction(str(number)) if isinstance(number, float) else Fraction(number)


def _whole(raw: ArrayLike, size: int, name: str) -> tuple[Fraction, Weights]:
    """A weight vector as a rational times whole numbers."""
    vector = np.asarray(raw)
    if vector.shape != (size,):
        raise QueryError(f"{name} has {size:,} cells, and got weights of shape {vector.shape}.")
    if vector.dtype.kind in "bi":
        return Fraction(1), vector.astype(np.int64)
    exact = [_rational(number) for number in vector]
    unit = Fraction(1, math.lcm(*(number.denominator for number in exact)))
    whole = [int(number / unit) for number in exact]
    if max(map(abs, whole)) > MAX_WEIGHT:
        raise QueryError(
            f"The weights of {name} need more digits than a query can hold.",
            hint="Round them to a common grid first.",
        )
    return unit, np.array(whole, dtype=np.int64)


def _run(first: Label, last: Label) -> str:
    return f"{first!r}" if first == last else f"{first!r}..{last!r}"


def _first(count: int, items: Iterator[Any]) -> list[Any]:
    return [item for item, _ in zip(items, range(count), strict=False)]
