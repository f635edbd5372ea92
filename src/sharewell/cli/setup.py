"""Commands for curators: configure, serve and verify a dataset, issue tokens; and the demonstration."""

from __future__ import annotations

from typing import Annotated

import typer

from sharewell.cli.app import ExitCode
from sharewell.cli.options import (
    DEFAULT_CONFIG,
    AsJson,
    ConfigArgument,
    ConfigOption,
    TokenFile,
    complete_config,
    complete_ledger,
    complete_table,
    flag,
    option,
)
from sharewell.errors import RequestError

PANEL = "For curators"

commands = typer.Typer()


@commands.command(rich_help_panel="Demonstration")
def demo(
    script: Annotated[bool, flag("Run a short script of questions.", "--script")] = False,
    port: Annotated[
        int | None, option("Port to listen on. Default: 8080, or any free port.", "PORT")
    ] = None,
    seconds: Annotated[float, option("Pause after each question.", "SECONDS", min=0)] = 0.0,
) -> None:
    """Serve a bundled table to three analysts until interrupted."""
    from sharewell.cli.demo import show_demo

    show_demo(script, port, seconds)


@commands.command(rich_help_panel=PANEL)
def init(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="The table: a CSV, Parquet or DuckDB file. Several files with --unit.",
            metavar="SOURCE...",
            autocompletion=complete_table,
        ),
    ],
    unit: Annotated[
        str | None, option("Propose a view with one row for each value of this column.", "COLUMN")
    ] = None,
    out: Annotated[
        str, option("The file to write.", "FILE", autocompletion=complete_config)
    ] = DEFAULT_CONFIG,
    tables: Annotated[
        list[str] | None,
        option("Table name, in a DuckDB file; repeatable with --unit.", "NAME", "--table"),
    ] = None,
    columns: Annotated[str | None, option("Describe only these columns: a,b,c.", "NAMES")] = None,
    force: Annotated[bool, flag("Overwrite an existing file.", "--force")] = False,
) -> None:
    """Propose a configuration for a table, or several tables of people, for you to review."""
    from sharewell.cli.render_config import show_init, show_init_view

    tables = tables or []
    if len(sources) > 1 and tables:
        raise RequestError("--table is for one source.", hint="Name one DuckDB file.")
    if unit is not None:
        show_init_view(sources, unit, out, force, tables, columns)
    elif len(sources) > 1 or len(tables) > 1:
        raise RequestError(
            "Several tables need --unit.", hint="Name the column that identifies the person in each."
        )
    else:
        show_init(sources[0], out, force, tables[0] if tables else None, columns)


