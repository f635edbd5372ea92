"""Adjustments for the documentation site: links out of docs/, examples in docstrings, no network.

The pages are read on GitHub too, where a relative link may leave docs/. The site has no such files, so
there these links lead to the repository. Docstrings hold doctests, which Markdown takes for quotations.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

import griffe
from mkdocs.utils import get_relative_url

LINK = re.compile(r"\]\((?P<target>(?:\.\./)+[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
#: What the offline plugin of the theme loads.
REMOTE_WORKER = "https://unpkg.com/iframe-worker/shim"
EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *\n).+)*", re.MULTILINE)


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Lead links that leave docs/ to the repository, and give the landing page the full width."""
    if page.is_homepage:
        page.meta["hide"] = ["navigation", "toc"]
    folder = posixpath.dirname(f"docs/{page.file.src_uri}")

    def leave(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, match["target"]))
        if path.startswith("docs/"):
            return match.group()
        return f"]({config.extra['repository']}/blob/main/{path}{match['anchor'] or ''})"

    return LINK.sub(leave, markdown)


def on_post_template(output: str, **_: Any) -> str:
    """Take the worker for sites on disk from the site itself, on the error page."""
    return output.replace(REMOTE_WORKER, "/worker.js")


def on_post_page(output: str, *, page: Any, **_: Any) -> str:
    """Take the worker for sites on disk from the site itself, not from the network."""
    return output.replace(REMOTE_WORKER, get_relative_url("worker.js", page.url))


class FenceExamples(griffe.Extension):
    """Put doctests into fenced blocks."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(_fence, obj.docstring.value)


def _fence(match: re.Match[str]) -> str:
    indent = match["indent"]
    return f"{indent}```pycon\n{match.group()}\n{indent}```"
