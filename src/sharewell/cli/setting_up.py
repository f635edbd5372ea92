"""What curators type before the service runs, to run it, and to verify what it has done."""

from __future__ import annotations

from typing import Annotated

import typer

from sharewell.cli.files import LedgerFile, TableFile, TomlFile
from sharewell.cli.link import AsJson
from sharewell.cli.root import NO
from sharewell.errors import RequestError

PANEL = "For curators"
HERE = "sharewell.toml"

commands = typer.Typer()


@commands.command(rich_help_panel=PANEL)
def init(
    source: Annotated[
        str,
        typer.Argument(
            help="The rows: a CSV, Parquet or DuckDB file.",
            metavar="SOURCE",
            autocompletion=TableFile.complete,
        ),
    ],
    out: Annotated[str, typer.Option(help="What to write.", autocompletion=TomlFile.complete)] = HERE,
    table: Annotated[str | None, typer.Option(help="The table, in a database.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Look at a file of rows, and write a configuration to be reviewed."""
    from sharewell.config.proposal import show_init

    show_init(source, out, force, table)


@commands.command(rich_help_panel=PANEL)
def check(
    config: Annotated[
        str,
        typer.Argument(help="The file.", metavar="[CONFIG]", autocompletion=TomlFile.complete),
    ] = HERE,
    as_json: AsJson = False,
) -> None:
    """Say what every setting will do, and what is wrong with it."""
    from sharewell.config.check import show_check
    from sharewell.service.terms import of_ledger

    if not show_check(config, as_json, of_ledger):
        raise typer.Exit(NO)


@commands.command(rich_help_panel=PANEL)
def plan(
    config: Annotated[
        str, typer.Argument(help="A sharewell.toml.", autocompletion=TomlFile.complete)
    ] = HERE,
    top: Annotated[int, typer.Option(help="How many settings to show.", min=1)] = 10,
    as_json: AsJson = False,
) -> None:
    """Compare seeds and prices for what the analysts will ask, before anything is spent."""
    from sharewell.config.report import show_plan

    show_plan(config, top, as_json)


@commands.command(rich_help_panel=PANEL)
def serve(
    configs: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"One file for each dataset; {HERE} if left out.",
            metavar="[CONFIG]...",
            autocompletion=TomlFile.complete,
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen at.")] = 8080,
    tls_cert: Annotated[
        str | None, typer.Option(help="A certificate, as a PEM file.", metavar="FILE")
    ] = None,
    tls_key: Annotated[str | None, typer.Option(help="Its key.", metavar="FILE")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy in front speaks TLS with the world.")
    ] = False,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(help="A name that requests may call it by; may be given again.", metavar="NAME"),
    ] = None,
    log: Annotated[
        str | None, typer.Option(help="Where to log requests; stderr if left out.", metavar="FILE")
    ] = None,
) -> None:
    """Serve datasets over HTTP until Ctrl-C."""
    from sharewell.service.http.serving import serve

    serve(
        configs or [HERE],
        host=host,
        port=port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        behind_proxy=behind_proxy,
        allowed_hosts=allowed_host or (),
        log=log,
    )


@commands.command(rich_help_panel=PANEL)
def token(
    name: Annotated[
        str | None, typer.Argument(help="An analyst or a curator of the dataset.", metavar="NAME")
    ] = None,
    config: Annotated[
        str,
        typer.Option(help="The dataset's file.", metavar="FILE", autocompletion=TomlFile.complete),
    ] = HERE,
    curator: Annotated[bool, typer.Option("--curator", help="Refuse unless NAME is a curator.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="End the token, and make none.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Show who holds a token.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a token for an analyst or a curator; a former one ends."""
    from sharewell.cli.tokens import issue_token, list_tokens, revoke_token

    if listed == (name is not None):
        raise RequestError("Say whose token, or --list.", hint="For example: sharewell token ann")
    if name is None:
        list_tokens(config, as_json)
    elif revoke:
        revoke_token(config, name, curator, as_json)
    else:
        issue_token(config, name, curator, as_json)


@commands.command(rich_help_panel=PANEL)
def verify(
    ledger: Annotated[
        str,
        typer.Argument(
            help="A ledger's file, or the address of a PostgreSQL one.",
            autocompletion=LedgerFile.complete,
        ),
    ],
    head: Annotated[str | None, typer.Option(help="A head noted earlier, as COUNT:HASH.")] = None,
    name: Annotated[str, typer.Option(help="The ledger's name in PostgreSQL.")] = "default",
    certificate: Annotated[bool, typer.Option(help="Compute the certificate again, too.")] = True,
    as_json: AsJson = False,
) -> None:
    """Verify a ledger offline: chain, budget, answers and certificate."""
    from sharewell.service.verify.report import show_verification

    if not show_verification(ledger, name, head, certificate, as_json):
        raise typer.Exit(NO)
