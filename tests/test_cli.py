"""The command line: every command runs, says what it should, and starts quickly."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import sharewell
from sharewell.cli import app

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
    result = RUN.invoke(app, ["demo"])
    assert result.exit_code == 0, result.output
    for line in (
        "277,677 people of Massachusetts",
        "ann paid",
        "free: cached, ann has paid for it",
        "cleo paid",
        "Did you mean 'widowed'?",
        "no single row is ever shown",
        "The budget, after all that",
    ):
        assert line in result.output


def test_the_help_needs_none_of_the_heavy_libraries():
    code = (
        "import sys; from sharewell.cli import app; "
        "heavy = {'duckdb', 'opendp', 'scipy', 'sqlglot', 'pandas', 'polars', 'pyarrow'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
