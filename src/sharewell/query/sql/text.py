"""The SQL text: tokens, the names that it may use, and errors that point at their place in it."""

from __future__ import annotations

import difflib
import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from sqlglot import Token, TokenError, TokenType, exp
from sqlglot.dialects import DuckDB

from sharewell.errors import (
    MAX_MISTAKES,
    Location,
    QueryError,
    QueryTooComplex,
    SqlError,
    SqlSyntaxError,
    Suggestion,
    UnknownName,
    all_together,
)
from sharewell.query.attribute import Category
from sharewell.query.domain import Column, Domain
from sharewell.query.measure import Measure

#: The maximum length of an SQL text, in characters.
MAX_TEXT = 100_000
#: The maximum length of a quotation in an error, in characters.
MAX_QUOTED = 60
#: How many ancestors are searched for the location of a node that has none.
MAX_CLIMB = 4
#: How many names a hint lists, and among how many it searches for a similar one.
MAX_LISTED, MAX_COMPARED = 10, 1_000


def token_types(names: str) -> tuple[TokenType, ...]:
    """Return the types of tokens of these names."""
    return tuple(TokenType[name] for name in names.split())


DIALECT = DuckDB()
OPENING = {TokenType.L_PAREN, TokenType.CASE}
CLOSING = {TokenType.R_PAREN, TokenType.END}

