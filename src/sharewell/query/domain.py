"""The public domain: the attributes of a table, whose product is the set of cells."""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import DomainError, DomainTooLarge, QueryTooComplex
from sharewell.query.attribute import Attribute, Bins, Category, Label
from sharewell.query.measure import Measure, MeasureProduct
from sharewell.wire.text import format_cells

#: The maximum number of cells of a data vector: 1 GiB of counts.
MAX_CELLS = 2**27
#: The maximum number of attributes: operations on queries recurse once for each.
MAX_ATTRIBUTES = 400
#: The maximum number of ways in which the values of several measures are combined.
MAX_EXTREMES = 3**8


class Column:
    """A name that SQL may use: an attribute, divided into its cells or into declared bins."""

    def __init__(self, level: int, attribute: Attribute, bins: Bins | None = None) -> None:
        self.level = level
        self.attribute = attribute
        self.bins = bins
        self.name = bins.name if bins else attribute.name
        self.is_text = bins is not None or isinstance(attribute, Category)

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """The labels of its cells or bins; None for NULL. An attribute may have millions."""
        return self.bins.labels if self.bins else self.attribute.labels

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """The index of each cell's label."""
        return np.array(self.bins.groups) if self.bins else np.arange(self.attribute.size)

    @cached_property
    def positions(self) -> dict[Label, int]:
        """The index of each label."""
        return {label: i for i, label in enumerate(self.labels)}

    @property
    def null(self) -> int | None:
        """The index of NULL among the labels."""
        return len(self.labels) - 1 if self.attribute.nullable else None

    @property
    def other(self) -> int | None:
        """The index of the `other` cell among the labels."""
        special = len(self.attribute.special)
        return None if self.attribute.other is None else len(self.labels) - special


