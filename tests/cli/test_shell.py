"""In a real shell: pipes, Ctrl-C, completion and error messages."""

import os
import signal
import subprocess
import sys

import pytest

from sharewell.cli.options import complete_files
from sharewell.cli.terminal import format_error, sanitize, truncate
from sharewell.client.connection import read_address
from sharewell.errors import RequestError, Suggestion
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
    questions = in_turns.running.registry.datasets["people"]._submissions.of
    comes_true(lambda: len(list(questions("ben"))) == 1)
    # The question is stored before the command waits for it; then it waits at the server.
    watchers = in_turns.running.state.datasets["people"].watchers
    comes_true(lambda: bool(watchers) or waiting.poll() is not None)
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=120)
    assert (waiting.returncode, out) == (130, "")
    fetch = f"sharewell answer 8 --url {in_turns.running.url}"
    # Before it, a note that paying hardly helps.
    assert err.endswith(f"Interrupted. Question 8 stays in the queue. To fetch its answer:\n  {fetch}\n")
    assert "Traceback" not in err


def test_a_closed_pipe_ends_the_command_quietly(dataset):
    said("ask", COUNT, *InProcess(dataset).of("ann"))
    for more in ([], ["--json"]):
        reading, writing = os.pipe()
        os.close(reading)
        command = shell("ledger", "--config", str(dataset), *more, stdout=writing)
        os.close(writing)
        _, err = command.communicate(timeout=120)
        assert (command.returncode, err) == (141, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a disk that is always full is Linux's")
def test_a_full_disk_is_reported_in_a_sentence():
    with open("/dev/full", "w") as full:
        command = shell("--version", stdout=full)
    _, err = command.communicate(timeout=120)
    assert (command.returncode, err) == (
        2,
        "Cannot write output: no space left on device.\n",
    )


def test_a_terminal_that_knows_only_ascii_is_no_error(dataset):
    options = InProcess(dataset).of("ann")
    command = shell("budget", *options, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    out, err = command.communicate(timeout=120)
    assert (command.returncode, err) == (0, "")
    assert "##########----------" in out


def test_a_server_serves_until_ctrl_c(dataset, tmp_path):
    log = tmp_path / "log"
    server = shell("serve", str(dataset), "--port", "0", "--log", str(log))
    try:
        url = found(r"at (http://\S+);", greeted(server.stdout))[1]
        token = said("token", "ann", "--config", str(dataset)).strip()
        assert "paid by ann" in said("ask", COUNT, "--url", url, "--token", token)
    finally:
        server.send_signal(signal.SIGINT)
        _, err = server.communicate(timeout=120)
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
    complete = complete_files(".toml")
    assert complete("") == ["a.toml", "deep/"]
    assert complete("de") == ["deep/"]
    assert complete("deep/") == ["deep/c.toml"]
    assert complete(f"{tmp_path}/a") == [f"{tmp_path}/a.toml"]
    assert complete(".h") == [".hidden.toml"]
    assert complete("none/") == []


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


@pytest.mark.parametrize(
    ("suggestion", "worded"),
    [
        (Suggestion("key", "a-1"), "Use --key a-1."),
        (Suggestion("ticket", "7"), "Run `sharewell answer 7`."),
        (Suggestion("verify", "ca.pem"), "Use --ca ca.pem."),
        (Suggestion("allow_http", "True"), "Use --allow-http."),
        (Suggestion("pay", "False"), "Use --free."),
    ],
)
def test_suggestions_are_worded_as_options(suggestion, worded):
    error = RequestError("It is wrong.", hint="Mend it.", suggestion=suggestion)
    assert format_error(error) == f"It is wrong. Mend it. {worded}"


def test_an_option_replaces_the_words_of_a_hint_for_python():
    with pytest.raises(RequestError) as refused:
        read_address("http://stats.example.org")
    assert format_error(refused.value).endswith(" Use https, or pass --allow-http on a trusted network.")
    hint = "Try later. Ask again with the key 'a-1': the question is charged once."
    error = RequestError("It is wrong.", hint=hint, suggestion=Suggestion("key", "a-1"))
    assert format_error(error).endswith(" Ask again with --key a-1: the question is charged once.")


def test_a_suggested_word_is_printed_where_no_hint_does():
    suggestion = Suggestion("agee", "age")
    assert format_error(RequestError("Wrong.", suggestion=suggestion)) == "Wrong. Did you mean 'age'?"
    hinted = RequestError("Wrong.", hint="Did you mean age?", suggestion=suggestion)
    assert format_error(hinted) == "Wrong. Did you mean age?"


def test_texts_are_cleaned_and_cut():
    assert sanitize("a\x1b[31m\x9b\u202eb\nc\td é ±") == "a�[31m��b\nc\td é ±"
    assert truncate("SELECT\n  1", 8) == "SELECT 1"
    assert truncate("SELECT\n  12", 8) == "SELECT …"
