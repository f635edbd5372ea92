"""Commands that start a budget, or continue one whose ledger or witness is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from sharewell.cli.options import DEFAULT_CONFIG, ConfigArgument, Yes, confirm, is_interactive
from sharewell.errors import ConfigError

if TYPE_CHECKING:
    from sharewell.config import Config
    from sharewell.service.lifecycle import Recovery

PANEL = "For curators"

commands = typer.Typer()

BACK_UP = "Back up the ledger and the witness."


@commands.command(rich_help_panel=PANEL)
def begin(config: ConfigArgument = DEFAULT_CONFIG, yes: Yes = False) -> None:
    """Begin a dataset, once: create its ledger and its witness. Reads no rows."""
    from sharewell.config import read_config
    from sharewell.config.check import check_config
    from sharewell.service import lifecycle

    dataset = read_config(config)
    errors = [each for each in check_config(dataset).diagnostics if each.level == "error"]
    if errors:
        raise ConfigError(errors[0].message, hint=f"{errors[0].hint} See `sharewell check {config}`.")
    question = "Begin it? Its budget starts now, once and for all."
    _confirm_and_run(lifecycle.begin, dataset, question, yes)
    typer.echo(f"Begun. {BACK_UP} Next: sharewell serve {config}")


@commands.command(rich_help_panel=PANEL)
def adopt(config: ConfigArgument = DEFAULT_CONFIG, yes: Yes = False) -> None:
    """Continue a ledger that has no witness: one of an earlier version, or whose witness is lost."""
    from sharewell.config import read_config
    from sharewell.service import lifecycle

    question = "Adopt the ledger? Events that it lacks would be spent again: it must be complete."
    _confirm_and_run(lifecycle.adopt, read_config(config), question, yes)
    typer.echo(f"Adopted. {BACK_UP} Next: sharewell serve {config}")


@commands.command(rich_help_panel=PANEL)
def recover(config: ConfigArgument = DEFAULT_CONFIG, yes: Yes = False) -> None:
    """Continue after a ledger was lost: book everything that its witness saw as spent."""
    from sharewell.config import read_config
    from sharewell.service import lifecycle

    dataset = read_config(config)
    loss = _describe_loss(dataset, lifecycle.plan_recovery(dataset))
    question = "Recover it? A complete ledger, if you find one later, cannot be used any more."
    _confirm_and_run(lifecycle.recover, dataset, question, yes, loss)
    typer.echo(f"Recovered. Next: sharewell serve {config}")


def _confirm_and_run(
    action: Callable[[Config], object], config: Config, question: str, yes: bool, *details: str
) -> None:
    for text in (_describe(config), *details):
        typer.echo(text)
    confirm(question, yes)
    action(config)


def offer_to_begin(paths: list[str]) -> None:
    """At a terminal, offer to begin datasets that are served for the first time."""
    from sharewell.config import read_config

    if not is_interactive():
        return
    for path in paths:
        config = read_config(path)
        if not config.witness.exists() and not _has_ledger(config):
            begin(path)


def _has_ledger(config: Config) -> bool:
    from sharewell.errors import LedgerMissing
    from sharewell.service.ledger import open_ledger

    try:
        open_ledger(config.service.ledger, name=config.name, read_only=True).close()
        return True
    except LedgerMissing:
        return False


def _describe(config: Config) -> str:
    budget = config.budget
    delta = f", delta = {float(budget.delta):g}" if budget.delta else ""
    return (
        f"{config.name}: epsilon = {float(budget.epsilon):g}{delta}\n"
        f"  source   {config.source}\n"
        f"  ledger   {config.service.ledger}\n"
        f"  witness  {config.witness}"
    )


def _describe_loss(config: Config, found: Recovery) -> str:
    from sharewell.wire.text import budget_unit, format_amount, pluralize

    lines = [
        f"The ledger has {pluralize(found.present, 'event')}, and the witness saw {found.witnessed:,}."
    ]
    if found.diverged:
        lines.append(
            "The ledger has events that the witness never saw: all that was witnessed is booked on top."
        )
    lines.append(
        "Lost for good: questions and answers of the missing events, and their idempotency keys."
    )
    if found.bill:
        spent = ", ".join(f"{payer} {format_amount(cost)}" for payer, cost in found.bill.items())
        lines.append(f"Booked as spent, in {budget_unit(config.budget.currency)}: {spent}.")
    if config.make.seed_fraction:
        lines.append("A lost seed is measured again at the next start, from what is left of the shares.")
    return "\n".join([*lines, "The certificate ends: it is not known what the collective did."])
