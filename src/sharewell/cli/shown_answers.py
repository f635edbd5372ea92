"""How answers, quotes and lists of questions are laid out."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from rich.text import Text

from sharewell import wire
from sharewell.cli.shown import show, table
from sharewell.cli.words import clean, one_line
from sharewell.client import Answer, AnswerTable
from sharewell.client.progress import in_words as state_of
from sharewell.client.table import in_words, read_answer
from sharewell.client.wording import amount, number, several

#: How many standard errors 95 % reach to both sides: what the service takes for Laplace noise. Gaussian
#: noise needs 1.96, so that a quote may say a little too much and never too little.
REACH = 2.06

#: How many rows are shown; `--json` prints them all.
MOST_ROWS = 200


def show_answer(answer: wire.Answer, sql: str) -> None:
    """An answer with its 95 % intervals, what it cost and who paid."""
    found = read_answer(answer, sql)
    if isinstance(found, Answer):
        show(Text(str(found), style="bold"))
    else:
        _show_table(found)
    show(Text(f"{_sources(found)}. {_paid(answer, found)}", style="dim"))
    _show_notes(answer.notes)


def _show_notes(notes: Sequence[str]) -> None:
    for note in notes:
        show(Text(clean(note), style="yellow"))


def _show_table(found: AnswerTable) -> None:
    numbers = tuple(name for name, group in zip(found.columns, found.grouped, strict=True) if not group)
    shown = table(*found.columns, right=numbers)
    for row in found.rows[:MOST_ROWS]:
        shown.add_row(*(Text(clean(in_words(field))) for field in row))
    show(shown)
    if (more := len(found) - MOST_ROWS) > 0:
        show(f"… and {several(more, 'more row')}; --json prints all.")


def _sources(found: Answer | AnswerTable) -> str:
    if isinstance(found, Answer):
        return found.source.capitalize()
    sources = ", ".join(found.sources) or "no number"
    return f"{several(len(found), 'row')}; 95 % intervals; {sources}"


def _all_sources(found: Answer | AnswerTable) -> set[str]:
    return {found.source} if isinstance(found, Answer) else set(found.sources)


def _paid(answer: wire.Answer, found: Answer | AnswerTable) -> str:
    sources = _all_sources(found)
    cost = Fraction(answer.cost)
    if cost and answer.paid_by:
        return f"It cost {amount(cost)}, which {clean(answer.paid_by)} paid."
    if cost:
        return f"It cost you {amount(cost)}; the rest had been paid for."
    if answer.paid_by:
        return f"It cost nothing: {clean(answer.paid_by)} had paid for it."
    if sources <= {"public"}:
        return "It cost nothing: anybody could know it."
    return "It cost nothing: it is made from what was bought before."


def show_quote(quote: wire.Quote) -> None:
    """Both ways to have an answer, and what is left to pay with."""
    names = [column.name for column in quote.columns if column.kind == "number"]
    paid = _offered(quote.paid, "too little is left", names)
    free = _offered(quote.free, "nothing is known yet", names)
    shown = table("", "paid", "--free", right=("paid", "--free"))
    for what, *fields in zip(("cost", *(f"± of {name}" for name in names)), paid, free, strict=True):
        shown.add_row(Text(clean(what)), *fields)
    show(shown)
    rows = f"{several(quote.groups, 'row')} at most; " if quote.groups > 1 else ""
    show(
        Text(
            f"{rows}± holds in 95 of 100 cases. You have {amount(Fraction(quote.means))} left. "
            "Nothing was spent.",
            style="dim",
        )
    )
    _show_notes(quote.notes)


def _offered(offer: wire.Offer | None, otherwise: str, names: Sequence[str]) -> list[str]:
    """What an offer costs, and how far off each number may be."""
    if offer is None:
        return [otherwise, *("-" for _ in names)]
    averages = offer.averages or (None,) * len(offer.errors)
    return [_cost(offer.cost), *map(_error, offer.errors, averages)]


def _cost(text: str) -> str:
    cost = Fraction(text)
    return amount(cost) if cost else "nothing"


def _error(extremes: tuple[float, float] | None, parts: tuple[float, float] | None) -> str:
    if extremes is None and parts is not None:
        total, count = (number(REACH * error, REACH * error) for error in parts)
        return f"sum {total}, count {count}"
    if extremes is None:
        return "not known"
    most, least = (REACH * error for error in extremes)
    high, low = number(most, most), number(least, most)
    return high if high == low else f"{low} to {high}"


def show_questions(questions: wire.Questions) -> None:
    """Every question, what became of it, and what it cost."""
    if not questions.tickets:
        show("You have asked nothing yet.")
        return
    shown = table("number", "question", "answer", "cost", right=("number", "cost"))
    for ticket in questions.tickets:
        free = "" if ticket.pay else " (--free)"
        shown.add_row(
            str(ticket.number),
            Text(one_line(ticket.sql, 200) + free),
            Text(_became(ticket)),
            _cost(ticket.answer.cost) if ticket.answer else "-",
        )
    show(shown)
    show(Text("`sharewell answer NUMBER` shows one in full, for nothing.", style="dim"))


def _became(ticket: wire.Ticket) -> str:
    if ticket.problem is not None:
        return f"refused: {one_line(ticket.problem.message, 100)}"
    if ticket.answer is None:
        return state_of(ticket)
    found = read_answer(ticket.answer, ticket.sql)
    return in_words(found) if isinstance(found, Answer) else several(len(found), "row")
