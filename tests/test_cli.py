"""The command line: every command runs, says what it should, and starts quickly."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sharewell
from sharewell.cli import app
from sharewell.config import parse_config

RUN = CliRunner()


def test_the_version_is_that_of_the_package():
    result = RUN.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"sharewell {sharewell.__version__}\n"


def test_without_a_command_the_help_is_shown():
    result = RUN.invoke(app, [])
    assert "demo" in result.output


def test_an_unknown_command_is_refused_with_usage():
    result = RUN.invoke(app, ["dmeo"])
    assert result.exit_code == 2
    assert "dmeo" in result.output


@pytest.mark.slow
def test_the_demonstration_plays_its_whole_story():
    result = RUN.invoke(app, ["demo", "--script"], env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    for line in (
        "278,000 people of Massachusetts",
        "http://127.0.0.1:",
        "dana  curator  sw_",
        "ann paid epsilon 0.01667",
        "free for ben: ann has paid for it",
        "cleo paid epsilon",
        "Did you mean 'widowed'?",
        "no single row is ever shown",
        "What everybody has left",
        "The fairness certificate",
    ):
        assert line in result.output
    unharmed = re.findall(r"^ +(\w+) .* no *$", result.output, re.MULTILINE)
    assert unharmed == ["ann", "ben", "cleo"]


@pytest.mark.slow
def test_the_demonstration_serves_until_it_is_stopped_and_leaves_nothing_behind(tmp_path):
    command = [str(Path(sys.executable).with_name("sharewell")), "demo", "--port", "0"]
    env = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout
        shown = ""
        while "SHAREWELL_TOKEN=" not in shown:
            shown += demo.stdout.readline()
        url, token = re.findall(r"SHAREWELL_URL=(\S+) SHAREWELL_TOKEN=(\S+)", shown)[0]
        with sharewell.connect(url, token) as ann:
            assert ann.ask("SELECT COUNT(*) FROM people", pay=False).cost == 0
        demo.terminate()
    assert demo.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_the_coupon_time_is_shown_beside_what_misleads():
    asked = "theory coupons --analysts 10 --quota 50 --steps 600 --probability 0.95"
    result = RUN.invoke(app, asked.split())
    assert result.exit_code == 0, result.output
    for words in ("614.3", "431.7", "too low: less than the sum", "690", "0.4148", "60.0 turns"):
        assert words in result.output


def test_analysts_who_differ_are_listed_with_what_they_can_expect():
    asked = "theory coupons --analysts 3 --quota 50,20,20 --probabilities 0.5,1/4,0.25 --steps 90"
    result = RUN.invoke(app, asked.split())
    assert result.exit_code == 0, result.output
    assert "45.0  below the quota" in result.output
    assert "0.0061" in result.output


def test_a_crowd_is_not_listed_one_by_one():
    drawn = ",".join(["1/26"] * 24 + ["2/26"])
    asked = ["theory", "coupons", "--analysts", "25", "--quota", "2", "--probabilities", drawn]
    result = RUN.invoke(app, [*asked, "--steps", "130"])
    assert result.exit_code == 0, result.output
    assert "from 5.0 to 10.0 turns each" in result.output


def test_the_coupon_time_as_json_holds_all_that_was_asked():
    asked = "theory coupons --analysts 2 --quota 5 --steps 12 --probability 0.9 --json"
    result = RUN.invoke(app, asked.split())
    found = json.loads(result.stdout)
    assert found["expected"] == pytest.approx(12.4609375)
    assert found["quotas"] == [5, 5]
    assert found["asymptotic"]["too_low"] is True
    assert found["upper_bound"]["warning"] is None
    assert found["after"]["probability"] == pytest.approx(627 / 1024)
    assert found["after"]["expected_turns"] == [6, 6]
    assert found["steps_for"] == {"probability": 0.9, "steps": 16, "exact": True}


def test_the_query_limit_is_shown():
    asked = "theory limit --alpha 1000 --epsilon 1 --analysts 8"
    result = RUN.invoke(app, asked.split())
    assert result.exit_code == 0, result.output
    for number in ("25.0", "100.0", "200.0"):
        assert number in result.output


def test_the_query_limit_as_json_holds_all_that_was_asked():
    result = RUN.invoke(
        app, ["theory", "limit", "--alpha", "1000", "--epsilon", "0.5", "--analysts", "2", "--json"]
    )
    found = json.loads(result.stdout)
    assert found["epsilon"] == "1/2"
    assert found["together"] == pytest.approx(500 ** (2 / 3))
    assert found["usable"] == pytest.approx(500 ** (2 / 3) - 250 ** (2 / 3))


BAD = {
    "theory coupons --analysts 0 --quota 5": "The number of analysts must be from 1 to 100,000, not 0.",
    f"theory coupons --analysts {10**40} --quota 5": "more than 30 digits",
    "theory coupons --analysts 2 --quota 0": "nothing to wait for",
    "theory coupons --analysts 2 --quota many": "must be a whole number, not 'many'",
    "theory coupons --analysts 2 --quota 5,": "must be a whole number, not ''",
    "theory coupons --analysts 2 --quota 1,2,3": "2 analysts and 3 quotas",
    "theory coupons --analysts 2 --quota 5 --probabilities 0.5,0.6": "sum to 1.1",
    "theory coupons --analysts 2 --quota 5 --probabilities -0.5,1.5": "not -0.5",
    "theory coupons --analysts 2 --quota 5 --probabilities nan,0.5": "not nan",
    "theory coupons --analysts 2 --quota 5 --probabilities 1/0,0.5": "must be a number, not '1/0'",
    "theory coupons --analysts 2 --quota 5 --steps -1": "number of steps must be from 0",
    "theory coupons --analysts 2 --quota 5 --probability 1": "above 0 and below",
    "theory limit --alpha inf --epsilon 1 --analysts 2": "alpha must be a number above 0",
    "theory limit --alpha nan --epsilon 1 --analysts 2": "alpha must be a number above 0",
    "theory limit --alpha 5 --epsilon none --analysts 2": "epsilon must be a plain number",
    "theory limit --alpha 5 --epsilon 1 --analysts 0": "number of analysts must be",
}


@pytest.mark.parametrize("words", BAD)
def test_a_refusal_is_a_sentence_on_stderr_and_exit_code_2(words):
    result = RUN.invoke(app, words.split())
    assert result.exit_code == 2
    assert BAD[words] in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_a_refusal_is_a_sentence_for_the_installed_command_too():
    asked = ["theory", "coupons", "--analysts", "0", "--quota", "5"]
    code = f"import sys; sys.argv[1:] = {asked}; from sharewell.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr == "The number of analysts must be from 1 to 100,000, not 0.\n"
    assert result.stdout == ""


def test_the_help_needs_none_of_the_heavy_libraries():
    code = (
        "import sys; from sharewell.cli import app; "
        "heavy = {'duckdb', 'opendp', 'scipy', 'sqlglot', 'pandas', 'polars', 'pyarrow'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


SMALL = """
[dataset]
source = "people.csv"
[budget]
epsilon = 1
error_threshold = 20
[attributes.age]
type = "integer"
low = 0
high = 9
[analysts.ann]
share = "1/2"
[analysts.ben]
share = "1/2"
expects = ["SELECT COUNT(*) FROM people WHERE age < 5"]
"""


def test_plan_compares_settings_and_says_what_to_write(tmp_path):
    config = tmp_path / "small.toml"
    config.write_text(SMALL)
    shown = RUN.invoke(app, ["plan", str(config), "--top", "3"])
    assert shown.exit_code == 0
    assert "The best 3 of 60 settings" in shown.stdout
    plain = json.loads(RUN.invoke(app, ["plan", str(config), "--top", "1", "--json"]).stdout)
    best = plain["candidates"][0]
    assert f'seed = "{best["seed"]}"' in shown.stdout
    written = f'{SMALL}\n[mechanism]\nseed_fraction = "{best["seed_fraction"]}"\n'
    assert parse_config(written).shares


def test_plan_says_what_is_wrong_with_a_file(tmp_path):
    config = tmp_path / "wrong.toml"
    config.write_text(SMALL.replace("epsilon = 1", ""))
    refused = RUN.invoke(app, ["plan", str(config)])
    assert refused.exit_code == 2
    assert refused.stderr == 'budget.epsilon is missing. It must be a number such as 0.1 or "1/3".\n'