@dataclass(frozen=True, init=False)
class Domain:
    """The attributes of a table, in order; the cells are their product, in C order.

    With measures, every cell has several numbers, along one further axis: the number of its rows, then
    for each measure, if it is nullable, the number of its values, and the sum of its centred values.
    `products` are pairs of measures whose products are summed too, a measure and itself for its square;
    for each there are all sums that correlations need, over the rows that have both values.

    >>> from sharewell import Boolean, Domain, Integer
    >>> Domain([Integer("age", 0, 85), Boolean("employed")]).size
    172
    """

    attributes: tuple[Attribute, ...]
    measures: tuple[Measure, ...] = ()
    products: tuple[tuple[str, str], ...] = ()

    def __init__(
        self,
        attributes: Iterable[Attribute],
        measures: Iterable[Measure] = (),
        products: Iterable[tuple[str, str]] = (),
    ) -> None:
        if not isinstance(attributes, Iterable):
            raise DomainError("A domain requires a list of attributes.", hint="Write Domain([...]).")
        object.__setattr__(self, "attributes", tuple(attributes))
        object.__setattr__(self, "measures", tuple(measures))
        if not self.attributes:
            raise DomainError("A domain requires at least one attribute.")
        if len(self.attributes) > MAX_ATTRIBUTES:
            raise DomainTooLarge(
                f"A domain can have {MAX_ATTRIBUTES} attributes, not {len(self.attributes):,}.",
                hint="Describe only the columns that will be asked for.",
            )
        for attribute in self.attributes:
            if not isinstance(attribute, Attribute):
                raise DomainError(
                    f"A domain requires attributes, not {attribute!r}.",
                    hint="Use Category, Integer, Binned, Boolean or Date.",
                )
            if attribute.size > MAX_CELLS:
                raise DomainTooLarge(
                    f"{attribute.name!r} has {attribute.size:,} cells; the limit is {MAX_CELLS:,}.",
                    hint="Use coarser bins.",
                )
        for measure in self.measures:
            if not isinstance(measure, Measure):
                raise DomainError(
                    f"The measures of a domain cannot be {measure!r}.", hint="Use Measure."
                )
        names = [name for a in self.attributes for name in (a.name, *a.bins_by_name)]
        # A column may be attribute and measure at once.
        own = {attribute.name.casefold() for attribute in self.attributes}
        names += [m.name for m in self.measures if not own & {m.name.casefold()} & {m.column.casefold()}]
        for same in (names, [measure.name for measure in self.measures]):
            _refuse_duplicates(same)
        object.__setattr__(self, "products", tuple(dict.fromkeys(map(self._in_order, products))))

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of cells of each attribute; with measures, then the number of vectors."""
        sizes = tuple(attribute.size for attribute in self.attributes)
        return (*sizes, self.vectors) if self.measures else sizes

    @cached_property
    def cells(self) -> int:
        """The number of cells."""
        return math.prod(attribute.size for attribute in self.attributes)

    @cached_property
    def size(self) -> int:
        """The number of cells, times the number of vectors."""
        return self.cells * self.vectors

    @cached_property
    def vectors(self) -> int:
        """The number of vectors: the counts, one or two for each measure, and those of products."""
        return self._first_product + len(self.product_vectors)

    @cached_property
    def _first_product(self) -> int:
        return 1 + sum(1 + measure.nullable for measure in self.measures)

    @cached_property
    def product_vectors(self) -> tuple[MeasureProduct, ...]:
        """The vectors that the products add, in order, after those of the measures."""
        found: dict[MeasureProduct, None] = {}
        for pair in self.products:
            one, other = map(self.measure, pair)
            squares = [(one, one)] if one == other else [(one, one), (other, other), (one, other)]
            for factors in ((), (one,), (other,), *squares):
                product = self._product(factors, (one, other))
                if self._simple_vector(product) is None:
                    found.setdefault(product)
        return tuple(found)

    def measure(self, name: str) -> Measure:
        """Return the measure of a name."""
        for measure in self.measures:
            if measure.name.casefold() == name.casefold():
                return measure
        raise self._unknown_measure(name)

    def multiplied_with(self, name: str) -> tuple[str, ...]:
        """Return the measures that a measure has products with: itself, if its square is summed."""
        return tuple(pair[1 - pair.index(name)] for pair in self.products if name in pair)

    def _unknown_measure(self, name: str) -> DomainError:
        return DomainError(
            f"Unknown measure {name!r}.",
            hint=f"The measures are {', '.join(measure.name for measure in self.measures) or 'none'}.",
        )

    def _in_order(self, pair: tuple[str, str]) -> tuple[str, str]:
        if not isinstance(pair, tuple) or len(pair) != 2 or not all(isinstance(n, str) for n in pair):
            raise DomainError(
                f"A product must be the names of two measures, not {pair!r}.",
                hint='Write ("wage", "hours"), or ("wage", "wage") for a square.',
            )
        one, other = sorted(map(self.measure, pair), key=self.measures.index)
        return one.name, other.name

    def _product(self, factors: Sequence[Measure], given: Sequence[Measure]) -> MeasureProduct:
        """Return a product in its canonical form: measures in order, and given what may be NULL."""
        ordered = sorted(factors, key=self.measures.index)
        required = {*factors, *given}
        return MeasureProduct(
            tuple(ordered), tuple(each for each in self.measures if each.nullable and each in required)
        )

    def _simple_vector(self, product: MeasureProduct) -> int | None:
        """Return the vector of a product that is the count, or one of a measure's own."""
        match product.factors, product.given:
            case (), ():
                return 0
            case ((), (measure,)) | ((measure,), ()):
                return self.vectors_of(measure.name)[0 if product.given else 1]
            case (measure,), (given,) if measure == given:
                return self.vectors_of(measure.name)[1]
        return None

    def product_vector(
        self, factors: Sequence[Measure], given: Sequence[Measure]
    ) -> tuple[int, MeasureProduct] | None:
        """Return the vector that sums a product of measures' centred values; None if there is none.

        The sum is over the rows on which the factors, and all of `given`, have values.
        """
        product = self._product(factors, given)
        found = self._simple_vector(product)
        if found is None and product in self.product_vectors:
            found = self._first_product + self.product_vectors.index(product)
        return None if found is None else (found, product)

    def vectors_of(self, name: str) -> tuple[int, int]:
        """Return the vectors of a measure: the number of its values, and their centred sum."""
        at = 1
        for measure in self.measures:
            if measure.name.casefold() == name.casefold():
                return (at, at + 1) if measure.nullable else (0, at)
            at += 1 + measure.nullable
        raise self._unknown_measure(name)

    def row_extremes(self, used: Collection[int]) -> list[list[int]]:
        """Return the most that a row can add to the vectors: every row is between these.

        Only the measures with a vector in `used` are varied; the others add 0.
        """
        rows, at = [[1]], 1
        for extremes in self._extremes:
            end = at + len(extremes[0])
            varied = any(at <= vector < end for vector in used)
            rows = [
                [*row, *added] for row in rows for added in (extremes if varied else [(0,) * (end - at)])
            ]
            if len(rows) > MAX_EXTREMES:
                raise QueryTooComplex("The query combines too many measures.", hint="Split it.")
            at = end
        return rows

    @cached_property
    def _extremes(self) -> list[tuple[tuple[int, ...], ...]]:
        """What a row can add to the vectors of each measure, and of each product on its own.

        A row cannot add the extremes of a measure and of its square at once: the range of a query on
        both is larger than what a row changes, and never smaller.
        """
        ends = [((each.lowest,), (each.highest,)) for each in self.product_vectors]
        return [*(measure.extremes for measure in self.measures), *ends]

    def row_range(self, weights: NDArray[np.int64]) -> tuple[int, int]:
        """Return the least and the most that a row adds to a sum with these weights on the vectors."""
        low = high = int(weights[0])
        at = 1
        for extremes in self._extremes:
            end = at + len(extremes[0])
            own = weights[at:end].tolist()
            sums = [sum(map(operator.mul, own, added)) for added in extremes]
            low, high, at = low + min(sums), high + max(sums), end
        return low, high

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The attributes and their bins, by case-folded name."""
        return {
            column.name.casefold(): column
            for level, attribute in enumerate(self.attributes)
            for bins in (None, *attribute.bins_by_name.values())
            for column in [Column(level, attribute, bins)]
        }

    @cached_property
    def fingerprint(self) -> str:
        """A digest that is the same for domains with the same cells."""
        cells: list[Any] = [
            (type(a).__name__, a.name, a.values, a.other, a.nullable) for a in self.attributes
        ]
        cells += [
            ("Measure", m.name, m.column, str(m.low), str(m.high), str(m.step), m.nullable)
            for m in self.measures
        ]
        cells += [("Product", *pair) for pair in self.products]
        return hashlib.blake2b(repr(cells).encode(), digest_size=16).hexdigest()

    @property
    def may_drop(self) -> bool:
        """Whether a row can fall outside every cell.

        It cannot if every attribute has an `other` cell, and every measure is nullable.
        """
        return any(attribute.other is None for attribute in self.attributes) or not all(
            measure.nullable for measure in self.measures
        )

    def index(self, name: str) -> int:
        """Return the position of an attribute."""
        try:
            return self.names.index(name)
        except ValueError:
            raise DomainError(
                f"Unknown attribute {name!r}.", hint=f"The attributes are {', '.join(self.names)}."
            ) from None

    def __getitem__(self, name: str) -> Attribute:
        return self.attributes[self.index(name)]

    def require_dense(self) -> None:
        """Raise DomainTooLarge if the domain has more than MAX_CELLS cells."""
        if self.size > MAX_CELLS:
            largest = sorted(self.attributes, key=lambda a: -a.size)
            sizes = ", ".join(f"{a.name} ({a.size:,})" for a in largest if a.size > 1)
            raise DomainTooLarge(
                f"The domain has {format_cells(self.size)}; the limit is {MAX_CELLS:,}. "
                f"It is the product of {sizes}.",
                hint="Use coarser bins for the largest attributes, or remove one.",
            )


def _refuse_duplicates(names: Iterable[str]) -> None:
    known: set[str] = set()
    for name in names:
        if name.casefold() in known:
            raise DomainError(f"Duplicate name {name!r}.", hint="Names are case-insensitive in SQL.")
        known.add(name.casefold())
