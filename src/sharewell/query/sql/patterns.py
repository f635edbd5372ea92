"""Patterns: LIKE, and regular expressions as DuckDB reads them, in time linear in the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sqlglot import exp

from sharewell.errors import QueryTooComplex
from sharewell.query.diagram import spend
from sharewell.query.sql.constants import constant_text
from sharewell.query.sql.text import Source

#: The maximum of text length times pattern length in LIKE: the worst-case number of steps.
MAX_LIKE_STEPS = 10**7
#: The maximum number of moves of a regular expression, after repetitions are written out.
MAX_MOVES = 10**4
#: The maximum number of places in the transitions that a regular expression remembers.
MAX_REMEMBERED = 2**16
#: How many characters of text times those of a pattern are compared in one step of a diagram's time.
CHARACTERS_OF_STEP = 2**9
#: How many moves of a regular expression are tried in that time, and how many characters looked up.
MOVES_OF_STEP, LOOKUPS_OF_STEP = 2**4, 2**6


def like_matcher(
    node: exp.Expr, source: Source, pattern: str, escape: str, longest: int
) -> Callable[[str], bool]:
    """Return a test for text of at most `longest` characters; % matches any text, _ any character."""
    if longest * len(pattern) > MAX_LIKE_STEPS:
        message = "The LIKE pattern and the text it is compared with are too long."
        raise source.error(node, message, "Use a shorter pattern.", QueryTooComplex)
    if len(escape) > 1:
        raise source.error(node, "ESCAPE requires a single character.", "Example: ESCAPE '!'.")
    # The pattern split at every %, each piece a list of regular expressions for one character each.
    pieces: list[list[str]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            character = next(characters, "")
            if not character:
                message = "The LIKE pattern ends with its escape character."
                raise source.error(node, message, "Write the escape character twice.")
            pieces[-1].append(re.escape(character))
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append("." if character == "_" else re.escape(character))
    first, *others = pieces
    *middle, last = others or [[]]
    if len(first) + sum(map(len, middle)) + len(last) > longest:
        return lambda _text: False
    # Between two %, the first occurrence is as good as any. Atomic groups commit to it, so the time does
    # not grow with the number of ways to match.
    inner = "".join(f"(?>.*?{''.join(piece)})" for piece in middle if piece)
    rest = f"{inner}.*{''.join(last)}" if others else ""
    expression = re.compile("".join(first) + rest, re.DOTALL)

    def matches(text: str) -> bool:
        spend(len(text) * len(pattern) // CHARACTERS_OF_STEP)
        return expression.fullmatch(text) is not None

    return matches


def regular_matcher(
    node: exp.Expr, source: Source, pattern: str, *, whole: bool
) -> Callable[[str], bool]:
    """Return a test of text by a regular expression: of the whole text, or of any part of it."""
    try:
        return Automaton(_Reader(pattern).read(), whole=whole).matches
    except _Unreadable as error:
        message = f"Unsupported regular expression {constant_text(pattern)}: {error}."
        hint = "Use characters, ., [...], (...), |, *, +, ?, {2}, {2,4}, ^, $, and (?i) at the start."
        raise source.error(node, message, hint) from None
    except _TooLong:
        message = f"The regular expression {constant_text(pattern)} is too long."
        raise source.error(node, message, "Use a shorter pattern.", QueryTooComplex) from None


class _Unreadable(Exception):
    pass


class _TooLong(Exception):
    pass


#: Characters from the first to the last of each pair.
_Ranges = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Characters:
    """A set of characters."""

    ranges: _Ranges
    negated: bool = False
    any_case: bool = False

    def __contains__(self, character: str) -> bool:
        found = {character}
        if self.any_case:
            upper = character.upper()
            found |= {character.lower(), upper, upper.lower()}
        return any(a <= each <= b for a, b in self.ranges for each in found) != self.negated


@dataclass(frozen=True)
class _Move:
    """A move to other places, given by their distances, if a test holds.

    It reads one character, or none: then it is possible everywhere, at the start or at the end alone.
    """

    to: tuple[int, ...] = (1,)
    reads: _Characters | None = None
    only_at: str = ""


_FIRST, _LAST = "\0", "\U0010ffff"


def _all_but(ranges: _Ranges) -> _Ranges:
    """Return the characters outside of sorted ranges."""
    edges = [(_FIRST, _FIRST), *ranges, (_LAST, _LAST)]
    gaps = ((chr(ord(a[1]) + 1), chr(ord(b[0]) - 1)) for a, b in pairwise(edges) if a[1] < b[0])
    return tuple((a, b) for a, b in gaps if a <= b)


_DIGITS: _Ranges = (("0", "9"),)
_SPACES: _Ranges = (("\t", "\n"), ("\f", "\r"), (" ", " "))
_LETTERS: _Ranges = (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))
_ESCAPES = {"d": _DIGITS, "s": _SPACES, "w": _LETTERS}
_ESCAPES |= {name.upper(): _all_but(ranges) for name, ranges in _ESCAPES.items()}
_CLASSES: dict[str, _Ranges] = {
    "[:alnum:]": (("0", "9"), ("A", "Z"), ("a", "z")),
    "[:alpha:]": (("A", "Z"), ("a", "z")),
    "[:digit:]": _DIGITS,
    "[:lower:]": (("a", "z"),),
    "[:upper:]": (("A", "Z"),),
    "[:space:]": (("\t", "\r"), (" ", " ")),
}
_COUNT = re.compile(r"\{(\d{1,4})(,(\d{0,4}))?\}", re.ASCII)
_MAX_GROUPS = 50


class _Reader:
    """Reads a regular expression into the moves of an automaton."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.any_case = pattern.startswith("(?i)")
        self.at = 4 if self.any_case else 0
        self.depth = 0

    def read(self) -> list[_Move]:
        """Read the whole pattern."""
        found = self._alternatives()
        if self._next():
            raise _Unreadable("a parenthesis was never opened")
        return found

    def _next(self, count: int = 1) -> str:
        return self.pattern[self.at : self.at + count]

    def _take(self) -> str:
        self.at += 1
        return self.pattern[self.at - 1 : self.at]

    def _took(self, text: str) -> bool:
        """Take a text if it is next."""
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def _alternatives(self) -> list[_Move]:
        # Every part but the last is preceded by a choice, and followed by a jump to the end.
        parts = [self._sequence()]
        size = len(parts[0])
        while self._took("|"):
            parts.append(self._sequence())
            size += len(parts[-1]) + 2
            _check_length(size)
        found: list[_Move] = []
        for part in parts[:-1]:
            found += [_Move((1, len(part) + 2)), *part]
            found.append(_Move((size - len(found),)))
        return found + parts[-1]

    def _sequence(self) -> list[_Move]:
        found: list[_Move] = []
        while self._next() not in ("", "|", ")"):
            found += self._repeated(self._atom())
            _check_length(len(found))
        return found

    def _atom(self) -> list[_Move]:
        character = self._take()
        match character:
            case "(":
                return self._group()
            case "[":
                return [_Move(reads=self._class())]
            case ".":
                return [_Move(reads=_Characters((("\n", "\n"),), negated=True))]
            case "^" | "$":
                return [_Move(only_at=character)]
            case "*" | "+" | "?":
                raise _Unreadable(f"there is nothing that {character} repeats")
            case "\\":
                return [_Move(reads=_Characters(self._escaped(), any_case=self.any_case))]
        return [_Move(reads=_Characters(((character, character),), any_case=self.any_case))]

    def _group(self) -> list[_Move]:
        if not self._took("?:") and self._next() == "?":
            raise _Unreadable(f"({self._next(2)} is not supported")
        self.depth += 1
        if self.depth > _MAX_GROUPS:
            raise _TooLong
        found = self._alternatives()
        self.depth -= 1
        if not self._took(")"):
            raise _Unreadable("a parenthesis is not closed")
        return found

    def _escaped(self) -> _Ranges:
        """Return the characters that a backslash and what follows stand for."""
        character = self._take()
        if character in _ESCAPES:
            return _ESCAPES[character]
        if not character or character.isalnum():
            raise _Unreadable(f"\\{character} is not supported")
        return ((character, character),)

    def _class(self) -> _Characters:
        """Read the characters of [...]; a ] in the first place is one of them."""
        negated = self._took("^")
        ranges: list[tuple[str, str]] = []
        first = True
        while first or not self._took("]"):
            first = False
            if not self._next():
                raise _Unreadable("a bracket is not closed")
            named = next(filter(self._took, _CLASSES), None)
            if named:
                ranges += _CLASSES[named]
                continue
            low = self._member()
            if self._next() == "-" and self._next(2) not in ("-", "-]") and len(low) == 1:
                self._take()
                [(start, _)], high = low, self._member()
                if len(high) > 1 or high[0][1] < start:
                    raise _Unreadable(f"the range {start}-{high[0][1]} is empty")
                ranges.append((start, high[0][1]))
            else:
                ranges += low
        return _Characters(tuple(ranges), negated, self.any_case)

    def _member(self) -> _Ranges:
        character = self._take()
        return self._escaped() if character == "\\" else ((character, character),)

    def _repeated(self, part: list[_Move]) -> list[_Move]:
        """Read how often a part is repeated. Which number is tried first does not matter."""
        if self._next() not in ("*", "+", "?", "{"):
            return part
        size = len(part)
        any_number = [_Move((1, size + 2)), *part, _Move((-size - 1,))]
        counted = _COUNT.match(self.pattern, self.at)
        if counted:
            self.at = counted.end()
            least, most = int(counted[1]), int(counted[3] or counted[1])
            if most > 1000 or most < least:
                raise _Unreadable(f"{counted[0]} is no number of repetitions up to 1000")
            _check_length(most * (size + 1))
            found = part * least
            if counted[2] == ",":
                found += any_number
            else:
                found += [_Move((1, size + 1)), *part] * (most - least)
        elif self._took("*"):
            found = any_number
        elif self._took("+"):
            found = [*part, _Move((-size, 1))]
        elif self._took("?"):
            found = [_Move((1, size + 1)), *part]
        else:
            return part
        self._took("?")
        if self._next() in ("*", "+", "?") or _COUNT.match(self.pattern, self.at):
            raise _Unreadable("a repetition is repeated")
        return found


