"""Attributes: the public description of a column and the cells that partition its values.

An attribute's cells are its declared values in order, then its `other` cell if it has one, then its
NULL cell if it is nullable.
"""

from __future__ import annotations

import datetime as dt
import math
import sys
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sharewell.errors import DomainError

Mask = NDArray[np.bool_]
Label = str | int | bool | None
Number = int | float | Decimal | Fraction
Unit = Literal["day", "week", "month", "quarter", "year"]


@dataclass(frozen=True)
class Bins:
    """A declared coarser grouping of an attribute's cells: `groups[cell]` is an index into `labels`."""

    name: str
    labels: tuple[Label, ...]
    groups: tuple[int, ...]


@dataclass(frozen=True)
class Attribute(ABC):
    """A public column.

    A row with an undeclared value is dropped or, if `other` gives a label, counted in a cell of that
    name. NULL has its own cell if the attribute is `nullable`; otherwise it is an undeclared value.
    """

    name: str
    nullable: bool = field(default=False, kw_only=True)
    other: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise DomainError(
                f"The name of an attribute must be a non-empty string, not {self.name!r}.",
                hint="Use the name of its column.",
            )
        if not isinstance(self.nullable, bool):
            raise DomainError(
                f"`nullable` of {self.name!r} must be True or False, not {self.nullable!r}."
            )
        if self.other is not None and (not isinstance(self.other, str) or not self.other):
            raise DomainError(
                f"`other` of {self.name!r} must be a non-empty label, not {self.other!r}.",
                hint="Omit it to drop undeclared values.",
            )
        if self.other is not None and not isinstance(self.values, range) and self.other in self.values:
            raise DomainError(
                f"{self.other!r} is both a value of {self.name!r} and the label of its `other` cell.",
                hint="Choose another label.",
            )
        _ = self.bins_by_name

    @property
    @abstractmethod
    def values(self) -> Sequence[Label]:
        """The labels of the declared values: every cell except the `other` and NULL cells."""

    @cached_property
    def bins_by_name(self) -> dict[str, Bins]:
        """The declared bins."""
        declared: Mapping[str, Any] = getattr(self, "bins", {})
        return {name: self._bin(name, groups) for name, groups in declared.items()}

    def _bin(self, name: str, groups: Any, /) -> Bins:
        """Group the values; an attribute without an order or labels has no bins."""
        raise DomainError(
            f"Attribute {self.name!r} cannot have the bins {name!r}.", hint=f"Remove {groups!r}."
        )

    @property
    def measures(self) -> tuple[Fraction, ...] | None:
        """The number that each declared value adds to a SUM; None if the attribute is not numeric."""
        return None

    @property
    def special(self) -> tuple[str | None, ...]:
        """The labels of the cells after the declared values: `other`, then None for NULL."""
        other = () if self.other is None else (self.other,)
        return (*other, None) if self.nullable else other

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """The label of every cell, in order; None for the NULL cell."""
        return (*self.values, *self.special)

    def label(self, cell: int) -> Label:
        """Return the label of one cell without listing all labels."""
        known = len(self.values)
        return self.values[cell] if cell < known else self.special[cell - known]

    @cached_property
    def size(self) -> int:
        """The number of cells."""
        return len(self.values) + len(self.special)

    @property
    def other_cell(self) -> int | None:
        """The index of the `other` cell."""
        return None if self.other is None else len(self.values)

    @property
    def null_cell(self) -> int | None:
        """The index of the NULL cell."""
        return self.size - 1 if self.nullable else None

    def mask(self, cells: Iterable[int] | slice) -> Mask:
        """Return a mask over all cells that is true on the given ones."""
        mask = np.zeros(self.size, dtype=bool)
        mask[cells if isinstance(cells, slice) else list(cells)] = True
        return mask

    def _group(self, name: str, labels: Sequence[Label], of_value: Sequence[int]) -> Bins:
        """Bin the declared values; the `other` and NULL cells remain groups of their own."""
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
                f"The categories of {self.name!r} must be a list of strings.",
                hint='Quote numbers as well: ["1", "2", "3"].',
            )
        object.__setattr__(self, "categories", tuple(self.categories))
        if not self.categories:
            raise DomainError(f"{self.name!r} has no categories.", hint="List at least one.")
        if len(set(self.categories)) < len(self.categories):
            duplicate = next(c for c in self.categories if list(self.categories).count(c) > 1)
            raise DomainError(f"Duplicate category {duplicate!r} in {self.name!r}.")
        super().__post_init__()

    @property
    def values(self) -> tuple[str, ...]:
        """The categories, as declared."""
        return tuple(self.categories)

    def _bin(self, name: str, groups: Mapping[str, Sequence[str]], /) -> Bins:
        placed = [member for members in groups.values() for member in members]
        if sorted(placed) != sorted(self.categories):
            raise DomainError(
                f"The bins {name!r} of {self.name!r} must place every category in exactly one group."
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
        """0 for false, 1 for true."""
        return (Fraction(0), Fraction(1))


class BoundInsideCell(Exception):
    """A bound falls inside the cell with this index."""

    def __init__(self, cell: int) -> None:
        super().__init__(cell)
        self.cell = cell


class Ordered(Attribute):
    """An attribute with ordered cells: cell i is [edges[i], edges[i + 1])."""

    #: Whether values between two edges are whole steps (days, integers) or a continuum.
    discrete: bool = True

    @property
    @abstractmethod
    def edges(self) -> Sequence[Number]:
        """The cells' edges, strictly increasing: one more than there are declared values."""

    @abstractmethod
    def edge_text(self, edge: Number) -> str:
        """Format an edge for a condition."""

    def cells_below(self, bound: Number, *, inclusive: bool) -> int:
        """Return how many of the cells have only values < bound, or <= bound if `inclusive`.

        Raises BoundInsideCell if the bound falls inside a cell.
        """
        if self.discrete:
            # On whole steps, x <= b is x < floor(b) + 1, so the end of a period splits no cell.
            bound = math.floor(bound) + 1 if inclusive else math.ceil(bound)
        elif inclusive and self.edges[0] <= bound < self.edges[-1]:
            cell = bisect_left(self.edges, bound)
            raise BoundInsideCell(cell - (self.edges[cell] != bound))
        position = bisect_left(self.edges, bound)
        if 0 < position < len(self.edges) and self.edges[position] != bound:
            raise BoundInsideCell(position - 1)
        return min(position, len(self.values))

    def _bin(self, name: str, starts: Any, /) -> Bins:
        """Make bins from the first value of each group."""
        hint = f"The first group starts at {self.edge_text(self.edges[0])}."
        if list(starts) != sorted(set(starts)) or not starts or starts[0] != self.edges[0]:
            raise DomainError(
                f"The bins {name!r} of {self.name!r} must list increasing first values.",
                hint=hint,
            )
        strays = sorted(set(starts) - set(self.edges[:-1]))
        if strays:
            raise DomainError(
                f"The bins {name!r} of {self.name!r} start a group at {self.edge_text(strays[0])}, "
                "which is not an edge of the attribute.",
                hint=hint,
            )
        ends = (*starts[1:], self.edges[-1])
        labels = [self._range_label(a, b) for a, b in zip(starts, ends, strict=True)]
        of_value = np.searchsorted(
            np.array(starts, dtype=object), np.array(self.edges[:-1], dtype=object), "right"
        )
        return self._group(name, labels, [int(i) - 1 for i in of_value])

    def _range_label(self, start: Number, end: Number) -> str:
        return f"[{self.edge_text(start)}, {self.edge_text(end)})"


@dataclass(frozen=True)
class Integer(Ordered):
    """Integers from `low` to `high`, inclusive: `Integer("age", 0, 85)`.

    `bins` declares coarser groupings by their first values: `bins={"age_group": [0, 18, 65]}`.
    """

    low: int = 0
    high: int = 0
    bins: Mapping[str, Sequence[int]] = field(default_factory=dict, kw_only=True, hash=False)

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            if isinstance(bound, bool) or not isinstance(bound, int) or abs(bound) >= 2**53:
                raise DomainError(
                    f"The bounds of {self.name!r} must be integers below 2**53, not {bound!r}."
                )
        if self.low > self.high:
            raise DomainError(
                f"The lower bound of {self.name!r}, {self.low}, is above its upper bound, {self.high}.",
                hint="Swap the bounds.",
            )
        super().__post_init__()

    @property
    def values(self) -> range:
        """The integers themselves."""
        return range(self.low, self.high + 1)

    @property
    def edges(self) -> Sequence[int]:
        """Every integer, and one past the last."""
        return range(self.low, self.high + 2)

    @property
    def measures(self) -> tuple[Fraction, ...]:
        """The integers themselves."""
        return tuple(map(Fraction, self.values))

    def edge_text(self, edge: Number) -> str:
        """Format an integer."""
        return str(edge)

    def _range_label(self, start: Number, end: Number) -> str:
        return f"{start}" if end == start + 1 else f"{start}-{end - 1}"


@dataclass(frozen=True)
class Binned(Ordered):
    """Numbers known only by their bin: `Binned("income", [0, 10000, 20000])`.

    Every bin includes its lower edge and excludes its upper edge. A SUM counts each row as the
    midpoint of its bin.
    """

    cuts: Sequence[Number] = ()
    bins: Mapping[str, Sequence[Number]] = field(default_factory=dict, kw_only=True, hash=False)

    discrete = False

    def __post_init__(self) -> None:
        cuts = tuple(_exact(self.name, cut) for cut in self.cuts)
        if len(cuts) < 2:
            raise DomainError(f"{self.name!r} needs at least two edges.", hint="One bin has two edges.")
        if any(a >= b for a, b in pairwise(cuts)):
            raise DomainError(f"The edges of {self.name!r} must increase.")
        object.__setattr__(self, "cuts", cuts)
        super().__post_init__()

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The bins as text: `[0, 10000)`."""
        return tuple(self._range_label(a, b) for a, b in pairwise(self.edges))

    @property
    def edges(self) -> tuple[Fraction, ...]:
        """The edges, exactly as written: 0.1 is one tenth, not the nearest double."""
        return self.cuts  # type: ignore[return-value]

    @property
    def measures(self) -> tuple[Fraction, ...]:
        """The midpoint of each bin."""
        return tuple((a + b) / 2 for a, b in pairwise(self.edges))

    def _bin(self, name: str, starts: Sequence[Number], /) -> Bins:
        return super()._bin(name, [_exact(self.name, start) for start in starts])

    def edge_text(self, edge: Number) -> str:
        """Format an edge as a plain decimal."""
        return decimal_text(Fraction(edge))


@dataclass(frozen=True)
class Date(Ordered):
    """Days from `start` to `end`, inclusive, by day, ISO week, month, quarter or year.

    `Date("admitted", "2020-01-01", "2024-12-31", by="month")`. The first and last period may be cut
    short by `start` and `end`. `bins` names coarser units: `bins={"admitted_year": "year"}`.
    """

    start: dt.date | str = dt.date.min
    end: dt.date | str = dt.date.min
    by: Unit = field(default="day", kw_only=True)
    bins: Mapping[str, Unit] = field(default_factory=dict, kw_only=True, hash=False)

    def __post_init__(self) -> None:
        for key in ("start", "end"):
            object.__setattr__(self, key, _as_date(self.name, getattr(self, key)))
        for unit in (self.by, *self.bins.values()):
            if unit not in get_args(Unit):
                raise DomainError(
                    f"Unknown unit of time {unit!r} for {self.name!r}.",
                    hint=f"Use one of {', '.join(get_args(Unit))}.",
                )
        if self.start > self.end:  # type: ignore[operator]
            raise DomainError(
                f"The start of {self.name!r}, {self.start}, is after its end, {self.end}.",
                hint="Swap the dates.",
            )
        super().__post_init__()

    @cached_property
    def edges(self) -> tuple[int, ...]:
        """The first day of each period as a proleptic ordinal, and one past the last day."""
        first, last = self.start.toordinal(), self.end.toordinal()  # type: ignore[union-attr]
        if self.by == "day":
            return tuple(range(first, last + 2))
        periods = [period(dt.date.fromordinal(day), self.by) for day in range(first, last + 1)]
        changes = [first + i for i, (a, b) in enumerate(pairwise(periods), start=1) if a != b]
        return (first, *changes, last + 1)

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The periods: 2020-01-31, 2020-W05, 2020-01, 2020-Q1 or 2020."""
        return tuple(period(dt.date.fromordinal(day), self.by) for day in self.edges[:-1])

    def _bin(self, name: str, unit: Unit, /) -> Bins:
        firsts = [period(dt.date.fromordinal(day), unit) for day in self.edges[:-1]]
        lasts = [period(dt.date.fromordinal(day - 1), unit) for day in self.edges[1:]]
        if firsts != lasts:
            raise DomainError(
                f"The bins {name!r} of {self.name!r} are by {unit}, but a {self.by} can overlap two."
            )
        labels = tuple(dict.fromkeys(firsts))
        position = {label: i for i, label in enumerate(labels)}
        return self._group(name, labels, [position[label] for label in firsts])

    def edge_text(self, edge: Number) -> str:
        """Format a day in ISO form."""
        return dt.date.fromordinal(int(edge)).isoformat()


def period(day: dt.date, unit: Unit) -> str:
    """Return the name of the period that a day falls in: `2020-W05`, `2020-Q1`.

    >>> period(dt.date(2021, 1, 3), "week"), period(dt.date(2021, 1, 3), "quarter")
    ('2020-W53', '2021-Q1')
    """
    match unit:
        case "day":
            return day.isoformat()
        case "week":
            year, week, _ = day.isocalendar()
            return f"{year}-W{week:02}"
        case "month":
            return f"{day.year:04}-{day.month:02}"
        case "quarter":
            return f"{day.year:04}-Q{(day.month + 2) // 3}"
        case "year":
            return f"{day.year:04}"


def decimal_text(number: Fraction) -> str:
    """Format a number as a plain decimal without an exponent.

    >>> decimal_text(Fraction(25, 2)), decimal_text(Fraction(10000))
    ('12.5', '10000')
    """
    if number.denominator == 1:
        return str(number.numerator)
    return f"{Decimal(number.numerator) / Decimal(number.denominator):f}"


def _exact(name: str, number: Any) -> Fraction:
    """Convert a declared number to the rational named by its shortest decimal text."""
    finite = not isinstance(number, float | Decimal) or math.isfinite(number)
    if isinstance(number, bool) or not isinstance(number, Number) or not finite:
        raise DomainError(f"The edges of {name!r} must be finite numbers, not {number!r}.")
    exact = number if isinstance(number, Fraction) else Fraction(str(number))
    if abs(exact) > Fraction(sys.float_info.max):
        raise DomainError(f"An edge of {name!r} exceeds the range of a double.")
    return exact


def _as_date(name: str, day: Any) -> dt.date:
    if isinstance(day, dt.date) and not isinstance(day, dt.datetime):
        return day
    try:
        return dt.date.fromisoformat(day)
    except (TypeError, ValueError):
        raise DomainError(
            f"The bounds of {name!r} must be dates, not {day!r}.", hint="Write them as 2024-12-31."
        ) from None
