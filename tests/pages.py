"""Pages of the documentation: their fenced blocks, and whether a block prints what its page says."""

import doctest
import itertools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").rglob("*.md"))
TUTORIAL = ROOT / "docs" / "tutorial.md"
CURATOR = ROOT / "docs" / "curator.md"

#: Pages whose snippets need more than Python, each with a test of its own that runs them all.
WITH_THEIR_OWN_TEST = {TUTORIAL}

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<language>[\w+-]*)")


def read(page: Path) -> str:
    """A page's text; a page that nobody has written yet has none."""
    return page.read_text(encoding="utf-8") if page.exists() else ""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what is in it, and the lines of its two fences."""

    language: str
    text: str
    opens: int
    closes: int


def fenced_blocks(markdown: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    blocks: list[Block] = []
    opening, opened, body = None, 0, ""
    for number, line in enumerate(markdown.splitlines(), start=1):
        stripped = line.strip()
        if opening is None:
            opening, opened, body = FENCE.match(line), number, ""
        elif stripped.startswith(opening["fence"]) and not stripped.strip(opening["fence"][0]):
            blocks.append(Block(opening["language"].lower(), body, opened, number))
            opening = None
        else:
            own_indent = len(line) - len(line.lstrip())
            body += line[min(own_indent, len(opening["indent"])) :] + "\n"
    if opening is not None:
        pytest.fail(f"the block that opens on line {opened} is never closed", pytrace=False)
    return blocks


def blocks_to_run(markdown: str, languages: Collection[str]) -> Iterator[tuple[Block, str | None]]:
    """Each block in some languages, with what it must print where a text block directly follows."""
    lines = markdown.splitlines()
    blocks = fenced_blocks(markdown)
    for block, following in itertools.zip_longest(blocks, blocks[1:]):
        if block.language not in languages:
            continue
        expected = None
        if following is not None and following.language == "text":
            between = lines[block.closes : following.opens - 1]
            expected = None if any(line.strip() for line in between) else following.text
        yield block, expected


def compare(where: str, expected: str, printed: str) -> None:
    """Fail unless the output is as the page says, `...` standing for anything."""
    want, got = (
        "\n".join(line.rstrip() for line in text.splitlines()).strip("\n") + "\n"
        for text in (expected, printed)
    )
    if not doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS):
        pytest.fail(f"{where} prints\n{got}\nbut the page says\n{want}", pytrace=False)
