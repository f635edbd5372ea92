"""How the ledger is laid out: one line for each event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from rich.text import Text

from sharewell import wire
from sharewell.cli.shown import show, table
from sharewell.cli.words import clean, one_line
from sharewell.client.wording import amount, several

Content = Mapping[str, Any]


def show_events(events: wire.Events) -> None:
    """What happened, who it was about, and where the ledger ends."""
    shown = table("event", "what", "who", "more", right=("event",))
    for event in events.events:
        shown.add_row(
            str(event.number),
            clean(event.kind),
            Text(clean(_who(event.content))),
            Text(one_line(_more(event), 200)),
        )
    show(shown)
    if events.next is not None:
        show(f"There are more: --after {events.next}")
    show(Text(f"Head: {events.head}", style="dim", overflow="fold"))


def _who(content: Content) -> str:
    if "bill" in content:
        return ", ".join(content["bill"])
    return str(content.get("analyst", content.get("payer", "")))


def _more(event: wire.Event) -> str:
    told = MORE.get(event.kind)
    try:
        return told(event.content) if told else ""
    except (KeyError, TypeError, ValueError):
        # An event of a newer service: its kind is known, and its content is not.
        return ""


def _opened(content: Content) -> str:
    delta = Fraction(content["delta"])
    also = f", delta {float(delta):g}" if delta else ""
    return f"epsilon {amount(Fraction(content['epsilon']))}{also}, {content['neighbours']}"


def _charged(content: Content) -> str:
    parts = [amount(Fraction(each)) for each in content["bill"].values()]
    measured = content["purpose"].get("measure", {})
    if "name" in measured:
        return f"{', '.join(parts)} for the seed, {measured['name']}"
    if "queries" in measured:
        return f"{', '.join(parts)} for {several(len(measured['queries']), 'number')}"
    return f"{', '.join(parts)} for {', '.join(content['purpose'])}"


def _asked(content: Content) -> str:
    free = "" if content["pay"] else "--free "
    return f"{free}{content['question']['sql']}"


def _turn(content: Content) -> str:
    return f"question {', '.join(map(str, content['asked']))}"


MORE: Mapping[str, Callable[[Content], str]] = {
    "opened": _opened,
    "granted": lambda content: f"share {amount(Fraction(content['share']))}",
    "charged": _charged,
    "released": lambda content: (
        f"{several(len(content['values']), 'noisy number')}, paid for in {content['charge']}"
    ),
    "exceeded": lambda content: f"a guess was too far off; paid for in {content['charge']}",
    "configured": lambda _: "the settings, as the file has them",
    "asked": _asked,
    "answered": lambda content: (
        f"question {content['asked']}, {several(len(content['answers']), 'number')}"
    ),
    "refused": lambda content: f"question {content['asked']}: {content['message']}",
    "turn": _turn,
}
