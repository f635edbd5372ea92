"""Run commands, and make datasets and servers for them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from sharewell.cli import app
from tests.service.beginning import begun
from tests.service.http.servers import Running

DATASET = """
[dataset]
source = "people.csv"
population = 1000
[budget]
epsilon = 10
error_threshold = 20
[attributes.age]
type = "integer"
low = 0
high = 19
[attributes.sex]
type = "category"
categories = ["F", "M"]
[analysts.ann]
share = "1/4"
[analysts.ben]
share = "1/4"
[mechanism]
query_budget = "{price}"
[scheduler]
name = "{scheduler}"
[service]
certificate = {certificate}
requests_per_second = 100000
release_every = 0.002
"""

COUNT = "SELECT COUNT(*) FROM people WHERE age BETWEEN 3 AND 9"
TOTAL = "SELECT COUNT(*) FROM people"
GROUPS = "SELECT sex, COUNT(*) AS people, AVG(age) FROM people GROUP BY sex"


def write_dataset(
    folder: Path, *, scheduler: str = "none", price: str = "1/80", certificate: str = "false"
) -> Path:
    """A configuration with its rows: 10 people of every age and sex."""
    rows = [f"{age},{sex}" for age in range(20) for sex in "FM" for _ in range(10)]
    (folder / "people.csv").write_text("\n".join(["age,sex", *rows, ""]))
    path = folder / "people.toml"
    path.write_text(DATASET.format(scheduler=scheduler, price=price, certificate=certificate))
    return begun(path)


def found(pattern: str, text: str) -> re.Match[str]:
    """Where a pattern is in a text; it must be."""
    match = re.search(pattern, text)
    assert match is not None, text
    return match


def typed(*words: str, code: int = 0, stdin: str | None = None) -> Any:
    """Run a command; it must end with the exit code, and never with a traceback."""
    result = CliRunner().invoke(app, list(words), input=stdin, env={"COLUMNS": "100"})
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def said(*words: str, code: int = 0, stdin: str | None = None) -> str:
    return str(typed(*words, code=code, stdin=stdin).stdout)


def refused(*words: str, code: int = 2) -> str:
    """Run a command that fails, and return its standard error; standard output must be empty."""
    result = typed(*words, code=code)
    assert result.stdout == ""
    return str(result.stderr)


class OverServer:
    """Options of commands that connect to a server, with a token for each name."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self._tokens: dict[str, str] = {}

    def of(self, name: str) -> list[str]:
        if name not in self._tokens:
            role = "curator" if name == "curator" else "analyst"
            self._tokens[name] = self.running.token(name, role)
        return ["--url", self.running.url, "--token", self._tokens[name]]


class InProcess:
    """Options of commands that open the dataset in this process."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def of(self, name: str) -> list[str]:
        who = [] if name == "curator" else ["--analyst", name]
        return ["--config", str(self.path), *who]


Way = OverServer | InProcess
