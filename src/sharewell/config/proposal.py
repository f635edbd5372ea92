"""What `sharewell init` does: look at a file, and write a configuration to be reviewed."""

from __future__ import annotations

import os
import re
from pathlib import Path

from rich.console import Console

from sharewell.config.columns import look_at
from sharewell.config.guess import guesses
from sharewell.config.names import LONGEST, table_name
from sharewell.config.proposal_text import Proposal, marks, proposal_text
from sharewell.config.reader import parse_config
from sharewell.config.rounding import round_count
from sharewell.errors import ConfigError, SourceError

#: The population of a file without rows.
NO_ROWS = 1_000


def show_init(source: str, out: str, force: bool, table: str | None = None) -> None:
    """Write a proposed configuration for a file, and say what to do next.

    Privacy: reads the rows, for the curator alone; what is taken from them is marked in the file.
    """
    target = Path(out)
    _refuse_to_harm(Path(source), target, force)
    proposal = propose(Path(source), target, table)
    text = proposal_text(proposal)
    # A file that Sharewell itself does not read would be worse than none.
    parse_config(text, target)
    _write(target, text, force)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(
        f"Wrote {out}: {len(proposal.described):,} of {len(proposal.guesses):,} columns are attributes, "
        f"with {proposal.cells:,} cells together.\n"
        f"{len(marks(text)):,} lines are marked REVIEW: they hold something of your rows, and a domain "
        "must be public.\n\n"
        f"Next, when you have reviewed them:\n  sharewell check {out}\n"
        f"  sharewell token ann --config {out}\n  sharewell serve {out}"
    )


def propose(source: Path, target: Path, table: str | None = None) -> Proposal:
    """What to write about a file, into a target that may stand in another folder."""
    seen = look_at(source, table)
    found = guesses(seen)
    if not any(guess.forms for guess in found):
        raise SourceError(
            f"No column of {source.name!r} can be described.",
            hint="Give it columns of numbers, text, booleans, dates or times.",
        )
    population = round_count(seen.rows) if seen.rows else NO_ROWS
    return Proposal(_name(source.stem), _path(source, target), table, population, found)


def _name(stem: str) -> str:
    """The file's name, as a table may be called."""
    plain = re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_").lower()[:LONGEST]
    try:
        return table_name(plain, "dataset.name")
    except ConfigError:
        return "people"


def _path(source: Path, target: Path) -> str:
    """Where the source is, as seen from the target: a path from there, unless it leads far away."""
    folder = target.absolute().parent
    if source.is_absolute() and not source.is_relative_to(folder):
        return str(source)
    return Path(os.path.relpath(source.absolute(), folder)).as_posix()


def _refuse_to_harm(source: Path, target: Path, force: bool) -> None:
    if target.is_dir():
        raise ConfigError(f"{str(target)!r} is a folder.", hint="Name the file to write.")
    if target.exists() and source.exists() and target.samefile(source):
        raise ConfigError("The configuration would overwrite the rows.", hint="Write it elsewhere.")
    if target.exists() and not force:
        raise _exists(target)


def _exists(target: Path) -> ConfigError:
    return ConfigError(
        f"There is a file {str(target)!r} already.", hint="Name another, or use --force to replace it."
    )


def _write(target: Path, text: str, force: bool) -> None:
    try:
        with target.open("w" if force else "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise _exists(target) from None
    except (OSError, UnicodeEncodeError):
        raise ConfigError(
            f"The file {str(target)!r} cannot be written.",
            hint="Name one in a folder that exists and that you may write to.",
        ) from None
