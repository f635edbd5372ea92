"""What every engine must do: `check_engine` runs the same awkward rows through any of them.

An engine's own test gives a function that turns an Arrow table into a source of that engine.
"""

import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sharewell import Binned, Boolean, Category, Date, Domain, Integer
from sharewell.engine.vectorize import vectorize
from sharewell.errors import SourceError
from tests.engine import oracle

MakeSource = Callable[[pa.Table], object]

NAN, INFINITY = float("nan"), float("inf")
TOKYO = dt.timezone(dt.timedelta(hours=9))

#: Columns of awkward values, with the attributes that can be read from them.
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int64(), [0, 1, 85, 86, -1, None, 2**62, -(2**62), 7, 7]),
    "bytes": (pa.int8(), [0, 1, 85, 86, -1, None, 127, -128, 7, 7]),
    "doubles": (pa.float64(), [0.0, -0.0, 85.0, 85.5, 0.3, None, NAN, INFINITY, -INFINITY, 0.1]),
    "singles": (pa.float32(), [0.0, 0.5, 85.0, 85.5, 0.25, None, NAN, INFINITY, -INFINITY, 4.0]),
    "texts": (pa.string(), ["0", "85", "1.0", "1.5", "x", None, "nan", "inf", "-1", "1e999"]),
    "names": (pa.string(), ["a", "A", "b", "it's", 'q"x', None, "nan", "ü", "z", "a"]),
    "flags": (pa.bool_(), [True, False, True, False, True, None, True, False, True, True]),
    "answers": (pa.string(), ["yes", "NO", " t ", "F", "1", None, "maybe", "0", "True", "2"]),
    "days": (
        pa.date32(),
        [
            *(dt.date(2019, 12, 31), dt.date(2020, 1, 1), dt.date(2020, 1, 31), dt.date(2020, 2, 1)),
            *(dt.date(2020, 2, 29), None, dt.date(2020, 12, 31), dt.date(2021, 1, 1)),
            *(dt.date(1, 1, 1), dt.date(2020, 6, 28)),
        ],
    ),
    "moments": (
        pa.timestamp("us", "UTC"),
        [
            dt.datetime(2020, 1, 1, 8, 59, tzinfo=TOKYO),
            dt.datetime(2020, 1, 1, 9, 0, tzinfo=TOKYO),
            dt.datetime(2021, 1, 1, 8, 59, tzinfo=TOKYO),
            dt.datetime(2021, 1, 1, 9, 0, tzinfo=TOKYO),
            dt.datetime(2020, 2, 29, 12, tzinfo=dt.UTC),
            None,
            *[dt.datetime(2020, 7, 1, tzinfo=dt.UTC)] * 4,
        ],
    ),
    "dates": (
        pa.string(),
        [
            *("2020-01-01", "2020-12-31", "2020-02-30", "2021-01-01", "2020-01-01T08:00:00+09:00"),
            *(None, "2020-12-31T23:59:59Z", "2020-12-31 23:59:59-05:00", "yesterday", "2020-02-29"),
        ],
    ),
}
ROWS = pa.table({name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()})

LABELS = ["a", "b", "A", "it's", 'q"x', "nan", "ü"]
READINGS: list[tuple[str, Callable[..., Any]]] = [
    *((name, lambda name, **kw: Integer(name, -1, 85, **kw)) for name in ("integers", "bytes")),
    *((name, lambda name, **kw: Integer(name, 0, 85, **kw)) for name in ("doubles", "singles", "texts")),
    *(
        (name, lambda name, **kw: Binned(name, [0, 0.1, 0.3, 1, 85.5], **kw))
        for name in ("integers", "bytes", "doubles", "singles", "texts")
    ),
    *((name, lambda name, **kw: Binned(name, [-1, 0, 1, 2], **kw)) for name in ("doubles", "texts")),
    ("names", lambda name, **kw: Category(name, LABELS, **kw)),
    ("integers", lambda name, **kw: Category(name, ["7", "0", "07"], **kw)),
    ("doubles", lambda name, **kw: Category(name, ["85", "0", "0.3", "nan"], **kw)),
    *((name, lambda name, **kw: Boolean(name, **kw)) for name in ("flags", "answers", "integers")),
    *(
        (name, lambda name, by=by, **kw: Date(name, "2020-01-01", "2020-12-31", by=by, **kw))
        for name in ("days", "moments", "dates")
        for by in ("day", "week", "month", "quarter", "year")
    ),
]
SPECIAL_CELLS: list[dict[str, Any]] = [
    {},
    {"nullable": True},
    {"other": "others"},
    {"nullable": True, "other": "others"},
]


