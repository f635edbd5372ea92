"""The tutorial is true: everything on the page is run, in order, as a newcomer would type it.

The curator's guide has commands that cannot be run here. They are read as the command line reads them.
"""

import contextlib
import io
import itertools
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from sharewell import cli
from sharewell.service.http.monitoring import Metrics
from tests.pages import CURATOR, TUTORIAL, Block, blocks_to_run, compare, read

#: The port on the page. The test takes any that is free, and reads this as that one.
PORT = "8080"
SERVE = "sharewell serve"
#: The words at which the reader stops the server.
STOP = "Press Ctrl-C"
#: Its figures are computed beside the service, and may be a moment behind.
LAGS = "sharewell certificate"
#: How long anything may take, in seconds, on a machine that is busy with something else.
PATIENCE = 90


class Walk:
    """Somebody who does what a page says: in a terminal, in another one, and in Python."""

    def __init__(self, page: Path, folder: Path) -> None:
        self._page = page
        self._hidden = folder
        self._here = folder / "terminal"
        self._here.mkdir()
        # A terminal of 80 columns, in which nothing of this machine's own plays a part.
        self._environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "COLUMNS": "80",
            "TERM": "dumb",
            "PYTHONIOENCODING": "utf-8",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self._names: dict[str, object] = {"__name__": "tutorial"}
        self._server: subprocess.Popen[bytes] | None = None
        self._port = PORT
        #: The exit codes of the servers that were started and stopped.
        self.stopped: list[int] = []

    def all_the_way(self) -> int:
        """Run every block; how many there were."""
        markdown = read(self._page)
        lines, last, count = markdown.splitlines(), 0, 0
        for block, expected in blocks_to_run(markdown, {"sh", "python"}):
            if self._server and any(STOP in line for line in lines[last : block.opens]):
                self.stop()
            self._run(block, expected)
            last, count = block.closes, count + 1
        return count

    def stop(self) -> None:
        """Do as Ctrl-C does: tell all that runs in the server's terminal."""
        if self._server is not None:
            os.killpg(self._server.pid, signal.SIGINT)
            self.stopped.append(self._server.wait(PATIENCE))
            self._server = None

    def end(self) -> None:
        """Leave nothing behind, whatever has happened."""
        if self._server is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._server.pid, signal.SIGKILL)
            self._server.wait()

    @property
    def server_said(self) -> str:
        """All that stands in the server's terminal."""
        return (self._hidden / "server").read_text(encoding="utf-8")

    def _run(self, block: Block, expected: str | None) -> None:
        where = f"{self._page.name}:{block.opens}"
        if block.language == "python":
            printed = self._python(block)
        elif block.text.startswith(SERVE):
            printed = self._serve(where, block.text)
        else:
            printed = self._shell(where, block.text)
        if expected is None:
            return
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                compare(where, expected.replace(PORT, self._port), printed)
                return
            except pytest.fail.Exception:
                if LAGS not in block.text or time.monotonic() > deadline:
                    raise
            printed = self._shell(where, block.text)

    def _shell(self, where: str, text: str) -> str:
        after = self._hidden / "environment"
        script = f"set -eo pipefail\n{self._read(text)}\nenv -0 > {shlex.quote(str(after))}\n"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self._here,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            encoding="utf-8",
            check=False,
        )
        if done.returncode:
            pytest.fail(f"{where} ends with {done.returncode}:\n{done.stdout}", pytrace=False)
        kept = after.read_text(encoding="utf-8").split("\0")
        self._environment = dict(each.split("=", 1) for each in kept if each)
        self._here = Path(self._environment["PWD"])
        return done.stdout

    def _python(self, block: Block) -> str:
        source = "\n" * block.opens + self._read(block.text)
        printed = io.StringIO()
        with contextlib.chdir(self._here), contextlib.redirect_stdout(printed):
            exec(compile(source, str(self._page), "exec", dont_inherit=True), self._names)
        return printed.getvalue()

    def _serve(self, where: str, text: str) -> str:
        """Start the server at a free port, wait until it is ready, and give what it has said."""
        with (self._hidden / "server").open("wb") as screen:
            self._server = subprocess.Popen(
                [*shlex.split(text), "--port", "0"],
                cwd=self._here,
                env=self._environment,
                stdout=screen,
                stderr=screen,
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE
        while (found := re.search(r"http://127\.0\.0\.1:(\d+)", self.server_said)) is None:
            if self._server.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"{where} does not serve:\n{self.server_said}", pytrace=False)
            time.sleep(0.05)
        self._port = found[1]
        self._environment["SHAREWELL_URL"] = found[0]
        with urllib.request.urlopen(f"{found[0]}/readyz", timeout=PATIENCE) as ready:
            assert ready.status == 200
        return self.server_said

    def _read(self, text: str) -> str:
        return text.replace(PORT, self._port)


@pytest.fixture
def walk(tmp_path):
    started = []

    def begin(page: Path) -> Walk:
        started.append(Walk(page, tmp_path))
        return started[-1]

    yield begin
    for each in started:
        each.end()


