"""The map from the paper to the code is true: what it names exists, and so do the tests of all pages."""

import ast
import importlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "paper-map.md"
DOCS = sorted((ROOT / "docs").rglob("*.md"))

CODE = re.compile(r"`([^`]+)`")
SYMBOL = re.compile(r"sharewell(?:_lab)?(?:\.\w+)+")
NODE = re.compile(r"(?P<path>tests/[\w/]+\.py)::(?P<name>\w+)")
TEST_NAME = re.compile(r"test_\w+")
NOT_YET = "not yet"


def rows(page: str) -> list[list[str]]:
    """The cells of every row of the tables, without the heads and the lines under them."""
    lines = page.splitlines()
    found = []
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("|") and not is_rule(line) and not is_rule(below):
            found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


def is_rule(line: str) -> bool:
    """Whether a line is the one under a table's head."""
    return bool(re.fullmatch(r"\|(?: *:?-+:? *\|)+", line))


def named(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    """Whatever stands in backticks and has this form from end to end."""
    return (code for code in CODE.findall(text) if pattern.fullmatch(code))


def resolve(symbol: str) -> Any:
    """The object that a dotted name means: as much of it as can be is a module, the rest attributes."""
    parts = symbol.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError as missing:
            if not f"{symbol}.".startswith(f"{missing.name}."):
                raise
            continue
        for name in parts[split:]:
            found = getattr(found, name)
        return found
    raise ModuleNotFoundError(symbol)


@cache
def functions_of(path: Path) -> frozenset[str]:
    """The test functions of a file, those inside classes too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def missing(nodes: Iterable[str], root: Path = ROOT) -> list[str]:
    """The tests that do not exist."""
    gone = []
    for node in nodes:
        match = NODE.fullmatch(node)
        path = root / match["path"] if match else root
        if not match or not path.is_file() or match["name"] not in functions_of(path):
            gone.append(node)
    return gone


MAP = rows(PAGE.read_text(encoding="utf-8"))
SYMBOLS = sorted({symbol for row in MAP for symbol in named(SYMBOL, " ".join(row))})


def test_the_map_has_rows_of_four_cells():
    assert len(MAP) > 30
    assert [row for row in MAP if len(row) != 4] == []


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_every_symbol_of_the_map_can_be_imported(symbol):
    assert resolve(symbol) is not None


def test_every_test_of_the_map_exists():
    nodes = [node for row in MAP for node in named(NODE, " ".join(row))]
    assert len(nodes) > 10
    assert missing(nodes) == []


@pytest.mark.parametrize("row", MAP, ids=lambda row: row[0])
def test_every_row_names_a_symbol_and_a_test_or_says_not_yet(row):
    *_, symbol, test = row
    assert symbol == NOT_YET or list(named(SYMBOL, symbol)), symbol
    assert test == NOT_YET or list(named(NODE, test)), test
    assert symbol != NOT_YET or test == NOT_YET, "a test of something that does not exist"


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_test_that_a_page_names_exists(page):
    known = {name for path in (ROOT / "tests").rglob("test_*.py") for name in functions_of(path)}
    assert [
        name for name in named(TEST_NAME, page.read_text(encoding="utf-8")) if name not in known
    ] == []


class TestTheseTestsCanFail:
    """The rules above, on names that exist and names that do not."""

    def test_a_table_is_read_without_its_head(self):
        page = "text\n\n| a | b |\n|---|---|\n| `x` | \\|y\\| |\n| z | |\n\n| c |\n| :-: |\n| d |\n"
        assert rows(page) == [["`x`", "\\|y\\|"], ["z", ""], ["d"]]

    def test_only_what_stands_in_backticks_from_end_to_end_is_a_name(self):
        text = "`sharewell.a.B` sharewell.c `see sharewell.d` `sharewell`"
        assert list(named(SYMBOL, text)) == ["sharewell.a.B"]

    @pytest.mark.parametrize(
        "symbol", ["sharewell.query.domain", "sharewell.query.domain.Domain", "sharewell.Domain.size"]
    )
    def test_modules_classes_and_members_are_found(self, symbol):
        assert resolve(symbol) is not None

    @pytest.mark.parametrize(
        "symbol",
        ["sharewell.nowhere", "sharewell.query.nowhere.Domain", "sharewell.query.domain.Domain.nowhere"],
    )
    def test_what_does_not_exist_is_seen(self, symbol):
        with pytest.raises((ModuleNotFoundError, AttributeError)):
            resolve(symbol)

    def test_a_test_that_does_not_exist_is_seen(self):
        here = "tests/test_paper_map.py"
        there = f"{here}::test_every_test_of_the_map_exists"
        inside = f"{here}::test_a_test_that_does_not_exist_is_seen"
        gone = [f"{here}::test_nothing", "tests/test_nowhere.py::test_it", "elsewhere"]
        assert missing([there, inside, *gone]) == gone
