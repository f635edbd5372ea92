"""Proposals: how `sharewell init` describes the columns of a file as attributes.

Bounds are rounded outwards, so that a proposal repeats no row's value; the curator reviews them.
"""

from __future__ import annotations

import calendar
import datetime as dt
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, get_args

from sharewell.config.profile import MAX_CATEGORIES, ColumnProfile, Holds, TableProfile, profile_file
from sharewell.config.section import MAX_NAME, validate_table
from sharewell.engine.cells import Kind
from sharewell.errors import ConfigError, SourceError
from sharewell.query.attribute import Date, Unit
from sharewell.wire.text import pluralize

#: The maximum number of cells of a proposed domain, of an integer column and of a date column.
MAX_CELLS = 1_000_000
MAX_INTEGERS, MAX_PERIODS = 120, 100
#: A longer text is taken for free text.
MAX_LABEL = 60
#: Fewer rows than this may all differ by chance.
FEW_ROWS = 10
#: How many bins numbers get, and how many where that is too many.
BINS, FEW_BINS = 10, 5
#: The population of a file without rows.
DEFAULT_POPULATION = 1_000

IDENTIFIER = re.compile(r"(^|[_\W])(id|uuid|guid|ssn|key|email|phone)$|[a-z]I[dD]$")
#: The attribute type of what a column holds; everything else becomes a category.
TYPES: dict[Holds, str] = {
    "booleans": "boolean",
    "whole numbers": "integer",
    "numbers": "binned",
    "dates": "date",
}
#: The fewest days of a period.
DAYS = {"day": 1, "month": 28, "quarter": 90, "year": 365}
TWINS = "some categories differ only in case or white space; clean them, or join them by bins"
#: Begins the comment of a line that contains something from the rows.
MARK = "REVIEW:"


class Line(NamedTuple):
    """A key, its value as TOML, and a comment."""

    key: str
    value: str
    comment: str = ""


@dataclass(frozen=True)
class ProposedAttribute:
    """One way to describe a column."""

    type: str
    cells: int
    lines: tuple[Line, ...] = ()
    #: A comment on the column as a whole.
    comment: str = ""


@dataclass(frozen=True)
class ProposedColumn:
    """A column with the ways to describe it, finest first, or the reason to leave it out."""

    name: str
    choices: tuple[ProposedAttribute, ...]
    reason: str = ""
    #: The type to suggest where it is left out.
    type: str = "category"
    #: Whether several rows have the same value.
    repeats: bool = False
    #: The cells of the finest way, where that was too many.
    too_many: int = 0

    def leave_out(self, reason: str) -> ProposedColumn:
        """The same column, left out."""
        return replace(self, choices=(), reason=reason)

    def coarsen(self) -> ProposedColumn:
        """The same column, without its finest way."""
        finest, *choices = self.choices
        return replace(self, choices=tuple(choices), too_many=self.too_many or finest.cells)


@dataclass(frozen=True)
class Proposal:
    """The proposed configuration of one source."""

    name: str
    source: str
    table: str | None
    #: The rounded number of rows.
    population: int
    columns: tuple[ProposedColumn, ...]

    @property
    def described(self) -> tuple[ProposedColumn, ...]:
        """The columns that become attributes."""
        return tuple(column for column in self.columns if column.choices)

    @property
    def cells(self) -> int:
        """The size of the domain."""
        return _count_cells(self.columns, 0)

    @property
    def coarsened(self) -> tuple[ProposedColumn, ...]:
        """The columns that were made coarser to keep the domain small."""
        return tuple(column for column in self.described if column.too_many)


def propose(source: Path, target: Path, table: str | None = None) -> Proposal:
    """Propose a configuration for a file; `target` is where it will be written.

    Privacy: reads the rows, for the curator alone.
    """
    profile = profile_file(source, table)
    columns = propose_columns(profile)
    if not any(column.choices for column in columns):
        raise SourceError(
            f"No column of {source.name!r} can be an attribute.",
            hint="Attributes are numbers, text, booleans, dates or times.",
        )
    population = round_count(profile.rows) if profile.rows else DEFAULT_POPULATION
    return Proposal(_table_name(source.stem), _relative_path(source, target), table, population, columns)


