"""The settings that `sharewell init` proposes: those that `plan` recommends, and `check` accepts."""

from __future__ import annotations

import csv
import datetime as dt
import json
import re
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sharewell.cli.render_config import show_init, show_init_view
from sharewell.cli.render_plan import show_plan
from sharewell.config import Config, parse_config, read_config
from sharewell.config.check import check_config
from sharewell.config.planning import compare_settings, provisional_config, recommend, with_settings
from sharewell.config.propose import propose
from sharewell.sharing.plan import rank
from sharewell.wire.text import format_cells

RNG = np.random.default_rng(16)


def whole(low: int, high: int, rows: int) -> list[int]:
    return [int(each) for each in RNG.integers(low, high, rows)]


def texts(count: int, rows: int) -> list[str]:
    return [f"t{each}" for each in RNG.integers(0, count, rows)]


def days(rows: int) -> list[str]:
    first = dt.date(2021, 1, 1)
    return [str(first + dt.timedelta(days=int(each))) for each in RNG.integers(0, 900, rows)]


#: Tables of several kinds, and what is special about each.
TABLES: dict[str, dict[str, list[Any]]] = {
    "one column": {"age": whole(0, 90, 900)},
    "two cells": {"member": [n % 2 for n in range(900)]},
    "narrow": {"age": whole(0, 20, 900), "sex": texts(2, 900)},
    "some columns": {"age": whole(0, 20, 900), "sex": texts(2, 900), "ward": texts(4, 900)},
    "dates": {"visit": days(900), "sex": texts(2, 900), "age": whole(0, 20, 900)},
    "many categories": {"town": texts(45, 2_000), "work": texts(30, 2_000)},
    "cents": {"wage": [n / 100 for n in whole(0, 9_000_000, 900)], "age": whole(0, 20, 900)},
    "large bounds": {"worth": [n % 7 * 10**14 for n in range(900)], "sex": texts(2, 900)},
    "several measures": {f"m{n}": [0.5 + each for each in whole(0, 10**n, 900)] for n in range(3, 6)},
    "wide": {f"c{n}": whole(0, 3, 900) for n in range(12)},
    "twelve rows": {"age": [3, 5, 5, 8] * 3, "sex": list("mfmm") * 3},
    "one row": {"age": [4], "sex": ["m"], "fee": [1.5]},
    "constant": {"a": ["x"] * 900, "b": [3] * 900, "c": [2.5] * 900},
}


def write_table(path: Path, columns: dict[str, list[Any]]) -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return str(path)


def problems(config: Config) -> list[str]:
    """What `check` warns of, but for the marks of a review that has not been done."""
    found = check_config(config).diagnostics
    return [each.message for each in found if each.level != "note" and "REVIEW" not in each.message]


