"""mkdocs.yml: the navigation has every page of docs/ once, and the site needs no network."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import sharewell

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def pages(entry: Any) -> Iterator[str]:
    """The files of a navigation entry, in order."""
    if isinstance(entry, str):
        yield entry
    else:
        for child in entry.values() if isinstance(entry, dict) else entry:
            yield from pages(child)


def test_the_navigation_has_every_page_once():
    listed = list(pages(CONFIG["nav"]))
    assert len(listed) == len(set(listed))
    assert set(listed) == {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}


def test_every_file_that_the_configuration_names_exists():
    named = [DOCS / name for name in CONFIG["extra_css"]] + [ROOT / name for name in CONFIG["hooks"]]
    assert [path for path in named if not path.is_file()] == []


@pytest.mark.parametrize("module", ["mechanisms", "schedulers", "query"])
def test_the_reference_has_every_public_module(module):
    page = (DOCS / "reference" / f"{module}.md").read_text(encoding="utf-8")
    assert re.search(rf"^::: sharewell\.{module}$", page, re.MULTILINE)


def test_the_reference_lists_every_public_name_once():
    page = (DOCS / "reference" / "sharewell.md").read_text(encoding="utf-8")
    listed = re.findall(r"^::: sharewell\.(\w+)$", page, re.MULTILINE)
    public = set(sharewell.__all__) - set(sharewell.errors.__all__) - {"datasets"}
    assert sorted(listed) == sorted({*public, "errors"})


def test_the_site_is_read_without_network():
    assert CONFIG["theme"]["font"] is False
    assert "repo_url" not in CONFIG  # the theme would fetch the repository's stars
    assert {"search", "offline"} <= {name for name in CONFIG["plugins"] if isinstance(name, str)}
    assert (DOCS / "worker.js").is_file()
    scripts = [*CONFIG.get("extra_javascript", []), *CONFIG["extra_css"]]
    assert [name for name in scripts if "//" in name] == []
