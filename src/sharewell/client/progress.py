"""Progress: what somebody sees while their question waits its turn."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from sharewell import wire
from sharewell.client.wording import several

Show = Callable[[wire.Ticket], None]

#: Whether to show it: None where somebody may be looking, True, False, or a function that is told.
Progress = bool | Show | None


@contextmanager
def showing(ticket: wire.Ticket, progress: Progress) -> Iterator[Show]:
    """Show how a waiting question is doing, on standard error, and clear it away afterwards."""
    if ticket.state != "waiting" or progress is False:
        yield _nobody
    elif callable(progress):
        progress(ticket)
        yield progress
    elif in_notebook():
        with _line(ticket, sys.stderr) as show:
            yield show
    elif progress or sys.stderr.isatty():
        with _spinner(ticket) as show:
            yield show
    else:
        yield _nobody


def in_words(ticket: wire.Ticket) -> str:
    """How a question is doing."""
    if ticket.state != "waiting":
        return ticket.state
    if not ticket.position:
        return "waiting for its turn"
    return f"waiting, {several(ticket.position, 'question')} of yours before it"


def in_notebook() -> bool:
    """Whether this runs in a notebook, where standard error is shown and is no terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _nobody(ticket: wire.Ticket) -> None:
    """Show nothing."""


@contextmanager
def _spinner(ticket: wire.Ticket) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(in_words(ticket), total=None)
        yield lambda now: bar.update(task, description=in_words(now))


@contextmanager
def _line(ticket: wire.Ticket, stream: TextIO) -> Iterator[Show]:
    """One line that is written over and over: every notebook shows that, whatever is installed."""
    begun = time.monotonic()
    width = 0

    def show(now: wire.Ticket) -> None:
        nonlocal width
        text = f"{in_words(now)}, {time.monotonic() - begun:.0f} s"
        width = max(width, len(text))
        stream.write(f"\r{text.ljust(width)}")
        stream.flush()

    show(ticket)
    try:
        yield show
    finally:
        stream.write(f"\r{' ' * width}\r")
        stream.flush()
