"""Streams: what happens in a collective, in order. Analysts ask, come late, and leave."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sharewell.errors import SharingError
from sharewell.privacy.budget import Amount
from sharewell.query.block import Block
from sharewell.query.linear import LinearQuery


@dataclass(frozen=True)
class Ask:
    """An analyst asks a query, a block of queries, or several blocks, which are answered all or none.

    With `pay=False` it is never paid for.
    """

    analyst: str
    question: LinearQuery | Block | tuple[Block, ...]
    pay: bool = True

    @property
    def parts(self) -> tuple[LinearQuery | Block, ...]:
        """What is bought together each."""
        return self.question if isinstance(self.question, tuple) else (self.question,)

    @property
    def queries(self) -> tuple[LinearQuery, ...]:
        """Every query that needs an answer."""
        return tuple(
            query for part in self.parts for query in ([part] if isinstance(part, LinearQuery) else part)
        )


@dataclass(frozen=True)
class Join:
    """A new analyst comes, with a share."""

    analyst: str
    share: Amount


@dataclass(frozen=True)
class Leave:
    """An analyst goes; with `donate`, what they have left is spent for everybody."""

    analyst: str
    donate: bool = False


Entry = Ask | Join | Leave

#: How a question is marked in a plain tuple.
PAY = {"pay": True, "free": False}


def read_stream(stream: Iterable[Any]) -> list[Entry]:
    """A stream's entries; `(analyst, question)` and `(analyst, question, "free")` stand for an `Ask`."""
    return [_read(entry, at) for at, entry in enumerate(stream)]


def _read(entry: Any, at: int) -> Entry:
    if isinstance(entry, Ask | Join | Leave):
        return entry
    match entry:
        case (str(analyst), LinearQuery() | Block() as question):
            return Ask(analyst, question)
        case (str(analyst), LinearQuery() | Block() as question, ("pay" | "free") as how):
            return Ask(analyst, question, PAY[how])
    raise SharingError(
        f"Entry {at} of the stream is not something that can happen: {type(entry).__name__}.",
        hint='Write (analyst, query), (analyst, query, "free"), Ask(...), Join(...) or Leave(...).',
    )
