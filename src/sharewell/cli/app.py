"""The Typer application: error messages, exit codes, pipes and Ctrl-C."""

from __future__ import annotations

import errno
import io
import os
import sys
from enum import IntEnum
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import sharewell
from sharewell.errors import Closed, Paused, SharewellError


class ExitCode(IntEnum):
    """Exit codes; scripts rely on them, and docs/command-line.md lists them."""

    FAILED = 1
    ERROR = 2
    WAITING = 3
    UNREACHABLE = 4
    INTERRUPTED = 130
    BROKEN_PIPE = 141


#: The curators' commands, in the order of their work; others follow as they are registered.
WORK_ORDER = ["demo", "init", "check", "plan", "begin", "token", "serve", "verify", "recover", "adopt"]


class CommandGroup(TyperGroup):
    """Commands that report errors as one sentence on standard error and an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands, as `--help` shows them."""
        names = super().list_commands(ctx)
        first = [name for name in WORK_ORDER if name in names]
        return [*first, *(name for name in names if name not in first)]

    def get_params(self, ctx: Any) -> list[Any]:
        """The options that precede the command."""
        return _hide_flag_types(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _hide_flag_types(command.get_params(ctx))
        return command

    def invoke(self, ctx: Any) -> Any:
        """Run the selected command."""
        try:
            return super().invoke(ctx)
        except SharewellError as error:
            from sharewell.cli.terminal import format_error

            typer.echo(format_error(error), err=True)
            raise typer.Exit(exit_code(error)) from None
        except KeyboardInterrupt:
            raise typer.Exit(ExitCode.INTERRUPTED) from None


def _hide_flag_types(params: list[Any]) -> list[Any]:
    """Hide `<bool>` beside flags in `--help`."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


def exit_code(error: SharewellError) -> ExitCode:
    """Return the exit code of an error: 4 if the service is unreachable."""
    unreachable = isinstance(error, Closed) and not isinstance(error, Paused)
    return ExitCode.UNREACHABLE if unreachable else ExitCode.ERROR


app = typer.Typer(
    cls=CommandGroup,
    help="Differentially private SQL for several analysts who share one privacy budget fairly.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"sharewell {sharewell.__version__}")
        raise typer.Exit


@app.callback()
def global_options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Define the options that precede the command."""


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        # Print "?" for characters that the terminal's encoding lacks, such as "±".
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as end:
        if not any(isinstance(each, BrokenPipeError) for each in (end, end.__context__)):
            raise
        _discard_stdout()
        sys.exit(ExitCode.BROKEN_PIPE)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        typer.echo("Cannot write output: no space left on device.", err=True)
        _discard_stdout()
        sys.exit(ExitCode.ERROR)


def _discard_stdout() -> None:
    """Redirect standard output, which the interpreter flushes once more when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
