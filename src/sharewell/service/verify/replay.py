"""A curator without data, which hands out what a ledger says was released.

A mechanism decides what to buy from public information alone. So the mechanism that computed the answers
can run again: what it orders must be what was charged next, and what it receives is what was released.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from sharewell.config import Config
from sharewell.errors import PrivacyError
from sharewell.mechanisms.base import decode
from sharewell.mechanisms.base import is_seed as is_seed_form
from sharewell.privacy.accounts import Payer
from sharewell.privacy.budget import Amount, amount
from sharewell.privacy.curator import Decode
from sharewell.privacy.dry_run import DryCurator
from sharewell.privacy.history import StoredRelease
from sharewell.privacy.ledger import Answered, Armed, Charged, Event, Exceeded, Released
from sharewell.privacy.measurement import Measurement, Reservation
from sharewell.privacy.noise import NoNoise
from sharewell.privacy.sensitivity import checked
from sharewell.privacy.sparse_vector import SparseVector, SparseVectorPlan
from sharewell.query.block import GroupedBlock, ParallelBlock
from sharewell.query.linear import LinearQuery
from sharewell.service.verify.audit import LedgerSnapshot

#: How far a guess may be from the integer stored for it: rounding, and a little more.
MAX_ROUNDING = 0.5 + 1e-6


class ReplayMismatch(Exception):
    """The mechanism would have done something else than the ledger says; stays in this package."""


def is_seed(charged: Charged) -> bool:
    """Whether a charge pays for a seed: a strategy, not the rows of a question."""
    measured = charged.purpose.get("measure")
    return isinstance(measured, Mapping) and is_seed_form(measured)


class RecordedCharges:
    """The charges of a ledger, each handed out once, with the values released for it."""

    def __init__(self, snapshot: LedgerSnapshot) -> None:
        self.charges: dict[int, Charged] = {}
        #: For each charge the first and the last event that released its values, and the values.
        self.released: dict[int, tuple[int, int, StoredRelease]] = {}
        self.armed: set[int] = set()
        #: Charges that some answer names as its own.
        self.named: set[int] = set()
        for number, event in snapshot:
            match event:
                case Charged():
                    self.charges[number] = event
                case Released(charge):
                    first, _, release = self.released.get(charge, (number, number, StoredRelease()))
                    if first == number or release.is_continued_by(event):
                        release.add(event)
                        self.released[charge] = first, number, release
                case Armed(charge):
                    self.armed.add(charge)
                case Answered(_, answers):
                    charges = (answer.get("charge") for answer in answers)
                    self.named.update(charge for charge in charges if isinstance(charge, int))
        self.taken: set[int] = set()
        #: The last event that released anything handed out so far.
        self.latest = -1
        self._order = list(self.charges)
        self._next: Iterator[int] = iter(())
        #: Positive tests recorded for the current question.
        self.tests: deque[Exceeded] = deque()

    @property
    def seeds(self) -> list[Mapping[str, Any]]:
        """The seeds that were measured, in order."""
        return [each.purpose["measure"] for each in self.charges.values() if is_seed(each)]

    def released_at(self, charge: int) -> float:
        """The number of the event that released the last value of a charge; infinite if none did."""
        return self.released[charge][1] if charge in self.released else math.inf

    def next_after(self, charge: int) -> int:
        """The number of the first event after a charge and the release that directly follows it."""
        first, last, _ = self.released.get(charge, (-1, -1, None))
        return last + 1 if first == charge + 1 else charge + 2

    def offer_from(self, position: int) -> None:
        """Hand out the charges from an event on that were not handed out before."""
        start = bisect_left(self._order, position)
        self._next = (self._order[at] for at in range(start, len(self._order)))

    def offer(self, charges: Sequence[int]) -> None:
        """Hand out these charges."""
        self._next = iter(charges)

    def take(self, wanted: Charged, older: Callable[[], Charged] | None = None) -> int:
        """Take the next charge, which must be the wanted one, as it is written now or was before."""
        number = next((each for each in self._next if each not in self.taken), None)
        if number is None:
            raise ReplayMismatch("The mechanism would buy something that was not charged")
        charged = self.charges[number]
        if charged != wanted and (older is None or charged != older()):
            raise ReplayMismatch(f"The mechanism would buy something else than event {number} charged")
        if "measure" in wanted.purpose and number not in self.released:
            raise ReplayMismatch(f"The values of event {number} were never released")
        self.taken.add(number)
        if number in self.released:
            self.latest = max(self.latest, self.released[number][1])
        return number

    @property
    def rest(self) -> list[int]:
        """The offered charges that were not taken."""
        return [number for number in self._next if number not in self.taken]


class ReplayedCurator(DryCurator):
    """A curator over an empty table whose measurements and tests come from a ledger.

    Privacy: holds no data; everything it returns was released before.
    """

    def __init__(self, config: Config, recorded: RecordedCharges) -> None:
        super().__init__(config.collective.empty, config.budget, {}, neighbours=config.neighbours)
        self.recorded = recorded
        #: What was handed out so far; views share these.
        self.plans: dict[int, SparseVectorPlan] = {}
        self.positives: Counter[int] = Counter()

    def charge(
        self, reservations: Sequence[Reservation], before: Sequence[Event] = ()
    ) -> list[Measurement]:
        """The recorded measurements for these reservations; rejects those that were not charged."""
        found = []
        for reservation in reservations:
            try:
                number = self.recorded.take(reservation.charged, partial(_listed, reservation))
            except ReplayMismatch:
                self.release(reservation)
                raise
            self._claim([reservation])
            found.append(self._measurement(number, reservation))
        if before:
            self._append(before)
        self.measured += found
        return found

    def absorb(self, number: int) -> None:
        """Take in a charge without a reservation: one that a crash left behind."""
        charged = self.recorded.charges[number]
        self._accounts.reserve(charged.bill)
        self.recorded.taken.add(number)
        if "measure" not in charged.purpose:
            return
        cost = sum(charged.bill.values(), Fraction(0))
        block = decode(self.domain, charged.purpose["measure"])
        rows = checked(block, self.domain)
        reserved = Reservation(block, rows, self.scales(rows, cost), cost, charged.bill)
        self.measured.append(self._measurement(number, reserved))

    def book(self, bill: Mapping[str, Fraction]) -> None:
        """Charge payers for something that is never released."""
        self._accounts.reserve(bill)

    def end_sparse_vectors(self) -> None:
        """Leave the sparse vectors handed out so far without positive answers."""
        self.positives.update({n: plan.positives - self.positives[n] for n, plan in self.plans.items()})

    def _measurement(self, number: int, reserved: Reservation) -> Measurement:
        values = self.recorded.released[number][2].values
        if len(values) != len(reserved.block):
            raise ReplayMismatch(f"Event {number} paid for another number of values than were released")
        variances = self._variances(reserved.scales)
        return Measurement(reserved.block, values, variances, reserved.cost, reserved.bill, number)

    def complete(self, decode: Decode) -> list[Measurement]:
        """Nothing: what was completed is in the ledger."""
        return []

    def history(self, decode: Decode) -> list[Measurement]:
        """Every measurement handed out so far, in order."""
        only = self._only
        return [each for each in self.measured if only is None or set(each.bill) == {only}]

    def sparse_vector(
        self, *, epsilon: Amount, threshold: int, positives: int, payer: Payer, sensitivity: int = 1
    ) -> SparseVector:
        """The recorded sparse vector; rejects one that was not charged."""
        exact = amount(epsilon, "epsilon")
        plan = SparseVectorPlan(
            exact, threshold, positives, sensitivity, self.neighbours, self.max_rows_per_person
        )
        bill = self._bill(self.budget.cost_of_pure(exact), payer)
        number = self.recorded.take(Charged(bill, {"sparse_vector": plan.to_json()}))
        self._accounts.reserve(bill)
        if number not in self.recorded.armed:
            raise ReplayMismatch(f"The sparse vector of event {number} was never armed")
        self.plans[number] = plan
        return ReplayedSparseVector(self, number)

    def sparse_vectors(self) -> list[SparseVector]:
        """The sparse vectors handed out so far, with the positives that each has left."""
        return [
            ReplayedSparseVector(self, number)
            for number in self.plans
            if self._sees(self.recorded.charges[number])
        ]


def _listed(reserved: Reservation) -> Charged:
    """The charge as it was written while the rows of a GROUP BY were listed one by one."""
    block = reserved.block
    if not isinstance(block, GroupedBlock):
        return reserved.charged
    rows = ParallelBlock(block.domain, block.queries)
    return replace(reserved.charged, purpose={**reserved.charged.purpose, "measure": rows.to_json()})


class ReplayedSparseVector(SparseVector):
    """A sparse vector whose positive answers come from a ledger; it knows no threshold."""

    def __init__(self, curator: ReplayedCurator, charge: int) -> None:
        plan = curator.plans[charge]
        left = plan.positives - curator.positives[charge]
        super().__init__(plan, curator.domain, lambda _: 0, NoNoise(), lambda *_: None, 0, left)
        self._charge = charge
        self._positives = curator.positives
        self._tests = curator.recorded.tests

    def exceeds(self, query: LinearQuery, guess: float) -> bool:
        """Whether the ledger records a positive test for this guess."""
        self._check(query, guess)
        if not self._tests:
            return False
        test = self._tests[0]
        if test.charge != self._charge or test.query != query.to_json():
            return False
        if abs(test.guess - guess) > MAX_ROUNDING:
            raise PrivacyError(f"The guess would be {guess:.6g}, and {test.guess} was tested.")
        self._tests.popleft()
        self.positives_left -= 1
        self._positives[self._charge] += 1
        return True
