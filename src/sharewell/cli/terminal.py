"""Output to a terminal: text without control characters, tables, JSON and errors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer
from pydantic import BaseModel
from rich import box
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from sharewell.errors import SharewellError

#: What is printed, one below the other; a string is printed without markup.
Items = list[RenderableType]

#: How hints word a suggested change for Python, and how the command line does.
REWORDED_HINTS = {
    "key": ("the key {to!r}", "--key {to}"),
    "allow_http": ("allow plain http explicitly", "pass --allow-http"),
}
#: How to make a suggested change of an argument where the hint does not say it.
SUGGESTED_OPTIONS = {
    "key": "Use --key {to}.",
    "pay": "Use --free.",
    "verify": "Use --ca {to}.",
    "allow_http": "Use --allow-http.",
    "ticket": "Run `sharewell answer {to}`.",
    "analyst": "Use --analyst {to}.",
}


def sanitize(text: str) -> str:
    r"""Replace control characters, with which a text could move the cursor or retitle the window.

    >>> sanitize("SELECT 1 -- \x1b[2J")
    'SELECT 1 -- �[2J'
    """
    return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)


def truncate(text: str, width: int = 1000) -> str:
    r"""Join the lines of a text and cut it to a width.

    >>> truncate("SELECT COUNT(*)\n  FROM people", 20)
    'SELECT COUNT(*) FRO…'
    """
    line = sanitize(" ".join(text.split()))
    return line if len(line) <= width else f"{line[: width - 1]}…"


def format_error(error: SharewellError) -> str:
    """Format an error as one sentence or two, with its suggestion as a command-line option."""
    where = f" ({error.where})" if error.where else ""
    return sanitize(f"{error.message}{where} {format_hint(error)}".rstrip())


def format_hint(error: SharewellError) -> str:
    """Format a hint with the suggested option; a suggested word only where no hint does.

    >>> from sharewell.errors import Suggestion
    >>> monday = Suggestion("key", "monday")
    >>> format_hint(SharewellError("", hint="Ask again with the key 'monday'.", suggestion=monday))
    'Ask again with --key monday.'
    >>> format_hint(SharewellError("", hint="Ask again.", suggestion=monday))
    'Ask again. Use --key monday.'
    >>> format_hint(SharewellError("", suggestion=Suggestion("agee", "age")))
    "Did you mean 'age'?"
    """
    suggestion, hint = error.suggestion, error.hint
    if suggestion is None:
        return hint
    change, to = suggestion.change, suggestion.to
    in_python, option = (words.format(to=to) for words in REWORDED_HINTS.get(change, ("", "")))
    if in_python and in_python in hint:
        return hint.replace(in_python, option)
    if change in SUGGESTED_OPTIONS:
        return f"{hint} {SUGGESTED_OPTIONS[change].format(to=to)}".lstrip()
    return hint or f"Did you mean {to!r}?"


def print_json(content: BaseModel | Mapping[str, Any]) -> None:
    """Print one JSON document."""
    plain = content.model_dump(mode="json") if isinstance(content, BaseModel) else content
    typer.echo(json.dumps(plain, indent=2))


def print_items(*items: RenderableType) -> None:
    """Print items one below the other, with an empty line below each table."""
    console = Console(highlight=False)
    for item in items:
        if isinstance(item, Table):
            # Widen a table beyond a narrow terminal: a number with a digit cut off would be wrong.
            options = console.options.update(max_width=10_000)
            least = Measurement.get(console, options, item).minimum
            wide = Console(highlight=False, width=max(console.width, least))
            with wide.capture() as capture:
                wide.print(item)
            typer.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))
            if item is not items[-1]:
                typer.echo()
        else:
            console.print(Text(sanitize(item)) if isinstance(item, str) else item)


def make_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[RenderableType]],
    *,
    right: Sequence[str] = (),
    whole: Sequence[str] = (),
    title: str | None = None,
    caption: str | None = None,
) -> Table:
    """Make a table of strings, printed without markup, or texts.

    Columns in `right` hold numbers; these and those in `whole` never wrap.
    """
    table = Table(
        title=None if title is None else Text(f"{sanitize(title)}\n", style="bold"),
        title_justify="left",
        caption=None if caption is None else Text(f"\n{sanitize(caption)}"),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
    )
    for heading in headings:
        table.add_column(
            Text(sanitize(heading)),
            justify="right" if heading in right else "left",
            no_wrap=heading in right or heading in whole,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(sanitize(field)) if isinstance(field, str) else field for field in row))
    return table
