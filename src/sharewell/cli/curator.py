"""Commands for curators while the service runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from sharewell.cli.app import CommandGroup
from sharewell.cli.connection import Connection, with_connection
from sharewell.cli.options import TokenFile, Yes, complete_ledger, confirm, flag, option
from sharewell.errors import RequestError

if TYPE_CHECKING:
    from sharewell import wire

PANEL = "For curators, at run time"

commands = typer.Typer()
analyst_commands = typer.Typer(cls=CommandGroup)
commands.add_typer(analyst_commands, name="analysts", rich_help_panel=PANEL)

Name = Annotated[str, typer.Argument(help="The analyst's name.", metavar="NAME")]


@commands.command(rich_help_panel=PANEL)
@with_connection
def ledger(
    connection: Connection,
    after: Annotated[
        int | None, option("Start after this event. Default: the last events.", "NUMBER", min=-1)
    ] = None,
    limit: Annotated[int, option("Print at most this many events.", "COUNT", min=1)] = 20,
    file: Annotated[
        str | None,
        option(
            "Read a ledger file or PostgreSQL URL directly, without a server.",
            "LEDGER",
            autocompletion=complete_ledger,
        ),
    ] = None,
    name: Annotated[str, option("Ledger name in PostgreSQL, with --file.", "NAME")] = "default",
) -> wire.EventPage:
    """Print ledger events: questions, charges, releases, answers."""
    connection.validate()
    if file is not None and connection.config is not None:
        raise RequestError("--file and --config are mutually exclusive.")
    if file is not None:
        return _read_events(file, name, after, limit)
    if connection.config is not None:
        from sharewell.config import read_config

        config = read_config(connection.config)
        return _read_events(config.service.ledger, config.name, after, limit)
    with connection.open_curator() as session:
        if after is None:
            count, _, _ = session.events(limit=1).head.partition(":")
            after = max(-1, int(count) - limit - 1)
        return session.events(after=after, limit=limit)


def _read_events(where: str, name: str, after: int | None, limit: int) -> wire.EventPage:
    """Read events from the ledger's store, which a server may have open."""
    from sharewell.service.ledger import open_ledger
    from sharewell.service.serialization import event_page

    with open_ledger(where, name=name, read_only=True) as ledger:
        first = ledger.head.count - limit - 1 if after is None else after
        return event_page(ledger, max(-1, first), limit)


@analyst_commands.callback(invoke_without_command=True)
@with_connection
def analysts(connection: Connection) -> wire.AnalystList:
    """List analysts and their budgets, or add and remove analysts."""
    with connection.open_curator() as session:
        return session.analysts()


@analyst_commands.command("add")
@with_connection
def add(
    connection: Connection,
    name: Name,
    share: Annotated[
        str, typer.Argument(help="Fraction of the whole budget, such as 1/10.", metavar="SHARE")
    ],
    out: TokenFile = None,
) -> wire.Token | str:
    """Add an analyst with a share of the unallocated budget, and print or write a token."""
    with connection.open_curator() as session:
        return _deliver(name, lambda: session.join(name, share), out)


@analyst_commands.command("remove")
@with_connection
def remove(
    connection: Connection,
    name: Name,
    donate: Annotated[
        bool, flag("Spend the rest of the share on a measurement for all analysts.", "--donate")
    ] = False,
    yes: Yes = False,
) -> str:
    """Remove an analyst for good, and revoke the token; the rest of the share is never spent."""
    from sharewell.wire.text import pluralize

    with connection.open_curator() as session:
        for each in session.analysts():
            if each.analyst == name:
                lost = "is donated to all others" if donate else "is never spent"
                waiting = pluralize(each.waiting, "waiting question")
                confirm(
                    f"Remove {name} for good? {waiting} {'is' if each.waiting == 1 else 'are'} refused, "
                    "the token is revoked, the name cannot be used again, and what is left, "
                    f"{each.left} of {each.share}, {lost}.",
                    yes,
                )
        session.leave(name, donate=donate)
    rest = "was donated to all analysts" if donate else "is never spent"
    return f"Removed {name} and revoked the token. The rest of the share {rest}."


@analyst_commands.command("token")
@with_connection
def token(connection: Connection, name: Name, out: TokenFile = None) -> wire.Token | str:
    """Print or write a new token for an analyst, and revoke the previous one."""
    with connection.open_curator() as session:
        return _deliver(name, lambda: session.token(name), out)


def _deliver(name: str, issue: Callable[[], str], out: str | None) -> wire.Token | str:
    from sharewell import wire
    from sharewell.cli.tokens import deliver_token

    return deliver_token(lambda: wire.Token(name=name, role="analyst", token=issue()), out)


@commands.command("close-round", rich_help_panel=PANEL)
@with_connection
def close_round(connection: Connection, yes: Yes = False) -> wire.ClosedRound:
    """Spend what the analysts who are done have left on one measurement for all analysts."""
    with connection.open_curator() as session:
        done = [each for each in session.analysts() if each.done]
        if done:
            rest = ", ".join(f"{each.analyst} {each.left} of {each.share}" for each in done)
            confirm(
                f"Close the round? What the analysts who are done have left ({rest}) is spent on one "
                "more measurement of the seed. They can still ask, and pay for nothing more.",
                yes,
            )
        return session.close_round()


@commands.command(rich_help_panel=PANEL)
@with_connection
def pause(connection: Connection) -> str:
    """Accept no questions until `sharewell resume`, even after a restart."""
    _set_paused(connection, True)
    return "Paused. Run `sharewell resume` to accept questions again."


@commands.command(rich_help_panel=PANEL)
@with_connection
def resume(connection: Connection) -> str:
    """Accept questions again."""
    _set_paused(connection, False)
    return "Resumed. Questions are accepted again."


def _set_paused(connection: Connection, paused: bool) -> None:
    """Pause or resume; with --config through the token store, which a running server reads."""
    connection.validate()
    if connection.config is not None:
        from sharewell.config import read_config
        from sharewell.service.tokens import TokenStore

        store = TokenStore(read_config(connection.config).service.access)
        (store.pause if paused else store.resume)()
    else:
        with connection.open_curator() as session:
            (session.pause if paused else session.resume)()
