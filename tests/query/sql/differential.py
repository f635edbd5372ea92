"""Statements of the whole grammar, run without noise, against DuckDB's own answers on random tables.

`python -m tests.query.sql.differential 20000` runs that many, and counts refusals by their reasons.
"""

import argparse
import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import numpy as np
import pandas as pd
import sqlglot
from sqlglot import exp

from sharewell import Domain, vectorize
from sharewell.errors import QueryError
from sharewell.query.diagram import limited
from sharewell.query.sql import MAX_STEPS, Statement, compile_anew
from sharewell.query.sql.rewrite import count_people
from sharewell.query.sql.select import MAX_QUERIES
from sharewell.query.sql.text import Source
from tests.query.sql.writer import DOMAIN, DOSES, STAYS, Writer

#: The rows of a table, and those of one with very many cells.
ROWS, FEW_ROWS = 3000, 400
#: One statement in so many compares columns of many values.
COMPARED = 16
#: Functions that DuckDB has by other names, or does not have.
MACROS = (
    "iif(condition, a, b) AS CASE WHEN condition THEN a ELSE b END",
    "truncate(x) AS trunc(x)",
    "dow(x) AS dayofweek(x)",
    "doy(x) AS dayofyear(x)",
    "width_bucket(x, low, high, buckets) AS CASE WHEN x < low THEN 0 WHEN x >= high THEN buckets + 1 "
    "ELSE floor((x - low) * buckets / (high - low)) + 1 END",
)


@dataclass(frozen=True)
class Table:
    """A table as both sides have it: DuckDB's `ask`, and the counts and sums of its cells."""

    domain: Domain
    ask: Callable[[str], list[tuple]]
    counts: np.ndarray


def people(seed: int) -> pd.DataFrame:
    """Random rows of `DOMAIN`; each value of a column has hundreds."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"person": np.arange(ROWS)})

    def nullable(values: Sequence, share: float) -> pd.Series:
        return pd.Series(values, dtype=object).mask(rng.random(ROWS) < share, None)

    def day(first: str, days: int) -> list[dt.date]:
        start = dt.date.fromisoformat(first)
        return [start + dt.timedelta(int(each)) for each in rng.integers(0, days, ROWS)]

    frame["age"] = rng.integers(0, 6, ROWS)
    frame["kids"] = nullable(rng.integers(0, 2, ROWS).tolist(), 0.2)
    frame["region"] = rng.choice(["North", "South", "New East"], ROWS, p=[0.5, 0.3, 0.2])
    frame["code"] = nullable(rng.choice(["A-1", "b_2%", "Zoë's x"], ROWS).tolist(), 0.1)
    frame["emp"] = nullable((rng.random(ROWS) < 0.6).tolist(), 0.2)
    frame["d"] = day("2020-01-30", 4)
    frame["gone"] = nullable(day("2020-01-31", 2), 0.3)
    frame["m"] = day("2019-11-01", 92)
    # The midpoints of the bins.
    frame["pay"] = rng.choice([1.0, 4.0], ROWS)
    frame["wage"] = rng.integers(0, 11, ROWS)
    frame["bonus"] = nullable((rng.integers(-4, 7, ROWS) / 2).tolist(), 0.2)
    frame["age_group"] = frame["age"].map(lambda age: ("0-1", "2-3", "4-5")[age // 2])
    frame["m_year"] = frame["m"].map(lambda each: str(each.year))
    return frame


def stays(seed: int) -> pd.DataFrame:
    """Random rows of `STAYS`."""
    rng = np.random.default_rng(seed)
    first = dt.date(2023, 1, 1)
    admitted = rng.integers(0, 400, FEW_ROWS)
    # A few are recorded as discharged before they were admitted.
    discharged = np.clip(admitted + rng.integers(-3, 60, FEW_ROWS), 0, 399)
    frame = pd.DataFrame({"admitted": [first + dt.timedelta(int(each)) for each in admitted]})
    known = pd.Series([first + dt.timedelta(int(each)) for each in discharged], dtype=object)
    frame["discharged"] = known.mask(rng.random(FEW_ROWS) < 0.2, None)
    return frame


def doses(seed: int) -> pd.DataFrame:
    """Random rows of `DOSES`."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"dose": rng.integers(0, 400, FEW_ROWS)})
    near = np.clip(frame["dose"] + rng.integers(-20, 20, FEW_ROWS), -9, 390)
    frame["weight"] = pd.Series(near.tolist(), dtype=object).mask(rng.random(FEW_ROWS) < 0.2, None)
    return frame


