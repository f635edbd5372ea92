"""The chain: each event's hash covers its number, its bytes and the hash before it.

So a hash stands for everything up to it: whoever notes the head, which is a count and a hash, can tell
later whether anything below it was touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from sharewell.errors import LedgerError

#: What stands before the first event.
BEGINNING = bytes(32)


def link(previous: bytes, number: int, body: bytes) -> bytes:
    """The hash of an event: SHA-256 over the previous hash, the number in 8 bytes, and the body."""
    return sha256(previous + number.to_bytes(8, "big") + body).digest()


class Row(NamedTuple):
    """One event as it is stored."""

    number: int
    body: bytes
    hash: bytes


@dataclass(frozen=True)
class Head:
    """Where a chain ends: how many events there are, and the hash of the last.

    Its text may be kept anywhere, and be given to `verify_chain` later:

    >>> Head.parse(str(Head(2, bytes(range(32))))) == Head(2, bytes(range(32)))
    True
    """

    count: int = 0
    hash: bytes = BEGINNING

    def __str__(self) -> str:
        return f"{self.count}:{self.hash.hex()}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """The head that a text names."""
        count, _, digest = text.strip().partition(":")
        try:
            head = cls(int(count), bytes.fromhex(digest))
        except ValueError:
            head = cls(-1)
        if head.count < 0 or len(head.hash) != 32:
            raise LedgerError(
                "This is not the head of a ledger.",
                hint="It is written as a count, a colon and 64 hexadecimal digits.",
            )
        return head

    def after(self, bodies: list[bytes]) -> list[Row]:
        """The rows of further events."""
        rows, previous = [], self.hash
        for number, body in enumerate(bodies, start=self.count):
            previous = link(previous, number, body)
            rows.append(Row(number, body, previous))
        return rows