def recommended_by_plan(path: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    show_plan(path, 1, True)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    keys = ("seed", "seed_fraction", "query_budget", "noise", "delta")
    assert {key: found["recommended"][key] for key in keys} == {key: found["now"][key] for key in keys}
    return found["recommended"]


@pytest.mark.parametrize("kind", TABLES)
def test_init_proposes_what_plan_recommends_and_check_accepts(tmp_path, capsys, kind):
    out = str(tmp_path / "sharewell.toml")
    show_init(write_table(tmp_path / "table.csv", TABLES[kind]), out, False)
    said, config = capsys.readouterr().out, read_config(out)
    assert problems(config) == []
    best = recommended_by_plan(out, capsys)
    # Two lines: why, and what it buys.
    assert f'{best["noise"]} noise and seed = "{best["seed"]}".' in said
    bought = re.search(r"About (\d+) % of the expected answers are within \S+ rows.*; (.*)\.\n", said)
    assert bought is not None
    paid = max(best["paid_questions"].values())
    assert bought[2] == (f"{paid} paid questions each" if paid else "no question has to be paid for")
    assert abs(int(bought[1]) - 100 * best["useful_answers"]) <= 1
    # Where no answer would be within one percent of the rows, the threshold is raised.
    assert ("There are few rows" in said) == (config.error_threshold > (config.population or 0) / 100)
    assert "There are few rows" in said or kind not in ("twelve rows", "one row")
    comments = config.text.replace("\n# ", " ")
    assert bought[0].strip() in comments


def test_a_view_gets_settings_too(tmp_path, capsys):
    people = write_table(tmp_path / "people.csv", {"person": range(90), "age": whole(0, 9, 90)})  # type: ignore[dict-item]
    visits = write_table(tmp_path / "visits.csv", {"person": [n % 70 for n in range(200)]})
    out = str(tmp_path / "clinic.toml")
    show_init_view([people, visits], "person", out, False)
    assert problems(read_config(out)) == []
    recommended_by_plan(out, capsys)


BASE = """\
[dataset]
source = "people.csv"
population = {population}

[budget]
epsilon = {epsilon}
error_threshold = "1%"

[attributes.age]
type = "integer"
low = 0
high = {high}

[attributes.ward]
type = "integer"
low = 0
high = 3
"""


def config_of(epsilon: str, population: int, high: int, shares: list[str]) -> Config:
    analysts = "".join(f'[analysts.a{at}]\nshare = "{share}"\n' for at, share in enumerate(shares))
    return parse_config(
        BASE.format(epsilon=epsilon, population=population, high=high)
        + '\n[attributes.sex]\ntype = "boolean"\n'
        + analysts
    )


@pytest.mark.parametrize(
    ("epsilon", "population", "high", "shares"),
    [
        ("0.001", 10**7, 9, ["1/2", "1/2"]),
        ("100", 10_000, 9, ["1/2", "1/2"]),
        ("1", 10**6, 2, ["1/1000"] * 10),
        ("1", 10**6, 9, ["9/10", "1/1000"]),
    ],
)
def test_what_is_recommended_at_the_extremes_can_be_served(epsilon, population, high, shares):
    config = config_of(epsilon, population, high, shares)
    best = recommend(config, compare_settings(config))
    again = with_settings(config, best)
    refused = [each for each in check_config(again).diagnostics if each.level == "error"]
    assert [each.message for each in refused if "people.csv" not in each.message] == []
    assert recommend(again, compare_settings(again)) == best
    assert sum(again.shares.values()) <= again.budget.total


def test_no_reserve_is_proposed_that_hardly_helps():
    """Where the seed tells every cell, little more can be bought with Laplace noise."""
    config = config_of("1", 100_000, 9, ["2/5", "2/5"])
    found = compare_settings(config)
    best = recommend(config, found)
    assert best.paying_helps or best.seed_fraction == 1
    small = [each for each in found if each.seed_fraction == Fraction(49, 50) and not each.budget.delta]
    assert small
    assert best.seed_fraction == 1 or best.paying_is_useful


def test_another_threshold_judges_the_same_settings_anew():
    """As if they were compared again: errors do not depend on the threshold."""
    config = config_of("1", 10_000, 9, ["1/2", "1/3"])
    again = replace(config, error_threshold=7.5)
    expected = compare_settings(again)
    found = [each.with_threshold(7.5) for each in compare_settings(config)]
    assert sorted(found, key=rank) == expected
    useful = {(each.seed, each.seed_fraction, each.query_budget): each for each in expected}
    for each in found:
        same = useful[each.seed, each.seed_fraction, each.query_budget]
        assert each.paying_is_useful == same.paying_is_useful


def test_a_table_with_more_cells_than_a_float_can_count_is_proposed(tmp_path):
    columns = {f"c{at}": [str(row % 9) for row in range(9)] for at in range(330)}
    source, target = Path(write_table(tmp_path / "table.csv", columns)), tmp_path / "sharewell.toml"
    config = provisional_config(propose(source, target), target)
    assert config.domain.cells > sys.float_info.max
    assert f"# A{format_cells(config.domain.cells)[1:]}, the product of" in config.text
