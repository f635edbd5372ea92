"""What analysts type."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from sharewell.cli.link import Link, linked
from sharewell.cli.root import REFUSED, WAITING
from sharewell.cli.words import refusal
from sharewell.errors import RequestError

if TYPE_CHECKING:
    from sharewell import wire

PANEL = "For analysts"

commands = typer.Typer()

Sql = Annotated[str, typer.Argument(help="The SQL; - reads it from stdin.", metavar="SQL")]
Wait = Annotated[
    float | None,
    typer.Option(
        "--wait",
        help="How many seconds to wait; until it is answered if left out.",
        min=0,
        metavar="SECONDS",
    ),
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Do not wait where it is not its turn yet.")]


@commands.command(rich_help_panel=PANEL)
@linked
def ask(
    link: Link,
    sql: Sql,
    free: Annotated[bool, typer.Option("--free", help="Pay nothing: use what is known.")] = False,
    key: Annotated[
        str | None,
        typer.Option(help="A name for it; asked again under it, it is paid for once.", metavar="KEY"),
    ] = None,
    wait: Wait = None,
    no_wait: NoWait = False,
) -> None:
    """Ask a question in SQL; the answer says how far off it may be, and who paid."""
    with link.open() as line:
        ticket = line.run(line.core.submit(_read(sql), not free, key))
        _outcome(link, line.wait_for(ticket, 0 if no_wait else wait))


@commands.command(rich_help_panel=PANEL)
@linked
def answer(
    link: Link,
    number: Annotated[int, typer.Argument(help="The question's number.")],
    wait: Wait = None,
    no_wait: NoWait = False,
) -> None:
    """Fetch the answer of a question that was asked before, by its number."""
    with link.open() as line:
        ticket = line.run(line.core.look(number))
        _outcome(link, line.wait_for(ticket, 0 if no_wait else wait))


@commands.command(rich_help_panel=PANEL)
@linked
def quote(link: Link, sql: Sql) -> None:
    """Say what a question would cost, and how far off the answer may be."""
    from sharewell.cli.line import tell
    from sharewell.cli.shown_answers import show_quote

    with link.open() as line:
        tell(line.quote(_read(sql)), link.as_json, show_quote)


@commands.command(rich_help_panel=PANEL)
@linked
def budget(link: Link) -> None:
    """Show what is left of your share."""
    from sharewell.cli.line import tell
    from sharewell.cli.shown_budgets import show_budget
    from sharewell.client import call

    with link.open() as line:
        tell(line.say(call.budget()), link.as_json, show_budget)


@commands.command(rich_help_panel=PANEL)
@linked
def questions(link: Link) -> None:
    """List your questions and their answers, oldest first."""
    from sharewell import wire
    from sharewell.cli.line import tell
    from sharewell.cli.shown_answers import show_questions

    with link.open() as line:
        found = line.run(line.core.questions(-1, None))
        tell(wire.Questions(tickets=tuple(found)), link.as_json, show_questions)


@commands.command(rich_help_panel=PANEL)
@linked
def dataset(link: Link) -> None:
    """Show what can be asked about, and on which terms."""
    from sharewell.cli.line import tell
    from sharewell.cli.shown_terms import show_dataset
    from sharewell.client import call

    with link.open(curator=True) as line:
        tell(line.say(call.dataset()), link.as_json, show_dataset)


@commands.command(rich_help_panel=PANEL)
@linked
def certificate(link: Link) -> None:
    """Show how you fare here, and how you would have fared alone."""
    from sharewell.cli.line import tell
    from sharewell.cli.shown_terms import show_certificate

    with link.open(curator=True, certificate=True) as line:
        tell(line.certificate(link.analyst), link.as_json, show_certificate)


@commands.command(rich_help_panel=PANEL)
@linked
def done(link: Link) -> None:
    """Say that you have no more questions for now; nobody waits for you."""
    from sharewell.cli.line import tell
    from sharewell.client import call

    with link.open() as line:
        tell(
            line.say(call.done()),
            link.as_json,
            lambda _: typer.echo("Nobody waits for you now. Ask again whenever you like."),
        )


def _read(sql: str) -> str:
    try:
        text = sys.stdin.read() if sql == "-" else sql
    except UnicodeDecodeError:
        raise RequestError("What came in is no text.", hint="Send the SQL as UTF-8.") from None
    if not text.strip():
        raise RequestError("There is no SQL.", hint="Write a SELECT.")
    return text


def _outcome(link: Link, ticket: wire.Ticket) -> None:
    """Show what has become of a question, and end with the exit code that says so."""
    from sharewell.cli.line import print_json
    from sharewell.cli.shown_answers import show_answer
    from sharewell.client.problems import as_error

    if link.as_json:
        print_json(ticket)
    elif ticket.answer is not None:
        show_answer(ticket.answer, ticket.sql)
    if ticket.problem is not None:
        typer.echo(refusal(as_error(ticket.problem)), err=True)
        raise typer.Exit(REFUSED)
    if ticket.answer is None:
        from sharewell.client.wording import several

        before = f" after {several(ticket.position, 'question')} of yours" if ticket.position else ""
        typer.echo(
            f"Question {ticket.number} waits for its turn{before}. To fetch its answer:\n"
            f"  sharewell answer {ticket.number}{link.words}",
            err=True,
        )
        raise typer.Exit(WAITING)
