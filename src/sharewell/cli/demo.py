"""The demonstration: a server on the bundled table, and a script of six questions."""

from __future__ import annotations

import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.syntax import Syntax

from sharewell import datasets, wire
from sharewell.cli.render import (
    format_payment,
    format_quote,
    render_analysts,
    render_standings,
    result_table,
)
from sharewell.cli.terminal import format_hint
from sharewell.client import CuratorSession, Session, begin, connect, connect_curator
from sharewell.config import read_config
from sharewell.errors import Closed, ConfigError, SharewellError
from sharewell.service.http.app import create_app
from sharewell.service.http.server import bind, make_server
from sharewell.service.registry import DatasetRegistry
from sharewell.service.tokens import Role, TokenStore, id_of

HOST = "127.0.0.1"
#: The curator of the bundled configuration.
CURATOR = "dana"
#: The names that sign in to the page with a link.
SIGN_IN_LINKS = ("ann", "ben", CURATOR)


@dataclass(frozen=True)
class Step:
    """One question of the script, and the comment printed above it."""

    analyst: str
    comment: str
    sql: str


SCRIPT = (
    Step(
        "ann",
        "plans student housing. No analyst has asked this before, so she pays.",
        "SELECT COUNT(*) AS movers FROM people\nWHERE moved AND age BETWEEN 18 AND 24",
    ),
    Step(
        "ben",
        "asks the same question in other words. It is already paid for.",
        "SELECT COUNT(*) AS movers FROM people\nWHERE NOT (age < 18 OR age >= 25) AND moved = TRUE",
    ),
    Step(
        "cleo",
        "compares schooling. The groups are disjoint, so all cost as much as one.",
        "SELECT schooling, COUNT(*) AS people FROM people\n"
        "WHERE age_group = '25-34' GROUP BY schooling ORDER BY people DESC",
    ),
    Step(
        "ben",
        "asks for an average, which takes a sum and a count.",
        "SELECT AVG(age) AS mean_age, COUNT(*) AS widowed FROM people\nWHERE marital = 'widowed'",
    ),
    Step(
        "ann",
        "misspells a value. The error is free and says what to write.",
        "SELECT COUNT(*) FROM people WHERE marital = 'widow'",
    ),
    Step("cleo", "tries to read individual rows.", "SELECT * FROM people"),
)

TRY_IT = (
    "sharewell quote \"SELECT COUNT(*) FROM people WHERE sex = 'female' AND age < 30\"",
    'sharewell ask "SELECT sex, COUNT(*) FROM people GROUP BY sex"',
    "sharewell budget",
    "sharewell certificate",
)


def show_demo(script: bool, port: int | None, pause: float) -> None:
    """Serve the table, run the script if asked to, and serve on until interrupted."""
    console = Console()
    with ExitStack() as stack:
        # Leave the context managers, and thus remove the folder, also on SIGTERM.
        previous = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        stack.callback(signal.signal, signal.SIGTERM, previous)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sharewell-demo-")))
        with console.status("Reading 278,000 rows and measuring the seed"):
            server = stack.enter_context(run_demo_server(folder, port))
        _print_introduction(console, server)
        if script:
            run_script(console, server, SCRIPT, pause)
        # After a script, keep serving only at a terminal, where Ctrl-C ends it.
        if not script or sys.stdin.isatty():
            _print_commands(console, server)
            with suppress(KeyboardInterrupt):
                threading.Event().wait()


# The server, in a thread of this process


@dataclass(frozen=True)
class DemoServer:
    """The address of a running server, a token for each name, and sign-in links that work once."""

    url: str
    tokens: dict[str, str]
    links: dict[str, str]


@contextmanager
def run_demo_server(folder: Path, port: int | None) -> Iterator[DemoServer]:
    """Serve the dataset from a folder; without a `port`, on 8080 or else any free port."""
    config = _copy_dataset(folder)
    begin(config)
    tokens = _issue_tokens(config)
    listening = _bind(port)
    url = f"http://{HOST}:{listening.getsockname()[1]}"
    links: dict[str, str] = {}
    opened = threading.Event()

    def on_open(registry: DatasetRegistry) -> None:
        (dataset,) = registry.datasets.values()
        for name in SIGN_IN_LINKS:
            links[name] = f"{url}/#code={dataset.sessions.issue_code(id_of(tokens[name]))}"
        opened.set()

    app = create_app(
        lambda: DatasetRegistry.open([config]), allowed_hosts={"localhost", HOST}, on_open=on_open
    )
    server = make_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="demo")
    thread.start()
    try:
        while not opened.wait(0.05):
            if not thread.is_alive():
                raise app.state.sharewell.failure or Closed("The demonstration server has stopped.")
        yield DemoServer(url, tokens, links)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def _copy_dataset(folder: Path) -> Path:
    """Copy the bundled table and its configuration into a folder."""
    people = datasets.massachusetts()
    shutil.copy(people.path, folder)
    return Path(shutil.copy(people.config_path, folder / "sharewell.toml"))


