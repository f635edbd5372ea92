"""Profiles of the columns of a file, from which `sharewell init` proposes attributes.

Privacy: profiles come from the rows. They go to the curator alone, who owns the rows, into a proposal
that marks what was taken from them.
"""

from __future__ import annotations

import datetime as dt
import difflib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

from sqlglot import exp

from sharewell.engine.base import SourceColumn, find_columns
from sharewell.engine.cells import Kind, day, is_whole, kind_of, number, text
from sharewell.engine.duckdb import DuckDB
from sharewell.engine.sources import open_file
from sharewell.engine.view_tables import PersonView, open_view
from sharewell.errors import SourceError

#: A column with more distinct values is not a category: so many in any table, and more where each is
#: that of so many rows on average.
MAX_CATEGORIES, MAX_MANY_CATEGORIES, ROWS_OF_CATEGORY = 50, 250, 20
#: A value in a smaller fraction of the rows is rare.
RARE = Fraction(1, 1_000)
#: A value looks misspelt if it is this similar to one that is so many times as frequent.
SIMILARITY, TIMES_AS_FREQUENT = 0.8, 100
#: How many of the first rows must be distinct for a column to look like an identifier.
COMPARED_ROWS = 100_000
#: How many columns one statement profiles: planning time grows with the square.
COLUMNS_AT_ONCE = 10
#: So many different texts of a column are counted before they are read.
MAX_COUNTED_TEXTS = 10_000
#: Texts are numbers or days if at least so many of them are, and this fraction of those not blank.
MIN_READ, MIN_READ_FRACTION = 20, Fraction(95, 100)


Holds = Literal["booleans", "whole numbers", "numbers", "dates", "texts", "nothing", "other things"]

#: Other date formats: 31.12.2024, 12/31/24 and the like.
OTHER_DATES = r"\s*\d{1,2}[./-]\d{1,2}[./-](\d{2}|\d{4})\s*|\s*\d{4}[./]\d{1,2}[./]\d{1,2}\s*"

#: What files write for a missing value: -1, -9, and numbers such as 99, -99, 998 or 7777; and some days.
NUMBER_CODES = (
    *(-1, -9),
    *(sign * (10**digits - less) for sign in (1, -1) for digits in range(2, 10) for less in (1, 2, 3)),
    *(sign * int(f"{digit}" * times) for sign in (1, -1) for digit in (7, 8) for times in range(2, 10)),
)
DAY_CODES = (
    *("0001-01-01", "1753-01-01", "1800-01-01", "1899-12-30", "1899-12-31", "1900-01-01", "1970-01-01"),
    *("2099-12-31", "2100-01-01", "2999-12-31", "9999-01-01", "9999-12-31"),
)

#: Numbers with so many decimals are on a grid, such as that of cents.
DECIMALS = (1, 2, 3)

#: Is called with the number of columns profiled so far, and of all.
Progress = Callable[[int, int], None]

#: What one pass finds of a column, by name.
Aggregates = Mapping[str, Any]

BOUNDS = ("low", "high", "usual low", "usual high")

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
    #: The smallest and the largest number or day, without `codes`.
    low: Any = None
    high: Any = None
    #: Extreme numbers or days that look like codes for a missing value.
    codes: tuple[Any, ...] = ()
    #: In a text column of numbers or days: how many values are something else.
    odd: int = 0
    #: The values of a text column that are neither rare nor misspelt, unless there are more than
    #: `max_categories`; and the number of the others.
    values: tuple[str, ...] = ()
    rare: int = 0
    #: The length of the longest text.
    longest: int = 0
    #: Whether texts look like dates in another format.
    other_dates: bool = False
    #: How many decimals numbers have, if they are few.
    decimals: int | None = None

    @property
    def max_categories(self) -> int:
        """How many values the categories of a column may have."""
        return _max_categories(self.filled)


@dataclass(frozen=True)
class TableProfile:
    """The profiles of all columns. Secret."""

    rows: int
    columns: tuple[ColumnProfile, ...]
    #: Names of several columns, none of which can be read.
    repeated: tuple[str, ...]


class SqlSession(Protocol):
    """A session of DuckDB with a table or view `source`."""

    def run(self, sql: str) -> Sequence[Sequence[Any]]:
        """Run a statement and return all rows."""


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


