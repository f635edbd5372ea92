"""Tables and sentences for everything a service returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import typer
from pydantic import BaseModel
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from sharewell import wire
from sharewell.cli.terminal import Items, make_table, print_items, print_json, sanitize, truncate
from sharewell.wire.result import format_field
from sharewell.wire.text import (
    budget_unit,
    format_amount,
    format_group_sizes,
    format_label,
    format_number,
    pluralize,
)

#: What analysts are to know before they ask.
SEEN_BY_CURATORS = "Curators can read every question, with the name of the analyst who asked it."
#: What a command returns: a message of the service, or a confirmation.
Reply = BaseModel | str
#: The width of a budget bar, in characters.
BAR_WIDTH = 20
#: Rows of a result, and labels of a column, that are printed; `--json` prints all.
MAX_ROWS, MAX_LABELS = 200, 8


# Replies


def print_reply(reply: Reply, as_json: bool) -> None:
    """Print what a command returns, as JSON or as text."""
    if as_json:
        print_json({} if isinstance(reply, str) else reply)
    elif isinstance(reply, str):
        typer.echo(sanitize(reply))
    elif isinstance(reply, wire.Token):
        _print_token(reply)
    else:
        print_items(*RENDERERS[type(reply)](reply))


def _print_token(token: wire.Token) -> None:
    """Print a token alone on standard output, for pipes, and an explanation on standard error."""
    typer.echo(
        f"New token for {token.role} {token.name}, shown only once. Any previous token is revoked.\n"
        "Pass it on in private. Commands read it from SHAREWELL_TOKEN.",
        err=True,
    )
    typer.echo(token.token)


def draw_bar(left: Fraction, share: Fraction) -> Text:
    """Draw the rest of a share as a bar, which is empty only when nothing is left.

    >>> draw_bar(Fraction(1, 4), Fraction(1, 2)).plain
    '██████████░░░░░░░░░░'
    """
    full = round(BAR_WIDTH * left / share) if share else 0
    if left > 0:
        full = max(1, full)
    filled, empty = "#-" if Console().options.ascii_only else "█░"
    return Text.assemble((filled * full, "green"), (empty * (BAR_WIDTH - full), "dim"))


def _footnote(text: str) -> Text:
    return Text(sanitize(text), style="dim")


def _format_notes(notes: Sequence[str]) -> list[Text]:
    return [Text(sanitize(note), style="yellow") for note in notes]


# Results and quotes


def render_result(result: wire.Result) -> Items:
    """Render a result with its 95 % intervals, cost and payer."""
    items: Items
    if result.is_scalar:
        items = [Text(str(result), style="bold")]
        summary = result.source.capitalize() if result.value is not None else "No value"
    else:
        items = [result_table(result)]
        if (more := len(result) - MAX_ROWS) > 0:
            items.append(f"… and {pluralize(more, 'more row')}; --json prints all.")
        summary = "; ".join([pluralize(len(result), "row"), "95 % intervals", ", ".join(result.sources)])
    items.append(_footnote(f"{summary}; {format_payment(result)}."))
    return [*items, *_format_notes(result.notes)]


def result_table(result: wire.Result) -> Table:
    """Make the table of a result, with intervals."""
    numbers = [column.name for column in result.columns if column.kind == "number"]
    rows = ([format_field(field) for field in row] for row in result.rows[:MAX_ROWS])
    return make_table(result.column_names, rows, right=numbers)


def format_payment(result: wire.Result) -> str:
    """Format what a result cost the asking analyst, and who paid for it."""
    if result.cost and result.paid_by:
        return f"cost {format_amount(result.cost)}, paid by {result.paid_by}"
    if result.cost:
        return f"cost you {format_amount(result.cost)}, the rest was already paid for"
    if result.paid_by:
        return f"free, already paid for by {result.paid_by}"
    if set(result.sources) <= {"public"}:
        return "free, follows from public information"
    numbers = [each for row in result.rows for each in row if isinstance(each, wire.Number)]
    if all(each.value is None for each in numbers):
        return "free, and not determined by earlier measurements"
    return "free, derived from earlier measurements"


def render_quote(quote: wire.Quote) -> Items:
    """Render cost and margin of error, paid and free, and the budget left."""
    names = quote.number_columns
    paid = _format_offer(quote, quote.paid, "over budget")
    free = _format_offer(quote, quote.free, "nothing free")
    rows = zip(("cost", *(f"± {name}" for name in names)), paid, free, strict=True)
    most = f"At most {pluralize(quote.groups, 'row')}. " if quote.groups > 1 else ""
    left = f"You have {format_amount(quote.means)} left"
    if quote.cost:
        left += f": enough for {pluralize(int(quote.means / quote.cost), 'such question')}"
    return [
        make_table(("", "paid", "--free"), rows, right=("paid", "--free")),
        _footnote(f"{most}± is half the 95 % interval{_format_unknown(quote)}. {left}."),
        *_format_notes(quote.notes),
    ]


def format_quote(quote: wire.Quote) -> str:
    """Format a quote in one line, with the margin of error of a single column of numbers."""

    def margin(offer: wire.Offer) -> str:
        _, *margins = _format_offer(quote, offer, "")
        return f", ± {margins[0]}" if len(margins) == 1 else ""

    if quote.paid is None:
        paid = "over budget"
    else:
        cost = f"cost {format_amount(quote.paid.cost)}" if quote.paid.cost else "free"
        paid = f"{cost}{margin(quote.paid)}"
    if quote.needs_paying:
        return f"needs a paid question: {paid}; nothing free"
    if quote.free is None or quote.cost == 0:
        return paid
    return f"{paid}; free with --free{margin(quote.free)}"


def _format_offer(quote: wire.Quote, offer: wire.Offer | None, missing: str) -> list[str]:
    """Format the cost of an offer and the margin of error of each column."""
    if offer is None:
        return [missing, *("-" for _ in quote.number_columns)]
    sizes = offer.group_sizes or (None,) * len(offer.errors)
    margins = [
        _format_margin(extremes and (quote.critical * extremes[0], quote.critical * extremes[1]), own)
        for extremes, own in zip(offer.errors, sizes, strict=True)
    ]
    return [_format_cost(offer.cost), *margins]


def _format_unknown(quote: wire.Quote) -> str:
    """Say how many numbers have no margin where others of the quote have one."""
    unknown = max(
        (offer.unknown for offer in (quote.paid, quote.free) if offer and any(offer.errors)), default=0
    )
    return f"; that of {pluralize(unknown, 'number')} is not known in advance" if unknown else ""


def _format_cost(cost: Fraction) -> str:
    return format_amount(cost) if cost else "free"


def _format_margin(extremes: tuple[float, float] | None, sizes: tuple[int, int] | None) -> str:
    """Format the half-width of a 95 % interval: its range over rows, and the sizes of their groups."""
    if extremes is None:
        return "unknown"
    most, least = extremes
    high, low = format_number(most, most), format_number(least, most)
    if high == low:
        return f"{high}{format_group_sizes(sizes and sizes[:1])}"
    return f"{low} to {high}{format_group_sizes(sizes and sizes[::-1])}"


def render_questions(questions: wire.QuestionPage) -> Items:
    """Render every question with its answer and cost."""
    if not questions.tickets:
        return ["No questions yet."]
    rows = (
        (
            str(ticket.number),
            truncate(ticket.sql, 200) + ("" if ticket.pay else " (--free)"),
            _format_outcome(ticket),
            _format_cost(ticket.answer.cost) if ticket.answer else "-",
        )
        for ticket in questions.tickets
    )
    table = make_table(("number", "question", "answer", "cost"), rows, right=("number", "cost"))
    return [table, _footnote("`sharewell answer NUMBER` prints an answer again, free of charge.")]


def _format_outcome(ticket: wire.Ticket) -> str:
    if ticket.problem is not None:
        return f"refused: {truncate(ticket.problem.message, 100)}"
    if ticket.answer is None:
        return ticket.describe()
    result = ticket.answer
    return format_field(result.rows[0][0]) if result.is_scalar else pluralize(len(result), "row")


# Budgets


def render_budget(budget: wire.BudgetStatus) -> Items:
    """Render an analyst's share and what is left of it."""
    left, share = budget.left, budget.share
    enough = ""
    if budget.questions_left == 0:
        enough = "Not enough for another paid question; --free questions are still answered. "
    elif budget.questions_left is not None:
        enough = f"Enough for {pluralize(budget.questions_left, 'paid question')}. "
    return [
        Text.assemble(
            (sanitize(budget.analyst), "bold"),
            "  ",
            draw_bar(left, share),
            f"  {format_amount(left)} of {format_amount(share)} {budget_unit(budget.currency)} left",
        ),
        f"{enough}{pluralize(budget.asked, 'question')} asked, {budget.waiting:,} waiting.",
    ]


