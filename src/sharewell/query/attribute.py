"""Attributes: what is public about one column, and the cells that it divides its values into.

An attribute's cells are its declared values in order, then its `other` cell where it has one, then
its NULL cell where it is nullable. Nothing here ever sees a row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import DomainError

Mask = NDArray[np.bool_]
Label = str | int | bool | None


@dataclass(frozen=True)
class Bins:
    """A declared coarser grouping of an attribute's cells: `groups[cell]` is a position in `labels`."""

    name: str
    labels: tuple[Label, ...]
    groups: tuple[int, ...]


@dataclass(frozen=True)
class Attribute(ABC):
    """One public column.

    A row whose value is not among the declared ones is dropped or, where `other` gives a label, goes
    to a cell of that name. NULL has a cell of its own where the attribute is `nullable`; where it is
    not, a NULL is one more value outside the declared ones. Which rows these were is never shown.
    """

    name: str
    nullable: bool = field(default=False, kw_only=True)
    other: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise DomainError(
                f"An attribute's name must be a non-empty string, not {self.name!r}.",
                hint="Name it after its column.",
            )
        if not isinstance(self.nullable, bool):
            raise DomainError(f"`nullable` of {self.name} must be True or False, not {self.nullable!r}.")
        if self.other is not None and (not isinstance(self.other, str) or not self.other):
            raise DomainError(
                f"`other` of {self.name} must be a label such as 'other', not {self.other!r}.",
                hint="Leave it out to drop the values outside the declared ones.",
            )
        if self.other is not None and not isinstance(self.values, range) and self.other in self.values:
            raise DomainError(
                f"{self.name} has {self.other!r} both as a value and as the label of its `other` cell.",
                hint="Choose another label.",
            )

    @property
    @abstractmethod
    def values(self) -> Sequence[Label]:
        """The labels of the declared values: every cell but the `other` and NULL cells."""

    @property
    def bins_by_name(self) -> dict[str, Bins]:
        """The coarser groupings that were declared for this attribute."""
        return {}

    @property
    def measures(self) -> tuple[Fraction, ...] | None:
        """What each declared value adds to a SUM, or None where a sum makes no sense."""
        return None

    @property
    def special(self) -> tuple[str | None, ...]:
        """The labels of the cells after the declared values: `other`, then NULL as None."""
        other = () if self.other is None else (self.other,)
        return (*other, None) if self.nullable else other

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """The public label of every cell, in order; the NULL cell's is None."""
        return (*self.values, *self.special)

    def label(self, cell: int) -> Label:
        """The label of one cell, without listing them all."""
        known = len(self.values)
        return self.values[cell] if cell < known else self.special[cell - known]

    @cached_property
    def size(self) -> int:
        """The number of cells."""
        return len(self.values) + len(self.special)

    @property
    def other_cell(self) -> int | None:
        """The position of the `other` cell."""
        return None if self.other is None else len(self.values)

    @property
    def null_cell(self) -> int | None:
        """The position of the NULL cell."""
        return self.size - 1 if self.nullable else None

    def mask(self, cells: Iterable[int] | slice) -> Mask:
        """A 0/1 vector over the cells that is 1 on those named."""
        mask = np.zeros(self.size, dtype=bool)
        mask[cells if isinstance(cells, slice) else list(cells)] = True
        return mask

    def _group(self, name: str, labels: Sequence[Label], of_value: Sequence[int]) -> Bins:
        """Bins over the declared values; the `other` and NULL cells stay groups of their own."""
        groups = (*of_value, *range(len(labels), len(labels) + len(self.special)))
        return Bins(name, (*labels, *self.special), groups)


@dataclass(frozen=True)
class Category(Attribute):
    """A column of names: `Category("sex", ["F", "M"])`.

    `bins` declares coarser groupings: `bins={"coast": {"east": ["MA", "NY"], "west": ["CA"]}}`.
    """

    categories: Sequence[str] = ()
    bins: Mapping[str, Mapping[str, Sequence[str]]] = field(
        default_factory=dict, kw_only=True, hash=False
    )

    def __post_init__(self) -> None:
        if isinstance(self.categories, str) or not all(isinstance(c, str) for c in self.categories):
            raise DomainError(
                f"The categories of {self.name} must be a list of strings.",
                hint='Write them as they stand in the column, numbers too: ["1", "2", "3"].',
            )
        object.__setattr__(self, "categories", tuple(self.categories))
        if not self.categories:
            raise DomainError(f"{self.name} has no categories.", hint="List at least one.")
        if len(set(self.categories)) < len(self.categories):
            twice = next(c for c in self.categories if list(self.categories).count(c) > 1)
            raise DomainError(f"{self.name} lists the category {twice!r} twice.")
        super().__post_init__()
        _ = self.bins_by_name

    @property
    def values(self) -> tuple[str, ...]:
        """The categories, as declared."""
        return tuple(self.categories)

    @cached_property
    def bins_by_name(self) -> dict[str, Bins]:
        """The coarser groupings; each must place every category exactly once."""
        return {name: self._bin(name, groups) for name, groups in self.bins.items()}

    def _bin(self, name: str, groups: Mapping[str, Sequence[str]]) -> Bins:
        placed = [member for members in groups.values() for member in members]
        if sorted(placed) != sorted(self.categories):
            raise DomainError(
                f"The bins {name!r} of {self.name} must place every category in exactly one group."
            )
        position = {m: i for i, members in enumerate(groups.values()) for m in members}
        return self._group(name, tuple(groups), [position[c] for c in self.categories])


@dataclass(frozen=True)
class Boolean(Attribute):
    """A column of true and false; false is the first cell."""

    @property
    def values(self) -> tuple[bool, ...]:
        """False, then True."""
        return (False, True)

    @property
    def measures(self) -> tuple[Fraction, ...]:
        """True adds 1 to a sum."""
        return (Fraction(0), Fraction(1))
