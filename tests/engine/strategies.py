"""Random small domains, and random rows that are hard on them."""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, get_args

import pyarrow as pa
from hypothesis import strategies as st

from sharewell import Binned, Boolean, Category, Date, Domain, Integer
from sharewell.query.attribute import Attribute, Ordered, Unit

DAY = dt.timedelta(days=1)
NUMBER_TEXTS = [
    "",
    "x",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "1e2",
    "0.5",
    " 3 ",
    "12abc",
    "1e999",
    "--1",
    "0x1",
]
DATE_TEXTS = ["", "never", "2021-02-29", "2020-13-01", "2020-02-29", "2020-06", "20:00"]
BOOLEAN_TEXTS = ["true", "FALSE", "t", "f", "Yes", "no", "y", "N", "1", "0.0", "2", "on", "", " true "]
LABELS = ["a", "A", "b", "it's", 'say "hi"', "back\\slash", "ü", "1", "0", "true", "nan", "2020-01-01"]


@dataclass(frozen=True)
class Case:
    """A domain, and a table whose columns `c0`, `c1`, ... and `person` are to be counted in it."""

    domain: Domain
    rows: pa.Table


@st.composite
def cases(draw: st.DrawFn, *, blank_text: bool = True) -> Case:
    """`blank_text` is False for sources that cannot tell empty text from NULL."""
    attributes, columns = [], {}
    size = draw(st.integers(0, 12))
    for i in range(draw(st.integers(1, 3))):
        attribute = draw(ATTRIBUTES)(draw, f"c{i}")
        kind, values = draw(st.sampled_from(STORAGE[type(attribute)]))
        column = draw(st.lists(st.none() | values(attribute), min_size=size, max_size=size))
        if not blank_text:
            column = [None if value == "" else value for value in column]
        attributes.append(attribute)
        columns[attribute.name] = pa.array(column, kind)
    people = st.lists(st.none() | st.integers(0, 4), min_size=size, max_size=size)
    columns["person"] = pa.array([p if p is None else f"p{p}" for p in draw(people)], pa.string())
    return Case(Domain(attributes), pa.table(columns))


def special(draw: st.DrawFn) -> dict[str, Any]:
    return {"nullable": draw(st.booleans()), "other": draw(st.sampled_from([None, "others"]))}


def integer(draw: st.DrawFn, name: str) -> Attribute:
    low = draw(st.integers(-3, 3) | st.sampled_from([-(2**53) + 1, 2**53 - 9, -100]))
    return Integer(name, low, low + draw(st.integers(0, 8)), **special(draw))


def binned(draw: st.DrawFn, name: str) -> Attribute:
    low = draw(st.sampled_from([Decimal("0"), Decimal("-1"), Decimal("0.3"), Decimal("-7.5")]))
    width = draw(st.sampled_from([Decimal("0.1"), Decimal("1"), Decimal("2.5"), Decimal("5000")]))
    steps = draw(st.lists(st.integers(1, 3), min_size=1, max_size=7))
    even = draw(st.booleans())
    ends = [sum(steps[: i + 1]) if not even else i + 1 for i in range(len(steps))]
    return Binned(name, [low, *(low + width * end for end in ends)], **special(draw))


def category(draw: st.DrawFn, name: str) -> Attribute:
    return Category(
        name, draw(st.lists(st.sampled_from(LABELS), min_size=1, unique=True)), **special(draw)
    )


def boolean(draw: st.DrawFn, name: str) -> Attribute:
    return Boolean(name, **special(draw))


def date(draw: st.DrawFn, name: str) -> Attribute:
    start = draw(st.dates(dt.date(2019, 11, 1), dt.date(2020, 3, 1)))
    end = start + draw(st.integers(0, 500)) * DAY
    by = draw(st.sampled_from(get_args(Unit)))
    return Date(name, start, end, by=by, **special(draw))


ATTRIBUTES = st.sampled_from([integer, binned, category, boolean, date])


