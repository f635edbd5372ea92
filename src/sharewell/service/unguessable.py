"""Texts that nobody can guess, for keys and for the ids of requests."""

from __future__ import annotations

import os

#: How many are made at a time.
AT_ONCE = 256
#: How many letters each of them has.
LENGTH = 32

_ready: list[str] = []
# A copy of this process must not use the same ones.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ready.clear)


def unguessable() -> str:
    """A text of 128 random bits, in hexadecimal; safe from many threads.

    Whoever asks the operating system for random bits lets another thread go first, which takes far
    longer than the bits do: so many are fetched at a time.
    """
    while True:
        try:
            return _ready.pop()
        except IndexError:
            letters = os.urandom(AT_ONCE * LENGTH // 2).hex()
            _ready.extend(letters[at : at + LENGTH] for at in range(0, len(letters), LENGTH))
