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
from sharewell.query.measure import Measure

#: The maximum number of cells of a data vector: 1 GiB of counts.
MAX_CELLS = 2**27
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

    @property
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

    >>> from sharewell import Boolean, Domain, Integer
    >>> Domain([Integer("age", 0, 85), Boolean("employed")]).size
    172
    """

    attributes: tuple[Attribute, ...]
    measures: tuple[Measure, ...] = ()

    def __init__(self, attributes: Iterable[Attribute], measures: Iterable[Measure] = ()) -> None:
        if not isinstance(attributes, Iterable):
            raise DomainError("A domain requires a list of attributes.", hint="Write Domain([...]).")
        object.__setattr__(self, "attributes", tuple(attributes))
        object.__setattr__(self, "measures", tuple(measures))
        if not self.attributes:
            raise DomainError("A domain requires at least one attribute.")
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
        # A measure may have the name of an attribute: sums mean the measure, conditions the attribute.
        bins = [name for a in self.attributes for name in a.bins_by_name]
        for each in (names, [*bins, *(measure.name for measure in self.measures)]):
            folded = [name.casefold() for name in each]
            for i, name in enumerate(each):
                if folded[i] in folded[:i]:
                    raise DomainError(
                        f"Duplicate name {name!r}.", hint="Names are case-insensitive in SQL."
                    )

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of cells of each attribute; with measures, then the number of vectors."""
        sizes = tuple(attribute.size for attribute in self.attributes)
        return (*sizes, self.vectors) if self.measures else sizes

    @cached_property
    def size(self) -> int:
        """The number of cells, times the number of vectors."""
        return math.prod(self.shape)

    @cached_property
    def vectors(self) -> int:
        """The number of vectors: the counts, and one or two for each measure."""
        return 1 + sum(1 + measure.nullable for measure in self.measures)

    def vectors_of(self, name: str) -> tuple[int, int]:
        """Return the vectors of a measure: the number of its values, and their centred sum."""
        at = 1
        for measure in self.measures:
            if measure.name.casefold() == name.casefold():
                return (at, at + 1) if measure.nullable else (0, at)
            at += 1 + measure.nullable
        raise DomainError(
            f"Unknown measure {name!r}.",
            hint=f"The measures are {', '.join(measure.name for measure in self.measures) or 'none'}.",
        )

    def row_extremes(self, used: Collection[int]) -> list[list[int]]:
        """Return the most that a row can add to the vectors: every row is between these.

        Only the measures with a vector in `used` are varied; the others add 0.
        """
        rows, at = [[1]], 1
        for measure in self.measures:
            end = at + 1 + measure.nullable
            varied = any(at <= vector < end for vector in used)
            rows = [
                [*row, *added]
                for row in rows
                for added in (measure.extremes if varied else [(0,) * (end - at)])
            ]
            if len(rows) > MAX_EXTREMES:
                raise QueryTooComplex("The query combines too many measures.", hint="Split it.")
            at = end
        return rows

    def row_range(self, weights: Sequence[int]) -> tuple[int, int]:
        """Return the least and the most that a row adds to a sum with these weights on the vectors."""
        low = high = int(weights[0])
        at = 1
        for measure in self.measures:
            end = at + 1 + measure.nullable
            own = [int(weight) for weight in weights[at:end]]
            sums = [sum(map(operator.mul, own, added)) for added in measure.extremes]
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
                f"The domain has {self.size:,} cells; the limit is {MAX_CELLS:,}. It is the product of "
                f"{sizes}.",
                hint="Use coarser bins for the largest attributes, or remove one.",
            )
