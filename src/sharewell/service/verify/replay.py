"""Replay: a curator without data, which hands out what a ledger says was released.

A mechanism decides what to buy from public things alone. So the mechanism that made the answers can be
run again: what it orders must be what was charged next, and what it is given is what was released then.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sharewell.config.config import Config
from sharewell.engine.data_vector import DataVector
from sharewell.errors import PrivacyError
from sharewell.mechanism.base import decode
from sharewell.privacy.accounts import Payer
from sharewell.privacy.budget import Amount, amount
from sharewell.privacy.curator import Curator, Decode, Report
from sharewell.privacy.ledger import Answered, Armed, Charged, Event, Exceeded, Released
from sharewell.privacy.measurement import Measurement, Order
from sharewell.privacy.noise import NoNoise
from sharewell.privacy.sparse_vector import SparseVector, SparseVectorPlan
from sharewell.query.linear import LinearQuery
from sharewell.service.verify.record import Record

#: How far a guess may be from the whole number that was stored for it: rounding, and a little more.
ROUNDED = 0.5 + 1e-6


class Departs(Exception):
    """The mechanism would have done something else than the ledger says; never leaves this package."""


class Tape:
    """The charges of a ledger, each to be handed out once, with what was released for it."""

    def __init__(self, record: Record) -> None:
        self.charges: dict[int, Charged] = {}
        self.released: dict[int, tuple[int, Released]] = {}
        self.armed: set[int] = set()
        #: Charges that an answer says it was made with.
        self.named: set[int] = set()
        for number, event in record:
            match event:
                case Charged():
                    self.charges[number] = event
                case Released(charge):
                    self.released.setdefault(charge, (number, event))
                case Armed(charge):
                    self.armed.add(charge)
                case Answered(_, answers):
                    charges = (answer.get("charge") for answer in answers)
                    self.named.update(charge for charge in charges if isinstance(charge, int))
        self.taken: set[int] = set()
        #: The last event that released anything of what was handed out.
        self.latest = -1
        self._order = list(self.charges)
        self._next: Iterator[int] = iter(())
        #: Positive tests that the present question is known to have had.
        self.tests: deque[Exceeded] = deque()

    def released_at(self, charge: int) -> float:
        """The number of the event that released what was charged for; infinite where none did."""
        return self.released[charge][0] if charge in self.released else math.inf

    def play_from(self, position: int) -> None:
        """Hand out what was charged from an event on, and was not handed out yet."""
        start = bisect_left(self._order, position)
        self._next = (self._order[at] for at in range(start, len(self._order)))

    def play(self, charges: Sequence[int]) -> None:
        """Hand out these charges."""
        self._next = iter(charges)

    def take(self, wanted: Charged) -> int:
        """The next charge, which must be the one that is wanted."""
        number = next((each for each in self._next if each not in self.taken), None)
        if number is None:
            raise Departs("something would have been bought that the ledger has no charge for")
        if self.charges[number] != wanted:
            raise Departs(f"something else would have been bought than event {number} charged for")
        if "measure" in wanted.purpose and number not in self.released:
            raise Departs(f"what event {number} paid for was never released")
        self.taken.add(number)
        if number in self.released:
            self.latest = max(self.latest, self.released[number][0])
        return number

    @property
    def rest(self) -> list[int]:
        """What was not handed out of what is being played."""
        return [number for number in self._next if number not in self.taken]


@dataclass
class Past:
    """What was handed out so far; all views of a curator share it."""

    measurements: list[Measurement] = field(default_factory=list)
    tests: dict[int, SparseVectorPlan] = field(default_factory=dict)
    positives: Counter[int] = field(default_factory=Counter)


class ReplayedCurator(Curator):
    """A curator over an empty table, whose measurements and tests come from a tape.

    Privacy: holds no data; what it gives was released before.
    """

    def __init__(self, config: Config, tape: Tape) -> None:
        empty = DataVector(config.domain, np.zeros(config.domain.size, dtype=np.int64))
        super().__init__(empty, config.budget, {}, neighbours=config.neighbours, noise=NoNoise())
        self.tape = tape
        self.past = Past()

    def fill(
        self, orders: Sequence[Order], *, before: Sequence[Event] = (), report: Report | None = None
    ) -> list[Measurement]:
        """What the tape holds for these orders; refuses others than were charged."""
        found = []
        for order in orders:
            try:
                number = self.tape.take(order.charged)
            except Departs:
                self.cancel(order)
                raise
            self._take([order])
            found.append(self._measurement(number, order))
        self.past.measurements += found
        return found

    def absorb(self, number: int) -> None:
        """Take in a charge that no order was made for: one that a crash has left behind."""
        charged = self.tape.charges[number]
        self._accounts.reserve(charged.bill)
        self.tape.taken.add(number)
        if "measure" not in charged.purpose:
            return
        cost = sum(charged.bill.values(), Fraction(0))
        block = decode(self.domain, charged.purpose["measure"])
        order = Order(block, self.scales(block, cost), cost, charged.bill)
        self.past.measurements.append(self._measurement(number, order))

    def _measurement(self, number: int, order: Order) -> Measurement:
        values = np.array(self.tape.released[number][1].values, dtype=np.int64)
        if len(values) != len(order.block):
            raise Departs(f"event {number} paid for another number of values than were released")
        variances = self._variances(order.scales)
        return Measurement(order.block, values, variances, order.cost, order.bill, number)

    def complete(self, decode: Decode) -> list[Measurement]:
        """Nothing: whatever was completed is in the ledger."""
        return []

    def history(self, decode: Decode) -> Iterator[Measurement]:
        """Every measurement that was handed out so far, in order."""
        for measurement in tuple(self.past.measurements):
            if self._only is None or set(measurement.bill) == {self._only}:
                yield measurement

    def sparse_vector(
        self, *, epsilon: Amount, threshold: int, positives: int, payer: Payer, sensitivity: int = 1
    ) -> SparseVector:
        """The sparse vector that the tape holds; refuses another than was charged."""
        exact = amount(epsilon, "epsilon")
        plan = SparseVectorPlan(exact, threshold, positives, sensitivity, self.neighbours)
        bill = self._bill(self.budget.cost_of_pure(exact), payer)
        number = self.tape.take(Charged(bill, {"sparse_vector": plan.to_json()}))
        self._accounts.reserve(bill)
        if number not in self.tape.armed:
            raise Departs(f"the sparse vector of event {number} was never armed")
        self.past.tests[number] = plan
        return ReplayedSparseVector(self, number)

    def sparse_vectors(self) -> list[SparseVector]:
        """The sparse vectors that were handed out, with the positives that each has left."""
        return [
            ReplayedSparseVector(self, number)
            for number in self.past.tests
            if self._sees(self.tape.charges[number])
        ]


class ReplayedSparseVector(SparseVector):
    """A sparse vector whose positive answers come from a tape. It knows no threshold."""

    def __init__(self, curator: ReplayedCurator, charge: int) -> None:
        plan = curator.past.tests[charge]
        left = plan.positives - curator.past.positives[charge]
        super().__init__(plan, curator.domain, lambda _: 0, NoNoise(), lambda *_: None, 0, left)
        self._charge = charge
        self._past = curator.past
        self._tests = curator.tape.tests

    def exceeds(self, query: LinearQuery, guess: float) -> bool:
        """Whether the ledger says that this guess was far off."""
        self._check(query, guess)
        if not self._tests:
            return False
        test = self._tests[0]
        if test.charge != self._charge or test.query != query.to_json():
            return False
        if abs(test.guess - guess) > ROUNDED:
            raise PrivacyError(f"The guess would have been {guess:.6g}, and {test.guess} was tested.")
        self._tests.popleft()
        self.positives_left -= 1
        self._past.positives[self._charge] += 1
        return True
