"""Commands that start a budget, or continue one whose ledger or witness is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sharewell.cli.options import DEFAULT_CONFIG, ConfigArgument, Yes, confirm, is_interactive

if TYPE_CHECKING:
    from sharewell.config import Config
    from sharewell.service.lifecycle import Recovery

PANEL = "For curators"

commands = typer.Typer()


@commands.command(rich_help_panel=PANEL)
def begin(config: ConfigArgument = DEFAULT_CONFIG, yes: Yes = False) -> None:
    """Begin a dataset, once: create its ledger and its witness."""
    from sharewell.config import read_config
    from sharewell.config.check import require_valid
    from sharewell.service import lifecycle

    dataset = read_config(config)
    require_valid(dataset)
    typer.echo(_describe(dataset))
    confirm("Begin it? Its budget starts now, and cannot be restarted.", yes)
    lifecycle.begin(dataset)
    typer.echo(f"Begun. Back up the ledger and the witness. Next: sharewell serve {config}")


@commands.command(rich_help_panel=PANEL)
def adopt(config: ConfigArgument = DEFAULT_CONFIG, yes: Yes = False) -> None:
    """Continue a ledger that has no witness: one of an earlier version, or whose witness is lost."""
    from sharewell.config import read_config
    from sharewell.service import lifecycle

    dataset = read_config(config)
    typer.echo(_describe(dataset))
    confirm(
        "Adopt the ledger? It must be complete: charges of missing events would be spent again.", yes
    )
    lifecycle.adopt(dataset)
    typer.echo(f"Adopted. Back up the ledger and the witness. Next: sharewell serve {config}")


@commands.command(rich_help_panel=PANEL)
def recover(config: ConfigArgument = DEFAULT_CONFIG, yes: Yes = False) -> None:
    """Continue after a ledger was lost: book everything that its witness saw as spent."""
    from sharewell.config import read_config
    from sharewell.service import lifecycle

    dataset = read_config(config)
    found = lifecycle.plan_recovery(dataset)
    typer.echo(_describe(dataset))
    typer.echo(_describe_loss(dataset, found))
    confirm("Recover it? A complete ledger found later can no longer be used.", yes)
    lifecycle.recover(dataset)
    typer.echo(f"Recovered. Next: sharewell serve {config}")


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
    lines.append("Lost: the questions, answers and idempotency keys of the missing events.")
    if found.bill:
        spent = ", ".join(f"{payer} {format_amount(cost)}" for payer, cost in found.bill.items())
        lines.append(f"Booked as spent, in {budget_unit(config.budget.currency)}: {spent}.")
    if config.make.seed_fraction:
        lines.append("A lost seed is measured again at the next start, from what is left of the shares.")
    return "\n".join([*lines, "The certificate ends, because the lost questions cannot be replayed."])
