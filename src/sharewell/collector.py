"""The garbage collector, told what kind of program this is."""

from __future__ import annotations

import gc


def stay_calm() -> None:
    """Collect seldom: for a process that keeps most of what it makes, and makes few cycles.

    What a broker or a certificate holds lives on, and Python would look through it again and again, for
    up to a fifth of the time.
    """
    gc.set_threshold(50_000, 20, 100)