@contextmanager
def table(seed: int = 0, domain: Domain = DOMAIN) -> Iterator[Table]:
    """Make a random table, in DuckDB and as counts."""
    make = {DOMAIN: people, STAYS: stays, DOSES: doses}[domain]
    frame = make(seed)
    with duckdb.connect() as connection:
        connection.register("frame", frame)
        connection.execute("CREATE TABLE people AS FROM frame")
        for name in {"age", "kids", "wage", "dose", "weight"} & {*frame}:
            connection.execute(f"ALTER TABLE people ALTER {name} TYPE INTEGER")
        for macro in MACROS:
            connection.execute(f"CREATE MACRO {macro}")
        counts = vectorize(frame, domain).counts
        yield Table(domain, lambda text: connection.execute(text).fetchall(), counts)


def check(sql: str, on: Table) -> str:
    """Compare one statement: the outcome in words, which starts with DIFFERS if answers differ."""
    try:
        text = count_people(sql, "person", 1, on.domain, "people")
        with limited(MAX_STEPS):  # as a new question
            statement = compile_anew(Source(text, on.domain, "people"), MAX_QUERIES)
    except QueryError as error:
        try:
            on.ask(sql)
        except duckdb.Error:
            return "both refuse"
        return f"refused: {reason(error.message)}"
    except Exception as error:
        return f"DIFFERS at a crash: {error!r}"
    answers = [query.dot(on.counts) for query in statement.queries]
    try:
        found = compare(statement, answers, list(map(flat, on.ask(sql))))
        if not found:
            return "same answer"
        theirs = list(map(flat, on.ask(by_design(sql))))
        if not compare(statement, answers, theirs):
            return "same answer, where a sum over no rows is 0 and what is undefined NULL"
        if not compare(statement, answers, theirs, slack=1.001):
            return "same answer, but for a double that is rounded"
    except duckdb.Error as error:
        return f"only ours, where DuckDB fails: {str(error).splitlines()[0][:60]}"
    except Exception as error:
        return f"DIFFERS at a crash: {error!r}"
    return found


def flat(row: tuple) -> list:
    """A row with the members of lists as values of their own: the quantiles of a list are columns."""
    return [each for value in row for each in (value if isinstance(value, list) else [value])]


#: Functions that are NULL in DuckDB over no rows, or where a condition is never known, and 0 here.
_ZERO = (exp.Sum, exp.CountIf)
#: Functions that are NaN in DuckDB, and NULL here, where a column is the same in all rows.
_UNDEFINED = (exp.Corr, exp.RegrSlope, exp.RegrIntercept, exp.RegrR2)


def by_design(sql: str) -> str:
    """The statement with sums that are 0 over no rows, and with NULL in the place of NaN."""
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    for found in reversed(list(tree.find_all(*_ZERO, *_UNDEFINED))):
        whole: exp.Expr = found
        while isinstance(whole.parent, exp.Filter | exp.Window) and whole.parent.this is whole:
            whole = whole.parent
        function = "COALESCE({}, 0)" if isinstance(found, _ZERO) else "NULLIF({}, 'NaN'::DOUBLE)"
        own = function.format(whole.sql("duckdb"))
        whole.replace(sqlglot.parse_one(own, dialect="duckdb"))
    return tree.sql("duckdb")


