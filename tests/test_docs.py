"""The documentation is true: its Python runs, its links lead somewhere, no command is left out."""

import contextlib
import importlib
import io
import random
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main

from sharewell.config import parse_config
from sharewell.privacy.noise import ExactNoise
from sharewell_lab.noise import SeededNoise
from tests.pages import (
    DOCS,
    README,
    ROOT,
    WITH_THEIR_OWN_TEST,
    blocks_to_run,
    compare,
    fenced_blocks,
    read,
)

PAGES_AT_THE_TOP = sorted(ROOT.glob("*.md"))

LINK = re.compile(
    r"""\]\(\s*<?(?P<inline>[^)\s>]+)"""  # [text](target), ![picture](target)
    r"""|^\s{0,3}\[[^\]]+\]:\s*<?(?P<reference>[^\s>]+)"""  # [name]: target
    r"""|<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=["'](?P<html>[^"'\s]+)""",
    re.MULTILINE,
)
ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//|#)", re.IGNORECASE)


def run_page(page: Path) -> int:
    """Run a page's Python blocks in one namespace; the number of blocks run."""
    module = types.ModuleType("documentation_page")
    sys.modules[module.__name__] = module
    count = 0
    try:
        for block, expected in blocks_to_run(read(page), {"python", "py"}):
            # The leading new lines make a traceback point into the page.
            source = "\n" * block.opens + block.text
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(source, str(page), "exec", dont_inherit=True), module.__dict__)
            if expected is not None:
                compare(f"{page.name}:{block.opens}", expected, printed.getvalue())
            count += 1
    finally:
        del sys.modules[module.__name__]
    return count


def prose(markdown: str) -> str:
    """The page without code, where brackets mean something else."""
    lines = markdown.splitlines()
    for block in fenced_blocks(markdown):
        lines[block.opens - 1 : block.closes] = [""] * (block.closes - block.opens + 1)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", "\n".join(lines))


def broken_links(page: Path, root: Path) -> list[str]:
    """The page's relative links that lead to no file of the project."""
    broken = []
    for match in LINK.finditer(prose(read(page))):
        target = match["inline"] or match["reference"] or match["html"]
        if ELSEWHERE.match(target):
            continue
        path = (page.parent / target.split("#")[0].split("?")[0]).resolve()
        if not path.is_relative_to(root.resolve()) or not path.exists():
            broken.append(target)
    return broken


def commands(command: Any, name: str) -> Iterator[str]:
    """Every command that can be typed, as `sharewell serve`; hidden ones are left out."""
    if getattr(command, "hidden", False):
        return
    children = getattr(command, "commands", None)
    if children is None:
        yield name
        return
    for child_name, child in sorted(children.items()):
        yield from commands(child, f"{name} {child_name}")


def undocumented(names: list[str], pages: str) -> list[str]:
    """The commands that no page names."""
    return [name for name in names if not re.search(rf"(?<![\w-]){name}(?![\w-])", pages)]


@pytest.fixture
def empty_directory(tmp_path, monkeypatch):
    directory = tmp_path / "where the page runs"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return directory


@pytest.fixture
def same_luck(monkeypatch):
    """The same invented rows and the same noise in every run: pages show the first digits of answers."""
    noise = SeededNoise(1)
    for kind in ("laplace", "gaussian"):
        monkeypatch.setattr(ExactNoise, kind, staticmethod(getattr(noise, kind)))
    before = random.getstate()
    random.seed(1)
    yield
    random.setstate(before)


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    "page", [page for page in (README, *DOCS) if page not in WITH_THEIR_OWN_TEST], ids=page_name
)
def test_the_python_of_a_page_runs_and_prints_what_it_says(page, empty_directory, same_luck):
    run_page(page)


@pytest.mark.parametrize("page", [*PAGES_AT_THE_TOP, *DOCS], ids=page_name)
def test_the_links_of_a_page_lead_to_files_of_the_project(page):
    assert broken_links(page, ROOT) == []


def test_every_command_is_documented():
    pages = "\n".join(read(page) for page in [README, *DOCS])
    if not pages.strip():
        return  # nothing is documented before the first page is written
    cli = importlib.import_module("sharewell.cli")
    names = list(commands(typer.main.get_command(cli.app), "sharewell"))
    assert names
    assert undocumented(names, pages) == []


