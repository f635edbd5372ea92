"""What every layout is made of: tables, bars, and where they are printed."""

from __future__ import annotations

from fractions import Fraction

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from sharewell import wire
from sharewell.cli.line import print_json
from sharewell.cli.words import clean

#: How many characters a bar has.
BAR = 20


def show(*what: RenderableType) -> None:
    """Print one thing below the other; texts are taken as they are, and mean nothing to the terminal."""
    console = Console(highlight=False)
    for each in what:
        if isinstance(each, Table):
            # A terminal breaks lines that are too long; a digit that was cut off would lie.
            least = Measurement.get(console, console.options.update(max_width=10_000), each).minimum
            Console(highlight=False, width=max(least + 2, console.width)).print(each)
        else:
            console.print(Text(clean(each)) if isinstance(each, str) else each)


def table(*headings: str, right: tuple[str, ...] = (), title: str | None = None) -> Table:
    """An empty table; columns of numbers stand at the right, and are never broken."""
    made = Table(
        title=None if title is None else Text(clean(title)), box=box.SIMPLE_HEAD, title_justify="left"
    )
    for heading in headings:
        made.add_column(
            Text(clean(heading)),
            justify="right" if heading in right else "left",
            no_wrap=heading in right,
            overflow="fold",
        )
    return made


def bar(left: Fraction, of: Fraction) -> Text:
    """How much is left, as a bar: full while anything can be paid for, empty when nothing can.

    >>> bar(Fraction(1, 4), Fraction(1, 2)).plain
    '██████████░░░░░░░░░░'
    """
    full = round(BAR * left / of) if of else 0
    if left > 0:
        full = max(1, full)
    have, gone = "#-" if Console().options.ascii_only else "█░"
    return Text.assemble((have * full, "green"), (gone * (BAR - full), "dim"))


def tell_token(token: wire.Token, as_json: bool) -> None:
    """Print a token alone, so that it can be piped, and what it is beside it."""
    if as_json:
        print_json(token)
        return
    typer.echo(
        f"A new token for the {token.role} {token.name}. It is shown once; any former one has ended.\n"
        "Pass it on where nobody else reads it. SHAREWELL_TOKEN is where commands look for it.",
        err=True,
    )
    typer.echo(token.token)
