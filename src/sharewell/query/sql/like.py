"""LIKE: patterns in which % stands for any text and _ for any one character."""

from __future__ import annotations

import re
from collections.abc import Callable

from sharewell.errors import QueryTooComplex, SqlError

#: The longest text times the pattern's length: a search may look at each character of one for each of
#: the other, and nothing else runs meanwhile.
MAX_LOOKS = 10**7


def like_matcher(pattern: str, escape: str, longest: int) -> Callable[[str], bool]:
    """A test for texts of at most `longest` characters.

    >>> like_matcher("New%", "", longest=8)("New York")
    True
    """
    if longest * len(pattern) > MAX_LOOKS:
        raise QueryTooComplex(
            "The pattern of LIKE, and the text beside it, are too long.", hint="Compare shorter ones."
        )
    first, *others = _pieces(pattern, escape)
    *middle, last = others or [[]]
    if len(first) + sum(map(len, middle)) + len(last) > longest:
        return lambda _text: False
    # Between two %, the first occurrence is as good as any other; the atomic groups keep it, so that
    # the time does not grow with the number of ways to match.
    inner = "".join(f"(?>.*?{''.join(piece)})" for piece in middle if piece)
    rest = f"{inner}.*{''.join(last)}" if others else ""
    expression = re.compile("".join(first) + rest, re.DOTALL)
    return lambda text: expression.fullmatch(text) is not None


def _pieces(pattern: str, escape: str) -> list[list[str]]:
    """The pattern cut at every %, each piece a list of regular expressions for one character each."""
    if len(escape) > 1:
        raise SqlError("ESCAPE takes one character.", hint="Write, for example, ESCAPE '!'.")
    pieces: list[list[str]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            character = next(characters, "")
            if not character:
                raise SqlError("The pattern ends with its escape character.", hint="Write it twice.")
            pieces[-1].append(re.escape(character))
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append("." if character == "_" else re.escape(character))
    return pieces
