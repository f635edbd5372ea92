"""The story: three analysts ask, one of them for what another has paid for, and the certificate."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table

from sharewell.client import Answer, AnswerTable, Certificate, Session, connect
from sharewell.demo.stage import Stage
from sharewell.errors import SharewellError

SCENES = (
    (
        "ann",
        "Ann plans student housing. Nobody has asked this yet, so she pays for it.",
        "SELECT COUNT(*) AS movers FROM people\nWHERE moved AND age BETWEEN 18 AND 24",
    ),
    (
        "ben",
        "Ben wants the same, in other words. It is one question, and it is paid for.",
        "SELECT COUNT(*) AS movers FROM people\nWHERE NOT (age < 18 OR age >= 25) AND moved = TRUE",
    ),
    (
        "cleo",
        "Cleo compares schooling. Nobody is in two groups, so they cost one price together.",
        "SELECT schooling, COUNT(*) AS people FROM people\n"
        "WHERE age_group = '25-34' GROUP BY schooling ORDER BY people DESC",
    ),
    (
        "ben",
        "Ben asks for an average, which takes a sum and a count.",
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
class Story:
    """Everybody's session, and where the story is told."""

    console: Console
    sessions: dict[str, Session]
    pause: float
    scenes: tuple[tuple[str, str, str], ...] = SCENES

    def play(self) -> None:
        """All scenes, then what everybody has left, and how they fared."""
        for analyst, told, sql in self.scenes:
            self._scene(analyst, told, sql)
            time.sleep(self.pause)
        self.console.print("\n[bold]What everybody has left[/]")
        self.console.print(self._budgets())
        self.console.print("[dim]Half of every share bought the seed, before the first question.[/]")
        self.console.print("\n[bold]The fairness certificate[/]")
        self.console.print(_certificate(self._certificate()))
        self.console.print("[dim]From public things alone, and proven for this mechanism.[/]")

    def _scene(self, analyst: str, told: str, sql: str) -> None:
        session = self.sessions[analyst]
        self.console.print(f"\n[bold]{analyst}[/] · {told}")
        self.console.print(Syntax(sql, "sql", background_color="default"))
        try:
            quote = session.quote(sql)
            self.console.print(f"[dim]{escape(_indented(repr(quote)))}[/]", highlight=False)
            answer = session.ask(sql)
        except SharewellError as refused:
            where = f" [dim]({escape(str(refused.where))})[/]" if refused.where else ""
            self.console.print(f"[red]✗[/] {escape(refused.message)}{where}", highlight=False)
            self.console.print(f"  [yellow]{escape(refused.hint)}[/]", highlight=False)
            return
        self._show(answer, analyst)

    def _show(self, answer: Answer | AnswerTable, analyst: str) -> None:
        if isinstance(answer, Answer):
            self.console.print(f"  [bold]{answer}[/], {answer.source}", highlight=False)
        else:
            self.console.print(answer)
        self.console.print(f"[green]✓[/] {_paid(answer, analyst)}", highlight=False)

    def _budgets(self) -> Table:
        table = Table("analyst", "share", "spent", "left", "about", box=box.SIMPLE_HEAD)
        for session in self.sessions.values():
            budget = session.budget
            amounts = (budget.share, budget.spent, budget.left)
            more = f"{budget.questions_left} more questions"
            table.add_row(budget.analyst, *(f"{float(exact):.4f}" for exact in amounts), more)
        return table

    def _certificate(self) -> list[Certificate]:
        """Everybody's certificate, once it has caught up with the story."""
        asked = sum(session.budget.asked for session in self.sessions.values())
        for _ in range(600):
            found = [session.certificate() for session in self.sessions.values()]
            if min(each.entries for each in found) >= asked:
                break
            time.sleep(0.1)
        return found


def play(stage: Stage, console: Console, pause: float) -> None:
    """Play the story on a stage, over HTTP, as anybody would."""
    analysts = {name: token for name, token in stage.tokens.items() if name != "dana"}
    sessions = {name: connect(stage.url, token) for name, token in analysts.items()}
    try:
        Story(console, sessions, pause).play()
    finally:
        for session in sessions.values():
            session.close()


def _certificate(of: list[Certificate]) -> Table:
    """What each would have had alone, with the same questions and the same share."""
    near = f"{of[0].error_threshold:,.0f}"
    table = Table("analyst", "answers", f"within {near} here", "alone", "worse off", box=box.SIMPLE_HEAD)
    for certificate in of:
        for standing in certificate.analysts:
            table.add_row(
                standing.analyst,
                f"{standing.answers}",
                f"{standing.here:g}",
                f"{standing.alone:g}",
                "no" if certificate.holds else "yes" if certificate.holds is False else "not known",
            )
    return table


def _paid(answer: Answer | AnswerTable, analyst: str) -> str:
    if answer.cost:
        return f"{analyst} paid epsilon {_short(answer.cost)}"
    if answer.paid_by:
        return f"free for {analyst}: {answer.paid_by} has paid for it"
    return f"free for {analyst}: computed from what was bought before"


def _short(amount: Fraction) -> str:
    return f"{float(amount):.4g}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