def check_engine(
    make_source: MakeSource, *, typed: bool = True, tries_casts: bool = True, thorough: bool = False
) -> None:
    """Everything.

    `typed` is False for a source whose columns are all text, `tries_casts` for an engine that has no
    TRY_CAST. A `thorough` run takes every attribute with and without its `other` and NULL cells.
    """
    check_each_attribute_alone(make_source, typed, tries_casts, thorough)
    check_attributes_together(make_source)
    check_each_person_counts_once(make_source, typed)
    check_an_empty_table_gives_zeros(make_source)
    if typed:
        check_a_type_that_never_fits_is_refused(make_source)


def check_each_attribute_alone(
    make_source: MakeSource, typed: bool, tries_casts: bool, thorough: bool
) -> None:
    source = make_source(ROWS)
    for i, (name, make) in enumerate(READINGS):
        for special in SPECIAL_CELLS if thorough else [SPECIAL_CELLS[i % len(SPECIAL_CELLS)]]:
            attribute = make(name, **special)
            if not typed and name == "doubles" and isinstance(attribute, Category):
                continue
            if not tries_casts and name in ("texts", "dates"):
                with pytest.raises(SourceError):
                    vectorize(source, Domain([attribute]))
            else:
                compare(source, ROWS, Domain([attribute]))


def check_attributes_together(make_source: MakeSource) -> None:
    domain = Domain(
        [
            Category("names", ["b", "a"], other="others"),
            Integer("integers", -5, 90, nullable=True),
            Boolean("flags", nullable=True),
            Date("days", "2020-01-15", "2020-12-31", by="month", nullable=True, other="others"),
        ]
    )
    compare(make_source(ROWS), ROWS, domain)


def check_each_person_counts_once(make_source: MakeSource, typed: bool) -> None:
    rows = pa.table(
        {
            "person": pa.array(["ann", "ann", "Ann", "bob", "bob", None, None, "cy"]),
            "number": pa.array([1.0, 1.0, 2.0, 3.0, 3.0, NAN, None, 4.0]),
            "age": pa.array([5, 3, 3, 99, 4, 1, 1, 99]),
        }
    )
    source = make_source(rows)
    for special in SPECIAL_CELLS:
        domain = Domain([Integer("age", 0, 9, **special)])
        for unit in (None, "person", "age"):
            compare(source, rows, domain, unit)
        if typed:
            with pytest.raises(SourceError, match="large ids may be equal"):
                vectorize(source, domain, "number")


def check_an_empty_table_gives_zeros(make_source: MakeSource) -> None:
    empty = ROWS.slice(0, 0)
    compare(make_source(empty), empty, Domain([Integer("integers", 0, 9), Category("names", LABELS)]))


def check_a_type_that_never_fits_is_refused(make_source: MakeSource) -> None:
    rows = pa.table({"born": pa.array([0], pa.timestamp("us"))})
    with pytest.raises(SourceError, match=r"column 'born' of type TIMESTAMP.* as Integer\. .* Date"):
        vectorize(make_source(rows), Domain([Integer("born", 0, 9)]))


def compare(source: object, rows: pa.Table, domain: Domain, unit: str | None = None) -> None:
    """The engine and the oracle agree on every cell."""
    expected = oracle.counts(python_rows(rows), domain, unit)
    assert vectorize(source, domain, unit).counts.tolist() == expected, domain


def python_rows(rows: pa.Table) -> list[oracle.Row]:
    """The rows as Python values; single precision stays single."""
    singles = [field.name for field in rows.schema if field.type == pa.float32()]
    return [
        row | {name: np.float32(row[name]) for name in singles if row[name] is not None}
        for row in rows.to_pylist()
    ]
