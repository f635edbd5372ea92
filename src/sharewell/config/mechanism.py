"""The tables [mechanism] and [scheduler] of a configuration, with the keys that each kind declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sharewell.config.section import Mistakes, Section, blame
from sharewell.errors import ConfigError
from sharewell.mechanisms.base import PublicContext
from sharewell.mechanisms.registry import MECHANISMS, MechanismFactory
from sharewell.options import BOOLEAN, Option, choice
from sharewell.schedulers.registry import SCHEDULERS

MECHANISM_OPTIONS = (
    Option("name", choice(*MECHANISMS), next(iter(MECHANISMS)), "how questions are answered"),
    Option(
        "independent", BOOLEAN, False, "whether every analyst has their own mechanism and shares nothing"
    ),
)
SCHEDULER_OPTIONS = (
    Option("name", choice(*SCHEDULERS), next(iter(SCHEDULERS)), "whose question is answered next"),
)


def read_mechanism(section: Section) -> tuple[dict[str, Any], dict[str, Any]]:
    """The name and independence of the mechanism, and the options that it declares."""
    values = section.read_all(MECHANISM_OPTIONS)
    return values, _read_options(section, values["name"], MECHANISMS)


def mechanism_factory(
    values: dict[str, Any], options: dict[str, Any], context: PublicContext
) -> MechanismFactory:
    """What makes the mechanism for a public context."""
    kind = MECHANISMS[values["name"]]
    return MechanismFactory(
        kind, blame("mechanism", lambda: kind.arguments(options, context)), values["independent"]
    )


def read_scheduler(section: Section) -> tuple[str, dict[str, Any]]:
    """The name of the scheduler, and the options that it declares."""
    name = section.read_all(SCHEDULER_OPTIONS)["name"]
    options = _read_options(section, name, SCHEDULERS)
    return name, {key: value for key, value in options.items() if value is not None}


def _read_options(section: Section, name: str, kinds: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a mechanism or scheduler declares; those of others are refused."""
    mistakes = Mistakes()
    values = mistakes.of(lambda: section.read_all(kinds[name].options))
    for key in section:
        having = [
            other for other, kind in kinds.items() if any(key == each.name for each in kind.options)
        ]
        if having and name not in having:
            section.has(key)  # known, if not here
            instead = " or ".join(map(repr, having))
            mistakes.found.append(
                ConfigError(
                    f"{section.where(key)} is not an option of {name!r}.",
                    hint=f"Remove it, or set {section.where('name')} to {instead}.",
                )
            )
    mistakes.of(section.end)
    mistakes.check()
    found: dict[str, Any] = values
    return found
