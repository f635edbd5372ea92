"""How budgets are laid out: one's own, and everybody's."""

from __future__ import annotations

from fractions import Fraction

from rich.text import Text

from sharewell import wire
from sharewell.cli.shown import bar, show, table
from sharewell.cli.words import clean
from sharewell.client.wording import amount, currency, several


def show_budget(budget: wire.Budget) -> None:
    """What is left, as a bar and in words."""
    left, share = Fraction(budget.left), Fraction(budget.share)
    show(
        Text.assemble(
            (clean(budget.analyst), "bold"),
            "  ",
            bar(left, share),
            f"  {amount(left)} of {amount(share)} {currency(budget.currency)} left",
        ),
        Text(f"{_enough(budget)}{several(budget.asked, 'question')} asked, {budget.waiting:,} waiting."),
    )


def _enough(budget: wire.Budget) -> str:
    if budget.questions_left is None:
        return ""
    if budget.questions_left == 0:
        return "Not enough for another paid question; what was bought before stays free. "
    return f"Enough for {several(budget.questions_left, 'paid question')}. "


def show_analysts(analysts: wire.Analysts) -> None:
    """Everybody who may ask, and what nobody holds yet."""
    unit = currency(analysts.analysts[0].currency) if analysts.analysts else "budget"
    numbers = ("share", unit, "left", "asked", "waiting")
    shown = table("analyst", *numbers, f"{unit} left", right=numbers)
    for each in analysts.analysts:
        left, share = Fraction(each.left), Fraction(each.share)
        shown.add_row(
            clean(each.analyst),
            amount(Fraction(each.part)),
            amount(share),
            amount(left),
            f"{each.asked:,}",
            f"{each.waiting:,}",
            bar(left, share),
        )
    part, nobodys = (amount(Fraction(x)) for x in (analysts.unallocated_part, analysts.unallocated))
    yet = f"{part} of the budget, {unit} {nobodys}, is nobody's yet."
    show(shown, Text(yet if Fraction(analysts.unallocated) else "All of it is given out.", style="dim"))
