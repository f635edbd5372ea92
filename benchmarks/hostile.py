"""Texts of up to 100,000 characters that are meant to take long to compile.

`python -m benchmarks.hostile [PART OF A NAME]` prints the CPU time of each, compiled as a new question.
"""

import sys
import time
from collections.abc import Callable, Iterator

from sharewell import Boolean, Category, Date, Domain, Integer, Measure, datasets
from sharewell.errors import QueryError
from sharewell.gc_tuning import tune_gc
from sharewell.query.diagram import limited
from sharewell.query.sql import MAX_STEPS, compile_anew
from sharewell.query.sql.text import MAX_TEXT, Source

#: How many numbers the service lets a question ask for.
MOST = 10_000
CENSUS = datasets.massachusetts().domain
CODES = [f"I{number:05}" for number in range(20_000)]
DOMAINS = {
    "census": CENSUS,
    "codes": Domain([Category("code", CODES), Category("sex", ["F", "M"]), Integer("age", 0, 120)]),
    "wide": Domain([Category(f"c{i}", ["a", "b", "c", "d"], nullable=True) for i in range(100)]),
    "integers": Domain(
        [Integer("a", 0, 2_000), Integer("b", 0, 2_000), Integer("c", -50, 50, other="?")]
    ),
    "visits": Domain(
        [
            Date("admitted", "2000-01-01", "2023-12-31", by="month"),
            Date("discharged", "2020-01-01", "2023-12-31", by="day"),
            Boolean("died", nullable=True),
            Integer("age", 0, 110),
        ],
        [
            Measure("wage", "wage", low=0, high=100_000, step=10),
            Measure("hours", "hours", low=0, high=100, step=1, nullable=True),
        ],
        [("wage", "hours"), ("wage", "wage"), ("hours", "hours")],
    ),
}
SCHOOLING = CENSUS["schooling"].labels

Part = Callable[[int], str]


def filled(before: str, part: Part, between: str = ", ", after: str = "", *, step: int = 1) -> str:
    """Repeat a part as often as fits into the longest text."""
    parts: list[str] = []
    left = MAX_TEXT - len(before) - len(after) - 10
    for i in range(MAX_TEXT):
        made = part(i * step)
        left -= len(made) + len(between)
        if left < 0:
            break
        parts.append(made)
    return before + between.join(parts) + after


def nested(before: str, opening: str, inner: str, closing: str, after: str, count: int) -> str:
    return before + opening * count + inner + closing * count + after


COUNT = "SELECT COUNT(*) FROM people WHERE "
PEOPLE = " FROM people"


