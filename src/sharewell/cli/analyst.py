"""Commands for analysts."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sharewell.cli.app import ExitCode
from sharewell.cli.connection import Connection, with_connection
from sharewell.cli.options import flag, is_interactive, option
from sharewell.errors import RequestError
from sharewell.wire.text import GAINS_LITTLE

if TYPE_CHECKING:
    from sharewell import wire
    from sharewell.cli.export import Export
    from sharewell.client import Session

PANEL = "For analysts"

commands = typer.Typer()

Sql = Annotated[str, typer.Argument(help="The SQL; - reads standard input.", metavar="SQL")]
Wait = Annotated[
    float | None,
    option("Wait at most this long for the answer. Default: no limit.", "SECONDS", "--wait", min=0),
]
AsCsv = Annotated[
    bool, flag("Print CSV; a number n has the columns n, n_error, n_low, n_high.", "--csv")
]
Parquet = Annotated[str | None, option("Write a Parquet file with the columns of --csv.", "FILE")]
NoWait = Annotated[bool, flag("Do not wait for a queued question.", "--no-wait")]


@commands.command(rich_help_panel=PANEL)
@with_connection
def ask(
    connection: Connection,
    sql: Sql,
    free: Annotated[bool, flag("Spend nothing: answer from earlier measurements.", "--free")] = False,
    key: Annotated[
        str | None, option("Idempotency key: a question repeated with its key is charged once.", "KEY")
    ] = None,
    wait: Wait = None,
    no_wait: NoWait = False,
    as_csv: AsCsv = False,
    parquet: Parquet = None,
) -> None:
    """Ask a question in SQL, and print the answer with its 95 % interval and cost."""
    text = _read_sql(sql)
    export = _export(connection, as_csv, parquet)
    # With the key of a question that was paid for, nothing more is paid.
    may_pay = not free and key is None
    key = uuid.uuid4().hex if key is None else key
    with connection.open() as session:
        try:
            if may_pay and session.quote(text).gains_little:
                typer.echo(f"{GAINS_LITTLE} To ask without paying, use --free.", err=True)
            ticket = session.submit(text, pay=not free, key=key)
        except KeyboardInterrupt:
            typer.echo(
                "Interrupted. The question may have been submitted; it is charged once if you repeat "
                f"it with --key {key}.",
                err=True,
            )
            raise
        _finish(connection, session, ticket, 0 if no_wait else wait, export)


@commands.command(rich_help_panel=PANEL)
@with_connection
def answer(
    connection: Connection,
    number: Annotated[int, typer.Argument(help="The question's number.")],
    wait: Wait = None,
    no_wait: NoWait = False,
    as_csv: AsCsv = False,
    parquet: Parquet = None,
) -> None:
    """Print the answer to an earlier question."""
    export = _export(connection, as_csv, parquet)
    with connection.open() as session:
        ticket = session.ticket(number)
        _finish(connection, session, ticket, 0 if no_wait else wait, export)


@commands.command(rich_help_panel=PANEL)
@with_connection
def shell(connection: Connection) -> None:
    """Ask questions at a prompt, with completion of columns and values, and a history."""
    if not is_interactive():
        raise RequestError(
            "The shell needs a terminal.", hint="To read SQL from standard input: sharewell ask -"
        )
    from sharewell.cli.shell import Shell, open_history

    with connection.open() as session:
        Shell(session, open_history(Path(typer.get_app_dir("sharewell")) / "history")).run()


@commands.command(rich_help_panel=PANEL)
@with_connection
def quote(connection: Connection, sql: Sql) -> wire.Quote:
    """Print the cost and expected error of a question; quotes are free."""
    text = _read_sql(sql)
    with connection.open() as session:
        return session.quote(text)


@commands.command(rich_help_panel=PANEL)
@with_connection
def budget(connection: Connection) -> wire.BudgetStatus:
    """Print what is left of your share."""
    with connection.open() as session:
        return session.budget()


@commands.command(rich_help_panel=PANEL)
@with_connection
def questions(connection: Connection) -> wire.QuestionPage:
    """List your questions and their answers, oldest first."""
    from sharewell import wire

    with connection.open() as session:
        return wire.QuestionPage(tickets=tuple(session.questions()))


@commands.command(rich_help_panel=PANEL)
@with_connection
def dataset(connection: Connection) -> wire.DatasetInfo:
    """Print the columns, budget and terms of the dataset."""
    with connection.open(any_role=True) as session:
        return session.dataset()


@commands.command(rich_help_panel=PANEL)
@with_connection
def certificate(connection: Connection) -> wire.CertificateReport:
    """Print the fairness certificate: your useful answers here, and with your share alone."""
    with connection.open(any_role=True, certificate=True) as session:
        return session.certificate()


@commands.command(rich_help_panel=PANEL)
@with_connection
def done(connection: Connection) -> str:
    """Announce that you have no more questions for now, so that no turn waits for you."""
    with connection.open() as session:
        session.done()
    return "No turn waits for you now. You can ask again at any time."


def _read_sql(sql: str) -> str:
    try:
        text = sys.stdin.read() if sql == "-" else sql
    except UnicodeDecodeError:
        raise RequestError("Standard input is not UTF-8 text.") from None
    if not text.strip():
        raise RequestError("The SQL is empty.", hint="Write a SELECT statement.")
    return text


def _export(connection: Connection, as_csv: bool, parquet: str | None) -> Export:
    from sharewell.cli.export import Export

    export = Export(csv=as_csv, json=connection.as_json, parquet=parquet)
    export.check()
    return export


def _finish(
    connection: Connection, session: Session, ticket: wire.Ticket, timeout: float | None, export: Export
) -> None:
    """Wait for a question's answer, print it, and set the exit code."""
    from sharewell.cli.render import render_result
    from sharewell.cli.terminal import format_error, print_items, print_json
    from sharewell.errors import StillWaiting

    retrieve = f"To fetch its answer:\n  sharewell answer {ticket.number}{connection.arguments}"
    try:
        ticket = session.wait(ticket, timeout=timeout)
    except StillWaiting:
        ticket = session.ticket(ticket.number)
    except KeyboardInterrupt:
        typer.echo(f"Interrupted. Question {ticket.number} stays in the queue. {retrieve}", err=True)
        raise
    if connection.as_json:
        print_json(ticket)
    elif ticket.answer is not None and not export.write(ticket.answer):
        print_items(*render_result(ticket.answer))
    if ticket.problem is not None:
        typer.echo(format_error(ticket.problem.to_error()), err=True)
        raise typer.Exit(ExitCode.ERROR)
    if ticket.answer is None:
        typer.echo(f"Question {ticket.number} is {ticket.describe()}. {retrieve}", err=True)
        raise typer.Exit(ExitCode.WAITING)