def render_analysts(analysts: wire.AnalystList) -> Items:
    """Render every analyst's budget, and the unallocated rest."""
    unit = budget_unit(analysts.analysts[0].currency) if analysts.analysts else "budget"
    numbers = ("share", unit, "left", "asked", "waiting")
    rows: list[list[RenderableType]] = []
    for each in analysts.analysts:
        amounts = map(format_amount, (each.part, each.share, each.left))
        counts = f"{each.asked:,}", f"{each.waiting:,}"
        rows.append([each.analyst, *amounts, *counts, draw_bar(each.left, each.share)])
    table = make_table(("analyst", *numbers, f"{unit} left"), rows, right=numbers)
    part, rest = format_amount(analysts.unallocated_part), format_amount(analysts.unallocated)
    unallocated = f"Unallocated: {part} of the budget, {unit} {rest}."
    whole = "The whole budget is allocated."
    return [table, _footnote(unallocated if analysts.unallocated else whole)]


def render_closed_round(closed: wire.ClosedRound) -> Items:
    """Render who gave how much, and what for."""
    names, unit = ", ".join(map(sanitize, closed.analysts)), budget_unit(closed.currency)
    return [
        f"Closed the round: {names} had {unit} {format_amount(closed.spent)} left, "
        f"{format_amount(closed.part)} of the budget. It bought one more measurement of the seed."
    ]