@pytest.mark.slow
@pytest.mark.statistical
def test_the_tutorial_does_what_it_says(walk):
    """The page shows first digits; noise changes one of them less than once in 10,000,000 runs.

    The table is the same in every run. 6,523 of its people are 65 or older, with a standard error of 26
    in the answer: more than 18 standard errors from where another digit begins.
    """
    before = random.getstate()
    random.seed(6)
    newcomer = walk(TUTORIAL)
    try:
        assert newcomer.all_the_way() > 15
    finally:
        random.setstate(before)
    assert newcomer.stopped == [0]
    # Nothing was said but what the page shows: no warning, and no traceback at Ctrl-C.
    said = newcomer.server_said.splitlines()
    greeting, goodbye = [line for line in said if not line.startswith("Opening")]
    assert " at http" in greeting
    assert goodbye == "Closed. All questions are in the ledger."
    assert goodbye in read(TUTORIAL)


def test_every_output_on_the_page_is_compared():
    markdown = read(TUTORIAL)
    shown = sum(block.language == "text" for block, _ in blocks_to_run(markdown, {"text"}))
    compared = sum(expected is not None for _, expected in blocks_to_run(markdown, {"sh", "python"}))
    assert compared == shown > 10


def typed(text: str) -> Iterator[list[str]]:
    """The words after `sharewell` of each command in a block."""
    for line in text.replace("\\\n", " ").splitlines():
        reader = shlex.shlex(line, posix=True, punctuation_chars=True)
        reader.whitespace_split = True
        words = list(reader)
        ends = [at for at, word in enumerate(words) if set(word) <= set("|&;<>()")]
        for start, end in itertools.pairwise([-1, *ends, len(words)]):
            if words[start + 1 : start + 2] == ["sharewell"]:
                yield words[start + 2 : end]


def parse(words: list[str]) -> None:
    """Read words as the command line does, and do nothing; raises what it would refuse them with."""
    command: Any = typer.main.get_command(cli.app)
    context = command.make_context("sharewell", list(words))
    while rest := [*getattr(context, "_protected_args", ()), *context.args]:
        name, command, rest = context.command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
        if not hasattr(command, "commands"):
            break


COMMANDS = [
    pytest.param(words, id=" ".join(["sharewell", *words]))
    for block, _ in blocks_to_run(read(CURATOR), {"sh"})
    for words in typed(block.text)
]


@pytest.mark.parametrize("words", COMMANDS)
def test_the_commands_of_the_guide_can_be_typed(words):
    parse(words)


def test_the_metrics_that_the_guide_names_are_there():
    metrics = Metrics()
    metrics.count_request("GET", "/healthz", 200, 0.1)
    metrics.questions.labels("people", "answered").inc()
    shown = metrics.render({"people": 0}).decode()
    named = set(re.findall(r"sharewell_\w+", read(CURATOR)))
    assert len(named) == 4
    assert {name for name in named if f"\n{name}" not in shown} == set()


class TestTheWalkCanFail:
    """The walk, on small pages that are true or not."""

    @pytest.fixture
    def page(self, tmp_path):
        def write(text: str) -> Path:
            path = tmp_path / "page.md"
            path.write_text(text, encoding="utf-8")
            return path

        return write

    def test_folder_and_environment_last_and_python_has_them(self, page, walk):
        text = (
            "```sh\nmkdir inner && cd inner\nexport WORD=hello\n```\n"
            "```sh\necho $WORD > said.txt\npwd >&2\n```\n```text\n.../inner\n```\n"
            "```python\nfrom pathlib import Path\nprint(Path('said.txt').read_text())\n```\n"
            "```text\nhello\n```\n"
        )
        assert walk(page(text)).all_the_way() == 3

    def test_a_failing_command_fails(self, page, walk):
        with pytest.raises(pytest.fail.Exception, match=r"page.md:1 ends with 1:\nbefore"):
            walk(page("```sh\necho before\nfalse\ntrue\n```\n")).all_the_way()

    def test_a_wrong_output_fails(self, page, walk):
        with pytest.raises(pytest.fail.Exception, match="prints\nsomething\n"):
            walk(page("```sh\necho something\n```\n```text\nelse\n```\n")).all_the_way()

    def test_what_lags_is_looked_at_again(self, page, walk):
        text = "```sh\necho . >> times # sharewell certificate\nwc -l < times\n```\n```text\n...3\n```\n"
        assert walk(page(text)).all_the_way() == 1

    def test_a_server_that_does_not_start_fails(self, page, walk):
        with pytest.raises(pytest.fail.Exception, match=r"does not serve:\n.*no-such\.toml"):
            walk(page("```sh\nsharewell serve no-such.toml\n```\n")).all_the_way()

    def test_commands_are_found_with_their_words(self):
        text = (
            "sharewell ask 'a | b' || echo $?  # sharewell no\n"
            "cat x | sharewell ask - > y\nsharewell \\\n  budget --json\n"
        )
        assert list(typed(text)) == [["ask", "a | b"], ["ask", "-"], ["budget", "--json"]]

    @pytest.mark.parametrize(
        ("words", "why"),
        [
            ("serve --prot 1", "No such option"),
            ("tokens", "No such command"),
            ("analysts add cleo", "Missing"),
            ("token sharewell.toml ann", "unexpected extra argument"),
        ],
    )
    def test_a_command_that_is_none_is_found(self, words, why):
        with pytest.raises(Exception, match=why):
            parse(words.split())
