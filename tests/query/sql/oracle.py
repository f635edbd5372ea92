"""DuckDB as the judge: random tables that hold what a domain says, and random SQL about them."""

import atexit
import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import duckdb
import numpy as np
from hypothesis import strategies as st

from sharewell import Binned, Boolean, Category, Date, Domain, Integer
from sharewell.query.attribute import Attribute


def value(attribute: Attribute, cell: int):
    """A value that a row of this cell may have; for a bin, the one that a SUM counts it as."""
    if cell == attribute.null_cell:
        return None
    if isinstance(attribute, Date):
        return dt.date.fromordinal(attribute.edges[cell])
    if isinstance(attribute, Binned):
        return float(attribute.measures[cell])
    return attribute.label(cell)


def sql_type(attribute: Attribute) -> str:
    types = {Integer: "INTEGER", Category: "VARCHAR", Boolean: "BOOLEAN", Date: "DATE", Binned: "DOUBLE"}
    return types[type(attribute)]


#: One database for all tables: to make one takes longer than most of what is asked of it.
_SHARED = [duckdb.connect()]
# DuckDB complains of what is still there when Python ends.
atexit.register(lambda: _SHARED.pop().close())


@contextmanager
def duckdb_with(domain: Domain, counts) -> Iterator[Callable[[str], list[tuple]]]:
    """DuckDB with a table `people`: each cell's rows, its position in `cell`, a column per bins."""
    bins = [(level, b) for level, a in enumerate(domain.attributes) for b in a.bins_by_name.values()]
    columns = [f"{a.name} {sql_type(a)}" for a in domain.attributes]
    columns += [f"{b.name} VARCHAR" for _, b in bins]
    rows = []
    for cell, position in enumerate(np.ndindex(*domain.shape)):
        values = [value(a, at) for a, at in zip(domain.attributes, position, strict=True)]
        labels = [b.labels[b.groups[position[level]]] for level, b in bins]
        rows += [(cell, *values, *labels)] * int(counts[cell])
    [connection] = _SHARED
    connection.execute(f"CREATE OR REPLACE TABLE people (cell INTEGER, {', '.join(columns)})")
    if rows:
        marks = ", ".join([f"({', '.join('?' * len(rows[0]))})"] * len(rows))
        connection.execute(f"INSERT INTO people VALUES {marks}", [v for row in rows for v in row])
    yield lambda text: connection.execute(text).fetchall()


@st.composite
def attributes(draw, name: str) -> Attribute:
    nullable = draw(st.booleans())
    kind = draw(st.sampled_from([Integer, Category, Binned, Boolean, Date]))
    if kind is Integer:
        return Integer(name, -1, 3, nullable=nullable, bins={f"{name}_bins": [-1, 1, 2]})
    if kind is Category:
        bins = {f"{name}_bins": {"upper": ["A", "AB", "A%"], "rest": ["b_", "O'B"]}}
        return Category(name, ["A", "AB", "b_", "A%", "O'B"], nullable=nullable, bins=bins)
    if kind is Binned:
        return Binned(name, [-1, 0, 0.5, 10], nullable=nullable)
    if kind is Boolean:
        return Boolean(name, nullable=nullable)
    by = draw(st.sampled_from(["day", "month"]))
    if by == "day":
        return Date(name, "2020-02-28", "2020-03-02", nullable=nullable)
    return Date(
        name, "2019-12-15", "2020-02-29", by="month", nullable=nullable, bins={f"{name}_bins": "year"}
    )


@st.composite
def domains(draw) -> Domain:
    return Domain([draw(attributes(name)) for name in "abc"[: draw(st.integers(1, 3))]])


def numbers() -> st.SearchStrategy[str]:
    """Constant numbers, computed or not, near the edges of the attributes above."""
    plain = st.sampled_from(
        ["-1", "0", "1", "2", "3", "4", "0.5", ".5", "1.50", "- 2", "1e1", "100", "-(-1)"]
    )
    return st.one_of(
        plain,
        st.builds("{} + {}".format, plain, plain),
        st.builds("{} - {} * {}".format, plain, plain, plain),
        st.builds("({} - {}) / 2".format, plain, plain),
    )


def days() -> st.SearchStrategy[str]:
    day = st.dates(dt.date(2020, 2, 26), dt.date(2020, 3, 4)).map(dt.date.isoformat)
    forms = st.sampled_from(["DATE '{}'", "'{}'", "CAST('{}' AS DATE)", "'{}'::DATE"])
    return st.builds(lambda form, text: form.format(text), forms, day)


ORDER = st.sampled_from(["<", "<=", ">", ">=", "=", "<>", "!="])
MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>", "!=": "!="}


@st.composite
def compared(draw, name: str, constants: st.SearchStrategy[str], symbols=ORDER) -> str:
    """A column against constants, in every form that SQL has for it."""
    constants = st.one_of(constants, constants, constants, st.just("NULL"))
    one, two = draw(constants), draw(constants)
    negated = draw(st.sampled_from(["", "NOT "]))
    symbol = draw(symbols)
    forms = [f"{name} {symbol} {one}", f"{one} {MIRROR[symbol]} {name}"]
    forms += [f"{name} {negated}IN ({one}, {two})", f"{name} {negated}IN ({one})"]
    if symbols is ORDER:
        forms += [f"{name} {negated}BETWEEN {one} AND {two}"]
    return draw(st.sampled_from(forms))


