"""SQL as text: its words, its tree, and where each part of the tree was written."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlglot import ParseError, Token, TokenError, TokenType, exp
from sqlglot.dialects import DuckDB

from sharewell.errors import Place, QueryTooComplex, SqlError, SqlSyntaxError

#: The longest text, in characters.
MAX_TEXT = 100_000
#: How deep parentheses, CASE, NOT and signs may be nested. The parser is recursive: twice this depth
#: still leaves Python's stack to whoever called.
MAX_NESTING = 100
#: How many parts of the tree may lie in one another; a chain of ANDs, or of ORs, is one part. Each takes
#: up to three calls in one another: here, and in HAVING once more when the answers have been paid for.
MAX_DEPTH = 2 * MAX_NESTING + 20
#: How many of the words in question an error shows.
SHOWN = 60
#: How many parents are looked at for the place of a node that does not know it.
MAX_CLIMB = 4

_DIALECT = DuckDB()
_OPENING = {TokenType.L_PAREN, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.END}
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS}

#: What a quote opens and closes, comments that quotes do not count in, and then a quote left open.
_UNCLOSED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|(['"$]|/\*)""", re.DOTALL)


@dataclass(frozen=True)
class SqlText:
    """A text and its words."""

    text: str
    tokens: tuple[Token, ...]

    def at(self, start: int, end: int) -> Place:
        """The place of the characters from `start` up to, but without, `end`."""
        line = self.text.count("\n", 0, start) + 1
        column = start - self.text.rfind("\n", 0, start)
        return Place(line, column, shortened(self.text[start:end]))

    def at_token(self, token: Token) -> Place:
        """The place of one word."""
        return self.at(token.start, token.end + 1)

    def at_node(self, node: exp.Expr) -> Place:
        """The place of a part of the tree."""
        return self.at(*self._span(node))

    def words(self, node: exp.Expr) -> str:
        """A part of the tree as it was written, white space made even."""
        start, end = self._span(node)
        return " ".join(self.text[start:end].split())

    def _span(self, node: exp.Expr) -> tuple[int, int]:
        """From the first to the last word of a part of the tree.

        Only names, constants and functions know where they stand, so the words around them that
        close what they open are added, and a part without any such word is shown by its parent.
        """
        marks = _marks(node)
        for _ in range(MAX_CLIMB):
            if not marks and node.parent:
                node = node.parent
                marks = _marks(node)
        if not marks:
            return 0, len(self.text)
        start, end = min(m["start"] for m in marks), max(m["end"] for m in marks)
        depth = 0
        first = bisect_left(self.tokens, start, key=lambda token: token.start)
        for at in range(first, len(self.tokens)):
            token = self.tokens[at]
            if token.start > end and depth <= 0:
                break
            depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
            end = max(end, token.end)
        return start, end + 1


def _marks(node: exp.Expr) -> list[dict[str, Any]]:
    return [part.meta for part in node.walk() if "start" in part.meta]


def tokenize(text: str, table: str) -> SqlText:
    """Take a text apart into the words of one SELECT."""
    _check_characters(text)
    try:
        tokens = _DIALECT.tokenize(text)
    except TokenError:
        opened = next((m for m in _UNCLOSED.finditer(text) if m[1]), None)
        start = opened.start() if opened else len(text)
        raise SqlSyntaxError(
            "A quote is opened and never closed.",
            hint="Close it; a quote inside a text is written twice, as in 'O''Brien'.",
            where=SqlText(text, ()).at(start, len(text)),
        ) from None
    source = SqlText(text, tuple(tokens))
    select = _one_select(source, table)
    _check_gaps(source)
    return select


def parse(source: SqlText) -> exp.Expr:
    """The tree of a text that was found to use known words only."""
    _check_nesting(source)
    try:
        trees = _DIALECT.parser().parse(list(source.tokens), source.text)
    except ParseError as error:
        raise _syntax_error(source, error.errors) from None
    except RecursionError:
        raise too_deep() from None
    match trees:
        case [exp.Expr() as tree]:
            return tree
    raise _syntax_error(source, [])


def too_deep(where: Place | None = None) -> QueryTooComplex:
    """What is said of a text that is nested too deeply."""
    return QueryTooComplex(
        f"The SQL is nested too deeply: {MAX_NESTING} levels are read.",
        hint="Leave out parentheses that change nothing, or ask in several questions.",
        where=where,
    )


def _check_characters(text: str) -> None:
    if len(text) > MAX_TEXT:
        raise QueryTooComplex(
            f"The SQL has {len(text):,} characters, more than the {MAX_TEXT:,} that are read.",
            hint="Write long lists of values as ranges or with declared bins.",
        )
    stray = re.search(r"[\x00\ud800-\udfff]", text)
    if stray:
        raise SqlSyntaxError(
            f"The SQL holds the character {stray[0]!a}, which no text may hold.",
            hint="Take it out.",
            where=SqlText(text, ()).at(stray.start(), stray.start()),
        )


def _check_gaps(source: SqlText) -> None:
    """Between words there may be white space only: whatever else there is, is a comment."""
    starts = [0, *(token.end + 1 for token in source.tokens)]
    ends = [*(token.start for token in source.tokens), len(source.text)]
    for start, end in zip(starts, ends, strict=True):
        gap = source.text[start:end]
        if gap and not gap.isspace():
            start += len(gap) - len(gap.lstrip())
            raise SqlError(
                "Comments are not read.", hint="Take the comment out.", where=source.at(start, end)
            )


def _one_select(source: SqlText, table: str) -> SqlText:
    """The text without the semicolon at its end, where it is one SELECT."""
    tokens = source.tokens
    example = f"Write, for example, SELECT COUNT(*) FROM {table}."  # noqa: S608
    if tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens = tokens[:-1]
    if not tokens:
        raise SqlSyntaxError("There is no SQL in the text.", hint=example)
    if tokens[0].token_type not in (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN):
        raise SqlError("Only SELECT is answered.", hint=example, where=source.at_token(tokens[0]))
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            raise SqlError(
                "Only one statement is answered at a time.",
                hint="Ask each SELECT as a question of its own.",
                where=source.at_token(token),
            )
    return SqlText(source.text, tokens)


def _check_nesting(source: SqlText) -> None:
    prefixes = 0
    opened: list[Token] = []
    for token in source.tokens:
        prefixes = prefixes + 1 if token.token_type in _PREFIX else 0
        if token.token_type in _OPENING:
            opened.append(token)
        elif token.token_type in _CLOSING and opened:
            opened.pop()
        if len(opened) + prefixes > MAX_NESTING:
            raise too_deep(source.at_token(token))
    if opened:
        case = opened[-1].token_type is TokenType.CASE
        raise SqlSyntaxError(
            "A CASE has no END." if case else "A parenthesis is not closed.",
            hint="Close it where it ends.",
            where=source.at_token(opened[-1]),
        )


def _syntax_error(source: SqlText, errors: Iterable[dict[str, Any]]) -> SqlSyntaxError:
    where = None
    for error in errors:
        words = error.get("highlight") or ""
        if error.get("line") and error.get("col"):
            where = Place(error["line"], max(1, error["col"] - len(words) + 1), shortened(words))
    return SqlSyntaxError(
        "This is not SQL as it is read here.",
        hint="Look at the words just before this place.",
        where=where or source.at_token(source.tokens[-1]),
    )


def shortened(words: str) -> str:
    """Words on one line, cut where they go on for long."""
    words = " ".join(words.split())
    return words if len(words) <= SHOWN else words[: SHOWN - 3] + "..."
