"""Attributes whose values follow each other on a line: whole numbers, binned numbers, dates."""

from __future__ import annotations

import datetime as dt
import math
import sys
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np

from sharewell.errors import DomainError
from sharewell.query.attribute import Attribute, Bins, Mask

Number = int | float | Decimal | Fraction
Unit = Literal["day", "week", "month", "quarter", "year"]


class CutsCell(Exception):
    """A comparison falls inside a cell; `lower` and `upper` are its edges, as one would write them."""

    def __init__(self, lower: str, upper: str) -> None:
        super().__init__(f"inside the cell from {lower} to {upper}")
        self.lower = lower
        self.upper = upper


class Ordered(Attribute):
    """An attribute whose cells follow each other on a line: cell i is [edges[i], edges[i + 1])."""

    #: Whether the values between two edges are whole steps (days, integers) or a continuum.
    discrete: bool = True

    @property
    @abstractmethod
    def edges(self) -> Sequence[Number]:
        """One more edge than there are declared values, strictly increasing."""

    @abstractmethod
    def edge_text(self, edge: Number) -> str:
        """An edge as one would write it in a condition."""

    def below(self, bound: Number, *, inclusive: bool) -> Mask:
        """The declared cells whose values are all < bound (or <= bound).

        Raises CutsCell where the bound falls inside a cell.
        """
        if self.discrete:
            # On whole steps, x <= b is x < floor(b) + 1, so that the end of a period is no cut.
            bound = math.floor(bound) + 1 if inclusive else math.ceil(bound)
        elif inclusive and self.edges[0] <= bound < self.edges[-1]:
            cell = bisect_left(self.edges, bound)
            cell -= self.edges[cell] != bound
            raise self._cut(cell)
        position = bisect_left(self.edges, bound)
        if 0 < position < len(self.edges) and self.edges[position] != bound:
            raise self._cut(position - 1)
        return self.mask(slice(0, min(position, len(self.values))))

    def _cut(self, cell: int) -> CutsCell:
        return CutsCell(self.edge_text(self.edges[cell]), self.edge_text(self.edges[cell + 1]))

    def _bin_by_starts(self, name: str, starts: Sequence[Number]) -> Bins:
        """Bins given by the first value of each group."""
        hint = f"The first group starts at {self.edge_text(self.edges[0])}."
        if list(starts) != sorted(set(starts)) or not starts or starts[0] != self.edges[0]:
            raise DomainError(
                f"The bins {name!r} of {self.name} must give the first value of each group, increasing.",
                hint=hint,
            )
        strays = sorted(set(starts) - set(self.edges[:-1]))
        if strays:
            raise DomainError(
                f"The bins {name!r} of {self.name} start a group at {self.edge_text(strays[0])}, "
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
    """Whole numbers from `low` to `high`, both included: `Integer("age", 0, 85)`.

    `bins` declares coarser groupings by their first values: `bins={"age_group": [0, 18, 65]}`.
    """

    low: int = 0
    high: int = 0
    bins: Mapping[str, Sequence[int]] = field(default_factory=dict, kw_only=True, hash=False)

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            if isinstance(bound, bool) or not isinstance(bound, int) or abs(bound) >= 2**53:
                raise DomainError(
                    f"The bounds of {self.name} must be whole numbers below 2**53, not {bound!r}."
                )
        if self.low > self.high:
            raise DomainError(
                f"{self.name} starts at {self.low} and ends before it, at {self.high}.",
                hint="Write the smaller bound first.",
            )
        super().__post_init__()
        _ = self.bins_by_name

    @property
    def values(self) -> range:
        """The whole numbers themselves."""
        return range(self.low, self.high + 1)

    @property
    def edges(self) -> Sequence[int]:
        """Every number, and one past the last."""
        return range(self.low, self.high + 2)

    @property
    def measures(self) -> tuple[Fraction, ...]:
        """The numbers themselves."""
        return tuple(map(Fraction, self.values))

    @cached_property
    def bins_by_name(self) -> dict[str, Bins]:
        """The coarser groupings, labelled by first and last number."""
        return {name: self._bin_by_starts(name, starts) for name, starts in self.bins.items()}

    def edge_text(self, edge: Number) -> str:
        """The number."""
        return str(edge)

    def _range_label(self, start: Number, end: Number) -> str:
        return f"{start}" if end == start + 1 else f"{start}-{end - 1}"


@dataclass(frozen=True)
class Binned(Ordered):
    """Numbers of any kind, known only by their bin: `Binned("income", [0, 10000, 20000])`.

    A bin holds its lower edge and not its upper one, the last bin too. In a SUM every row counts as
    the middle of its bin.
    """

    cuts: Sequence[Number] = ()
    bins: Mapping[str, Sequence[Number]] = field(default_factory=dict, kw_only=True, hash=False)

    discrete = False

    def __post_init__(self) -> None:
        cuts = tuple(_exact(self.name, cut) for cut in self.cuts)
        if len(cuts) < 2:
            raise DomainError(f"{self.name} needs at least two edges.", hint="One bin has two edges.")
        if any(a >= b for a, b in pairwise(cuts)):
            raise DomainError(f"The edges of {self.name} must increase.")
        object.__setattr__(self, "cuts", cuts)
        super().__post_init__()
        _ = self.bins_by_name

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The bins as text, `[0, 10000)`."""
        return tuple(self._range_label(a, b) for a, b in pairwise(self.edges))

    @property
    def edges(self) -> tuple[Fraction, ...]:
        """The edges, exactly as written: 0.1 is a tenth, not the nearest double."""
        return self.cuts  # type: ignore[return-value]

    @property
    def measures(self) -> tuple[Fraction, ...]:
        """The middle of each bin."""
        return tuple((a + b) / 2 for a, b in pairwise(self.edges))

    @cached_property
    def bins_by_name(self) -> dict[str, Bins]:
        """The coarser groupings, by the lower edge of each group."""
        return {
            name: self._bin_by_starts(name, [_exact(self.name, s) for s in starts])
            for name, starts in self.bins.items()
        }

    def edge_text(self, edge: Number) -> str:
        """The edge as a plain decimal number."""
        return decimal_text(Fraction(edge))


@dataclass(frozen=True)
class Date(Ordered):
    """Days from `start` to `end`, both included, by day, ISO week, month, quarter or year.

    `Date("admitted", "2020-01-01", "2024-12-31", by="month")`. The first and the last period may be
    cut short by `start` and `end`. `bins` names coarser units: `bins={"admitted_year": "year"}`.
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
                    f"{self.name} is counted by {unit!r}, which is no unit of time here.",
                    hint=f"Use one of {', '.join(get_args(Unit))}.",
                )
        if self.start > self.end:  # type: ignore[operator]
            raise DomainError(f"{self.name} ends before it starts.", hint="Write the earlier day first.")
        super().__post_init__()
        _ = self.bins_by_name

    @cached_property
    def edges(self) -> tuple[int, ...]:
        """The first day of each period, as a proleptic ordinal, and one past the last day."""
        first, last = self.start.toordinal(), self.end.toordinal()  # type: ignore[union-attr]
        if self.by == "day":
            return tuple(range(first, last + 2))
        starts = [first]
        for day in range(first + 1, last + 1):
            if period(dt.date.fromordinal(day), self.by) != period(
                dt.date.fromordinal(day - 1), self.by
            ):
                starts.append(day)
        return (*starts, last + 1)

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The periods: 2020-01-31, 2020-W05, 2020-01, 2020-Q1 or 2020."""
        return tuple(period(dt.date.fromordinal(day), self.by) for day in self.edges[:-1])

    @cached_property
    def bins_by_name(self) -> dict[str, Bins]:
        """The coarser units; a period that two of them share is refused."""
        return {name: self._bin(name, unit) for name, unit in self.bins.items()}

    def _bin(self, name: str, unit: Unit) -> Bins:
        firsts = [period(dt.date.fromordinal(day), unit) for day in self.edges[:-1]]
        lasts = [period(dt.date.fromordinal(day - 1), unit) for day in self.edges[1:]]
        if firsts != lasts:
            raise DomainError(
                f"The bins {name!r} of {self.name} are by {unit}, and a {self.by} can fall into two."
            )
        labels = tuple(dict.fromkeys(firsts))
        position = {label: i for i, label in enumerate(labels)}
        return self._group(name, labels, [position[label] for label in firsts])

    def edge_text(self, edge: Number) -> str:
        """The day, as an SQL literal's text."""
        return dt.date.fromordinal(int(edge)).isoformat()