CONFIGURATIONS = [
    pytest.param(block.text, id=f"{page.name}:{block.opens}")
    for page in (README, *DOCS)
    for block in fenced_blocks(read(page))
    if block.language == "toml" and "[dataset]" in block.text
]


@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_every_configuration_in_the_docs_can_be_used(text):
    config = parse_config(text)
    assert config.workloads()
    assert config.scheduler().analysts == tuple(config.shares)


class TestTheseTestsCanFail:
    """The rules above, on small pages that keep or break them."""

    @pytest.fixture
    def page(self, tmp_path, empty_directory):
        def write(text: str) -> Path:
            path = tmp_path / "page.md"
            path.write_text(text, encoding="utf-8")
            return path

        return write

    def test_blocks_share_names_in_order(self, page):
        good = "```python\nx = 2\n```\nwords\n```python\nprint(x + 1)\n```\n\n```text\n3\n```\n"
        assert run_page(page(good)) == 2

    def test_a_failing_block_fails_and_points_into_the_page(self, page):
        path = page("# Title\n\n```python\nx = 1\nx / 0\n```\n")
        with pytest.raises(ZeroDivisionError) as failure:
            run_page(path)
        assert str(failure.traceback[-1].path) == str(path)
        assert failure.traceback[-1].lineno + 1 == 5

    def test_a_wrong_output_fails(self, page):
        with pytest.raises(pytest.fail.Exception, match="prints\n2\n"):
            run_page(page("```python\nprint(2)\n```\n```text\n3\n```\n"))

    def test_an_ellipsis_stands_for_anything(self, page):
        pattern = "```python\nprint('a', {}, 'b')\n```\n```text\na ... b\n```\n"
        assert run_page(page(pattern.format(17))) == 1
        with pytest.raises(pytest.fail.Exception):
            run_page(page(pattern.format("17, 'b', 'c'").replace("'b')", "'d')")))

    def test_a_text_block_further_down_is_not_an_output(self, page):
        assert run_page(page("```python\nprint(2)\n```\nA picture:\n```text\n<- ->\n```\n")) == 1

    def test_an_indented_block_runs(self, page):
        assert run_page(page("- first\n\n  ```python\n  if True:\n      x = 1\n  ```\n")) == 1

    def test_a_block_within_a_longer_fence_is_not_run(self, page):
        assert run_page(page("````md\n```python\n1 / 0\n```\n````\n")) == 0

    def test_a_block_that_never_closes_fails(self, page):
        with pytest.raises(pytest.fail.Exception, match="line 1 is never closed"):
            run_page(page("```python\nx = 1\n"))

    def test_a_page_runs_in_an_empty_directory(self, page, empty_directory):
        run_page(page("```python\nopen('made.txt', 'w').close()\n```\n"))
        assert [path.name for path in empty_directory.iterdir()] == ["made.txt"]

    def test_a_broken_link_is_found(self, page, tmp_path):
        text = (
            "[here](page.md#part) [web](https://example.org) [part](#part) `[no](link.md)`\n"
            "![picture](gone.svg) [up](../../outside.md)\n"
            '<img src="gone.png">\n\n[name]: gone.md\n\n```md\n[no](link.md)\n```\n'
        )
        found = broken_links(page(text), tmp_path)
        assert found == ["gone.svg", "../../outside.md", "gone.png", "gone.md"]

    def test_a_command_that_no_page_names_is_found(self):
        app, inner = typer.Typer(), typer.Typer()
        for group, name, hidden in [
            (app, "serve", False),
            (app, "secret", True),
            (inner, "add", False),
            (inner, "list", False),
        ]:
            group.command(name, hidden=hidden)(lambda: None)
        app.add_typer(inner, name="token")
        names = list(commands(typer.main.get_command(app), "sharewell"))
        assert names == ["sharewell serve", "sharewell token add", "sharewell token list"]
        pages = "Run `sharewell serve-all`, then `sharewell token add`."
        assert undocumented(names, pages) == ["sharewell serve", "sharewell token list"]
