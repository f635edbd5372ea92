"""Looking at the columns of a file, in order to propose how to describe them.

Privacy: what is seen here comes from the rows. It goes to the curator alone, who owns them, and only
into a proposal that says so.
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

from sharewell.engine.base import Column
from sharewell.engine.duckdb import DuckDB
from sharewell.engine.sources import open_file
from sharewell.engine.values import Kind, day, is_whole, kind_of, number, text
from sharewell.errors import SourceError

#: A column with more different values than this is no category.
MOST_VALUES = 50
#: How many of the first rows must all differ for a column to be taken for an identifier.
COMPARED = 100_000
#: How many columns one statement looks at: planning one takes the square of that.
AT_ONCE = 10
#: Texts are numbers or days if so many of them are, and such a part of those that are not empty.
FEWEST_READ, PART_READ = 20, Fraction(95, 100)


Holds = Literal["booleans", "whole numbers", "numbers", "dates", "texts", "nothing", "other things"]

#: How days are written elsewhere: 31.12.2024, 12/31/24 and the like.
OTHER_DAYS = r"\s*\d{1,2}[./-]\d{1,2}[./-](\d{2}|\d{4})\s*|\s*\d{4}[./]\d{1,2}[./]\d{1,2}\s*"

#: Pairs of texts that mean false and true; single letters count only where both occur.
WORDS = (("false", "true"), ("no", "yes"))
LETTERS = (("f", "t"), ("n", "y"))


@dataclass(frozen=True)
class Seen:
    """A column as its rows are: all but its name and type is private."""

    name: str
    #: The name of its type, without what that may list.
    type: str
    kind: Kind | None
    holds: Holds
    #: Rows with a value, and whether others have none.
    filled: int = 0
    missing: bool = False
    #: Whether no value was seen twice.
    all_differ: bool = False
    #: The least and the largest number or day.
    low: Any = None
    high: Any = None
    #: How many texts are no number, in a column of numbers, or no day, in one of days.
    odd: int = 0
    #: All values of a column of texts, unless they are more than MOST_VALUES.
    values: tuple[str, ...] = ()
    #: The length of the longest text.
    longest: int = 0
    #: Whether texts look like days that are written in another way than is read here.
    other_days: bool = False


@dataclass(frozen=True)
class SeenTable:
    """A table as its rows are."""

    rows: int
    columns: tuple[Seen, ...]
    #: Names that more than one column has, so that none of these can be read.
    repeated: tuple[str, ...]


class _WholeTable(DuckDB):
    """A session whose view has every column of the source that has a name of its own."""

    repeated: tuple[str, ...] = ()

    def view(self, origin: exp.Table, wanted: Sequence[str], names: Sequence[str] = ()) -> None:
        """Make `source` of all columns, whatever is wanted."""
        described = self.run("DESCRIBE " + exp.select("*").from_(origin).sql(self.dialect))
        names = names or [name for name, *_ in described]
        counts = Counter(names)
        self.repeated = tuple(name for name, count in counts.items() if count > 1)
        wanted = [name for name, count in counts.items() if count == 1]
        if not wanted:
            raise SourceError("All columns have the same name.", hint="Rename all but one.")
        super().view(origin, wanted, names)


def look_at(source: Path, table: str | None = None) -> SeenTable:
    """What the columns of a file hold."""
    with closing(open_file(source, (), table, _WholeTable)) as engine:
        _refuse_other_separators(source, engine)
        return _look(engine)


def _refuse_other_separators(source: Path, engine: _WholeTable) -> None:
    names = list(engine.columns)
    if source.suffix.lower() == ".csv" and len(names) == 1 and any(sign in names[0] for sign in ";\t|"):
        raise SourceError(
            f"The file {source.name!r} has no commas between its fields.",
            hint="Write it anew with commas instead of semicolons or tabs, or as a .parquet file.",
        )


def _look(engine: _WholeTable) -> SeenTable:
    columns = list(engine.columns.values())
    seen: list[Seen] = []
    rows = 0
    for at in range(0, len(columns), AT_ONCE):
        some = columns[at : at + AT_ONCE]
        parts = [list(_aggregates(column)) for column in some]
        wanted = ", ".join(["COUNT(*)", *(part for each in parts for part in each)])
        ((rows, *found),) = engine.run(f"SELECT {wanted} FROM source")  # noqa: S608
        values = iter(found)
        seen += [
            _seen(engine, column, rows, [next(values) for _ in each])
            for column, each in zip(some, parts, strict=True)
        ]
    return SeenTable(rows, tuple(seen), engine.repeated)


def _aggregates(column: Column) -> Iterator[str]:
    """What is computed of a column in one pass: the same things in the same order for each kind."""
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
        # 02139 is a code and no number, although it can be read as one.
        code = f"regexp_matches({written}, '^\\s*[-+]?0[0-9]')"
        yield f"COUNT({number(column).sql('duckdb')}) FILTER ({code})"
        yield f"COUNT(*) FILTER (regexp_full_match({written}, '{OTHER_DAYS}'))"


def _seen(engine: _WholeTable, column: Column, rows: int, found: list[Any]) -> Seen:
    kind = kind_of(column)
    seen = partial(Seen, column.name, column.type.this.value, kind)
    if kind is None:
        return seen("other things")
    filled, distinct, *rest = found
    if not filled:
        return seen("nothing")
    numbers = rest[:5] if kind in (Kind.INTEGER, Kind.NUMBER, Kind.TEXT) else None
    days = rest[-7:-4] if kind is Kind.TEXT else rest[-3:]
    longest, written, codes, others = rest[-4:] if kind is Kind.TEXT else (0, filled, 0, 0)
    # An estimate, which is made certain only where it is near the number of rows.
    differ = distinct > 0.8 * filled and _all_differ(engine, column)
    many = {"filled": filled, "missing": filled < rows, "all_differ": differ, "longest": longest}
    if kind is Kind.BOOLEAN:
        return seen("booleans", **many)
    if numbers and numbers[1] and _nearly_all(numbers[0], filled, written) and not codes:
        read, finite, whole, low, high = numbers
        odd = filled - read
        holds: Holds = "whole numbers" if finite == whole and max(-low, high) < 2**52 else "numbers"
        # NaN counts as missing.
        many["missing"] = finite + odd < rows
        return seen(holds, low=low, high=high, odd=odd, **many)
    if kind in (Kind.DATE, Kind.TIMESTAMP) or (
        kind is Kind.TEXT and _nearly_all(days[0], filled, written)
    ):
        if not days[0]:
            return seen("nothing")
        low, high = (dt.date.fromisoformat(text) for text in days[1:])
        odd = filled - days[0] if kind is Kind.TEXT else 0
        return seen("dates", low=low, high=high, odd=odd, **many)
    if kind is not Kind.TEXT:
        return seen("nothing")
    values = _values(engine, column) if distinct < 4 * MOST_VALUES else ()
    if values and _are_booleans(values):
        return seen("booleans", **many)
    return seen("texts", values=values, other_days=_nearly_all(others, filled, written), **many)


def _nearly_all(read: int, filled: int, written: int) -> bool:
    """Whether so many of the values could be read that those which could not are mere slips."""
    return read == filled or (read >= FEWEST_READ and read >= PART_READ * written)


def _all_differ(engine: _WholeTable, column: Column) -> bool:
    value = column.value.sql("duckdb")
    ((differ, filled),) = engine.run(
        f"SELECT COUNT(DISTINCT v), COUNT(v) FROM (SELECT {value} AS v FROM source LIMIT {COMPARED})"  # noqa: S608
    )
    return bool(differ == filled)


def _values(engine: _WholeTable, column: Column) -> tuple[str, ...]:
    """All values of a column, in order; none where they are too many."""
    written = text(column).sql("duckdb")
    found = engine.run(
        f"SELECT DISTINCT {written} AS v FROM source WHERE v IS NOT NULL LIMIT {MOST_VALUES + 1}"  # noqa: S608
    )
    return () if len(found) > MOST_VALUES else tuple(sorted(value for (value,) in found))


def _are_booleans(values: Sequence[str]) -> bool:
    plain = {value.strip().lower() for value in values}
    return any(plain <= {*pair} for pair in WORDS) or any(plain == {*pair} for pair in LETTERS)