def _check_length(moves: int) -> None:
    if moves > MAX_MOVES:
        raise _TooLong


@dataclass
class Automaton:
    """Tests text by the set of places that can be reached after each character.

    No way to match is tried twice, and the set after each set and character is computed once.
    """

    moves: Sequence[_Move]
    whole: bool
    _after: dict[tuple[frozenset[int], str], frozenset[int]] = field(default_factory=dict)
    #: Whether the text may end at these places.
    _ends: dict[frozenset[int], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._remembered = 0
        self._start = self._reachable([0], "^")

    def matches(self, text: str) -> bool:
        """Whether the pattern matches a text."""
        spend(len(text) // LOOKUPS_OF_STEP)
        end = len(self.moves)
        places = self._start
        for character in text:
            if end in places and not self.whole:
                return True
            key = places, character
            if key not in self._after:
                if self._remembered > MAX_REMEMBERED:
                    self._after.clear()
                    self._ends.clear()
                    self._remembered = 0
                self._after[key] = self._read(places, character)
                self._remembered += len(self._after[key]) + 1
            places = self._after[key]
        if not text:
            return end in self._reachable([0], "^$")
        if places not in self._ends:
            self._ends[places] = end in self._reachable(places, "$")
        return self._ends[places]

    def _read(self, places: Iterable[int], character: str) -> frozenset[int]:
        moves = self.moves
        after = [] if self.whole else [0]
        for place in places:
            reads = moves[place].reads if place < len(moves) else None
            if reads is not None and character in reads:
                after.append(place + 1)
        return self._reachable(after)

    def _reachable(self, places: Iterable[int], at: str = "") -> frozenset[int]:
        """Add the places that can be reached without a further character."""
        pending, found = list(places), set[int]()
        while pending:
            place = pending.pop()
            if place in found:
                continue
            found.add(place)
            move = self.moves[place] if place < len(self.moves) else None
            if move and move.reads is None and move.only_at in ("", *at):
                pending += [place + distance for distance in move.to]
        spend(len(found) // MOVES_OF_STEP)
        return frozenset(found)
