"""The command line: one command per verb, no logic."""

from __future__ import annotations

from typing import Annotated

import typer

import sharewell

app = typer.Typer(
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


@app.command()
def demo(
    seconds: Annotated[float, typer.Option(help="How long to pause after each step.", min=0)] = 0.0,
) -> None:
    """Show three analysts share a budget on the bundled table."""
    from sharewell.demo import play

    play(pause=seconds)


def main() -> None:
    """Run the command line."""
    app()
