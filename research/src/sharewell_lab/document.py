"""A small document: the same parts as Markdown and as one HTML file that needs nothing beside it."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path


@dataclass(frozen=True)
class Heading:
    """A heading, from 1 for the title on."""

    level: int
    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph; `*word*` is emphasised."""

    text: str


@dataclass(frozen=True)
class Table:
    """A head and rows of plain text."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Figure:
    """A picture in a file, and its caption."""

    svg: Path
    caption: str


@dataclass(frozen=True)
class Code:
    """Something to type."""

    text: str


Part = Heading | Text | Table | Figure | Code


def markdown(parts: Sequence[Part], folder: Path) -> str:
    """The parts as Markdown, for a file in this folder: pictures are named by their way from there."""
    return "\n\n".join(_markdown(part, folder) for part in parts) + "\n"


def html(parts: Sequence[Part]) -> str:
    """The parts as one HTML file, with its style and pictures inside."""
    title = next((part.text for part in parts if isinstance(part, Heading)), "Report")
    body = "\n".join(_html(part) for part in parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _markdown(part: Part, folder: Path) -> str:
    match part:
        case Heading(level, text):
            return f"{'#' * level} {text}"
        case Text(text):
            return text
        case Code(text):
            return f"```sh\n{text}\n```"
        case Figure(svg, caption):
            way = Path(os.path.relpath(svg, folder)).as_posix()
            title, _, legend = caption.partition(". ")
            return f"![{title}]({way})" + (f"\n\n{caption}" if legend else "")
        case Table(head, rows):
            lines = [head, ["---"] * len(head), *rows]
            return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _html(part: Part) -> str:
    match part:
        case Heading(level, text):
            return f"<h{level}>{escape(text)}</h{level}>"
        case Text(text):
            return f"<p>{_inline(text)}</p>"
        case Code(text):
            return f"<pre><code>{escape(text)}</code></pre>"
        case Figure(svg, caption):
            # As an image of its own: two SVGs written into one page would share their ids.
            data = base64.b64encode(svg.read_bytes()).decode("ascii")
            image = f'<img alt="{escape(caption)}" src="data:image/svg+xml;base64,{data}">'
            return f"<figure>{image}<figcaption>{_inline(caption)}</figcaption></figure>"
        case Table(head, rows):
            top = "".join(f"<th>{_inline(cell)}</th>" for cell in head)
            body = "\n".join(
                f"<tr>{''.join(f'<td{_mood(cell)}>{_inline(cell)}</td>' for cell in row)}</tr>"
                for row in rows
            )
            table = f"<table><thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table>"
            return f'<div class="wide">{table}</div>'


def _inline(text: str) -> str:
    """Plain text as HTML, with `*word*` emphasised."""
    return re.sub(r"\*(\w[^*]*)\*", r"<em>\1</em>", escape(text))


def _mood(cell: str) -> str:
    """A class for cells that begin with a verdict, so that they can be found at a glance."""
    for words, name in (
        ("holds only", "partly"),
        ("holds where", "partly"),
        ("holds", "held"),
        ("does not hold", "broken"),
        ("undecided", "partly"),
    ):
        if cell.startswith(words):
            return f' class="{name}"'
    return ""


STYLE = """\
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #ffffff; --line: #d9d9d9; --soft: #f5f5f5;
  --held: #00684c; --broken: #a63b00; --partly: #7a5500; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #161616; --line: #3a3a3a;
  --soft: #212121; --held: #5fd3ae; --broken: #ff9a66; --partly: #f0c45c; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1.5rem; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; } h3 { margin: 2rem 0 .5rem; font-size: 1rem; }
p { max-width: 48rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .35rem .7rem; }
tr { border-bottom: 1px solid var(--line); }
th { background: var(--soft); }
td.held { color: var(--held); font-weight: 600; }
td.broken { color: var(--broken); font-weight: 600; }
td.partly { color: var(--partly); font-weight: 600; }
figure { margin: 2rem 0; } figcaption { max-width: 48rem; font-size: .875rem; margin-top: .5rem; }
figure img { max-width: 100%; height: auto; background: #ffffff; border-radius: 6px; }
pre { background: var(--soft); padding: .8rem 1rem; overflow-x: auto; border-radius: 6px; }
"""
