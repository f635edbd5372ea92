"""The lab's commands: found by their entry point, named where the lab is not installed."""

import json
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from sharewell.cli import app, research

RUN = CliRunner()


def test_the_lab_is_found_by_its_entry_point():
    result = RUN.invoke(app, ["--help"])
    assert all(name in result.output for name in research.LAB)


@pytest.mark.parametrize(
    "words", [["reproduce", "fig1"], ["simulate", "S.toml", "--jobs", "2"], ["theory"]]
)
def test_without_the_lab_its_commands_say_how_to_install_it(monkeypatch, words):
    monkeypatch.setattr(research, "entry_points", lambda group: [])
    core = typer.Typer(cls=type(typer.main.get_group(app)))
    for commands in research.installed_commands():
        core.add_typer(commands)
    result = RUN.invoke(core, words)
    assert result.exit_code == 2
    assert f"'sharewell {words[0]}' is part of sharewell-lab, which is not installed" in result.stderr
    assert "pip install sharewell-lab" in result.stderr
    assert words[0] not in RUN.invoke(core, ["--help"]).output


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
    for number in ("125.0", "1,000.0", "25.0", "100.0", "200.0"):
        assert number in result.output


def test_the_query_limit_as_json_holds_all_that_was_asked():
    result = RUN.invoke(
        app, ["theory", "limit", "--alpha", "1000", "--epsilon", "0.5", "--analysts", "2", "--json"]
    )
    found = json.loads(result.stdout)
    assert found["epsilon"] == "1/2"
    assert found["norm"]["together"] == pytest.approx(500 ** (2 / 3))
    assert found["norm"]["independent"] == pytest.approx(2 * 250 ** (2 / 3))
    assert found["per_query"] == {"alone": 250, "independent": 500, "together": 500}


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
