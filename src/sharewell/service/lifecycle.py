"""Begin, open, adopt and recover a dataset: its ledger together with its witness.

A budget starts once, when a curator begins the dataset. From then on its ledger opens only where it
contains what the witness saw, so that a ledger which was deleted, emptied, exchanged or restored from an
older copy never starts the budget anew.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from sharewell.config.check import Diagnostic
from sharewell.config.config import Config
from sharewell.errors import (
    ConfigError,
    LedgerError,
    LedgerInUse,
    LedgerMissing,
    NotBegun,
    SharewellError,
    WitnessMismatch,
)
from sharewell.privacy.ledger import Begun, CuratorAction, Event, Granted, Left, Opened, Recovered
from sharewell.service.ledger import DurableLedger, open_ledger
from sharewell.service.ledger.codec import decode
from sharewell.service.ledger.files import FileLock, is_open_to_others
from sharewell.service.ledger.store import Head
from sharewell.service.ledger.witness import Witness, WitnessRecord, lock_witness, read_key

_log = logging.getLogger(__name__)

#: The difference of a ledger that is not the lost one: nothing can be recovered with it.
OTHER_DATASET = "belongs to another dataset"
CHECK_PATHS = "Check service.ledger and service.witness."


def begin(config: Config) -> Path:
    """Begin a dataset: create its ledger and its witness, and return the path of the witness.

    Refuses a source that was begun before, under any name. Reads rows only where there is a limit of
    their number: a table with more is refused now, since a service must not refuse it later.
    """
    path, key = config.witness, _key(config)
    require_new_source(config)
    if config.max_rows is not None and config.measure == "copy":
        config.vector()
    with _lock_witness(config):
        # Again: another process may have begun it meanwhile.
        require_new_source(config)
        with _open(config, create=True) as ledger:
            events = list(ledger.events())
            if not all(isinstance(event, Begun | CuratorAction) for event in events):
                raise LedgerError(
                    f"The ledger {config.service.ledger} exists, and has no witness at {path}.",
                    hint=f"If it is complete, run `sharewell adopt {config.path}`.",
                )
            if not events:
                ledger.append_many([Begun(secrets.token_hex(16)), CuratorAction("", "begin")])
            ledger.attach(Witness(path, WitnessRecord(source=describe_source(config)), key))
    _mark_tables(config)
    return path


def _mark_tables(config: Config) -> None:
    """Write where the witness is to the places of a view's other tables: each has its budget now."""
    with suppress(ConfigError):
        for place in config.default_witnesses[1:]:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"{_pointer(config)}\n", encoding="utf-8")


def _pointer(config: Config) -> str:
    return f"See the witness {config.witness}."


def require_new_source(config: Config) -> None:
    """Refuse a source that was begun before: it has a budget."""
    for place in _witness_places(config):
        if place.exists():
            raise LedgerError(
                f"{config.source} was begun before: see its witness {place}.",
                hint="Serve it with its ledger. For a second budget that adds to the first, set "
                "dataset.budgets_add_up = true and another service.witness.",
            )


def _witness_places(config: Config) -> Iterator[Path]:
    """Where a witness of the source may be: another setting does not allow a second budget."""
    yield config.witness
    if not config.budgets_add_up:
        with suppress(ConfigError):  # Without a home directory there is no default place.
            yield from config.default_witnesses


def open_dataset(config: Config, *, wait: float = 0.0) -> DurableLedger:
    """Open the ledger of a dataset that was begun, with its witness attached.

    Refuses a ledger that is not the one that the witness saw, and a witness that another process holds
    for any ledger. Logs a warning if the source has changed since.
    """
    with ExitStack() as undo:
        try:
            ledger = undo.enter_context(_open(config, wait=wait))
        except LedgerMissing:
            raise _missing(config) from None
        except LedgerInUse as error:
            raise _in_use(error, "a ledger has one writer") from None
        lock = undo.enter_context(_lock_witness(config, wait))
        witness = _matching_witness(config, ledger)
        ledger.attach(witness, lock)
        before, now = witness.record.source, describe_source(config)
        if before != now:
            if before:
                _log.warning("The source of %s has changed: %s.", config.name, _changes(before, now))
            witness.write(replace(witness.record, source=now))
        undo.pop_all()
    return ledger


def _lock_witness(config: Config, wait: float = 0.0) -> FileLock:
    """Hold the witness: it is the same for all ledgers of a source."""
    try:
        return lock_witness(config.witness, wait)
    except LedgerInUse as error:
        raise _in_use(error, "a budget has one ledger") from None


def _in_use(error: LedgerInUse, reason: str) -> LedgerInUse:
    ours = f"process {os.getpid()} " in f"{error.message} "
    hint = "Close the other session first" if ours else "Stop that process first"
    return LedgerInUse(error.message, hint=f"{hint}: {reason}.")