def _issue_tokens(path: Path) -> dict[str, str]:
    """Issue a token to every analyst and curator."""
    config = read_config(path)
    store = TokenStore(config.service.access)
    roles: dict[str, Role] = dict.fromkeys(config.shares, "analyst")
    roles |= dict.fromkeys(config.service.curators, "curator")
    return {name: store.issue(name, role) for name, role in roles.items()}


def _bind(port: int | None) -> socket.socket:
    """Bind the given port, or else 8080 if it is free, or any free port."""
    if port is not None:
        return bind(HOST, port)
    try:
        return bind(HOST, 8080)
    except ConfigError:
        return bind(HOST, 0)


# The script


def _print_introduction(console: Console, server: DemoServer) -> None:
    console.print(
        Panel.fit(
            "[bold]Sharewell[/]: 278,000 people of Massachusetts, 120,400 cells.\n"
            "Three analysts share a budget of epsilon = 1. Half of each share pays for\n"
            "a seed measurement that all use; the rest pays for questions, once each.\n"
            "The ledger is temporary: every demonstration begins with a new budget.",
            border_style="cyan",
        )
    )
    console.print(f"Page: [bold]{server.url}/[/]. These links sign you in, once each:\n")
    for name, link in server.links.items():
        console.print(f"  {name:5} {link}", highlight=False, soft_wrap=True)
    console.print(f"\nTokens, for the page, the command line and the API ({server.url}/docs):\n")
    for name, token in server.tokens.items():
        role = "curator" if name == CURATOR else "analyst"
        console.print(f"  {name:5} {role}  {token}", highlight=False, soft_wrap=True)


def _print_commands(console: Console, server: DemoServer) -> None:
    console.print("\nTry it in another terminal:\n", highlight=False)
    export = f"export SHAREWELL_URL={server.url} SHAREWELL_TOKEN={server.tokens['ann']}"
    for line in (export, *TRY_IT):
        console.print(f"  {line}", highlight=False, soft_wrap=True)
    console.print("\n[dim]Press Ctrl-C to stop the server and delete its files.[/]")


def run_script(console: Console, server: DemoServer, steps: tuple[Step, ...], pause: float) -> None:
    """Ask the questions over HTTP, then print budgets and the certificate."""
    for step in steps:
        with connect(server.url, server.tokens[step.analyst]) as session:
            _run_step(console, step, session)
        time.sleep(pause)
    with connect_curator(server.url, server.tokens[CURATOR]) as session:
        budgets, *budget_notes = render_analysts(session.analysts())
        certificate = _wait_for_certificate(session)
    standings, *notes = render_standings(certificate)
    title = "\n[bold]Budgets[/] after the seed and these questions\n"
    console.print(title, budgets, "", *budget_notes, sep="\n")
    title = f"\n[bold]Fairness certificate[/]: {certificate.verdict}\n"
    console.print(title, standings, "", *notes, sep="\n", highlight=False)


def _run_step(console: Console, step: Step, session: Session) -> None:
    console.print(f"\n[bold]{step.analyst}[/] {step.comment}")
    console.print(Syntax(step.sql, "sql", background_color="default"))
    try:
        console.print(f"[dim]Quote: {format_quote(session.quote(step.sql))}.[/]", highlight=False)
        result = session.ask(step.sql)
    except SharewellError as error:
        where = f" [dim]({escape(str(error.where))})[/]" if error.where else ""
        console.print(f"[red]✗[/] {escape(error.message)}{where}", highlight=False)
        console.print(f"[yellow]{escape(format_hint(error))}[/]", highlight=False)
        return
    if result.is_scalar:
        console.print(f"[bold]{result}[/]", highlight=False)
    else:
        console.print(result_table(result))
    sources = ", ".join(result.sources).capitalize()
    console.print(f"[green]✓[/] {sources}; {format_payment(result)}.", highlight=False)


def _wait_for_certificate(session: CuratorSession) -> wire.CertificateReport:
    """Fetch the certificate once it covers all questions."""
    asked = sum(analyst.asked for analyst in session.analysts())
    for _ in range(600):
        certificate = session.certificate()
        if certificate.entries >= asked:
            break
        time.sleep(0.1)
    return certificate
