"""`sharewell check`, and what `sharewell plan` says of a file's own settings."""

from __future__ import annotations

import json
import math
import sys
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sharewell import Domain, Integer, begin, expected_errors
from sharewell.cli import render_plan
from sharewell.cli.render_config import show_check
from sharewell.cli.render_plan import show_plan
from sharewell.config import analysts, forecast, parse_config
from sharewell.config.analysts import Analyst, expected_workloads
from sharewell.config.check import check_config
from sharewell.config.forecast import (
    MAX_UNDETERMINED_CELLS,
    current_candidate,
    dry_run,
    forecast_errors,
)
from sharewell.config.template import review_lines
from sharewell.engine.duckdb import DuckDB
from sharewell.errors import ConfigError
from sharewell.mechanisms import seed
from sharewell.query.linear import LinearQuery
from sharewell.sharing.plan import plan

HERE = """
[dataset]
source = "people.csv"
population = 2000
[budget]
epsilon = 1
error_threshold = "1%"
[attributes.age]
type = "integer"
low = 0
high = 29
[attributes.sex]
type = "category"
categories = ["F", "M"]
[analysts.ann]
share = "1/2"
expects = ["SELECT sex, COUNT(*) FROM people GROUP BY sex", "SELECT SUM(age) FROM people"]
[analysts.ben]
share = "1/4"
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "people.csv").write_text("age,sex,name\n" + "3,F,eve\n7,M,bob\n" * 50)

    def write(text: str = HERE):
        path = tmp_path / "sharewell.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def checked(path, capsys) -> dict[str, Any]:
    ok = show_check(str(path), True)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["ok"] is ok
    return found


def levels(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(finding["level"], finding["message"]) for finding in found["findings"]]


def error_of(found: dict[str, Any], question: str, way: str, analyst: str = "ann") -> float:
    (look,) = (
        look
        for look in found["expected_errors"]
        if look["question"] == question and analyst in look["analysts"]
    )
    return look[way]["standard_error"]


def test_amounts_and_counts_are_those_of_the_settings(file, capsys):
    found = checked(file(), capsys)
    assert found["ok"]
    assert found["cells"] == 60
    assert found["analysts"] == [
        {"analyst": "ann", "part": "1/2", "share": "1/2", "seed": "1/4", "paid_questions": 25},
        {"analyst": "ben", "part": "1/4", "share": "1/4", "seed": "1/8", "paid_questions": 12},
    ]
    assert levels(found) == [
        ("note", "1/4 of the budget is left for analysts who join later."),
        ("note", "Every row counts as a different person."),
        (
            "warning",
            "A paid answer is hardly more precise than the free one from the seed.",
        ),
    ]


def test_whose_rows_they_are_is_told_and_that_paying_helps_is_not(file, capsys):
    text = HERE.replace("[dataset]", '[dataset]\nprivacy_unit = "person"', 1)
    found = checked(file(f'{text}\n[mechanism]\nquery_budget = "1/8"\nseed_fraction = "1/10"\n'), capsys)
    said = [message for _, message in levels(found)]
    assert any(message.startswith("Answers count people, not rows: of each person") for message in said)
    assert not any("hardly more precise" in message for message in said)


def test_what_several_rows_of_a_person_cost_is_shown(file, capsys):
    unit = '[dataset]\nprivacy_unit = "person"'
    one = checked(file(HERE.replace("[dataset]", unit, 1)), capsys)
    three = checked(file(HERE.replace("[dataset]", f"{unit}\nmax_rows_per_person = 3", 1)), capsys)
    assert any("at most 3 of each person" in message for _, message in levels(three))
    for way in ("free", "paid"):
        few, many = (error_of(found, "all rows", way) for found in (one, three))
        assert many == pytest.approx(3 * few, rel=0.02)


def test_expected_errors_are_those_of_a_dry_run(file, capsys):
    found = checked(file(), capsys)
    config = parse_config(HERE)
    total = LinearQuery.all(config.domain)
    (free,), (paid,) = (
        expected_errors(
            config.domain,
            [("ann", total, way)],
            config.shares,
            seed=seed.identity(config.domain),
            seed_fraction="1/2",
            query_budget="1/100",
        )
        for way in ("free", "pay")
    )
    assert error_of(found, "all rows", "free") == pytest.approx(free)
    assert error_of(found, "all rows", "paid") == pytest.approx(paid)
    # The seed costs 3/8, and every cell is measured once with it: the exact discrete Laplace variance.
    q = math.exp(-3 / 8)
    one = math.sqrt(2 * q) / (1 - q)
    assert error_of(found, "the rows of one cell", "free") == pytest.approx(one)
    assert free == pytest.approx(one * math.sqrt(60))
    # Counts by sex, and the sum of ages in rows of age 29; the average over the three numbers.
    weights = sum((age / 29) ** 2 for age in range(30)) * 2
    typical = one * math.sqrt((30 + 30 + weights) / 3)
    assert error_of(found, "the expected questions", "free") == pytest.approx(typical)


def test_all_is_shown_to_people(file, capsys):
    assert show_check(str(file()), False)
    shown = " ".join(capsys.readouterr().out.split())
    for words in (
        "people: 60 cells",
        "epsilon 1, with Laplace noise",
        "useful: at most 20",
        "Promises of Seeded Cache and Reconstruct; scheduler: none",
        "No analyst would do better alone",
        "requests_per_second 50",
        "can be served. No row was read and nothing was spent.",
    ):
        assert words in shown


def test_the_other_currency_is_told_in_its_own_words(file, capsys):
    show_check(str(file(HERE.replace("epsilon = 1", 'epsilon = 1\ndelta = "1e-6"'))), False)
    assert "epsilon 1, delta 1e-06: rho 0.02436, with Gaussian noise" in capsys.readouterr().out


@pytest.mark.parametrize("mechanism", ["laplace", "multiplicative-weights"])
@pytest.mark.parametrize("independent", [False, True])
def test_every_mechanism_can_be_checked(file, capsys, mechanism, independent):
    flag = str(independent).lower()
    text = f'{HERE}\n[mechanism]\nname = "{mechanism}"\nindependent = {flag}\n'
    found = checked(file(text), capsys)
    assert found["ok"]
    if mechanism == "laplace":
        paid = error_of(found, "all rows", "paid")
        q = math.exp(-1 / 100)
        assert paid == pytest.approx(math.sqrt(2 * q) / (1 - q))
        questions = [each["paid_questions"] for each in found["analysts"]]
        assert questions == ([50, 25] if independent else [75, 75])
        assert all(look["free"] is None for look in found["expected_errors"])
    else:
        assert (found["errors_are_public"], found["expected_errors"]) == (False, [])
        show_check(str(file(text)), False)
        assert "depends on the data" in " ".join(capsys.readouterr().out.split())


def test_those_who_are_alone_have_errors_of_their_own(file, capsys):
    cleo = '[analysts.cleo]\nshare = "1/8"'
    found = checked(file(f"{HERE}\n{cleo}\n[mechanism]\nindependent = true\n"), capsys)
    errors = [error_of(found, "the rows of one cell", "free", name) for name in ("ann", "ben", "cleo")]
    assert all(1.9 < less / more < 2.1 for more, less in pairwise(errors))


def test_a_seed_that_does_not_determine_everything_is_no_trouble(file, capsys):
    text = f'{HERE}\n[mechanism]\nseed = "total"\n'
    small = checked(file(text), capsys)
    large = checked(file(text.replace("high = 29", "high = 4999")), capsys)
    assert large["cells"] > MAX_UNDETERMINED_CELLS
    for found, low in ((small, 70), (large, 141)):  # The small one says what a signed row gives.
        look = next(each for each in found["expected_errors"] if each["question"].startswith("the rows"))
        assert look["free"] is None
        assert low < look["paid"]["standard_error"] < low + 1


def test_a_seed_that_is_too_large_is_an_error(file, capsys):
    columns = "".join(f"[attributes.c{n}]\ntype = 'boolean'\n" for n in range(16))
    (file().parent / "people.csv").write_text(",".join(["age", "sex", *(f"c{n}" for n in range(16))]))
    found = checked(file(f"{HERE}\n{columns}\n[mechanism]\nseed = 'h2'\n"), capsys)
    assert not found["ok"]
    assert any(
        "mechanism.seed 'h2' has" in message for level, message in levels(found) if level == "error"
    )


def test_marks_left_for_review_are_counted_and_warned_of(file, capsys):
    marked = HERE.replace("high = 29", "high = 29 # REVIEW: from the rows").replace(
        "population = 2000", "population = 2000 # REVIEW: rounded"
    )
    found = checked(file(marked), capsys)
    assert found["ok"]
    assert found["findings"][0]["level"] == "warning"
    assert found["findings"][0]["message"].startswith("2 lines are marked REVIEW")
    assert "(lines 4, 11)" in found["findings"][0]["hint"]


@pytest.mark.parametrize(
    ("line", "marked"),
    [
        ("a = 1 # REVIEW: x", True),
        ("# a = 1 # REVIEW: x", True),
        ('a = ["# REVIEW: x"]', False),
        (r'a = "\"# REVIEW: x"', False),
        ("a = '# REVIEW: x'", False),
        ("a = '\"' # REVIEW: x", True),
        ("# those marked REVIEW are counted", False),
    ],
)
def test_a_mark_is_a_comment_and_no_value(line, marked):
    assert review_lines(f"\n{line}\n") == ([2] if marked else [])


SOURCES = [
    ('source = "people.csv"', 'source = "gone.csv"', "does not exist"),
    ("[attributes.sex]", "[attributes.sexx]", "Unknown column 'sexx'"),
    ('source = "people.csv"', 'source = "people.csv"\nprivacy_unit = "id"', "Unknown column 'id'"),
    ('source = "people.csv"', 'source = "people.csv"\ntable = "t"', "requires a database"),
    ('source = "people.csv"', 'source = "typed.parquet"', "as Integer"),
    (
        'source = "people.csv"',
        'source = "units.parquet"\nprivacy_unit = "unit"',
        "large ids may be equal",
    ),
]


@pytest.mark.parametrize(("right", "wrong", "message"), SOURCES)
def test_a_source_that_does_not_fit_is_an_error(file, capsys, right, wrong, message):
    path = file(
        HERE.replace(right, wrong).replace(
            "sex, COUNT(*) FROM people GROUP BY sex", "COUNT(*) FROM people"
        )
    )
    pq.write_table(pa.table({"age": [True], "sex": ["F"]}), path.parent / "typed.parquet")
    pq.write_table(pa.table({"age": [1], "sex": ["F"], "unit": [1.0]}), path.parent / "units.parquet")
    found = checked(path, capsys)
    assert not found["ok"]
    errors = [said for level, said in levels(found) if level == "error"]
    assert len(errors) == 1
    assert message in errors[0]


def test_checking_reads_no_row(file, capsys, monkeypatch):
    (file().parent / "people.csv").write_text("age,sex\nthis is,no,table,at all\n\x00")
    ran: list[str] = []
    run = DuckDB.run

    def noted(self: DuckDB, sql: str, *more: Any) -> list[tuple[Any, ...]]:
        ran.append(sql)
        return run(self, sql, *more)

    monkeypatch.setattr(DuckDB, "run", noted)
    monkeypatch.setattr(DuckDB, "fetch", lambda *_: pytest.fail("rows were fetched"))
    assert checked(file(), capsys)["ok"]
    assert ran
    assert all(sql.startswith(("SET ", "DESCRIBE ", "CREATE TEMP VIEW ")) for sql in ran)


def test_the_output_does_not_depend_on_the_rows(file, capsys):
    first = checked(file(), capsys)
    (file().parent / "people.csv").write_text("age,sex,name\n" + "20,M,x\n" * 3)
    assert checked(file(), capsys) == first


def test_a_threshold_that_no_answer_meets_is_warned_of(file, capsys):
    found = checked(file(HERE.replace('"1%"', "0.5")), capsys)
    assert found["ok"]
    assert (
        "warning",
        "No answer is expected to have a standard error within budget.error_threshold, 0.5 rows.",
    ) in levels(found)


def test_whoever_cannot_pay_for_anything_is_warned_of(file, capsys):
    found = checked(file(f'{HERE}\n[mechanism]\nquery_budget = "1/5"\n'), capsys)
    warned = [said for level, said in levels(found) if level == "warning"]
    assert warned == ["ben cannot pay for a single question."]
    looks = [each for each in found["expected_errors"] if "ben" in each["analysts"]]
    (total,) = (look for look in looks if look["question"] == "all rows")
    assert total["paid"] is None


def with_wards(oldest: int, last: int) -> str:
    """The configuration with other ages, and a further attribute."""
    wards = f'\n[attributes.ward]\ntype = "integer"\nlow = 0\nhigh = {last}\n'
    return HERE.replace("high = 29", f"high = {oldest}") + wards


def test_that_many_cells_take_long_is_told(file, capsys):
    said = str(levels(checked(file(with_wards(999, 599)), capsys)))
    assert "Measuring the 1,200,000 rows of the seed slows the first start" in said


def test_an_epsilon_that_protects_nobody_is_warned_of(file, capsys):
    text = "An epsilon of 100 protects little"
    warned = checked(file(HERE.replace("epsilon = 1", "epsilon = 100")), capsys)
    assert [message[: len(text)] for level, message in levels(warned) if level == "warning"][:1] == [
        text
    ]
    assert text[:13] not in str(
        levels(checked(file(HERE.replace("epsilon = 1", "epsilon = 10")), capsys))
    )


@pytest.mark.parametrize(
    ("scheduler", "warned"),
    [
        ('name = "round-robin"', True),
        ('name = "round-robin"\nidle_after = 60', False),
        ('name = "weighted-round-robin"\nturns = { ann = 2, ben = 1 }', True),
        ('name = "randomized"', False),
        ('name = "none"', False),
    ],
)
def test_a_rotation_that_may_wait_for_ever_is_warned_of(file, capsys, scheduler, warned):
    found = levels(checked(file(f"{HERE}[scheduler]\n{scheduler}\n"), capsys))
    assert any("keeps all others waiting" in message for _, message in found) is warned


def test_a_domain_too_large_for_its_seed_is_an_error(file):
    with pytest.raises(ConfigError, match=r"mechanism.seed: .* more than 134,217,728") as refused:
        show_check(str(file(HERE.replace("high = 29", "high = 99_999_999"))), False)
    assert "marginals(2)" in refused.value.hint


def test_what_is_wrong_with_the_file_itself_is_raised(file):
    with pytest.raises(ConfigError, match=r"budget.epsilon is missing"):
        show_check(str(file(HERE.replace("epsilon = 1\n", ""))), False)
    with pytest.raises(ConfigError, match=r"analysts.ann.expects\[0\]"):
        show_check(str(file(HERE.replace("GROUP BY sex", "GROUP BY sexx"))), False)


def test_names_in_brackets_are_shown_as_they_are(file, capsys):
    path = file(
        HERE.replace("[attributes.sex]", '[attributes."[red]"]').replace(
            "sex, COUNT(*) FROM people GROUP BY sex", "COUNT(*) FROM people"
        )
    )
    assert not show_check(str(path), False)
    shown = capsys.readouterr().out
    assert "[red]  " in shown
    assert "Unknown column '[red]'" in " ".join(shown.split())


def test_many_analysts_are_looked_at_once(file, capsys, monkeypatch):
    several = "".join(f'[analysts.a{n}]\nshare = "1/800"\n' for n in range(100))
    config = parse_config(f'{HERE}\n{several}\n[mechanism]\nquery_budget = "1/5000"\n')
    mechanism = dry_run(config)
    asked: list[str] = []
    preview = mechanism.preview

    def noted(question: Any, analyst: str) -> Any:
        asked.append(analyst)
        return preview(question, analyst)

    monkeypatch.setattr(mechanism, "preview", noted)
    looks = forecast_errors(config, mechanism)
    assert len(asked) < 15
    assert {len(look.analysts) for look in looks if look.asked == "all rows"} == {102}


def test_a_checked_configuration_can_be_used_from_python(file):
    found = check_config(parse_config(HERE, file()))
    assert found.ok
    assert [each.part for each in found.budgets] == [Fraction(1, 2), Fraction(1, 4)]


def test_the_settings_of_a_file_are_judged_as_the_plan_judges_them():
    config = parse_config(HERE)
    now = current_candidate(config)
    (same,) = plan(
        config.domain,
        config.workloads(),
        config.budget,
        config.shares,
        config.error_threshold,
        strategies=[seed.identity(config.domain)],
        seed_fractions=["3/4"],
        queries_per_share=[5],
    )
    written = f'{HERE}\n[mechanism]\nseed_fraction = "3/4"\nquery_budget = "1/80"\n'
    assert current_candidate(parse_config(written)) == same
    assert now is not None
    assert now != same


def test_the_plan_shows_what_the_file_has_now_and_how_it_ranks(file, capsys):
    path = file()
    show_plan(str(path), 3, True)
    found = json.loads(capsys.readouterr().out)
    now = found["now"]
    assert (now["seed"], now["seed_fraction"], now["query_budget"]) == ("identity", "1/2", "1/100")
    assert 1 < now["rank"] <= found["tried"] + 1
    show_plan(str(path), 3, False)
    shown = " ".join(capsys.readouterr().out.split())
    assert "(now)" in shown
    assert "Ranked by useful answers, averaged over the analysts, to a tenth of a percent" in shown
    assert f"{now['rank'] - 1} of the {found['tried']} settings compared are better" in shown


def test_what_is_best_has_the_first_rank(file, capsys):
    show_plan(str(file()), 1, True)
    best = json.loads(capsys.readouterr().out)["candidates"][0]
    lines = [f'{key} = "{best[key]}"' for key in ("seed", "seed_fraction", "query_budget")]
    show_plan(str(file("\n".join([HERE, "[mechanism]", *lines]))), 1, True)
    assert json.loads(capsys.readouterr().out)["now"]["rank"] == 1


def test_the_plan_says_so_where_the_file_has_another_mechanism(file, capsys):
    path = file(f'{HERE}\n[mechanism]\nname = "laplace"\n')
    show_plan(str(path), 1, True)
    assert json.loads(capsys.readouterr().out)["now"] is None
    show_plan(str(path), 1, False)
    assert "uses another mechanism" in capsys.readouterr().out


#: The same without questions, and by age alone.
ONE_COLUMN = HERE.replace("expects", "# expects").replace(
    '[attributes.sex]\ntype = "category"\ncategories = ["F", "M"]\n', ""
)


def in_hand(share: Fraction, setting: dict[str, Any]) -> int:
    """Pay for one question after the other, until nothing is left."""
    left, count = share * (1 - Fraction(setting["seed_fraction"])), 0
    while left >= Fraction(setting["query_budget"]):
        left, count = left - Fraction(setting["query_budget"]), count + 1
    return count


def test_the_plan_says_how_many_questions_everybody_can_pay_for(file, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    show_plan(str(file()), 200, True)
    found = json.loads(capsys.readouterr().out)
    settings = [*found["candidates"], found["now"]]
    for setting in settings:
        assert setting["paid_questions"] == {
            "ann": in_hand(Fraction(1, 2), setting),
            "ben": in_hand(Fraction(1, 4), setting),
        }
    assert found["now"]["paid_questions"] == {"ann": 25, "ben": 12}
    assert {each["paid_questions"]["ben"] for each in found["candidates"]} == {0, 4, 16, 64}
    show_plan(str(file(HERE.replace('"1/2"', '"1/4"'))), 200, False)
    alike = capsys.readouterr().out
    show_plan(str(file()), 200, False)
    shown = capsys.readouterr().out
    noise = found["recommended"]["noise"]
    settings = [*(each for each in found["candidates"] if each["noise"] == noise), found["now"]]
    # The fourth column, in the order of the settings; the last row is what the file has.
    columns = [line.split() for line in shown.splitlines() if line.count("%") == 2][: len(settings)]
    counts = [(each["paid_questions"]["ben"], each["paid_questions"]["ann"]) for each in settings]
    assert [row[3] for row in columns] == [f"{ben}-{ann}" if ann else "0" for ben, ann in counts]
    rows = [row for row in alike.splitlines() if row.count("%") == 2 and "About" not in row]
    assert {row.split()[3] for row in rows} == {
        *("0", "4", "16", "64", "12"),
    }
    # Names stand whole, and so do the words above them.
    assert {row[0] for row in columns} == {each["seed"] for each in settings}
    assert "marginals(1)" in {row[0] for row in columns}
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    heading = ["seed", "fraction", "budget", "questions", "answers", "analyst", "error,", "rows"]
    assert heading in [line.split() for line in shown.splitlines()]


class Begun(Exception):
    """The comparison has begun."""


@pytest.fixture
def said_before(file, capsys, monkeypatch):
    """What stands on the error stream when the comparison begins, on so many cells."""

    def begin(*_: Any, **__: Any) -> None:
        raise Begun

    def say(cells: int) -> str:
        monkeypatch.setattr(render_plan, "compare_settings", begin)
        with pytest.raises(Begun):
            show_plan(str(file(HERE.replace("high = 29", f"high = {cells // 2 - 1}"))), 1, True)
        streams = capsys.readouterr()
        assert streams.out == ""
        return streams.err

    return say


def test_the_plan_says_what_it_compares_where_no_bar_is_drawn(said_before):
    assert said_before(1_000).strip() == ""
    assert said_before(1_002).splitlines()[0] == "Comparing 192 settings on 1,002 cells."


def test_a_terminal_has_the_bar_and_no_such_line(said_before, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    said = said_before(1_002)
    assert "comparing settings" in said
    assert "Comparing" not in said


@pytest.mark.parametrize("columns", [1, 2])
def test_what_the_plan_says_on_the_way_is_true_and_leaves_its_output_alone(
    file, capsys, monkeypatch, columns
):
    monkeypatch.setattr(render_plan, "QUICK_CELLS", 29)
    show_plan(str(file(HERE if columns == 2 else ONE_COLUMN)), 1, True)
    streams = capsys.readouterr()
    tried = json.loads(streams.out)["tried"]
    assert streams.err.strip() == f"Comparing {tried} settings on {30 * columns} cells."


ASSUMED_OF_BEN = (
    "No questions are given for ben; assumed: counts by one and by two columns, with at most "
    "10,000 groups each"
)


def test_the_plan_tells_assumed_questions_from_those_that_were_given(file, capsys):
    show_plan(str(file()), 1, False)
    shown = " ".join(capsys.readouterr().out.split())
    # By age, by sex, and by both: 30 + 2 + 60 numbers.
    assert (
        f"questions of the file: 3 numbers for ann. {ASSUMED_OF_BEN}: 3 questions, 92 numbers." in shown
    )
    config = parse_config(HERE)
    asked = config.workloads()["ben"]
    assert [len(asks) for asks in asked if not isinstance(asks, LinearQuery)] == [30, 2, 60]
    show_plan(str(file(HERE.replace("expects", "# expects"))), 1, False)
    shown = " ".join(capsys.readouterr().out.split())
    assert "given for ann and ben; assumed" in shown
    assert "10,000 groups each: 3 questions each, 92 numbers." in shown
    assert "of the file:" not in shown


def test_the_assumed_questions_are_those_of_planned_seeds_or_some_of_very_many(monkeypatch):
    domain = Domain([Integer("a", 0, 99), Integer("b", 0, 99), Integer("c", 0, 100)])
    ann = [Analyst("ann", Fraction(1))]
    tables = [len(each) for each in expected_workloads(domain, "people", ann)["ann"]]  # type: ignore[arg-type]
    assert tables == [100, 100, 101, 10_000]
    monkeypatch.setattr(analysts, "MAX_ASSUMED_TABLES", 2)
    assert [len(each) for each in expected_workloads(domain, "people", ann)["ann"]] == [100, 101]  # type: ignore[arg-type]


def test_a_check_tells_assumed_questions_from_those_that_were_given(file, capsys, monkeypatch):
    found = checked(file(), capsys)
    asked = {look["question"]: look["analysts"] for look in found["expected_errors"]}
    assert asked["the expected questions"] == ["ann"]
    assert asked["the assumed questions"] == ["ben"]
    monkeypatch.setattr(forecast, "MAX_WORK", 1)
    show_check(str(file()), False)
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{ASSUMED_OF_BEN}." in shown
    looks = forecast_errors(parse_config(HERE), dry_run(parse_config(HERE)))
    assert "the first of 3 assumed questions" in {look.asked for look in looks}
    given = f'{HERE}expects = ["SELECT COUNT(*) FROM people"]\n'
    show_check(str(file(given)), False)
    shown = " ".join(capsys.readouterr().out.split())
    assert "are given" not in shown
    assert "assumed" not in shown


def test_nothing_is_said_of_questions_where_none_can_be_assumed(file, capsys):
    text = ONE_COLUMN.replace("high = 29", "high = 10000")
    found = checked(file(text), capsys)
    assert [look["question"] for look in found["expected_errors"]] == [
        "the rows of one cell",
        "all rows",
    ]
    show_check(str(file(text)), False)
    assert "at most 10,000 groups each. Here there are none." in " ".join(
        capsys.readouterr().out.split()
    )
    with pytest.raises(ConfigError, match="Nothing to plan for: no questions are given for ann and ben"):
        show_plan(str(file(text)), 1, False)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("a", "a"),
        ("ab", "a and b"),
        ("abcde", "a, b, c, d and e"),
        ("abcdef", "a, b, c, d and 2 others"),
    ],
)
def test_names_are_listed_as_in_a_sentence(names, said):
    assert forecast.join_names(tuple(names)) == said


def test_paths_are_told_from_the_folder_of_the_file_and_stand_whole(file, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path = file(f'{HERE}\n[service]\naccess = "kept/in/people-of-2024.json"\n')
    monkeypatch.chdir(path.parent.parent)
    for named in (path, path.relative_to(path.parent.parent)):
        show_check(str(named), False)
        shown = capsys.readouterr().out
        words = shown.split()
        assert path.parent.name not in shown
        assert "people.ledger.sqlite" in words
        assert "kept/in/people-of-2024.json" in words


def test_other_paths_are_told_whole_on_one_line(file, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    ledger = "/department-of-records/hospital-of-the-city/2024/people.ledger.sqlite"
    path = file(f'{HERE}\n[service]\nledger = "{ledger}"\naccess = "../access.json"\n')
    show_check(str(path), False)
    shown = capsys.readouterr().out
    words = shown.split()
    assert ledger in words
    assert f"{path.parent}/../access.json" in words


def test_a_large_domain_needs_a_limit_of_its_rows(file):
    large = with_wards(9_999, 99_999) + '\n[mechanism]\nseed = "total"\n'
    with pytest.raises(ConfigError, match=r"dataset.max_rows is missing: the domain has more than 134,"):
        show_check(str(file(large)), False)
    assert parse_config(large.replace("[dataset]", "[dataset]\nmax_rows = 3000")).max_rows == 3000


MEASURES = """
[measures.age]
low = 0
high = 100
step = 0.5
[measures.paid]
column = "fee"
low = -1000
high = 1000
step = 0.01
nullable = false
"""


def with_fees(path):
    (path.parent / "people.csv").write_text("age,sex,fee\n" + "3,F,2.5\n7,M,\n" * 50)
    return path


def test_measures_are_checked_and_shown(file, capsys):
    found = checked(with_fees(file(HERE + MEASURES)), capsys)
    assert found["ok"]
    assert found["cells"] == 60
    assert found["measures"] == {
        "age": {"low": "0", "high": "100", "step": "0.5"},
        "paid": {"low": "-1000", "high": "1000", "step": "0.01"},
    }
    show_check(str(file(HERE + MEASURES)), False)
    shown = " ".join(capsys.readouterr().out.split())
    assert "paid fee -1000 1000 0.01 dropped" in shown


def test_squares_and_products_are_checked_and_shown(file, capsys):
    text = HERE + MEASURES + 'square = true\nproducts = ["age"]\n'
    found = checked(with_fees(file(text)), capsys)
    assert found["ok"]
    assert {name: each["products"] for name, each in found["measures"].items()} == {
        "age": ["paid"],
        "paid": ["paid", "age"],
    }
    show_check(str(file(text)), False)
    shown = " ".join(capsys.readouterr().out.split())
    assert "multiplied with" in shown
    assert "paid, age" in shown
    # Squares of 100,000 steps, rounded to 2^26, over a price of 10^-6.
    found = checked(with_fees(file(text + "\n[mechanism]\nquery_budget = 0.000001\n")), capsys)
    errors = [said for level, said in levels(found) if level == "error"]
    assert errors == ["The noise of the products of paid would exceed its limit."]


def test_a_measure_of_an_unknown_column_is_an_error(file, capsys):
    found = checked(file(HERE + MEASURES), capsys)
    assert [said for level, said in levels(found) if level == "error"] == ["Unknown column 'fee'."]


@pytest.mark.parametrize(
    ("low", "high", "price", "grid"),
    [
        # 10^12 steps are more than a weight may be.
        ("10_000_000_000", "10_000_000_010", "0.01", ("10000000000", "10000000010", "5")),
        # 10^7 steps, over a price of 10^-6, are more than the noise's scale may be.
        ("-100_000", "99_999", "0.000001", ("-100000", "99999", "0.2")),
    ],
)
def test_a_step_that_is_too_fine_is_an_error_that_proposes_another(file, capsys, low, high, price, grid):
    text = f"{HERE}{MEASURES}\n[mechanism]\nquery_budget = {price}\n"

    def bounded(low: str, high: str, step: str) -> str:
        paid = text.replace("low = -1000", f"low = {low}").replace("high = 1000", f"high = {high}")
        return paid.replace("step = 0.01", f"step = {step}")

    found = checked(with_fees(file(bounded(low, high, "0.01"))), capsys)
    finding = next(each for each in found["findings"] if each["level"] == "error")
    assert finding["message"].startswith("measures.paid: a step of 0.01 is too fine.")
    low, high, step = grid
    assert finding["hint"] == f"Use low = {low}, high = {high} and step = {step}, or smaller bounds."
    assert not any("is too fine" in said for _, said in levels(checked(file(bounded(*grid)), capsys)))


def test_donations_too_small_to_measure_the_seed_are_an_error(file, capsys):
    tiny = (
        HERE.replace('"1/2"', '"1e-9"')
        .replace('"1/4"', '"1e-9"')
        .replace("epsilon = 1", "epsilon = 1e-6")
    )
    found = check_config(parse_config(tiny, file()))
    assert not found.ok
    assert any("too small to measure the seed" in each.message for each in found.diagnostics)
    path = file(tiny)
    with pytest.raises(ConfigError, match="too small to measure the seed"):
        begin(path)
    assert not list(path.parent.glob("*.sqlite")), "nothing was begun"
    nothing = f"{tiny}\n[mechanism]\nseed_fraction = 0\n"
    found = check_config(parse_config(nothing, file()))
    assert not any("too small to measure the seed" in each.message for each in found.diagnostics)


def test_expected_questions_can_be_columns_to_count_by(file):
    config = parse_config(HERE.replace('expects = ["', 'expects = ["age, sex", " sex ", "'))
    first, second, *_ = config.workloads()["ann"]
    assert len(first) == 60  # type: ignore[arg-type]
    assert len(second) == 2  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"analysts.ann.expects\[0\] cannot be answered"):
        parse_config(HERE.replace('expects = ["', 'expects = ["age, wage", "')).workloads()
