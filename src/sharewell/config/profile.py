"""Profiles of the columns of a file, from which `sharewell init` proposes attributes.

Privacy: profiles come from the rows. They go to the curator alone, who owns the rows, into a proposal
that marks what was taken from them.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal

from sqlglot import exp

from sharewell.engine.base import SourceColumn
from sharewell.engine.cells import Kind, day, is_whole, kind_of, number, text
from sharewell.engine.duckdb import DuckDB
from sharewell.engine.sources import open_file
from sharewell.errors import SourceError

#: A column with more distinct values is not a category.
MAX_CATEGORIES = 50
#: How many of the first rows must be distinct for a column to look like an identifier.
COMPARED_ROWS = 100_000
#: How many columns one statement profiles: planning time grows with the square.
COLUMNS_AT_ONCE = 10
#: Texts are numbers or days if at least so many of them are, and this fraction of those not blank.
MIN_READ, MIN_READ_FRACTION = 20, Fraction(95, 100)


Holds = Literal["booleans", "whole numbers", "numbers", "dates", "texts", "nothing", "other things"]

#: Other date formats: 31.12.2024, 12/31/24 and the like.
OTHER_DATES = r"\s*\d{1,2}[./-]\d{1,2}[./-](\d{2}|\d{4})\s*|\s*\d{4}[./]\d{1,2}[./]\d{1,2}\s*"

#: Texts for false and true; single letters count only where both occur.
WORDS = (("false", "true"), ("no", "yes"))
LETTERS = (("f", "t"), ("n", "y"))


@dataclass(frozen=True)
class ColumnProfile:
    """What the rows have in one column. Secret, except for name and type."""

    name: str
    #: The name of its SQL type, without parameters.
    type: str
    kind: Kind | None
    holds: Holds
    #: Rows with a value, and whether others have none.
    filled: int = 0
    missing: bool = False
    #: Whether no value occurs twice.
    all_differ: bool = False
    #: The smallest and the largest number or day.
    low: Any = None
    high: Any = None
    #: In a text column of numbers or days: how many values are something else.
    odd: int = 0
    #: All values of a text column, unless there are more than MAX_CATEGORIES.
    values: tuple[str, ...] = ()
    #: The length of the longest text.
    longest: int = 0
    #: Whether texts look like dates in another format.
    other_dates: bool = False


@dataclass(frozen=True)
class TableProfile:
    """The profiles of all columns. Secret."""

    rows: int
    columns: tuple[ColumnProfile, ...]
    #: Names of several columns, none of which can be read.
    repeated: tuple[str, ...]


class _WholeTable(DuckDB):
    """A session whose view has every column of the source with a unique name."""

    repeated: tuple[str, ...] = ()

    def view(self, origin: exp.Table, wanted: Sequence[str], names: Sequence[str] = ()) -> None:
        """Create the view of all columns, ignoring `wanted`."""
        described = self.run("DESCRIBE " + exp.select("*").from_(origin).sql(self.dialect))
        names = names or [name for name, *_ in described]
        counts = Counter(names)
        self.repeated = tuple(name for name, count in counts.items() if count > 1)
        wanted = [name for name, count in counts.items() if count == 1]
        if not wanted:
            raise SourceError("All columns have the same name.", hint="Rename all but one.")
        super().view(origin, wanted, names)


def profile_file(source: Path, table: str | None = None) -> TableProfile:
    """Profile all columns of a file."""
    with closing(open_file(source, (), table, _WholeTable)) as engine:
        _refuse_other_separators(source, engine)
        return _profile_table(engine)


def _refuse_other_separators(source: Path, engine: _WholeTable) -> None:
    names = list(engine.columns)
    if source.suffix.lower() == ".csv" and len(names) == 1 and any(sign in names[0] for sign in ";\t|"):
        raise SourceError(
            f"The fields of {source.name!r} are not separated by commas.",
            hint="Convert it to a CSV file with commas, or to a .parquet file.",
        )


def _profile_table(engine: _WholeTable) -> TableProfile:
    columns = list(engine.columns.values())
    profiles: list[ColumnProfile] = []
    rows = 0
    for at in range(0, len(columns), COLUMNS_AT_ONCE):
        some = columns[at : at + COLUMNS_AT_ONCE]
        parts = [list(_aggregates(column)) for column in some]
        wanted = ", ".join(["COUNT(*)", *(part for each in parts for part in each)])
        ((rows, *found),) = engine.run(f"SELECT {wanted} FROM source")  # noqa: S608
        values = iter(found)
        profiles += [
            _profile(engine, column, rows, [next(values) for _ in each])
            for column, each in zip(some, parts, strict=True)
        ]
    return TableProfile(rows, tuple(profiles), engine.repeated)


def _aggregates(column: SourceColumn) -> Iterator[str]:
    """The aggregates of one pass over a column; `_profile` reads them in the same order."""
    kind = kind_of(column)
    if kind is None:
        return
    value = column.value.sql("duckdb")
    yield f"COUNT({value})"
    yield f"approx_count_distinct({value})"
    if kind in (Kind.INTEGER, Kind.NUMBER, Kind.TEXT):
        read = number(column).sql("duckdb")
        finite = f"isfinite({read})"
        yield f"COUNT({read})"
        yield f"COUNT(*) FILTER ({finite})"
        yield f"COUNT(*) FILTER ({finite} AND {is_whole(number(column)).sql('duckdb')})"
        yield f"MIN({read}) FILTER ({finite})"
        yield f"MAX({read}) FILTER ({finite})"
    if kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TEXT):
        read = day(column).sql("duckdb")
        # Python's calendar begins with the year 1 and ends with 9999.
        known = f"({read}) BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
        yield f"COUNT(*) FILTER ({known})"
        yield f"CAST(MIN({read}) FILTER ({known}) AS TEXT)"
        yield f"CAST(MAX({read}) FILTER ({known}) AS TEXT)"
    if kind is Kind.TEXT:
        written = text(column).sql("duckdb")
        yield f"MAX(LENGTH({written}))"
        yield f"COUNT(*) FILTER (NOT regexp_full_match({written}, '\\s*'))"
        # 02139 is a code, not a number.
        code = f"regexp_matches({written}, '^\\s*[-+]?0[0-9]')"
        yield f"COUNT({number(column).sql('duckdb')}) FILTER ({code})"
        yield f"COUNT(*) FILTER (regexp_full_match({written}, '{OTHER_DATES}'))"


def _profile(engine: _WholeTable, column: SourceColumn, rows: int, found: list[Any]) -> ColumnProfile:
    kind = kind_of(column)
    make = partial(ColumnProfile, column.name, column.type.this.value, kind)
    if kind is None:
        return make("other things")
    filled, distinct, *rest = found
    if not filled:
        return make("nothing")
    numbers = rest[:5] if kind in (Kind.INTEGER, Kind.NUMBER, Kind.TEXT) else None
    days = rest[-7:-4] if kind is Kind.TEXT else rest[-3:]
    longest, written, codes, others = rest[-4:] if kind is Kind.TEXT else (0, filled, 0, 0)
    # `distinct` is an estimate, verified only where it is near the number of rows.
    differ = distinct > 0.8 * filled and _all_differ(engine, column)
    many = {"filled": filled, "missing": filled < rows, "all_differ": differ, "longest": longest}
    if kind is Kind.BOOLEAN:
        return make("booleans", **many)
    if numbers and numbers[1] and _nearly_all(numbers[0], filled, written) and not codes:
        read, finite, whole, low, high = numbers
        odd = filled - read
        holds: Holds = "whole numbers" if finite == whole and max(-low, high) < 2**52 else "numbers"
        # NaN is missing too.
        many["missing"] = finite + odd < rows
        return make(holds, low=low, high=high, odd=odd, **many)
    if kind in (Kind.DATE, Kind.TIMESTAMP) or (
        kind is Kind.TEXT and _nearly_all(days[0], filled, written)
    ):
        if not days[0]:
            return make("nothing")
        low, high = (dt.date.fromisoformat(text) for text in days[1:])
        odd = filled - days[0] if kind is Kind.TEXT else 0
        return make("dates", low=low, high=high, odd=odd, **many)
    if kind is not Kind.TEXT:
        return make("nothing")
    values = _values(engine, column) if distinct < 4 * MAX_CATEGORIES else ()
    if values and _are_booleans(values):
        return make("booleans", **many)
    return make("texts", values=values, other_dates=_nearly_all(others, filled, written), **many)


def _nearly_all(read: int, filled: int, written: int) -> bool:
    """Whether so many values could be read that the others look like slips."""
    return read == filled or (read >= MIN_READ and read >= MIN_READ_FRACTION * written)


def _all_differ(engine: _WholeTable, column: SourceColumn) -> bool:
    value = column.value.sql("duckdb")
    first = f"SELECT {value} AS v FROM source LIMIT {COMPARED_ROWS}"  # noqa: S608
    ((differ, filled),) = engine.run(f"SELECT COUNT(DISTINCT v), COUNT(v) FROM ({first})")  # noqa: S608
    return bool(differ == filled)


def _values(engine: _WholeTable, column: SourceColumn) -> tuple[str, ...]:
    """The distinct values of a column, sorted; empty where there are too many."""
    written = text(column).sql("duckdb")
    found = engine.run(
        f"SELECT DISTINCT {written} AS v FROM source WHERE v IS NOT NULL LIMIT {MAX_CATEGORIES + 1}"  # noqa: S608
    )
    return () if len(found) > MAX_CATEGORIES else tuple(sorted(value for (value,) in found))


def _are_booleans(values: Sequence[str]) -> bool:
    plain = {value.strip().lower() for value in values}
    return any(plain <= {*pair} for pair in WORDS) or any(plain == {*pair} for pair in LETTERS)