@commands.command(rich_help_panel=PANEL)
def check(
    config: ConfigArgument = DEFAULT_CONFIG,
    rows: Annotated[
        bool, flag("Also read the rows: what is left out of the counts. Secret.", "--rows")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Validate a configuration file and explain its settings; reads no rows without --rows."""
    from sharewell.cli.render_config import show_check, show_rows
    from sharewell.service.lifecycle import check_files
    from sharewell.service.state import check_ledger

    if rows and as_json:
        raise RequestError("--rows and --json are mutually exclusive: what --rows shows is secret.")
    if not show_check(config, as_json, check_files, check_ledger):
        raise typer.Exit(ExitCode.FAILED)
    if rows:
        show_rows(config)


@commands.command(rich_help_panel=PANEL)
def plan(
    config: ConfigArgument = DEFAULT_CONFIG,
    top: Annotated[int, option("Show this many settings.", "COUNT", min=1)] = 10,
    as_json: AsJson = False,
) -> None:
    """Compare seeds and query budgets for the expected questions; spends nothing."""
    from sharewell.cli.render_plan import show_plan

    show_plan(config, top, as_json)


@commands.command(rich_help_panel=PANEL)
def serve(
    configs: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"Configuration files, one per dataset. Default: {DEFAULT_CONFIG}.",
            metavar="CONFIG",
            autocompletion=complete_config,
        ),
    ] = None,
    host: Annotated[str, option("Address to listen on.", "ADDRESS")] = "127.0.0.1",
    port: Annotated[int, option("Port to listen on.", "PORT")] = 8080,
    tls_cert: Annotated[str | None, option("TLS certificate (PEM).", "FILE")] = None,
    tls_key: Annotated[str | None, option("TLS private key (PEM).", "FILE")] = None,
    behind_proxy: Annotated[bool, flag("A reverse proxy terminates TLS.", "--behind-proxy")] = False,
    allowed_host: Annotated[
        list[str] | None, option("Accept this Host header; repeatable.", "NAME")
    ] = None,
    standby: Annotated[
        bool, flag("Wait until no other server holds the ledger, then serve.", "--standby")
    ] = False,
    log: Annotated[str | None, option("Request log. Default: standard error.", "FILE")] = None,
) -> None:
    """Serve datasets over HTTP until interrupted."""
    from sharewell.cli.lifecycle import offer_to_begin
    from sharewell.service.http.server import serve

    paths = configs or [DEFAULT_CONFIG]
    offer_to_begin(paths)
    serve(
        paths,
        host=host,
        port=port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        behind_proxy=behind_proxy,
        allowed_hosts=allowed_host or (),
        standby=standby,
        log=log,
        echo=typer.echo,
    )


@commands.command(rich_help_panel=PANEL)
def verify(
    ledger: Annotated[
        str,
        typer.Argument(
            help="A ledger file or PostgreSQL URL.", metavar="LEDGER", autocompletion=complete_ledger
        ),
    ],
    head: Annotated[str | None, option("Expected head, as COUNT:HASH.", "HEAD")] = None,
    witness: Annotated[str | None, option("Compare the ledger with this witness.", "FILE")] = None,
    key: Annotated[str | None, option("Key file that authenticates the witness.", "FILE")] = None,
    name: Annotated[str, option("Ledger name in PostgreSQL.", "NAME")] = "default",
    certificate: Annotated[bool, typer.Option(help="Recompute the fairness certificate.")] = True,
    as_json: AsJson = False,
) -> None:
    """Verify a ledger offline: hash chain, budget, answers and certificate."""
    from sharewell.cli.render_verify import read_witness, show_verification

    if head is not None and witness is not None:
        raise RequestError("--head and --witness are mutually exclusive.")
    if key is not None and witness is None:
        raise RequestError("--key requires --witness.")
    if witness is not None:
        head = read_witness(witness, key)
    if not show_verification(ledger, name, head, certificate, as_json):
        raise typer.Exit(ExitCode.FAILED)


@commands.command(rich_help_panel=PANEL)
def token(
    name: Annotated[
        str | None, typer.Argument(help="An analyst or curator of the dataset.", metavar="NAME")
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    curator: Annotated[bool, flag("Fail unless NAME is a curator.", "--curator")] = False,
    revoke: Annotated[bool, flag("Revoke the token; issue none.", "--revoke")] = False,
    list_all: Annotated[bool, flag("List names, roles and tokens.", "--list")] = False,
    out: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Issue a token to an analyst or curator, and revoke the previous one."""
    from sharewell.cli.render import print_reply
    from sharewell.cli.tokens import deliver_token, issue_token, list_tokens, revoke_token
    from sharewell.config import read_config

    if list_all and name is not None:
        raise RequestError("NAME and --list are mutually exclusive.")
    if not list_all and name is None:
        raise RequestError("NAME is missing.", hint="Use `sharewell token NAME`, or --list.")
    dataset = read_config(config)
    if out is not None and (revoke or list_all):
        raise RequestError("--out is for a new token.")
    if name is None:
        list_tokens(dataset, as_json)
    elif revoke:
        revoke_token(dataset, name, curator, as_json)
    else:
        print_reply(deliver_token(lambda: issue_token(dataset, name, curator), out), as_json)
