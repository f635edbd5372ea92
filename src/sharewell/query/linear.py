"""Linear queries: a weight for every cell of the public domain, in canonical form."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sharewell.errors import QueryError
from sharewell.query import contraction, diagram
from sharewell.query.attribute import Label, Number
from sharewell.query.diagram import MAX_WEIGHT, Node, Weights
from sharewell.query.domain import Domain


class LinearQuery:
    """A weight for every cell; its answer is the sum of weight times count over all cells.

    With measures, there is a weight for every vector of every cell. Predicates and weighted counts have
    theirs on the counts alone, and `where` restricts all vectors of a query to some cells.

    Queries are immutable values: queries with equal weights are equal, hash equal and have the same
    `key`, however they were written. Predicates (weights 0 and 1) combine with `&`, `|` and `~`; all
    queries combine with `+`, `-` and multiplication by a number.

    >>> from sharewell import Domain, Integer
    >>> domain = Domain([Integer("age", 0, 85)])
    >>> adults = LinearQuery.of(domain, age=range(18, 86))
    >>> minors = LinearQuery.of(domain, age=range(18))
    >>> ~minors == adults, (adults | minors) == LinearQuery.all(domain)
    (True, True)
    """

    __slots__ = ("__dict__", "domain", "root", "scale")

    def __init__(self, domain: Domain, scale: Fraction, root: Node | None) -> None:
        self.domain = domain
        # The primitive query's diagram, None for the zero query, and the factor on it.
        self.scale = scale if root is not None else Fraction(0)
        self.root = root if scale else None

    # Constructors

    @classmethod
    def all(cls, domain: Domain) -> LinearQuery:
        """Return the query that counts all rows."""
        return cls.of_vectors(domain, {})

    @classmethod
    def zero(cls, domain: Domain) -> LinearQuery:
        """Return the query that counts no rows; its answer is 0 and public."""
        return cls(domain, Fraction(0), None)

    @classmethod
    def cell(cls, domain: Domain, index: int) -> LinearQuery:
        """Return the query that counts one cell, given by its index in C order.

        With measures, the index is one of `domain.shape`: of a cell and one of its vectors.
        """
        if not 0 <= index < domain.size:
            raise QueryError(
                f"Cell {index} is out of range.", hint=f"The domain has {domain.size:,} cells."
            )
        vectors = {}
        for level, size in reversed(list(enumerate(domain.shape))):
            index, at = divmod(index, size)
            vectors[level] = _one_hot(size, at)
        return cls.of_vectors(domain, vectors)

    @classmethod
    def of(cls, domain: Domain, /, **cells: Sequence[int] | range) -> LinearQuery:
        """Return the predicate that selects the given cells (by index) of each named attribute."""
        masks = {}
        for name, positions in cells.items():
            size = domain[name].size
            if any(not 0 <= at < size for at in positions):
                raise QueryError(
                    f"A cell of {name!r} is out of range.", hint=f"Its cells are 0 to {size - 1}."
                )
            masks[name] = domain[name].mask(positions)
        return cls.product(domain, masks)

    @classmethod
    def product(cls, domain: Domain, weights: Mapping[str, ArrayLike]) -> LinearQuery:
        """Multiply one weight vector per attribute; missing attributes have weight 1."""
        scale = Fraction(1)
        vectors = {}
        for name, raw in weights.items():
            level = domain.index(name)
            factor, vectors[level] = _whole(raw, domain.shape[level], repr(name))
            scale *= factor
        return cls.of_vectors(domain, vectors) * scale

    @classmethod
    def from_vector(cls, domain: Domain, vector: ArrayLike) -> LinearQuery:
        """Return the query with these weights, one per cell in C order."""
        domain.require_dense()
        scale, whole = _whole(vector, domain.size, "the domain")

        def build(part: Weights, level: int) -> diagram.Scaled:
            if level == len(domain.shape) - 1:
                return diagram.of_vector(part, diagram.TERMINAL)
            rows = [build(row, level + 1) for row in part.reshape(domain.shape[level], -1)]
            cells = np.arange(len(rows))
            return diagram.make(len(rows), cells, np.ones_like(cells), cells, rows)

        factor, root = build(whole, 0)
        return cls(domain, scale * factor, root)

    @classmethod
    def vector(cls, domain: Domain, at: int) -> LinearQuery:
        """Return the query that sums one of the domain's vectors over all cells, such as a measure."""
        return cls.of_vectors(domain, {len(domain.attributes): _one_hot(domain.vectors, at)})

    @classmethod
    def of_vectors(cls, domain: Domain, vectors: Mapping[int, NDArray[Any]]) -> LinearQuery:
        """Multiply integer weight vectors, keyed by the attributes' positions.

        With measures, the last position has the weights of the vectors; without it, rows are counted.
        """
        last = len(domain.attributes)
        if domain.measures and last not in vectors:
            vectors = {**vectors, last: _one_hot(domain.vectors, 0)}
        scale, root = diagram.product(domain.shape, vectors)
        return cls(domain, Fraction(scale), root)

    # Identity

    @cached_property
    def key(self) -> str:
        """A digest that is the same for equal queries, across processes."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr(self.domain.shape).encode())
        digest.update(str(self.scale).encode())
        digest.update(self.root.digest if self.root else b"")
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearQuery) and self.domain == other.domain and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        if self.root is None:
            return "LinearQuery(0)"
        first = islice(diagram.paths(self.root), 3)
        terms = [" x ".join(self._factors(vectors)) or "1" for vectors in first]
        more = " + ..." if len(terms) > 2 else ""
        scale = "" if self.scale == 1 else f"{self.scale} * "
        return f"LinearQuery({scale}{' + '.join(terms[:2])}{more})"

    def _factors(self, vectors: Sequence[Weights]) -> Iterator[str]:
        for attribute, weights in zip(self.domain.attributes, vectors, strict=False):
            if not (weights == 1).all():
                edges = np.flatnonzero(np.diff(weights != 0, prepend=False, append=False)).tolist()
                runs = list(zip(edges[::2], edges[1::2], strict=True))
                shown = [_run(attribute.label(a), attribute.label(b - 1)) for a, b in runs[:3]]
                more = ", ..." if len(runs) > 3 else ""
                plain = weights.min() >= 0 and weights.max() == 1
                yield f"{attribute.name}[{', '.join(shown)}{more}]" + ("" if plain else " weighted")
        if self.domain.measures and vectors[-1].tolist() != _one_hot(self.domain.vectors, 0).tolist():
            yield f"vectors{vectors[-1].tolist()}"

    # Algebra

    def __and__(self, other: LinearQuery) -> LinearQuery:
        """Select the rows that both predicates select."""
        return self._predicate().where(other._predicate())

    def __or__(self, other: LinearQuery) -> LinearQuery:
        """Select the rows that at least one of the predicates selects."""
        self._same_domain(other)
        left, right = self._predicate().root, other._predicate().root
        if left is None or right is None:
            return self if right is None else other
        return LinearQuery(self.domain, Fraction(1), diagram.unite(left, right)[1])

    def __invert__(self) -> LinearQuery:
        """Select the rows that the predicate does not select."""
        root = self._predicate().root
        if root is None:
            return LinearQuery.all(self.domain)
        scale, root = diagram.complement(root)
        outside = LinearQuery(self.domain, Fraction(scale), root)
        return outside._product(LinearQuery.all(self.domain)) if self.domain.measures else outside

    def where(self, predicate: LinearQuery) -> LinearQuery:
        """Restrict the query to the rows that a predicate selects: the cell-by-cell product."""
        self._same_domain(predicate)
        return self._product(predicate._on_every_vector())

    def _on_every_vector(self) -> LinearQuery:
        """The weights that a query has on the counts, on every vector."""
        if not self.domain.measures or self.root is None:
            return self
        if not self.counts_rows:
            raise QueryError(
                "Only a query that counts rows can restrict another.", hint="Use a predicate."
            )
        memo: dict[Node, diagram.Scaled] = {}

        def visit(node: Node) -> diagram.Scaled:
            if node.children == (diagram.TERMINAL,):
                return 1, diagram.ones(node.size)
            if node not in memo:
                diagram.spend(1)
                parts = [visit(child) for child in node.children]
                memo[node] = diagram.make(node.size, node.starts, node.weights, node.which, parts)
            return memo[node]

        scale, root = visit(self.root)
        return LinearQuery(self.domain, self.scale * scale, root)

    def _product(self, predicate: LinearQuery) -> LinearQuery:
        """Multiply two queries weight by weight."""
        if self.root is None or predicate.root is None:
            return LinearQuery.zero(self.domain)
        scale, root = diagram.multiply(self.root, predicate.root)
        return LinearQuery(self.domain, self.scale * predicate.scale * scale, root)

    def split(self, level: int, groups: ArrayLike, count: int) -> list[LinearQuery]:
        """Split the query by an attribute's cells: `groups[cell]` is one of `count` groups."""
        parts, zero = self.parts(level, np.asarray(groups)), LinearQuery.zero(self.domain)
        return [parts.get(group, zero) for group in range(count)]

    def parts(self, level: int, groups: Weights) -> dict[int, LinearQuery]:
        """Split the query like `split`; return the parts that are not zero, none of negative groups."""
        if self.root is None:
            return {}
        made = diagram.split(self.root, level, groups)
        return {
            group: LinearQuery(self.domain, self.scale * scale, root)
            for group, (scale, root) in made.items()
        }

    def __add__(self, other: LinearQuery) -> LinearQuery:
        return self._combine(1, other)

    def __sub__(self, other: LinearQuery) -> LinearQuery:
        return self._combine(-1, other)

    def __mul__(self, factor: Number) -> LinearQuery:
        return LinearQuery(self.domain, self.scale * _rational(factor), self.root)

    __rmul__ = __mul__

    def __neg__(self) -> LinearQuery:
        return self * -1

    def _combine(self, sign: int, other: LinearQuery) -> LinearQuery:
        self._same_domain(other)
        unit = Fraction(1, math.lcm(self.scale.denominator, other.scale.denominator))
        scale, root = diagram.combine(
            int(self.scale / unit),
            (1, self.root),
            sign * int(other.scale / unit),
            (1, other.root),
        )
        return LinearQuery(self.domain, unit * scale, root)

    def _predicate(self) -> LinearQuery:
        if not self.is_predicate:
            raise QueryError(
                "&, | and ~ require predicates, but this query has weights other than 0 and 1.",
                hint="Use +, - or `where`.",
            )
        if not self.counts_rows:
            raise QueryError("&, | and ~ require predicates, but this query sums a measure.")
        return self

    def _same_domain(self, other: LinearQuery) -> None:
        if self.domain is not other.domain and self.domain != other.domain:
            raise QueryError("The queries have different domains.")

    # Properties; none of them expands the domain

    @property
    def primitive(self) -> LinearQuery:
        """This query divided by its scale: integer weights, as measured."""
        return self if self.scale == 1 else LinearQuery(self.domain, Fraction(1), self.root)

    @property
    def is_zero(self) -> bool:
        """Whether every weight is 0, which makes the answer public."""
        return self.root is None

    @property
    def is_predicate(self) -> bool:
        """Whether every weight is 0 or 1."""
        return self.root is None or (self.root.is_predicate and self.scale == 1)

    @cached_property
    def counts_rows(self) -> bool:
        """Whether the query has no weight on a measure."""
        if self.root is None or not self.domain.measures:
            return True
        counts = [1] + [0] * (self.domain.vectors - 1)
        return all(node.vectors[0][0].tolist() == counts for node in contraction.levels(self.root)[-1])

    @cached_property
    def max_abs(self) -> Fraction:
        """The largest absolute weight: the sensitivity to adding or removing a row."""
        low, high = self.bounds
        return max(high, -low)

    @cached_property
    def spread(self) -> Fraction:
        """The range of the weights, including 0: the sensitivity to replacing a row."""
        low, high = self.bounds
        return high - low

    @cached_property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The least and the greatest weight, including 0; with measures, what a row can add."""
        if self.root is None or (self.root.is_predicate and not self.domain.measures):
            ends = self.scale, self.scale
        else:
            of_row = self.domain.row_range if self.domain.measures else None
            low, high = contraction.extremes(self.root, of_row)
            ends = self.scale * low, self.scale * high
        return min(Fraction(0), *ends), max(Fraction(0), *ends)

    @cached_property
    def l1_norm(self) -> Fraction:
        """The sum of the absolute weights; for a predicate, the number of selected cells."""

        def norm(runs: list[tuple[int, int, int]]) -> int:
            return sum(abs(weight) * length * below for weight, length, below in runs)

        return abs(self.scale) * (contraction.fold(self.root, norm, 1) if self.root else 0)

    def products(self) -> Iterator[tuple[Fraction, tuple[Weights, ...]]]:
        """Yield the products that sum to the query: a factor and one weight vector per attribute."""
        if self.root is not None:
            for vectors in diagram.paths(self.root):
                yield self.scale, vectors

    @cached_property
    def product_count(self) -> int:
        """The number of products that sum to the query, counted without making them."""
        found: dict[diagram.Node, int] = {diagram.TERMINAL: 1}

        def count(node: diagram.Node) -> int:
            if node not in found:
                found[node] = sum(map(count, node.children))
            return found[node]

        return count(self.root) if self.root else 0

    # Dense forms

    def to_vector(self) -> NDArray[Any]:
        """Return the weight of every cell in C order: int64 if all are integers, else float64."""
        self.domain.require_dense()
        if self.root is None:
            return np.zeros(self.domain.size, dtype=np.int64)
        whole = contraction.dense(self.root)
        if self.scale == 1:
            return whole.copy()
        if self.scale.denominator == 1:
            return whole * int(self.scale)
        return whole * float(self.scale)

    def dot(self, array: NDArray[Any]) -> Any:
        """Return the answer on a dense array of counts: an exact int for integer weights and counts."""
        if array.size != self.domain.size:
            raise QueryError(
                f"The array has {array.size:,} entries, but the domain has {self.domain.size:,} cells."
            )
        if self.root is None:
            return 0
        total = contraction.apply(self.root, array.reshape(self.domain.shape))
        return total * (int(self.scale) if self.scale.denominator == 1 else float(self.scale))

    # Serialization

    def to_json(self) -> dict[str, Any]:
        """Return the query as JSON data."""
        return {"scale": str(self.scale), "nodes": diagram.serialize(self.root)}

    def __reduce__(self) -> tuple[Any, ...]:
        # JSON data is ten times cheaper to pickle than a diagram.
        return LinearQuery.from_json, (self.domain, self.to_json())

    @classmethod
    def from_json(cls, domain: Domain, data: Mapping[str, Any]) -> LinearQuery:
        """Read a query that `to_json` wrote."""
        factor, root = diagram.deserialize(data["nodes"])
        if root is not None and diagram.sizes(root) != domain.shape:
            raise QueryError("The stored query belongs to another domain.")
        return cls(domain, Fraction(data["scale"]) * factor, root)


def _one_hot(size: int, at: int) -> Weights:
    vector = np.zeros(size, dtype=np.int64)
    vector[at] = 1
    return vector


def _rational(number: Any) -> Fraction:
    if isinstance(number, np.generic):
        number = number.item()
    if not isinstance(number, int | float | Decimal | Fraction) or not math.isfinite(number):
        raise QueryError(f"Weights must be finite numbers, not {number!r}.")
    return Fraction(str(number)) if isinstance(number, float) else Fraction(number)


def _whole(raw: ArrayLike, size: int, name: str) -> tuple[Fraction, Weights]:
    """Convert a weight vector to a rational factor and integers."""
    vector = np.asarray(raw)
    if vector.shape != (size,):
        raise QueryError(f"Expected {size:,} weights for {name}, got an array of shape {vector.shape}.")
    if vector.dtype.kind in "bi":
        return Fraction(1), vector.astype(np.int64)
    exact = [_rational(number) for number in vector]
    unit = Fraction(1, math.lcm(*(number.denominator for number in exact)))
    whole = [int(number / unit) for number in exact]
    if max(map(abs, whole)) > MAX_WEIGHT:
        raise QueryError(
            f"The weights of {name} need more precision than a query can represent.",
            hint="Round them to a common grid.",
        )
    return unit, np.array(whole, dtype=np.int64)


def _run(first: Label, last: Label) -> str:
    return f"{first!r}" if first == last else f"{first!r}..{last!r}"