#: Matches quoted strings and comments; group 1 is a quote or comment that is never closed.
_UNCLOSED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|(['"$]|/\*)""", re.DOTALL)

#: Matches quoted text or a comment, which is group 1, or white space that is not a single blank.
_SPACE = re.compile(
    r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*(?:\n|$)|/\*.*?\*/)| \s+|[^\S ]\s*""", re.DOTALL
)

Error = TypeVar("Error", bound=QueryError)


def normalize_sql(text: str) -> str:
    """Collapse white space outside of quotes and comments: the same statement, or the same refusal.

    >>> normalize_sql("SELECT  COUNT(*)   FROM people WHERE name = 'a  b' ")
    "SELECT COUNT(*) FROM people WHERE name = 'a  b'"
    """
    return _SPACE.sub(lambda found: found[1] or " ", text).strip()


@dataclass(eq=False)
class Source:
    """An SQL text, its tokens, and the table and domain whose names it may use."""

    text: str
    domain: Domain
    table: str
    tokens: Sequence[Token] = ()
    #: What is wrong with the text, as far as it has been found.
    mistakes: list[QueryError] = field(default_factory=list)
    #: The functions that do not exist, and what is wrong with them.
    unknown_functions: dict[str, QueryError] = field(default_factory=dict)

    @cached_property
    def normalized(self) -> str:
        """The text, with white space collapsed."""
        return normalize_sql(self.text)

    def tokenize(self) -> None:
        """Split the text into tokens, without a final semicolon."""
        text = self.text
        if len(text) > MAX_TEXT:
            raise QueryTooComplex(
                f"The SQL has {len(text):,} characters; the limit is {MAX_TEXT:,}.",
                hint="Replace long lists of values by ranges or declared bins.",
            )
        if invalid := re.search(r"[\x00\ud800-\udfff]", text):
            where = self.at(invalid.start(), invalid.start())
            raise SqlSyntaxError(f"Invalid character {invalid[0]!a}.", hint="Remove it.", where=where)
        try:
            self.tokens = DIALECT.tokenize(text)
        except TokenError:
            opened = next((m for m in _UNCLOSED.finditer(text) if m[1]), None)
            raise SqlSyntaxError(
                "Unterminated quoted string.",
                hint="Close the quote; write a quote inside a string twice, as in 'O''Brien'.",
                where=self.at(opened.start() if opened else len(text), len(text)),
            ) from None
        if self.tokens and self.tokens[-1].token_type is TokenType.SEMICOLON:
            self.tokens = self.tokens[:-1]

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Collect a mistake, so that the others of the text are found too."""
        try:
            yield
        except QueryTooComplex:
            raise
        except QueryError as error:
            self.add(error)

    def add(self, mistake: QueryError) -> None:
        """Add a mistake; raise all if they are many."""
        self.mistakes.append(mistake)
        if len(self.mistakes) > MAX_MISTAKES:
            raise self.all_mistakes() from None

    def all_mistakes(self) -> QueryError:
        """Return the first mistake of the text, with the others in its hint."""

        def place(mistake: QueryError) -> tuple[int, int]:
            return (mistake.where.line, mistake.where.column) if mistake.where else (0, 0)

        return all_together(sorted(dict.fromkeys(self.mistakes), key=place))

    # Names

    def find(self, node: exp.Expr) -> Column | None:
        """Return the column that a node names, if it is the name of one: exactly, if it is quoted."""
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            return None
        column = self.domain.columns.get(node.name.casefold())
        return None if column and node.this.quoted and node.name != column.name else column

    def find_measure(self, node: exp.Column) -> Measure | None:
        """Return the measure of that name, if there is one."""
        if not isinstance(node.this, exp.Identifier):
            return None
        return next((m for m in self.domain.measures if names_match(node.this, m.name)), None)

    def column(self, node: exp.Column) -> Column:
        """Return the column that a node names."""
        if not isinstance(node.this, exp.Identifier):
            raise self.error(node, "* is only allowed in COUNT(*).", "Name a column.")
        if found := self.find(node):
            return found
        name, attributes = node.name, self.domain.attributes
        if measure := self.find_measure(node):
            message = (
                f'"{measure.name}" is a measure: it has sums, but no values to compare or group by.'
            )
            hint = "Ask your curator to declare it as an attribute too, or use it in SUM, AVG or COUNT."
            raise self.error(node, message, hint)
        if any(name in a.labels for a in attributes if isinstance(a, Category)):
            hint, to = f"Write strings in single quotes: '{name}'.", f"'{name}'"
        else:
            names = [each for a in attributes for each in (a.name, *a.bins_by_name)]
            names += [m.name for m in self.domain.measures if m.name not in names]
            hint, to = did_you_mean(name, names, lambda each: f'"{each}"')
            listed = [each if each.isidentifier() else f'"{each}"' for each in names]
            hint = hint or f"The columns are {listing(listed)}."
        raise self.unknown(node, "column", name, to, hint)

    def unknown(self, node: exp.Expr, what: str, name: str, to: str, hint: str) -> UnknownName:
        """Return the error for a name that does not exist; `to` is the one that was probably meant."""
        suggestion = Suggestion(change=name, to=to) if to else None
        return self.error(node, f'Unknown {what} "{shortened(name)}".', hint, UnknownName, suggestion)

    # Places

    def at(self, start: int, end: int) -> Location:
        """Return the location of the characters from `start` to `end`, exclusive."""
        line = self.text.count("\n", 0, start) + 1
        column = start - self.text.rfind("\n", 0, start)
        return Location(line, column, shortened(self.text[start:end]))

    def locate(self, part: exp.Expr | Token) -> Location:
        """Return the location of a node or a token."""
        if isinstance(part, Token):
            return self.at(part.start, part.end + 1)
        return self.at(*self._span(part))

    def error(
        self,
        part: exp.Expr | Token,
        message: str,
        hint: str,
        kind: type[Error] = SqlError,  # type: ignore[assignment]
        suggestion: Suggestion | None = None,
    ) -> Error:
        """Return an error located at a node or a token."""
        return kind(message, hint=hint, where=self.locate(part), suggestion=suggestion)

    def quote(self, node: exp.Expr) -> str:
        """Return the source text of a node, with white space normalized."""
        start, end = self._span(node)
        return " ".join(self.text[start:end].split())

    def item_texts(self) -> list[str]:
        """Return what the items of the SELECT list are written as; none if that is not the first one."""
        if self.tokens[0].token_type is not TokenType.SELECT:
            return []
        items: list[list[Token]] = [[]]
        depth, before = 0, None
        for token in self.tokens[1:]:
            depth += (token.token_type in OPENING) - (token.token_type in CLOSING)
            if depth == 0 and token.token_type is TokenType.FROM and before is not TokenType.DISTINCT:
                break
            if depth == 0 and token.token_type is TokenType.COMMA:
                items.append([])
            else:
                items[-1].append(token)
            before = token.token_type
        texts = []
        for item in items:
            if item and item[0].token_type is TokenType.DISTINCT and item is items[0]:
                item = item[1:]
            texts.append(self.text[item[0].start : item[-1].end + 1] if item else "")
        return [" ".join(text.split()) for text in texts]

    def _span(self, node: exp.Expr) -> tuple[int, int]:
        """Return the start and end of a node.

        Only names, constants and functions carry a position. The span covers those inside the node,
        extended until brackets balance; a node without any takes the span of its parent.
        """
        for _ in range(MAX_CLIMB + 1):
            marks = [part.meta for part in node.walk() if "start" in part.meta]
            if marks or node.parent is None:
                break
            node = node.parent
        if not marks:
            return 0, len(self.text)
        start, end = min(m["start"] for m in marks), max(m["end"] for m in marks)
        depth = 0
        first = bisect_left(self.tokens, start, key=lambda token: token.start)
        if isinstance(node, exp.Case | exp.Extract):
            # Its keywords carry no position: it starts at the last of them before its first name.
            keyword = "CASE" if isinstance(node, exp.Case) else "EXTRACT"
            while first > 0 and self.tokens[first].text.upper() != keyword:
                first -= 1
            start = self.tokens[first].start
        for token in itertools.islice(self.tokens, first, None):
            if token.start > end and depth <= 0:
                break
            depth += (token.token_type in OPENING) - (token.token_type in CLOSING)
            end = max(end, token.end)
        if node.find(exp.Interval):  # Neither do durations.
            last = bisect_right(self.tokens, end, key=lambda token: token.start)
            if [token.token_type for token in self.tokens[last + 1 : last + 2]] == [TokenType.INTERVAL]:
                end = self.tokens[min(last + 3, len(self.tokens) - 1)].end
        return start, end + 1


def names_match(identifier: exp.Identifier, name: str) -> bool:
    """Return whether an identifier matches a name: exactly if quoted, else ignoring case."""
    written: str = identifier.name
    return written == name if identifier.quoted else written.casefold() == name.casefold()


def did_you_mean(written: str, names: Sequence[str], show: Callable[[str], str]) -> tuple[str, str]:
    """Return a hint with the closest names, and the closest itself; both empty if none is close."""
    folded = {name.casefold(): name for name in names[:MAX_COMPARED]}
    close = difflib.get_close_matches(written.casefold(), folded, n=3, cutoff=0.6)
    if not close:
        return "", ""
    return f"Did you mean {' or '.join(show(folded[name]) for name in close)}?", folded[close[0]]


def listing(names: Sequence[str]) -> str:
    """List the first names, and the number of the rest."""
    more = f" and {len(names) - MAX_LISTED:,} more" if len(names) > MAX_LISTED else ""
    return ", ".join(names[:MAX_LISTED]) + more


def shortened(words: str) -> str:
    """Join words on one line, truncated to MAX_QUOTED characters."""
    words = " ".join(words.split())
    return words if len(words) <= MAX_QUOTED else words[: MAX_QUOTED - 3] + "..."