def _table_name(stem: str) -> str:
    """A name for the table, from that of the file."""
    plain = re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_").lower()[:MAX_NAME]
    try:
        return validate_table(plain, "dataset.name")
    except ConfigError:
        return "people"


def _relative_path(source: Path, target: Path) -> str:
    """The source's path from the target's folder; an absolute path elsewhere stays absolute."""
    folder = target.absolute().parent
    if source.is_absolute() and not source.is_relative_to(folder):
        return str(source)
    return Path(os.path.relpath(source.absolute(), folder)).as_posix()


def quoted(text: str) -> str:
    r"""A TOML string.

    >>> print(quoted('say "hi"'))
    "say \"hi\""
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def looks_like_identifier(name: str) -> bool:
    """Whether a column's name suggests that it identifies a person."""
    return IDENTIFIER.search(name) is not None


def propose_columns(table: TableProfile) -> tuple[ProposedColumn, ...]:
    """Propose every column, within MAX_CELLS; at least one is described if that is possible."""
    found = [_propose(column, empty=not table.rows) for column in table.columns]
    found = _fit(_drop_ambiguous_names(found))
    if not any(column.choices for column in found):
        found = _with_placeholder(found, table.columns)
    repeated = [
        ProposedColumn(name, (), "more than one column has this name") for name in table.repeated
    ]
    return (*found, *repeated)


def _propose(column: ColumnProfile, *, empty: bool) -> ProposedColumn:
    if empty and column.kind is not None:
        placeholder = _placeholder(column)
        return ProposedColumn(column.name, (placeholder,) if placeholder else ())
    choices = tuple(_with_other_cells(column, choice) for choice in _choices(column))
    kind, repeats = TYPES.get(column.holds, "category"), bool(column.filled) and not column.all_differ
    proposed = ProposedColumn(column.name, choices, type=kind, repeats=repeats)
    reason = _reason(column, choices)
    return proposed.leave_out(reason) if reason else proposed