def compare(statement: Statement, answers: list, theirs: list[list], slack: float = 0.0) -> str:
    """Compare the rows of our result with theirs: "" if they agree.

    Ours may have more rows: groups without rows are in it. Those of a result with an order, and those
    that are cut, have to be the same one by one.
    """
    # The ends of a quantile of dates are columns of ours only.
    shown = [at for at, name in enumerate(statement.columns) if not name.endswith((" low", " high"))]
    ours = [[normal(row[at]) for at in shown] for row in statement.rows(answers)]
    theirs = [list(map(normal, row)) for row in theirs]
    if statement.order:
        same = len(ours) == len(theirs) and all(
            all(agree(a, b, slack) for a, b in zip(own, row, strict=True))
            for own, row in zip(ours, theirs, strict=True)
        )
        return "" if same else f"DIFFERS at the order: {ours} instead of {theirs}"
    labels = sum(name.startswith("k") for name in statement.columns)
    found: dict[tuple, list[list]] = {}
    for row in ours:
        found.setdefault(tuple(row[:labels]), []).append(row[labels:])
    for row in theirs:
        key, numbers = tuple(row[:labels]), row[labels:]
        candidates = found.get(key, [])
        if candidates:  # a list of quantiles of no rows is one NULL
            numbers += [None] * (len(candidates[0]) - len(numbers))
        fitting = [
            own
            for own in candidates
            if all(agree(a, b, slack) for a, b in zip(own, numbers, strict=True))
        ]
        if not fitting:
            return f"DIFFERS at {key}: {candidates} instead of {numbers}"
        candidates.remove(fitting[0])
    return ""


def normal(value):
    """A value as both sides can have it."""
    if isinstance(value, dt.datetime):
        return value.date().isoformat()
    if isinstance(value, dt.date):
        return value.isoformat()
    if value is None or isinstance(value, str | bool):
        return value
    number = float(value)
    # Where SQL has NULL for what is not defined, DuckDB may have NaN or infinity.
    return float(f"{number:.9g}") if math.isfinite(number) else None


def agree(ours, theirs, slack: float) -> bool:
    """Whether two values are the same, up to the precision of doubles."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-6) or abs(ours - theirs) <= slack
    return type(ours) is type(theirs) and ours == theirs


#: What refusals say, and the reason that they are counted by.
_REASONS = {
    "takes too long": "expression on too many values",
    "splits the bin": "condition that cuts a bin, a month or a year",
    "Unknown value": "undeclared value of a category",
    "has no order": "order of bins as text",
    "must appear in GROUP BY": "column neither grouped nor aggregated",
}


def reason(message: str) -> str:
    """A message without what is particular to one statement."""
    for part, known in _REASONS.items():
        if part in message:
            return known
    return re.sub(r"\(.*\)|'[^']*'|\"[^\"]*\"|[\d,.]+", "_", message)[:80]


def written(seed: int) -> tuple[str, Domain]:
    """The statement of a seed, and the domain that it is about."""
    writer = Writer(seed)
    if seed % COMPARED:
        return writer.statement(), DOMAIN
    if seed // COMPARED % 2:
        return writer.comparison("dose"), DOSES
    return writer.comparison("stay"), STAYS


def run(count: int, first: int = 0, show: str = "DIFFERS") -> Counter[str]:
    """Check statements by their seeds; print those whose outcome starts with `show`."""
    found: Counter[str] = Counter()
    for start in range(first, first + count, 1000):
        number = start // 1000
        with table(number) as small, table(number, STAYS) as dates, table(number, DOSES) as integers:
            tables = {each.domain: each for each in (small, dates, integers)}
            for seed in range(start, min(start + 1000, first + count)):
                sql, domain = written(seed)
                outcome = check(sql, tables[domain])
                found["DIFFERS" if outcome.startswith("DIFFERS") else outcome] += 1
                if outcome.startswith(("DIFFERS", show)):
                    print(seed, sql, outcome, sep="\n  ", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, help="how many statements")
    parser.add_argument("first", type=int, nargs="?", default=0, help="the seed of the first")
    parser.add_argument("--show", default="DIFFERS", help="print also those whose outcome starts so")
    asked = parser.parse_args()
    for text, number in run(asked.count, asked.first, asked.show).most_common():
        print(f"{number:7,}  {text}")


if __name__ == "__main__":
    main()
