"""The demonstration: three analysts share one budget on the bundled table, in a terminal."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table

from sharewell import Budget, Curator, SharewellError, compile_sql, datasets
from sharewell.mechanism import seed
from sharewell.mechanism.base import Answer, Offer
from sharewell.mechanism.cache_reconstruct import CacheReconstruct
from sharewell.query.statement import Grouped, Statement

SHARE = "1/3"
QUERY_BUDGET = "1/60"

STORY = (
    (
        "ann",
        "Ann plans student housing. Nobody has asked this yet, so she pays for it.",
        "SELECT COUNT(*) AS movers FROM people\nWHERE moved AND age BETWEEN 18 AND 24",
    ),
    (
        "ben",
        "Ben wants the same, in other words. Equal questions are one query: Ann has paid already.",
        "SELECT COUNT(*) AS movers FROM people\nWHERE NOT (age < 18 OR age >= 25) AND moved = TRUE",
    ),
    (
        "cleo",
        "Cleo compares schooling. The groups share nobody, so all of them cost one query together.",
        "SELECT schooling, COUNT(*) AS people FROM people\n"
        "WHERE age_group = '25-34' GROUP BY schooling ORDER BY people DESC",
    ),
    (
        "ben",
        "Ben asks for an average: a sum and a count, divided afterwards.",
        "SELECT AVG(age) AS mean_age, COUNT(*) AS widowed FROM people\nWHERE marital = 'widowed'",
    ),
    (
        "ann",
        "Ann misspells a value. She is told so, and nothing is spent.",
        "SELECT COUNT(*) FROM people WHERE marital = 'widow'",
    ),
    (
        "cleo",
        "Cleo tries to look at single people.",
        "SELECT * FROM people",
    ),
)


@dataclass(frozen=True)
class Stage:
    """What the demonstration plays on."""

    console: Console
    mechanism: CacheReconstruct

    def ask(self, analyst: str, told: str, text: str) -> None:
        """One question: what was asked, what it would cost, and what came back."""
        self.console.print(f"\n[bold]{analyst}[/] · {told}")
        self.console.print(Syntax(text, "sql", background_color="default", line_numbers=False))
        before = self.mechanism.curator.spent(analyst)
        try:
            statement = compile_sql(text, self.mechanism.domain)
        except SharewellError as refused:
            where = f" [dim]({escape(str(refused.where))})[/]" if refused.where else ""
            self.console.print(
                f"[red]✗[/] {escape(refused.message)}{where}\n  [yellow]{escape(refused.hint)}"
            )
            return
        self._preview(statement, analyst)
        answers = [self.mechanism.answer(block, analyst) for block in statement.blocks]
        self.console.print(_result(statement, answers))
        spent = self.mechanism.curator.spent(analyst) - before
        self.console.print(f"[green]✓[/] {_paid(answers, analyst, float(spent))}")

    def _preview(self, statement: Statement, analyst: str) -> None:
        offers = [self.mechanism.preview(block, analyst) for block in statement.blocks]
        paid = [offer.paid for offer in offers if offer.paid]
        free = [offer.free for offer in offers if offer.free]
        cost = sum(float(offer.cost) for offer in paid)
        offered = f"± {self._errors(paid)} for epsilon {cost:.4g}, or " if cost else ""
        self.console.print(f"  [dim]before spending: {offered}± {self._errors(free)} for nothing")

    def _errors(self, offers: list[Offer]) -> str:
        """How far off the parts of an answer may be, at 95 %."""
        reach = [self.mechanism.critical * (offer.standard_error or 0) for offer in offers]
        return " and ".join(f"{half:,.0f}" for half in reach)

    def shares(self) -> None:
        """What everybody has left."""
        table = Table("analyst", "share", "spent", "left", title="The budget, after all that")
        curator = self.mechanism.curator
        table.caption = "Half of every share bought the seed, before the first question."
        for analyst in curator.payers:
            amounts = (curator.share(analyst), curator.spent(analyst), curator.left(analyst))
            table.add_row(analyst, *(f"{float(exact):.4f}" for exact in amounts))
        self.console.print()
        self.console.print(table)


def play(pause: float = 0.0) -> None:
    """Play the whole story."""
    console = Console()
    people = datasets.massachusetts()
    console.print(
        Panel.fit(
            f"[bold]Sharewell[/]: {people.population:,} people of Massachusetts, "
            f"{people.domain.size:,} public cells.\n"
            "Three analysts share a budget of epsilon = 1. Half of every share buys\n"
            "a seed for all; the rest pays for questions, once each, whoever asks.",
            border_style="cyan",
        )
    )
    attributes = ", ".join(f"{a.name} ({a.size})" for a in people.domain.attributes)
    console.print(
        f"[dim]The domain: {attributes}.\n"
        "± is half the width of a 95 % interval. Noise can take a small count below zero.[/]"
    )
    curator = Curator(people.vector(), Budget.pure("1"), dict.fromkeys(("ann", "ben", "cleo"), SHARE))
    with console.status("Measuring the seed: exact noise for every cell..."):
        mechanism = CacheReconstruct(
            curator, seed=seed.identity(people.domain), seed_fraction="1/2", query_budget=QUERY_BUDGET
        )
    stage = Stage(console, mechanism)
    for analyst, told, text in STORY:
        stage.ask(analyst, told, text)
        time.sleep(pause)
    stage.shares()


def _result(statement: Statement, answers: list[tuple[Answer, ...]]) -> Table:
    """The result as SQL would show it, with half the width of its 95 % interval behind every number."""
    found = [answer for block in answers for answer in block]
    values = [answer.value for answer in found]
    table = Table()
    for output in statement.outputs:
        table.add_column(output.name, justify="left" if isinstance(output.source, Grouped) else "right")
    for row, cells in zip(statement.arrange(values), statement.rows(values), strict=True):
        shown = []
        for output, cell in zip(statement.outputs, cells, strict=True):
            parts = [found[at] for at in statement.positions(output, row)]
            shown.append(_cell(cell, parts))
        table.add_row(*shown)
    return table


def _cell(value: object, parts: list[Answer]) -> str:
    """A label, a number with its error, or a quotient with a bound on its error."""
    if not parts or not isinstance(value, float):
        return str(value)
    reach = _reach(parts[0])
    if len(parts) == 2:
        reach = (reach + abs(value) * _reach(parts[1])) / parts[1].value
        return f"{value:,.1f} [dim]± {reach:,.1f}[/]"
    return f"{value:,.0f} [dim]± {reach:,.0f}[/]"


def _reach(answer: Answer) -> float:
    return 0.0 if answer.interval is None else (answer.interval[1] - answer.interval[0]) / 2


def _paid(answers: list[tuple[Answer, ...]], analyst: str, spent: float) -> str:
    first = answers[0][0]
    if spent:
        return f"{analyst} paid epsilon {spent:.4g}"
    return f"free: {first.source}" + (f", {first.payer} has paid for it" if first.payer else "")