def _reason(column: ColumnProfile, choices: Sequence[ProposedAttribute]) -> str:
    """Why a column should not be an attribute; empty where it may be one."""
    texts, integers = column.holds == "texts", column.holds == "whole numbers"
    identifier = integers and choices[0].type != "integer" and looks_like_identifier(column.name)
    reasons = {
        f"its type {column.type} cannot be counted": column.holds == "other things",
        "no row has a value that can be counted": column.holds == "nothing",
        f"it has texts of more than {MAX_LABEL} characters, so it looks like free text": texts
        and column.longest > MAX_LABEL,
        "all values differ, so it looks like an identifier": (texts or integers)
        and column.all_differ
        and column.filled > FEW_ROWS,
        "its name looks like that of an identifier": identifier,
        "its values look like dates, which must be written as 2024-12-31": column.other_dates,
        f"it has more than {MAX_CATEGORIES} distinct values": texts and not column.values,
        "its values reach too far; give it sensible bounds": not choices,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


def _choices(column: ColumnProfile) -> Iterator[ProposedAttribute]:
    match column.holds:
        case "booleans":
            yield ProposedAttribute("boolean", 2)
        case "whole numbers":
            low, high = round_bounds(int(column.low), int(column.high))
            if high - low < MAX_INTEGERS:
                yield _integer(low, high, f"{MARK} rounded from the rows; write public bounds")
            yield from _binned(column)
        case "numbers":
            yield from _binned(column)
        case "dates":
            yield from _dates(column.low, column.high)
        case "texts" if column.values:
            yield _category(column.values, f"{MARK} found in the rows; list public values", column.rare)


def _integer(low: int, high: int, comment: str) -> ProposedAttribute:
    lines = (Line("low", str(low), comment), Line("high", str(high), comment))
    return ProposedAttribute("integer", high - low + 1, lines)


def _binned(column: ColumnProfile) -> Iterator[ProposedAttribute]:
    if max(-column.low, column.high) > 1e300:
        return
    for bins in (BINS, FEW_BINS):
        cuts = round_cuts(column.low, column.high, bins)
        yield _cut(cuts, f"{MARK} rounded from the rows; write public cuts")


def _cut(cuts: Sequence[str], comment: str) -> ProposedAttribute:
    line = Line("cuts", f"[{', '.join(cuts)}]", comment)
    return ProposedAttribute("binned", len(cuts) - 1, (line,))


def _dates(low: dt.date, high: dt.date) -> Iterator[ProposedAttribute]:
    for unit in get_args(Unit):
        start, end = whole_periods(low, high, unit)
        # Weeks cut through months and years.
        if unit != "week" and (end - start).days <= MAX_PERIODS * DAYS[unit]:
            yield _date(start, end, unit, f"{MARK} whole periods around the rows; write public days")


def _date(start: dt.date, end: dt.date, unit: Unit, comment: str) -> ProposedAttribute:
    lines = (
        Line("start", start.isoformat(), comment),
        Line("end", end.isoformat(), comment),
        Line("by", quoted(unit), "day, week, month, quarter or year"),
    )
    return ProposedAttribute("date", Date("day", start, end, by=unit).size, lines)


def _category(values: Sequence[str], comment: str, rare: int = 0) -> ProposedAttribute:
    labels = ("other", "elsewhere", *(f"other {at}" for at in range(len(values))))
    other = next(label for label in labels if label not in values)
    counted = "counts all other values; without it they are dropped"
    if rare:
        which = pluralize(rare, "rare or misspelt value")
        counted = f"{MARK} also counts {which} of the rows; list those that are public"
    lines = (
        Line("categories", f"[{', '.join(map(quoted, values))}]", comment),
        Line("other", quoted(other), counted),
    )
    twins = len({value.strip().casefold() for value in values}) < len(values)
    return ProposedAttribute("category", len(values) + 1, lines, f"{MARK} {TWINS}" if twins else "")


def _with_other_cells(column: ColumnProfile, attribute: ProposedAttribute) -> ProposedAttribute:
    """The same attribute, with a cell for codes and values of another kind, and one for NULL."""
    lines = attribute.lines
    counted = []
    if column.codes:
        codes = " and ".join(
            str(code) if isinstance(code, dt.date) else f"{code:.0f}" for code in column.codes
        )
        look = "looks like a code" if len(column.codes) == 1 else "look like codes"
        counted.append(f"{codes} {look} for a missing value")
    if column.odd:
        be = "is" if column.odd == 1 else "are"
        counted.append(f"{pluralize(column.odd, 'value')} {be} of another kind")
    if counted:
        comment = f"{MARK} {' and '.join(counted)}; counted here, dropped without this line"
        lines += (Line("other", quoted("other"), comment),)
    if column.missing:
        lines += (Line("nullable", "true", f"{MARK} some rows have no value; NULL gets its own cell"),)
    return replace(attribute, lines=lines, cells=attribute.cells + len(lines) - len(attribute.lines))


def _placeholder(column: ColumnProfile) -> ProposedAttribute | None:
    """An attribute for a column without values, to be completed."""
    review = f"{MARK} no row shows what belongs here"
    match column.kind:
        case None:
            return None
        case Kind.BOOLEAN:
            return ProposedAttribute("boolean", 2)
        case Kind.DATE | Kind.TIMESTAMP:
            return _date(dt.date(2000, 1, 1), dt.date(2029, 12, 31), "year", review)
        case Kind.INTEGER:
            return _integer(0, 99, review)
        case Kind.NUMBER:
            return _cut(round_cuts(0, 99, BINS), review)
        case Kind.TEXT:
            return _category(("replace me",), review)


def _drop_ambiguous_names(found: Sequence[ProposedColumn]) -> list[ProposedColumn]:
    """Leave out columns without a name, or with one that SQL cannot tell from another."""
    taken: set[str] = set()
    kept = []
    for column in found:
        folded = column.name.casefold()
        if not column.name.strip():
            kept.append(column.leave_out("it has no name"))
        elif folded in taken:
            kept.append(column.leave_out("SQL ignores the case of names"))
        else:
            kept.append(column)
            taken.update([folded] if column.choices else [])
    return kept


def _fit(found: Sequence[ProposedColumn]) -> list[ProposedColumn]:
    """Choose one description for each column, so that the domain has at most MAX_CELLS cells.

    As long as the coarsest descriptions do not fit, the column with the most cells is left out. Then the
    column with the most cells is made coarser until all fit.
    """
    kept = list(found)

    def largest(choice: int, fewest: int) -> int:
        """The last of the columns with the most cells, among those with some choices."""
        some = (at for at, column in enumerate(kept) if len(column.choices) >= fewest)
        return max(some, key=lambda at: (kept[at].choices[choice].cells, at))

    while _count_cells(kept, -1) > MAX_CELLS:
        at = largest(-1, 1)
        kept[at] = kept[at].leave_out(f"with it there would be more than {MAX_CELLS:,} cells")
    while _count_cells(kept, 0) > MAX_CELLS:
        at = largest(0, 2)
        kept[at] = kept[at].coarsen()
    return kept


def _count_cells(columns: Iterable[ProposedColumn], choice: int) -> int:
    """The number of cells where every column has its first, or its last, description."""
    return math.prod(column.choices[choice].cells for column in columns if column.choices)


def _with_placeholder(
    found: Sequence[ProposedColumn], columns: Sequence[ColumnProfile]
) -> list[ProposedColumn]:
    """Give the first column that can be described a description to be completed."""
    filled = list(found)
    for at, column in enumerate(columns):
        placeholder = _placeholder(column)
        if column.name.strip() and placeholder:
            filled[at] = ProposedColumn(column.name, (placeholder,))
            break
    return filled


def round_cuts(low: float, high: float, bins: int) -> tuple[str, ...]:
    """Round edges of about `bins` equal bins that contain `low` and `high`.

    >>> round_cuts(3.5, 96, 10)
    ('0', '10', '20', '30', '40', '50', '60', '70', '80', '90', '100')
    """
    if low == high:
        digit, power = 1, math.floor(math.log10(max(abs(low), 1e-300))) if low else 0
    else:
        # Doubles cannot tell numbers apart that are much closer than this.
        span = max(high - low, abs(high) * 1e-9, abs(low) * 1e-9, 1e-300)
        digit, power = _round_step(span / bins)
    step = digit * Fraction(10) ** power
    # Through their texts: the number that a column shows as 0.1 is on the edge 0.1.
    first, last = (math.floor(Fraction(repr(float(end))) / step) for end in (low, high))
    return tuple(_number_text(at * digit, power) for at in range(first, last + 2))


def _round_step(least: float) -> tuple[int, int]:
    """The smallest of 1, 2 or 5 times a power of ten that is at least `least`: digit and power."""
    power = math.floor(math.log10(least))
    for digit in (1, 2, 5):
        if digit * Fraction(10) ** power >= Fraction(least):
            return digit, power
    return 1, power + 1


def _number_text(digits: int, power: int) -> str:
    """Digits times a power of ten, as a TOML number."""
    if not digits:
        return "0"
    if 0 <= power <= 15:
        return str(digits * 10**power)
    if -9 <= power < 0:
        exact = Fraction(digits) * Fraction(10) ** power
        return str(exact.numerator) if exact.denominator == 1 else f"{float(exact):.{-power}f}"
    return f"{digits}e{power}"


def round_bounds(low: int, high: int) -> tuple[int, int]:
    """Bounds around whole numbers, both included: a wide range is extended to multiples of ten.

    >>> round_bounds(1, 12), round_bounds(3, 94)
    ((1, 12), (0, 99))
    """
    step = 1 if high - low < 20 else 10
    return low // step * step, (high // step + 1) * step - 1


def round_count(number: int) -> int:
    """A number rounded to two significant digits.

    >>> round_count(35_819)
    36000
    """
    step = int(10 ** max(len(str(number)) - 2, 0))
    return (number + step // 2) // step * step


def whole_periods(start: dt.date, end: dt.date, unit: Unit) -> tuple[dt.date, dt.date]:
    """The first and last day of the quarters, years or (for other units) months around a range."""
    months = {"quarter": 3, "year": 12}.get(unit, 1)
    first = (start.month - 1) // months * months + 1
    last = ((end.month - 1) // months + 1) * months
    return (
        start.replace(month=first, day=1),
        end.replace(month=last, day=calendar.monthrange(end.year, last)[1]),
    )
