"""The garbage collector, told what kind of program this is."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def stay_calm() -> None:
    """Collect seldom: for a process that keeps most of what it makes, and makes few cycles.

    What a broker or a certificate holds lives on, and Python would look through it again and again, for
    up to a fifth of the time.
    """
    gc.set_threshold(50_000, 20, 100)


@contextmanager
def without_collections() -> Iterator[None]:
    """Collect nothing meanwhile: of a long ledger come a million objects at once, and they all stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
