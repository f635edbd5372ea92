"""The curator: the only object that holds the data, and the only way to learn anything from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from fractions import Fraction
from threading import Lock
from types import MappingProxyType
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from sharewell.engine.data_vector import DataVector
from sharewell.engine.in_place import InPlaceData
from sharewell.errors import LedgerUnavailable, OverBudget, PrivacyError, UnknownPayer
from sharewell.privacy.accounts import ZERO, Accounts, Payer, plain
from sharewell.privacy.budget import Amount, Budget, amount
from sharewell.privacy.history import (
    KernelHistory,
    SourceHistory,
    StoredRelease,
    inconsistent,
    require_same_terms,
    stored_scales,
)
from sharewell.privacy.kronecker import ComposedRows, KroneckerProduct, KroneckerRows
from sharewell.privacy.ledger import (
    Armed,
    Begun,
    Charged,
    CuratorAction,
    Event,
    Exceeded,
    Granted,
    Ledger,
    Left,
    MemoryLedger,
    Opened,
    Recovered,
    Released,
    RoundClosed,
    SourceChanged,
    SourceSeen,
)
from sharewell.privacy.measurement import Measurement, MeasureRequest, Reservation
from sharewell.privacy.noise import (
    ExactNoise,
    Noise,
    gaussian_scale,
    gaussian_variance,
    laplace_scale,
    laplace_variance,
)
from sharewell.privacy.sensitivity import Rows, checked, rebuilt
from sharewell.privacy.sparse_vector import SparseVector, SparseVectorPlan
from sharewell.query.block import Block, Measurable, Neighbours
from sharewell.query.domain import Domain
from sharewell.query.linear import LinearQuery

#: Builds a block from its stored form.
Decode = Callable[[Domain, Mapping[str, Any]], Measurable]
#: Is called with every event and its number: those read at opening, then those stored.
Observer = Callable[[int, Event], None]

#: Events that only the kernel stores.
KERNEL_EVENTS = (
    Begun,
    Opened,
    Granted,
    Charged,
    Released,
    Armed,
    Exceeded,
    Left,
    RoundClosed,
    Recovered,
    SourceSeen,
    SourceChanged,
)


class Curator:
    """Holds a data vector and a budget; `measure` and a sparse vector's `exceeds` are the only ways in.

    Every verb keeps to one order: validate what is public, reserve, store the charge, only then draw
    noise and touch the data, store what is released, return it. A charge is never refunded. After it,
    nothing that happens depends on a true count except the value itself.

    Privacy: all measurements and tests together cost at most `budget.total`, in its currency.
    """

    def __init__(
        self,
        data: DataVector | InPlaceData,
        budget: Budget,
        shares: Mapping[str, Amount],
        *,
        neighbours: Neighbours = "add-remove",
        noise: Noise | None = None,
        ledger: Ledger | None = None,
        observer: Observer | None = None,
    ) -> None:
        if not isinstance(data, DataVector | InPlaceData) or not isinstance(budget, Budget):
            raise PrivacyError(
                "A curator needs a data vector and a budget.",
                hint='Make them with vectorize(...) and Budget.pure("1").',
            )
        if neighbours not in get_args(Neighbours):
            raise PrivacyError(
                f"Unknown neighbouring relation {neighbours!r}.",
                hint='Use "add-remove" or "replace-one".',
            )
        self.budget = budget
        self.neighbours = neighbours
        self.domain = data.domain
        #: What one person can change is so many times what one row can.
        self.max_rows_per_person = data.max_rows_per_person
        self._data = data
        self._only: str | None = None
        self._noise = ExactNoise() if noise is None else noise
        self._ledger = MemoryLedger() if ledger is None else ledger
        self._observer = observer
        self._lock = Lock()
        #: Reservations neither charged nor released; views share them.
        self._reservations: set[Reservation] = set()
        self._accounts = Accounts(budget)
        self._past = KernelHistory()
        #: Shared by views.
        self.source = SourceHistory()
        stated = _exact_shares(shares, budget)
        self._replay()
        self.admit(stated)

    def _replay(self) -> None:
        """Fold the events that the ledger holds, or begin it."""
        opened = Opened.of(self.budget, self.neighbours, self.domain, self.max_rows_per_person)
        is_open = False
        for number, event in enumerate(self._ledger.events()):
            if isinstance(event, Opened) or not (is_open or isinstance(event, Begun | CuratorAction)):
                require_same_terms(event, opened)
                is_open = True
            self._past.apply(number, event)
            self._apply(number, [event])
        if not is_open:
            self._append([opened])
        self._accounts.require_within_budget()

    def _apply(self, first: int, events: Sequence[Event]) -> None:
        """Take in stored events: the kernel first, then what lies above it."""
        for event in events:
            self._accounts.apply(event)
            if isinstance(event, SourceSeen):
                self.source.fingerprint = event.fingerprint
            elif isinstance(event, SourceChanged):
                self.source.changed = True
        if self._observer is not None:
            for number, event in enumerate(events, first):
                self._observer(number, event)

    def _append(self, events: Sequence[Event], undo: Callable[[], None] | None = None) -> int:
        """Store events, then account for them: the number of the first.

        Where they are known not to be stored, `undo` what was reserved for them.
        """
        try:
            first = self._ledger.append_many(events)
        except LedgerUnavailable as failure:
            if undo is not None and not failure.uncertain:
                undo()
            raise
        self._apply(first, events)
        return first

    # Shares

    @property
    def payers(self) -> tuple[str, ...]:
        """All who hold a share and have not left; in a view, its own payer."""
        payers = self._accounts.payers
        return payers if self._only is None else tuple(p for p in payers if p == self._only)

    def share(self, payer: str) -> Fraction:
        """The share that a payer was granted."""
        return self._accounts.share(payer)

    def spent(self, payer: str) -> Fraction:
        """What was charged to a payer, or is reserved for a charge."""
        return self._accounts.spent(payer)

    def left(self, payer: str) -> Fraction:
        """What a payer may still spend."""
        return self._accounts.left(payer)

    @property
    def unallocated(self) -> Fraction:
        """The part of the total that was never granted."""
        return self._accounts.unallocated

    def grant(self, payer: str, share: Amount) -> None:
        """Grant a new payer a share of the unallocated budget."""
        granted = self._accounts.reserve_grant(payer, share)
        self._append([granted], lambda: self._accounts.cancel_grant(granted))

    def admit(self, shares: Mapping[str, Amount]) -> None:
        """Grant every stated share that the ledger does not know yet; refuse one that differs."""
        for payer, share in _exact_shares(shares, self.budget).items():
            if payer not in self._past.shares:
                self.grant(payer, share)
            elif self._past.shares[payer] != share:
                raise PrivacyError(
                    f"The ledger granted {payer} a share of {self._past.shares[payer]}, not {share}.",
                    hint="Restore the share: shares cannot change.",
                )

    def retire(self, payer: str) -> None:
        """Let a payer leave: what they have left stays unspent for good."""
        self._accounts.suspend(payer)
        self._append([Left(payer)], lambda: self._accounts.reinstate(payer))

    def close_round(self, payers: Sequence[str], request: MeasureRequest | None) -> Measurement | None:
        """Measure a last request of payers, and let them pay for nothing more, in one commit.

        Without a request, where they have too little left to measure with, nothing is charged.

        Privacy: costs what the request does.
        """
        closed = RoundClosed(tuple(payers))
        for payer in closed.payers:
            self._accounts.require(payer)
        if request is None:
            self._append([closed])
            return None
        [found] = self.charge([self.reserve(request)], [closed])
        self.store([found])
        return found

    def alone(self, payer: str) -> Curator:
        """A view of the same curator, ledger and budget in which this payer is the only one."""
        self._accounts.require(payer)
        view = copy(self)
        view._only = payer
        return view

    # Measurements

    def scales(self, block: Measurable, cost: Amount) -> NDArray[np.float64]:
        """The noise scale of each row that a cost buys for a block; public, spends nothing."""
        return self._scales(rebuilt(block, self.domain), amount(cost, "The cost"))

    def _scales(self, rows: Rows, cost: Fraction) -> NDArray[np.float64]:
        if isinstance(rows, ComposedRows):
            # All rows of a part have the same.
            scales = [self._scale_of(part, fraction * cost)(1) for part, fraction in rows.parts]
            return np.repeat(np.array(scales), [len(part) for part, _ in rows.parts])
        return _per_value(rows.units(self.neighbours), self._scale_of(rows, cost))

    def _scale_of(
        self, rows: Block | KroneckerRows | KroneckerProduct, cost: Fraction
    ) -> Callable[[int], float]:
        """How the noise scale of a row depends on its unit."""
        if self.budget.currency == "pure":
            sensitivity = rows.l1_sensitivity(self.neighbours) * self.max_rows_per_person
            return lambda unit: laplace_scale(unit * sensitivity, cost)
        # All rows of a person may be in one cell: their distance adds up, and not only its square.
        squared = rows.l2_sensitivity_squared(self.neighbours) * self.max_rows_per_person**2
        return lambda unit: gaussian_scale(unit**2 * squared, cost)

    def variances(self, block: Measurable, cost: Amount) -> NDArray[np.float64]:
        """The exact variance of each value that a cost buys for a block; public, spends nothing."""
        return self._variances(self.scales(block, cost))

    def _variances(self, scales: NDArray[np.float64]) -> NDArray[np.float64]:
        pure = self.budget.currency == "pure"
        return _per_value(scales, laplace_variance if pure else gaussian_variance)

    def measure(self, block: Measurable | LinearQuery, cost: Amount, payer: Payer) -> Measurement:
        """Measure every row of a block, or one query, with exact discrete noise.

        Privacy: costs `cost`. The sensitivity is computed here from the block's public weights.
        """
        if isinstance(block, LinearQuery):
            block = Block(block.domain, [block])
        reservation = self.reserve(MeasureRequest(block, amount(cost, "The cost"), payer))
        [found] = self.charge([reservation])
        self.store([found])
        return found

    def reserve(self, request: MeasureRequest) -> Reservation:
        """Validate a request to measure, and reserve its cost.

        Privacy: costs nothing yet, and touches no data.
        """
        block, cost = request.block, request.cost
        rows = checked(block, self.domain)
        bill = self._bill(cost, request.payer)
        if not len(rows):
            raise PrivacyError("Cannot measure a block without rows.")
        if isinstance(rows, ComposedRows):
            rows.require_planned_by(bill)
        self._data.require_answerable(rows)
        scales = self._scales(rows, cost)
        scales.flags.writeable = False
        self._accounts.reserve(bill)
        reservation = Reservation(block, rows, scales, cost, bill)
        with self._lock:
            self._reservations.add(reservation)
        return reservation

    def release(self, reservation: Reservation) -> None:
        """Release a reservation: nothing was charged for it."""
        self._claim([reservation])
        self._accounts.release([reservation.bill])

    def charge(
        self, reservations: Sequence[Reservation], before: Sequence[Event] = ()
    ) -> list[Measurement]:
        """Charge reservations in one commit, after the events `before`; once stored, measure them.

        The caller must `store` what was measured before it gives any of it away: `privacy.driver` does.

        Privacy: costs what was reserved. Each reservation is charged once, and measured once.
        """
        self._claim(reservations)
        events = [*before, *(each.charged for each in reservations)]
        bills = [each.bill for each in reservations]
        first = self._append(events, lambda: self._accounts.release(bills)) + len(before)
        return self._measure(dict(enumerate(reservations, first)))

    def store(self, measured: Sequence[Measurement], events: Sequence[Event] | None = None) -> None:
        """Store what was measured, together with events that are computed from it."""
        released: list[Event] = [event for each in measured for event in each.released]
        events = released if events is None else events
        if [event for event in events if isinstance(event, KERNEL_EVENTS)] != released:
            raise PrivacyError("Every measurement must be stored as it was released, in order.")
        if events:
            self._append(events)

    def record(self, events: Sequence[Event]) -> int:
        """Store events of the layers above: the number of the first."""
        if any(isinstance(event, KERNEL_EVENTS) for event in events):
            raise PrivacyError("Only the kernel stores charges, releases and shares.")
        return self._append(events)

    def _claim(self, reservations: Sequence[Reservation]) -> None:
        """Take reservations out, all or none: each was made here, and is used once."""
        with self._lock:
            if len(set(reservations) & self._reservations) < len(reservations):
                raise PrivacyError(
                    "A reservation is used once, by the curator that made it.",
                    hint="Make a new reservation.",
                )
            self._reservations.difference_update(reservations)

    def _measure(self, reserved: Mapping[int, Reservation]) -> list[Measurement]:
        """Draw noise, and add true answers: the only line of measurements that reads the data.

        Where that fails, the noise is forgotten: the charges are measured later, with other noise.
        """
        if not reserved:
            return []
        # Drawn for all together: draws are independent, and many at once take little longer.
        noise = self._draw(np.concatenate([each.scales for each in reserved.values()]))
        ends = np.cumsum([len(each.scales) for each in reserved.values()])
        answers = self._data.answers_together([each.rows for each in reserved.values()])
        self._note_source()
        found = []
        parts = np.split(noise, ends[:-1])
        for (charge, each), values, exact in zip(reserved.items(), parts, answers, strict=True):
            values += exact
            values.flags.writeable = False
            variances = self._variances(each.scales)
            found.append(Measurement(each.block, values, variances, each.cost, each.bill, charge))
        return found

    def _note_source(self) -> None:
        """Store that the source gives another version of itself than before, if it does."""
        fingerprint = self._data.fingerprint
        if fingerprint is not None and fingerprint != self.source.fingerprint:
            is_first = self.source.fingerprint is None
            self._append([SourceSeen(fingerprint), *([] if is_first else [SourceChanged()])])

    def _draw(self, scales: NDArray[np.float64]) -> NDArray[np.int64]:
        """Draw fresh noise, together for all rows of the same scale."""
        draw = self._noise.laplace if self.budget.currency == "pure" else self._noise.gaussian
        noise = np.zeros(len(scales), dtype=np.int64)
        if len(scales) == 1:
            return draw(scales.item(), 1) if scales.item() else noise
        for scale in np.unique(scales[scales > 0]).tolist():
            rows = scales == scale
            noise[rows] = draw(scale, int(rows.sum()))
        return noise

    # What the ledger held at opening

    def complete(self, decode: Decode) -> list[Measurement]:
        """Measure what was charged before a crash and never released; arm sparse vectors likewise.

        Privacy: costs nothing more. Values leave the kernel only once they are stored, and those of
        these charges never were; so each charge is still used for one release. Only charges from before
        this curator was opened count, and each of them once.
        """
        with self._lock:
            mine = {number: c for number, c in self._past.unfinished.items() if self._sees(c)}
            for number in mine:
                del self._past.unfinished[number]
        measures = {
            n: self._charged_before(c, decode) for n, c in mine.items() if "measure" in c.purpose
        }
        found, events = self._measure(measures), list[Event]()
        measured = {each.charge: each for each in found}
        for number, charged in mine.items():
            if number in measures:
                released = measured[number].released
                events += released
                self._past.released[number] = charged, StoredRelease(*released)
            else:
                plan = SparseVectorPlan.from_json(charged.purpose["sparse_vector"])
                events.append(Armed(number, plan.arm(self._noise)))
                self._past.apply(number, events[-1])
        if events:
            self._append(events)
        return found

    def _charged_before(self, charged: Charged, decode: Decode) -> Reservation:
        """The reservation that was charged before a crash; refuses scales that its cost does not buy."""
        block, cost = decode(self.domain, charged.purpose["measure"]), _cost(charged)
        rows = checked(block, self.domain)
        scales = stored_scales(charged, len(rows))
        if not (scales >= self._scales(rows, cost)).all():
            raise inconsistent("it charged for less noise than its rows need")
        return Reservation(block, rows, scales, cost, charged.bill)

    def history(self, decode: Decode) -> list[Measurement]:
        """Every measurement that the ledger held at opening, in order, as it was released.

        Handed over once, to the mechanism that learns from it. A view has what its own payer alone paid.
        """
        with self._lock:
            mine = {n: each for n, each in self._past.released.items() if self._sees(each[0])}
            for number in mine:
                del self._past.released[number]
        found = []
        for number, (charged, released) in mine.items():
            block, values = decode(self.domain, charged.purpose["measure"]), released.values
            if len(block) != len(values):
                raise inconsistent("it released a different number of values than it charged for")
            variances = self._variances(stored_scales(charged, len(values)))
            found.append(Measurement(block, values, variances, _cost(charged), charged.bill, number))
        return found

    # Sparse vectors

    def sparse_vector(
        self, *, epsilon: Amount, threshold: int, positives: int, payer: Payer, sensitivity: int = 1
    ) -> SparseVector:
        """Open a sparse vector over the data, paid for in full before its first test.

        Privacy: costs epsilon in the pure currency, epsilon^2 / 2 as rho, for all of its tests.
        """
        exact = amount(epsilon, "epsilon")
        plan = SparseVectorPlan(
            exact, threshold, positives, sensitivity, self.neighbours, self.max_rows_per_person
        )
        bill = self._bill(self.budget.cost_of_pure(exact), payer)
        self._accounts.reserve(bill)
        charge = self._append([Charged(bill, {"sparse_vector": plan.to_json()})])
        armed = Armed(charge, plan.arm(self._noise))
        self._append([armed])
        return self._opened(plan, armed, positives)

    def sparse_vectors(self) -> list[SparseVector]:
        """The sparse vectors that the ledger held at opening, with the positives that each has left."""
        return [
            self._opened(plan, armed, self._past.positives_left(charge, plan))
            for charge, armed in self._past.armed.items()
            if self._sees(self._past.charges[charge])
            for plan in [SparseVectorPlan.from_json(self._past.charges[charge].purpose["sparse_vector"])]
        ]

    def _opened(self, plan: SparseVectorPlan, armed: Armed, positives_left: int) -> SparseVector:
        def record(query: LinearQuery, guess: int) -> None:
            self._append([Exceeded(armed.charge, query.to_json(), guess)])

        threshold = armed.noisy_threshold

        def answer(query: LinearQuery) -> int:
            exact = self._data.answer(query)
            self._note_source()
            return exact

        return SparseVector(plan, self.domain, answer, self._noise, record, threshold, positives_left)

    def _bill(self, cost: Fraction, payer: Payer) -> Mapping[str, Fraction]:
        """What each payer pays, in exact amounts that sum to the cost; in a view, its own payer all."""
        if isinstance(payer, str):
            bill = {payer: cost}
        elif isinstance(payer, Mapping):
            bill = {name: amount(part, f"The amount of {name}") for name, part in payer.items()}
        else:
            raise UnknownPayer(
                "A charge needs a payer.", hint="Name one payer, or map payers to amounts."
            )
        if sum(bill.values(), ZERO) != cost:
            raise PrivacyError("The payers' amounts do not sum to the cost.")
        if self._only is not None and (others := sorted(set(bill) - {self._only})):
            raise UnknownPayer(f"{others[0]} is not a payer of this view.")
        return MappingProxyType(bill)

    def _sees(self, charged: Charged) -> bool:
        """Whether a charge belongs to this view."""
        return self._only is None or set(charged.bill) == {self._only}

    def __repr__(self) -> str:
        return f"Curator({self.domain.cells:,} cells, {self.budget.currency}, {self._accounts})"


def _exact_shares(shares: Mapping[str, Amount], budget: Budget) -> dict[str, Fraction]:
    if not isinstance(shares, Mapping):
        raise PrivacyError(
            "Shares must be a mapping from names to amounts.", hint='Write {"ann": "1/2", "ben": "1/2"}.'
        )
    for payer in shares:
        if not isinstance(payer, str) or not payer:
            raise PrivacyError(f"A payer's name must be a non-empty string, not {payer!r}.")
    exact = {payer: amount(share, f"The share of {payer}") for payer, share in shares.items()}
    if sum(exact.values(), ZERO) > budget.total:
        raise OverBudget(
            "The shares sum to more than the total budget.",
            hint=f"They may sum to at most {plain(budget.total)}.",
        )
    return exact


def _cost(charged: Charged) -> Fraction:
    return sum(charged.bill.values(), ZERO)


def _per_value(array: NDArray[Any], of_value: Callable[[Any], float]) -> NDArray[np.float64]:
    """A function of each number, computed once for equal ones."""
    if len(array) and (array == array[0]).all():
        return np.full(len(array), of_value(array[0].item()))
    different, where = np.unique(array, return_inverse=True)
    return np.array([of_value(value) for value in different.tolist()], dtype=np.float64)[where]
