"""CONTRIBUTING.md: its paths exist, and adding something touches as few files as it says."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()

#: The most files of src/ that change, for each row of "How to add".
MOST_FILES = {
    "a mechanism": 2,
    "a scheduler": 2,
    "a data source": 2,
    "an error": 1,
    "a command": 3,  # one of two, and the rendering
    "a key of `sharewell.toml`": 2,
    "an endpoint with its client method": 4,
    "a ledger event": 3,
}
ROWS = dict(re.findall(r"^\| (an? [^|]+?) \| ([^|]+?) \|", TEXT, re.MULTILINE))


PATHS = sorted(set(re.findall(r"`((?:src|tests|docs|scripts)/[\w./-]+)`", TEXT)))


@pytest.mark.parametrize("path", PATHS)
def test_every_path_exists(path):
    assert (ROOT / path).exists()


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((?!http)([^)#]+)", TEXT))))
def test_every_link_leads_somewhere(link):
    assert (ROOT / link).exists()


@pytest.mark.parametrize("what", MOST_FILES)
def test_each_way_to_add_something_names_its_files(what):
    named = re.findall(r"`(src/[\w./-]+)`", ROWS[what])
    assert 1 <= len(named) <= MOST_FILES[what]


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:\w+/)*(?:\w+/|\w+\.py))`", ARCHITECTURE))))
def test_every_path_of_the_architecture_page_exists(path):
    assert any(
        (root / path).exists() for root in (ROOT / "src/sharewell", ROOT / "src/sharewell/service", ROOT)
    )


def test_every_name_of_the_architecture_page_is_defined():
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    names = re.findall(r"`([A-Z]\w+)(?:\.(\w+))?`", ARCHITECTURE)
    assert names
    for kind, method in names:
        assert re.search(rf"^(class {kind}|{kind} =)\b", code, re.MULTILINE), kind
        assert not method or re.search(rf"^    def {method}\b", code, re.MULTILINE), method


def test_the_architecture_page_fits_on_two_pages():
    assert len(ARCHITECTURE.split()) <= 1100


def test_no_class_name_occurs_twice():
    names = [
        node.name
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_code_and_pages_name_the_actor():
    vague = re.compile(r"\b(?:nobody|everybody|somebody|anybody|whoever)\b", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in (*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"))
        for word in vague.findall(path.read_text(encoding="utf-8"))
    ]
    assert found == []