def _missing(config: Config) -> NotBegun | WitnessMismatch:
    """The refusal to open a dataset without its ledger."""
    witness = _read_witness(config)
    return not_begun(config) if witness is None else _mismatch(config, witness, "is missing")


def _matching_witness(config: Config, ledger: DurableLedger) -> Witness:
    """Read the witness; refuses a ledger that is not the one that it saw."""
    witness = _read_witness(config)
    if witness is None:
        if not len(ledger):
            raise not_begun(config)
        raise _unwitnessed(config)
    if (difference := _difference(ledger, witness)) is not None:
        raise _mismatch(config, witness, difference)
    if witness.record.gone is None:
        witness.forget_chain()
    return witness


def _difference(ledger: DurableLedger, witness: Witness) -> str | None:
    """How a ledger differs from what its witness saw; None where it contains that."""
    if ledger.contains(witness.record.head):
        return None
    if not ledger.head.count:
        return "is empty"
    if _dataset_of(ledger.events()) not in ("", witness.record.dataset):
        return OTHER_DATASET
    if ledger.head.count < witness.record.head.count:
        return f"has only {ledger.head.count:,} events"
    return f"has other events up to number {witness.record.head.count - 1:,}"


def _mismatch(config: Config, witness: Witness, difference: str) -> WitnessMismatch:
    lost = (
        "Restore the complete ledger. If it is lost, `sharewell recover` books what the witness saw as "
        "spent."
    )
    return WitnessMismatch(
        f"The ledger {config.service.ledger} {difference}; the witness {witness.path} saw "
        f"{witness.record.head.count:,} events.",
        hint=CHECK_PATHS if difference == OTHER_DATASET else lost,
    )


def _unwitnessed(config: Config) -> WitnessMismatch:
    return WitnessMismatch(
        f"The ledger {config.service.ledger} has no witness at {config.witness}.",
        hint="Restore the witness. If it is lost, or this ledger is older than witnesses, and the "
        f"ledger is complete, run `sharewell adopt {config.path}`.",
    )


def not_begun(config: Config) -> NotBegun:
    """The refusal to open a dataset that was never begun."""
    return NotBegun(
        f"{config.name} was never begun: it has no ledger at {config.service.ledger}.",
        hint=f"Begin it, once: `sharewell begin {config.path}`, or sharewell.begin in Python.",
    )


def adopt(config: Config) -> Path:
    """Give a ledger that has no witness one, trusting it as it is; return the path of the witness."""
    path, key = config.witness, _key(config)
    with _lock_witness(config), _open(config) as ledger:
        for place in _witness_places(config):
            if place.exists() and place.read_bytes().strip() != _pointer(config).encode():
                raise LedgerError(
                    f"{config.source} has a witness at {place} already.",
                    hint="Serve the dataset with that witness: see service.witness.",
                )
        events = list(ledger.events())
        if not events:
            raise not_begun(config)
        begun = [] if _dataset_of(events) else [Begun(secrets.token_hex(16))]
        ledger.append_many([*begun, CuratorAction("", "adopt")])
        ledger.attach(Witness(path, WitnessRecord(source=describe_source(config)), key))
    return path


@dataclass(frozen=True)
class Recovery:
    """What `recover` books as spent: what the witness saw and the ledger lacks."""

    #: How many events the ledger has and the witness saw.
    present: int
    witnessed: int
    #: The shares and the spending that are lost.
    grants: Mapping[str, Fraction]
    bill: Mapping[str, Fraction]
    #: Whether the ledger has events that the witness never saw, so that all it saw is booked on top.
    diverged: bool
    events: tuple[Event, ...]


def plan_recovery(config: Config) -> Recovery:
    """What `recover` would do; changes nothing."""
    witness = _witness_to_recover(config)
    try:
        with _open(config, read_only=True) as ledger:
            return _plan(witness, ledger)
    except LedgerMissing:
        return _plan(witness, None)


def recover(config: Config) -> Recovery:
    """Book everything that the witness saw and the ledger lacks as spent, so that it opens again.

    Privacy: afterwards each payer has at most what was left when the witness was last synced, and no
    charge from before is used again. What the lost events released stays released.
    """
    _witness_to_recover(config)
    with _lock_witness(config), _open(config, create=True) as ledger:
        witness = _witness_to_recover(config)
        found = _plan(witness, ledger)
        ledger.append_many(found.events)
        witness.forget_chain()  # It is another one.
        ledger.attach(witness)
    return found


