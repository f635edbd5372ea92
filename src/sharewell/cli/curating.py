"""What curators type while the service runs."""

from __future__ import annotations

from typing import Annotated

import typer

from sharewell.cli.files import LedgerFile
from sharewell.cli.link import Link, linked

PANEL = "For curators, while it runs"

commands = typer.Typer()
people = typer.Typer()
commands.add_typer(people, name="analysts", rich_help_panel=PANEL)

Name = Annotated[str, typer.Argument(help="The analyst's name.", metavar="NAME")]


@commands.command(rich_help_panel=PANEL)
@linked
def ledger(
    link: Link,
    after: Annotated[
        int | None, typer.Option(help="Begin after this event; the last ones if left out.", min=-1)
    ] = None,
    limit: Annotated[int, typer.Option(help="How many events to show.", min=1)] = 20,
    file: Annotated[
        str | None,
        typer.Option(
            help="Read this ledger, without a server: a file, or a PostgreSQL address.",
            metavar="LEDGER",
            autocompletion=LedgerFile.complete,
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="With --file: the ledger's name in PostgreSQL.")] = "default",
) -> None:
    """Show what has happened: every question, charge, release and answer."""
    from sharewell.cli.line import tell
    from sharewell.cli.shown_events import show_events

    link.refuse_contradictions()
    if file is not None or link.config is not None:
        from sharewell.cli.events import read_events

        found = read_events(file, name, link.config, after, limit)
    else:
        with link.open() as line:
            found = line.events(after, limit)
    tell(found, link.as_json, show_events)


@people.callback(invoke_without_command=True)
@linked
def analysts(link: Link, ctx: typer.Context) -> None:
    """Show who may ask and how they stand; or add or remove somebody."""
    ctx.obj = link
    if ctx.invoked_subcommand is not None:
        return

    from sharewell.cli.line import tell
    from sharewell.cli.shown_budgets import show_analysts
    from sharewell.client import call

    with link.open(curator=True) as line:
        tell(line.say(call.analysts()), link.as_json, show_analysts)


@people.command("add")
@linked
def add(
    link: Link,
    ctx: typer.Context,
    name: Name,
    share: Annotated[str, typer.Argument(help="A part of the whole budget: 1/10.", metavar="SHARE")],
) -> None:
    """Take somebody in with a share of what nobody holds; prints their token."""
    from sharewell import wire
    from sharewell.cli.shown import tell_token

    link = link.over(ctx.obj)
    with link.open(curator=True) as line:
        token = line.run(line.core.join(name, share))
    tell_token(wire.Token(name=name, role="analyst", token=token), link.as_json)


@people.command("remove")
@linked
def remove(
    link: Link,
    ctx: typer.Context,
    name: Name,
    donate: Annotated[
        bool, typer.Option("--donate", help="Spend what they have left for the good of all others.")
    ] = False,
) -> None:
    """Let somebody go for good; their token ends, and what they have left is never spent."""
    from sharewell.cli.line import tell
    from sharewell.client import call

    link = link.over(ctx.obj)
    left = "donated to all others" if donate else "never spent"
    with link.open(curator=True) as line:
        tell(
            line.say(call.leave(name, donate)),
            link.as_json,
            lambda _: typer.echo(
                f"{name} has left; their token has ended, and what they had left is {left}."
            ),
        )


@people.command("token")
@linked
def token(link: Link, ctx: typer.Context, name: Name) -> None:
    """Make a new token for an analyst and print it; the former one ends."""
    from sharewell.cli.shown import tell_token
    from sharewell.client import call

    link = link.over(ctx.obj)
    with link.open(curator=True) as line:
        tell_token(line.say(call.new_token(name)), link.as_json)


@commands.command(rich_help_panel=PANEL)
@linked
def pause(link: Link) -> None:
    """Take no more questions until `sharewell resume`, also after a restart."""
    _set_paused(link, True, "No question is taken until `sharewell resume`.")


@commands.command(rich_help_panel=PANEL)
@linked
def resume(link: Link) -> None:
    """Take questions again."""
    _set_paused(link, False, "Questions are taken again.")


def _set_paused(link: Link, paused: bool, words: str) -> None:
    """Pause or go on; with the dataset's file at hand also beside a server that runs."""
    from sharewell.cli.line import tell
    from sharewell.client import call

    link.refuse_contradictions()
    if link.config is not None:
        from sharewell.cli.tokens import access_of

        access = access_of(link.config)
        (access.pause if paused else access.resume)()
    else:
        with link.open() as line:
            line.say(call.pause() if paused else call.resume())
    tell(call.Nothing(), link.as_json, lambda _: typer.echo(words))
