"""What every engine must do: `check_engine` runs the same awkward rows through any of them.

An engine's own test gives a function that turns an Arrow table into a source of that engine.
"""

import datetime as dt
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from sharewell import Binned, Block, Boolean, Category, Date, Domain, Integer, LinearQuery, Measure
from sharewell.engine import vectorize as engine
from sharewell.engine.cells import MAX_COMPARED
from sharewell.engine.data_vector import DataVector
from sharewell.engine.in_place import InPlaceData
from sharewell.engine.sources import is_address, open_source
from sharewell.errors import SourceError
from sharewell.privacy.kronecker import Factors, KroneckerProduct, KroneckerRows
from sharewell.query.block import GroupedBlock
from tests.engine import oracle

#: Databases have the rows in a table `people`.
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
    "names": (pa.string(), ["a", "A", "b", "it's", 'q"x', None, "nan", "ü", "u\u0308", "a "]),
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
    if thorough:
        check_each_attribute_alone(make_source, typed, tries_casts)
    check_every_attribute_at_once(make_source, typed)
    check_attributes_together(make_source)
    check_each_person_counts_once(make_source, typed)
    check_some_rows_of_a_person_are_kept(make_source)
    check_an_empty_table_gives_zeros(make_source)
    check_in_place_equals_copied(make_source)
    check_many_labels(make_source)
    if typed:
        check_a_type_that_never_fits_is_refused(make_source)


def check_each_attribute_alone(make_source: MakeSource, typed: bool, tries_casts: bool) -> None:
    source = make_source(ROWS)
    for name, make in READINGS:
        for special in SPECIAL_CELLS:
            attribute = make(name, **special)
            if not typed and name == "doubles" and isinstance(attribute, Category):
                continue
            if not tries_casts and name in ("texts", "dates"):
                with pytest.raises(SourceError):
                    vectorize(source, Domain([attribute]))
            else:
                compare(source, ROWS, Domain([attribute]))


def check_every_attribute_at_once(make_source: MakeSource, typed: bool) -> None:
    """One statement with all attributes, each on a copy of its column; no row is left out."""
    attributes, columns = [], {}
    for at, (name, make) in enumerate(READINGS):
        attribute = make(f"{name}_{at}", nullable=True, other="others")
        if typed or name != "doubles" or not isinstance(attribute, Category):
            attributes.append(attribute)
            columns[attribute.name] = ROWS[name]
    rows = pa.table(columns)
    data = vectorize(make_source(rows), Domain(attributes), max_rows=ROWS.num_rows)
    assert data.codes is not None
    kept = data.counts > 0
    found = sorted(zip(*(codes[kept].tolist() for codes in data.codes), strict=True))
    expected = sorted(
        tuple(oracle.cell_of(each, row[each.name]) for each in attributes) for row in python_rows(rows)
    )
    for at, attribute in enumerate(attributes):
        assert [row[at] for row in found] == [row[at] for row in expected], attribute
    assert found == expected


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
    for special in SPECIAL_CELLS[::3]:
        domain = Domain([Integer("age", 0, 9, **special)])
        for unit in (None, "person", "age") if special else ("person",):
            compare(source, rows, domain, unit)
        if typed:
            with pytest.raises(SourceError, match="large ids may be equal"):
                vectorize(source, domain, "number")


def check_some_rows_of_a_person_are_kept(make_source: MakeSource) -> None:
    people = [*["ann"] * 9, *["bob"] * 2, *["cy"] * 4, None]
    # Ids that are alike, and signs that could end a text, are ids of their own.
    people += [*["ü"] * 4, *["u\u0308"] * 4, *["ann "] * 4, "Ann", "a|1", "'", '"', None]
    rows = pa.table({"person": people, "age": [at % 4 for at in range(len(people))]})
    compare(make_source(rows), rows, Domain([Integer("age", 0, 9)]), "person", 3)


def check_an_empty_table_gives_zeros(make_source: MakeSource) -> None:
    empty = ROWS.slice(0, 0)
    compare(make_source(empty), empty, Domain([Integer("integers", 0, 9), Category("names", LABELS)]))


