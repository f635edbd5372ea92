"""Options that several commands share, confirmations, and shell completion of file names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from sharewell.errors import RequestError

#: The configuration file that commands read by default.
DEFAULT_CONFIG = "sharewell.toml"


def option(help: str, metavar: str, *names: str, **settings: Any) -> Any:
    """An option with a value, whose name follows from the parameter's unless it is given."""
    return typer.Option(*names, help=help, metavar=metavar, **settings)


def flag(help: str, name: str, **settings: Any) -> Any:
    """An option without a value."""
    return typer.Option(name, help=help, **settings)


AsJson = Annotated[bool, flag("Print JSON.", "--json")]
TokenFile = Annotated[
    str | None, option("Write the token to a new file that only you can read.", "FILE", "--out")
]
Yes = Annotated[bool, flag("Do not ask for a confirmation.", "--yes")]


def is_interactive() -> bool:
    """Whether standard input is a terminal."""
    return sys.stdin.isatty()


def confirm(question: str, yes: bool) -> None:
    """Continue only with --yes, or after a confirmation at the terminal."""
    if yes:
        return
    if not is_interactive():
        raise RequestError("Confirmation required.", hint="Pass --yes, or run it in a terminal.")
    if not typer.confirm(question, err=True):
        typer.echo("Nothing was changed.", err=True)
        raise typer.Exit(1)


def complete_files(*suffixes: str) -> Callable[[str], list[str]]:
    """Complete the names of folders and of files with these suffixes, which Typer's own cannot."""

    def complete(incomplete: str) -> list[str]:
        folder, _, prefix = incomplete.rpartition("/")
        start = f"{folder}/" if "/" in incomplete else ""
        try:
            paths = sorted(Path(start or ".").iterdir())
        except OSError:
            return []
        return [
            f"{start}{path.name}/" if path.is_dir() else f"{start}{path.name}"
            for path in paths
            if path.name.startswith(prefix)
            and (prefix.startswith(".") or not path.name.startswith("."))
            and (path.suffix in suffixes or path.is_dir())
        ]

    return complete


complete_config = complete_files(".toml")
complete_ledger = complete_files(".sqlite", ".db")
complete_table = complete_files(".csv", ".parquet", ".duckdb", ".db")

ConfigOption = Annotated[
    str, option("The configuration file.", "FILE", "--config", autocompletion=complete_config)
]
ConfigArgument = Annotated[
    str, typer.Argument(help="The configuration file.", metavar="CONFIG", autocompletion=complete_config)
]