# The dataset and its certificate


def render_dataset(dataset: wire.DatasetInfo) -> Items:
    """Render the columns, and the terms on which they are queried."""
    rows = []
    for each in dataset.attributes:
        rows.append((each.name, each.kind, _format_labels(each.labels)))
        rows += [(f"  {name}", "bins", _format_labels(of)) for name, of in each.bins.items()]
    rows += [(each.name, "measure", each.values) for each in dataset.measures]
    title = f"{dataset.name}: {pluralize(dataset.cells, 'cell')}"
    table = make_table(("column", "type", "values"), rows, title=title)
    unit = budget_unit(dataset.currency)
    delta = f", delta {dataset.delta}" if dataset.currency == "zcdp" else ""
    lines = [
        f"Budget: epsilon {dataset.epsilon}{delta}, shared by all analysts.",
        f"Mechanism: {dataset.mechanism}.",
    ]
    if dataset.query_budget is not None:
        price = f"{unit} {format_amount(dataset.query_budget)}"
        lines[1] += f" A paid count or sum costs {price}; an average takes both."
    lines.append(
        f"An answer is useful if its expected error is at most {format_number(dataset.error_threshold)}."
    )
    if dataset.privacy_unit is not None:
        lines.append(f"Each {dataset.privacy_unit} is counted once, by one of its rows.")
    lines.append(SEEN_BY_CURATORS)
    if dataset.paused:
        lines.append("The dataset is paused: no questions are accepted.")
    return [table, *lines]


def _format_labels(labels: Sequence[object]) -> str:
    texts = [format_label(label) for label in labels]
    if len(texts) <= MAX_LABELS:
        return ", ".join(texts)
    return f"{', '.join(texts[:3])}, …, {texts[-1]} ({len(texts):,} values)"


def render_certificate(certificate: wire.CertificateReport) -> Items:
    """Render the verdict, the visible analysts' standings, and the promises."""
    items: Items = [Text(sanitize(certificate.verdict), style="bold"), ""]
    if certificate.analysts:
        items += [*render_standings(certificate), _footnote(certificate.basis), ""]
    promises = ((each.desideratum, each.status, each.meaning) for each in certificate.promises)
    return [*items, make_table(("promise", "status", "meaning"), promises)]


def render_standings(certificate: wire.CertificateReport) -> Items:
    """Render the useful answers of each visible analyst, here and alone."""
    # Only curators see what each analyst would have without each of the others.
    own = all(each.without is None for each in certificate.analysts)
    compared = "alone" if own else "alone or without one other analyst"
    meanings = {
        "useful": f"expected error at most {format_number(certificate.error_threshold)}, "
        "for a sum after division by its largest weight",
        "alone": "useful answers to the same questions with the analyst's share alone",
        "without one": "the fewest useful answers if one other analyst were absent",
        "less precise": f"answers that would have been more precise {compared}",
    }
    rows = [
        {
            "analyst": each.analyst,
            "answers": f"{each.answers:,}",
            "useful": format_number(each.here),
            "alone": format_number(each.alone),
            "without one": format_number(min((each.without or {}).values(), default=each.here)),
            "less precise": f"{each.worse_answers:,}",
        }
        for each in certificate.analysts
    ]
    headings = [
        name for name in ("analyst", "answers", *meanings) if not (own and name == "without one")
    ]
    table = make_table(headings, ([row[name] for name in headings] for row in rows), right=headings[1:])
    notes = (f"{name}: {meaning}" for name, meaning in meanings.items() if name in headings)
    return [table, *map(_footnote, notes)]


