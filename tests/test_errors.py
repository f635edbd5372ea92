"""Errors: every code is documented, used once and drawn in the tree, and the text says all it knows."""

import inspect
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from sharewell import errors
from sharewell.errors import Location, SharewellError

PAGE = Path(__file__).parent.parent / "docs" / "errors.md"

ROW = re.compile(r"^\| *`(?P<code>[^`]+)` *\| *`(?P<name>\w+)` *\|")
DRAWN = re.compile(r"^(?P<indent>[ │├└─]*)(?P<name>[A-Z]\w+)(?: +(?P<code>[\w.-]+)  +\S.*)?$")

CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, SharewellError)
]


def documented(page: str) -> list[tuple[str, str]]:
    """The code and the class of every row of the table."""
    return [(row["code"], row["name"]) for line in page.splitlines() if (row := ROW.match(line))]


def drawn(docstring: str) -> list[tuple[str, str | None, str | None]]:
    """The name, the parent's name and the code of every class in a tree; the root has no code."""
    _, _, tree = docstring.partition("::\n")
    lines: list[re.Match[str]] = []
    for line in tree.strip("\n").splitlines():
        match = DRAWN.match(line)
        if not match:
            break
        lines.append(match)
    found: list[tuple[str, str | None, str | None]] = []
    for i, own in enumerate(lines):
        above = (up for up in reversed(lines[:i]) if len(up["indent"]) < len(own["indent"]))
        parent = next(above, None)
        found.append((own["name"], parent["name"] if parent else None, own["code"]))
    return found


def as_drawn(classes: Iterable[type[SharewellError]]) -> set[tuple[str, str | None, str | None]]:
    """What the tree should say of these classes."""
    return {
        (c.__name__, None, None)
        if c is SharewellError
        else (c.__name__, c.__bases__[0].__name__, c.code)
        for c in classes
    }


def shared(codes: Iterable[str]) -> list[str]:
    """The codes that are there more than once."""
    return [code for code, count in Counter(codes).items() if count > 1]


def test_there_are_errors_to_look_at():
    assert len(CLASSES) >= 14


def test_every_code_is_documented_with_its_class_and_no_other_is():
    assert set(documented(PAGE.read_text(encoding="utf-8"))) == {(c.code, c.__name__) for c in CLASSES}


def test_every_code_has_one_row():
    assert shared(code for code, _ in documented(PAGE.read_text(encoding="utf-8"))) == []


def test_no_two_classes_share_a_code():
    assert shared(c.code for c in CLASSES) == []
    assert all("code" in vars(c) for c in CLASSES), "a code that is inherited is shared"


def test_the_tree_draws_every_class_below_its_parent_with_its_code():
    tree = drawn(errors.__doc__ or "")
    assert set(tree) == as_drawn(CLASSES)
    assert len(tree) == len(CLASSES), "drawn twice"


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_the_text_of_an_error_holds_message_place_and_hint(kind):
    error = kind("It is wrong.", hint="Do this.", where=Location(3, 14, "agee"))
    assert str(error) == "It is wrong. (line 3, column 14, at 'agee') Do this."
    assert (error.message, error.hint, error.where) == (
        "It is wrong.",
        "Do this.",
        Location(3, 14, "agee"),
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "It is wrong."),
        ({"hint": "Do this."}, "It is wrong. Do this."),
        ({"where": Location(1, 2)}, "It is wrong. (line 1, column 2)"),
    ],
)
def test_what_an_error_does_not_know_leaves_no_trace(options, text):
    assert str(SharewellError("It is wrong.", **options)) == text


class TestTheseTestsCanFail:
    """The rules above, on small pages and trees that break them."""

    TREE = (
        "Errors.\n\n::\n\n"
        "    Root\n"
        "    ├── Left      a.left   it is left\n"
        "    │   └── Leaf  a.leaf   it is a leaf\n"
    )

    def test_a_row_is_read(self):
        page = "| code | class |\n|---|---|\n| `a.b` | `Ab` | when |\nText with `c.d`.\n"
        assert documented(page) == [("a.b", "Ab")]

    def test_a_tree_is_read(self):
        assert drawn(self.TREE + "    └── Right   a.right  it is right\n\nMore `text`.\n") == [
            ("Root", None, None),
            ("Left", "Root", "a.left"),
            ("Leaf", "Left", "a.leaf"),
            ("Right", "Root", "a.right"),
        ]

    def test_a_class_that_is_missing_misplaced_or_drawn_with_another_code_is_seen(self):
        tree = errors.__doc__ or ""
        for broken in (
            tree.replace(
                "    ├── SourceError            source.unreadable ", "    ├── Sauce  source.unreadable "
            ),
            tree.replace("privacy.exhausted", "privacy.done"),
            tree.replace("│   └── DomainTooLarge ", "├── DomainTooLarge "),
        ):
            assert broken != tree
            assert set(drawn(broken)) != as_drawn(CLASSES)

    def test_a_shared_code_is_seen(self):
        assert shared(["a.b", "c.d", "a.b"]) == ["a.b"]