EQUALITY = st.sampled_from(["=", "<>", "!="])
TEXTS = st.sampled_from(["'A'", "'AB'", "'b_'", "'A%'", "'O''B'"])
PATTERNS = st.text(alphabet="AB_%b'!", max_size=4).map(lambda text: text.replace("'", "''"))


@st.composite
def liked(draw, name: str) -> str:
    pattern, negated = draw(PATTERNS), draw(st.sampled_from(["", "NOT "]))
    escape = (
        draw(st.sampled_from(["", " ESCAPE '!'"])) if not pattern.replace("!!", "").endswith("!") else ""
    )
    return f"{name} {negated}LIKE '{pattern}'{escape}"


def on_an_edge(name: str, constants: list[str]) -> st.SearchStrategy[str]:
    """Comparisons that do not cut through a bin."""
    edges = st.sampled_from(constants)
    symbols = st.sampled_from(["<", ">="])
    return st.one_of(
        st.builds("{} {} {}".format, st.just(name), symbols, edges),
        st.builds(lambda a, b: f"NOT {name} < {a} AND {name} < {b}", edges, edges),
    )


def leaves(attribute: Attribute) -> st.SearchStrategy[str]:
    """Conditions on one attribute or its bins."""
    name = attribute.name
    forms = [
        st.sampled_from([f"{name} IS NULL", f"{name} IS NOT NULL", f"{name} ISNULL", f"{name} NOTNULL"])
    ]
    match attribute:
        case Integer():
            forms += [compared(name, numbers())]
        case Category():
            forms += [compared(name, TEXTS, EQUALITY), liked(name)]
        case Boolean():
            truths = st.sampled_from(["TRUE", "false"])
            forms += [compared(name, truths, EQUALITY), st.just(name)]
            forms += [st.sampled_from([f"{name} IS TRUE", f"{name} IS NOT TRUE", f"{name} IS FALSE"])]
        case Binned():
            forms += [on_an_edge(name, ["-1", "0.5", "0", "10", "11", "-2", "1 - 0.5", "NULL"])]
        case Date(by="day"):
            forms += [compared(name, days())]
        case Date():
            texts = ["2019-12-15", "2020-01-01", "2020-02-01", "2020-03-01", "2000-01-01", "2030-01-01"]
            forms += [on_an_edge(name, [f"DATE '{text}'" for text in texts] + ["NULL"])]
            ends = st.sampled_from(["'2019-12-31'", "DATE '2020-01-31'", "'2020-02-29'", "'2020-12-12'"])
            forms += [st.builds("{} {} {}".format, st.just(name), st.sampled_from(["<=", ">"]), ends)]
    for bins in attribute.bins_by_name.values():
        labels = st.sampled_from([f"'{label}'" for label in bins.labels if label is not None])
        forms += [compared(bins.name, labels, EQUALITY), liked(bins.name)]
    return st.one_of(forms)


CONSTANT = st.sampled_from(
    [
        "TRUE",
        " FALSE",
        " 1 = 1",
        " 1 > 2",
        " 'a' = 'b'",
        " 'a' < 'b'",
        " NULL = 1",
        " (NULL)",
        " 2 IN (1, 2)",
        " 2 NOT IN (1, NULL)",
        "\n    3 BETWEEN 1 AND 1 + 2",
        " NULL IS NULL",
        " 1 IS NULL",
        " TRUE IS NOT FALSE",
        " 'abc' LIKE 'a%'",
        " TRUE = TRUE",
        "\n    DATE '2020-01-01' < DATE '2020-01-02'",
    ]
)


def conditions(domain: Domain) -> st.SearchStrategy[str]:
    """Boolean combinations, with parentheses left to chance: both sides must read them alike."""
    leaf = st.one_of([*(leaves(a) for a in domain.attributes), CONSTANT])
    return st.recursive(
        leaf,
        lambda part: st.one_of(
            st.builds("{} AND {}".format, part, part),
            st.builds("{} OR {}".format, part, part),
            st.builds("NOT {}".format, part),
            st.builds("NOT ({})".format, part),
            st.builds("({})".format, part),
            st.builds("{} IS TRUE".format, part),
            st.builds(
                "({}) IS {}".format,
                part,
                st.sampled_from(["TRUE", "NOT TRUE", "FALSE", "NULL", "NOT NULL"]),
            ),
        ),
        max_leaves=8,
    )


@st.composite
def domain_and_conditions(draw, count: int = 1):
    domain = draw(domains())
    return domain, [draw(conditions(domain)) for _ in range(count)]


@st.composite
def tables(draw, least: int = 0):
    """A domain, and how many rows each of its cells has."""
    domain = draw(domains())
    counts = draw(st.lists(st.integers(least, 3), min_size=domain.size, max_size=domain.size))
    return domain, np.array(counts)
