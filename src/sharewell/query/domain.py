"""The public domain: the attributes of a table, whose product is the set of cells."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import DomainError, DomainTooLarge
from sharewell.query.attribute import Attribute, Bins, Category, Label

#: The maximum number of cells of a data vector: 1 GiB of counts.
MAX_CELLS = 2**27


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

    >>> from sharewell import Boolean, Domain, Integer
    >>> Domain([Integer("age", 0, 85), Boolean("employed")]).size
    172
    """

    attributes: tuple[Attribute, ...]

    def __init__(self, attributes: Iterable[Attribute]) -> None:
        if not isinstance(attributes, Iterable):
            raise DomainError("A domain requires a list of attributes.", hint="Write Domain([...]).")
        object.__setattr__(self, "attributes", tuple(attributes))
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
        names = [name for a in self.attributes for name in (a.name, *a.bins_by_name)]
        for i, name in enumerate(names):
            if name.casefold() in (other.casefold() for other in names[:i]):
                raise DomainError(f"Duplicate name {name!r}.", hint="Names are case-insensitive in SQL.")

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of cells of each attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    @cached_property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

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
        cells = [(type(a).__name__, a.name, a.values, a.other, a.nullable) for a in self.attributes]
        return hashlib.blake2b(repr(cells).encode(), digest_size=16).hexdigest()

    @property
    def may_drop(self) -> bool:
        """Whether a row can fall outside every cell; false if every attribute has an `other` cell."""
        return any(attribute.other is None for attribute in self.attributes)

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
