"""What `sharewell demo` does: sets the stage, says how to come in, and plays the story or waits."""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

from rich.console import Console
from rich.panel import Panel

from sharewell.demo.stage import Stage, set_up
from sharewell.demo.story import play


def show(*, script: bool, port: int | None, pause: float) -> None:
    """Serve the bundled table; with `script`, play the story first.

    After a story it goes on only for somebody who sits at a terminal, and can end it.
    """
    console = Console()
    with ExitStack() as stack:
        # Whoever stops the process from outside leaves nothing behind either.
        before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        stack.callback(signal.signal, signal.SIGTERM, before)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sharewell-demo-")))
        with console.status("Counting people, and measuring the seed: exact noise for every cell"):
            stage = stack.enter_context(set_up(folder, port))
        _greet(console, stage)
        if script:
            play(stage, console, pause)
        if not script or sys.stdin.isatty():
            _wait(console, stage)


def _greet(console: Console, stage: Stage) -> None:
    console.print(
        Panel.fit(
            "[bold]Sharewell[/]: 278,000 people of Massachusetts, 120,400 public cells.\n"
            "Three analysts share a budget of epsilon = 1. Half of every share buys\n"
            "a seed for all; the rest pays for questions, once each, whoever asks.",
            border_style="cyan",
        )
    )
    console.print(f"The server is at [bold]{stage.url}[/], and shows what it can do at /docs. Tokens:\n")
    for name, token in stage.tokens.items():
        role = "curator" if name == "dana" else "analyst"
        console.print(f"  {name:5} {role}  {token}", highlight=False, soft_wrap=True)


def _wait(console: Console, stage: Stage) -> None:
    """Let people try it, until they have had enough."""
    token = stage.tokens["ann"]
    console.print("\nIn another terminal:\n", highlight=False)
    for line in (
        f"export SHAREWELL_URL={stage.url} SHAREWELL_TOKEN={token}",
        "sharewell quote \"SELECT COUNT(*) FROM people WHERE sex = 'female' AND age < 30\"",
        'sharewell ask "SELECT sex, COUNT(*) FROM people GROUP BY sex"',
        "sharewell budget",
        "sharewell certificate",
    ):
        console.print(f"  {line}", highlight=False, soft_wrap=True)
    console.print("\n[dim]Ctrl-C ends it, and takes everything away.[/]")
    with suppress(KeyboardInterrupt):
        threading.Event().wait()