# Ledger events

Content = Mapping[str, Any]


def render_events(events: wire.EventPage) -> Items:
    """Render one row per event, and the ledger's head."""
    rows = (
        (
            str(event.number),
            EVENT_NAMES.get(event.kind, event.kind),
            _format_analysts(event.content),
            truncate(_format_details(event), 200),
        )
        for event in events.events
    )
    table = make_table(("event", "kind", "analyst", "details"), rows, right=("event",))
    more = [] if events.next is None else [f"More events: --after {events.next}"]
    return [table, *more, Text(f"Head: {events.head}", style="dim", overflow="fold")]


def _format_analysts(content: Content) -> str:
    if "bill" in content:
        return ", ".join(content["bill"])
    if "payers" in content:
        return ", ".join(content["payers"])
    return str(content.get("analyst", content.get("payer", "")))


def _format_details(event: wire.LedgerEvent) -> str:
    format_details = EVENT_DETAILS.get(event.kind)
    try:
        return format_details(event.content) if format_details else ""
    except (KeyError, TypeError, ValueError):
        return ""  # a newer version of the event, with other content


def _format_opened(content: Content) -> str:
    delta = Fraction(content["delta"])
    also = f", delta {float(delta):g}" if delta else ""
    if (most := content.get("max_rows_per_person", 1)) > 1:
        also += f", {most} rows per person"
    return f"epsilon {format_amount(Fraction(content['epsilon']))}{also}, {content['neighbours']}"


def _format_charged(content: Content) -> str:
    costs = ", ".join(format_amount(Fraction(each)) for each in content["bill"].values())
    measured = content["purpose"].get("measure", {})
    if "name" in measured:
        return f"{costs} for the seed, {measured['name']}"
    if measured:
        rows = sum(count for _, count in content["purpose"]["scales"])
        return f"{costs} for {pluralize(rows, 'measurement')}"
    return f"{costs} for {', '.join(content['purpose'])}"


#: Kinds whose printed name is not the stored one.
EVENT_NAMES: Mapping[str, str] = {
    "answeredfree": "answered",
    "curatoraction": "curator",
    "roundclosed": "round closed",
    "sourcechanged": "source changed",
}
EVENT_DETAILS: Mapping[str, Callable[[Content], str]] = {
    "opened": _format_opened,
    "granted": lambda content: f"share {format_amount(Fraction(content['share']))}",
    "charged": _format_charged,
    "released": lambda content: (
        f"{pluralize(len(content['values']), 'noisy value')}, charged in event {content['charge']}"
    ),
    "begun": lambda content: f"dataset {content['dataset']}",
    "recovered": lambda content: (
        f"{', '.join(format_amount(Fraction(each)) for each in content['bill'].values())} "
        f"for lost events up to {content['witnessed'].partition(':')[0]}"
    ),
    "curatoraction": lambda content: (
        f"{content['action'].replace('-', ' ')} {content['subject']}".rstrip()
        + (f", by {content['curator']}" if content["curator"] else "")
    ),
    "exceeded": lambda content: f"estimate above its threshold, charged in event {content['charge']}",
    "configured": lambda _: "settings of the configuration file",
    "asked": lambda content: f"{'' if content['pay'] else '--free '}{content['question']['sql']}",
    "answered": lambda content: (
        f"question {content['asked']}, {pluralize(len(content['answers']), 'value')}"
    ),
    "answeredfree": lambda content: (
        f"question {content['asked']}, {pluralize(content['size'], 'value')}"
    ),
    "refused": lambda content: f"question {content['asked']}: {content['message']}",
    "turn": lambda content: f"question {', '.join(map(str, content['asked']))}",
}

RENDERERS: Mapping[type, Callable[[Any], Items]] = {
    wire.Quote: render_quote,
    wire.QuestionPage: render_questions,
    wire.BudgetStatus: render_budget,
    wire.AnalystList: render_analysts,
    wire.ClosedRound: render_closed_round,
    wire.DatasetInfo: render_dataset,
    wire.CertificateReport: render_certificate,
    wire.EventPage: render_events,
}