def profile_file(
    source: Path,
    table: str | None = None,
    wanted: Sequence[str] | None = None,
    progress: Progress = lambda done, total: None,
) -> TableProfile:
    """Profile the wanted columns of a file, or all."""
    with closing(open_file(source, (), table, _WholeTable)) as engine:
        _refuse_other_separators(source, engine)
        columns = list(engine.columns.values())
        if wanted is None:
            return _profile_table(engine, columns, engine.repeated, progress)
        chosen = {columns[at].name for at in find_columns(wanted, list(engine.columns))}
        return _profile_table(engine, [each for each in columns if each.name in chosen], (), progress)


def profile_view(
    view: PersonView,
    unit: str,
    wanted: Sequence[str],
    progress: Progress = lambda done, total: None,
) -> TableProfile:
    """Profile the wanted columns of a person view of files, whose rows are computed once."""
    with closing(open_view(view, wanted, unit)) as engine:
        named = [each.value.as_(f"c{at}") for at, each in enumerate(engine.columns.values())]
        rows = exp.select(*named).from_(engine.relation)
        engine.run(f"CREATE TEMP TABLE source AS {rows.sql('duckdb')}")
        columns = [
            SourceColumn(each.name, each.type, exp.column(f"c{at}", table="source"))
            for at, each in enumerate(engine.columns.values())
        ]
        return _profile_table(engine, columns, (), progress)


def _refuse_other_separators(source: Path, engine: _WholeTable) -> None:
    names = list(engine.columns)
    if source.suffix.lower() == ".csv" and len(names) == 1 and any(sign in names[0] for sign in ";\t|"):
        raise SourceError(
            f"The fields of {source.name!r} are not separated by commas.",
            hint="Convert it to a CSV file with commas, or to a .parquet file.",
        )


def _profile_table(
    engine: SqlSession, columns: Sequence[SourceColumn], repeated: tuple[str, ...], progress: Progress
) -> TableProfile:
    profiles: list[ColumnProfile] = []
    texts = [column for column in columns if kind_of(column) is Kind.TEXT]
    rows, *estimates = _select(engine, ["COUNT(*)", *map(_distinct, texts)], "source")
    pairs = zip(texts, estimates, strict=True)
    repetitive = {column for column, estimate in pairs if estimate <= MAX_COUNTED_TEXTS}
    for at in range(0, len(columns), COLUMNS_AT_ONCE):
        some = columns[at : at + COLUMNS_AT_ONCE]
        few = [column for column in some if column in repetitive]
        others = [column for column in some if column not in repetitive]
        found = _aggregate_texts(engine, few) | _aggregate(engine, others)
        for column in some:
            profiles.append(_profile(engine, column, rows, found[column]))
            progress(len(profiles), len(columns))
    return TableProfile(rows, tuple(profiles), repeated)


def _aggregate(engine: SqlSession, columns: Sequence[SourceColumn]) -> dict[SourceColumn, Aggregates]:
    """Aggregate columns in one pass."""
    parts = {column: _aggregates(column) for column in columns}
    wanted = [part for each in parts.values() for part in each.values()]
    values = iter(_select(engine, wanted, "source"))
    return {column: {name: next(values) for name in each} for column, each in parts.items()}


def _aggregate_texts(
    engine: SqlSession, columns: Sequence[SourceColumn]
) -> dict[SourceColumn, Aggregates]:
    """Aggregate columns of few texts, which are counted first, so that each is read once."""
    if not columns:
        return {}
    own = SourceColumn("", exp.DataType.build("text"), exp.column("v", table="counted"))
    parts = _aggregates(own, "SUM(n)")
    texts = ", ".join(
        f"histogram({text(column).sql('duckdb')}) AS h{at}" for at, column in enumerate(columns)
    )
    tables = ", ".join(
        f"(SELECT {', '.join(parts.values())} FROM (SELECT unnest(map_keys(h{at})) AS v, "  # noqa: S608
        f"unnest(map_values(h{at})) AS n FROM histograms) AS counted) AS t{at}"
        for at in range(len(columns))
    )
    histograms = f"WITH histograms AS MATERIALIZED (SELECT {texts} FROM source)"  # noqa: S608
    (found,) = engine.run(f"{histograms} SELECT * FROM {tables}")  # noqa: S608
    values = iter(found)
    return {column: {name: next(values) for name in parts} for column in columns}


