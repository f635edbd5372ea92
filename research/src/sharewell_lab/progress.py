"""Progress: a bar with the time left on the error stream, and a quiet end after Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from sharewell_lab.runner import Stopped, Watch

#: What a shell reports of a program that Ctrl-C has ended.
INTERRUPTED = 130


@contextmanager
def bar(name: str, unit: str = "trials") -> Iterator[Watch]:
    """Show the trials of a study as they are done."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{unit},"),
        TimeElapsedColumn(),
        TextColumn("elapsed,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def stopping_quietly() -> Iterator[None]:
    """End with a sentence and the usual exit code when a run is stopped."""
    try:
        yield
    except Stopped as stopped:
        Console(stderr=True).print(str(stopped), markup=False, highlight=False, soft_wrap=True)
        raise SystemExit(INTERRUPTED) from None
