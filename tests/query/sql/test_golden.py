"""Golden pairs of SQL and its compilation in tests/golden/*.sql.

A case is SQL, the expected lines prefixed by `--> `, and an empty line. After an intended change,
`python -m tests.query.sql.test_golden` rewrites the expected lines; review the difference.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sharewell import Binned, Boolean, Category, Date, Domain, Integer, Measure, datasets
from sharewell.errors import SharewellError
from sharewell.query.sql import compile_sql
from sharewell.query.sql.refusals import INSTEAD
from sharewell.service.results import columns

FOLDER = Path(__file__).parents[2] / "golden"
STATES = ["Maine", "Massachusetts", "New Hampshire", "New York", "Vermont"]
DOMAIN = Domain(
    [
        Integer("age", 0, 85, bins={"age_group": [0, 18, 65]}),
        Category("sex", ["F", "M"], other="other"),
        Binned("income", [0, 10_000, 20_000, 50_000], nullable=True, other="out of range"),
        Boolean("employed", nullable=True),
        Date("admitted", "2020-01-01", "2021-12-31", by="month", bins={"admitted_year": "year"}),
        Category(
            "state", STATES, bins={"size": {"large": STATES[1:2] + STATES[3:4], "small": STATES[::2]}}
        ),
    ]
)
#: The same with columns that are summed, some of which are multiplied.
ANALYSTS = Domain(
    DOMAIN.attributes,
    [
        Measure("wage", "wage", 0, 100, 0.01),
        Measure("hours", "hours", 0, 80, 0.5),
        Measure("weight", "weight", 0, 10, 0.1, nullable=False),
    ],
    [("wage", "wage"), ("wage", "hours")],
)

#: The table that is bundled, and the files of questions that analysts ask: some are refused.
DOMAINS = {"analysts": ANALYSTS, "census": datasets.massachusetts().domain}
ASKED = ("analysts", "census")


def cases() -> Iterator[tuple[Path, str, str]]:
    for path in (FOLDER / f"{name}.sql" for name in ("accepted", "analysts", "census", "refused")):
        for case in re.split(r"\n\n+", path.read_text(encoding="utf-8").strip()):
            lines = case.splitlines()
            sql = [line for line in lines if not line.startswith("--> ")]
            yield path, "\n".join(sql), "\n".join(line[4:] for line in lines if line.startswith("--> "))


def product(scale, vectors) -> str:
    """One product of weights, as the labels of the cells: runs of equal weight, at most four."""
    factors = [] if scale == 1 else [str(scale)]
    for attribute, weights in zip(DOMAIN.attributes, vectors, strict=True):
        if (weights == 1).all():
            continue
        starts = np.flatnonzero(np.diff(weights, prepend=0))
        ends = [*starts[1:], len(weights)]
        runs = []
        for start, end in zip(starts, ends, strict=True):
            first, last = attribute.label(int(start)), attribute.label(int(end) - 1)
            labels = f"{first}" if end == start + 1 else f"{first}..{last}"
            if weights[start]:
                runs.append(labels if weights[start] == 1 else f"{weights[start]} * {labels}")
        factors.append(f"{attribute.name}[{', '.join(runs[:4])}{', ...' if len(runs) > 4 else ''}]")
    return " x ".join(factors) or "everything"


def outcome(sql: str, path: Path) -> Iterator[str]:
    """The first queries, or the error with its location, hint and suggestion.

    Of the questions that analysts ask, only the columns of the result and how many blocks are bought.
    """
    try:
        statement = compile_sql(sql, DOMAINS.get(path.stem, DOMAIN))
    except SharewellError as error:
        yield f"{error.code}, {error.where}"
        yield error.message
        yield from error.hint.split("\n")
        if error.suggestion:
            yield f"suggestion: {error.suggestion.change} -> {error.suggestion.to}"
        return
    if path.stem in ASKED:
        yield ", ".join(f"{column.name}: {column.kind}" for column in columns(statement))
        yield f"{len(statement.blocks)} bought, {len(statement.group_labels)} rows"
        return
    yield ", ".join(f"{output.name} = {type(output.source).__name__}" for output in statement.outputs)
    for query in statement.queries[:4]:
        yield " + ".join(product(scale, vectors) for scale, vectors in query.products()) or "nothing"
    if len(statement.queries) > 4:
        yield f"... {len(statement.queries)} queries in {len(statement.blocks)} blocks"


CASES = list(cases())


@pytest.mark.parametrize(
    ("path", "sql", "expected"),
    CASES,
    ids=[f"{path.stem}: {sql}" for path, sql, _ in CASES],
)
def test_what_is_made_of_sql_is_what_was_reviewed(path, sql, expected):
    assert "\n".join(outcome(sql, path)) == expected


def test_most_questions_of_analysts_are_answered():
    asked = [expected for path, _, expected in CASES if path.stem in ASKED]
    refused = [expected for expected in asked if expected.startswith(("sql.", "query."))]
    assert len(asked) >= 220
    assert len(asked) - len(refused) >= 190
    assert all(len(expected.splitlines()) >= 3 for expected in refused), "a reason and a hint"


def refusal(sql: str, domain: Domain) -> SharewellError | None:
    try:
        compile_sql(sql, domain)
    except SharewellError as error:
        return error
    return None


def suggested(hint: str) -> Iterator[str]:
    """The questions that a hint spells out, and the expressions to use, as questions."""
    hint = hint.replace(" ... GROUP BY", " FROM people GROUP BY")
    yield from re.findall(r"SELECT (?:(?!\.\.\.)[^.])*? FROM people(?:(?!\.\.\.)[^.])*", hint)
    for written in re.findall(r"(?:Use|Write) ([A-Za-z_]+\(.*?\))[.:,]", hint):
        expression = written.replace("...", "age")
        groups = "age" if "OVER" in written else "ALL"
        yield f"SELECT {expression}, COUNT(*) FROM people GROUP BY {groups}"


def test_what_a_refusal_suggests_is_answered():
    found = 0
    for path, sql, _ in CASES:
        domain = DOMAINS.get(path.stem, DOMAIN)
        error = refusal(sql, domain)
        if error is None:
            continue
        if error.suggestion:
            corrected = refusal(sql.replace(error.suggestion.change, error.suggestion.to, 1), domain)
            assert corrected is None or corrected.message != error.message
        for question in suggested(error.hint) if path.stem in ASKED else ():
            found += 1
            assert refusal(question, domain) is None, (sql, question)
    assert found >= 10


def test_what_comes_nearest_to_a_function_is_answered():
    found = 0
    for name in INSTEAD:
        text = ("REGEXP_EXTRACT", "REGEXP_REPLACE", "POSITION", "CHARINDEX", "LOCATE")
        column = "admitted" if name in ("STRFTIME", "TO_CHAR", "DATE_FORMAT") else "age"
        column = "state" if name in text else "employed" if name.startswith("BOOL") else column
        error = refusal(f"SELECT {name}({column}) FROM people", DOMAIN)
        if error is None or error.message != f'Unsupported function "{name}".':
            continue
        for question in suggested(error.hint):
            found += 1
            assert refusal(question, DOMAIN) is None, (name, question)
    assert found >= 25


def test_all_mistakes_of_a_text_are_named_at_once_in_its_order():
    error = refusal(
        "SELECT MIN(age), agee FROM people "
        "WHERE sex = 'X' AND (stat = 'Maine' OR foo(age) > 1) AND age = 'old' GROUP BY size",
        DOMAIN,
    )
    assert error is not None
    told = f"{error.message} {error.hint}"
    names = [
        'function "MIN"',
        'column "agee"',
        "'X'",
        'column "stat"',
        'function "foo"',
        "'old' is text",
    ]
    assert [told.index(name) for name in names] == sorted(told.index(name) for name in names)
    assert told.count("Also:") == len(names) - 1


def test_accepted_and_refused_are_kept_apart():
    for path, _, expected in CASES:
        if path.stem in ASKED:
            continue
        assert expected.startswith(("sql.", "query.")) == (path.stem == "refused")


def rewrite() -> None:
    written: dict[Path, list[str]] = {}
    for path, sql, _ in CASES:
        written.setdefault(path, []).append(
            "\n".join([sql, *(f"--> {line}" for line in outcome(sql, path))])
        )
    for path, blocks in written.items():
        path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


if __name__ == "__main__":
    rewrite()
