"""Routes: from a method and a path to the operation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sharewell.service.http.operations import Operation

#: The parameters of a path that was found.
Given = dict[str, str]


@dataclass
class _Node:
    """A place in the tree of paths."""

    below: dict[str, _Node] = field(default_factory=dict)
    #: What any other word leads to, and the parameter that the word is then.
    other: tuple[str, _Node] | None = None
    here: dict[str, Operation] = field(default_factory=dict)


class Routes:
    """A tree of paths, word by word.

    FastAPI tries one regular expression after the other, and asks its telemetry before each request;
    that takes longer than most of our operations do.
    """

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._root = _Node()
        for operation in operations:
            node = self._root
            for word in operation.path.split("/"):
                node = _step(node, word)
            node.here[operation.method] = operation

    def find(self, path: str) -> tuple[dict[str, Operation], Given]:
        """The operations at a path, by their methods, and the path's parameters; none: no such path."""
        node: _Node | None = self._root
        given: Given = {}
        for word in path.split("/"):
            if node is None:
                return {}, given
            below = node.below.get(word)
            if below is None and node.other is not None:
                name, below = node.other
                given[name] = word
            node = below
        return (node.here if node else {}), given


def _step(node: _Node, word: str) -> _Node:
    if not word.startswith("{"):
        return node.below.setdefault(word, _Node())
    name = word[1:-1]
    if node.other is None:
        node.other = name, _Node()
    if node.other[0] != name:
        raise ValueError(f"{word} and {{{node.other[0]}}} stand in the same place.")
    return node.other[1]