def _witness_to_recover(config: Config) -> Witness:
    witness = _read_witness(config)
    if witness is None:
        raise LedgerError(
            f"There is no witness at {config.witness} to recover from.",
            hint="Restore it, or set service.witness to where it is.",
        )
    return witness


def _plan(witness: Witness, ledger: DurableLedger | None) -> Recovery:
    """Compare the witness with the ledger: the events to append."""
    seen = witness.record
    events = [] if ledger is None else list(ledger.events())
    if ledger is not None and ledger.contains(seen.head):
        raise LedgerError(
            "The ledger contains all that the witness saw: there is nothing to recover.",
            hint="Serve the dataset.",
        )
    if (dataset := _dataset_of(events)) and dataset != seen.dataset:
        raise WitnessMismatch(
            "The ledger and the witness belong to different datasets.",
            hint=CHECK_PATHS,
        )
    has = WitnessRecord().after(events, Head(len(events)))
    # A recovery that was interrupted has booked already what this witness saw.
    is_booked = any(isinstance(e, Recovered) and e.witnessed == str(seen.head) for e in events)
    diverged = len(events) >= seen.head.count and not is_booked
    grants = {payer: share for payer, share in seen.shares.items() if payer not in has.shares}
    bill = {}
    for payer, spent in seen.spent.items():
        present = has.spent.get(payer, Fraction(0))
        most = has.shares.get(payer, seen.shares[payer]) - present
        lost = min(spent if diverged else spent - present, most)
        if lost > 0:
            bill[payer] = lost
    new: list[Event] = [] if dataset else [Begun(seen.dataset)]
    opened = decode(seen.opened.encode()) if seen.opened else None
    if has.opened is None and opened:
        new.append(opened)
    new += [Granted(payer, share) for payer, share in grants.items()]
    granted = sum((*has.shares.values(), *grants.values()), Fraction(0))
    if isinstance(opened, Opened) and granted > opened.total:
        raise LedgerError(
            "The ledger and the witness together grant more than the budget.",
            hint="The data was released under two ledgers at once: do not continue with either.",
        )
    new.append(Recovered(bill, str(seen.head)))
    new += [Left(payer) for payer in seen.gone or () if payer not in (has.gone or ())]
    new.append(CuratorAction("", "recover"))
    return Recovery(len(events), seen.head.count, grants, bill, diverged, tuple(new))


def check_files(config: Config) -> Iterator[Diagnostic]:
    """Report whether ledger and witness agree, and files that other users may read; changes nothing."""
    try:
        try:
            with _open(config, read_only=True) as ledger:
                _matching_witness(config, ledger)
        except LedgerMissing:
            raise _missing(config) from None
    except NotBegun:
        yield Diagnostic("note", "Not begun yet.", f"Run `sharewell begin {config.path}`.")
    except SharewellError as error:
        yield Diagnostic.from_error(error)
    service = config.service
    files = [config.witness, service.access, *([service.ledger_key] if service.ledger_key else ())]
    if service.ledger_is_file:
        files += [Path(f"{service.ledger}{suffix}") for suffix in ("", "-wal", "-shm")]
    for file in filter(is_open_to_others, files):
        yield Diagnostic("warning", f"Other users may read {file}.", f"Run: chmod 600 {file}")


def describe_source(config: Config) -> dict[str, Any]:
    """Path, size and time of the last change of each file, or the address, without reading it."""
    if config.view is None:
        [(place, table)] = config.identities
        return _describe_place(place, table)
    found: dict[str, Any] = {}
    for name, each in config.tables.items():
        place = each.source.resolve() if isinstance(each.source, Path) else config.identities[0][0]
        described = _describe_place(place, each.table or name)
        found |= {f"{name}.{key}": value for key, value in described.items()}
    return found


def _describe_place(place: Path | str, table: str | None) -> dict[str, Any]:
    if isinstance(place, str):
        return {"path": place, "table": table or ""}
    try:
        found = place.stat()
    except OSError:
        return {}
    changed = datetime.fromtimestamp(found.st_mtime, UTC).isoformat(timespec="seconds")
    return {"path": str(place), "bytes": found.st_size, "changed": changed}


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{key} was {before.get(key)} and is {now.get(key)}"
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key)
    )


def _dataset_of(events: Iterable[Event]) -> str:
    """The id of the dataset that a ledger was begun for; empty for one that is older than ids."""
    return next((event.dataset for event in events if isinstance(event, Begun)), "")


def _read_witness(config: Config) -> Witness | None:
    return Witness.read(config.witness, _key(config))


def _key(config: Config) -> bytes | None:
    return None if config.service.ledger_key is None else read_key(config.service.ledger_key)


def _open(config: Config, **options: Any) -> DurableLedger:
    return open_ledger(config.service.ledger, name=config.name, **options)