def period(day: dt.date, unit: Unit) -> str:
    """The name of the period that a day falls into: `2020-W05`, `2020-Q1`.

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
    """A number as plain decimal text, without an exponent.

    >>> decimal_text(Fraction(25, 2)), decimal_text(Fraction(10000))
    ('12.5', '10000')
    """
    if number.denominator == 1:
        return str(number.numerator)
    return f"{Decimal(number.numerator) / Decimal(number.denominator):f}"


def _exact(name: str, number: Any) -> Fraction:
    """A declared number as the rational that its shortest decimal text names."""
    finite = not isinstance(number, float | Decimal) or math.isfinite(number)
    if isinstance(number, bool) or not isinstance(number, Number) or not finite:
        raise DomainError(f"The edges of {name} must be finite numbers, not {number!r}.")
    exact = number if isinstance(number, Fraction) else Fraction(str(number))
    if abs(exact) > Fraction(sys.float_info.max):
        raise DomainError(f"An edge of {name} is larger than any number in a column can be.")
    return exact


def _as_date(name: str, day: Any) -> dt.date:
    if isinstance(day, dt.date) and not isinstance(day, dt.datetime):
        return day
    try:
        return dt.date.fromisoformat(day)
    except (TypeError, ValueError):
        raise DomainError(
            f"The bounds of {name} must be days, not {day!r}.", hint="Write them as 2024-12-31."
        ) from None
