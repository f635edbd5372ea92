"""Check the accounts: shares within the total, charges within shares, releases that were paid for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import numpy as np

from sharewell.config import Config
from sharewell.mechanisms.base import decode, is_seed
from sharewell.privacy.accounts import plain
from sharewell.privacy.curator import Curator
from sharewell.privacy.dry_run import DryCurator
from sharewell.privacy.history import stored_rows
from sharewell.privacy.ledger import (
    Armed,
    Asked,
    Begun,
    Charged,
    Configured,
    CuratorAction,
    Done,
    Event,
    Exceeded,
    Granted,
    Left,
    Opened,
    Recovered,
    Released,
    RoundClosed,
    SourceChanged,
    Turn,
)
from sharewell.privacy.measurement import scale_runs
from sharewell.privacy.sparse_vector import SparseVectorPlan
from sharewell.query.block import Measurable, Neighbours, ParallelBlock
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery
from sharewell.service.verify.audit import MALFORMED, Audit, LedgerSnapshot, read_settings

#: The most weights of a block that are written out to check its units.
MOST_WEIGHTS = 200_000


class AccountsAudit(Audit):
    """Checks every event that concerns the budget."""

    name = "accounts"

    def __init__(self, snapshot: LedgerSnapshot) -> None:
        super().__init__(snapshot)
        self._dataset = ""
        #: Whether an event was seen that belongs after the opening of a dataset.
        self._has_started = False
        self._opened: Opened | None = None
        self._curator: Curator | None = None
        self._shares: dict[str, Fraction] = {}
        self._spent: dict[str, Fraction] = {}
        self._gone: set[str] = set()
        #: How many values each charge for a measurement must release.
        self._rows: dict[int, int] = {}
        self._plans: dict[int, SparseVectorPlan | None] = {}
        self._released: set[int] = set()
        #: The next event, its charge and its number of values, if it must continue a release.
        self._continued: tuple[int, int, int] | None = None
        #: The next event, and what it must charge, if a round was closed.
        self._closing: tuple[int, dict[str, Fraction]] | None = None
        self._pending: set[int] = set()
        self._settings: Configured | None = None
        self._armed: set[int] = set()
        self._positives: Counter[int] = Counter()

    def visit(self, number: int, event: Event) -> None:
        """Check the next event."""
        if self._continued and not isinstance(event, Released):
            self._report_part()
        if isinstance(event, Asked | Turn | Done | Left | RoundClosed | Exceeded) and self._pending:
            self._report_overdue(number)
        if self._closing:
            self._check_closing(number, event)
        if isinstance(event, Begun | CuratorAction):
            self._administer(number, event)
            return
        if not self._has_started and not isinstance(event, Opened):
            self.fault("not-opened", number, "The first event does not open a dataset.")
        self._has_started = True
        match event:
            case Opened():
                self._open(number, event)
            case Configured():
                self._configure(number, event)
            case Granted(payer, share):
                self._grant(number, payer, share)
            case Left(payer):
                self._leave(number, payer)
            case RoundClosed(payers):
                self._close_round(number, payers)
            case Charged():
                self._charge(number, event)
            case Released():
                self._release(number, event)
            case Recovered():
                self._recover(number, event)
            case Armed(charge):
                self._arm(number, charge)
            case SourceChanged():
                self.check.note("source-changed", number, "The source of the data has changed.")
            case Exceeded():
                self._exceed(number, event)

    def finish(self) -> None:
        """Report what is still open at the end."""
        if not len(self.snapshot):
            self.fault("not-opened", None, "The ledger is empty: no dataset was opened.")
        self.check.count("payers", len(self._shares))
        if self._continued:
            self._report_part()
        if self._closing:
            self._check_closing(len(self.snapshot), None)
        for charge in self._rows.keys() - self._released:
            text = "What was paid for is not released yet; the next start releases it."
            self.check.note("not-released", charge, text)
        for charge in self._plans.keys() - self._armed:
            text = "The sparse vector is not armed yet; the next start arms it."
            self.check.note("not-armed", charge, text)

    def _open(self, number: int, opened: Opened) -> None:
        if self._opened is not None:
            self.fault("opened-twice", number, "The dataset is opened again.")
        elif opened.total <= 0:
            self.fault("amount", number, "The budget is not positive.")
        self._opened = self._opened or opened

    def _configure(self, number: int, event: Configured) -> None:
        config = read_settings(event)
        if config is None:
            self.fault("settings", number, "The settings are not a valid configuration.")
            return
        self.check.count("settings")
        if event == self._settings:
            self.fault("settings", number, "The settings repeat those in force.")
        if self._settings is not None and event.signed_rows != self._settings.signed_rows:
            self.fault("settings", number, "The settings change whether counts are signed rows.")
        self._settings = event
        if self._opened is not None:
            self._compare(number, config, self._opened)
        for payer, share in config.shares.items():
            if self._shares.get(payer) != share and not self.has_gap:
                self.fault("settings", number, f"The settings give {payer} another share.")
        if self._curator is None:
            empty = config.collective.empty
            self._curator = DryCurator(empty, config.budget, {}, neighbours=config.neighbours)

    def _administer(self, number: int, event: Begun | CuratorAction) -> None:
        if isinstance(event, CuratorAction):
            self.check.count("actions of curators")
        elif self._dataset:
            self.fault("begun-twice", number, "The ledger is begun a second time.")
        else:
            self._dataset = event.dataset

    def _recover(self, number: int, event: Recovered) -> None:
        """Book what was lost, and allow nothing more for the charges before."""
        self.check.note("recovered", number, "Events were lost; what they spent is booked as spent.")
        for payer, cost in event.bill.items():
            self._pay(number, payer, cost, may_have_left=True)
        self._released |= self._rows.keys()
        self._armed |= self._plans.keys()
        self._pending.clear()
        for charge, plan in self._plans.items():
            self._positives[charge] = 0 if plan is None else plan.positives

    def _compare(self, number: int, config: Config, opened: Opened) -> None:
        most = config.max_rows_per_person
        stated = Opened.of(config.budget, config.neighbours, config.domain, most)
        for what, value in asdict(stated).items():
            if getattr(opened, what) != value:
                self.fault("settings", number, f"The dataset was opened with another {what}.")

    def _grant(self, number: int, payer: str, share: Fraction) -> None:
        self.check.count("shares")
        if payer in self._shares:
            self.fault("granted-twice", number, f"{payer} is granted a second share.")
            return
        if share <= 0:
            self.fault("amount", number, "The share is not positive.")
        self._shares[payer], self._spent[payer] = share, Fraction(0)
        granted = sum(self._shares.values(), Fraction(0))
        if self._opened is not None and granted > self._opened.total:
            text = f"The shares sum to {plain(granted)} of a budget of {plain(self._opened.total)}."
            self.fault("over-total", number, text)

    def _leave(self, number: int, payer: str) -> None:
        self.check.count("departures")
        if payer not in self._shares and not self.has_gap:
            self.fault("no-share", number, f"{payer} leaves without a share.")
        elif payer in self._gone:
            self.fault("has-left", number, f"{payer} leaves a second time.")
        self._gone.add(payer)

    def _close_round(self, number: int, payers: tuple[str, ...]) -> None:
        """Note what those who are done have left: the next event must charge all of it."""
        self.check.count("closed rounds")
        left = {
            payer: self._shares[payer] - self._spent[payer]
            for payer in payers
            if payer in self._shares and payer not in self._gone
        }
        if len(left) < len(payers) and not self.has_gap:
            self.fault("no-share", number, "A round is closed for payers without a share.")
        self._closing = number + 1, {payer: rest for payer, rest in left.items() if rest}

    def _check_closing(self, number: int, event: Event | None) -> None:
        """Check that the event after a closed round charges for a seed all that the payers had left."""
        due, rest = self._closing or (number, {})
        self._closing = None
        measured = event.purpose.get("measure") if isinstance(event, Charged) else None
        is_paid = isinstance(event, Charged) and number == due and dict(event.bill) == rest
        if not self.has_gap and not (is_paid and isinstance(measured, Mapping) and is_seed(measured)):
            text = "What those who are done had left is not charged together for the seed."
            self.fault("round", due - 1, text)

    def _charge(self, number: int, charged: Charged) -> None:
        self.check.count("charges")
        if not charged.bill:
            self.fault("amount", number, "The charge has no payer.")
        for payer, cost in charged.bill.items():
            self._pay(number, payer, cost)
        try:
            self._read_purpose(number, charged)
        except MALFORMED:
            self.fault("purpose", number, "The purpose of the charge cannot be read.")

    def _pay(self, number: int, payer: str, cost: Fraction, *, may_have_left: bool = False) -> None:
        if cost <= 0:
            self.fault("amount", number, f"The charge to {payer} is not positive.")
        if payer in self._gone and not may_have_left:
            self.fault("has-left", number, f"{payer} is charged after leaving.")
        if payer not in self._shares:
            if not self.has_gap:
                self.fault("no-share", number, f"{payer} is charged without a share.")
            return
        self._spent[payer] += cost
        spent, share = self._spent[payer], self._shares[payer]
        if spent > share:
            self.fault(
                "overspent", number, f"{payer} spent {plain(spent)} of a share of {plain(share)}."
            )

    def _read_purpose(self, number: int, charged: Charged) -> None:
        """Record what a charge pays for, and check that its noise has the scale that the cost buys."""
        cost = sum(charged.bill.values(), Fraction(0))
        kinds = set(charged.purpose)
        if kinds == {"sparse_vector"}:
            self._plans[number] = None
            plan = SparseVectorPlan.from_json(charged.purpose["sparse_vector"])
            self._plans[number] = plan
            if self._curator is None:
                return
            paid = self._curator.budget.cost_of_pure(plan.epsilon) == cost
            terms = self._curator.neighbours, self._curator.max_rows_per_person
            if not paid or (plan.neighbours, plan.max_rows_per_person) != terms:
                self._report_noise(number)
        elif kinds == {"measure", "scales"}:
            self._rows[number] = stored_rows(charged)
            self._pending.add(number)
            if self._curator is None:
                return
            block = _read_block(self._curator.domain, charged.purpose["measure"])
            stated = scale_runs(self._curator.scales(block, cost)) == charged.purpose["scales"]
            if not stated or not has_own_units(block, self._curator.neighbours):
                self._report_noise(number)
        else:
            self.fault("purpose", number, "The charge does not say what it pays for.")

    def _report_noise(self, number: int) -> None:
        self.fault("noise", number, "The stated noise is not what the cost buys.")

    def _release(self, number: int, event: Released) -> None:
        charge, found = event.charge, len(event.values) + event.rest
        is_first = self._continued != (number, charge, found)
        if is_first and self._continued:
            self._report_part()
        self._continued = (number + 1, charge, event.rest) if event.rest else None
        if not is_first:
            return
        self.check.count("releases")
        if charge not in self._rows:
            self._report_unpaid(number, charge, "releases values for")
        elif charge in self._released:
            self.fault("released-twice", number, f"The values of event {charge} are released again.")
        elif found != self._rows[charge]:
            text = f"{found} values are released; event {charge} paid for {self._rows[charge]}."
            self.fault("rows", number, text)
        self._released.add(charge)
        self._pending.discard(charge)

    def _report_part(self) -> None:
        """All values of a charge are released in one commit, one event directly after the other."""
        number, charge, rest = self._continued or (0, 0, 0)
        if not self.has_gap:
            text = f"{rest} values of event {charge} are missing after it."
            self.fault("rows", number - 1, text)
        self._continued = None

    def _report_overdue(self, number: int) -> None:
        """Nothing new starts before every charge is released, not even after a crash."""
        for charge in sorted(self._pending):
            if not self.has_gap:
                self.fault("unreleased", charge, f"The charge is not released before event {number}.")
        self._pending.clear()

    def _arm(self, number: int, charge: int) -> None:
        if charge not in self._plans:
            self._report_unpaid(number, charge, "arms a sparse vector for")
        elif charge in self._armed:
            self.fault("armed-twice", number, f"The sparse vector of event {charge} is armed again.")
        self._armed.add(charge)

    def _exceed(self, number: int, event: Exceeded) -> None:
        self.check.count("positive tests")
        charge = event.charge
        if charge not in self._armed or charge not in self._plans:
            if charge not in self._plans or not self.has_gap:
                self._report_unpaid(number, charge, "reports a test of")
            return
        self._positives[charge] += 1
        plan = self._plans[charge]
        if plan is not None and self._positives[charge] > plan.positives:
            self.fault("exhausted", number, f"More positive answers than event {charge} paid for.")
        if self._curator is not None:
            try:
                LinearQuery.from_json(self._curator.domain, event.query)
            except MALFORMED:
                self.fault("purpose", number, "The tested query cannot be read.")

    def _report_unpaid(self, number: int, charge: int, does: str) -> None:
        if not self.snapshot.is_lost(charge):
            text = f"The event {does} event {charge}, which is not an earlier charge for it."
            self.fault("no-charge", number, text)


def has_own_units(block: Measurable, neighbours: Neighbours) -> bool:
    """Whether the units of a block's rows are what one person can change in them, cell by cell.

    The kernel computes them from diagrams; here all weights are written out, where there are few.
    """
    domain = block.domain
    if not isinstance(block, ParallelBlock) or domain.size * len(block) > MOST_WEIGHTS:
        return True
    units = []
    for row in block:
        weights = row.to_vector().reshape(-1, domain.vectors)
        low, high, at = weights[:, 0], weights[:, 0], 1
        for measure in domain.measures:
            # A row without a value adds nothing; one with a value adds a count where it may have none.
            options = [np.zeros(len(weights))] if measure.nullable else []
            counted = weights[:, at] if measure.nullable else 0.0
            at += measure.nullable
            options += [counted + weights[:, at] * end for end in (measure.lowest, measure.highest)]
            at += 1
            low, high = low + np.min(options, axis=0), high + np.max(options, axis=0)
        for product in domain.product_vectors:
            options = [weights[:, at] * end for end in (product.lowest, product.highest)]
            at += 1
            low, high = low + np.min(options, axis=0), high + np.max(options, axis=0)
        least, most = min(low.min(), 0.0), max(high.max(), 0.0)
        units.append(max(most, -least) if neighbours == "add-remove" else most - least)
    return bool(np.array_equal(block.units(neighbours), units))


def _read_block(domain: Domain, data: Mapping[str, Any]) -> Measurable:
    """Decode a measured block, and check that its rows are disjoint if it says so."""
    block = decode(domain, data)
    return ParallelBlock.of(block) if isinstance(block, ParallelBlock) else block