def check_in_place_equals_copied(make_source: MakeSource) -> None:
    """Blocks, groups and marginals of counts and sums, one batch in one statement."""
    people = ["ann", "ann", "bob", "bob", "cy", "cy", "dee", "eve", "eve", None]
    rows = ROWS.append_column("person", pa.array(people))
    domain = Domain(
        [
            Category("names", ["b", "a", "A", "ü"], other="others"),
            Integer("integers", -5, 90, nullable=True, other="others"),
            Boolean("flags", nullable=True),
            Date("days", "2020-01-15", "2020-12-31", by="month", nullable=True, other="others"),
        ],
        [
            Measure("bytes", "bytes", -10, 100, Fraction(1, 2)),
            Measure("fine", "bytes", -10, 100, Fraction(1, 1000)),
            Measure("whole", "integers", 0, 50, 1),
        ],
        [("bytes", "bytes"), ("bytes", "whole"), ("fine", "fine")],
    )
    for table, unit, most in ((rows, "person", 2), (rows.slice(0, 0), None, 1)):
        source = make_source(table)
        options: dict[str, Any] = {"max_rows_per_person": most, "key": "key"}
        expected = vectorize(source, domain, unit, **options)
        same = engine.vectorize(table, domain, unit, **options)  # by DuckDB
        assert _marginals(domain).answers(expected).tolist() == _marginals(domain).answers(same).tolist()
        found = in_place(source, domain, unit, **options)
        for batch in (BATCH, BATCH[:1], BATCH[2:3]):
            blocks = [make(domain) for make in batch]
            for own, block in zip(found.answers_together(blocks), blocks, strict=True):
                assert own.tolist() == block.answers(expected).tolist()
        query = LinearQuery.of(domain, names=[1, 3], integers=range(9))
        assert found.answer(query) == expected.answer(query)


def check_many_labels(make_source: MakeSource) -> None:
    """More labels than are compared one by one; what is like one of them is none."""
    awkward = ["it's", 'q"x', "a\\b", "ü", "a\nb", "{}", "%s", " ", "\\", "$$", "null"]
    labels = [*(f"label {n}" for n in range(MAX_COMPARED)), *awkward]
    seen = [*labels[::7], *awkward, "Label 1", "label 1 ", "u\u0308", "x", None, *labels[:9]]
    rows = pa.table({"name": pa.array(seen), "person": pa.array(range(len(seen)))})
    source = make_source(rows)
    for special in SPECIAL_CELLS[::3]:
        domain = Domain([Category("name", labels, **special)])
        compare(source, rows, domain)
    query = LinearQuery.of(domain, name=[*range(0, domain.size, 9), domain.size - 1])
    expected = vectorize(rows, domain, "person").answer(query)
    assert in_place(source, domain, "person").answer(query) == expected


def _grouped(domain: Domain) -> GroupedBlock:
    """Rows by groups that are not runs of cells, with a condition on another column."""
    names = np.arange(domain.shape[0]) % 3
    months = np.arange(domain.shape[3]) // 4
    return GroupedBlock(LinearQuery.of(domain, flags=[1]), {3: months, 0: names})


def _marginals(domain: Domain) -> KroneckerRows:
    """A seed of two tables of counts and sums, and the total."""
    each = sp.eye_array(domain.vectors, dtype=np.int64, format="csr")
    last = len(domain.attributes)
    sums: list[Factors] = [{0: None, 3: None, last: each[[at], :]} for at in range(domain.vectors)]
    counts = {last: each[[0], :]}
    factors: tuple[Factors, ...] = (*sums, {1: None, 2: None, **counts}, counts)
    return KroneckerRows(domain, tuple(KroneckerProduct(domain, own) for own in factors), "seed")


BATCH: list[Callable[[Domain], Any]] = [
    lambda domain: Block(
        domain, [LinearQuery.all(domain), LinearQuery.of(domain, flags=[1]), LinearQuery.zero(domain)]
    ),
    _grouped,
    _marginals,
    lambda domain: Block(domain, [LinearQuery.of(domain, integers=range(0, 80, 3)) * 2]),
]


def in_place(source: object, domain: Domain, unit: str | None = None, **options: Any) -> InPlaceData:
    """The table, measured in place and without waiting for the deadline."""
    table, wanted = "people" if is_address(source) else None, engine.columns_read(domain, unit)
    return InPlaceData(
        domain,
        lambda: open_source(source, wanted, table=table, timeout=60),
        privacy_unit=unit,
        deadline=60,
        wait=lambda seconds: None,
        **options,
    )


def check_a_type_that_never_fits_is_refused(make_source: MakeSource) -> None:
    rows = pa.table({"born": pa.array([0], pa.timestamp("us"))})
    with pytest.raises(SourceError, match=r"column 'born' of type TIMESTAMP.* as Integer\. .* Date"):
        vectorize(make_source(rows), Domain([Integer("born", 0, 9)]))


def vectorize(source: object, domain: Domain, unit: str | None = None, **options: Any) -> DataVector:
    table = "people" if is_address(source) else None
    return engine.vectorize(source, domain, unit, table=table, **options)


def compare(
    source: object, rows: pa.Table, domain: Domain, unit: str | None = None, most: int = 1
) -> None:
    """The engine and the oracle agree on every cell."""
    expected = oracle.counts(python_rows(rows), domain, unit, most, "key")
    found = vectorize(source, domain, unit, max_rows_per_person=most, key="key")
    assert found.counts.tolist() == expected, domain


def python_rows(rows: pa.Table) -> list[oracle.Row]:
    """The rows as Python values; single precision stays single."""
    singles = [field.name for field in rows.schema if field.type == pa.float32()]
    return [
        row | {name: np.float32(row[name]) for name in singles if row[name] is not None}
        for row in rows.to_pylist()
    ]
