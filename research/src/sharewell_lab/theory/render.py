"""What the `theory` commands show: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from sharewell.errors import SharingError
from sharewell_lab.theory.coupons import Coupons, Reference, coupons
from sharewell_lab.theory.query_limit import QueryLimit

#: More analysts than these are not listed one by one.
LISTED = 12


def show_coupons(
    analysts: int,
    quota: str,
    probabilities: str | None,
    steps: int | None,
    probability: float | None,
    as_json: bool,
) -> None:
    """Show the coupon time, and where asked for its distribution."""
    quotas = [_whole(part) for part in quota.split(",")]
    drawn = None if probabilities is None else [_number(part) for part in probabilities.split(",")]
    found = coupons(analysts, quotas[0] if len(quotas) == 1 else quotas, drawn)
    facts = _coupon_facts(found, steps, probability)
    if as_json:
        _print_json(facts)
        return
    console = Console()
    table = _table(f"The coupon time of {_who(found)}")
    table.add_row("sum of the quotas", f"{found.least:,}", "no fewer draws can do")
    table.add_row("average turns reach the quotas", _draws(found.linear), "for every analyst")
    table.add_row(
        "[bold]all quotas at once", f"[bold]{_draws(found.expected)}", "expected number of draws, exact"
    )
    if found.asymptotic is not None:
        table.add_row("k (ln k + (m-1) ln ln k)", *_reference(found.asymptotic, "for huge k only"))
    table.add_row("upper bound", *_reference(found.upper_bound, "on the expected number"))
    if probability is not None:
        least = facts["steps_for"]
        note = "the fewest draws that do" if least["exact"] else "enough; somewhat fewer may do"
        table.add_row(f"all met, {_percent(probability)} sure", f"{least['steps']:,}", note)
    console.print(table)
    if steps is not None:
        _show_steps(console, found, facts["after"])


def show_limit(alpha: float, epsilon: str, analysts: int, as_json: bool) -> None:
    """Show how many hard queries are answered, alone and together, per query and by the norm."""
    limit = QueryLimit(alpha, epsilon, analysts)
    if as_json:
        head = {"alpha": limit.alpha, "epsilon": str(limit.epsilon), "analysts": limit.analysts}
        counts = {
            name: {"alone": one.alone, "independent": one.independent, "together": one.together}
            for name, one in (("per_query", limit.per_query), ("norm", limit.norm))
        }
        _print_json({**head, **counts})
        return
    who = f"{analysts:,} analysts" if analysts > 1 else "1 analyst"
    table = Table(
        title=f"Hard queries answered: {who}, epsilon = {epsilon}, alpha = {limit.alpha:,g}",
        title_justify="left",
        title_style="bold cyan",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("")
    for name in ("alpha bounds each error", "alpha bounds the L2 norm of all errors"):
        table.add_column(name, justify="right")
    for what, name in (
        ("one analyst, with their share", "alone"),
        ("independent analysts, in all", "independent"),
        ("one analyst, with all of epsilon", "together"),
    ):
        numbers = (getattr(one, name) for one in (limit.per_query, limit.norm))
        table.add_row(what, *(f"{number:,.1f}" for number in numbers))
    Console().print(table)


def _coupon_facts(found: Coupons, steps: int | None, probability: float | None) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "analysts": found.analysts,
        "quotas": list(found.quotas),
        "probabilities": list(found.probabilities),
        "least": found.least,
        "linear": found.linear,
        "expected": found.expected,
        "asymptotic": _plain(found.asymptotic),
        "upper_bound": _plain(found.upper_bound),
    }
    if steps is not None:
        met = found.after(steps)
        facts["after"] = {
            "steps": met.steps,
            "probability": met.probability,
            "low": met.low,
            "high": met.high,
            "exact": met.exact,
            "expected_turns": list(found.expected_turns(steps)),
        }
    if probability is not None:
        least = found.steps_for(probability)
        facts["steps_for"] = {
            "probability": least.probability,
            "steps": least.steps,
            "exact": least.exact,
        }
    return facts


def _show_steps(console: Console, found: Coupons, after: dict[str, Any]) -> None:
    """What so many draws give: to all at once, and to each in expectation."""
    chance = f"[bold]{_chance(after['low'])}"
    if not after["exact"]:
        chance = f"between {chance}[/] and [bold]{_chance(after['high'])}"
    console.print(f"\nAfter {after['steps']:,} draws all quotas are met with probability {chance}[/].")
    rows = list(zip(found.quotas, found.probabilities, after["expected_turns"], strict=True))
    if len(set(rows)) == 1:
        console.print(f"Every analyst can expect {rows[0][2]:,.1f} turns.")
    elif len(rows) > LISTED:
        turns = after["expected_turns"]
        console.print(f"The analysts can expect from {min(turns):,.1f} to {max(turns):,.1f} turns each.")
    else:
        table = Table(box=None, pad_edge=False)
        for name in ("analyst", "quota", "probability", "expected turns"):
            table.add_column(name, justify="right")
        table.add_column("", style="yellow")
        for number, (quota, drawn, turns) in enumerate(rows, start=1):
            mark = "" if turns >= quota else "below the quota"
            table.add_row(f"{number}", f"{quota:,}", f"{drawn:.4g}", f"{turns:,.1f}", mark)
        console.print(table)


def _who(found: Coupons) -> str:
    who = f"{found.analysts:,} analysts" if found.analysts > 1 else "1 analyst"
    equal = len(set(found.quotas)) == 1
    each = " each" if found.analysts > 1 else ""
    wants = f"{found.quotas[0]:,} turns{each}" if equal else f"{found.least:,} turns in all"
    return f"{who}, {wants}"


def _table(title: str, number: str = "draws") -> Table:
    table = Table(title=title, title_justify="left", title_style="bold cyan", box=box.SIMPLE_HEAD)
    table.add_column("")
    table.add_column(number, justify="right", no_wrap=True)
    table.add_column("", style="dim")
    return table


def _reference(reference: Reference, note: str) -> tuple[str, str]:
    if reference.warning:
        return f"[yellow]{_draws(reference.value)}", f"[yellow]too low: {reference.warning}"
    return _draws(reference.value), note


def _draws(value: float) -> str:
    return f"{value:,.1f}"


def _percent(value: float) -> str:
    return f"{100 * value:.10g} %"


def _chance(value: float) -> str:
    """A probability with digits where they matter: near 0 and near 1."""
    if value in (0.0, 1.0) or 1e-3 <= value <= 0.999:
        return f"{value:.4f}" if 0 < value < 1 else f"{value:g}"
    return f"{value:.3g}" if value < 0.5 else f"1 - {1 - value:.2g}"


def _plain(reference: Reference | None) -> dict[str, Any] | None:
    if reference is None:
        return None
    return {"value": reference.value, "too_low": reference.too_low, "warning": reference.warning}


def _print_json(facts: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(facts, indent=2) + "\n")


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SharingError(
            f"A quota must be a whole number, not {text.strip()[:40]!r}.",
            hint="Write 50, or one for each analyst: 50,20,20.",
        ) from None


def _number(text: str) -> float:
    try:
        above, _, below = text.partition("/")
        return float(above) / float(below) if below else float(above)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise SharingError(
            f"A probability must be a number, not {text.strip()[:40]!r}.",
            hint="Write one for each analyst: 0.5,0.25,0.25.",
        ) from None
