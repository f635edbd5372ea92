"""Proposals: how `sharewell init` describes the columns of a file as attributes.

Bounds are rounded outwards, so that a proposal repeats no row's value; the curator reviews them.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, get_args

from sharewell.config.profile import ColumnProfile, Holds, Progress, TableProfile, profile_file
from sharewell.config.rounding import (
    decimal_text,
    round_bounds,
    round_count,
    round_cuts,
    round_grid,
    round_up,
    whole_periods,
)
from sharewell.config.section import MAX_NAME, validate_table
from sharewell.engine.cells import Kind
from sharewell.engine.data_vector import MAX_ROWS
from sharewell.errors import ConfigError, SourceError
from sharewell.query.attribute import Date, Unit
from sharewell.wire.text import pluralize

#: The maximum number of cells of an integer column and of a date column.
MAX_INTEGERS, MAX_PERIODS = 120, 100
#: A longer text is taken for free text.
MAX_LABEL = 60
#: Fewer rows than this may all differ by chance.
FEW_ROWS = 10
#: How many bins numbers get.
BINS = 10
#: The fewest steps between the bounds of a measure whose values have many decimals.
MIN_STEPS = 1_000
#: The limit of the number of rows is at least so many times their rounded number.
ROOM = Fraction(5, 4)
#: Larger numbers have no bins, and are not summed; and the most steps that one row may add to a sum.
MAX_NUMBER, MAX_SUMMED, MAX_STEPS = 1e300, 1e15, 2**31
#: The population of a file without rows.
DEFAULT_POPULATION = 1_000

IDENTIFIER = re.compile(r"(^|[_\W])(id|uuid|guid|ssn|key|email|phone)$|[a-z]I[dD]$")
CODE = re.compile(
    r"(^|[_\W\d])(zip|zip_?code|post_?code|postal|plz|code|fips|naics|sic|isco|icd)([_\W\d]|$)",
    re.IGNORECASE,
)
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
    """A column with its description, or the reason to leave it out."""

    name: str
    attribute: ProposedAttribute | None
    reason: str = ""
    #: The type to suggest where it is left out.
    type: str = "category"
    #: Whether several rows have the same value.
    repeats: bool = False
    #: The lines of the measure that it is too, if it is one.
    measure: tuple[Line, ...] = ()

    def leave_out(self, reason: str) -> ProposedColumn:
        """The same column, left out."""
        return replace(self, attribute=None, reason=reason, measure=())


@dataclass(frozen=True)
class ProposedTable:
    """A table of a proposed view: its name there, its path, its name in a database, its unit."""

    name: str
    source: str
    table: str | None
    unit: str


@dataclass(frozen=True)
class ProposedView:
    """A person view: its SELECT, its tables, and the column that identifies the person."""

    text: str
    tables: tuple[ProposedTable, ...]
    unit: str


@dataclass(frozen=True)
class Proposal:
    """The proposed configuration of a table or a person view."""

    name: str
    #: The rounded number of rows, and a limit of it.
    population: int
    max_rows: int
    columns: tuple[ProposedColumn, ...]
    #: The path of the only table, and its name in a database.
    source: str = ""
    table: str | None = None
    #: The person view, if there is one.
    view: ProposedView | None = None

    @property
    def described(self) -> tuple[tuple[str, ProposedAttribute], ...]:
        """The columns that become attributes, by name."""
        return tuple((each.name, each.attribute) for each in self.columns if each.attribute)

    @property
    def measures(self) -> tuple[ProposedColumn, ...]:
        """The columns that become measures too."""
        return tuple(column for column in self.columns if column.measure)

    @property
    def identifier(self) -> ProposedColumn | None:
        """The first column whose name suggests that it identifies a person."""
        return next((each for each in self.columns if looks_like_identifier(each.name)), None)

    @property
    def cells(self) -> int:
        """The number of cells of the domain."""
        return math.prod(attribute.cells for _, attribute in self.described)


def propose(
    source: Path,
    target: Path,
    table: str | None = None,
    wanted: Sequence[str] | None = None,
    progress: Progress = lambda done, total: None,
) -> Proposal:
    """Propose a configuration for a file, or some columns of it; `target` is where it will be written.

    Privacy: reads the rows, for the curator alone.
    """
    profile = profile_file(source, table, wanted, progress)
    proposal = proposal_of(profile, table_name(source.stem), repr(source.name))
    return replace(proposal, source=relative_path(source, target), table=table)


def proposal_of(profile: TableProfile, name: str, origin: str) -> Proposal:
    """Propose what a profile shows: the attributes and the size of the population."""
    columns = propose_columns(profile)
    if not any(column.attribute for column in columns):
        raise SourceError(
            f"No column of {origin} can be an attribute.",
            hint="Attributes are numbers, text, booleans, dates or times.",
        )
    population = round_count(profile.rows) if profile.rows else DEFAULT_POPULATION
    max_rows = min(round_up(population * ROOM), MAX_ROWS)
    return Proposal(name, population, max_rows, columns)


def table_name(stem: str) -> str:
    """A name for the table, from that of the file."""
    plain = re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_").lower()[:MAX_NAME]
    try:
        return validate_table(plain, "dataset.name")
    except ConfigError:
        return "people"


def relative_path(source: Path, target: Path) -> str:
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


def looks_like_code(name: str) -> bool:
    """Whether a column's name suggests numbers that are not summed, such as postcodes.

    >>> [looks_like_code(name) for name in ("zip", "home_postcode", "PLZ", "naics_code", "zipper")]
    [True, True, True, True, False]
    """
    return CODE.search(name) is not None


def propose_columns(table: TableProfile) -> tuple[ProposedColumn, ...]:
    """Propose every column; at least one is described if that is possible."""
    found = [_propose(column, empty=not table.rows) for column in table.columns]
    found = _drop_ambiguous_names(found)
    if not any(column.attribute for column in found):
        found = _with_placeholder(found, table.columns)
    repeated = [
        ProposedColumn(name, None, "more than one column has this name") for name in table.repeated
    ]
    return (*found, *repeated)


def _propose(column: ColumnProfile, *, empty: bool) -> ProposedColumn:
    if empty and column.kind is not None:
        return ProposedColumn(column.name, _placeholder(column))
    attribute = _attribute(column)
    if attribute is not None:
        attribute = _with_other_cells(column, attribute)
    kind, repeats = TYPES.get(column.holds, "category"), bool(column.filled) and not column.all_differ
    is_binned = attribute is not None and attribute.type == "binned"
    measure = _measure(column) if is_binned and not looks_like_code(column.name) else ()
    proposed = ProposedColumn(column.name, attribute, type=kind, repeats=repeats, measure=measure)
    reason = _reason(column, attribute)
    return proposed.leave_out(reason) if reason else proposed


def _reason(column: ColumnProfile, attribute: ProposedAttribute | None) -> str:
    """Why a column should not be an attribute; empty where it may be one."""
    texts, integers = column.holds == "texts", column.holds == "whole numbers"
    binned = attribute is None or attribute.type != "integer"
    uncountable = (integers and binned) or (texts and not column.values)
    identifier = uncountable and looks_like_identifier(column.name)
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
        f"it has more than {column.max_categories} distinct values, so it looks like free text": texts
        and not column.values,
        "its values reach too far; give it sensible bounds": attribute is None,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


def _attribute(column: ColumnProfile) -> ProposedAttribute | None:
    match column.holds:
        case "booleans":
            return ProposedAttribute("boolean", 2)
        case "whole numbers" if (column.low, column.high) == (0, 1) and not (column.codes or column.odd):
            return ProposedAttribute("boolean", 2)
        case "whole numbers":
            low, high = round_bounds(int(column.low), int(column.high))
            if high - low < MAX_INTEGERS:
                return _integer(low, high, f"{MARK} rounded from the rows; write public bounds")
            return _binned(column)
        case "numbers":
            return _binned(column)
        case "dates":
            return _dates(column.low, column.high)
        case "texts" if column.values:
            return _category(column.values, f"{MARK} found in the rows; list public values", column.rare)
    return None


def _integer(low: int, high: int, comment: str) -> ProposedAttribute:
    lines = (Line("low", str(low), comment), Line("high", str(high), comment))
    return ProposedAttribute("integer", high - low + 1, lines)


def _binned(column: ColumnProfile) -> ProposedAttribute | None:
    if max(-column.low, column.high) > MAX_NUMBER:
        return None
    cuts = round_cuts(column.low, column.high, BINS)
    return _cut(cuts, f"{MARK} rounded from the rows; write public cuts")


def _measure(column: ColumnProfile) -> tuple[Line, ...]:
    """The lines of a measure: the outer cuts, and the step that the values have, if few enough fit."""
    if max(-column.low, column.high) > MAX_SUMMED:
        return ()
    cuts = round_cuts(column.low, column.high, BINS)
    low, high = Fraction(cuts[0]), Fraction(cuts[-1])
    # Sums of at most so many steps in a row: larger bounds need a coarser step.
    least = max(abs(low), abs(high), high - low) / MAX_STEPS
    decimals = column.decimals
    step = (high - low) / MIN_STEPS if decimals is None else Fraction(1, 10**decimals)
    grid = round_grid(low, high, max(step, least))
    why = f"{MARK} rounded from the rows; write public bounds"
    lines = (
        Line("low", decimal_text(grid.low), f"{why}. Smaller values count as this"),
        Line(
            "high", decimal_text(grid.high), f"{why}: noise grows with them. Larger values count as this"
        ),
        Line("step", decimal_text(grid.step), "values are rounded to multiples of it"),
    )
    if column.codes:
        comment = f"{MARK} {_codes(column)}: it counts as a bound in sums, so clear it first"
        lines = (Line(lines[0].key, lines[0].value, comment), *lines[1:])
    if column.missing or column.odd:
        return (*lines, Line("nullable", "true", f"{MARK} rows without a value are not summed"))
    return (*lines, Line("nullable", "false", f"{MARK} a row without a value would be dropped"))


def _cut(cuts: Sequence[str], comment: str) -> ProposedAttribute:
    line = Line("cuts", f"[{', '.join(cuts)}]", comment)
    return ProposedAttribute("binned", len(cuts) - 1, (line,))


def _dates(low: dt.date, high: dt.date) -> ProposedAttribute | None:
    for unit in get_args(Unit):
        start, end = whole_periods(low, high, unit)
        # Weeks cut through months and years.
        if unit != "week" and (end - start).days <= MAX_PERIODS * DAYS[unit]:
            return _date(start, end, unit, f"{MARK} whole periods around the rows; write public days")
    return None


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
        counted.append(_codes(column))
    if column.odd:
        be = "is" if column.odd == 1 else "are"
        counted.append(f"{pluralize(column.odd, 'value')} {be} of another kind")
    if counted:
        comment = f"{MARK} {' and '.join(counted)}; counted here, dropped without this line"
        lines += (Line("other", quoted("other"), comment),)
    if column.missing:
        lines += (Line("nullable", "true", f"{MARK} some rows have no value; NULL gets its own cell"),)
    return replace(attribute, lines=lines, cells=attribute.cells + len(lines) - len(attribute.lines))


def _codes(column: ColumnProfile) -> str:
    codes = " and ".join(
        str(code) if isinstance(code, dt.date) else f"{code:.0f}" for code in column.codes
    )
    look = "looks like a code" if len(column.codes) == 1 else "look like codes"
    return f"{codes} {look} for a missing value"


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
            taken.update([folded] if column.attribute else [])
    return kept


def _with_placeholder(
    found: Sequence[ProposedColumn], columns: Sequence[ColumnProfile]
) -> list[ProposedColumn]:
    """Give the first column that can be described a description to be completed."""
    filled = list(found)
    for at, column in enumerate(columns):
        placeholder = _placeholder(column)
        if column.name.strip() and placeholder:
            filled[at] = ProposedColumn(column.name, placeholder)
            break
    return filled
