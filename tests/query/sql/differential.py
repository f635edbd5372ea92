"""Statements of the whole grammar, run without noise, against DuckDB's own answers on random tables.

`python -m tests.query.sql.differential 20000` runs that many, and counts refusals by their reasons.
"""

import datetime as dt
import math
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import duckdb
import numpy as np
import sqlglot
from sqlglot import exp

from sharewell import Binned, Boolean, Category, Date, Domain, Integer, Measure
from sharewell.errors import QueryError
from sharewell.query.sql import Statement, compile_anew
from tests.query.sql.oracle import duckdb_with

COLUMNS = Domain(
    [
        Integer("age", 0, 5, bins={"age_group": [0, 2, 4]}),
        Category("region", ["North", "South", "New East"]),
        Boolean("emp", nullable=True),
        Date("d", "2020-01-30", "2020-02-02"),
        Binned("pay", [0, 2, 6]),
    ]
)
#: Every row's wage is twice its age.
WAGE = Measure("wage", "wage", 0, 10, 1, nullable=False)
DOMAIN = Domain(COLUMNS.attributes, [WAGE], [("wage", "wage")])


class Writer:
    """Writes random statements; depth limits how far expressions nest."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self, *options):
        chosen = self.random.choice(options)
        return chosen() if callable(chosen) else chosen

    def number(self) -> str:
        r = self.random
        return self.one(
            "age",
            "age * 2",
            f"age + {r.randint(0, 3)}",
            f"age - {r.randint(0, 3)}",
            f"age % {r.randint(2, 3)}",
            f"age // {r.randint(2, 3)}",
            f"age / {r.choice([2, 4])}",
            "FLOOR(age / 2) * 2",
            "CEIL(age / 2)",
            f"ABS(age - {r.randint(1, 4)})",
            f"ROUND(age * 1.25, {r.randint(0, 1)})",
            "LENGTH(region)",
            "MONTH(d)",
            "EXTRACT(DAY FROM d)",
            "date_part('dow', d)",
            "date_diff('day', DATE '2020-01-01', d)",
            "GREATEST(age, 3)",
            "LEAST(age, 2)",
            "CAST(age AS DOUBLE)",
            "CAST(age / 4 AS INTEGER)",
            "COALESCE(NULLIF(age, 2), 7)",
            "SIGN(age - 2)",
            "-age",
            "POWER(age, 2)",
            lambda: f"CASE WHEN {self.condition(0)} THEN {r.randint(0, 5)} ELSE {r.randint(0, 5)} END",
            lambda: f"IF({self.condition(0)}, 1, 0)",
            "CASE age WHEN 1 THEN 10 WHEN 2 THEN 20 ELSE 0 END",
        )

    def text(self) -> str:
        return self.one(
            "region",
            "UPPER(region)",
            "LOWER(region)",
            "LEFT(region, 1)",
            "RIGHT(region, 2)",
            "SUBSTRING(region, 2, 3)",
            "region || '!'",
            "REPLACE(region, 'o', '0')",
            "REVERSE(region)",
            "age_group",
            "CONCAT(region, '-', age)",
            "CASE region WHEN 'North' THEN 'n' ELSE 'rest' END",
            lambda: f"CASE WHEN {self.condition(0)} THEN 'yes' ELSE 'no' END",
            "monthname(d)",
            "CAST(age AS VARCHAR)",
        )

    def condition(self, depth: int) -> str:
        r = self.random
        compare = r.choice(["<", "<=", ">", ">=", "=", "<>"])
        leaf = [
            lambda: f"{self.number() if depth else 'age'} {compare} {r.randint(0, 5)}",
            "emp",
            "emp IS NOT TRUE",
            "emp IS NULL",
            "emp IS DISTINCT FROM TRUE",
            f"region {compare} '{r.choice(['North', 'South', 'New East'])}'",
            f"region {r.choice(['', 'NOT '])}LIKE '{r.choice(['N%', '%o%', 'S_uth'])}'",
            f"region {r.choice(['', 'NOT '])}ILIKE '{r.choice(['n%', '%O%'])}'",
            f"regexp_matches(region, '{r.choice(['^N', 'th$', '[ae]', 'o.*t|E', 'N?e*w '])}')",
            f"region ~ '{r.choice(['N.*', '.*th', 'S?[Nouth]+'])}'",
            f"d - INTERVAL {r.randint(1, 3)} {r.choice(['DAY', 'WEEK', 'YEAR'])} < DATE '2020-01-01'",
            f"d BETWEEN DATE '2020-01-30' AND DATE '2020-01-30' + INTERVAL {r.randint(0, 3)} DAY",
            f"d - DATE '2020-01-30' {compare} {r.randint(0, 3)}",
            f"QUARTER(d) = 1 AND dayofweek(d) {compare} {r.randint(0, 6)}",
            f"region SIMILAR TO '{r.choice(['N.*', '.*th'])}'",
            f"age IN ({r.randint(0, 5)}, {r.randint(0, 5)})",
            f"age {r.choice(['', 'NOT '])}BETWEEN {r.randint(0, 3)} AND {r.randint(2, 5)}",
            f"d {compare} DATE '2020-01-31'",
            f"d + INTERVAL {r.randint(1, 2)} {r.choice(['DAY', 'MONTH'])} {compare} DATE '2020-02-02'",
            "date_trunc('month', d) = DATE '2020-02-01'",
            "age = MONTH(d)",
            f"pay {r.choice(['<', '>='])} 2",
            lambda: f"{self.text()} = 'n'" if depth else "age_group = '0-1'",
        ]
        if depth and r.random() < 0.4:
            parts = self.condition(depth - 1), self.condition(depth - 1)
            return self.one(
                f"({parts[0]} AND {parts[1]})", f"({parts[0]} OR {parts[1]})", f"NOT ({parts[0]})"
            )
        return self.one(*leaf)

    def aggregate(self) -> str:
        r = self.random
        return self.one(
            "COUNT(*)",
            "COUNT(*)",
            "COUNT(emp)",
            lambda: f"SUM({self.number()})",
            lambda: f"AVG({self.number()})",
            lambda: f"COUNT(*) FILTER (WHERE {self.condition(1)})",
            lambda: f"COUNT_IF({self.condition(1)})",
            lambda: f"SUM(CASE WHEN {self.condition(1)} THEN {self.number()} ELSE 0 END)",
            lambda: f"COALESCE(SUM({self.number()}) FILTER (WHERE {self.condition(0)}), 0)",
            "SUM(pay)",
            "AVG(pay)",
            "SUM(wage)",
            "AVG(wage)",
            "COUNT(wage)",
            lambda: f"COALESCE(SUM(wage) FILTER (WHERE {self.condition(1)}), 0)",
            "MEDIAN(age)",
            f"QUANTILE_CONT(age, {r.choice(['0.1', '0.5', '0.75', '0.9'])})",
            f"QUANTILE_DISC(age, {r.choice(['0.1', '0.5', '0.75', '0.9'])})",
            f"PERCENTILE_CONT({r.choice(['0.25', '0.5'])}) WITHIN GROUP (ORDER BY age)",
            f"{r.choice(['STDDEV', 'VARIANCE', 'STDDEV_POP', 'VAR_POP'])}({r.choice(['age', 'wage'])})",
            f"{self.one('SUM', 'AVG')}({self.one('wage * wage', 'wage ** 2', '(wage - 3) * wage')})",
            f"{r.choice(['COVAR_POP', 'COVAR_SAMP'])}({r.choice(['wage, age', 'age, wage'])})",
        )

    def result(self, depth: int, grouped: bool) -> str:
        if depth == 0 or self.random.random() < 0.35:
            return self.aggregate()
        r = self.random

        def part() -> str:
            return self.result(depth - 1, grouped)

        options: list = [
            lambda: f"({part()} + {part()})",
            lambda: f"({part()} - {part()})",
            lambda: f"100.0 * {self.aggregate()} / NULLIF(COUNT(*), 0)",
            lambda: f"ROUND({part()}, {r.randint(0, 2)})",
            lambda: f"ABS({part()} - {r.randint(0, 50)})",
            lambda: f"COALESCE({part()}, 0)",
            lambda: f"GREATEST({part()}, {r.randint(0, 50)})",
            lambda: f"LEAST({part()}, {part()})",
            lambda: f"{r.randint(2, 5)} * {part()}",
            lambda: f"{part()} / {r.randint(2, 5)}",
            lambda: f"CASE WHEN {part()} > {r.randint(0, 60)} THEN {part()} ELSE 0 END",
            lambda: f"SQRT(ABS({part()}))",
            lambda: f"CAST(COUNT(*) AS {r.choice(['DOUBLE', 'BIGINT'])})",
        ]
        if grouped:
            options += [
                "COUNT(*) / SUM(COUNT(*)) OVER ()",
                "SUM(COUNT(*)) OVER ()",
            ]
        return self.one(*options)

    def statement(self) -> str:
        """One statement; labels come first, then numbers."""
        chance = self.random.random()
        if chance < 0.12:
            return self.union()
        if chance < 0.24:
            return self.ordered()
        if chance < 0.36:
            return self.windowed()
        if chance < 0.40:
            return self.quantiles()
        if chance < 0.43:
            return self.lines()
        return self.aggregated()

    def grouped(self, columns: list[str], items: list[str], where: str = "") -> str:
        keys = [f"{column} AS k{at}" for at, column in enumerate(columns)]
        by = f" GROUP BY {', '.join(f'k{at}' for at in range(len(columns)))}" if columns else ""
        condition = f" WHERE {where}" if where else ""
        return f"SELECT {', '.join([*keys, *items])} FROM people{condition}{by}"

    def columns(self) -> list[str]:
        return self.random.sample(["region", "age", "age_group", "emp"], self.random.randint(1, 2))

    def union(self) -> str:
        """Two or three SELECTs, one below the other."""
        r = self.random
        value = self.one(
            lambda: "COUNT(*)",
            lambda: "SUM(age)",
            lambda: "SUM(wage)",
            lambda: "AVG(wage)",
            lambda: f"ROUND(100.0 * COUNT(*) FILTER (WHERE {self.condition(0)}) / COUNT(*), 1)",
            lambda: "COUNT(*) - 3 * SUM(age)",
        )
        label = self.one("region", "age_group", "'all'", "UPPER(region)")
        parts = []
        for _ in range(r.randint(2, 3)):
            key = self.one(label, "'total'", "LOWER(region)")
            group = "" if key.startswith("'") else " GROUP BY k0"
            parts.append(f"SELECT {key} AS k0, {value} AS v0 FROM people{group}")
        return " UNION ALL ".join(parts)

    def ordered(self) -> str:
        """A result whose rows have an order, and some of them."""
        r = self.random
        columns = self.columns()
        sql = self.grouped(columns, [f"{self.one('COUNT(*)', 'SUM(age)', 'AVG(age)')} AS v0"])
        names = [f"k{at}" for at in range(len(columns))]
        nulls = self.one("", " NULLS FIRST", " NULLS LAST")
        sql += f" ORDER BY v0{self.one('', ' DESC')}, {', '.join(name + nulls for name in names)}"
        if r.random() < 0.7:
            sql += f" LIMIT {r.randint(0, 8)}"
        return sql + (f" OFFSET {r.randint(0, 4)}" if r.random() < 0.4 else "")

    def windowed(self) -> str:
        """Ranks, running totals and shares of totals."""
        columns = self.columns()
        by = self.one("COUNT(*)", "SUM(age)", "COUNT(*) - SUM(age)")
        order = f"ORDER BY {by}{self.one('', ' DESC')}"
        part = "PARTITION BY k0 " if len(columns) == 2 and self.random.random() < 0.5 else ""
        last = f"k{len(columns) - 1}"
        first = "" if part or len(columns) == 1 else "k0, "
        item = self.one(
            f"{self.one('RANK', 'DENSE_RANK')}() OVER ({part}{order})",
            f"SUM({by}) OVER ({part}ORDER BY {first}{last})",
            f"100.0 * COUNT(*) / SUM(COUNT(*)) OVER ({part.strip()})",
            f"AVG({by}) OVER ({part.strip()})",
            f"{by} - AVG({by}) OVER ({part.strip()})",
            f"{self.one('SUM', 'AVG')}({by}) OVER ({part}ORDER BY {first}{last} ROWS {self.frame()})",
        )
        return self.grouped(columns, [f"{item} AS v0"])

    def frame(self) -> str:
        """Rows around the current one, which is among them."""
        r = self.random
        before = self.one("UNBOUNDED PRECEDING", f"{r.randint(0, 3)} PRECEDING", "CURRENT ROW")
        after = self.one("UNBOUNDED FOLLOWING", f"{r.randint(0, 3)} FOLLOWING", "CURRENT ROW")
        return f"BETWEEN {before} AND {after}"

    def quantiles(self) -> str:
        """Lists of quantiles, which are several columns here and one list in DuckDB."""
        r = self.random
        fractions = ", ".join(sorted(r.sample(["0.1", "0.25", "0.5", "0.6", "0.9"], r.randint(2, 3))))
        name = self.one("QUANTILE_CONT", "QUANTILE_DISC")
        columns = self.columns()[:1] if r.random() < 0.6 else []
        return self.grouped(columns, [f"{name}(age, [{fractions}]) AS v0"])

    def lines(self) -> str:
        """Correlations and lines, which DuckDB gives as NaN where a column is constant."""
        name = self.one("CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_COUNT")
        pair = self.one("wage, age", "age, wage", "wage, wage")
        columns = self.columns()[:1] if self.random.random() < 0.6 else []
        return self.grouped(columns, [f"{name}({pair}) AS v0"], self.one("", self.condition(1)))

    def aggregated(self) -> str:
        """Aggregates and what is computed from them, by groups of expressions."""
        r = self.random
        keys = [
            self.one(self.number, self.text, lambda: self.condition(1)) for _ in range(r.randint(0, 2))
        ]
        names = [f"k{at}" for at in range(len(keys))]
        values = [self.result(2, bool(keys)) for _ in range(r.randint(1, 2))]
        items = [*(f"{key} AS {name}" for key, name in zip(keys, names, strict=True))]
        items += [f"{value} AS v{at}" for at, value in enumerate(values)]
        source = self.one(
            "people", "people", "main.people", "people p", "(SELECT * FROM people WHERE age < 5) t"
        )
        sql = f"SELECT {', '.join(items)} FROM {source}"
        if r.random() < 0.4:
            sql += f" WHERE {self.condition(2)}"
        if keys:
            by = self.one(", ".join(names), ", ".join(str(at + 1) for at in range(len(keys))), "ALL")
            windows = "OVER" in sql
            if not windows and r.random() < 0.2:
                by = f"{r.choice(['ROLLUP', 'CUBE'])} ({', '.join(names)})"
            sql += f" GROUP BY {by}"
        if r.random() < 0.15:
            sql += f" HAVING COUNT(*) > {r.randint(0, 30)}"
        if r.random() < 0.15:
            sql = f"WITH q AS ({sql}) SELECT * FROM q"
        return sql


def normal(value):
    if isinstance(value, dt.datetime):
        return value.date().isoformat()
    if isinstance(value, dt.date):
        return value.isoformat()
    return value if value is None or isinstance(value, str | bool) else float(value)


def agree(ours, theirs, sql: str) -> bool:
    if theirs is None or (isinstance(theirs, float) and not math.isfinite(theirs)):
        # The sum over no rows is 0 here, and NULL in SQL.
        return True
    if isinstance(theirs, str | bool) or ours is None:
        return ours == theirs
    # A double that is rounded may lie on the other side of a half.
    slack = 10.0 if "ROUND(" in sql or "CAST(" in sql else 0.0
    rounded = slack and abs(ours - theirs) <= 1.001 * max(1.0, 1.0)
    return math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-6) or bool(rounded)


def check(sql: str, ask, counts: np.ndarray) -> str:
    """Compare one statement: "" if both agree, the reason of a refusal, or a difference."""
    try:
        statement = compile_anew(sql, DOMAIN, "people")
    except QueryError as error:
        try:
            ask(sql)
        except duckdb.Error:
            return "both refuse"
        return f"refused: {reason(error.message)}"
    answers = [query.dot(counts) for query in statement.queries]
    try:
        found = compare(statement, answers, list(map(flat, ask(sql))), sql)
        if found and not compare(statement, answers, list(map(flat, ask(with_zeros(sql)))), sql):
            return "differs by design: a sum over no rows is 0"
    except duckdb.Error as error:
        return f"only ours: {str(error).splitlines()[0][:60]}"
    return found


def flat(row: tuple) -> list:
    """A row with the members of lists as values of their own: the quantiles of a list are columns."""
    return [each for value in row for each in (value if isinstance(value, list) else [value])]


def with_zeros(sql: str) -> str:
    """The statement with sums that are 0 over no rows."""
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    for found in reversed(list(tree.find_all(exp.Sum))):
        whole: exp.Expr = found
        while isinstance(whole.parent, exp.Filter | exp.Window) and whole.parent.this is whole:
            whole = whole.parent
        whole.replace(exp.Coalesce(this=whole.copy(), expressions=[exp.Literal.number(0)]))
    return tree.sql("duckdb")


def compare(statement: Statement, answers: list, theirs: list, sql: str) -> str:
    """Compare the rows of our result with theirs: "" if they agree."""
    ours = statement.rows(answers)
    if "ORDER BY v0" in sql and not _same_order(ours, theirs):
        return f"DIFFERS at the order: {ours} instead of {theirs}"
    labels = sum(name.startswith("k") for name in statement.columns)
    found: dict[tuple, list[list]] = {}
    for row in ours:
        found.setdefault(tuple(map(normal, row[:labels])), []).append(list(map(normal, row[labels:])))
    for row in theirs:
        key, numbers = tuple(map(normal, row[:labels])), list(map(normal, row[labels:]))
        candidates = found.get(key, [])
        if not any(
            all(agree(a, b, sql) for a, b in zip(own, numbers, strict=True)) for own in candidates
        ):
            if not labels and not any(answers):
                return ""  # Sums over no rows are 0 here, and NULL in SQL.
            return f"DIFFERS at {key}: {candidates} instead of {numbers}"
    return ""


def _same_order(ours, theirs) -> bool:
    """Whether two results have the same rows in the same order."""
    if len(ours) != len(theirs):
        return False
    return all(
        all(agree(a, b, "") for a, b in zip(map(normal, own), map(normal, row), strict=True))
        for own, row in zip(ours, theirs, strict=True)
    )


def reason(message: str) -> str:
    """A message without what is particular to one statement."""
    if "takes too long" in message:
        return "expression on too many values"
    if "must appear in GROUP BY" in message:
        return "column neither grouped nor aggregated"
    return re.sub(r"\(.*\)|'[^']*'|\"[^\"]*\"|[\d,.]+", "_", message)[:80]


@contextmanager
def table(seed: int = 0) -> Iterator[tuple[Callable[[str], list[tuple]], np.ndarray]]:
    """DuckDB with random rows, and the counts and sums that they are here."""
    cells = np.random.default_rng(seed).integers(1, 3, COLUMNS.size)
    ages = np.indices(COLUMNS.shape)[0].ravel()
    # The second vector has the sums of wages, less 5 for each row: the middle of the bounds. The third
    # has those of their squares, each less the middle of its own.
    centred = 2 * ages - 5
    [square] = DOMAIN.product_vectors
    counts = np.stack([cells, cells * centred, cells * (centred**2 - square.middle)], axis=-1).ravel()
    with duckdb_with(COLUMNS, cells) as ask:
        ask("ALTER TABLE people ADD COLUMN wage INTEGER")
        ask("UPDATE people SET wage = 2 * age")
        yield ask, counts


def run(count: int, first: int = 0) -> Counter[str]:
    """Check statements by their seeds; print what differs."""
    found: Counter[str] = Counter()
    with table(first) as (ask, counts):
        for seed in range(first, first + count):
            sql = Writer(seed).statement()
            outcome = check(sql, ask, counts)
            kind = outcome.split(" at ")[0] if outcome.startswith("DIFFERS") else outcome
            found[kind or "same answer"] += 1
            if outcome.startswith("DIFFERS"):
                print(seed, sql, outcome, sep="\n  ")
    return found


if __name__ == "__main__":
    for text, number in run(
        int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    ).most_common():
        print(f"{number:7,}  {text}")
