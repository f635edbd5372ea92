"""How the terms are laid out: what is public about a dataset, what is promised, and how it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from rich.table import Table
from rich.text import Text

from sharewell import wire
from sharewell.cli.shown import show, table
from sharewell.cli.words import clean
from sharewell.client import told
from sharewell.client.table import Label, in_words
from sharewell.client.wording import amount, number

#: How many labels of a column are shown.
MOST_LABELS = 8


def show_dataset(dataset: wire.Dataset) -> None:
    """The columns, and on which terms they can be asked about."""
    shown = table("column", "kind", "values", title=f"{dataset.name}: {dataset.cells:,} cells")
    for each in dataset.attributes:
        shown.add_row(clean(each.name), each.kind, Text(_few(each.labels)))
        for name, labels in each.bins.items():
            shown.add_row(f"  {clean(name)}", "bins", Text(_few(labels)))
    delta = f", delta {dataset.delta}" if dataset.currency == "zcdp" else ""
    price = ""
    if dataset.query_budget is not None:
        unit = "rho" if dataset.currency == "zcdp" else "epsilon"
        price = f" A paid question costs {unit} {amount(Fraction(dataset.query_budget))}."
    paused = " It is paused." if dataset.paused else ""
    show(shown)
    if dataset.privacy_unit is not None:
        unit = clean(dataset.privacy_unit)
        show(f"People are counted, and not rows: each {unit} once, in the first of the cells it has.")
    show(
        f"Epsilon {dataset.epsilon}{delta} for all analysts together, by {dataset.mechanism}.{price}",
        f"An answer is useful if it is off by at most {number(dataset.error_threshold)}.{paused}",
    )


def _few(labels: Sequence[Label]) -> str:
    texts = [clean(in_words(label)) for label in labels]
    if len(texts) <= MOST_LABELS:
        return ", ".join(texts)
    return f"{', '.join(texts[:3])}, …, {texts[-1]} ({len(texts):,} values)"


def show_certificate(certificate: told.Certificate) -> None:
    """The verdict, everybody's standing that one may see, and what is promised."""
    verdict, *_ = str(certificate).splitlines()
    show(Text(clean(verdict), style="bold"))
    if certificate.analysts:
        show(_standings(certificate))
        near = number(certificate.error_threshold)
        other = ", and without the other they need most" if _everybody(certificate) else ""
        show(
            Text(
                f"Useful: expected within {near} of the truth; here, alone{other}. "
                "Less precise: answers that would have been better alone, or without somebody.",
                style="dim",
            )
        )
    promises = table("promise", "status", "what it means")
    for each in certificate.promises:
        promises.add_row(each.desideratum, each.status, Text(clean(each.meaning)))
    show(promises)


def _standings(certificate: told.Certificate) -> Table:
    everybody = _everybody(certificate)
    numbers = ["answers", "useful", "alone"]
    if everybody:
        numbers.append("without another")
    numbers.append("less precise")
    shown = table("analyst", *numbers, right=tuple(numbers))
    for each in certificate.analysts:
        fields = [f"{each.answers:,}", number(each.here), number(each.alone)]
        if everybody:
            fields.append(number(min((each.without or {}).values(), default=each.here)))
        shown.add_row(clean(each.analyst), *fields, f"{each.worse_answers:,}")
    return shown


def _everybody(certificate: told.Certificate) -> bool:
    """Whether it is a curator's, which has everybody in it."""
    return any(each.without is not None for each in certificate.analysts)
