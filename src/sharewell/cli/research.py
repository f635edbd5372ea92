"""Commands of separate distributions such as `sharewell-lab`, found by entry point."""

from __future__ import annotations

from importlib.metadata import entry_points

import typer

from sharewell.errors import ConfigError

#: Distributions add commands with an entry point in this group; each is a `typer.Typer`.
ENTRY_POINTS = "sharewell.commands"
#: The commands of sharewell-lab.
LAB = ("reproduce", "simulate", "theory")


def installed_commands() -> list[typer.Typer]:
    """Load the commands of installed distributions, or stand-ins where sharewell-lab is missing."""
    found = {point.name: point.load() for point in entry_points(group=ENTRY_POINTS)}
    if "lab" not in found:
        found["lab"] = _without_lab()
    return list(found.values())


def _without_lab() -> typer.Typer:
    missing = typer.Typer()

    def refuse(context: typer.Context) -> None:
        raise ConfigError(
            f"'sharewell {context.info_name}' is part of sharewell-lab, which is not installed.",
            hint="Run `make lab` in a checkout, or `pip install sharewell-lab`.",
        )

    for name in LAB:
        arguments = {"allow_extra_args": True, "ignore_unknown_options": True}
        missing.command(name, hidden=True, context_settings=arguments, add_help_option=False)(refuse)
    return missing
