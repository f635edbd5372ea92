"""Handles: what is known of a question that was handed in."""

from __future__ import annotations

from sharewell import wire
from sharewell.client.progress import in_words


class Handle:
    """What tickets of both kinds of session share: all that never changes, and what was last heard."""

    def __init__(self, told: wire.Ticket) -> None:
        self._told = told

    @property
    def number(self) -> int:
        """The question's number, by which its analyst finds it again."""
        return self._told.number

    @property
    def key(self) -> str:
        """The question's key: asked again with it, the question costs no more."""
        return self._told.key

    @property
    def sql(self) -> str:
        """What was asked."""
        return self._told.sql

    @property
    def pay(self) -> bool:
        """Whether it may cost something."""
        return self._told.pay

    @property
    def _ended(self) -> bool:
        return self._told.state != "waiting"

    def __repr__(self) -> str:
        text = " ".join(self.sql.split())
        short = text if len(text) <= 60 else f"{text[:59]}…"
        return f"<Ticket {self.number}, {in_words(self._told)}: {short}>"
