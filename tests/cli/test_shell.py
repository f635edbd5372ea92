"""At a real shell: pipes, Ctrl-C, completion, and words that mean something there."""

import os
import re
import signal
import subprocess
import sys

import pytest

from sharewell.cli.files import Files
from sharewell.cli.words import clean, in_shell_words, one_line
from tests.cli.commands import COUNT, InProcess, found, said
from tests.service.waiting import comes_true, greeted

#: Where tests run in the background, their processes would be deaf to Ctrl-C; at a shell none is.
HEARS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
RUN = [sys.executable, "-c", f"{HEARS}; from sharewell.cli import main; main()"]


def shell(*words: str, **options):
    """A command in a process of its own."""
    return subprocess.Popen(
        [*RUN, *words],
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_ctrl_c_ends_the_waiting_without_a_traceback(in_turns):
    waiting = shell("ask", COUNT, *in_turns.of("ben"))
    questions = in_turns.running.house.desk("people").broker.tickets
    comes_true(lambda: len(questions("ben")) == 1)
    # The question is stored before the command waits for it; then it waits at the server.
    watchers = in_turns.running.reception.windows["people"]._watchers
    comes_true(lambda: bool(watchers) or waiting.poll() is not None)
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=30)
    assert (waiting.returncode, out) == (130, "")
    assert re.search(r"--key \w+, or run `sharewell answer 6`", err)
    assert "Traceback" not in err


def test_a_reader_that_has_enough_ends_the_command_quietly(dataset):
    said("ask", COUNT, *InProcess(dataset).of("ann"))
    for more in ([], ["--json"]):
        reading, writing = os.pipe()
        os.close(reading)
        command = shell("ledger", "--config", str(dataset), *more, stdout=writing)
        os.close(writing)
        _, err = command.communicate(timeout=30)
        assert (command.returncode, err) == (141, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a disk that is always full is Linux's")
def test_a_full_disk_is_said_in_a_sentence():
    with open("/dev/full", "w") as full:
        command = shell("--version", stdout=full)
    _, err = command.communicate(timeout=30)
    assert (command.returncode, err) == (
        2,
        "What was to be said could not be written: the disk is full.\n",
    )


def test_a_terminal_that_knows_only_ascii_is_no_error(dataset):
    link = InProcess(dataset).of("ann")
    command = shell("budget", *link, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    out, err = command.communicate(timeout=60)
    assert (command.returncode, err) == (0, "")
    assert "##########----------" in out


def test_a_server_serves_until_ctrl_c(dataset, tmp_path):
    log = tmp_path / "log"
    server = shell("serve", str(dataset), "--port", "0", "--log", str(log))
    try:
        url = found(r"at (http://\S+);", greeted(server.stdout))[1]
        token = said("token", "ann", "--config", str(dataset)).strip()
        assert "which ann paid" in said("ask", COUNT, "--url", url, "--token", token)
    finally:
        server.send_signal(signal.SIGINT)
        _, err = server.communicate(timeout=30)
    assert (server.returncode, err) == (0, "")
    assert "/ask" in log.read_text()


def completed(*words: str) -> list[str]:
    """What a shell offers, by typer's protocol with bash."""
    line = " ".join(["sharewell", *words])
    env = {
        **os.environ,
        "_SHAREWELL_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words)),
    }
    code = "import sys; sys.argv[0] = 'sharewell'; from sharewell.cli import main; main()"
    out = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert out.stderr == ""
    return out.stdout.split()


def test_shells_complete_commands_options_and_files(dataset, tmp_path, monkeypatch):
    assert {"ask", "serve", "token", "analysts"} <= set(completed(""))
    assert completed("analysts", "re") == ["remove"]
    assert "--free" in completed("ask", "--f")
    monkeypatch.chdir(tmp_path)
    assert completed("serve", "p") == ["people.toml"]
    assert completed("budget", "--config", "") == ["people.toml"]


def test_files_are_completed_by_their_endings_and_folders(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    for name in ("a.toml", "b.csv", ".hidden.toml", "deep/c.toml"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    files = Files(".toml")
    assert files.complete("") == ["a.toml", "deep/"]
    assert files.complete("de") == ["deep/"]
    assert files.complete("deep/") == ["deep/c.toml"]
    assert files.complete(f"{tmp_path}/a") == [f"{tmp_path}/a.toml"]
    assert files.complete(".h") == [".hidden.toml"]
    assert files.complete("none/") == []


def test_help_of_every_command_needs_no_service_and_no_data():
    code = (
        "import sys; from typer.testing import CliRunner; from sharewell.cli import app\n"
        "for words in ('ask', 'analysts add', 'ledger', 'serve', 'token'):\n"
        "    assert CliRunner().invoke(app, [*words.split(), '--help']).exit_code == 0\n"
        "heavy = {'duckdb', 'opendp', 'scipy', 'sqlglot', 'fastapi', 'uvicorn', 'httpx'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def test_a_question_to_a_server_needs_none_of_what_servers_need(server):
    code = (
        "import sys; from typer.testing import CliRunner; from sharewell.cli import app\n"
        "result = CliRunner().invoke(app, sys.argv[1:])\n"
        "assert result.exit_code == 0, result.output\n"
        "heavy = {'duckdb', 'opendp', 'scipy', 'sqlglot', 'fastapi', 'uvicorn'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    words = ["ask", COUNT, *server.of("ann")]
    assert subprocess.check_output([sys.executable, "-c", code, *words], text=True) == "[]\n"


def test_hints_for_programs_become_words_of_a_shell():
    for python, shell_words in (
        ("Ask again with key='a-1': once.", "Ask again with --key a-1: once."),
        ("or take ticket(7), to", "or run `sharewell answer 7`, to"),
        ("Give it as verify='ca.pem'.", "Give it as --ca ca.pem."),
        ("say allow_http=True where", "say --allow-http where"),
        ("ask with pay=False", "ask with --free"),
        ("Nothing of the kind.", "Nothing of the kind."),
    ):
        assert in_shell_words(python) == shell_words


def test_texts_are_cleaned_and_cut():
    assert clean("a\x1b[31m\x9b\u202eb\nc\td é ±") == "a�[31m��b\nc\td é ±"
    assert one_line("SELECT\n  1", 8) == "SELECT 1"
    assert one_line("SELECT\n  12", 8) == "SELECT …"
