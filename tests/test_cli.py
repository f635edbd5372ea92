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


@pytest.mark.parametrize("words", [[], ["ask"], ["analysts"], ["analysts", "remove"], ["verify"]])
def test_the_help_shows_no_type_beside_flags(words):
    shown = RUN.invoke(app, [*words, "--help"]).output
    assert "--help" in shown
    assert "bool" not in shown


def test_an_unknown_command_is_refused_with_usage():
    result = RUN.invoke(app, ["dmeo"])
    assert result.exit_code == 2
    assert "dmeo" in result.output


@pytest.mark.slow
def test_the_demonstration_runs_its_whole_script():
    result = RUN.invoke(app, ["demo", "--script"], env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    for line in (
        "278,000 people of Massachusetts",
        "http://127.0.0.1:",
        "dana  curator  sw_",
        "Measured; cost 1/60, paid by ann.",
        "Cached; free, already paid for by ann.",
        "Measured; cost 1/60, paid by cleo.",
        "Did you mean 'widowed'?",
        "single rows are never returned",
        "Budgets",
        "Fairness certificate: No analyst is worse off for sharing, after 4 entries.",
    ):
        assert line in result.output
    assert len(set(re.findall(r"http://127.0.0.1:\d+/#code=\S{20,}", result.output))) == 3
    # No answer is less precise than alone or without another analyst.
    standings = re.findall(r"^(\w+) +\d+ +\d+ +\d+ +\d+ +0 *$", result.output, re.MULTILINE)
    assert standings == ["ann", "ben", "cleo"]


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


def test_the_help_needs_none_of_the_heavy_libraries():
    code = (
        "import sys; from sharewell.cli import app; "
        "heavy = {'duckdb', 'numpy', 'opendp', 'scipy', 'sqlglot', 'pandas', 'polars', 'pyarrow'}; "
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
    assert "The best 3 of 128 settings" in shown.stdout
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