def texts() -> Iterator[tuple[str, str, str]]:
    """Yield the name, the name of the domain and the text of each."""

    def where(part: Part, between: str) -> str:
        return filled(COUNT, part, between)

    def select(part: Part, after: str = PEOPLE) -> str:
        return filled("SELECT ", part, ", ", after)

    def case(part: Part, after: str = " END) FROM people", before: str = "SELECT SUM(CASE ") -> str:
        return filled(before, part, " ", after)

    def label(i: int) -> str:
        return SCHOOLING[i * i % 9]

    yield (
        "case of two columns",
        "census",
        case(lambda i: f"WHEN age = {i * 37 % 86} AND schooling = '{label(i)}' THEN {i}"),
    )
    yield (
        "case, average",
        "census",
        case(
            lambda i: f"WHEN age = {i * 37 % 86} AND schooling = '{label(i)}' THEN {i}",
            before="SELECT AVG(CASE ",
        ),
    )
    yield (
        "case of columns",
        "census",
        case(lambda i: f"WHEN age = {i * 37 % 86} AND schooling = '{label(i)}' THEN age"),
    )
    yield "case of fractions", "census", case(lambda i: f"WHEN age = {i * 37 % 86} THEN {i}.{i}7")
    yield (
        "case of all columns",
        "census",
        case(
            lambda i: (
                f"WHEN age={i * 37 % 86} AND schooling='{label(i)}' AND race='white' "
                f"AND marital='widowed' AND sex='male' AND moved THEN {i}"
            )
        ),
    )
    yield (
        "case of ORs",
        "census",
        case(lambda i: f"WHEN age={i * 37 % 86} OR schooling='{label(i)}' THEN {i}"),
    )
    yield (
        "case of NOTs",
        "census",
        case(lambda i: f"WHEN NOT (age={i * 37 % 86} AND schooling='{label(i)}') THEN {i}"),
    )
    yield "case of short branches", "census", case(lambda i: f"WHEN age={i % 86} THEN {i}")
    yield (
        "case of an operand",
        "census",
        case(lambda i: f"WHEN {i} THEN {i}", before="SELECT SUM(CASE age "),
    )
    yield (
        "case grouped",
        "census",
        filled(
            "SELECT COUNT(*) FROM people GROUP BY CASE ",
            lambda i: f"WHEN age = {i % 86} THEN '{i}'",
            " ",
            " END",
        ),
    )
    yield (
        "case grouped and selected",
        "census",
        (lambda c: f"SELECT {c}, COUNT(*) FROM people GROUP BY {c}")(
            "CASE " + " ".join(f"WHEN age = {i % 86} THEN '{i}'" for i in range(1_900)) + " END"
        ),
    )
    yield (
        "case over two columns grouped",
        "census",
        filled(
            "SELECT COUNT(*) FROM people GROUP BY CASE ",
            lambda i: f"WHEN age = {i % 86} AND sex = 'male' THEN {i}",
            " ",
            " END",
        ),
    )
    yield (
        "case in HAVING",
        "census",
        filled(
            "SELECT COUNT(*) FROM people HAVING CASE ",
            lambda i: f"WHEN COUNT(*) > {i} THEN TRUE",
            " ",
            " END",
        ),
    )
    yield (
        "case in WHERE",
        "census",
        filled(COUNT + "CASE ", lambda i: f"WHEN age = {i % 86} THEN {i}", " ", " END > 7"),
    )
    yield "case of codes", "codes", case(lambda i: f"WHEN code = '{CODES[i * 7 % 20_000]}' THEN {i}")
    yield (
        "case of codes and ages",
        "codes",
        case(lambda i: f"WHEN code = '{CODES[i * 7 % 20_000]}' AND age = {i % 120} THEN {i}"),
    )
    yield "case of wide columns", "wide", case(lambda i: f"WHEN c{i % 100} = 'a' THEN {i}")
    yield (
        "case of wide pairs",
        "wide",
        case(lambda i: f"WHEN c{i % 100} = 'a' AND c{(i * 7 + 3) % 100} = 'b' THEN {i}"),
    )
    yield "ANDs", "census", where(lambda i: f"age <> {i % 86}", " AND ")
    yield "ORs", "census", where(lambda i: f"age = {i % 86}", " OR ")
    yield (
        "ORs of ANDs",
        "census",
        where(lambda i: f"age = {i * 37 % 86} AND schooling = '{label(i)}'", " OR "),
    )
    yield (
        "ANDs of ORs",
        "census",
        where(lambda i: f"(age = {i * 37 % 86} OR schooling = '{label(i)}')", " AND "),
    )
    yield (
        "ORs of wide pairs",
        "wide",
        where(lambda i: f"c{i % 100} = 'a' AND c{(i * 7 + 3) % 100} = 'b'", " OR "),
    )
    yield (
        "ANDs of wide ORs",
        "wide",
        where(lambda i: f"(c{i % 100} = 'a' OR c{(i * 7 + 3) % 100} = 'b')", " AND "),
    )
    yield "wide conditions", "wide", where(lambda i: f"c{i % 100} <> 'a'", " AND ")
    yield "wide columns compared", "wide", where(lambda i: f"c{i % 100} = c{(i + 1) % 100}", " AND ")
    yield "NOTs", "census", where(lambda i: f"NOT (age = {i % 80})", " OR ")
    yield "NOTs of ANDs", "census", where(lambda i: f"NOT (age = {i % 80} AND moved)", " AND ")
    yield "IS NULL of ANDs", "census", where(lambda i: f"(age = {i % 80} AND moved) IS NULL", " OR ")
    yield "IS TRUE of ORs", "census", where(lambda i: f"(age = {i % 80} OR moved) IS TRUE", " AND ")
    yield "BETWEEN", "census", where(lambda i: f"age BETWEEN {i % 80} AND {i % 80 + 3}", " OR ")
    yield "IN of numbers", "census", filled(COUNT + "age IN (", lambda i: str(i % 86), ",", ")")
    yield (
        "IN of codes",
        "codes",
        filled(COUNT + "code IN (", lambda i: f"'{CODES[i % 20_000]}'", ",", ")"),
    )
    yield "IN of expressions", "census", filled(COUNT + "age + 1 IN (", lambda i: str(i % 86), ",", ")")
    yield (
        "IN of unknown labels",
        "census",
        filled(COUNT + "schooling IN (", lambda i: f"'x{i}'", ",", ")"),
    )
    yield "ORs of codes", "codes", where(lambda i: f"code = '{CODES[i % 20_000]}'", " OR ")
    yield "ranges of codes", "codes", where(lambda i: f"code < '{CODES[i % 20_000]}'", " OR ")
    yield "LIKE on codes", "codes", where(lambda i: f"code LIKE '%{i}%'", " OR ")
    yield "LIKE on labels", "census", where(lambda i: f"schooling LIKE '%{i}%'", " OR ")
    yield "ILIKE on labels", "census", where(lambda i: f"schooling ILIKE '%a{i}%'", " OR ")
    yield "one long LIKE", "codes", COUNT + "code LIKE '" + "%0" * 49_000 + "%'"
    yield "LIKE of underscores", "codes", COUNT + "code LIKE '" + "%_" * 49_000 + "%'"
    yield "regular expressions", "census", where(lambda i: f"schooling ~ '{i}.*a'", " OR ")
    yield "one long regular expression", "codes", COUNT + "code ~ '" + "(0|1)*" * 16_000 + "'"
    yield (
        "regular alternatives",
        "codes",
        filled(COUNT + "code ~ '", CODES.__getitem__, "|", "'", step=1),
    )
    yield "regular classes", "codes", COUNT + "code ~ '" + "[0-9]?" * 900 + "'"
    yield "arithmetic", "census", where(lambda i: f"age + {i} > {i + 3}", " OR ")
    yield "a long sum", "census", filled(COUNT, lambda i: "age", " + ", " > 3")
    yield "a sum of constants", "census", filled(COUNT + "age > ", str, " + ")
    yield "a product of constants", "census", filled(COUNT + "age > ", lambda i: "7", " * ")
    yield "a long concatenation", "census", filled(COUNT, lambda i: "schooling", " || ", " = 'x'")
    yield "functions", "census", where(lambda i: f"ABS(age - {i}) < 3", " OR ")
    yield "texts", "codes", where(lambda i: f"UPPER(code) = '{CODES[i % 20_000]}'", " OR ")
    yield "replacements", "codes", where(lambda i: f"REPLACE(code,'{i}','')='0'", " OR ")
    yield "many COALESCE", "census", filled(COUNT + "COALESCE(", lambda i: "age", ",", ") > 3")
    yield "many GREATEST", "census", filled(COUNT + "GREATEST(", lambda i: f"age+{i}", ",", ") > 3")
    yield "two columns compared", "integers", where(lambda i: f"a > b + {i}", " OR ")
    yield "two columns added", "integers", where(lambda i: f"a + b > {i}", " OR ")
    yield "three columns", "integers", where(lambda i: f"a + c > {i}", " AND ")
    yield "dates compared", "visits", where(lambda i: f"discharged - admitted > {i % 900}", " OR ")
    yield (
        "months",
        "visits",
        where(lambda i: f"date_trunc('month', discharged) > DATE '2022-0{i % 9 + 1}-01'", " OR "),
    )
    yield (
        "durations",
        "visits",
        where(lambda i: f"discharged + INTERVAL {i % 99} DAY > DATE '2022-01-01'", " OR "),
    )
    yield (
        "date ranges",
        "visits",
        where(lambda i: f"discharged > DATE '202{i % 4}-01-0{i % 9 + 1}'", " OR "),
    )
    yield "many counts", "census", select(lambda i: "COUNT(*)")
    yield (
        "many filters",
        "census",
        select(lambda i: f"COUNT(*) FILTER (WHERE age <= {i % 80} AND schooling = '{label(i)}')"),
    )
    yield "many sums", "census", select(lambda i: f"SUM(age + {i})")
    yield "many averages", "census", select(lambda i: f"AVG(CASE WHEN age > {i % 86} THEN age END)")
    yield "many ratios", "census", select(lambda i: f"COUNT(*)/{i + 1}")
    yield "one long formula", "census", filled("SELECT ", lambda i: "COUNT(*)", " + ", PEOPLE)
    yield "one long ratio", "census", filled("SELECT ", lambda i: "COUNT(*)", " / ", PEOPLE)
    yield "one formula of sums", "census", filled("SELECT ", lambda i: f"SUM(age+{i})", " + ", PEOPLE)
    yield "many unknown functions", "census", select(lambda i: f"foo{i}(age)")
    yield "many unknown columns", "census", select(lambda i: f"COUNT(foo{i})")
    yield "unknown conditions", "census", where(lambda i: f"foo{i} = 1", " AND ")
    yield "unknown values", "census", where(lambda i: f"schooling = 'x{i}'", " OR ")
    yield "unknown codes", "codes", where(lambda i: f"code = 'I{i}x'", " OR ")
    yield "measures", "visits", select(lambda i: f"SUM(wage) FILTER (WHERE age > {i % 110})")
    yield "spreads", "visits", select(lambda i: f"STDDEV(wage) FILTER (WHERE age > {i % 110})")
    yield "correlations", "visits", select(lambda i: "CORR(wage, hours)")
    yield "correlations with ages", "visits", select(lambda i: f"CORR(wage, age + {i})")
    yield "squares", "visits", select(lambda i: f"SUM(wage * wage + {i})")
    yield (
        "polynomials",
        "visits",
        filled("SELECT SUM(", lambda i: f"wage*hours*{i}", " + ", ")" + PEOPLE),
    )
    yield (
        "quantiles of a list",
        "census",
        filled("SELECT QUANTILE_CONT(age, [", lambda i: f"0.{i + 1}", ",", "])" + PEOPLE),
    )
    yield "quantiles", "census", select(lambda i: f"QUANTILE_CONT(age, 0.{i + 1})")
    yield "quantiles filtered", "census", select(lambda i: f"MEDIAN(age) FILTER (WHERE age > {i % 86})")
    yield "grouped columns", "census", filled("SELECT COUNT(*) FROM people GROUP BY ", lambda i: "sex")
    yield (
        "grouped expressions",
        "census",
        filled("SELECT COUNT(*) FROM people GROUP BY ", lambda i: f"age + {i}"),
    )
    yield (
        "grouped expressions selected",
        "census",
        (lambda g: f"SELECT {g}, COUNT(*) FROM people GROUP BY {g}")(
            ", ".join(f"age + {i}" for i in range(1_600))
        ),
    )
    yield (
        "rolled up",
        "census",
        filled("SELECT COUNT(*) FROM people GROUP BY ROLLUP (", lambda i: f"age + {i}", ", ", ")"),
    )
    yield (
        "grouping sets",
        "census",
        filled(
            "SELECT COUNT(*) FROM people GROUP BY GROUPING SETS (", lambda i: "(sex, race)", ", ", ")"
        ),
    )
    yield (
        "labels over many groups",
        "census",
        filled(
            "SELECT age, race, COUNT(*) FROM people GROUP BY age, race ORDER BY ", lambda i: f"age + {i}"
        ),
    )
    yield (
        "orders",
        "census",
        filled("SELECT age, COUNT(*) AS n FROM people GROUP BY age ORDER BY ", lambda i: f"n + {i}"),
    )
    yield (
        "functions of groups",
        "census",
        filled(
            "SELECT age, COUNT(*) AS n FROM people GROUP BY age ORDER BY ", lambda i: f"ABS(n - {i})"
        ),
    )
    yield (
        "HAVING of counts",
        "census",
        filled("SELECT COUNT(*) FROM people HAVING ", lambda i: f"COUNT(*) > {i}", " OR "),
    )
    yield (
        "HAVING of labels",
        "census",
        filled("SELECT age, COUNT(*) FROM people GROUP BY age HAVING ", lambda i: f"age > {i}", " OR "),
    )
    yield (
        "HAVING of filters",
        "census",
        filled(
            "SELECT COUNT(*) FROM people HAVING ",
            lambda i: f"COUNT(*) FILTER (WHERE age = {i % 86}) > {i}",
            " OR ",
        ),
    )
    yield (
        "windows",
        "census",
        filled(
            "SELECT age, ",
            lambda i: f"SUM(COUNT(*)) OVER (ORDER BY age) + {i}",
            ", ",
            PEOPLE + " GROUP BY age",
        ),
    )
    yield (
        "ranks",
        "census",
        filled(
            "SELECT age, ",
            lambda i: "RANK() OVER (ORDER BY COUNT(*) DESC)",
            ", ",
            PEOPLE + " GROUP BY age",
        ),
    )
    yield (
        "moving windows",
        "census",
        filled(
            "SELECT age, ",
            lambda i: f"SUM(COUNT(*)) OVER (ORDER BY age ROWS BETWEEN {i} PRECEDING AND CURRENT ROW)",
            ", ",
            PEOPLE + " GROUP BY age",
        ),
    )
    yield "unions", "census", filled("", lambda i: "SELECT COUNT(*) FROM people", " UNION ALL ")
    yield (
        "unions of groups",
        "census",
        filled(
            "",
            lambda i: f"SELECT age, COUNT(*) FROM people WHERE age <> {i % 86} GROUP BY age",
            " UNION ALL ",
        ),
    )
    yield (
        "subqueries",
        "census",
        filled(
            "WITH t0 AS (SELECT age AS a FROM people)",
            lambda i: f", t{i + 1} AS (SELECT a + 1 AS a FROM t{i})",
            "",
            " SELECT COUNT(*) FROM t0 WHERE a > 3",
        ),
    )
    yield (
        "a chain of subqueries",
        "census",
        (
            "WITH t0 AS (SELECT age AS a FROM people)"
            + "".join(f", t{i + 1} AS (SELECT a + 1 AS a FROM t{i})" for i in range(2_000))
            + " SELECT COUNT(*) FROM t2000 WHERE a > 3"
        ),
    )
    yield (
        "a subquery of many columns",
        "census",
        filled(
            "SELECT COUNT(*) FROM (SELECT ",
            lambda i: f"age + {i} AS a{i}",
            ", ",
            " FROM people) AS t WHERE a7 > 3",
        ),
    )
    yield (
        "aliases",
        "census",
        filled("SELECT COUNT(*) AS a0, ", lambda i: f"GREATEST(a{i}, a{i}) AS a{i + 1}", ", ", PEOPLE),
    )
    yield "many aliases", "census", select(lambda i: f"COUNT(*) AS a{i}")
    yield "parentheses", "census", nested(COUNT, "(", "age = 3", ")", "", 49_000)
    yield "parentheses of conditions", "census", where(lambda i: "((((((((((age = 3))))))))))", " OR ")
    yield "signs", "census", COUNT + "age = " + "- " * 49_000 + "3"
    yield "unclosed parentheses", "census", COUNT + "(" * 99_000
    yield "unclosed quote", "census", COUNT + "schooling = '" + "a" * 99_000
    yield "commas", "census", "SELECT " + "," * 99_000 + PEOPLE
    yield "operators", "census", COUNT + "age " + "= " * 49_000
    yield "names", "census", COUNT + "age " * 24_000
    yield "numbers", "census", COUNT + "1 " * 49_000
    yield "stars", "census", "SELECT " + "*" * 99_000
    yield "one long name", "census", f"SELECT {'a' * 99_000} FROM people"
    yield "one long number", "census", COUNT + "age = " + "9" * 99_000
    yield "one long string", "census", COUNT + f"schooling = '{'a' * 99_000}'"
    yield "spaces", "census", COUNT + " " * 98_000 + "age = 3"
    yield "comments", "census", COUNT + "/* */ " * 16_000 + "age = 3"
    yield "quotes", "census", COUNT + "schooling = '" + "''" * 49_000 + "'"
    yield "semicolons", "census", "SELECT COUNT(*) FROM people" + ";" * 99_000


def cpu(domain: str, text: str) -> tuple[float, str]:
    """Return the CPU time of compiling a text as a new question, and how it ended."""
    start = time.process_time()
    try:
        with limited(MAX_STEPS):
            compile_anew(Source(text, DOMAINS[domain], "people"), MOST)
        end = "compiled"
    except QueryError as error:
        end = str(error)[:60]
    return time.process_time() - start, end


def main(part: str = "") -> None:
    tune_gc()  # as the server does
    times: list[float] = []
    for name, domain, text in texts():
        if part in name:
            taken, end = cpu(domain, text)
            times.append(taken)
            print(f"{taken:7.3f} s  {len(text):6}  {name:32} {end}", flush=True)
    print(f"{max(times):7.3f} s at most, of {len(times)} texts")


if __name__ == "__main__":
    main(*sys.argv[1:])
