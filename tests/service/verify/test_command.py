"""The command: a table for people, JSON for programs, and exit codes for scripts."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from sharewell.cli import app
from sharewell.service.ledger import open_ledger
from sharewell.service.verify import verify
from tests.service.ledger.postgres_server import postgres_ledger
from tests.service.verify.ledgers import story, told, written
from tests.service.verify.test_tampering import answer_changed, measured

RUN = CliRunner(env={"COLUMNS": "160"})


@pytest.fixture(scope="module")
def events():
    return told()


def test_a_good_ledger_is_shown_as_such_and_the_exit_code_is_0(events, tmp_path):
    path = written(tmp_path / "ledger.sqlite", events)
    result = RUN.invoke(app, ["verify", str(path)])
    assert result.exit_code == 0, result.output
    for words in (
        f"A ledger of {len(events)} events",
        "no share overspent",
        "32 answers",
        "nothing wrong",
        "it holds over",
        "Worst ratio",
        "The ledger is intact.",
    ):
        assert words in result.output
    assert "wrong[" not in result.output


def test_what_is_found_is_shown_with_its_code_and_the_exit_code_is_1(events, tmp_path):
    number = measured(events)
    path = written(tmp_path / "ledger.sqlite", answer_changed(events, number, value=1.5))
    result = RUN.invoke(app, ["verify", str(path)])
    assert result.exit_code == 1
    assert "1 wrong" in result.output
    assert f"Event {number}: The value of answer 0 does not follow" in result.output
    assert "answers.differs" in result.output
    assert "The ledger has defects." in result.output


def test_programs_get_all_of_it(events, tmp_path):
    number = measured(events)
    path = written(tmp_path / "ledger.sqlite", answer_changed(events, number, value=1.5))
    result = RUN.invoke(app, ["verify", str(path), "--json"])
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert not found["ok"]
    assert [check["check"] for check in found["checks"]] == [
        "chain",
        "accounts",
        "questions",
        "answers",
        "certificate",
    ]
    [finding] = found["checks"][3]["findings"]
    assert (finding["code"], finding["event"]) == ("answers.differs", number)
    assert found["certificate"]["holds"] is True


def test_a_noted_head_is_compared(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with open_ledger(path, create=True) as ledger:
        story(ledger, short=True)
        head = str(ledger.head)
    assert RUN.invoke(app, ["verify", str(path), "--head", head]).exit_code == 0
    count, _, digest = head.partition(":")
    result = RUN.invoke(app, ["verify", str(path), "--head", f"{int(count) + 1}:{digest}"])
    assert result.exit_code == 1
    assert "chain.head" in result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.sqlite"], "No ledger at"),
        (["nowhere.sqlite", "--head", "12"], "Invalid ledger head"),
    ],
)
def test_bad_input_is_a_sentence_and_exit_code_2(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = RUN.invoke(app, ["verify", *words])
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output


def test_the_certificate_can_be_left_out(events, tmp_path):
    path = written(tmp_path / "ledger.sqlite", events)
    result = RUN.invoke(app, ["verify", str(path), "--no-certificate", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["certificate"] is None


def test_a_ledger_in_postgresql_is_verified_by_its_name(events, postgres):
    url = postgres.database()
    with postgres_ledger(url, "census") as ledger:
        ledger.append_many(events)
    result = RUN.invoke(app, ["verify", url, "--name", "census", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["events"] == len(events)
    assert RUN.invoke(app, ["verify", url, "--name", "other"]).exit_code == 2


def test_progress_is_shown_on_a_terminal_and_not_in_a_pipe(events, tmp_path, monkeypatch):
    path = written(tmp_path / "ledger.sqlite", events)
    assert RUN.invoke(app, ["verify", str(path)]).stderr == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = RUN.invoke(app, ["verify", str(path)]).stderr
    assert "checking" in shown
    assert "\x1b[2K" in shown, "it is erased in the end"


def test_every_check_says_how_far_it_has_come_and_of_how_much(events, tmp_path):
    seen: dict[str, list[tuple[int, int]]] = {}
    path = written(tmp_path / "ledger.sqlite", events)
    verify(path, progress=lambda check, done, of: seen.setdefault(check, []).append((done, of)))
    assert list(seen) == ["chain", "accounts", "questions", "answers", "certificate"]
    assert all(done <= of for steps in seen.values() for done, of in steps)
