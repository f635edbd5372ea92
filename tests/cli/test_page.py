"""docs/command-line.md: every command is run, and prints what the page shows."""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sharewell.cli import app
from tests.service.http.servers import Running, running

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"

#: Noise, secrets and the lengths of lines differ from run to run; what they stand for does not.
DIFFER = (
    (re.compile(r"sw_[\w-]+"), "sw_"),
    (re.compile(r"[█░]+"), "█"),
    (re.compile(r"─+"), "─"),
    (re.compile(r"\b[0-9a-f]{32,}\b"), "#"),
    (re.compile(r"-?\d[\d,]*(?:[./]\d+)?"), "#"),
    (re.compile(r"\s+"), " "),
)


def gist(text: str) -> str:
    """What stays the same of an output."""
    for pattern, same in DIFFER:
        text = pattern.sub(same, text)
    return text.strip() + "\n"


def written(page: str, kind: str) -> Iterator[str]:
    """The blocks of a kind."""
    yield from re.findall(rf"^```{kind}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


class Terminal:
    """Runs the commands of a page in one folder, from top to bottom."""

    def __init__(self, closing: ExitStack) -> None:
        self._env = {"COLUMNS": "80"}
        self._closing = closing
        self._served: Running | None = None

    def type(self, line: str) -> str:
        """What is shown when a line is typed."""
        if (export := re.fullmatch(r"export (\w+)=\$\((.*)\)", line)) is not None:
            output, token = self._run(export[2])
            self._env[export[1]] = token.strip()
            return output.removesuffix(token)
        if line.startswith("sharewell serve"):
            self._served = self._closing.enter_context(running(*map(Path, shlex.split(line)[2:])))
            self._env["SHAREWELL_URL"] = self._served.url
            return ""
        if line == "sharewell certificate" and self._served is not None:
            # It is computed beside the answers, and may still be on its way.
            self._served.registry.datasets["people"].report(up_to_date=True)
        if (code := re.fullmatch(r"(.*); echo \$\?", line)) is not None:
            result = self._invoke(code[1])
            return f"{result.output}{result.exit_code}\n"
        return self._run(line)[0]

    def _run(self, line: str) -> tuple[str, str]:
        result = self._invoke(line)
        assert result.exit_code == 0, result.output
        return result.output, result.stdout

    def _invoke(self, line: str):
        program, *words = shlex.split(line)
        assert program == "sharewell"
        return CliRunner().invoke(app, words, env=self._env)


def steps(block: str) -> Iterator[tuple[str, str]]:
    """Each line that is typed, and what the page says comes after it."""
    for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, output = step.partition("\n")
        yield line, output


def prepare(page: str) -> None:
    """Write the files that the page is about."""
    rows = (f"{n * 37 % 100},{'north' if n % 2 else 'south'}\n" for n in range(20_000))
    Path("people.csv").write_text("age,region\n" + "".join(rows))
    sexes = (f"{n},{'f' if n % 2 else 'm'}\n" for n in range(100))
    Path("patients.csv").write_text("person,sex\n" + "".join(sexes))
    visits = (f"{n},E{n % 3}\n" for n in range(100) for _ in range(n % 4))
    Path("visits.csv").write_text("person,code\n" + "".join(visits))
    (config,) = written(page, "toml")
    Path("people.toml").write_text(config)


@pytest.mark.slow
def test_every_command_says_what_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    prepare(page)
    typed = 0
    with ExitStack() as closing:
        terminal = Terminal(closing)
        for block in written(page, "console"):
            for line, expected in steps(block):
                got = gist(terminal.type(line))
                typed += 1
                same = doctest.OutputChecker().check_output(gist(expected), got, doctest.ELLIPSIS)
                assert same, f"$ {line}\nsays\n{got}\nand the page says\n{gist(expected)}"
    assert typed > 20


def test_the_gist_tells_outputs_apart():
    assert gist("3,589 ± 133  9/20 ████░░") == gist("-71.5 ± 8 1/2   █░")
    assert gist("3,589 rows") != gist("3,589 ± 133")
    assert gist("It cost nothing") != gist("It cost 1/50")
