"""The curator: the only object that holds the data, and the only way to learn anything from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from fractions import Fraction
from threading import Lock
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from sharewell.engine.data_vector import DataVector
from sharewell.errors import PrivacyError, UnknownPayer
from sharewell.privacy.accounts import Accounts, Payer
from sharewell.privacy.budget import Amount, Budget, amount
from sharewell.privacy.ledger import (
    Armed,
    Charged,
    Event,
    Exceeded,
    Ledger,
    MemoryLedger,
    Opened,
    Released,
)
from sharewell.privacy.measurement import Measurement, Order
from sharewell.privacy.noise import (
    ExactNoise,
    Noise,
    gaussian_scale,
    gaussian_variance,
    laplace_scale,
    laplace_variance,
)
from sharewell.privacy.sparse_vector import SparseVector, SparseVectorPlan
from sharewell.query.block import Block, Measurable, Neighbours
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: Makes a block from its plain data.
Decode = Callable[[Domain, Mapping[str, Any]], Measurable]


#: Says which events to store for what was measured.
Report = Callable[[Sequence[Measurement]], Sequence[Event]]


class Curator:
    """Holds a data vector and a budget; `measure` and a sparse vector's `exceeds` are the only ways in.

    Every verb keeps to one order: check what is public, charge, wait until the ledger has stored the
    charge, only then draw noise and touch the data, store what is released, return it. A charge is
    never given back. After it, nothing that happens depends on a true count except the value itself.

    Privacy: all measurements and tests together cost at most `budget.total`, in its currency.
    """

    def __init__(
        self,
        data: DataVector,
        budget: Budget,
        shares: Mapping[str, Amount],
        *,
        neighbours: Neighbours = "add-remove",
        noise: Noise | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        if not isinstance(data, DataVector) or not isinstance(budget, Budget):
            raise PrivacyError(
                "A curator needs a data vector and a budget.",
                hint='Make them with vectorize(...) and Budget.pure("1").',
            )
        if neighbours not in get_args(Neighbours):
            raise PrivacyError(
                f"Tables cannot be neighbours by {neighbours!r}.",
                hint='Use "add-remove" or "replace-one".',
            )
        self.budget = budget
        self.neighbours = neighbours
        self._data = data
        self._only: str | None = None
        self._noise = ExactNoise() if noise is None else noise
        self._ledger = MemoryLedger() if ledger is None else ledger
        opened = Opened.of(budget, neighbours, data.domain)
        self._accounts = Accounts(budget, shares, self._ledger, opened)
        self._lock = Lock()
        #: Orders that were placed here and neither filled nor given up; views share them.
        self._orders: set[Order] = set()
        #: What was charged before this curator was opened and never released.
        self._unfinished = self._find_unfinished()

    @property
    def domain(self) -> Domain:
        """The public domain of the data."""
        return self._data.domain

    @property
    def payers(self) -> tuple[str, ...]:
        """Everybody who holds a share and has not left; in a view, its own payer."""
        payers = self._accounts.payers
        return payers if self._only is None else tuple(p for p in payers if p == self._only)

    def serves(self, payer: str) -> bool:
        """Whether somebody is among the payers."""
        return payer in self._accounts and self._only in (None, payer)

    def share(self, payer: str) -> Fraction:
        """What a payer was given."""
        return self._accounts.share(payer)

    def spent(self, payer: str) -> Fraction:
        """What a payer has been charged so far."""
        return self._accounts.spent(payer)

    def left(self, payer: str) -> Fraction:
        """What a payer may still spend."""
        return self._accounts.left(payer)

    @property
    def unallocated(self) -> Fraction:
        """What is left of the total for new payers."""
        return self._accounts.unallocated

    def grant(self, payer: str, share: Amount) -> None:
        """Give a new payer a share of what nobody holds yet."""
        self._accounts.grant(payer, share)

    def retire(self, payer: str) -> None:
        """Let a payer go: what they have left stays unspent for good."""
        self._accounts.retire(payer)

    def alone(self, payer: str) -> Curator:
        """The same curator, ledger and budget, as if this payer were the only one."""
        self._accounts.require(payer)
        view = copy(self)
        view._only = payer
        return view

    def scales(self, block: Measurable, cost: Amount) -> NDArray[np.float64]:
        """The scale of the noise on each row that a cost buys for a block; public."""
        exact = amount(cost, "The cost")
        if block.domain != self.domain:
            raise PrivacyError("The block is over another domain than the data.")
        units = block.units(self.neighbours)
        if self.budget.currency == "pure":
            sensitivity = block.l1_sensitivity(self.neighbours)
            return _per_value(units, lambda unit: laplace_scale(unit * sensitivity, exact))
        squared = block.l2_sensitivity_squared(self.neighbours)
        return _per_value(units, lambda unit: gaussian_scale(unit**2 * squared, exact))

    def variances(self, block: Measurable, cost: Amount) -> NDArray[np.float64]:
        """The exact variance of each value that a cost buys for a block; public, spends nothing."""
        return self._variances(self.scales(block, cost))

    def _variances(self, scales: NDArray[np.float64]) -> NDArray[np.float64]:
        pure = self.budget.currency == "pure"
        return _per_value(scales, laplace_variance if pure else gaussian_variance)

    def measure(self, block: Measurable | LinearQuery, cost: Amount, payer: Payer) -> Measurement:
        """Every row of a block, or one query, with exact discrete noise, for a cost charged first.

        Privacy: costs `cost`. Trusts the block's sensitivity, which is computed from public weights.
        """
        return self.fill([self.order(block, cost, payer)])[0]

    def order(self, block: Measurable | LinearQuery, cost: Amount, payer: Payer) -> Order:
        """Check that something can be measured, and set its cost aside; `fill` charges and measures.

        Privacy: costs nothing yet, and touches no data.
        """
        if isinstance(block, LinearQuery):
            block = Block(block.domain, [block])
        if not hasattr(block, "l1_sensitivity"):
            raise PrivacyError(
                f"A {type(block).__name__} cannot be measured.",
                hint="Give a query or a block, such as those of compile_sql(...).blocks.",
            )
        exact = amount(cost, "The cost")
        bill = self._bill(exact, payer)
        if not len(block):
            raise PrivacyError("There is nothing to measure: the block has no rows.")
        scales = self.scales(block, exact)
        scales.flags.writeable = False
        self._accounts.reserve(bill)
        order = Order(block, scales, exact, bill)
        with self._lock:
            self._orders.add(order)
        return order

    def cancel(self, order: Order) -> None:
        """Give up an order that was not filled: nothing was charged for it."""
        self._take([order])
        self._accounts.free(order.bill)

    def holds(self, order: Order) -> bool:
        """Whether an order was placed here, and neither filled nor given up."""
        return order in self._orders

    def fill(
        self, orders: Sequence[Order], *, before: Sequence[Event] = (), report: Report | None = None
    ) -> list[Measurement]:
        """Charge several orders in one breath, and when that is stored, measure them all.

        `before` are events to store ahead of the charges. `report` is given the measurements and says
        which events to store for them: it puts others beside the `Released` ones, which it must keep.
        What was measured is returned when all of that is stored, and not before.

        Privacy: costs what the orders cost. Each is charged once, and filled once.
        """
        if not orders and not before:
            return []
        self._take(orders)
        numbers = self._accounts.charge([order.charged for order in orders], after=before)
        # Drawn for all orders together: each draw is its own, and many at once take little longer.
        noise = self._draw(np.concatenate([np.zeros(0), *(order.scales for order in orders)]))
        ends = np.cumsum([len(order.scales) for order in orders])
        parts = np.split(noise, ends[:-1]) if orders else []
        found = [self._add(*each) for each in zip(orders, numbers, parts, strict=True)]
        released = [measurement.released for measurement in found]
        events = released if report is None else list(report(found))
        if [event for event in events if isinstance(event, Released)] != released:
            raise PrivacyError("What was released must be stored as it is, in order.")
        self._ledger.append_many(events)
        return found

    def _take(self, orders: Sequence[Order]) -> None:
        """Take orders out, all or none: each was placed here, and is used once."""
        with self._lock:
            if len(set(orders) & self._orders) < len(orders):
                raise PrivacyError(
                    "An order is filled once, by the curator that it was placed with.",
                    hint="Place a new one.",
                )
            self._orders.difference_update(orders)

    def _draw_for(self, order: Order, charge: int) -> Measurement:
        """Noisy values for what was charged."""
        return self._add(order, charge, self._draw(order.scales))

    def _add(self, order: Order, charge: int, values: NDArray[np.int64]) -> Measurement:
        """The true answers on top of noise: the only line of a measurement that reads the data."""
        values += order.block.answers(self._data.counts)
        values.flags.writeable = False
        variances = self._variances(order.scales)
        return Measurement(order.block, values, variances, order.cost, order.bill, charge)

    def _draw(self, scales: NDArray[np.float64]) -> NDArray[np.int64]:
        """Fresh noise of these scales, drawn together for all rows that have the same one."""
        draw = self._noise.laplace if self.budget.currency == "pure" else self._noise.gaussian
        noise = np.zeros(len(scales), dtype=np.int64)
        if len(scales) == 1:
            return draw(scales.item(), 1) if scales.item() else noise
        for scale in np.unique(scales[scales > 0]).tolist():
            rows = scales == scale
            noise[rows] = draw(scale, int(rows.sum()))
        return noise

    def complete(self, decode: Decode) -> list[Measurement]:
        """Measure what was charged before a crash and never released, so that it is not lost.

        A sparse vector that was charged and never armed is armed.

        Privacy: costs nothing more. Values leave the kernel only when they are stored, and those of
        these charges never were; so each charge is still used for one release. Only charges from
        before this curator was opened count, and each of them once.
        """
        with self._lock:
            mine = {number: c for number, c in self._unfinished.items() if self._sees(c)}
            for number in mine:
                del self._unfinished[number]
        found, events = [], list[Event]()
        for number, charged in mine.items():
            if "measure" in charged.purpose:
                block = decode(self.domain, charged.purpose["measure"])
                cost = sum(charged.bill.values(), Fraction(0))
                found.append(self._draw_for(Order(block, _scales(charged), cost, charged.bill), number))
                events.append(found[-1].released)
            else:
                plan = SparseVectorPlan.from_json(charged.purpose["sparse_vector"])
                events.append(Armed(number, plan.arm(self._noise)))
        if events:
            self._ledger.append_many(events)
        return found

    def _find_unfinished(self) -> dict[int, Charged]:
        """The charges for which nothing was stored afterwards."""
        charges: dict[int, Charged] = {}
        released: set[int] = set()
        for number, event in enumerate(self._ledger.events()):
            if isinstance(event, Charged):
                charges[number] = event
            elif isinstance(event, Released | Armed):
                if event.charge in released:
                    raise PrivacyError(
                        "The ledger has released a charge twice.", hint="Do not go on with it."
                    )
                released.add(event.charge)
        return {
            number: charged
            for number, charged in charges.items()
            if number not in released and charged.purpose.keys() & {"measure", "sparse_vector"}
        }

    def history(self, decode: Decode) -> Iterator[Measurement]:
        """Every measurement that the ledger holds, in order, as it was released.

        A view sees what its own payer paid for alone.
        """
        charges: dict[int, Charged] = {}
        for number, event in enumerate(self._ledger.events()):
            if isinstance(event, Charged) and "measure" in event.purpose and self._sees(event):
                charges[number] = event
            elif isinstance(event, Released) and event.charge in charges:
                charged = charges[event.charge]
                block = decode(self.domain, charged.purpose["measure"])
                values = np.array(event.values, dtype=np.int64)
                cost = sum(charged.bill.values(), Fraction(0))
                variances = self._variances(_scales(charged))
                yield Measurement(block, values, variances, cost, charged.bill, event.charge)

    def sparse_vector(
        self, *, epsilon: Amount, threshold: int, positives: int, payer: Payer, sensitivity: int = 1
    ) -> SparseVector:
        """A sparse vector over the data, paid for in full before its first test.

        Privacy: costs epsilon in the pure currency, epsilon^2 / 2 as rho, for all of its tests.
        """
        exact = amount(epsilon, "epsilon")
        plan = SparseVectorPlan(exact, threshold, positives, sensitivity, self.neighbours)
        bill = self._bill(self.budget.cost_of_pure(exact), payer)
        self._accounts.reserve(bill)
        [charge] = self._accounts.charge([Charged(bill, {"sparse_vector": plan.to_json()})])
        armed = Armed(charge, plan.arm(self._noise))
        self._ledger.append(armed)
        return self._armed(plan, armed, positives)

    def sparse_vectors(self) -> list[SparseVector]:
        """The sparse vectors that the ledger holds, with the positives that each has left."""
        plans: dict[int, SparseVectorPlan] = {}
        armed: dict[int, Armed] = {}
        used: Counter[int] = Counter()
        for number, event in enumerate(self._ledger.events()):
            if isinstance(event, Charged) and "sparse_vector" in event.purpose and self._sees(event):
                plans[number] = SparseVectorPlan.from_json(event.purpose["sparse_vector"])
            elif isinstance(event, Armed) and event.charge in plans:
                armed[event.charge] = event
            elif isinstance(event, Exceeded):
                used[event.charge] += 1
        return [
            self._armed(plans[charge], event, plans[charge].positives - used[charge])
            for charge, event in armed.items()
        ]

    def _armed(self, plan: SparseVectorPlan, armed: Armed, positives_left: int) -> SparseVector:
        def answer(query: LinearQuery) -> int:
            return int(query.dot(self._data.counts))

        def record(query: LinearQuery, guess: int) -> None:
            self._ledger.append(Exceeded(armed.charge, query.to_json(), guess))

        threshold = armed.noisy_threshold
        return SparseVector(plan, self.domain, answer, self._noise, record, threshold, positives_left)

    def _bill(self, cost: Fraction, payer: Payer) -> Mapping[str, Fraction]:
        bill = self._accounts.bill(cost, payer)
        # The accounts know everybody here; a view has one payer.
        if self._only is not None and (strangers := sorted(set(bill) - set(self.payers))):
            raise UnknownPayer(f"{strangers[0]} does not pay here.")
        return bill

    def _sees(self, charged: Charged) -> bool:
        """Whether a charge belongs to this view."""
        return self._only is None or set(charged.bill) == {self._only}

    def __repr__(self) -> str:
        return f"Curator({self.domain.size:,} cells, {self.budget.currency}, {self._accounts})"


def _scales(charged: Charged) -> NDArray[np.float64]:
    """The scales that a charge was made for."""
    return np.array([float.fromhex(scale) for scale in charged.purpose["scales"]])


def _per_value(array: NDArray[Any], of_value: Callable[[Any], float]) -> NDArray[np.float64]:
    """A function of each number, computed once for equal ones."""
    if len(array) == 1:
        return np.array([of_value(array.item())], dtype=np.float64)
    different, where = np.unique(array, return_inverse=True)
    return np.array([of_value(value) for value in different.tolist()], dtype=np.float64)[where]
