"""Hypothesis strategies for SQL: noise, soup, broken and whole statements on `people`."""

from __future__ import annotations

from hypothesis import strategies as st
from sqlglot import tokenize

NAMES = ["age", "sex", "people", "agee", "p", '"age"', '"AGE"', '"', "n"]
KEYWORDS = """
    SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET AS AND OR NOT IN IS NULL TRUE FALSE BETWEEN LIKE
    ESCAPE CASE WHEN THEN ELSE END FILTER COUNT SUM AVG COUNT(*) SUM(age) AVG(age) ISNULL NOTNULL DATE
    CAST ASC DESC NULLS FIRST LAST DISTINCT UNION JOIN ON WITH OVER EXISTS VALUES INSERT DROP TABLE
    PRAGMA ATTACH read_csv COPY CALL SET EXPLAIN INTERVAL ALL ANY LATERAL PIVOT UNPIVOT QUALIFY USING
"""
PUNCTUATION = """
    ( ) , . * + - / = <> != < <= > >= :: ; ? $1 :x @x -- /* */ || -> [ ] { } \\ ! # ~ ^ & | ' '' $$ $a$
    E'x' x'00' b'1' N'x' 'F' 'M' 'é' "x"
"""
WORDS, SIGNS = KEYWORDS.split(), PUNCTUATION.split()
NUMBERS = [
    "0",
    "1",
    "-1",
    "3.5",
    ".5",
    "5.",
    "1e3",
    "1e400",
    "9" * 400,
    "0x1F",
    "1_000",
    "1e-99",
    "٣",
    "NaN",
]
ODD = [
    "\x00",
    "\ud800",
    "\udfff",
    "\ufeff",
    "\u202e",
    "\u0130",
    "ﬀ",
    "🦉",
    "\x1b[31m",
    "\r",
    "\t",
    "\u00a0",
    "\u2028",
]

VALID = [
    "SELECT COUNT(*) FROM people",
    "SELECT COUNT(*) FROM people WHERE age BETWEEN 3 AND 9 AND sex IN ('F', 'M') OR NOT age = 1",
    "SELECT sex, COUNT(*) AS n, AVG(age) FROM people GROUP BY sex HAVING n > 1 ORDER BY n DESC LIMIT 1",
    "SELECT SUM(CASE WHEN age < 5 THEN .5 END) FILTER (WHERE sex LIKE 'F%' ESCAPE '!') FROM people",
    "SELECT p.age, SUM(age) FROM people p WHERE (1 + 2) * 3 >= age GROUP BY 1 ORDER BY age NULLS FIRST;",
    "SELECT COUNT(age) FROM people WHERE (sex = 'F') IS NOT NULL AND age IS NULL",
]


def noise() -> st.SearchStrategy[str]:
    """Any text, surrogate halves among it."""
    anything = st.characters(exclude_categories=())
    return st.text(anything, min_size=1, max_size=80)


def soup() -> st.SearchStrategy[str]:
    """Words, names, numbers, signs and oddities, alone or where a part of a statement should be."""
    word = st.one_of(*(st.sampled_from(each) for each in (WORDS, NAMES, SIGNS, NUMBERS, ODD)))
    words = st.lists(word, min_size=1, max_size=25)
    glued = st.tuples(words, st.sampled_from([" ", " ", "", "\n"])).map(
        lambda pair: pair[1].join(pair[0])
    )
    places = ["{}", "SELECT {} FROM people", "SELECT COUNT(*) FROM people WHERE {}"]
    places += [
        "SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING {}",
        "SELECT COUNT(*) FROM people {}",
    ]
    return st.builds(str.replace, st.sampled_from(places), st.just("{}"), glued)


@st.composite
def broken(draw) -> str:
    """A statement with words dropped, doubled, swapped or replaced."""
    text = draw(st.sampled_from(VALID))
    words = [text[token.start : token.end + 1] for token in tokenize(text, read="duckdb")]
    for _ in range(draw(st.integers(1, 3))):
        one, other = (draw(st.integers(0, len(words) - 1)) for _ in range(2))
        match draw(st.sampled_from(["drop", "double", "swap", "replace"])):
            case "drop" if len(words) > 1:
                del words[one]
            case "double":
                words.insert(one, words[one])
            case "swap":
                words[one], words[other] = words[other], words[one]
            case "replace":
                words[one] = draw(st.sampled_from([*WORDS, *NAMES, *SIGNS, *NUMBERS, *ODD]))
    return " ".join(words)


def conditions() -> st.SearchStrategy[str]:
    """Conditions that are answered."""
    age = st.integers(-5, 25)
    leaf = st.one_of(
        st.builds("age {} {}".format, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), age),
        st.builds("age BETWEEN {} AND {}".format, age, age),
        st.lists(age, min_size=1, max_size=4).map(
            lambda found: f"age IN ({', '.join(map(str, found))})"
        ),
        st.sampled_from(
            ["sex = 'F'", "sex <> 'M'", "sex LIKE '%'", "sex IS NULL", "TRUE", "NULL", "1 < 2"]
        ),
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds("({} AND {})".format, inner, inner),
            st.builds("({} OR {})".format, inner, inner),
            st.builds("NOT ({})".format, inner),
            st.builds(
                "({}) IS {}".format, inner, st.sampled_from(["NULL", "NOT NULL", "TRUE", "NOT FALSE"])
            ),
        ),
        max_leaves=6,
    )


@st.composite
def whole(draw) -> tuple[str, int, int]:
    """A statement that is answered, with how many columns and how many rows at the most it has."""
    aggregate = st.one_of(
        st.sampled_from(["COUNT(*)", "COUNT(sex)", "SUM(age)", "AVG(age)"]),
        st.builds("COUNT(*) FILTER (WHERE {})".format, conditions()),
        st.builds("SUM(CASE WHEN {} THEN {} END)".format, conditions(), st.integers(-3, 9)),
    )
    shown = draw(st.lists(aggregate, min_size=1, max_size=3))
    groups = draw(st.sampled_from([[], ["sex"], ["age"], ["sex", "age"]]))
    sizes = {"sex": 2, "age": 20}
    rows = 1
    for name in groups:
        rows *= sizes[name]
    text = f"SELECT {', '.join([*groups, *shown])} FROM people WHERE {draw(conditions())}"
    if groups:
        text += f" GROUP BY {', '.join(groups)}"
    if draw(st.booleans()):
        text += f" HAVING COUNT(*) > {draw(st.integers(-9, 9))}"
    if draw(st.booleans()):
        text += f" ORDER BY {draw(st.integers(1, len(groups) + len(shown)))} DESC"
    if draw(st.booleans()):
        rows = min(rows, limit := draw(st.integers(0, 5)))
        text += f" LIMIT {limit}"
    return text, len(groups) + len(shown), rows
