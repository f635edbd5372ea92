"""The accounts: shares within the total, charges within the shares, and releases that were paid for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from sharewell.config.config import Config
from sharewell.engine.data_vector import DataVector
from sharewell.errors import SharewellError
from sharewell.mechanism.base import decode
from sharewell.privacy.accounts import plain
from sharewell.privacy.curator import Curator
from sharewell.privacy.ledger import (
    Armed,
    Asked,
    Charged,
    Configured,
    Done,
    Event,
    Exceeded,
    Granted,
    Left,
    Opened,
    Released,
    Turn,
)
from sharewell.privacy.noise import NoNoise
from sharewell.privacy.sparse_vector import SparseVectorPlan
from sharewell.query.block import Measurable, ParallelBlock
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell.service.verify.finding import Check
from sharewell.service.verify.record import Record, config_of

#: What damaged plain data may raise when it is read.
MALFORMED = (
    SharewellError,
    KeyError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    IndexError,
)


def check_accounts(record: Record) -> Check:
    """Look at everything that concerns the budget, event by event."""
    check = Check("accounts")
    walk = _Walk(record, check)
    for number, event in record:
        walk.visit(number, event)
    walk.finish()
    return check


class _Walk:
    def __init__(self, record: Record, check: Check) -> None:
        self._record = record
        self._check = check
        self._opened: Opened | None = None
        self._curator: Curator | None = None
        self._shares: dict[str, Fraction] = {}
        self._spent: dict[str, Fraction] = {}
        self._gone: set[str] = set()
        #: How many values each charge for a measurement is to release.
        self._rows: dict[int, int] = {}
        self._plans: dict[int, SparseVectorPlan | None] = {}
        self._released: set[int] = set()
        self._pending: set[int] = set()
        self._settings: Configured | None = None
        self._armed: set[int] = set()
        self._positives: Counter[int] = Counter()

    def visit(self, number: int, event: Event) -> None:
        if isinstance(event, Asked | Turn | Done | Left | Exceeded) and self._pending:
            self._overdue(number)
        if number == 0 and not isinstance(event, Opened):
            self._check.fault("not-opened", "Event 0 does not open a dataset.", 0)
        match event:
            case Opened():
                self._open(number, event)
            case Configured():
                self._configure(number, event)
            case Granted(payer, share):
                self._grant(number, payer, share)
            case Left(payer):
                self._leave(number, payer)
            case Charged():
                self._charge(number, event)
            case Released():
                self._release(number, event)
            case Armed(charge):
                self._arm(number, charge)
            case Exceeded():
                self._exceed(number, event)

    def finish(self) -> None:
        if not len(self._record):
            self._check.fault("not-opened", "There are no events: no dataset was ever opened.")
        self._check.count("payers", len(self._shares))
        for charge in self._rows.keys() - self._released:
            self._check.note(
                "not-released",
                f"What event {charge} paid for was not released yet; the next start will do it.",
                charge,
            )
        for charge in self._plans.keys() - self._armed:
            self._check.note(
                "not-armed",
                f"The sparse vector of event {charge} was not armed yet; the next start will do it.",
                charge,
            )

    def _open(self, number: int, opened: Opened) -> None:
        if number:
            self._check.fault("opened-twice", f"Event {number} opens the dataset again.", number)
        elif opened.total <= 0:
            self._check.fault("amount", f"The budget of event {number} is not positive.", number)
        self._opened = self._opened or opened

    def _configure(self, number: int, event: Configured) -> None:
        config = config_of(event)
        if config is None:
            self._check.fault(
                "settings", f"The settings of event {number} are no configuration.", number
            )
            return
        self._check.count("settings")
        if event == self._settings:
            self._check.fault("settings", f"Event {number} states the settings in force again.", number)
        self._settings = event
        if self._opened is not None:
            self._compare(number, config, self._opened)
        for payer, share in config.shares.items():
            if self._shares.get(payer) != share and not self._unsure:
                self._check.fault(
                    "settings",
                    f"The settings of event {number} give {payer} another share than the ledger does.",
                    number,
                )
        if self._curator is None:
            empty = DataVector(config.domain, np.zeros(config.domain.size, dtype=np.int64))
            self._curator = Curator(
                empty, config.budget, {}, neighbours=config.neighbours, noise=NoNoise()
            )

    def _compare(self, number: int, config: Config, opened: Opened) -> None:
        stated = {
            "currency": config.budget.currency,
            "epsilon": config.budget.epsilon,
            "delta": config.budget.delta,
            "total": config.budget.total,
            "neighbours": config.neighbours,
            "domain": config.domain.fingerprint,
        }
        for what, value in stated.items():
            if getattr(opened, what) != value:
                self._check.fault(
                    "settings",
                    f"The dataset was opened with another {what} than the settings of event {number} "
                    "have.",
                    number,
                )

    @property
    def _unsure(self) -> bool:
        """Whether events cannot be read, so that what seems to be missing may have been there."""
        return self._record.gap is not None

    def _grant(self, number: int, payer: str, share: Fraction) -> None:
        self._check.count("shares")
        if payer in self._shares:
            self._check.fault("granted-twice", f"Event {number} gives {payer} a second share.", number)
            return
        if share <= 0:
            self._check.fault("amount", f"The share that event {number} gives is not positive.", number)
        self._shares[payer], self._spent[payer] = share, Fraction(0)
        given = sum(self._shares.values(), Fraction(0))
        if self._opened is not None and given > self._opened.total:
            self._check.fault(
                "over-total",
                f"With event {number} the shares sum to {plain(given)}, and the budget is "
                f"{plain(self._opened.total)}.",
                number,
            )

    def _leave(self, number: int, payer: str) -> None:
        self._check.count("departures")
        if payer not in self._shares and not self._unsure:
            self._check.fault("no-share", f"{payer} leaves in event {number} without a share.", number)
        elif payer in self._gone:
            self._check.fault("has-left", f"{payer} leaves in event {number} a second time.", number)
        self._gone.add(payer)

    def _charge(self, number: int, charged: Charged) -> None:
        self._check.count("charges")
        if not charged.bill:
            self._check.fault("amount", f"Nobody pays for event {number}.", number)
        for payer, cost in charged.bill.items():
            self._pay(number, payer, cost)
        try:
            self._understand(number, charged)
        except MALFORMED:
            self._check.fault("purpose", f"What event {number} paid for cannot be read.", number)

    def _pay(self, number: int, payer: str, cost: Fraction) -> None:
        if cost <= 0:
            self._check.fault(
                "amount", f"Event {number} charges {payer} an amount that is not positive.", number
            )
        if payer in self._gone:
            self._check.fault("has-left", f"Event {number} charges {payer}, who has left.", number)
        if payer not in self._shares:
            if not self._unsure:
                self._check.fault(
                    "no-share", f"Event {number} charges {payer}, who holds no share.", number
                )
            return
        self._spent[payer] += cost
        if self._spent[payer] > self._shares[payer]:
            self._check.fault(
                "overspent",
                f"With event {number} {payer} has spent {plain(self._spent[payer])} of a share of "
                f"{plain(self._shares[payer])}.",
                number,
            )

    def _understand(self, number: int, charged: Charged) -> None:
        """Note what a charge pays for, and see that its noise is as wide as the cost allows."""
        cost = sum(charged.bill.values(), Fraction(0))
        kinds = set(charged.purpose)
        if kinds == {"sparse_vector"}:
            self._plans[number] = None
            plan = SparseVectorPlan.from_json(charged.purpose["sparse_vector"])
            self._plans[number] = plan
            if self._curator is None:
                return
            fits = self._curator.budget.cost_of_pure(plan.epsilon) == cost
            if not fits or plan.neighbours != self._curator.neighbours:
                self._too_cheap(number)
        elif kinds == {"measure", "scales"}:
            self._rows[number] = len(charged.purpose["scales"])
            self._pending.add(number)
            if self._curator is None:
                return
            block = _block(self._curator.domain, charged.purpose["measure"])
            scales = self._curator.scales(block, cost)
            if [scale.hex() for scale in scales.tolist()] != charged.purpose["scales"]:
                self._too_cheap(number)
        else:
            self._check.fault("purpose", f"Event {number} does not say what was paid for.", number)

    def _too_cheap(self, number: int) -> None:
        self._check.fault(
            "noise", f"The noise that event {number} states is not the one that its cost buys.", number
        )

    def _release(self, number: int, event: Released) -> None:
        self._check.count("releases")
        charge = event.charge
        if charge not in self._rows:
            self._unpaid(number, charge, "releases values for")
        elif charge in self._released:
            self._check.fault(
                "released-twice", f"Event {number} releases what event {charge} paid for again.", number
            )
        elif len(event.values) != self._rows[charge]:
            self._check.fault(
                "rows",
                f"Event {number} releases {len(event.values)} values, and event {charge} paid for "
                f"{self._rows[charge]}.",
                number,
            )
        self._released.add(charge)
        self._pending.discard(charge)

    def _overdue(self, number: int) -> None:
        """Nothing new is begun before what was charged is released: not even after a crash."""
        for charge in sorted(self._pending):
            if not self._unsure:
                self._check.fault(
                    "unreleased",
                    f"Event {charge} was charged, and not released before event {number}.",
                    charge,
                )
        self._pending.clear()

    def _arm(self, number: int, charge: int) -> None:
        if charge not in self._plans:
            self._unpaid(number, charge, "arms a sparse vector for")
        elif charge in self._armed:
            self._check.fault(
                "armed-twice", f"Event {number} arms the sparse vector of event {charge} again.", number
            )
        self._armed.add(charge)

    def _exceed(self, number: int, event: Exceeded) -> None:
        self._check.count("positive tests")
        charge = event.charge
        if charge not in self._armed or charge not in self._plans:
            if charge not in self._plans or not self._unsure:
                self._unpaid(number, charge, "reports a test of")
            return
        self._positives[charge] += 1
        plan = self._plans[charge]
        if plan is not None and self._positives[charge] > plan.positives:
            self._check.fault(
                "exhausted",
                f"Event {number} is one positive answer more than event {charge} paid for.",
                number,
            )
        if self._curator is not None:
            try:
                LinearQuery.from_json(self._curator.domain, event.query)
            except MALFORMED:
                self._check.fault("purpose", f"What event {number} tested cannot be read.", number)

    def _unpaid(self, number: int, charge: int, does: str) -> None:
        if not self._record.lost(charge):
            self._check.fault(
                "no-charge",
                f"Event {number} {does} event {charge}, which is no earlier charge for that.",
                number,
            )


def _block(domain: Domain, data: Mapping[str, Any]) -> Measurable:
    """What was measured; a single row shares no cell with others, which takes long to find out."""
    if data["kind"] == ParallelBlock.kind and len(data["queries"]) == 1:
        row = LinearQuery.from_json(domain, data["queries"][0])
        return ParallelBlock(domain, [row], disjoint=True)
    return decode(domain, data)
