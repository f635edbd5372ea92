"""What all commands share: refusals in a sentence, exit codes, pipes and Ctrl-C."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import sharewell
from sharewell.cli.words import in_shell_words, refusal
from sharewell.errors import Closed, Paused, SharewellError

#: Exit codes. docs/command-line.md has them, and scripts rely on them.
NO, REFUSED, WAITING, UNREACHABLE, INTERRUPTED, BROKEN_PIPE = 1, 2, 3, 4, 130, 141


class SaysWhy(TyperGroup):
    """Commands whose refusals are a sentence on stderr and an exit code, never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        try:
            return super().invoke(ctx)
        except SharewellError as refused:
            typer.echo(refusal(refused), err=True)
            raise typer.Exit(exit_code(refused)) from None
        except KeyboardInterrupt as stopped:
            if str(stopped):
                typer.echo(in_shell_words(str(stopped)), err=True)
            raise typer.Exit(INTERRUPTED) from None


def exit_code(refused: SharewellError) -> int:
    """The exit code of a refusal: whether there was somebody to refuse."""
    nobody = isinstance(refused, Closed) and not isinstance(refused, Paused)
    return UNREACHABLE if nobody else REFUSED


app = typer.Typer(
    cls=SaysWhy,
    help="Several analysts, one sensitive table, one privacy budget, and nobody worse off for sharing.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sharewell {sharewell.__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Say what every command has in common."""


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a ± shows a question mark.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as ended:
        if not any(isinstance(each, BrokenPipeError) for each in (ended, ended.__context__)):
            raise
        # Whoever read has enough, as `head` has. What is still buffered must go somewhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(BROKEN_PIPE)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        typer.echo("What was to be said could not be written: the disk is full.", err=True)
        # At its end, the process would try once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(REFUSED)
