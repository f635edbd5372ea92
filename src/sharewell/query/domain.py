"""The public domain: every attribute of a table, and so every cell that a row may fall into."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from sharewell.errors import DomainError, DomainTooLarge
from sharewell.query.attribute import Attribute, Bins, Label

#: The most cells that a data vector may have: 1 GiB of counts.
MAX_CELLS = 2**27


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
            raise DomainError("A domain is made of a list of attributes.", hint="Write Domain([...]).")
        object.__setattr__(self, "attributes", tuple(attributes))
        if not self.attributes:
            raise DomainError("A domain needs at least one attribute.")
        for attribute in self.attributes:
            if not isinstance(attribute, Attribute):
                raise DomainError(
                    f"A domain is made of attributes, and {attribute!r} is not one.",
                    hint="Use Category, Integer, Binned, Boolean or Date.",
                )
            if attribute.size > MAX_CELLS:
                raise DomainTooLarge(
                    f"{attribute.name} alone has {attribute.size:,} cells, and a data vector may have "
                    f"{MAX_CELLS:,}.",
                    hint="Bin it more coarsely.",
                )
        names = [name for a in self.attributes for name in (a.name, *a.bins_by_name)]
        for i, name in enumerate(names):
            if name.casefold() in (other.casefold() for other in names[:i]):
                raise DomainError(
                    f"The name {name!r} is used twice.",
                    hint="SQL does not tell upper from lower case.",
                )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.attributes)

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
        """The attributes' names."""
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def columns(self) -> dict[str, tuple[int, Bins | None]]:
        """What SQL may name, in lower case: an attribute's position, and its bins if those are meant."""
        plain = {a.name.casefold(): (i, None) for i, a in enumerate(self.attributes)}
        binned = {
            bins.name.casefold(): (i, bins)
            for i, a in enumerate(self.attributes)
            for bins in a.bins_by_name.values()
        }
        return {**plain, **binned}

    @cached_property
    def fingerprint(self) -> str:
        """A short text that is the same for domains with the same cells."""
        cells = [(type(a).__name__, a.name, a.values, a.other, a.nullable) for a in self.attributes]
        return hashlib.blake2b(repr(cells).encode(), digest_size=16).hexdigest()

    @property
    def may_drop(self) -> bool:
        """Whether some row could fall outside every cell; not so where every attribute has `other`."""
        return any(attribute.other is None for attribute in self.attributes)

    def index(self, name: str) -> int:
        """The position of the attribute of that name."""
        try:
            return self.names.index(name)
        except ValueError:
            raise DomainError(
                f"There is no attribute {name!r}.", hint=f"There are {', '.join(self.names)}."
            ) from None

    def __getitem__(self, name: str) -> Attribute:
        return self.attributes[self.index(name)]

    def labels(self, cell: int) -> tuple[Label, ...]:
        """The labels of one cell, given by its position in C order."""
        labels: list[Label] = []
        for attribute in reversed(self.attributes):
            cell, position = divmod(cell, attribute.size)
            labels.append(attribute.label(position))
        return tuple(reversed(labels))

    def require_dense(self) -> None:
        """Refuse to be written out cell by cell when there are more than MAX_CELLS."""
        if self.size > MAX_CELLS:
            largest = sorted(self.attributes, key=lambda a: -a.size)
            sizes = ", ".join(f"{a.name} ({a.size:,})" for a in largest if a.size > 1)
            raise DomainTooLarge(
                f"The domain has {self.size:,} cells, more than the {MAX_CELLS:,} that a data vector "
                f"may have; it is the product of {sizes}.",
                hint="Bin the largest attributes more coarsely, or leave one out.",
            )
