"""The tables of `sharewell check`: what every setting of a file will do, for people."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sharewell.config.checked import Checked
from sharewell.config.config import Config
from sharewell.config.forecast import ASSUMED, Expected, listed, some_assumed, without_questions
from sharewell.query.attribute import Attribute, Label

COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}
#: The least that a table of the service leaves for what is not a value: names, words and blanks.
BESIDE_VALUES = 49


def print_tables(checked: Checked, console: Console) -> None:
    """Print all of it, then the findings, then the verdict."""
    config = checked.config
    for table in (
        _domain(config),
        _budget(checked),
        _errors(checked),
        _promises(checked),
        _service(config, console.width),
    ):
        console.print(table)
    for finding in checked.findings:
        mark = f"[{COLOURS[finding.level]}]{finding.level}[/]"
        console.print(
            f"{mark}: {escape(finding.message)} {escape(finding.hint)}".rstrip(), highlight=False
        )
    verdict = "can be served" if checked.ok else "cannot be served as it is"
    console.print(
        f"\n[bold]{escape(config.path.name)} {verdict}.[/] No row was read and nothing is spent.",
        highlight=False,
    )


def _table(title: str, *headings: str, caption: str | None = None) -> Table:
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, title_justify="left")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _domain(config: Config) -> Table:
    table = _table(
        f"{escape(config.name)}: {config.domain.size:,} cells, each told apart",
        *("column", "type", "cells", "values"),
        caption="All of this is public. Rows with other values are left out, unless there is `other`.",
    )
    for attribute in config.domain.attributes:
        table.add_row(
            escape(attribute.name),
            type(attribute).__name__.lower(),
            f"{attribute.size:,}",
            escape(_values(attribute)),
        )
    return table


def _values(attribute: Attribute) -> str:
    """The first and last values, and the cells beside them."""
    known = attribute.values
    shown: list[Label] = [*known] if len(known) <= 4 else [known[0], known[1], "...", known[-1]]
    bins = [f"bins {name}" for name in attribute.bins_by_name]
    beside = [f"other: {attribute.other}"] if attribute.other is not None else []
    null = ["NULL"] if attribute.nullable else []
    return "; ".join([", ".join(map(str, shown)), *beside, *null, *bins])


def _budget(checked: Checked) -> Table:
    config, price = checked.config, checked.settings.price
    unit = "rho" if config.budget.currency == "zcdp" else "epsilon"
    table = _table(
        f"Budget: {_told(config)}",
        *("analyst", "share", unit, "for the seed", "a paid question", "paid questions, about"),
        caption=_pot(checked),
    )
    for each in checked.means:
        count = "depends on the data" if each.questions is None else f"{each.questions:,}"
        table.add_row(
            escape(each.analyst),
            str(each.part),
            _number(each.share),
            _number(each.seed),
            "-" if price is None else _number(price),
            count,
        )
    return table


def _told(config: Config) -> str:
    """The budget in the words of the file, and in its currency."""
    budget = config.budget
    if budget.currency == "pure":
        return f"epsilon {_number(budget.epsilon)}, with Laplace noise"
    stated = f"epsilon {_number(budget.epsilon)}, delta {_number(budget.delta)}"
    return f"{stated}: rho {_number(budget.total)}, with Gaussian noise"


def _pot(checked: Checked) -> str:
    if checked.settings.in_common:
        return "All pay from one pot: the questions are those of everybody together."
    if checked.settings.independent:
        return "Everybody has an instance of their own, and shares nothing."
    return "What anybody has paid for is free for everybody afterwards."


def _number(value: Fraction) -> str:
    return f"{float(value):.4g}"


def _errors(checked: Checked) -> Table | str:
    config = checked.config
    if not checked.settings.errors_are_public:
        return (
            f"How far off the answers of {checked.settings.name} are depends on the data, so that is "
            "not known before they are asked.\n"
        )
    table = _table(
        f"Standard errors of first answers, in rows; useful: at most {config.error_threshold:,g}",
        *("question", "of", "for nothing, from the seed", "useful", "when paid for", "useful"),
        caption=f"A sum may be off by as many rows of its largest weight.{_assumed(checked)}",
    )
    for look in checked.outlooks:
        everybody = len(look.analysts) == len(config.analysts)
        table.add_row(
            look.asked,
            "everybody" if everybody else escape(", ".join(look.analysts)),
            *_shown(look.free),
            *_shown(look.paid),
        )
    return table


def _assumed(checked: Checked) -> str:
    """Which questions nobody has given, and what they are."""
    if not (names := without_questions(checked.config)):
        return ""
    none = "" if some_assumed(checked.config) else ". Here there are none"
    return (
        f"\nNo questions were given for {escape(listed(names))}, so Sharewell assumes {ASSUMED}{none}."
    )


def _shown(error: Expected | None) -> tuple[str, str]:
    if error is None or not math.isfinite(error.typical):
        return "cannot be had", "-"
    return f"{error.typical:,.1f}", f"{error.within:.0%}"


def _promises(checked: Checked) -> Table:
    config = checked.config
    table = _table(
        f"Promises of {checked.settings.name}; scheduler: {config.scheduler_name}{_options(config)}",
        *("what", "status", "if"),
    )
    told: tuple[str, ...] = ()
    for promise in checked.promises:
        same = told and promise.assumptions == told
        table.add_row(
            promise.meaning, promise.status, "the same" if same else " ".join(promise.assumptions)
        )
        told = promise.assumptions
    return table


def _options(config: Config) -> str:
    told = [f"{key} {value}" for key, value in config.scheduler_options.items() if key == "idle_after"]
    return f" ({', '.join(told)} s)" if told else ""


def _service(config: Config, width: int) -> Table:
    table = _table(
        "Service",
        *("setting", "value", "what it does"),
        caption=f"Relative paths begin at the folder of {escape(config.path.name)}.",
    )
    room = max(width - BESIDE_VALUES, len("value"))
    values = [_broken(value, room) for _, value, _ in _serving(config)]
    # Paths are copied from here, so the words beside them are wrapped first.
    table.columns[1].width = min(room, max(len(line) for value in values for line in value.split("\n")))
    for (setting, _, meaning), value in zip(_serving(config), values, strict=True):
        table.add_row(setting, escape(value), meaning)
    return table


def _broken(value: str, room: int) -> str:
    """A value in lines that have room, broken after a slash where that is possible."""
    lines = [""]
    for part in re.findall(r"[^/]*/?", value):
        if lines[-1] and len(lines[-1]) + len(part) > room:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _from_file(config: Config, path: str | Path) -> str:
    """A path from the folder of the file where it lies below that, and else the whole."""
    folder = config.path.parent.absolute()
    below = Path(path).relative_to(folder) if Path(path).is_relative_to(folder) else None
    return str(path) if below is None or ".." in below.parts else str(below)


def _serving(config: Config) -> Iterator[tuple[str, str, str]]:
    service = config.service
    ledger = _from_file(config, service.ledger) if service.ledger_is_file else service.ledger
    yield "ledger", ledger, _ledger_state(config)
    yield (
        "access",
        _from_file(config, service.access),
        "hashes of the tokens; make some with `sharewell token`",
    )
    yield "curators", ", ".join(service.curators), "may see the ledger, take in analysts, and pause"
    yield "release_every", f"{service.release_every:g} s", "answers are released at these moments only"
    yield "requests_per_second", f"{service.requests_per_second:g}", "of one token"
    yield "most_waiting", f"{service.most_waiting:,}", "questions of one analyst at a time"
    yield "most_numbers", f"{service.most_numbers:,}", "that one question may ask for"
    kept = "kept up while it runs" if service.certificate else "not kept up"
    yield "certificate", str(service.certificate).lower(), kept
    used = "" if config.scheduler_name == "randomized" else "; not used by this scheduler"
    yield "tick", f"{service.tick:g} s", f"between two turns of the randomized scheduler{used}"


def _ledger_state(config: Config) -> str:
    if not config.service.ledger_is_file:
        return "in a PostgreSQL database"
    return (
        "is there, and goes on"
        if Path(config.service.ledger).exists()
        else "begins with the first start"
    )
