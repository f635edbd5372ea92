"""Ledgers that a real service has written, and ways to write them again with something changed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

from sharewell.errors import LedgerUnavailable, SharewellError
from sharewell.privacy.ledger import Event, MemoryLedger
from sharewell.service.dataset import DatasetService
from sharewell.service.ledger import open_ledger
from sharewell.service.verify import Verification, verify
from tests.service.faults.bookkeeping import whole_events
from tests.service.services import config, count, join, serve

NAMES = ("ann", "ben", "cleo")


def service_on(ledger, mechanism="cache-reconstruct", scheduler="none") -> DatasetService:
    settings = config(mechanism, scheduler)
    return serve(settings, ledger)


def ask_all(service: DatasetService, questions: Sequence[tuple[str, str, bool]], prefix: str) -> None:
    """Ask everything, let the scheduler go on, and wait; some may be refused for want of budget."""
    asked = [
        service.submit(analyst, sql, pay=pay, key=f"{prefix}{at}")
        for at, (analyst, sql, pay) in enumerate(questions)
    ]
    for name in service.analyst_names:
        service.done(name)
    for ticket in asked:
        ticket.outcome(30)


def story(ledger, mechanism="cache-reconstruct", scheduler="none", short=False) -> None:
    """Questions of all kinds, somebody who joins, somebody who leaves, restarts and retries."""
    by_sex = "SELECT sex, COUNT(*), AVG(age) FROM people GROUP BY sex"
    with service_on(ledger, mechanism, scheduler) as service:
        ask_all(
            service,
            [
                ("ann", count(0, 4), True),
                ("ben", count(0, 4), True),
                ("ann", by_sex, True),
                ("cleo", count(3, 12), False),
                ("cleo", by_sex, True),
                ("ben", count(2, 8, "F"), True),
            ],
            "a",
        )
    if short:
        return
    with service_on(ledger, mechanism, scheduler) as service:
        service.submit("ann", count(0, 4), key="a0").outcome(30)
        ask_all(service, [("ann", count(at, at + 7), True) for at in range(9)], "b")
        with suppress(SharewellError):
            join(service, "dora", Fraction(3, 2))
        try:
            service.leave("ben", donate=True)
        except SharewellError:
            service.leave("ben")
        ask_all(service, [(name, count(1, 6), True) for name in service.analyst_names], "c")
    with service_on(ledger, mechanism, scheduler) as service:
        ask_all(service, [(name, count(5, 16), True) for name in service.analyst_names], "d")
        service.leave("cleo")
        ask_all(service, [("ann", count(5, 17), False), ("ann", by_sex, True)], "e")
        service.done("ann")


def told(*args, **options) -> list[Event]:
    """The events of a story."""
    ledger = MemoryLedger()
    story(ledger, *args, **options)
    return list(whole_events(ledger))


def written(path: Path, events: Sequence[Event]) -> Path:
    """A ledger of these events with a chain of its own: what somebody leaves who knows how."""
    for leftover in path.parent.glob(f"{path.name}*"):
        leftover.unlink()
    with open_ledger(path, create=True) as ledger:
        ledger.append_many(list(events))
    return path


def verified(path: Path, events: Sequence[Event], *, certificate: bool = True) -> Verification:
    return verify(written(path, events), certificate=certificate)


class Crashing(MemoryLedger):
    """A ledger that fails once at an event of a kind, before or after having stored it."""

    def __init__(self) -> None:
        super().__init__()
        self.fails: list[tuple[type, bool]] = []

    def append_many(self, events):
        if self.fails and any(isinstance(event, self.fails[0][0]) for event in events):
            _, stored = self.fails.pop(0)
            if stored:
                super().append_many(events)
            error = LedgerUnavailable("There is no room.")
            error.uncertain = True
            raise error
        return super().append_many(events)
