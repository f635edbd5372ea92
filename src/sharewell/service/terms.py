"""Terms: which settings may change while a ledger goes on, and which not."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

from sharewell.config.config import Config
from sharewell.config.findings import Finding, of_error
from sharewell.errors import ConfigError, LedgerMissing, SharewellError
from sharewell.privacy.accounts import Accounts
from sharewell.privacy.ledger import Asked, Configured, Event, MemoryLedger, Opened
from sharewell.service.ledger import open_ledger


def of_ledger(config: Config) -> Iterator[Finding]:
    """Whether a service could go on with the ledger that is there, if there is one; changes nothing."""
    try:
        with open_ledger(config.service.ledger, name=config.name, read_only=True) as ledger:
            events = list(ledger.events())
        accounts = _rehearse(config, events)
    except LedgerMissing:
        return
    except SharewellError as error:
        yield of_error(error)
        return
    asked = sum(isinstance(event, Asked) for event in events)
    left = accounts.unallocated / config.budget.total
    yield Finding(
        "note",
        f"The service will go on with its ledger: {asked:,} questions were asked, and {left} of the "
        "budget is nobody's by now.",
    )


def _rehearse(config: Config, events: list[Event]) -> Accounts:
    """Do what opening does with the terms, on a copy."""
    copy = MemoryLedger()
    copy.append_many(events)
    for before in [event for event in events if isinstance(event, Configured)][-1:]:
        refuse_other_terms(before, config)
    opened = Opened.of(config.budget, config.neighbours, config.domain)
    return Accounts(config.budget, config.shares, copy, opened)


def refuse_other_terms(before: Configured, config: Config) -> None:
    """Refuse settings that would make what was promised and stored mean something else.

    Prices that change in between would break the promise that nobody is worse off, questions are
    stored with the name of their table, and the budget is that of whoever the privacy unit names.
    Everything else may change from one start to the next.
    """
    then, now = (tomllib.loads(text) for text in (before.settings["config"], config.text))
    name = [tables["dataset"].get("name", "people") for tables in (then, now)]
    if name[0] != name[1]:
        raise ConfigError(
            _changed("dataset.name", *name),
            hint="Call it by its old name, or begin a new ledger.",
        )
    unit = [tables["dataset"].get("privacy_unit") for tables in (then, now)]
    if unit[0] != unit[1]:
        raise ConfigError(
            _changed("dataset.privacy_unit", *unit),
            hint="Set it back: what was spent was spent for those whom it names.",
        )
    old, new = then.get("mechanism", {}), now.get("mechanism", {})
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            raise ConfigError(
                _changed(f"mechanism.{key}", old.get(key), new.get(key)),
                hint="Set it back, or begin a new ledger: the old one has made promises with it.",
            )


def _changed(setting: str, then: object, now: object) -> str:
    was, has_become = ("not set" if value is None else repr(value) for value in (then, now))
    return f"{setting} was {was} when the ledger was begun, and is {has_become} now."