def _select(engine: SqlSession, parts: Collection[str], relation: str) -> Sequence[Any]:
    """The values of some aggregates."""
    if not parts:
        return ()
    (values,) = engine.run(f"SELECT {', '.join(parts)} FROM {relation}")  # noqa: S608
    return values


def _distinct(column: SourceColumn) -> str:
    return f"approx_count_distinct({_sql(column.value)})"


def _sql(value: exp.Condition) -> str:
    return value.sql("duckdb")


def _max_categories(filled: int) -> int:
    return max(MAX_CATEGORIES, min(MAX_MANY_CATEGORIES, filled // ROWS_OF_CATEGORY))


def _aggregates(column: SourceColumn, rows: str = "COUNT(*)") -> dict[str, str]:
    """The aggregates of one pass over a column, by name; `rows` is that of the number of rows."""
    kind = kind_of(column)
    if kind is None:
        return {}

    def count(condition: str) -> str:
        return f"COALESCE({rows} FILTER ({condition}), 0)"

    value = _sql(column.value)
    found = {"filled": count(f"{value} IS NOT NULL"), "distinct": _distinct(column)}
    if kind in (Kind.INTEGER, Kind.NUMBER, Kind.TEXT):
        read = _sql(number(column))
        finite = f"isfinite({read})"
        found |= {
            "numbers": count(f"({read}) IS NOT NULL"),
            "finite": count(finite),
            "whole": count(f"{finite} AND {_sql(is_whole(number(column)))}"),
            **{
                f"decimals {places}": count(f"{finite} AND {read} = round({read}, {places})")
                for places in DECIMALS
            },
            **_bounds("number", read, finite, NUMBER_CODES),
        }
    if kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TEXT):
        read = _sql(day(column))
        # Python's calendar begins with the year 1 and ends with 9999.
        known = f"({read}) BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
        found |= {"days": count(known), **_bounds("day", read, known, DAY_CODES)}
    if kind is Kind.TEXT:
        written = _sql(text(column))
        # 02139 is a code, not a number.
        code = f"regexp_matches({written}, '^\\s*[-+]?0[0-9]')"
        found |= {
            "longest": f"MAX(LENGTH({written}))",
            "written": count(f"NOT regexp_full_match({written}, '\\s*')"),
            "zip_codes": count(f"({_sql(number(column))}) IS NOT NULL AND {code}"),
            "other_dates": count(f"regexp_full_match({written}, '{OTHER_DATES}')"),
        }
    return found


def _bounds(name: str, read: str, known: str, codes: tuple[Any, ...]) -> dict[str, str]:
    """The aggregates of the smallest and largest value, with and without codes."""
    usual = f"{known} AND ({read}) NOT IN {codes}"
    extremes = [f"{of}({read}) FILTER ({some})" for some in (known, usual) for of in ("MIN", "MAX")]
    return {f"{name} {bound}": extreme for bound, extreme in zip(BOUNDS, extremes, strict=True)}


def _profile(
    engine: SqlSession, column: SourceColumn, rows: int, found: Mapping[str, Any]
) -> ColumnProfile:
    kind = kind_of(column)
    make = partial(ColumnProfile, column.name, column.type.this.value, kind)
    if kind is None:
        return make("other things")
    filled, distinct = found["filled"], found["distinct"]
    if not filled:
        return make("nothing")
    nearly_all = partial(_nearly_all, filled=filled, written=found.get("written", filled))
    make = partial(
        make,
        filled=filled,
        missing=filled < rows,
        # `distinct` is an estimate, verified only where it is near the number of rows.
        all_differ=distinct > 0.8 * filled and _all_differ(engine, column),
        longest=found.get("longest", 0),
    )
    if kind is Kind.BOOLEAN:
        return make("booleans")
    if found.get("finite") and nearly_all(found["numbers"]) and not found.get("zip_codes"):
        odd = filled - found["numbers"]
        low, high, codes = _split_codes(*(found[f"number {bound}"] for bound in BOUNDS))
        whole = found["finite"] == found["whole"] and max(-low, high) < 2**52
        # NaN is missing too.
        missing = found["finite"] + odd < rows
        holds: Holds = "whole numbers" if whole else "numbers"
        enough = (at for at in DECIMALS if found[f"decimals {at}"] == found["finite"])
        decimals = 0 if whole else next(enough, None)
        return make(holds, low=low, high=high, codes=codes, odd=odd, missing=missing, decimals=decimals)
    if found.get("days") and (kind is not Kind.TEXT or nearly_all(found["days"])):
        low, high, codes = _split_codes(*(found[f"day {bound}"] for bound in BOUNDS))
        odd = filled - found["days"] if kind is Kind.TEXT else 0
        return make("dates", low=low, high=high, codes=codes, odd=odd)
    if kind is not Kind.TEXT:
        return ColumnProfile(column.name, column.type.this.value, kind, "nothing")
    most = _max_categories(filled)
    counts = _count_values(engine, column) if distinct < 4 * most else {}
    if counts and _are_booleans(counts):
        return make("booleans")
    usual = [value for value, count in counts.items() if not _is_rare(value, count, counts, filled)]
    few = 0 < len(usual) <= most
    return make(
        "texts",
        values=tuple(sorted(usual)) if few else (),
        rare=len(counts) - len(usual),
        other_dates=nearly_all(found["other_dates"]),
    )


def _split_codes(
    low: Any, high: Any, usual_low: Any, usual_high: Any
) -> tuple[Any, Any, tuple[Any, ...]]:
    """Bounds without extremes that look like codes, and these extremes.

    A code is farther from the usual values than these are from each other, or negative where a wide
    range of usual values is not.

    >>> _split_codes(-1, 999, 0, 95), _split_codes(-1, 99, 0, 96), _split_codes(-1, 1, 0, 1)
    ((0, 95, (-1, 999)), (0, 99, (-1,)), (-1, 1, ()))
    """
    if usual_low is None:
        return low, high, ()
    span = usual_high - usual_low
    codes = []
    negative = not isinstance(low, dt.date) and low < 0 <= usual_low and span >= 10
    if low < usual_low and (negative or usual_low - low > span):
        codes.append(low)
        low = usual_low
    if high > usual_high and high - usual_high > span:
        codes.append(high)
        high = usual_high
    return low, high, tuple(codes)


def _is_rare(value: str, count: int, counts: Mapping[str, int], filled: int) -> bool:
    """Whether a value is rare, or looks like a misspelling of one that is much more frequent."""
    if count < RARE * filled:
        return True
    if any(letter.isdigit() for letter in value):
        return False  # 02138 is not a misspelling of 02139
    plain = value.strip().casefold()
    return any(
        count * TIMES_AS_FREQUENT <= many
        and difflib.SequenceMatcher(None, plain, other.strip().casefold()).ratio() > SIMILARITY
        for other, many in counts.items()
    )


def _nearly_all(read: int, filled: int, written: int) -> bool:
    """Whether the values that cannot be read are few enough to be mistakes."""
    return read == filled or (read >= MIN_READ and read >= MIN_READ_FRACTION * written)


def _all_differ(engine: SqlSession, column: SourceColumn) -> bool:
    value = column.value.sql("duckdb")
    first = f"SELECT {value} AS v FROM source LIMIT {COMPARED_ROWS}"  # noqa: S608
    ((differ, filled),) = engine.run(f"SELECT COUNT(DISTINCT v), COUNT(v) FROM ({first})")  # noqa: S608
    return bool(differ == filled)


def _count_values(engine: SqlSession, column: SourceColumn) -> dict[str, int]:
    """The distinct values of a column, and in how many rows they are."""
    written = text(column).sql("duckdb")
    counted = f"SELECT {written} AS v, COUNT(*) FROM source GROUP BY v HAVING v IS NOT NULL"  # noqa: S608
    return {row[0]: row[1] for row in engine.run(counted)}


def _are_booleans(values: Iterable[str]) -> bool:
    plain = {value.strip().lower() for value in values}
    return any(plain <= {*pair} for pair in WORDS) or any(plain == {*pair} for pair in LETTERS)