def near_edges(attribute: Attribute) -> st.SearchStrategy[float]:
    """Numbers on the edges, just beside them, and anywhere."""
    if not isinstance(attribute, Ordered):
        return st.sampled_from([0.0, 1.0, -0.0, 0.5, 2.0])
    edges = st.sampled_from([float(edge) for edge in attribute.edges])
    return edges | edges.map(lambda x: x - 5e-16 * max(abs(x), 1)) | edges.map(lambda x: x + 0.5)


def doubles(attribute: Attribute) -> st.SearchStrategy[float]:
    return near_edges(attribute) | st.floats()


def singles(attribute: Attribute) -> st.SearchStrategy[float]:
    return near_edges(attribute) | st.floats(width=32)


def integers(attribute: Attribute) -> st.SearchStrategy[int]:
    return near_edges(attribute).map(round) | st.integers(-(2**63), 2**63 - 1)


def small_integers(attribute: Attribute) -> st.SearchStrategy[int]:
    return st.integers(-10, 10) | st.sampled_from([-128, 127])


def unsigned(attribute: Attribute) -> st.SearchStrategy[int]:
    return st.integers(0, 10) | st.just(2**64 - 1)


def decimals(attribute: Attribute) -> st.SearchStrategy[Decimal]:
    ten = st.integers(-100, 100).map(lambda n: Decimal(n) / 10)
    return ten | st.sampled_from([Decimal("9" * 30), -Decimal("9" * 30), Decimal("0.3001")])


def number_texts(attribute: Attribute) -> st.SearchStrategy[str]:
    return st.sampled_from(NUMBER_TEXTS) | near_edges(attribute).map(str) | integers(attribute).map(str)


def days(attribute: Attribute) -> st.SearchStrategy[dt.date]:
    """Days at the ends of periods, and anywhere."""
    if not isinstance(attribute, Date):
        return st.sampled_from([dt.date(2020, 1, 1), dt.date(2020, 1, 2)])
    edges = st.sampled_from([dt.date.fromordinal(edge) for edge in attribute.edges])
    return edges | edges.map(lambda day: day - DAY) | st.dates(dt.date(1900, 1, 1), dt.date(2200, 1, 1))


def moments(attribute: Attribute) -> st.SearchStrategy[dt.datetime]:
    times = st.sampled_from([dt.time(0), dt.time(12), dt.time(23, 59, 59, 999999)])
    return st.builds(dt.datetime.combine, days(attribute), times)


def aware(attribute: Attribute) -> st.SearchStrategy[dt.datetime]:
    zones = st.integers(-12, 14).map(lambda hours: dt.timezone(dt.timedelta(hours=hours)))
    return st.builds(lambda moment, zone: moment.replace(tzinfo=zone), moments(attribute), zones)


def date_texts(attribute: Attribute) -> st.SearchStrategy[str]:
    written = days(attribute) | moments(attribute) | aware(attribute)
    return st.sampled_from(DATE_TEXTS) | written.map(lambda value: value.isoformat())


Storage = tuple[pa.DataType, Callable[[Attribute], st.SearchStrategy[Any]]]

INT64, FLOAT64, TEXT = (pa.int64(), integers), (pa.float64(), doubles), (pa.string(), number_texts)
NUMBERS: list[Storage] = [
    *(INT64, FLOAT64, TEXT, (pa.float32(), singles), (pa.int8(), small_integers)),
    *((pa.uint64(), unsigned), (pa.decimal128(38, 4), decimals)),
]
STORAGE: dict[type[Attribute], list[Storage]] = {
    Integer: NUMBERS,
    Binned: NUMBERS,
    Category: [
        (pa.string(), lambda _: st.sampled_from([*LABELS, "", "z"])),
        (pa.dictionary(pa.int32(), pa.string()), lambda _: st.sampled_from([*LABELS, "z"])),
        *(INT64, FLOAT64),
    ],
    Boolean: [
        (pa.bool_(), lambda _: st.booleans()),
        (pa.string(), lambda _: st.sampled_from(BOOLEAN_TEXTS)),
        *(INT64, FLOAT64),
    ],
    Date: [
        *((pa.date32(), days), (pa.timestamp("us"), moments), (pa.timestamp("us", "UTC"), aware)),
        (pa.string(), date_texts),
    ],
}
