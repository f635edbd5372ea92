"""Progress of a waiting question, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sharewell import wire

ShowTicket = Callable[[wire.Ticket], None]

#: None shows progress on a terminal and in a notebook, True always, False never; a function is called
#: with each new state of the ticket.
Progress = bool | ShowTicket | None


@contextmanager
def show_progress(ticket: wire.Ticket, progress: Progress) -> Iterator[ShowTicket]:
    """Show the state of a waiting question, and clear it at the end."""
    if ticket.state != "waiting" or progress is False:
        yield lambda _: None
    elif callable(progress):
        progress(ticket)
        yield progress
    elif progress or sys.stderr.isatty() or in_notebook():
        with _rewritten_line(ticket) as show:
            yield show
    else:
        yield lambda _: None


def in_notebook() -> bool:
    """Return whether this runs in a notebook, which shows standard error though it is no terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def _rewritten_line(ticket: wire.Ticket) -> Iterator[ShowTicket]:
    """Show the state on one line that is overwritten: terminals and all notebooks support that."""
    start, width, stream = time.monotonic(), 0, sys.stderr

    def show(now: wire.Ticket) -> None:
        nonlocal width
        text = f"{now.describe()}, {time.monotonic() - start:.0f} s"
        width = max(width, len(text))
        stream.write(f"\r{text.ljust(width)}")
        stream.flush()

    show(ticket)
    try:
        yield show
    finally:
        stream.write(f"\r{' ' * width}\r")
        stream.flush()
